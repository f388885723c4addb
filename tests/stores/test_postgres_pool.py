"""Memories and tables of one database share a pool, and neither notices the other."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from rmem import Filter
from rmem.errors import InputError, StoreClosedError
from rmem.stores.sql import postgres_pool
from rmem.stores.sql.postgres import PostgresRecordStore
from rmem.tables.engines.postgres import PostgresEngine
from rmem.tables.engines.postgres_catalog import OWN
from rmem.tables.workspace import Workspace
from rmem.testing.contract import example

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
        assert engine._link.read_directly(lambda connection: shown(connection.execute)) == tables
    assert engine._link.read_directly(lambda connection: backend(connection.execute)) == first


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


def test_what_is_read_together_is_of_one_moment_and_no_older_than_the_call(postgres_url):
    store, other = PostgresRecordStore(postgres_url), PostgresRecordStore(postgres_url)
    other.put([example("before")])

    def look() -> tuple[int, int, int]:
        first = store.count()
        other.put([example("meanwhile")])
        return first, store.count(), store.filtered_rows(Filter()).size

    assert store.read_transaction(look) == (1, 1, 1)
    assert store.read_transaction(lambda: (store.count(), store.filtered_rows(Filter()).size)) == (2, 2)
    other.close()
    store.close()


def test_hits_are_looked_up_by_their_keys_before_there_are_statistics(postgres_url):
    store = PostgresRecordStore(postgres_url)
    store.put([example("note", memory_id=f"m{number}") for number in range(2000)])
    asked = f"EXPLAIN (FORMAT JSON) {store.dialect.read} WHERE m.seq IN (?, ?, ?)"
    (plan,) = store.read(lambda connection: connection.execute(asked, (1, 100, 200)).fetchone())
    told = str(plan)
    assert "memories_pkey" in told
    assert "access_pkey" in told
    assert "Hash" not in told
    store.close()


def test_a_write_that_fails_takes_no_other_of_its_transaction_with_it(postgres_url):
    store = PostgresRecordStore(postgres_url)

    def write(number: int) -> str:
        if number % 4 == 0:
            try:
                store.write(lambda connection: connection.execute("SELECT 1 / 0"))
            except InputError as error:
                return type(error).__name__
        if number % 4 == 1:
            with pytest.raises(RuntimeError):
                store.write(lambda _: (_ for _ in ()).throw(RuntimeError("no")))
            return "RuntimeError"
        return store.put([example(f"note {number}")])[0].text

    with store._writer._turn, ThreadPoolExecutor(16) as pool:  # all of them wait, and so are one group
        found = [pool.submit(write, number) for number in range(16)]
        while len(store._writer._queue) < 16:
            time.sleep(0.01)
        store._writer._turn.release()
        told = [one.result() for one in found]
        store._writer._turn.acquire()
    kept = [f"note {number}" for number in range(16) if number % 4 > 1]
    assert [text for text in told if text.startswith("note")] == kept
    assert sorted(memory.text for memory in store.select()) == sorted(kept)
    assert sorted(memory.step_number for memory in store.select()) == list(range(8))
    store.close()
