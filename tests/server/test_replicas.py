"""A server whose recalls go to a streaming replica."""

from __future__ import annotations

import time

import psycopg
import pytest
from click.testing import CliRunner
from running_server import eventually

from rmem.cli.app import rmem
from rmem.errors import ConfigError
from rmem.server import recall_workers
from rmem.server.settings import ServerSettings
from rmem.testing.postgres import PostgresServer

W = "/workspaces/default"


@pytest.fixture(scope="module")
def pair():
    with PostgresServer() as primary, primary.replica() as replica:
        yield primary, replica


@pytest.fixture
def served(pair, server_with):
    """A server with a replica, whose recalls are all answered by recall workers."""
    primary, replica = pair
    url = primary.new_database()
    copied = replica.url(url.partition("@/")[2].partition("?")[0])
    return server_with(store=url, replicas=[copied], replica_staleness=60.0, recall_workers=1)


def left_out(server):
    return server.client().get("/ready").json()["replicas_left_out"]


def test_recall_workers_find_what_the_server_and_its_workers_wrote_while_the_replica_stands_still(
    served, pair, monkeypatch
):
    monkeypatch.setattr(recall_workers, "_CROWD", 0)
    client = served.client(served.first_token)
    client.post(f"{W}/memories", json={"text": "the first apple"}).raise_for_status()

    def recalled():
        return len(client.post(f"{W}/recall", json={"query": "apple", "k": 10}).json()["hits"])

    eventually(lambda: recalled() == 1 and served.app.state.recall_workers.pids and left_out(served) == 0)
    with psycopg.connect(pair[1].url(), autocommit=True) as link:
        link.execute("SELECT pg_wal_replay_pause()")
        try:
            client.post(f"{W}/memories", json={"text": "the second apple"}).raise_for_status()
            assert recalled() == 2
            chunks = iter([b'{"text": ', b'"the third apple"}'])  # of unknown length: a worker answers it
            answer = client.post(f"{W}/memories", content=chunks, headers={"Content-Type": "application/json"})
            answer.raise_for_status()
            assert recalled() == 3
        finally:
            link.execute("SELECT pg_wal_replay_resume()")


def test_a_replica_that_is_killed_is_said_by_ready_and_metrics_and_recalls_go_on(served, pair):
    _, replica = pair
    client = served.client(served.first_token)
    client.post(f"{W}/memories", json={"text": "the only pear"}).raise_for_status()
    client.post(f"{W}/recall", json={"query": "pear"}).raise_for_status()
    eventually(lambda: left_out(served) == 0)
    replica.kill()
    try:
        eventually(lambda: left_out(served) == 1)
        begun = time.monotonic()
        for _ in range(3):
            assert len(client.post(f"{W}/recall", json={"query": "pear"}).json()["hits"]) == 1
        assert time.monotonic() - begun < 10
        token = (served.settings.data / "metrics.token").read_text().strip()
        assert "rmem_replicas_left_out 1.0" in served.client(token).get("/metrics").text
    finally:
        replica.start()
    eventually(lambda: left_out(served) == 0)


def test_replicas_need_the_address_of_their_primary(tmp_path):
    with pytest.raises(ConfigError, match="--store postgresql://"):
        ServerSettings(data=tmp_path, replicas=("postgresql://host/db",))
    with pytest.raises(ConfigError, match="replicas must be a list of addresses"):
        ServerSettings.read({"data": tmp_path, "store": "postgresql://host/db", "replicas": ("replica.example",)})
    refused = CliRunner().invoke(rmem, ["serve", "--data", str(tmp_path), "--replica", "postgresql://host/db"])
    assert "--store postgresql://" in refused.output
