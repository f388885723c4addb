"""Forgetting from the command line: subjects, faded memories, restoring, pinning and the audit log."""

from __future__ import annotations

import os
import time

import pytest
from rmem_runner import Rmem

from rmem import Brain
from rmem.memory_builder import build_memory
from rmem.tiers.forgetting import DAY


@pytest.fixture
def old(rmem: Rmem) -> Rmem:
    """Two memories that were last used a year ago, and one of today."""
    path = rmem.home / "memories.db"
    os.makedirs(rmem.home, exist_ok=True)
    with Brain(path) as brain:
        drafts = [build_memory(text=f"old story {n} of Ann", id=f"old-{n}", importance=0.1) for n in range(2)]
        for one in drafts:
            one.timestamp = one.bookkeeping.creation_time = one.bookkeeping.last_access_time = time.time() - 365 * DAY
        brain.keep(drafts)
        brain.remember("fresh", id="new")
    return rmem


def test_faded_memories_are_shown_pruned_and_restored(old: Rmem) -> None:
    told = old("forget", "--faded", "--below", "0.05", "--dry-run", "--json").json
    assert [one["id"] for one in told["memories"]] == ["old-0", "old-1"]
    assert told["dry_run"] is True
    assert old("pin", "old-1").out == "old-1\n"
    assert old("forget", "--faded", "--below", "0.05", "--yes").out.split("\t")[0] == "old-0"
    assert [one["id"] for one in old("restore", "--json").json] == ["old-0"]
    assert old("restore", "old-0").out == "old-0\n"
    assert old("restore", "old-0").code == 3
    assert old("show", "old-0").code == 0


def test_a_subject_is_forgotten(old: Rmem) -> None:
    assert old("forget", "--subject", "ann", "--dry-run").out.split() == ["old-0", "old-1"]
    assert old("forget", "--subject", "ann", "--yes").out.split() == ["old-0", "old-1"]
    assert [one["memory_id"] for one in old("list", "--json").json["memories"]] == ["new"]


def test_the_audit_log_tells_and_is_verified(old: Rmem) -> None:
    old("forget", "new", "--yes")
    (entry,) = old("audit", "--json").json
    assert (entry["action"], entry["memory"], entry["detail"]) == ("forget", "new", {"reason": "forget"})
    assert "whole" in old("audit", "--verify").out
    assert old("audit", "--since", "tomorrow").out == ""


def test_the_curve_is_drawn(rmem: Rmem) -> None:
    assert "365 days" in rmem("forget", "--plot").out
    assert rmem("forget", "--plot", "--json").json["curves"]


@pytest.mark.parametrize(
    ("command", "word"),
    [
        (("forget",), "--subject"),
        (("forget", "x", "--faded"), "only one"),
        (("forget", "--faded"), "--below"),
        (("forget", "x", "--below", "0.1"), "--faded"),
        (("forget", "x", "--dry-run"), "--dry-run"),
        (("forget", "--faded", "--below", "7"), "below"),
        (("pin", "nope"), "no memory"),
    ],
)
def test_wrong_usage_says_what_is_missing(old: Rmem, command: tuple[str, ...], word: str) -> None:
    answer = old(*command)
    assert answer.code in (2, 3)
    assert word in answer.err
