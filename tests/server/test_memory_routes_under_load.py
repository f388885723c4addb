"""Many recalls at once: each finds what was just written and is answered as if it were alone."""

from __future__ import annotations

import threading
import time
from statistics import median

from crowds import together

W = "/workspaces/default"


def test_every_write_is_found_by_whoever_recalls_next(server):
    def act(number: int) -> None:
        client = server.client(server.first_token)
        for turn in range(8):
            word = f"zebra{number}x{turn}"
            (key,) = client.post(f"{W}/memories", json={"text": f"I saw {word}"}).json()["ids"]
            found = client.post(f"{W}/recall", json={"query": word, "k": 1}).json()
            assert [hit["memory"]["memory_id"] for hit in found["hits"]] == [key]

    together(8, act)


def test_recalls_of_two_tenants_at_once_are_answered_apart(postgres_url, server_with):
    server = server_with(store=postgres_url)
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


def test_what_is_wrong_with_one_question_is_told_to_the_one_who_asked(server):
    server.client(server.first_token).post(f"{W}/memories", json={"text": "pears are ripe"}).raise_for_status()

    def act(number: int) -> None:
        client = server.client(server.first_token)
        for _ in range(6):
            answer = client.post(f"{W}/recall", json={"query": "pears", "k": 0 if number % 2 else 1})
            if number % 2:
                assert (answer.status_code, answer.json()) == (400, {"error": "k must be a whole number ≥ 1, got 0"})
            else:
                assert [hit["memory"]["text"] for hit in answer.json()["hits"]] == ["pears are ripe"]

    together(8, act)


def test_hits_of_all_recalls_count_as_accessed_and_can_be_judged(server):
    admin = server.client(server.first_token)
    (key,) = admin.post(f"{W}/memories", json={"text": "figs are dry"}).json()["ids"]
    recalls = []

    def act(number: int) -> None:
        body = {"query": "figs", "k": 1, "touch": number < 6}
        recalls.append(server.client(server.first_token).post(f"{W}/recall", json=body).json()["recall_id"])

    together(8, act)
    assert admin.get(f"{W}/memories/{key}").json()["metadata"]["retrieval_count"] == 6
    for recall_id in recalls:
        judged = admin.post(f"{W}/feedback", json={"recall_id": recall_id, "memory_id": key})
        assert (judged.status_code, judged.json()["rank"]) == (201, 1)


def test_one_organisation_that_recalls_all_the_time_does_not_hold_up_another(server):
    busy, quiet = server.client(server.first_token), server.client_for("other", "lab", "WRITE")
    texts = [{"text": f"apples number {number} " + "and more words " * 20} for number in range(1000)]
    busy.post(f"{W}/memories", json=texts).raise_for_status()
    quiet.post("/workspaces/lab/memories", json={"text": "the disk was full"}).raise_for_status()
    quiet.post("/workspaces/lab/recall", json={"query": "disk"}).raise_for_status()
    stop, times = threading.Event(), {True: [], False: []}

    def recall(client, path: str, query: str, k: int) -> float:
        started = time.monotonic()
        client.post(path, json={"query": query, "k": k}).raise_for_status()
        return time.monotonic() - started

    def act(number: int) -> None:
        if number == 0:
            time.sleep(0.5)
            times[True] += [recall(quiet, "/workspaces/lab/recall", "disk", 1) for _ in range(10)]
            stop.set()
            return
        client = server.client(server.first_token)
        while not stop.is_set():
            times[False].append(recall(client, f"{W}/recall", "apples and more words", 500))

    together(25, act)
    assert median(times[True]) < median(times[False]) / 2, "it waited in their queue"
