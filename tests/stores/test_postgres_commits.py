"""A COMMIT whose answer is lost: what was written is there once, and whoever wrote it is told the truth."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Timer

import pytest
from postgres_proxy import ANSWERED, ASKED, PLACES, PostgresProxy

from rmem import Brain
from rmem.errors import StoreUnreachableError
from rmem.stores.indexed import derive
from rmem.stores.sql import postgres_pool
from rmem.stores.sql.postgres import PostgresRecordStore
from rmem.tables.workspace import Workspace
from rmem.testing.contract import example


@pytest.fixture
def proxy(postgres_url):
    with PostgresProxy(postgres_url) as between:
        yield between


def texts(store) -> list[str]:
    return sorted(memory.text for memory in store.select())


@pytest.mark.parametrize("place", PLACES)
def test_a_memory_whose_commit_is_cut_off_is_kept_once(proxy, place):
    with Brain(proxy.url) as brain:
        brain.remember("first")
        for number in range(8):  # the statement is prepared on the way
            proxy.cut(place)
            brain.remember(f"note {number}")
        assert proxy.cuts == 8
        assert texts(brain.store) == ["first", *(f"note {number}" for number in range(8))]


@pytest.mark.parametrize("place", PLACES)
def test_so_is_one_when_the_server_cannot_be_reached_for_a_moment(proxy, place):
    with Brain(proxy.url) as brain:
        brain.remember("first")
        proxy.cut(place, away=True)
        healing = Timer(1.0, proxy.heal)
        healing.start()
        brain.remember("second")
        healing.join()
        assert (proxy.cuts, texts(brain.store)) == (1, ["first", "second"])


@pytest.mark.parametrize("place", PLACES)
def test_all_of_a_group_are_kept_once(proxy, place):
    with PostgresRecordStore(proxy.url) as store:
        store.put([example("first")])
        with ThreadPoolExecutor(16) as pool:
            with store._writer._turn:  # all of them wait, and so are one group
                found = [pool.submit(store.put, [example(f"note {number}")]) for number in range(16)]
                while len(store._writer._queue) < 16:
                    time.sleep(0.01)
                proxy.cut(place)
            kept = [one.result()[0].memory_id for one in found]
        assert proxy.cuts == 1
        assert texts(store) == sorted(["first", *(f"note {number}" for number in range(16))])
        assert set(store) >= set(kept)


def test_a_group_is_kept_once_though_all_connections_are_taken(proxy):
    """They are while the store asks what became of the transaction: it must not begin anew."""

    def held(seconds: float):
        return lambda: store.read(lambda connection: connection.execute(f"SELECT pg_sleep({seconds})").fetchone())

    with PostgresRecordStore(proxy.url, patience=3.0) as store, ThreadPoolExecutor(32) as pool:
        store.put([example("first")])
        everything = store._link._pool.max_size
        with store._writer._turn:
            found = [pool.submit(store.put, [example(f"note {number}")]) for number in range(4)]
            found.append(pool.submit(store.write, lambda connection: connection.execute("SELECT pg_sleep(1.5)")))
            while len(store._writer._queue) < 5:
                time.sleep(0.01)
            readers = [pool.submit(held(5)) for _ in range(everything - 1)]
            time.sleep(0.5)
        time.sleep(1.0)
        proxy.cut(ANSWERED)
        readers.append(pool.submit(held(3)))  # it gets the connection that is lost
        for one in (*found, *readers):
            one.result()
        assert proxy.cuts == 1
        assert texts(store) == sorted(["first", *(f"note {number}" for number in range(4))])


def test_what_waited_long_before_its_commit_was_lost_is_looked_after(proxy):
    """Patience is for the server, not for the work: it begins again when the answer is lost."""
    with PostgresRecordStore(proxy.url, patience=1.0) as store:
        store.put([example("first")])

        def slowly(connection) -> None:
            connection.execute("SELECT pg_sleep(1.5)")
            store.insert(connection, [example("slow")], [derived])

        derived = derive(example("slow"))
        proxy.cut(ANSWERED)
        store.write(slowly)
        assert texts(store) == ["first", "slow"]


@pytest.mark.parametrize("place", PLACES)
def test_a_row_of_a_table_is_kept_once(proxy, place):
    with Workspace(proxy.url) as tables:
        tables.query("CREATE TABLE notes (id BIGSERIAL PRIMARY KEY, body TEXT)")
        for number in range(3):
            proxy.cut(place)
            tables.query("INSERT INTO notes (body) VALUES ($1)", [f"note {number}"])
        proxy.cut(place)
        tables.insert("notes", {"body": ["bulk"]})
        assert proxy.cuts == 4
        found = tables.query("SELECT body FROM notes ORDER BY body").rows
        assert found == [("bulk",), ("note 0",), ("note 1",), ("note 2",)]


def test_a_write_that_did_not_arrive_is_told_when_the_server_stays_away(proxy):
    with PostgresRecordStore(proxy.url, patience=1.0) as store:
        store.put([example("first")])
        proxy.cut(ASKED, away=True)
        with pytest.raises(StoreUnreachableError, match="may or may not have arrived"):
            store.put([example("second")])
        proxy.heal()
        assert texts(store) == ["first"]


def test_an_interrupt_behind_the_commit_fails_the_job_of_its_own_thread_only(postgres_url, monkeypatch):
    run = postgres_pool._Attempt.run
    interrupted: list[object] = []

    def interrupt(self, raw, frame, kind, work):
        result = run(self, raw, frame, kind, work)
        if kind == postgres_pool.WRITE and not interrupted:
            interrupted.append(self)
            raise KeyboardInterrupt
        return result

    with PostgresRecordStore(postgres_url) as store, ThreadPoolExecutor(8) as pool:
        store.put([example("first")])
        with store._writer._turn:
            found = [pool.submit(store.put, [example(f"note {number}")]) for number in range(8)]
            while len(store._writer._queue) < 8:
                time.sleep(0.01)
            monkeypatch.setattr(postgres_pool._Attempt, "run", interrupt)
        told = [one.exception() for one in found]
        assert [type(one) for one in told if one is not None] == [KeyboardInterrupt]
        assert texts(store) == sorted(["first", *(f"note {number}" for number in range(8))])
