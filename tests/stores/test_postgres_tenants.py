"""Tenants of one database see nothing of each other, whatever a statement forgets."""

from __future__ import annotations

import psycopg
import pytest

from rmem import Brain
from rmem.errors import ConfigError, InputError, StoreUnreachableError
from rmem.stores import open_store
from rmem.stores.sql.postgres import PostgresRecordStore
from rmem.stores.sql.postgres_link import PostgresConnection
from rmem.stores.sql.postgres_schema import ROLE, SCHEMA
from rmem.testing.contract import clustered_vectors, example


@pytest.fixture
def two(postgres_url):
    with PostgresRecordStore(postgres_url, tenant="ann") as ann, PostgresRecordStore(postgres_url, tenant="bob") as bob:
        ann.put([example("the secret of Ann", memory_id="m", vector=clustered_vectors(1, 16)[0])])
        bob.put([example("a note of Bob", memory_id="m", vector=clustered_vectors(1, 32)[0])])
        yield ann, bob


def test_the_same_id_is_two_memories(two):
    ann, bob = two
    assert ann.get("m").text == "the secret of Ann"
    assert bob.get("m").text == "a note of Bob"
    assert bob.match("secret") == []
    assert (ann.get_meta("dimension"), bob.get_meta("dimension")) == ("16", "32")
    assert bob.forget("m")
    assert ann.get("m") is not None
    assert [entry.memory for entry in bob.audit()] == ["m"]
    assert ann.audit() == []
    assert ann.stats().memories == 1


@pytest.mark.parametrize("large", [False, True])
def test_no_reading_call_crosses_over(postgres_url, large):
    options = {"held_up_to": 0} if large else {}
    with (
        PostgresRecordStore(postgres_url, tenant="ann", **options) as ann,
        PostgresRecordStore(postgres_url, tenant="bob", **options) as bob,
    ):
        vectors = clustered_vectors(2, 16)
        ann.put([example("the secret of Ann", memory_id="a", actor="Carol", session="s", vector=vectors[0])])
        bob.put([example("a note of Bob", memory_id="b", actor="Carol", session="s", vector=vectors[1])])
        bob.set_aside(["nothing"], until=2e9, who="test", reason="test")
        for found in (
            [m.memory_id for m in bob.select()],
            [m.memory_id for m, _ in bob.match("secret note carol ann bob", k=10)],
            [m.memory_id for m, _ in bob.nearest(vectors[0], k=10)],
            [h.memory.memory_id for h in Brain(bob, embedder="none").recall("secret note of Carol", vector=vectors[0])],
            [trace.memory_id for trace in bob.traces()],
            list(bob),
        ):
            assert found == ["b"]
        assert bob.count() == 1


def test_a_statement_that_forgets_the_tenant_sees_its_own_rows_only(two, postgres_url):
    with psycopg.connect(postgres_url, autocommit=True) as raw:
        tables = [name for (name,) in raw.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [SCHEMA])]
        assert len(tables) > 10
        with raw.transaction():
            raw.execute(f"SET LOCAL ROLE {ROLE}")
            for name in tables:
                assert raw.execute(f"SELECT count(*) FROM {SCHEMA}.{name}").fetchone() == (0,), name
            raw.execute("SET LOCAL remanence.tenant = 'bob'")
            assert raw.execute(f"SELECT text FROM {SCHEMA}.memories").fetchall() == [("a note of Bob",)]
            assert raw.execute(f"UPDATE {SCHEMA}.memories SET text = 'changed'").rowcount == 1
            assert raw.execute(f"DELETE FROM {SCHEMA}.memories").rowcount == 1
        raw.execute(f"SET ROLE {ROLE}")
        raw.execute("SET remanence.tenant = 'bob'")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
            raw.execute(f"INSERT INTO {SCHEMA}.notes VALUES ('k', 'v', hashtextextended('ann', 0))")
    assert two[0].get("m").text == "the secret of Ann"


def test_every_key_and_index_begins_with_the_tenant(two, postgres_url):
    with psycopg.connect(postgres_url) as raw:
        found = raw.execute(
            "SELECT indexdef FROM pg_indexes WHERE schemaname = %s AND indexdef NOT LIKE '%%USING hnsw%%'", [SCHEMA]
        ).fetchall()
        policies = raw.execute(
            "SELECT count(*) FILTER (WHERE relrowsecurity AND relforcerowsecurity), count(*) FROM pg_class "
            "WHERE relkind = 'r' AND relnamespace = %s::regnamespace",
            [SCHEMA],
        ).fetchone()
    assert len(found) >= 15
    assert [definition for (definition,) in found if "btree (tenant" not in definition] == []
    assert policies[0] == policies[1]


def test_a_login_that_is_no_superuser_is_kept_apart_too(postgres, empty_postgres_url):
    name = f"plain_{empty_postgres_url.rpartition('@/')[2].partition('?')[0]}"
    with psycopg.connect(empty_postgres_url, autocommit=True) as raw:
        raw.execute("CREATE EXTENSION vector")
        raw.execute(f"CREATE ROLE {name} LOGIN")
        raw.execute(f"GRANT CREATE ON DATABASE {empty_postgres_url.rpartition('@/')[2].partition('?')[0]} TO {name}")
    plain = empty_postgres_url.replace("postgres@", f"{name}@")
    with PostgresRecordStore(plain, tenant="a") as one, PostgresRecordStore(plain, tenant="b") as other:
        one.put([example("mine", memory_id="m")])
        assert len(other) == 0
    with psycopg.connect(plain) as raw:
        assert raw.execute(f"SELECT count(*) FROM {SCHEMA}.memories").fetchone() == (0,)
    with psycopg.connect(empty_postgres_url, autocommit=True) as raw:
        raw.execute(f"DROP SCHEMA {SCHEMA} CASCADE")
        raw.execute(f"DROP OWNED BY {name}")
        raw.execute(f"DROP ROLE {name}")


def test_the_address_may_name_the_tenant(postgres_url):
    with open_store(f"{postgres_url}&tenant=acme%2Fone") as store:
        store.put([example("kept", memory_id="m")])
        assert store.tenant == "acme/one"
    with PostgresRecordStore(postgres_url, tenant="acme/one") as store:
        assert store.get("m") is not None
    with Brain(f"{postgres_url}&tenant=other") as brain:
        assert brain.get("m") is None
    with pytest.raises(ConfigError, match="two tenants"):
        PostgresRecordStore(f"{postgres_url}&tenant=a", tenant="b")
    with pytest.raises(InputError, match="tenant"):
        PostgresRecordStore(postgres_url, tenant="")


def test_a_wrong_address_is_told_at_once(postgres_url):
    with pytest.raises(StoreUnreachableError, match="does not answer"):
        PostgresRecordStore("postgresql://nobody@/nowhere?host=%2Fdoes%2Fnot%2Fexist")
    with pytest.raises(ConfigError, match="not an address"):
        PostgresRecordStore("postgresql://x?y=z")
    with pytest.raises(ConfigError, match="does not exist"):
        PostgresRecordStore(postgres_url.replace("@/t", "@/x"))


def test_every_scan_of_a_recall_is_bounded_by_the_tenant(postgres_url, monkeypatch):
    """What PostgreSQL does for each statement of a recall, as far as it may not read whole tables."""
    plans = {}
    with PostgresRecordStore(postgres_url, tenant="ann", held_up_to=0) as store, Brain(store, embedder="none") as brain:
        vectors = clustered_vectors(50, 16)
        store.put([example(f"note {at} of cranes", memory_id=f"m{at}", vector=vectors[at]) for at in range(50)])
        store.hnsw.build()
        execute = PostgresConnection.execute

        def noted(self, sql, parameters=(), /):
            if sql.startswith(("SELECT", "WITH")) and "set_config" not in sql:
                self.raw.execute("SET LOCAL enable_seqscan = off")
                told = execute(self, f"EXPLAIN (COSTS OFF) {sql}", parameters).fetchall()
                plans[sql] = [line for (line,) in told]
            return execute(self, sql, parameters)

        monkeypatch.setattr(PostgresConnection, "execute", noted)
        assert brain.recall("cranes", vector=vectors[0], agent="a", since="2020-01-01") is not None
        assert brain.recall("cranes", vector=vectors[0])
    assert len(plans) > 8
    conditions = 0
    for sql, plan in plans.items():
        assert not [line for line in plan if "Seq Scan" in line], sql
        for line, after in zip(plan, [*plan[1:], ""], strict=True):
            if "Index" in line and "Scan" in line and "memories_near_" not in line:  # that one holds one tenant only
                conditions += 1
                assert "tenant = " in after or "Bitmap" in line, (sql, line, after)
    assert conditions > 8
