"""Workspaces on three database servers: moved while they are used, and one of the servers killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from functools import partial

import httpx
import psycopg
import pytest
from running_server import Running

from rmem.errors import StoreBusyError, StoreError
from rmem.server import moves
from rmem.server.moves import move_workspace
from rmem.stores.sql.postgres_move import TenantMove
from rmem.testing.postgres import PostgresServer

LAB = "/workspaces/lab"
QUERY = f"{LAB}/tables/query"


@pytest.fixture(scope="module")
def three():
    with PostgresServer() as one, PostgresServer() as two, PostgresServer() as other:
        yield one, two, other


@pytest.fixture
def urls(three):
    return [server.new_database() for server in three]


@pytest.fixture
def server(urls, server_with) -> Running:
    return server_with(store=urls[0], servers={"b": urls[1], "c": urls[2]}, recall_workers=0, workers=2)


@dataclass
class Home:
    """An organisation with a workspace "lab"."""

    server: Running
    name: str
    client: httpx.Client = field(init=False)

    def __post_init__(self):
        self.token = self.server.token_for(self.name, "lab", "ADMIN")
        self.client = self.server.client(self.token)
        self.org = self.server.service.control.organization(self.name)

    @property
    def place(self):
        return self.server.service.control.workspace(self.org.id, "lab").server

    @property
    def tenant(self):
        return f"{self.org.id}/{self.server.service.control.workspace(self.org.id, 'lab').id}"

    def remember(self, text, **more):
        return self.client.post(f"{LAB}/memories", json={"text": text, **more}).raise_for_status().json()["ids"][0]

    def recall(self, query, k=5):
        found = retried(lambda: self.client.post(f"{LAB}/recall", json={"query": query, "k": k}))
        return [hit["memory"]["text"] for hit in found.json()["hits"]]

    def sql(self, text, *values):
        return retried(lambda: self.client.post(QUERY, json={"query": text, "params": list(values)})).json()["rows"]

    def move(self, to):
        return move_workspace(self.server.settings, self.server.service.control, self.org, "lab", to)


def retried(ask, seconds=20.0):
    """An answer other than 503, which says that one may try again."""
    until = time.monotonic() + seconds
    while (answer := ask()).status_code == 503:
        assert answer.headers["Retry-After"]
        assert time.monotonic() < until
        time.sleep(0.05)
    return answer.raise_for_status()


def rows_of(url, tenant):
    """How many memories of a tenant a database holds."""
    with psycopg.connect(url) as link:
        if link.execute("SELECT to_regclass('remanence.memories')").fetchone() == (None,):
            return 0
        sql = "SELECT count(*) FROM remanence.memories WHERE tenant = hashtextextended(%s, 0)"
        return link.execute(sql, [tenant]).fetchone()[0]


def elsewhere(home):
    return next(name for name in ("b", "c") if name != home.place)


@pytest.fixture
def acme(server):
    home = Home(server, "acme")
    home.remember("the crane is red", id="first")
    home.client.post(
        f"{LAB}/tables", json={"table_name": "t", "table_schema": {"id": "BIGSERIAL PRIMARY KEY", "x": "TEXT"}}
    )
    home.sql("INSERT INTO t (x) VALUES ($1)", "row one")
    return home


def test_new_workspaces_go_to_the_server_that_has_the_fewest(server):
    assert sorted(Home(server, name).place for name in ("one", "two", "three", "four", "five")) == [
        "b",
        "b",
        "c",
        "c",
        "main",
    ]


def test_a_workspace_moves_with_all_that_it_holds_and_back(server, acme, urls):
    places = {"main": urls[0], "b": urls[1], "c": urls[2]}
    acme.remember("the crane is old", id="second")
    acme.client.delete(f"{LAB}/memories/second").raise_for_status()
    headers = {"Idempotency-Key": "once"}
    first = acme.client.post(f"{LAB}/memories", json={"text": "said once"}, headers=headers).json()
    before, start = acme.client.get(f"{LAB}/stats").json(), acme.place
    for to in (elsewhere(acme), start, "main"):
        source = acme.place
        acme.move(to)
        assert acme.place == to
        assert acme.recall("crane")[0] == "the crane is red"
        assert acme.sql("SELECT x FROM t") == [["row one"]]
        assert acme.client.get(f"{LAB}/stats").json()["memories"] == before["memories"]
        assert rows_of(places[to], acme.tenant) == 2
        assert source == to or rows_of(places[source], acme.tenant) == 0
    again = acme.client.post(f"{LAB}/memories", json={"text": "said once"}, headers=headers)
    assert again.json()["ids"] == first["ids"]
    acme.sql("INSERT INTO t (x) VALUES ($1)", "row two")
    assert acme.sql("SELECT id, x FROM t ORDER BY id") == [[1, "row one"], [2, "row two"]]
    assert acme.move("main")["moved"] is False
    tenant = acme.tenant
    acme.client.delete(LAB).raise_for_status()
    assert [rows_of(url, tenant) for url in urls] == [0, 0, 0]


def test_nothing_acknowledged_is_lost_when_a_workspace_is_moved_under_load(server, acme, urls):
    globex = Home(server, "globex")
    globex.remember("the secret of globex")
    stop, kept, seen = threading.Event(), [], []

    def write(number):
        client = server.client(acme.token)
        for turn in range(10_000):
            if stop.is_set():
                return
            key = f"w{number}-{turn}"
            body = {"text": f"load {key} crane", "id": key}
            retried(partial(client.post, f"{LAB}/memories", json=body))
            kept.append(key)
            if turn % 5 == 0:
                rows, headers = {"query": "INSERT INTO t (x) VALUES ($1)", "params": [key]}, {"Idempotency-Key": key}
                retried(partial(client.post, QUERY, json=rows, headers=headers))
                seen.append(key)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    try:
        for to in (elsewhere(acme), "main"):
            done = acme.move(to)
            assert done["locked_seconds"] < 20
            count = len(kept)
            while len(kept) < count + 5:
                assert any(thread.is_alive() for thread in threads)
                time.sleep(0.02)
            assert globex.recall("secret crane", k=50) == ["the secret of globex"]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert len(kept) > 10
    for key in kept:
        assert acme.client.get(f"{LAB}/memories/{key}").status_code == 200, key
    assert {x for (x,) in acme.sql("SELECT x FROM t")} == {"row one", *seen}
    assert rows_of(urls[0], acme.tenant) == len(kept) + 1
    assert rows_of(urls[1], acme.tenant) == rows_of(urls[2], acme.tenant) == 0


@pytest.mark.parametrize("step", ["begin", "copy", "build_index", "leave", "arrive", "erase_source", "_finish"])
def test_a_move_that_was_interrupted_goes_on(server, acme, monkeypatch, step):
    to = elsewhere(acme)
    owner = moves if step == "_finish" else TenantMove
    original, calls = getattr(owner, step), []

    def cut(*given):
        calls.append(step)
        if step in ("copy", "erase_source"):  # in the middle: what it did is there, but nothing after it
            original(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(owner, step, cut)
        with pytest.raises(KeyboardInterrupt):
            acme.move(to)
    assert calls
    if step in ("begin", "copy", "build_index", "leave"):  # it is still at the old place, and can be written
        acme.remember("written between", id="between")
        with pytest.raises(StoreBusyError, match="finish that first"):
            acme.move(next(name for name in ("main", "b", "c") if name not in (to, acme.place)))
    acme.move(to)
    assert acme.place == to
    assert "the crane is red" in acme.recall("crane")
    assert acme.sql("SELECT x FROM t") == [["row one"]]
    expected = 2 if step in ("begin", "copy", "build_index", "leave") else 1
    assert acme.client.get(f"{LAB}/stats").json()["memories"] == expected


def test_the_command_can_be_killed_and_run_again(server, acme, urls):
    texts = [{"text": f"crane number {number}", "id": f"n{number}"} for number in range(300)]
    acme.client.post(f"{LAB}/memories", json=texts).raise_for_status()
    to = elsewhere(acme)
    servers = [f"--server={name}={url}" for name, url in zip("bc", urls[1:], strict=True)]
    command = [sys.executable, "-m", "rmem", "--store", urls[0], "serve", "move-workspace", "acme/lab", "--to", to]
    command += [*servers, "--data", str(server.settings.data)]
    for wait in (1.0, 2.0, 3.0):
        running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(wait)
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert acme.place == to
    assert acme.client.get(f"{LAB}/stats").json()["memories"] == 301
    assert len(acme.recall("crane", k=50)) == 50


def test_a_server_that_knows_only_the_old_place_cannot_read_or_write_there(
    server, acme, server_with, urls, monkeypatch
):
    monkeypatch.setenv("RMEM_SERVER_SECRET", (server.settings.data / "secret.key").read_text())
    second = server_with(store=urls[0], servers={"b": urls[1], "c": urls[2]}, recall_workers=0, workers=0)
    client = second.client(acme.token)
    client.get(f"{LAB}/memories/first").raise_for_status()
    known = second.service.tokens._workspace_roles
    held = dict(known)
    acme.move(elsewhere(acme))
    known.update(held)  # as if no time had passed
    for asked in (
        lambda: client.get(f"{LAB}/memories/first"),
        lambda: client.post(f"{LAB}/memories", json={"text": "too late"}),
        lambda: client.post(f"{LAB}/recall", json={"query": "crane"}),
        lambda: client.post(QUERY, json={"query": "INSERT INTO t (x) VALUES ('late')"}),
    ):
        known.update(held)
        assert asked().status_code == 503
    assert retried(lambda: client.get(f"{LAB}/memories/first")).json()["text"] == "the crane is red"
    assert len(acme.sql("SELECT x FROM t")) == 1


def test_a_killed_server_takes_its_own_workspaces_down_and_no_others(server, three):
    homes = {}
    for name in ("one", "two", "three", "four"):
        home = Home(server, name)
        home.remember(f"the secret of {name}")
        homes.setdefault(home.place, home)
    assert set(homes) >= {"b", "c"}
    three[1].kill()
    try:
        gone = homes["b"].client.post(f"{LAB}/memories", json={"text": "lost"})
        assert (gone.status_code, gone.headers["Retry-After"]) == (503, "1")
        assert homes["b"].client.post(f"{LAB}/recall", json={"query": "secret"}).status_code == 503
        begun = time.monotonic()
        for place, home in homes.items():
            if place != "b":
                home.remember("life goes on")
                assert home.recall("secret", k=50)[0] == f"the secret of {home.name}"
        assert time.monotonic() - begun < 10
        with pytest.raises(StoreError, match="does not answer"):
            homes["c"].move("b")
        assert len(homes["c"].recall("secret", k=50)) == 2
    finally:
        three[1].start()
    assert retried(lambda: homes["b"].client.post(f"{LAB}/recall", json={"query": "secret"})).json()["hits"]
