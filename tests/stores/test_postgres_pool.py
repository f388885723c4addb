"""Memories and tables of one database share a pool, and neither notices the other."""

from __future__ import annotations

import psycopg
import pytest

from remanence.errors import StoreClosedError
from remanence.stores.sql import postgres_pool
from remanence.stores.sql.postgres import PostgresRecordStore
from remanence.tables.engines.postgres import PostgresEngine
from remanence.tables.engines.postgres_catalog import OWN
from remanence.tables.workspace import Workspace

SETTINGS = ("lock_timeout", "temp_file_limit", "idle_in_transaction_session_timeout", "jit")


def shown(execute):
    return [execute(f"SHOW {name}").fetchone()[0] for name in SETTINGS]


def backend(execute):
    return execute("SELECT pg_backend_pid()").fetchone()[0]


@pytest.fixture
def both(postgres_url):
    store = PostgresRecordStore(postgres_url)
    engine = PostgresEngine(postgres_url, tenant="default")
    yield store, engine
    engine.close()
    store.close()


def test_one_pool_serves_both_and_settings_stay_with_their_side(both, postgres_url):
    store, engine = both
    with psycopg.connect(postgres_url) as plain:
        server = shown(plain.execute)
    memories = [server[0], server[1], "10min", "off"]
    tables = ["15s", "4GB", server[2], "off"]
    assert store._link._pool is engine._link._pool
    assert store._link._pool.max_size == 12 + 16
    first = store.read(lambda connection: backend(connection.raw.execute))
    for _ in range(3):
        assert store.read(lambda connection: shown(connection.raw.execute)) == memories
        assert engine._link.read(OWN, lambda connection: shown(connection.execute)) == tables
        assert engine._link.look(lambda connection: shown(connection.execute)) == tables
    assert engine._link.look(lambda connection: backend(connection.execute)) == first


def test_the_pool_ends_with_its_last_user(postgres_url):
    store = PostgresRecordStore(postgres_url)
    engine = PostgresEngine(postgres_url, tenant="default")
    pool = engine._link._pool
    store.close()
    assert engine.tables() == {}
    with pytest.raises(StoreClosedError, match="store is closed"):
        store.count()
    engine.close()
    assert pool.closed
    assert pool not in [shared.pool for shared in postgres_pool._SHARED.values()]
    with pytest.raises(StoreClosedError, match="tables were closed"):
        engine.tables()


def test_tables_may_come_before_memories(postgres_url):
    with Workspace(postgres_url) as tables:
        tables.query("CREATE TABLE notes (text TEXT)")
        tables.query("INSERT INTO notes VALUES ('before')")
        store = PostgresRecordStore(postgres_url)
        assert store.count() == 0
        store.close()
        tables.query("INSERT INTO notes VALUES ('after')")
        assert tables.query("DELETE FROM notes").row_count == 2
        tables.query("CREATE TABLE more (text TEXT)")
