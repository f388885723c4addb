"""PostgreSQL under many writers, in the way of each other, killed in mid-write and gone for a while."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from rmem import Filter
from rmem.errors import StoreClosedError, StoreUnreachableError
from rmem.stores.sql.postgres import PostgresRecordStore
from rmem.testing.contract import example
from rmem.testing.postgres import PostgresServer

CHILD = Path(__file__).parent / "postgres_child.py"


def child(url: str, name: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, str(CHILD), url, name, str(count)], stdout=subprocess.PIPE, text=True)


def test_processes_and_threads_write_together_and_see_each_other(postgres_url):
    with PostgresRecordStore(postgres_url) as store:
        assert len(store) == 0
        others = [child(postgres_url, name, 40) for name in ("one", "two")]
        with ThreadPoolExecutor(8) as pool:
            own = list(pool.map(lambda n: store.put([example(f"own {n}", agent_id="shared")])[0], range(80)))
        told = [line for other in others for line in other.communicate(timeout=60)[0].split()]
        assert len(told) == 80
        assert set(told) | {memory.memory_id for memory in own} == set(store)
        steps = [memory.step_number for memory in store.select()]
        assert sorted(steps) == list(range(160))
        assert len(store.filtered_rows(Filter()).seq) == 160
        assert store.match("two 39", k=1)[0][0].memory_id == "two-39"


def test_a_write_of_another_is_found_at_once(postgres_url):
    with PostgresRecordStore(postgres_url) as one, PostgresRecordStore(postgres_url) as other:
        assert other.match("tulip") == []
        before = other.version()
        one.put([example("tulip", memory_id="m")])
        assert other.version() != before
        assert [memory.memory_id for memory, _ in other.match("tulip")] == ["m"]
        one.forget("m")
        assert other.match("tulip") == []


def test_writers_in_each_others_way_are_repeated(postgres_url):
    name = postgres_url.rpartition("@/")[2].partition("?")[0]
    with psycopg.connect(postgres_url, autocommit=True) as raw:
        raw.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'")
    stores = [PostgresRecordStore(postgres_url) for _ in range(4)]
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda store: [store.put([example("x", agent_id="a")]) for _ in range(10)], stores))
        assert sorted(memory.step_number for memory in stores[0].select()) == list(range(40))
    finally:
        for store in stores:
            store.close()


def test_a_bulk_is_written_whole_or_not_at_all(postgres_url):
    with PostgresRecordStore(postgres_url) as store:
        many = {f"m{number}": example(f"text {number}") for number in range(300)}
        assert store.add_many(many) == 300
        bad = {"good": example("fine"), "bad": example("a NUL \x00 character")}
        with pytest.raises(ValueError, match="NUL"):
            store.add_many(bad)
        assert len(store) == 300


def test_a_killed_server_loses_nothing_that_was_acknowledged():
    with PostgresServer() as server:
        url = server.new_database()
        with PostgresRecordStore(url, patience=1.0) as store:
            store.put([example("before", memory_id="before")])
            writers = [child(url, name, 100_000) for name in ("one", "two")]
            told = [writer.stdout.readline().strip() for writer in writers for _ in range(20)]
            server.kill()
            told += [line for writer in writers for line in writer.communicate(timeout=60)[0].split()]
            with pytest.raises(StoreUnreachableError):
                store.get("before")
            server.start()
            assert _again(lambda: store.get("before")).text == "before"  # the same store, not opened anew
            store.put([example("after", memory_id="after")])
            held = set(store)
            assert set(told) - held == set()
            assert {"before", "after"} <= held
            assert store.stats().memories == len(held)
            assert store.broken_audit() == []


def _again(call):
    """The server may still be replaying its log."""
    for _ in range(30):
        try:
            return call()
        except StoreUnreachableError:
            time.sleep(0.3)
    return call()


def test_connections_that_the_server_ends_are_replaced(postgres_url):
    with PostgresRecordStore(postgres_url) as store:
        store.put([example("kept", memory_id="m")])
        with psycopg.connect(postgres_url, autocommit=True) as raw:
            raw.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        assert store.get("m") is not None
        store.put([example("more")])
        assert len(store) == 2


def test_access_counts_wait_and_are_written_by_the_next_write(postgres_url):
    with PostgresRecordStore(postgres_url) as store, PostgresRecordStore(postgres_url) as other:
        store.put([example("read", memory_id="m")])
        store.touch(["m"], 2_000_000_000.0)
        assert store.get("m").bookkeeping.retrieval_count == 1
        assert other.get("m").bookkeeping.retrieval_count == 0
        store.put([example("another")])
        assert other.get("m").bookkeeping.retrieval_count == 1


def test_a_closed_store_says_so(postgres_url):
    store = PostgresRecordStore(postgres_url)
    store.close()
    store.close()
    with pytest.raises(StoreClosedError):
        store.get("m")
    with pytest.raises(StoreClosedError):
        store.put([example("x")])
