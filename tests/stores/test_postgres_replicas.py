"""Recalls on streaming replicas: never staler than allowed, never without what the caller wrote, never lost."""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from urllib.parse import quote

import psycopg
import pytest

from rmem import Brain
from rmem.errors import ConfigError
from rmem.stores.sql.postgres import PostgresRecordStore
from rmem.testing.postgres import PostgresServer

BOUND = 2.0


@pytest.fixture(scope="module")
def pair():
    """A primary and its replica."""
    with PostgresServer() as primary, primary.replica() as replica:
        yield primary, replica


@pytest.fixture
def urls(pair):
    primary, replica = pair
    url = primary.new_database()
    copied = replica.url(url.partition("@/")[2].partition("?")[0])
    yield url, copied
    primary.drop_database(url)


def with_replica(urls, staleness=BOUND):
    url, copied = urls
    return f"{url}&replica={quote(copied, safe='')}&staleness={staleness}"


@contextmanager
def paused(replica):
    """The replica takes in nothing."""
    with psycopg.connect(replica.url(), autocommit=True) as link:
        link.execute("SELECT pg_wal_replay_pause()")
        while link.execute("SELECT pg_get_wal_replay_pause_state()").fetchone() != ("paused",):
            time.sleep(0.01)
        try:
            yield
        finally:
            link.execute("SELECT pg_wal_replay_resume()")


def waited(condition, seconds=30.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def usable(brain):
    return brain.store.replica_states()[0].problem is None


@pytest.fixture
def served_by(monkeypatch):
    """The servers that answered, in order: what a transaction of a recall says of itself."""
    asked = []
    original = PostgresRecordStore._read_once

    def noted(self, link, work):
        def inside():
            found = self.read(lambda connection: connection.execute("SELECT pg_is_in_recovery()").fetchone())
            asked.append("replica" if found[0] else "primary")
            return work()

        return original(self, link, inside)

    monkeypatch.setattr(PostgresRecordStore, "_read_once", noted)
    return asked


@pytest.mark.parametrize("held_up_to", [20_000, 0])
def test_recalls_are_answered_by_the_replica_and_find_what_was_just_written(urls, served_by, held_up_to):
    store = PostgresRecordStore(with_replica(urls), held_up_to=held_up_to)
    with Brain(store, embedder="none") as brain, store:
        brain.remember("the harbour opens at six")
        waited(lambda: usable(brain))
        waited(lambda: brain.recall("harbour") and served_by[-1] == "replica")
        for number in range(20):
            brain.remember(f"note {number} about cranes", id=f"n{number}")
            assert f"n{number}" in [hit.memory.memory_id for hit in brain.recall("cranes", k=50)]
        waited(lambda: brain.recall("harbour") and served_by[-1] == "replica")


def test_a_writer_sees_its_write_while_the_replica_takes_in_nothing(pair, urls, served_by):
    _, replica = pair
    with (
        Brain(with_replica(urls, 60), embedder="none") as brain,
        Brain(with_replica(urls, 60), embedder="none") as other,
    ):
        brain.remember("first words")
        for one in (brain, other):
            waited(lambda one=one: one.recall("words") and served_by[-1] == "replica")
        with paused(replica):
            brain.remember("second words")
            assert len(brain.recall("words")) == 2
            assert served_by[-1] == "primary"
            assert len(other.recall("words")) == 1  # it wrote nothing, and a minute is allowed
            assert served_by[-1] == "replica"
            other.store.write_mark = brain.store.write_mark  # what a server tells its recall workers
            assert len(other.recall("words")) == 2
        waited(lambda: len(brain.recall("words")) == 2 and served_by[-1] == "replica")


def test_a_replica_that_lags_is_left_out_when_the_bound_is_reached_and_comes_back(pair, urls, served_by, caplog):
    _, replica = pair
    caplog.set_level(logging.INFO, logger="rmem")
    with Brain(with_replica(urls), embedder="none") as writer, Brain(with_replica(urls), embedder="none") as reader:
        writer.remember("first words")
        waited(lambda: reader.recall("words") and served_by[-1] == "replica")
        with paused(replica):
            writer.remember("second words")
            written = time.monotonic()
            found = 1
            while time.monotonic() < written + BOUND + 1:
                begun = time.monotonic()
                found = len(reader.recall("words"))
                assert found == 2 or begun - written <= BOUND
                time.sleep(0.05)
            assert found == 2
            assert served_by[-1] == "primary"
            (state,) = reader.store.replica_states()
            assert "behind" in state.problem
        assert any("recalls do not go to the replica" in one.message for one in caplog.records)
        waited(lambda: reader.recall("words") and served_by[-1] == "replica")
        assert any("again" in one.message for one in caplog.records)


def test_an_idle_primary_does_not_make_its_replica_late(urls, served_by):
    with Brain(with_replica(urls, 1), embedder="none") as brain:
        brain.remember("quiet words")
        waited(lambda: brain.recall("words") and served_by[-1] == "replica")
        time.sleep(2)
        assert brain.recall("words")
        assert served_by[-1] == "replica"


def test_a_replica_that_is_killed_costs_no_recall(urls, pair, served_by):
    _, replica = pair
    with Brain(with_replica(urls), embedder="none") as brain:
        brain.remember("lasting words")
        waited(lambda: brain.recall("words") and served_by[-1] == "replica")
        replica.kill()
        try:
            for _ in range(5):
                assert len(brain.recall("words")) == 1
            assert served_by[-1] == "primary"
            assert not usable(brain)
        finally:
            replica.start()
        waited(lambda: brain.recall("words") and served_by[-1] == "replica")


def test_a_server_that_is_no_replica_of_this_primary_is_never_asked(urls, postgres_url, served_by):
    with PostgresRecordStore(urls[0], replicas=[postgres_url]) as store, Brain(store, embedder="none") as brain:
        brain.remember("own words")
        waited(lambda: "no replica" in store.replica_states()[0].problem)
        assert brain.recall("words")
        assert set(served_by) == {"primary"}


def test_a_bound_that_is_no_number_is_refused(urls):
    with pytest.raises(ConfigError, match="staleness must be a number of seconds"):
        PostgresRecordStore(with_replica(urls, "soon"))
