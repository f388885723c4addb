"""The chaos checker: short runs on every store find nothing, and the checker finds what is planted for it."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from chaos import power, report
from chaos.journal import FOREVER, Journal, Operation, read_journal
from chaos.model import Model, StoredMemory, Window
from chaos.power import Record

ROOT = Path(__file__).parents[1]
WRITE, SYNC_BEGIN, SYNC_END, TRUNCATE = 1, 2, 3, 4


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "chaos", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300
    )


@pytest.mark.parametrize(
    "store", ["sqlite", *(pytest.param(name, marks=pytest.mark.slow) for name in ("postgres", "redis"))]
)
def test_a_short_run_finds_no_violation(store, tmp_path):
    rounds, seconds = {"sqlite": (1, 2), "postgres": (1, 3), "redis": (1, 3)}[store]
    found = tmp_path / "chaos.json"
    scratch = Path(tempfile.mkdtemp())  # the path of a socket must be short
    done = run(
        *("--store", store, "--rounds", str(rounds), "--round", str(seconds), "--processes", "2", "--seed", "13"),
        *("--pace", "1", "--cuts", "6", "--json", str(found)),
        TMPDIR=str(scratch),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    counts = json.loads(found.read_text())["stores"][store]["counts"]
    assert counts["acknowledged"] > 50
    assert counts["reads checked"] > 20
    assert counts["kill"] > 0
    assert list(scratch.glob("chaos-*")) == [], "a run without violations leaves nothing behind"
    shutil.rmtree(scratch)


def test_power_cuts_break_a_store_that_does_not_wait_for_the_disk(tmp_path):
    done = run(
        *("--store", "sqlite", "--rounds", "3", "--round", "1", "--processes", "2", "--faults", "power"),
        *("--cuts", "5", "--durability", "normal"),
        TMPDIR=str(tmp_path),
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "missed, round 2: power does not show" in done.stdout
    assert "Replay the plan: python -m chaos --store sqlite" in done.stdout
    assert "--seed 1 " in done.stdout
    assert '"op":"remember"' in done.stdout, "a violation comes with the journal's lines"


def test_without_a_compiler_the_faults_below_sqlite_are_left_out_loudly(tmp_path):
    empty = tmp_path / "bin"
    empty.mkdir()
    done = run(
        *("--store", "sqlite", "--rounds", "1", "--round", "1", "--processes", "1", "--faults", "disk,power,kill"),
        PATH=str(empty),
        TMPDIR=str(tmp_path),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "LEFT OUT on sqlite: disk, power (there is no C compiler (cc, gcc or clang) on the PATH)" in done.stdout


def test_an_unknown_fault_is_refused_with_those_that_exist():
    done = run("--faults", "kill,meteor")
    assert done.returncode == 2
    assert "no fault 'meteor'; there are kill, stop, interrupt" in done.stderr


# The model


def operation(op: str, start: float, end: float | None, result: object = None, **args: object) -> Operation:
    """An operation that was acknowledged at `end`, or of which nothing is known."""
    last = FOREVER if end is None else end
    return Operation("journal", op, args, start, last, last, acknowledged=end is not None, result=result)


def remember(start: float, end: float | None, **items: str) -> Operation:
    ids = [f"id-{word}" for word in items] if end is not None else None
    return operation("remember", start, end, ids, agent="a", items=items)


def seen(word: str, revision: str, **more: object) -> StoredMemory:
    return StoredMemory(f"id-{word}", "a", word, revision, {}, "stm")._replace(**more)


def kinds(operations: list[Operation], memories: list[StoredMemory] = (), excuses: list[Window] = ()) -> list[str]:
    """The violations when this was issued and `memories` are in the store at the end."""
    model = Model()
    model.read(operations)
    model.check(operations, excuses)
    model.check_final_state(memories, operations)
    return sorted({violation.kind for violation in model.violations})


def test_what_was_acknowledged_must_be_there():
    assert kinds([remember(1, 2, w="r1")]) == ["lost"]
    assert kinds([remember(1, 2, w="r1")], [seen("w", "r1")]) == []


def test_what_was_not_answered_may_be_there_but_only_whole():
    assert kinds([remember(1, None, w="r1")]) == []
    assert kinds([remember(1, None, w="r1")], [seen("w", "r1")]) == []
    assert kinds([remember(1, None, w="r1", v="r2")], [seen("w", "r1")]) == ["half"]


def test_what_was_forgotten_must_be_gone():
    forget = operation("forget", 3, 4, True, word="w", id="id-w")
    assert kinds([remember(1, 2, w="r1"), forget]) == []
    assert kinds([remember(1, 2, w="r1"), forget], [seen("w", "r1")]) == ["resurrected"]


def test_the_content_is_that_of_a_possible_last_state():
    first = operation("update", 3, 6, None, word="w", rev="r2")
    second = operation("update", 5, 8, None, word="w", rev="r3")  # they met: either may be the last
    both = [remember(1, 2, w="r1"), first, second]
    assert kinds(both, [seen("w", "r2")]) == []
    assert kinds(both, [seen("w", "r3")]) == []
    assert kinds(both, [seen("w", "r1")]) == ["content"]
    assert kinds(both, [seen("w", "r2", tags={"a": "b"})]) == ["content"]
    assert kinds(both, [seen("w", "r2", tier="ltm")]) == ["content"]


def test_nothing_is_there_twice_and_nothing_comes_from_nowhere():
    once = remember(1, 2, w="r1")
    assert kinds([once], [seen("w", "r1"), seen("w", "r1", id="other")]) == ["content", "doubled"]
    assert kinds([once], [seen("w", "r1"), seen("x", "r1")]) == ["ghost"]


@pytest.mark.parametrize(
    ("found", "violation"),
    [(["w/r1"], []), (["w/r2"], []), ([], ["missed"]), (["w/r0"], ["stale"]), (["w/r1", "w/r2"], ["doubled"])],
)
def test_a_read_during_an_update_shows_the_old_or_the_new_but_always_one(found, violation):
    update = operation("update", 4, 8, None, word="w", rev="r2")
    read = operation("list", 5, 7, found, agent="a")
    assert kinds([remember(1, 2, w="r1"), update, read], [seen("w", "r2")]) == violation


def test_a_read_after_an_update_shows_the_new():
    update = operation("update", 3, 4, None, word="w", rev="r2")
    for op, result, args in (
        ("lexical", ["w/r1"], {}),
        ("get", {"rev": "r1"}, {}),
        ("export", ["w/r1"], {"agent": None}),
    ):
        read = operation(op, 5, 6, result, **{"word": "w", **args})
        assert kinds([remember(1, 2, w="r1"), update, read], [seen("w", "r2")]) == ["stale"], op


def test_counts_and_refusals_are_compared_too():
    written = remember(1, 2, w="r1")
    assert kinds([written, operation("count", 3, 4, 2, agent="a")], [seen("w", "r1")]) == ["count"]
    assert kinds([written, operation("forget", 3, 4, False, word="w")], [seen("w", "r1")]) == ["missed"]
    assert kinds([written, operation("update", 3, 4, "not found", word="w", rev="r2")], [seen("w", "r1")]) == ["missed"]


def test_an_error_is_excused_only_while_a_fault_is_injected():
    failed = operation("get", 10, None, word="w")
    failed.error, failed.excusable, failed.answered = "StoreFullError: no space", True, 20
    assert kinds([failed]) == ["error"]
    assert kinds([failed], excuses=[Window(15, 30, "journal")]) == []
    assert kinds([failed], excuses=[Window(15, 30, "another")]) == ["error"]
    assert kinds([failed], excuses=[Window(21, 30)]) == ["error"]


# Journals and power cuts


def test_a_journal_torn_by_a_kill_tells_what_was_under_way(tmp_path):
    journal = Journal(tmp_path / "worker-0-0.jsonl")
    journal.acknowledge(journal.issue("get", {"word": "a"}), None)
    journal.issue("get", {"word": "b"})
    with journal.path.open("ab") as file:
        file.write(b'{"t":1,"n":3,"op":"ge')
    done, waiting = read_journal(journal.path, death=7)
    assert (done.acknowledged, done.args["word"]) == (True, "a")
    assert (waiting.acknowledged, waiting.end, waiting.args["word"]) == (False, 7, "b")


def test_a_power_cut_keeps_what_was_synced_and_some_of_the_rest():
    disk = power.Disk(bytes(8192))
    disk.apply(Record(1, 0, WRITE, 1, 9, b"a" * 4096))
    disk.apply(Record(2, 77, SYNC_BEGIN, 1, 9, b""))
    disk.apply(Record(3, 4096, WRITE, 1, 9, b"b" * 4096))  # after the sync had begun
    disk.apply(Record(4, 77, SYNC_END, 1, 9, b""))
    images = {disk.after_cut(random.Random(seed)) for seed in range(20)}
    assert images == {b"a" * 4096 + bytes(4096), b"a" * 4096 + b"b" * 4096}
    disk.apply(Record(5, 4096, TRUNCATE, 1, 9, b""))
    assert disk.after_cut(random.Random(0)) == b"a" * 4096


def test_the_table_has_a_column_for_each_store():
    def run_of(store: str, counts: dict[str, int], violations: list[object]) -> dict[str, object]:
        facts = {"cpus_usable": 2, "filesystem": "ext4", "python": "3.12.1", "sqlite": "3.45.0"}
        result = {"seconds": 120.0, "counts": counts, "violations": violations}
        at = {"date": "2026-01-02T03:04", "command": "python -m chaos", "seed": 7, "machine": facts}
        return {**at, "stores": {store: result}}

    runs = [run_of("sqlite", {"operations": 1200, "kill": 3}, []), run_of("redis", {"operations": 7}, [{}])]
    assert report.table(runs).splitlines() == [
        "|  | sqlite | redis |",
        "| --- | ---: | ---: |",
        "| operations issued | 1,200 | 7 |",
        "| kill -9 | 3 | 0 |",
        "| **violations** | 0 | 1 |",
        "",
        "- sqlite: 2026-01-02, 2 minutes, 2 shared cores, ext4, Python 3.12.1, SQLite 3.45.0: `python -m chaos`",
        "- redis: 2026-01-02, 2 minutes, 2 shared cores, ext4, Python 3.12.1, SQLite 3.45.0: `python -m chaos`",
    ]
    again = run_of("sqlite", {"operations": 1}, [])
    again["seed"] = 8
    assert report.table([*runs, again]).splitlines()[0] == "|  | sqlite, seed 7 | redis | sqlite, seed 8 |"
