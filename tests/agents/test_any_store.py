"""Any store behind Brain and behind the façade: an address, a RecordStore, or any object with four methods; and the
strategy pattern of the guide, in which the façade's stores are replaced by assignment."""

from __future__ import annotations

import os

import pytest

from rmem import Brain, Encryption, EnhancedAgentMemory, InMemoryStore, SqliteStore, VectorMemoryStore
from rmem.errors import ConfigError, InputError
from rmem.stores.memory import InMemoryRecordStore
from rmem.stores.redis import RedisRecordStore
from rmem.stores.sql.sqlite import SqliteRecordStore
from rmem.testing.redis import RedisServer


class GuideStore:
    """The in-memory store of the guide, word for word: it derives from nothing of ours."""

    def __init__(self):
        self.values, self.said = {}, {}

    def add(self, key, value, meta=None):
        self.values[key] = value
        if meta:
            self.said[key] = meta

    def get(self, key):
        return self.values.get(key)

    def search(self, query, top_k=5):
        return [(k, v, 1.0) for k, v in self.values.items() if query.lower() in v.lower()][:top_k]

    def forget(self, key):
        return self.values.pop(key, None) is not None


@pytest.fixture(scope="module")
def redis_server():
    with RedisServer() as server:
        yield server


@pytest.fixture
def redis_url(redis_server):
    redis_server.flush()
    return redis_server.url


@pytest.fixture(params=["path", "sqlite", "postgresql", "redis", "store"])
def lasting(request, tmp_path):
    """Something to open twice that keeps what it is given: an address, or a function that makes a store."""
    if request.param == "path":
        return lambda: tmp_path / "agent.db"
    if request.param == "sqlite":
        return lambda: f"sqlite:///{tmp_path}/agent.db"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_url")
        return lambda: url
    if request.param == "redis":
        url = f"{request.getfixturevalue('redis_url')}?namespace=facade"
        return lambda: url
    return lambda: SqliteRecordStore(tmp_path / "agent.db")


def test_the_facade_keeps_everything_in_any_record_store(lasting):
    with EnhancedAgentMemory(store=lasting(), agent="support") as memory:
        memory.add("Staging listens on port 8443", importance=3)
        memory.add_message("user", "Which port does staging use?")
        memory.add_tool_call("nmap", {"host": "staging"}, [8443])
    with EnhancedAgentMemory(store=lasting(), agent="support") as memory:
        assert memory.get_recent_messages() == "user: Which port does staging use?"
        assert memory.recall("staging port")[0][:2] == ("exp_0", "Staging listens on port 8443")
        assert memory.search("nmap", kinds=["tool_call"])[0][0] == "tool_0"
        assert memory.add("Another experience") == "exp_1"
        assert "8443" in memory.summary()
        assert memory.forget("exp_0") is True
        assert memory.forget("exp_0") is False
        assert memory.vector.search("staging port")[0][0] == "exp_1"


def test_brain_takes_a_redis_address(redis_url):
    with Brain(f"{redis_url}?namespace=one", encryption=False) as brain:
        brain.remember("zebra crossing", agent="a", tags={"kind": "road"})
        assert isinstance(brain.store, RedisRecordStore)
    with Brain(f"{redis_url}?namespace=one") as brain:
        assert brain.recall("zebra", where={"tags": {"kind": "road"}})[0].text == "zebra crossing"
    with Brain(f"{redis_url}?namespace=two") as brain:
        assert brain.count() == 0


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("redis://host:99999/0", "malformed"),
        ("redis://host/zero", "its path a number"),
        ("redis://host/0?tenant=a", "not tenant"),
        ("redis:///0", "must be redis://host"),
    ],
)
def test_a_redis_address_that_is_wrong_is_explained(address, told):
    with pytest.raises(ConfigError, match=told):
        Brain(address)


def test_redis_is_refused_a_master_key(redis_url):
    with pytest.raises(ConfigError, match="do not encrypt"):
        Brain(redis_url, encryption=Encryption(master=os.urandom(32)))


# Four methods


def test_a_brain_on_four_methods_does_what_these_can():
    store = GuideStore()
    with Brain(store) as brain:
        kept = brain.remember("Staging listens on port 8443", agent="swe-01")
        assert brain.get(kept.memory_id).text == "Staging listens on port 8443"
        assert brain.recall("port 8443", k=3)[0].memory.memory_id == kept.memory_id
        assert brain.update(kept.memory_id, text="Staging listens on port 9443").text.endswith("9443")
        assert store.values == {kept.memory_id: "Staging listens on port 9443"}
        assert brain.forget(kept.memory_id) is True
        assert brain.forget(kept.memory_id) is False
        assert brain.embedder == "none"


def test_a_store_that_tells_its_meta_gives_memories_back_whole(tmp_path):
    """SqliteStore and the others of ours do."""
    with Brain(SqliteStore(tmp_path / "v.db")) as brain:
        brain.remember("zebra crossing", id="z", agent="a", tags={"kind": "road"}, when="2026-05-01", metadata={"n": 1})
    with Brain(SqliteStore(tmp_path / "v.db")) as brain:
        found = brain.recall("zebra")[0].memory
        assert (found.memory_id, found.agent_id, found.tags, found.metadata) == ("z", "a", {"kind": "road"}, {"n": 1})


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (lambda brain: brain.count(), "counting memories"),
        (lambda brain: brain.memories(), "listing memories"),
        (lambda brain: brain.stats(), "statistics"),
        (lambda brain: brain.recall("x", agent="a"), "a recall with where"),
        (lambda brain: brain.recall("x", since="2026-01-01"), "a recall with where, since and until"),
        (lambda brain: brain.recall("x", mode="vector"), "mode='vector'"),
        (lambda brain: brain.recall("x", explain=True), "explain"),
        (lambda brain: brain.forget(where={"agent": "a"}), "reading rows|listing memories|counting"),
        (lambda brain: brain.forget(subject="Ann"), "reading rows|listing memories"),
        (lambda brain: brain.feedback(brain.recall("zebra")[0]), "feedback"),
    ],
)
def test_a_brain_on_four_methods_says_what_they_cannot_do(ask, told):
    with Brain(GuideStore()) as brain:
        brain.remember("zebra crossing")
        with pytest.raises(ConfigError, match=f"GuideStore cannot do this: .*({told}).* needs a RecordStore"):
            ask(brain)


def test_a_store_is_called_by_its_own_name():
    with Brain(GuideStore()) as brain, pytest.raises(ConfigError, match="GuideStore keeps no facts"):
        brain.graph.facts("zebra")


def test_vectors_cannot_go_into_four_methods():
    with pytest.raises(ConfigError, match="four methods keep no vectors"):
        Brain(GuideStore(), embedder="static")


def test_what_is_no_store_is_refused():
    with pytest.raises(InputError, match=r"address must be .* or a store"):
        Brain(object())
    with pytest.raises(InputError, match=r"address must be .* \(the object, not its class: InMemoryStore\(…\)\)"):
        Brain(InMemoryStore)


def test_what_a_store_lacks_is_named():
    class Half:
        def add(self, key, value, meta=None): ...

        def get(self, key): ...

    for opened in (Brain, lambda store: EnhancedAgentMemory(store=store)):
        with pytest.raises(InputError, match=r"\(Half has no search, forget\)"):
            opened(Half())
    memory = EnhancedAgentMemory()
    with pytest.raises(InputError, match=r"long_term must be .* \(Half has no search, forget\)"):
        memory.long_term = Half()
    with pytest.raises(InputError, match=r"long_term must be .* \(the object, not its class"):
        memory.long_term = GuideStore


def test_the_facade_on_four_methods_keeps_experiences_and_messages():
    store = GuideStore()
    with EnhancedAgentMemory(store=store) as memory:
        assert memory.long_term is store
        assert memory.vector is None
        assert memory.add("Staging listens on port 8443", importance=3) == "exp_0"
        assert memory.add_message("user", "hello there") == "msg_0"
        assert memory.recall("8443") == [("exp_0", "Staging listens on port 8443", 1.0)]
        assert memory.get_recent_messages() == "user: hello there"
    assert store.said["exp_0"] == {"importance": 3}
    with EnhancedAgentMemory(store=store) as memory:  # another process: what four methods can find is there
        assert memory.recall("8443")[0][0] == "exp_0"
        assert memory.search("hello")[0][:2] == ("msg_0", "user: hello there")
        assert memory.get_memory("exp_0") == {"key": "exp_0", "text": "Staging listens on port 8443"}
        assert memory.get_recent_messages() == ""  # which messages there were, four methods cannot tell
        assert [memory.add(f"number {n}") for n in range(3)] == ["exp_1", "exp_2", "exp_3"]
        assert memory.forget("exp_0") is True
        assert memory.recall("8443") == []
    assert sorted(store.values) == ["exp_1", "exp_2", "exp_3", "msg_0"]


def test_keys_are_never_given_to_what_a_store_holds_already():
    store = GuideStore()
    for number in (0, 1, 2, 3, 5, 6, 11):
        store.add(f"exp_{number}", "before")
    memory = EnhancedAgentMemory(store=store)
    given = [memory.add("after") for _ in range(9)]
    assert len(set(given)) == 9
    assert [store.values[f"exp_{number}"] for number in (0, 1, 2, 3, 5, 6, 11)] == ["before"] * 7


# The guide's strategy pattern


def test_long_term_and_vector_are_replaced_by_assignment(tmp_path):
    memory = EnhancedAgentMemory()
    memory.long_term = SqliteStore(tmp_path / "notes.db")
    memory.vector = VectorMemoryStore()
    key = memory.add_experience("The automobile would not start", importance=2)
    assert memory.long_term.get(key) == "The automobile would not start"
    assert memory.long_term.meta_of(key) == {"importance": 2}
    assert memory.recall("my vehicle is broken") == memory.vector.search("my vehicle is broken")
    memory.forget(key)
    assert memory.long_term.get(key) is None
    assert memory.vector.get(key) is None
    memory.long_term.close()
    with SqliteStore(tmp_path / "notes.db") as again:
        assert again.get(key) is None


def test_without_a_vector_store_the_long_term_store_answers():
    memory = EnhancedAgentMemory()
    memory.long_term = GuideStore()
    memory.add("Staging listens on port 8443")
    assert memory.vector is None
    assert memory.recall("port 8443") == [("exp_0", "Staging listens on port 8443", 1.0)]
    assert memory.context_for("port 8443", 200).count("8443") == 1


def test_a_vector_store_of_ones_own_beside_the_facades_long_term(tmp_path):
    with EnhancedAgentMemory(persistent=True, path=tmp_path / "agent.db") as memory:
        memory.vector = VectorMemoryStore()
        memory.add("The automobile would not start")
        assert memory.recall("vehicle")[0][0] == "exp_0"
        assert memory.long_term.get("exp_0") == "The automobile would not start"
        memory.vector = None
        assert memory.recall("automobile")[0][0] == "exp_0"
        assert memory.mode == "lexical"


@pytest.mark.parametrize("store", [InMemoryStore, GuideStore])
def test_working_memory_is_replaced_by_assignment(store):
    memory = EnhancedAgentMemory()
    memory.working = store()
    memory.add_message("user", "one")
    memory.add_tool_call("clock", {}, "12:00")
    memory.add_message("assistant", "two")
    assert memory.get_recent_messages() == "user: one\nassistant: two"
    assert memory.working.get("msg_1") == "assistant: two"
    assert memory.get_messages() == [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]
    assert "two" in memory.summary()
    memory.forget("msg_0")
    assert memory.get_recent_messages() == "assistant: two"
    memory.clear()
    assert memory.get_recent_messages() == ""
    assert memory.working.get("msg_1") is None


def test_privacy_holds_in_a_store_of_ones_own():
    store = GuideStore()
    memory = EnhancedAgentMemory(store=store, privacy="default")
    memory.vector = GuideStore()
    memory.add("Write to ann.smith@example.com", meta={"from": "bob.jones@example.com"})
    memory.add_message("user", "I am carol.white@example.com")
    assert "@example.com" not in str([store.values, store.said, memory.vector.values])


def test_what_is_no_store_cannot_be_assigned():
    memory = EnhancedAgentMemory()
    for name in ("long_term", "working", "vector"):
        with pytest.raises(InputError, match=f"{name} must be a store with the methods add, get, search, forget"):
            setattr(memory, name, {})
    with pytest.raises(InputError, match="store must not be given with persistent or path"):
        EnhancedAgentMemory(True, store=":memory:")


def test_a_record_store_can_be_handed_over():
    store = InMemoryRecordStore()
    memory = EnhancedAgentMemory(store=store)
    memory.add("zebra crossing")
    assert store.count() == 1
