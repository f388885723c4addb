"""Recalls in the server's own process: those that wait for each other are answered together, each as if alone."""

from __future__ import annotations

import pytest
from crowds import together

W = "/workspaces/default"


@pytest.fixture
def alone(server_with):
    """A server without recallers."""
    return server_with(recallers=0)


def test_every_write_is_found_whoever_waits_beside(alone):
    def act(number: int) -> None:
        client = alone.client(alone.first_token)
        for turn in range(6):
            word = f"okapi{number}x{turn}"
            (key,) = client.post(f"{W}/memories", json={"text": f"I saw {word}"}).json()["ids"]
            found = client.post(f"{W}/recall", json={"query": word, "k": 1}).json()
            assert [hit["memory"]["memory_id"] for hit in found["hits"]] == [key]

    together(8, act)
    assert not alone.service.own_recalls._waiting


def test_what_is_wrong_with_one_question_is_told_to_the_one_who_asked(alone):
    admin = alone.client(alone.first_token)
    admin.post(f"{W}/memories", json={"text": "pears are ripe"}).raise_for_status()

    def act(number: int) -> None:
        client = alone.client(alone.first_token)
        for _ in range(6):
            answer = client.post(f"{W}/recall", json={"query": "pears", "k": 0 if number % 2 else 1})
            if number % 2:
                assert answer.status_code == 400
                assert "k must be" in answer.json()["error"]
            else:
                assert [hit["memory"]["text"] for hit in answer.json()["hits"]] == ["pears are ripe"]

    together(8, act)


def test_hits_of_all_count_as_accessed(alone):
    admin = alone.client(alone.first_token)
    (key,) = admin.post(f"{W}/memories", json={"text": "figs are dry"}).json()["ids"]

    def act(number: int) -> None:
        body = {"query": "figs", "k": 1, "touch": number < 6}
        alone.client(alone.first_token).post(f"{W}/recall", json=body).raise_for_status()

    together(8, act)
    assert admin.get(f"{W}/memories/{key}").json()["metadata"]["retrieval_count"] == 6
