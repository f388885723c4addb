"""Reading a whole store takes long. It says how far it is and takes no place of other requests."""

from __future__ import annotations

import json
import threading
import time

from rmem import doctor
from rmem.tiers.forgetting import ForgettingPolicy

W = "/workspaces/default"
NDJSON = {"Accept": "application/x-ndjson"}
DRY_RUN = {"prune": {"below": 0.05}, "dry_run": True, "limit": 3}


def test_a_dry_run_tells_how_far_it_is(admin):
    several = [{"text": f"Line {at}", "when": 1.6e9 + at} for at in range(2500)]
    for start in range(0, 2500, 500):
        admin.post(f"{W}/memories", json=several[start : start + 500]).raise_for_status()
    answer = admin.post(f"{W}/maintenance", json=DRY_RUN, headers=NDJSON)
    *progress, found = map(json.loads, answer.text.splitlines())
    assert [(one["done"], one["total"]) for one in progress] == [(at, 5000) for at in (0, 2000, 2500, 4500)]
    at_once = admin.post(f"{W}/maintenance", json=DRY_RUN).json()
    assert [one["memory_id"] for one in found["pruned"]] == [one["memory_id"] for one in at_once["pruned"]]
    assert found.keys() == at_once.keys()
    assert (found["pruned_count"], len(found["pruned"])) == (2500, 3)
    assert admin.get(f"{W}/stats").json()["memories"] == 2500
    refused = admin.post(f"{W}/maintenance", json={**DRY_RUN, "prune": {"below": 2}}, headers=NDJSON)
    assert refused.status_code == 400
    assert "below" in refused.json()["error"]


def test_what_reads_the_whole_store_keeps_nobody_waiting(admin, monkeypatch):
    """Three at once, more than an organisation has places for short reads, each held up until all else is answered."""
    admin.post(f"{W}/memories", json={"text": "Staging runs on port 5433", "when": 1.6e9}).raise_for_status()
    go_on = threading.Event()
    choose, examine = ForgettingPolicy.choose, doctor.examine

    def slow_choice(policy, traces, now):
        go_on.wait(30)
        return choose(policy, traces, now)

    def slow_examination(*given):
        go_on.wait(30)
        return examine(*given)

    monkeypatch.setattr(ForgettingPolicy, "choose", slow_choice)
    monkeypatch.setattr(doctor, "examine", slow_examination)
    answers = []
    asked = [
        lambda: admin.get(f"{W}/examination"),
        lambda: admin.get(f"{W}/examination"),
        lambda: admin.post(f"{W}/maintenance", json=DRY_RUN),
    ]
    threads = [threading.Thread(target=lambda ask=ask: answers.append(ask())) for ask in asked]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    try:
        for _ in range(3):
            assert admin.get(f"{W}/stats", timeout=10).json()["memories"] == 1
            assert admin.post(f"{W}/recall", json={"query": "staging port"}, timeout=10).status_code == 200
        assert admin.post(f"{W}/memories", json={"text": "More"}, timeout=10).status_code == 201
        assert answers == []
    finally:
        go_on.set()
        for thread in threads:
            thread.join(30)
    assert [answer.status_code for answer in answers] == [200, 200, 200]
