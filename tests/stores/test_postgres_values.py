"""Values by key in PostgreSQL, encrypted memories there, and the command line on such a store."""

from __future__ import annotations

import json
import sys
import uuid
from subprocess import run
from zlib import crc32

import numpy as np
import psycopg
import pytest

from rmem import Brain, upkeep
from rmem.crypto.encryption import Encryption, new_master_key
from rmem.embed import word_vectors
from rmem.errors import ConfigError, KeyMissingError
from rmem.keyed import PostgresStore
from rmem.stores.sql.postgres import PostgresRecordStore
from rmem.testing import MemoryStoreContract


@pytest.fixture(scope="module")
def database(postgres):
    url = postgres.new_database()
    yield url
    postgres.drop_database(url)


class TestPostgresValues(MemoryStoreContract):
    @pytest.fixture
    def store(self, database):
        with PostgresStore(database, tenant=uuid.uuid4().hex) as store:
            yield store


def test_namespaces_of_a_tenant_stay_apart(database):
    with PostgresStore(database, namespace="a") as one, PostgresStore(database, namespace="b") as other:
        one.add("k", {"n": 1}, meta={"source": "test"})
        assert other.get("k") is None
        assert one.meta_of("k") == {"source": "test"}
        assert "secret" not in repr(one)


@pytest.mark.parametrize("large", [False, True])
def test_encrypted_memories_are_found_and_unreadable_without_the_key(postgres_url, large):
    options = {"word_vectors": word_vectors, **({"held_up_to": 0} if large else {})}
    key = Encryption(master=new_master_key())
    with Brain(PostgresRecordStore(postgres_url, encryption=key, **options)) as brain:
        kept = brain.remember("the vault is behind the painting", tags={"room": "salon"})
        assert [hit.memory.memory_id for hit in brain.recall("painting", mode="lexical")] == [kept.memory_id]
        assert [m.memory_id for m in brain.memories({"tags": {"room": "salon"}})] == [kept.memory_id]
    with psycopg.connect(postgres_url) as raw:
        row = raw.execute("SELECT text, contents, tags, words, sealed FROM remanence.memories").fetchone()
    assert row[:2] == ("", None)
    assert b"painting" not in row[4]
    assert "painting" not in str(row[3])
    with Brain(PostgresRecordStore(postgres_url, encryption=False, **options)) as brain:
        assert brain.recall("painting", mode="lexical") == []
        assert brain.store.unreadable() == 1
        with pytest.raises(KeyMissingError):
            brain.get(kept.memory_id)


def rmem(*words, store):
    done = run([sys.executable, "-m", "rmem", "--store", store, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command_line_works_on_a_database(postgres_url):
    store = f"{postgres_url}&tenant=cli"
    rmem("remember", "Fixed the OOM by reading row groups", "--agent", "swe", store=store)
    rmem("remember", "The upload test is flaky", "--agent", "swe", store=store)
    found = json.loads(rmem("recall", "out of memory OOM", "--json", store=store))
    assert "row groups" in json.dumps(found)
    assert json.loads(rmem("stats", "--json", store=store))["memories"] == 2
    listed = json.loads(rmem("list", "--json", store=store))["memories"][0]
    assert "flaky" in json.dumps(listed)
    rmem("forget", listed["memory_id"], "--yes", store=store)
    assert json.loads(rmem("stats", "--json", store=store))["memories"] == 1
    assert json.loads(rmem("audit", "--json", store=store))[0]["memory"] == listed["memory_id"]
    assert "whole" in rmem("audit", "--verify", store=store)


@pytest.mark.parametrize("large", [False, True])
def test_a_store_can_be_given_another_embedder(postgres_url, large):
    def arbitrary(texts):
        return np.stack([np.random.default_rng(crc32(text.encode())).standard_normal(32) for text in texts])

    options = {"word_vectors": word_vectors, **({"held_up_to": 0} if large else {})}
    with Brain(PostgresRecordStore(postgres_url, **options)) as old:
        old.remember_many([{"text": f"memory number {number}"} for number in range(40)])
        assert old.store.stats().dimension == 256
        done = upkeep.reindex(postgres_url, embedder=arbitrary)
        assert (done["memories"], done["embedded"], done["dimension"]) == (40, 40, 32)
        assert old.store.stats().dimension == 32
        query = arbitrary(["memory number 7"])[0]
        ((found, cosine),) = old.store.nearest(query, k=1)
        assert (found.text, cosine) == ("memory number 7", pytest.approx(1.0, abs=1e-3))
    with Brain(PostgresRecordStore(postgres_url, **options), embedder=arbitrary) as new:
        new.remember("one more")
        assert new.recall("number 7", k=1, mode="lexical")[0].text == "memory number 7"


def test_what_is_for_files_says_so(postgres_url, tmp_path):
    with pytest.raises(ConfigError, match="pg_dump"):
        upkeep.backup(postgres_url, tmp_path / "copy.db")
