"""Somebody is forgotten, and no byte of them is left in any file of the store."""

from __future__ import annotations

import threading

import pytest

from rmem import Brain, Filter
from rmem.crypto.encryption import Encryption, new_master_key
from rmem.doctor import examine
from rmem.errors import InputError, StoreUnreachableError
from rmem.stores.sql import dictionaries
from rmem.stores.sql.sqlite import SqliteRecordStore
from rmem.upkeep import backup

PEOPLE = [f"Person{chr(97 + n // 26)}{chr(97 + n % 26)} Quillfeather{n}" for n in range(30)]
EACH = 40


def sentence(person: str, n: int) -> str:
    handle = person.split()[1].lower()
    return f"{person} ({handle}@example.org) said about the harbour plan, item {n}: lanterns before ropes, please"


def fill(brain: Brain) -> None:
    for person in PEOPLE:
        handle = person.split()[1].lower()
        brain.remember_many(
            [
                {"text": sentence(person, n), "agent": "clerk", "metadata": {"by": f"{handle}@example.org", "item": n}}
                for n in range(EACH)
            ]
        )
    keys = [memory.memory_id for memory in brain.memories(limit=None)]
    brain.store.move(keys, "im")
    brain.store.move(keys[::2], "ltm")


def traces_of(person: str) -> list[bytes]:
    first, last = person.split()
    return [word.encode() for name in (first, last) for word in (name, name.lower(), name.upper())]


def left(folder, person: str) -> list[str]:
    return [
        f"{path.name}: {trace.decode()}"
        for path in folder.rglob("*")
        if path.is_file()
        for trace in traces_of(person)
        if trace in path.read_bytes()
    ]


def test_nothing_of_a_forgotten_person_is_left_in_the_dictionaries_of_packed_memories(tmp_path):
    path, gone = tmp_path / "memories.db", PEOPLE[-1]  # the newest memories are what a dictionary is trained on
    with Brain(path, embedder="none") as brain:
        fill(brain)
        (before,) = brain.store.read(lambda connection: connection.execute("SELECT data FROM dictionaries").fetchone())
        assert any(trace in before for trace in traces_of(gone)), "or this tests nothing"
        assert len(brain.forget(subject=gone)) == EACH
        assert left(tmp_path, gone) == [], "while the store is still open"
        packed = brain.store.read(
            lambda connection: connection.execute("SELECT count(*) FROM memories WHERE packed IS NOT NULL").fetchone()
        )
        assert packed == ((len(PEOPLE) - 1) * EACH,)
    backup(path, tmp_path / "copy.db")
    assert left(tmp_path, gone) == []
    with Brain(path, embedder="none") as brain:
        kept = {memory.text for memory in brain.memories(limit=None)}
        assert kept == {sentence(person, n) for person in PEOPLE[:-1] for n in range(EACH)}
        assert brain.recall(PEOPLE[3], k=1)[0].memory.text in kept
    assert [finding for finding in examine(path) if not finding.ok] == []


def test_a_process_that_moves_memories_meanwhile_never_uses_a_dictionary_that_goes(tmp_path):
    path, stop, failed = tmp_path / "memories.db", threading.Event(), []
    with Brain(path, embedder="none", durability="normal") as brain:
        fill(brain)
        brain.remember_many([{"text": f"a rope {n}", "agent": "mover"} for n in range(50)])

    def move() -> None:
        try:
            with SqliteRecordStore(path, durability="normal") as store:
                keys = [memory.memory_id for memory in store.select(Filter(agent=("mover",)))]
                turn = 0
                while not stop.is_set():
                    store.move(keys, ("im", "ltm", "stm")[turn % 3])
                    assert all(memory is not None for memory in store.get_many(keys))
                    turn += 1
        except BaseException as error:
            failed.append(repr(error))

    thread = threading.Thread(target=move)
    thread.start()
    with Brain(path, embedder="none", durability="normal") as brain:
        for person in PEOPLE[-3:]:
            brain.forget(subject=person)
    stop.set()
    thread.join()
    assert failed == []
    with Brain(path, embedder="none") as brain:
        assert len(brain.memories(limit=None)) == (len(PEOPLE) - 3) * EACH + 50
        assert (
            len(brain.store.read(lambda connection: connection.execute("SELECT id FROM dictionaries").fetchall())) == 1
        )
    for person in PEOPLE[-3:]:
        assert left(tmp_path, person) == []


def test_memories_that_are_encrypted_later_leave_nothing_in_dictionaries(tmp_path):
    path = tmp_path / "memories.db"
    with Brain(path, embedder="none") as brain:
        fill(brain)
    encryption = Encryption(master=new_master_key())
    with SqliteRecordStore(path, encryption=encryption) as store:
        for memory in store.select():
            store.change(memory.memory_id, lambda memory: memory)
    for person in PEOPLE:
        assert left(tmp_path, person) == []
    with SqliteRecordStore(path, encryption=encryption) as store:
        assert len(store.select()) == len(PEOPLE) * EACH
        assert store.read(dictionaries.newest) > 0


@pytest.mark.parametrize("kills", [1, 2])
def test_an_erasure_that_was_cut_short_is_finished_by_the_next(tmp_path, monkeypatch, kills):
    path, gone = tmp_path / "memories.db", PEOPLE[-1]
    with Brain(path, embedder="none") as brain:
        fill(brain)
        done = []

        def broken(*arguments):
            done.append(arguments)
            if len(done) > kills:
                raise KeyboardInterrupt
            return repack(*arguments)

        repack = dictionaries._repack
        monkeypatch.setattr(dictionaries, "_repack", broken)
        with pytest.raises(KeyboardInterrupt):
            brain.forget(subject=gone)
        monkeypatch.setattr(dictionaries, "_repack", repack)
        assert len(brain.memories(limit=None)) == (len(PEOPLE) - 1) * EACH
        brain.forget(subject=PEOPLE[0])
        assert left(tmp_path, gone) == []
        assert len(brain.memories(limit=None)) == (len(PEOPLE) - 2) * EACH


def values_of(server) -> bytes:
    """Every key of a Redis with all that is under it."""
    import redis

    client = redis.Redis(port=server.port, password=server.password)
    reading = {
        b"string": lambda key: [client.get(key)],
        b"hash": lambda key: [part for pair in client.hgetall(key).items() for part in pair],
        b"set": client.smembers,
        b"zset": lambda key: client.zrange(key, 0, -1),
    }
    keys = list(client.scan_iter(count=1000))
    return b"\n".join([*keys, *(part for key in keys for part in reading[client.type(key)](key))])


def test_nothing_of_a_forgotten_person_is_left_in_redis_tiers(tmp_path):
    from rmem.agents import AgentMemoryAPI, MemoryConfig
    from rmem.agents.config import RedisIMConfig, RedisSTMConfig
    from rmem.testing.redis import RedisServer

    gone, path = PEOPLE[7], tmp_path / "memories.db"
    with RedisServer(password="harbour") as server:
        place = {"host": "127.0.0.1", "port": server.port, "password": "harbour"}
        config = MemoryConfig(
            stm_config=RedisSTMConfig(**place),
            im_config=RedisIMConfig(**place),
        )
        archive = Brain(path, embedder="none")
        with AgentMemoryAPI(config, brain=archive) as api:
            for n, person in enumerate(PEOPLE):
                api.store_agent_state(person, {"said": sentence(person, 0)}, 1)
                api.store_agent_state("clerk", {"heard": sentence(person, 1)}, n)
            with Brain(path) as brain:
                with pytest.raises(StoreUnreachableError, match=r"also in RedisRecordStore.*Nothing was changed"):
                    brain.forget(subject=gone)
                assert len(brain.memories({"agent": gone}, limit=None)) == 1
            assert len(archive.forget(subject=gone.upper())) == 2
            assert len(api.retrieve_by_time_range("clerk", 0, 100)) == len(PEOPLE) - 1
            held = values_of(server)
            assert PEOPLE[8].encode() in held
            assert [trace for trace in traces_of(gone) if trace in held] == []
        assert left(tmp_path, gone) == []


def test_nothing_of_a_forgotten_person_is_left_in_a_redis_store(tmp_path):
    from rmem.stores.redis import RedisRecordStore
    from rmem.testing.redis import RedisServer

    gone = PEOPLE[7]
    with RedisServer() as server, RedisRecordStore(**server.connection()) as store, Brain(store) as brain:
        brain.remember_many([{"text": sentence(person, n), "agent": "clerk"} for person in PEOPLE for n in range(EACH)])
        for person in PEOPLE:
            brain.remember("a rope", agent=person)
        brain.remember("lent", agent="clerk", id=f"{gone}-7-1777632000")
        brain.recall(f"harbour plan of {gone}")[0].useful()
        assert len(brain.forget(subject=gone)) == EACH + 2
        held = values_of(server)
        assert PEOPLE[8].encode() in held
        assert [trace for trace in traces_of(gone) if trace in held] == []
        assert brain.recall(PEOPLE[8], k=1)


def test_nothing_of_a_forgotten_person_is_left_in_the_tables_of_postgresql(postgres, postgres_url):
    import psycopg

    gone = PEOPLE[-1]
    with Brain(postgres_url, embedder="none") as brain, psycopg.connect(postgres_url, autocommit=True) as other:
        fill(brain)
        brain.recall(f"harbour plan of {gone}")[0].useful()
        other.execute("VACUUM ANALYZE")
        other.execute("CHECKPOINT")
        (folder,) = other.execute("SELECT oid FROM pg_database WHERE datname = current_database()").fetchone()
        tables = postgres.folder / "base" / str(folder)
        assert left(tables, gone), "or this tests nothing"
        assert len(brain.forget(subject=gone)) == EACH
        other.execute("CHECKPOINT")
        assert left(tables, gone) == []
        assert len(brain.memories(limit=None)) == (len(PEOPLE) - 1) * EACH


def test_erasing_in_postgresql_does_not_wait_for_whoever_reads_for_long(postgres_url, caplog):
    import psycopg

    with Brain(postgres_url, embedder="none") as brain, psycopg.connect(postgres_url) as other:
        brain.remember("Ann prefers the window seat")
        other.execute("SELECT count(*) FROM remanence.memories")  # its transaction stays open
        assert len(brain.forget(subject="Ann")) == 1
    assert "VACUUM FULL" in caplog.text


def test_a_recall_that_names_a_forgotten_person_can_be_judged_no_more(tmp_path):
    with Brain(tmp_path / "memories.db", embedder="none") as brain:
        brain.remember("lanterns before ropes")
        asked = brain.recall("what did José say of lanterns?")
        brain.forget(subject="JOSE")
        with pytest.raises(InputError, match="recalled must be"):
            brain.feedback(asked.recall_id, useful=False)
        assert left(tmp_path, "José José") == []


def test_a_dictionary_that_is_new_in_a_transaction_is_the_one_that_is_packed_with(tmp_path):
    """Threads share transactions: one adds a dictionary, and the next packs before anybody else can see it."""
    path = tmp_path / "memories.db"
    other = dictionaries.packing.train([(f"wholly other words {n} {n * 7}", {"at": n}) for n in range(1000)])

    with SqliteRecordStore(path) as store, Brain(store, embedder="none") as brain:
        fill(brain)
        old = store.read(dictionaries.newest)

        def add_and_pack(connection):
            connection.execute("INSERT INTO dictionaries (data) VALUES (?)", (other,))
            dictionaries._repack(store, 0, connection)

        store.write(add_and_pack)
        store.write(lambda connection: dictionaries._remove(store, old, connection))
        keys = [memory.memory_id for memory in brain.memories(limit=100)]
        store.move(keys, "stm")
        store.move(keys, "ltm")
    with Brain(path, embedder="none") as brain:
        assert len(brain.memories(limit=None)) == len(PEOPLE) * EACH
