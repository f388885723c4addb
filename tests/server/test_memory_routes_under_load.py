"""Many at once: processes that recall are started, find what was just written, and may die without anybody noticing."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest
from crowds import together

from rmem.bench.usage import tree_usage
from rmem.server import recallers as recall_workers

W = "/workspaces/default"


@pytest.fixture
def busy(server_with):
    return crowded(server_with(recallers=2))


def crowded(server):
    """A server whose recallers run."""
    admin = server.client(server.first_token)
    admin.post(f"{W}/memories", json=[{"text": f"apples number {n}"} for n in range(50)]).raise_for_status()
    until = time.monotonic() + 60

    def crowd(_: int) -> None:
        client = server.client(server.first_token)
        while not recallers(server):
            assert time.monotonic() < until, "no recaller was started"
            client.post(f"{W}/recall", json={"query": "apples"}).raise_for_status()

    together(8, crowd)
    return server


def recallers(server) -> list[int]:
    return server.service.recallers.pids


def test_every_write_is_found_by_whoever_recalls_next(busy):
    def act(number: int) -> None:
        client = busy.client(busy.first_token)
        for turn in range(8):
            word = f"zebra{number}x{turn}"
            (key,) = client.post(f"{W}/memories", json={"text": f"I saw {word}"}).json()["ids"]
            found = client.post(f"{W}/recall", json={"query": word, "k": 1}).json()
            assert [hit["memory"]["memory_id"] for hit in found["hits"]] == [key]

    together(8, act)


def test_questions_of_two_tenants_that_wait_together_are_answered_apart(postgres_url, server_with):
    server = crowded(server_with(recallers=2, store=postgres_url))
    tokens = [server.token_for(org, "lab", "WRITE") for org in ("acme", "globex")]

    def act(number: int) -> None:
        own = ("acme", "globex")[number % 2]
        client = server.client(tokens[number % 2])
        for turn in range(6):
            text = f"zebra {own} {number} {turn}"
            (key,) = client.post("/workspaces/lab/memories", json={"text": text}).json()["ids"]
            asked = {"query": text, "must": [text], "k": 3}
            found = client.post("/workspaces/lab/recall", json=asked).json()["hits"]
            assert [hit["memory"]["memory_id"] for hit in found] == [key]
            found = client.post("/workspaces/lab/recall", json={"query": "zebra", "k": 50}).json()["hits"]
            assert {hit["memory"]["text"].split()[1] for hit in found} == {own}

    together(8, act)


def counted_and_judged(busy) -> None:
    client = busy.client(busy.first_token)
    (key,) = client.post(f"{W}/memories", json={"text": "pears"}).json()["ids"]
    recall = client.post(f"{W}/recall", json={"query": "pears", "k": 1}).json()
    assert client.get(f"{W}/memories/{key}").json()["metadata"]["retrieval_count"] == 1
    told = client.post(f"{W}/feedback", json={"recall_id": recall["recall_id"], "memory_id": key})
    assert (told.status_code, told.json()["rank"]) == (201, 1)
    client.post(f"{W}/recall", json={"query": "pears", "k": 1, "touch": False})
    assert client.get(f"{W}/memories/{key}").json()["metadata"]["retrieval_count"] == 1


def bad_questions_are_told_as_without_them(busy) -> None:
    client = busy.client(busy.first_token)
    answer = client.post(f"{W}/recall", json={"query": "x", "k": 0})
    assert (answer.status_code, answer.json()) == (400, {"error": "k must be a whole number ≥ 1, got 0"})
    assert client.post(f"{W}/recall", content=b"{").status_code == 400
    stranger = busy.client_for("other", "lab", "READ")
    assert stranger.post(f"{W}/recall", json={"query": "apples"}).status_code == 404
    assert stranger.post("/workspaces/lab/recall", json={"query": "apples"}).json()["hits"] == []


def test_recalls_in_other_processes_are_like_those_in_the_server(busy):
    counted_and_judged(busy)
    bad_questions_are_told_as_without_them(busy)


def test_a_recaller_that_dies_takes_no_recall_with_it(busy):
    stop = threading.Event()

    def kill() -> None:
        for pid in recallers(busy):
            os.kill(pid, signal.SIGKILL)
            time.sleep(0.2)
        stop.set()

    def act(number: int) -> None:
        if number == 0:
            kill()
            return
        client = busy.client(busy.first_token)
        while not stop.is_set():
            answer = client.post(f"{W}/recall", json={"query": "apples", "k": 3})
            assert (answer.status_code, len(answer.json()["hits"])) == (200, 3)

    together(7, act)
    pids = recallers(busy)
    busy.stop()
    assert [pid for pid in pids if tree_usage(pid).processes] == [], "recallers end with their server"


def recalls_while(server, act, seconds: float) -> float:
    """Recall from many threads while something happens; how long the longest recall took."""
    until = time.monotonic() + seconds
    longest = [0.0]

    def recall(number: int) -> None:
        if number == 0:
            act()
            return
        client = server.client(server.first_token)
        while time.monotonic() < until:
            started = time.monotonic()
            answer = client.post(f"{W}/recall", json={"query": "apples", "k": 3})
            assert (answer.status_code, len(answer.json()["hits"])) == (200, 3)
            longest.append(time.monotonic() - started)

    together(9, recall)
    return max(longest)


def test_a_stopped_recaller_holds_recalls_up_for_a_moment_and_is_replaced(busy, monkeypatch):
    monkeypatch.setattr(recall_workers, "_SILENCE", 1.5)
    stopped = recallers(busy)

    def stop() -> None:
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)

    assert recalls_while(busy, stop, 6.0) < 4.0
    assert [pid for pid in stopped if tree_usage(pid).processes] == [], "they were killed"
    assert set(recallers(busy)) - set(stopped), "others took their place"
    started = time.monotonic()
    busy.stop()
    assert time.monotonic() - started < 15


def test_a_recaller_that_is_stopped_while_it_starts_is_given_up(server_with, monkeypatch):
    monkeypatch.setattr(recall_workers, "_START", 1.0)
    monkeypatch.setattr(recall_workers, "_PAUSE", 0.5)
    server = server_with(recallers=1)
    admin = server.client(server.first_token)
    admin.post(f"{W}/memories", json=[{"text": f"apples number {n}"} for n in range(50)]).raise_for_status()
    stopped: list[int] = []

    def stop() -> None:
        until = time.monotonic() + 5.0
        while time.monotonic() < until:
            for pid in set(tree_usage(os.getpid()).processes[1:]) - set(stopped):
                if b"rmem.server.recaller" in _command(pid):
                    os.kill(pid, signal.SIGSTOP)
                    stopped.append(pid)
            time.sleep(0.005)

    assert recalls_while(server, stop, 5.0) < 3.0
    assert len(stopped) > 1, "the start was tried again"
    assert recallers(server) == []
    monkeypatch.setattr(recall_workers, "_START", 30.0)
    crowded(server)


def _command(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as told:
            return told.read()
    except OSError:
        return b""
