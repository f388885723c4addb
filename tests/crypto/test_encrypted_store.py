"""A store that encrypts is a store like any other; what changes is who can read it."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys

import pytest

from rmem import Brain, Encryption
from rmem.admin import backup, reindex
from rmem.agents import AgentMemoryAPI
from rmem.crypto.encryption import new_master_key
from rmem.doctor import examine, repair
from rmem.errors import (
    ConfigError,
    KeyMissingError,
    KeyWrongError,
    MemoryRetrievalException,
    StoreCorruptError,
)
from rmem.stores.memory import InMemoryRecordStore
from rmem.stores.sql import cache
from rmem.stores.sql.sqlite import SqliteRecordStore
from rmem.testing import RecordStoreContract
from rmem.testing.contract import example
from rmem.transfer import export, import_


class TestEncryptingStore(RecordStoreContract):
    @pytest.fixture
    def store(self, tmp_path, key):
        with SqliteRecordStore(tmp_path / "m.db", encryption=Encryption(master=key, vectors=True)) as store:
            yield store


class TestEncryptingStoreThroughSegments(RecordStoreContract):
    @pytest.fixture
    def store(self, tmp_path, key, monkeypatch):
        monkeypatch.setattr(cache, "SEGMENT_FROM", 1)
        monkeypatch.setattr(cache, "SEGMENT_BULK", 1)
        with SqliteRecordStore(tmp_path / "m.db", encryption=Encryption(master=key, vectors=True)) as store:
            yield store


@pytest.fixture
def mixed(path, encryption):
    """Two plain memories and two encrypted ones."""
    with Brain(path, encryption=False) as brain:
        brain.remember("the lighthouse keeper likes copper", id="plain-1", tags={"kind": "a"})
        brain.remember("a bridge of stone", id="plain-2", tags={"kind": "b"})
    with Brain(path, encryption=encryption) as brain:
        brain.remember("the lighthouse password is swordfish", id="secret-1", tags={"kind": "a"}, metadata={"level": 7})
        brain.remember("the violet signal means danger", id="secret-2", session="s")
    return path


def ids(hits):
    return sorted(hit.memory.memory_id for hit in hits)


def lexical(brain, question, **more):
    return ids(brain.recall(question, k=10, mode="lexical", **more))


def findings(path):
    return {finding.name: finding for finding in examine(path)}


def test_encrypted_and_plain_memories_are_found_together(mixed, encryption):
    with Brain(mixed, encryption=encryption) as brain:
        assert lexical(brain, "lighthouse") == ["plain-1", "secret-1"]
        assert lexical(brain, "lighthouse", must=["lighthouse password"]) == ["secret-1"]
        assert lexical(brain, "lighthouse", must_not=["swordfish"]) == ["plain-1"]
        assert lexical(brain, "lighthouse", must_not=["likes copper"]) == ["secret-1"]
        assert lexical(brain, "lighthouse", where={"tags": {"kind": "a"}}) == ["plain-1", "secret-1"]
        assert lexical(brain, "lighthouse", where={"attributes": {"level": 7}}) == ["secret-1"]
        assert lexical(brain, "lighthouse", where={"attributes": {"level": 8}}) == []
        assert "secret-1" in ids(brain.recall("what is the password of the lighthouse?"))
        assert [m.memory_id for m in brain.memories({"tags": {"kind": "a"}})] == ["secret-1", "plain-1"]
        hit = brain.recall("swordfish", explain=True)[0]
        assert hit.explanation.words[0].word == "swordfish"
        assert brain.stats()["encrypted"] == 2


def test_without_the_key_other_memories_are_recalled_and_encrypted_ones_are_not_there(mixed, caplog):
    with Brain(mixed) as brain:
        assert lexical(brain, "lighthouse") == ["plain-1"]
        assert ids(brain.recall("the lighthouse password", k=10)) == ["plain-1", "plain-2"]
        assert [m.memory_id for m in brain.memories(order="oldest")] == ["plain-1", "plain-2"]
        assert lexical(brain, "lighthouse", must=["lighthouse keeper"], must_not=["swordfish"]) == ["plain-1"]
        assert brain.stats()["memories"] == 4
        for act in (
            lambda: brain.get("secret-1"),
            lambda: brain.update("secret-1", importance=0.9),
            lambda: brain.remember("readable", id="secret-1"),
            lambda: brain.store.move(["secret-1"], "ltm"),
            lambda: brain.remember("a new plain memory"),
            lambda: brain.remember_many([{"text": "a new plain memory"}]),
            lambda: brain.update("plain-1", text="the lighthouse keeper likes tin"),
            lambda: brain.recall("lighthouse", mode="vector"),
        ):
            with pytest.raises(KeyMissingError, match="RMEM_MASTER_KEY"):
                act()
        assert brain.stats()["memories"] == 4
        assert brain.forget("secret-2")
    assert "encrypted memories are left out" in caplog.text


def test_the_wrong_key_is_a_clear_error_and_overwrites_nothing(mixed, encryption):
    with sqlite3.connect(mixed) as plain:
        before = plain.execute("SELECT * FROM memories").fetchall(), plain.execute("SELECT * FROM keys").fetchall()
    with Brain(mixed, encryption=Encryption(master=new_master_key())) as brain:
        for act in (
            lambda: brain.recall("lighthouse"),
            lambda: brain.memories(),
            lambda: brain.get("secret-1"),
            lambda: brain.update("secret-1", importance=0.9),
            lambda: brain.remember("anything at all"),
            lambda: brain.remember("anything at all", id="secret-1"),
            lambda: brain.update("plain-1", text="the wrong hands"),
        ):
            with pytest.raises(KeyWrongError, match="master key does not open"):
                act()
    after = plain.execute("SELECT * FROM memories").fetchall(), plain.execute("SELECT * FROM keys").fetchall()
    plain.close()
    assert before == after
    with Brain(mixed, encryption=encryption) as brain:
        assert brain.get("secret-1").text == "the lighthouse password is swordfish"


def test_what_is_not_kept_of_encrypted_memories_is_not_searched_in_vain(path, encryption, key):
    with AgentMemoryAPI(brain=Brain(path, encryption=encryption)) as api:
        api.store_agent_state("ann", {"x": 1.0, "room": "hall"}, 1)
        space = api.get_memory_space("ann")
        for act in (
            lambda: api.retrieve_similar_states("ann", {"x": 1.0}),
            lambda: space.search_by_embedding([0.1] * 256),
        ):
            with pytest.raises(MemoryRetrievalException, match="cannot be compared by their"):
                act()
        assert len(api.retrieve_similar_states("ann", {"room": "hall"})) == 1
    with AgentMemoryAPI(brain=Brain(path.with_name("open.db"), encryption=Encryption(key, vectors=True))) as api:
        api.store_agent_state("ann", {"x": 1.0, "room": "hall"}, 1)
        space = api.get_memory_space("ann")
        assert len(space.search_by_embedding(space.embed("hall"))) == 1


def test_the_command_line_tells_of_a_wrong_key(mixed, monkeypatch):
    monkeypatch.setenv("RMEM_MASTER_KEY", new_master_key())
    command = [sys.executable, "-m", "rmem", "--store", str(mixed)]
    for words in (("recall", "lighthouse"), ("list",), ("remember", "anything")):
        done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=60)
        assert done.returncode != 0
        assert "the master key does not open" in done.stderr
        assert "keeper" not in done.stdout


@pytest.mark.parametrize("column", ["sealed", "sealed, words, terms, marks"])
def test_values_swapped_between_rows_are_noticed(mixed, encryption, column):
    with sqlite3.connect(mixed) as plain:
        for name in column.split(", "):
            one, two = (plain.execute(f"SELECT {name} FROM memories WHERE id = ?", (key,)).fetchone()[0]
                        for key in ("secret-1", "secret-2"))  # fmt: skip
            plain.execute(f"UPDATE memories SET {name} = ? WHERE id = 'secret-1'", (two,))
            plain.execute(f"UPDATE memories SET {name} = ? WHERE id = 'secret-2'", (one,))
    plain.close()
    with Brain(mixed, encryption=encryption) as brain:
        with pytest.raises(StoreCorruptError, match="was changed, or belongs to another memory"):
            brain.get("secret-1")
        assert lexical(brain, "lighthouse") == ["plain-1"]
        assert len(brain.memories()) == 2


def test_a_field_in_the_place_of_another_and_a_flipped_bit_are_noticed(mixed, encryption):
    with sqlite3.connect(mixed) as plain:
        (sealed,) = plain.execute("SELECT sealed FROM memories WHERE id = 'secret-1'").fetchone()
        (number, size) = sealed[0], int.from_bytes(sealed[1:5], "little")
        assert number == 0
        for changed in (
            b"\x02" + sealed[1:],  # the text as tags
            sealed[:40] + bytes([sealed[40] ^ 1]) + sealed[41:],
            sealed[: 5 + size - 3],
            sealed[:3],
            b"\x09" + sealed[1:],
            None,
        ):
            plain.execute("UPDATE memories SET sealed = ? WHERE id = 'secret-1'", (changed,))
            plain.commit()
            with Brain(mixed, encryption=encryption) as brain:
                with pytest.raises(StoreCorruptError):
                    brain.get("secret-1")
                assert lexical(brain, "lighthouse") == ["plain-1"]
    plain.close()
    found = findings(mixed)
    assert not found["rows"].ok


def test_a_plain_memory_that_is_changed_with_a_key_is_encrypted(mixed, encryption, on_disk):
    with Brain(mixed, encryption=encryption) as brain:
        brain.update("plain-1", importance=0.9)
        assert brain.stats()["encrypted"] == 3
        assert lexical(brain, "copper") == ["plain-1"]
    with Brain(mixed) as brain, pytest.raises(KeyMissingError):
        brain.get("plain-1")


def test_tiers_keep_encrypted_memories_as_they_were(path, encryption):
    with Brain(path, encryption=encryption) as brain:
        kept = brain.remember("the lighthouse is dark " * 20, id="m", tags={"a": "b"}, metadata={"deep": {"n": 1}})
        for tier in ("im", "ltm", "im", "stm"):
            assert brain.store.move(["m"], tier) == 1
            found = brain.get("m")
            assert (found.text, found.contents, found.tags, found.tier) == (kept.text, kept.contents, kept.tags, tier)
            assert lexical(brain, "lighthouse", where={"tier": tier}) == ["m"]
            assert lexical(brain, '"dark the lighthouse"') == ["m"]


def test_reindex_and_repair_leave_encrypted_memories_findable_and_without_vectors(mixed, encryption, key, monkeypatch):
    def embed(texts):
        return [[float(len(text)), *[1.0] * 15] for text in texts]

    monkeypatch.setenv("RMEM_MASTER_KEY", key)
    done = reindex(mixed, embed)
    assert (done["memories"], done["reanalysed"]) == (4, 0)
    with sqlite3.connect(mixed) as plain:
        held = dict(plain.execute("SELECT id, vector IS NOT NULL FROM memories"))
        plain.execute("UPDATE memories SET terms = x'', words = '' WHERE id IN ('plain-1', 'secret-1')")
    plain.close()
    assert held == {"plain-1": 1, "plain-2": 1, "secret-1": 0, "secret-2": 0}
    repair(mixed)
    with Brain(mixed, encryption=encryption, embedder=embed) as brain:
        assert lexical(brain, "lighthouse") == ["plain-1", "secret-1"]
    assert [one.detail for one in examine(mixed) if not one.ok] == []


def test_reindex_refuses_encrypted_memories_without_their_key(mixed, encryption, monkeypatch):
    for wrong in (None, new_master_key()):
        if wrong is not None:
            monkeypatch.setenv("RMEM_MASTER_KEY", wrong)
        with pytest.raises(KeyMissingError, match="2 encrypted memories cannot be embedded without their key"):
            reindex(mixed, lambda texts: [[1.0] * 16 for _ in texts])
    monkeypatch.delenv("RMEM_MASTER_KEY")
    with Brain(mixed, encryption=encryption) as brain:  # the embedder is what it was
        assert lexical(brain, "lighthouse") == ["plain-1", "secret-1"]


def test_without_the_key_repair_leaves_encrypted_memories_alone(mixed, encryption):
    repair(mixed)
    assert [one.detail for one in examine(mixed) if not one.ok] == []
    with Brain(mixed, encryption=encryption) as brain:
        assert lexical(brain, "lighthouse") == ["plain-1", "secret-1"]


def test_the_doctor_counts_encrypted_memories_and_tries_the_key(mixed, key, monkeypatch):
    found = findings(mixed)
    assert "2 encrypted memories" in found["keys"].detail
    assert "not checked" in found["keys"].detail
    assert all(one.ok for one in found.values())
    assert "but 2 encrypted ones" in found["rows"].detail
    monkeypatch.setenv("RMEM_MASTER_KEY", key)
    assert "opened by the master key" in findings(mixed)["keys"].detail
    assert "all readable" in findings(mixed)["rows"].detail
    monkeypatch.setenv("RMEM_MASTER_KEY", new_master_key())
    assert not findings(mixed)["keys"].ok


def test_a_backup_is_as_encrypted_as_the_store(mixed, encryption, tmp_path):
    backup(mixed, tmp_path / "copy.db")
    assert b"swordfish" not in (tmp_path / "copy.db").read_bytes()
    with Brain(tmp_path / "copy.db", encryption=encryption) as brain:
        assert lexical(brain, "swordfish") == ["secret-1"]


def test_an_export_is_readable_and_an_import_encrypts(mixed, encryption, tmp_path):
    with Brain(mixed, encryption=encryption) as brain:
        done = export(brain, tmp_path / "out.jsonl")
    assert (done["memories"], done["left_out"]) == (4, 0)
    assert "swordfish" in (tmp_path / "out.jsonl").read_text()
    with Brain(mixed) as brain:
        done = export(brain, tmp_path / "less.jsonl")
    assert (done["memories"], done["left_out"]) == (2, 2)
    assert "swordfish" not in (tmp_path / "less.jsonl").read_text()
    with Brain(tmp_path / "new.db", encryption=encryption) as brain:
        import_(brain, tmp_path / "out.jsonl")
        assert brain.stats()["encrypted"] == 4
        assert lexical(brain, "lighthouse") == ["plain-1", "secret-1"]
    assert b"swordfish" not in (tmp_path / "new.db").read_bytes()


def test_pinned_and_unreadable_memories_are_never_pruned(path, encryption):
    with Brain(path, encryption=encryption) as brain:
        brain.remember("pinned", id="p", tags={"pinned": "yes"})
        brain.remember("not pinned", id="n")
        assert {trace.memory_id: trace.pinned for trace in brain.store.traces()} == {"p": True, "n": False}
    with Brain(path) as brain:
        assert {trace.memory_id: trace.pinned for trace in brain.store.traces()} == {"p": True, "n": True}


def test_a_subject_is_not_half_forgotten_for_want_of_the_key(mixed, encryption):
    with Brain(mixed) as brain:
        with pytest.raises(KeyMissingError, match="2 encrypted memories cannot be searched"):
            brain.forget(subject="lighthouse")
        assert brain.get("plain-1")
    with Brain(mixed, encryption=encryption) as brain:
        assert sorted(brain.forget(subject="lighthouse")) == ["plain-1", "secret-1"]
        assert brain.get("secret-1") is None


def test_what_was_set_aside_needs_the_key_to_come_back(path, encryption):
    with Brain(path, encryption=encryption) as brain:
        brain.remember("the lighthouse is dark", id="m")
        brain.store.set_aside(["m"], until=9e9, who="t", reason="t")
    with Brain(path) as brain:
        assert brain.store.aside() == []
        with pytest.raises(KeyMissingError):
            brain.store.put_back(["m"], who="t")
    with Brain(path, encryption=encryption) as brain:
        assert brain.store.put_back(["m"], who="t")[0].text == "the lighthouse is dark"


def test_two_processes_make_one_set_of_keys_and_find_each_others_memories(path, key):
    code = (
        "import sys; from rmem import Brain\n"
        "with Brain(sys.argv[1]) as brain:\n"
        "    for n in range(20): brain.remember(f'word{sys.argv[2]} number {n}')\n"
        "    print(len(brain.recall('number', k=100, mode='lexical')))\n"
    )
    environment = {"RMEM_MASTER_KEY": key, "PATH": "", "RMEM_HOME": str(path.parent)}
    children = [
        subprocess.Popen([sys.executable, "-c", code, str(path), name], env=environment, stdout=subprocess.PIPE)
        for name in "ab"
    ]
    assert all(int(child.communicate(timeout=60)[0]) >= 20 for child in children)
    with SqliteRecordStore(path, encryption=Encryption(master=key)) as store:
        assert len(store.match("number", k=100)) == 40
        assert len(store.match("worda", k=100)) == 20
        assert store.vault.versions == (1,)


def test_one_process_finds_at_once_what_another_encrypts(path, key):
    with SqliteRecordStore(path, encryption=Encryption(master=key)) as one:
        assert one.match("lighthouse") == []
        with SqliteRecordStore(path, encryption=Encryption(master=key)) as two:
            two.put([example("the lighthouse is dark")])
            assert len(one.match("lighthouse")) == 1
            one.put([example("another lighthouse")])
            assert len(two.match("lighthouse")) == 2
        with SqliteRecordStore(path) as keyless:
            assert keyless.match("lighthouse") == []
            one.put([example("a third lighthouse")])
            assert keyless.match("lighthouse") == []
            with pytest.raises(KeyMissingError):
                keyless.put([example("a plain lighthouse")])
            assert len(one.match("lighthouse")) == 3


def test_stores_that_cannot_encrypt_refuse_to_be_asked(encryption, key, monkeypatch):
    with pytest.raises(ConfigError, match="given to the store"):
        Brain(InMemoryRecordStore(), encryption=encryption)
    with Brain(":memory:", encryption=encryption) as brain:  # nothing comes to a disk
        brain.remember("the lighthouse is dark")


def test_a_tampered_key_is_a_wrong_key(mixed, encryption):
    with sqlite3.connect(mixed) as plain:
        plain.execute("UPDATE keys SET wrapped = zeroblob(60) WHERE kind = 'tags'")
    plain.close()
    with Brain(mixed, encryption=encryption) as brain:
        for act in (lambda: brain.recall("lighthouse"), lambda: brain.get("secret-1")):
            with pytest.raises(KeyWrongError):
                act()


def test_keys_that_are_gone_are_not_replaced_by_others(mixed, encryption):
    with sqlite3.connect(mixed) as plain:
        plain.execute("DELETE FROM keys")
    plain.close()
    with Brain(mixed, encryption=encryption) as brain:
        assert lexical(brain, "lighthouse") == ["plain-1"]
        with pytest.raises(StoreCorruptError, match="restore a backup"):
            brain.remember("under other keys")
    assert not findings(mixed)["keys"].ok


def test_odd_ids_and_texts_come_back_as_they_were(path, encryption):
    odd = ["naïve ünïcode 北京 🦜", "a\x01b", "x" * 100_000, '"quoted" {json} [list]', "\t tab\nline"]
    with Brain(path, encryption=encryption) as brain:
        for number, text in enumerate(odd):
            brain.remember(text, id=f"idé-{number} 🦜 \u00a0x", metadata={"t": text, "n": [number, None, True]})
        for number, text in enumerate(odd):
            found = brain.get(f"idé-{number} 🦜 \u00a0x")
            assert found.text == text
            assert json.dumps(found.contents["n"]) == f"[{number}, null, true]"


def test_facts_are_not_told_as_none_where_the_key_is_another(tmp_path):
    path = tmp_path / "memories.db"
    master = new_master_key()
    with Brain(SqliteRecordStore(path, encryption=Encryption(master=master)), embedder="none") as brain:
        brain.graph.add("Ann", "works_at", "Harbour Ltd")
    with Brain(SqliteRecordStore(path, encryption=Encryption(master=master)), embedder="none") as brain:
        assert [fact.object for fact in brain.graph.facts("Ann")] == ["Harbour Ltd"]  # before anything was recalled
    with Brain(SqliteRecordStore(path, encryption=Encryption(master=new_master_key())), embedder="none") as brain:
        for ask in (lambda: brain.graph.facts(limit=10), lambda: brain.graph.neighbours("Ann")):
            with pytest.raises(KeyWrongError):
                ask()


@pytest.mark.parametrize("other_key", [False, True])
def test_pruning_and_decay_do_not_pass_over_what_they_cannot_read(mixed, encryption, other_key):
    other = Encryption(master=new_master_key()) if other_key else None
    with Brain(mixed, encryption=other) as brain:
        for act in (
            lambda: brain.prune({"max_count": 1, "min_age_days": 0}),
            lambda: brain.prune({"max_count": 1, "min_age_days": 0}, dry_run=True),
            lambda: brain.decay_importance(0.5, unused_days=0),
        ):
            with pytest.raises(KeyMissingError, match=r"2 encrypted memories .* nothing was changed"):
                act()
    with Brain(mixed, encryption=encryption) as brain:
        assert lexical(brain, "lighthouse") == ["plain-1", "secret-1"]
