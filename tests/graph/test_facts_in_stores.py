"""Facts live and die with their memories: erased, encrypted, moved, restored, migrated, rebuilt."""

import os
import sqlite3

import pytest

from rmem import Brain
from rmem.admin import reindex
from rmem.crypto.encryption import Encryption
from rmem.facts.model import name_id, name_key
from rmem.postgres_migration import migrate


def names(brain):
    return [(fact.subject_name, fact.relation_name, fact.object_name) for fact in brain.store.facts_about()]


@pytest.mark.parametrize(
    ("one", "other"),
    [("The Staging-DB", "staging_db"), ("Ann's", "ann"), ("«Oslo»", "oslo"), ("ＲＥＤＩＳ", "redis"), ("a  b", "A B")],
)
def test_spellings_of_one_name_have_one_key(one, other):
    assert name_key(one) == name_key(other)
    assert name_id(one) == name_id(other)


def test_a_version_and_initials_keep_their_dots():
    assert name_key("Python 3.11.") == "python 3.11."
    assert name_key("J.R.") != name_key("JR")


def test_facts_are_removed_with_their_memory_and_come_back_with_it(brain, graph):
    fact = graph.add("ann", "lives in", "Oslo")
    if "trash" in brain.store.capabilities:
        brain.store.set_aside([fact.memory_id], until=4e9, who="test", reason="test")
        assert names(brain) == []
        brain.restore(fact.memory_id)
    assert names(brain) == [("ann", "lives in", "Oslo")]
    brain.update(fact.memory_id, metadata={"fact": {"subject": "ann", "relation": "lives in", "object": "Bergen"}})
    assert names(brain) == [("ann", "lives in", "Bergen")]
    brain.forget(fact.memory_id)
    assert names(brain) == []


def test_facts_stay_when_a_memory_moves_to_another_tier(brain, graph):
    fact = graph.add("ann", "lives in", "Oslo")
    brain.store.move([fact.memory_id], "ltm")
    assert names(brain) == [("ann", "lives in", "Oslo")]


def test_erasing_a_person_leaves_no_fact_in_any_file(tmp_path):
    with Brain(str(tmp_path / "a.db")) as brain:
        for person in ("Wilhelmina Quist", "Bob Stone"):
            for number in range(20):
                brain.graph.add(person, f"visited {number}", "Oslo")
        brain.forget(subject="Wilhelmina Quist")
        assert {fact[0] for fact in names(brain)} == {"Bob Stone"}
    held = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"Bob Stone" in held
    assert b"Wilhelmina" not in held
    assert b"Quist" not in held


@pytest.mark.parametrize("address", ["sqlite", "postgres"], indirect=True)
def test_an_encrypted_store_tells_no_names_and_answers_all_the_same(address):
    key = os.urandom(32)
    with Brain(address, encryption=Encryption(master=key)) as brain:
        brain.graph.declare("runs on", single=True)
        brain.graph.add("staging", "runs on", "port 5433", tags={"repository": "api"})
        brain.graph.add("staging", "runs on", "port 5434", tags={"repository": "api"})
        brain.graph.alias("the test system", "staging")
        (fact,) = brain.graph.facts("the test system")
        assert (fact.object, fact.repository) == ("port 5434", "api")
        assert [one.name for one in brain.graph.neighbours("port 5434")] == ["staging"]
        raw = brain.store.read(lambda connection: connection.execute("SELECT subject, names FROM facts").fetchall())
        assert all(b"staging" not in bytes(sealed) and b"port" not in bytes(sealed) for _, sealed in raw)
        assert name_id("staging") not in {subject for subject, _ in raw}
    with Brain(address, encryption=False) as brain:
        assert brain.graph.facts("staging") == []


def test_new_keys_encrypt_facts_anew(tmp_path):
    from rmem.stores.sql.keys import rotate

    with Brain(str(tmp_path / "a.db"), encryption=Encryption(master=os.urandom(32))) as brain:
        brain.graph.add("staging", "runs on", "port 5433")
        before = brain.store.read(lambda connection: connection.execute("SELECT names FROM facts").fetchall())
        rotate(brain.store)
        after = brain.store.read(lambda connection: connection.execute("SELECT names FROM facts").fetchall())
        assert before != after
        assert [fact.object for fact in brain.graph.facts("staging")] == ["port 5433"]


def test_migration_to_postgresql_takes_facts_along(tmp_path, postgres_url):
    with Brain(str(tmp_path / "a.db")) as brain:
        brain.graph.add("staging", "runs on", "port 5433")
        before = names(brain)
    assert migrate(tmp_path / "a.db", postgres_url)["facts"] == 1
    with Brain(postgres_url) as brain:
        assert names(brain) == before


def test_reindex_reads_facts_from_memories_that_were_kept_before(tmp_path):
    path = tmp_path / "a.db"
    with Brain(str(path)) as brain:
        brain.graph.add("staging", "runs on", "port 5433")
    with sqlite3.connect(path) as connection:  # as in a store that was made before there were facts
        connection.execute("DELETE FROM facts")
    with Brain(str(path)) as brain:
        assert names(brain) == []
    reindex(path)
    with Brain(str(path)) as brain:
        assert names(brain) == [("staging", "runs on", "port 5433")]


def test_postgresql_reads_facts_of_one_tenant_only(postgres_url):
    joined = "&" if "?" in postgres_url else "?"
    with Brain(f"{postgres_url}{joined}tenant=one") as one, Brain(f"{postgres_url}{joined}tenant=two") as two:
        one.graph.add("staging", "runs on", "port 5433")
        assert (len(one.graph), len(two.graph)) == (1, 0)
        assert two.graph.facts("staging") == []
