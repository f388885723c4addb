"""Processes that recall for a server: started when many ask at once, answering as the server does by itself, and free
to die without anybody noticing."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest
from crowds import together
from running_server import Running, eventually

from rmem import Brain
from rmem.server import recall_workers
from rmem.server.settings import Limits

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
W = "/workspaces/default"


def pids(server: Running) -> list[int]:
    return server.app.state.recall_workers.pids


def is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def crowded(server: Running, path: str = W, token: str = "") -> Running:
    """A server whose recall workers have started."""
    client = server.client(token or server.first_token)
    client.post(f"{path}/memories", json=[{"text": f"apples number {n}"} for n in range(50)]).raise_for_status()
    until = time.monotonic() + 60

    def crowd(_: int) -> None:
        client = server.client(token or server.first_token)
        while len(pids(server)) < server.settings.recall_workers:
            assert time.monotonic() < until, "no recall worker was started"
            client.post(f"{path}/recall", json={"query": "apples"}).raise_for_status()

    together(8, crowd)
    return server


@pytest.fixture
def busy(server_with, monkeypatch) -> Running:
    """A server with recall workers, which answer every recall from here on."""
    monkeypatch.setattr(recall_workers, "_CROWD", 1)
    return crowded(server_with(recall_workers=2))


def test_a_server_that_few_ask_starts_none(server):
    client = server.client(server.first_token)
    for _ in range(10):
        client.post(f"{W}/recall", json={"query": "apples"}).raise_for_status()
    assert pids(server) == []


def test_who_asks_little_is_answered_by_the_server_itself_beside_a_crowd(server_with):
    busy = crowded(server_with(recall_workers=1))
    quiet = busy.client_for("other", "lab", "WRITE")
    quiet.post("/workspaces/lab/memories", json={"text": "the disk was full"}).raise_for_status()
    (worker,) = pids(busy)
    os.kill(worker, signal.SIGSTOP)
    try:
        started = time.monotonic()
        assert quiet.post("/workspaces/lab/recall", json={"query": "disk"}).json()["hits"]
        assert time.monotonic() - started < busy.settings.limits.statement_seconds / 2
    finally:
        os.kill(worker, signal.SIGCONT)


def test_there_are_as_many_as_were_asked_for(busy):
    first = pids(busy)

    def act(_: int) -> None:
        client = busy.client(busy.first_token)
        for _ in range(20):
            client.post(f"{W}/recall", json={"query": "apples"}).raise_for_status()

    together(8, act)
    assert (pids(busy), len(set(first))) == (first, 2)


def test_their_recalls_count_as_accesses_and_can_be_judged(busy):
    client = busy.client(busy.first_token)
    (key,) = client.post(f"{W}/memories", json={"text": "pears", "agent": "gardener"}).json()["ids"]
    found = client.post(f"{W}/recall", json={"query": "pears", "k": 1}).json()
    assert [hit["memory"]["memory_id"] for hit in found["hits"]] == [key]
    count = lambda: client.get(f"{W}/memories/{key}").json()["metadata"]["retrieval_count"]  # noqa: E731
    assert count() == 1
    judged = client.post(f"{W}/feedback", json={"recall_id": found["recall_id"], "memory_id": key})
    assert (judged.status_code, judged.json()["rank"]) == (201, 1)
    client.post(f"{W}/recall", json={"query": "pears", "k": 1, "touch": False}).raise_for_status()
    assert count() == 1


def test_a_recall_about_somebody_who_was_forgotten_cannot_be_judged(busy):
    client = busy.client(busy.first_token)
    client.post(f"{W}/memories", json={"text": "Zoe Quill likes figs", "actor": "Zoe Quill"}).raise_for_status()
    recall_id = client.post(f"{W}/recall", json={"query": "what does Zoe Quill like"}).json()["recall_id"]
    client.post(f"{W}/forget", json={"subject": "Zoe Quill"}).raise_for_status()
    judged = client.post(f"{W}/feedback", json={"recall_id": recall_id, "useful": False})
    assert judged.status_code == 404, judged.text


def test_errors_and_roles_are_those_of_the_server(busy):
    client = busy.client(busy.first_token)
    answer = client.post(f"{W}/recall", json={"query": "x", "k": 0})
    assert (answer.status_code, answer.json()) == (400, {"error": "k must be a whole number ≥ 1, got 0"})
    assert answer.headers["content-type"] == "application/json"
    assert client.post(f"{W}/recall", content=b"{").json()["error"].startswith("the body must be JSON")
    assert client.get(f"{W}/recall").status_code == 405
    assert client.post("/workspaces/nowhere/recall", json={"query": "x"}).status_code == 404
    stranger = busy.client_for("other", "lab", "READ")
    assert stranger.post(f"{W}/recall", json={"query": "apples"}).status_code == 404
    assert stranger.post("/workspaces/lab/recall", json={"query": "apples"}).json()["hits"] == []
    metrics = busy.client(busy.service.metrics_token).get("/metrics").text
    assert 'route="/workspaces/{workspace}/recall",status="400"' in metrics


def test_personal_memories_of_others_are_left_out(busy):
    alice, bob = (busy.client(busy.token_for("default", "default", "WRITE", member=name)) for name in ("alice", "bob"))
    alice.post(f"{W}/memories", json={"text": "my zebra diary", "place": "personal:alice"}).raise_for_status()
    bob.post(f"{W}/memories", json={"text": "the zebra in the zoo"}).raise_for_status()
    texts = lambda client: {  # noqa: E731
        hit["memory"]["text"] for hit in client.post(f"{W}/recall", json={"query": "zebra", "k": 2}).json()["hits"]
    }
    assert texts(alice) == {"my zebra diary", "the zebra in the zoo"}
    assert "my zebra diary" not in texts(bob)
    assert "the zebra in the zoo" in texts(bob)


def test_accesses_are_written_before_too_many_wait(busy, monkeypatch):
    monkeypatch.setattr(recall_workers, "_UNWRITTEN", 0)
    client = busy.client(busy.first_token)
    found = client.post(f"{W}/recall", json={"query": "apples", "k": 3}).json()["hits"]
    home = busy.service.control.organization("default")
    place = busy.service.control.workspace(home.id, "default")
    with Brain(busy.settings.data / home.id / f"{place.id}.db") as brain:
        assert all(brain.get(hit["memory"]["memory_id"]).bookkeeping.retrieval_count > 0 for hit in found)


def test_one_that_dies_takes_no_recall_with_it_and_is_replaced(busy):
    first, stop = pids(busy), threading.Event()

    def act(number: int) -> None:
        if number == 0:
            for pid in first:
                time.sleep(0.2)
                os.kill(pid, signal.SIGKILL)
            eventually(lambda: len(set(pids(busy)) - set(first)) == 2)
            stop.set()
            return
        client = busy.client(busy.first_token)
        while not stop.is_set():
            answer = client.post(f"{W}/recall", json={"query": "apples", "k": 3})
            assert (answer.status_code, len(answer.json()["hits"])) == (200, 3)

    together(8, act)


def test_one_that_is_stopped_is_killed_and_its_recalls_are_answered(server_with, monkeypatch):
    monkeypatch.setattr(recall_workers, "_CROWD", 1)
    busy = crowded(server_with(Limits(statement_seconds=1.0), recall_workers=1))
    (stopped,) = pids(busy)
    os.kill(stopped, signal.SIGSTOP)

    def act(_: int) -> None:
        answer = busy.client(busy.first_token).post(f"{W}/recall", json={"query": "apples", "k": 3})
        assert (answer.status_code, len(answer.json()["hits"])) == (200, 3)

    together(3, act)
    assert eventually(lambda: not is_running(stopped))


def test_they_end_with_their_server(server_with):
    busy = crowded(server_with(recall_workers=2))
    first = pids(busy)
    busy.stop()
    assert eventually(lambda: not any(is_running(pid) for pid in first))


def test_they_find_what_was_just_written_on_postgresql(postgres_url, server_with):
    server = server_with(store=postgres_url, recall_workers=2)
    token = server.token_for("acme", "lab", "WRITE")
    crowded(server, "/workspaces/lab", token)

    def act(number: int) -> None:
        client = server.client(token)
        for turn in range(4):
            word = f"zebra{number}x{turn}"
            (key,) = client.post("/workspaces/lab/memories", json={"text": f"I saw {word}"}).json()["ids"]
            found = client.post("/workspaces/lab/recall", json={"query": word, "k": 1}).json()
            assert [hit["memory"]["memory_id"] for hit in found["hits"]] == [key]

    together(6, act)
