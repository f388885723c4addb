"""`rmem bench hooks`: how long a coding agent waits for our hooks, beside the start of Python alone. Real commands, a
real daemon, a home of their own."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click

_CAPTURED = {
    "tool_name": "Bash",
    "tool_input": {"command": "pytest tests/test_etl.py"},
    "tool_response": {"stdout": "E   KeyError: 'carrier'\n1 failed in 2.3s\n" * 20, "stderr": ""},
}
_REPOSITORY = "github.com/acme/etl"
_KNOWN = "transform_parquet dies with MemoryError on large files; read them in batches with dataset.to_batches()"
_RULE = "Always run the linter before a commit"
_FAILED = {
    "tool_name": "Bash",
    "tool_input": {"command": "pytest tests/test_etl.py"},
    "error": "Exit code 1\n" + "tests/test_etl.py ..F\nE   KeyError: 'carrier'\n1 failed in 2.3s\n" * 20,
}
_ASKED = "The nightly import dies with MemoryError: Unable to allocate 12 GiB in transform_parquet"


def measure(memories: int, calls: int) -> dict[str, Any]:
    """Wall milliseconds of each kind of call, and how many of those that ask were answered."""
    from .processes import compile_package, environment_with  # which loads numpy

    compile_package()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # a daemon may still be writing there
        environment = {**environment_with(Path(folder)), "RMEM_KEEPER_IDLE": "5"}
        _fill(Path(folder) / "memories.db", memories)
        _make_repository(Path(folder))

        def hook(event: str, payload: dict[str, Any], session: str = "bench") -> tuple[float, str]:
            command = [sys.executable, "-m", "rmem", "hook", "claude-code", event]
            return _timed(command, json.dumps({"session_id": session, "cwd": folder, **payload}), environment)

        first, briefing = hook("SessionStart", {"source": "startup"})
        _settled(Path(folder))
        start = [_timed([sys.executable, "-c", "pass"], "", environment)[0] for _ in range(calls)]
        capture = [hook("PostToolUse", {**_CAPTURED, "tool_use_id": str(n)})[0] for n in range(calls)]
        _settled(Path(folder))
        # What a session was told it is not told again, so each prompt has a session of its own.
        recall = [hook("UserPromptSubmit", {"prompt": _ASKED}, f"bench-{n}") for n in range(calls)]
        _settled(Path(folder))
        failure = [hook("PostToolUseFailure", {**_FAILED, "tool_use_id": f"failed {n}"}) for n in range(calls)]
        _settled(Path(folder))
        return {
            "memories": memories,
            "calls": calls,
            "python": _summary(start),
            "capture": _summary(capture),
            "recall": {**_summary([seconds for seconds, _ in recall]), "answered": _share(recall, "to_batches")},
            "failure": _summary([seconds for seconds, _ in failure]),
            "first_session_start_ms": first * 1e3,
            "first_session_answered": _RULE in briefing,
        }


def _make_repository(folder: Path) -> None:
    """A folder that git takes for a clone of _REPOSITORY."""
    for name in ("objects", "refs"):
        (folder / ".git" / name).mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git" / "config").write_text(f'[remote "origin"]\n\turl = https://{_REPOSITORY}.git\n')


def _fill(path: Path, count: int) -> None:
    from rmem.brain import Brain
    from rmem.team.notes import CURRENT, KINDS
    from rmem.testing.synthetic import synthetic_memories

    with Brain(path) as brain:
        drafts = (
            {
                **one,
                "type": KINDS[number % len(KINDS)],
                "place": f"repo:{_REPOSITORY}",
                "tags": {"state": CURRENT},
                "metadata": {"repository": _REPOSITORY, "files": [f"src/part{number % 500}.py"]},
            }
            for number, one in enumerate(synthetic_memories(count))
        )
        brain.remember_many(drafts)
        for text, kind in ((_KNOWN, "error_fix"), (_RULE, "preference")):
            brain.remember(text, type=kind, place=f"repo:{_REPOSITORY}", tags={"state": CURRENT})


def _timed(command: list[str], given: str, environment: dict[str, str]) -> tuple[float, str]:
    """Seconds, and what was printed."""
    started = time.perf_counter()
    done = subprocess.run(command, input=given, env=environment, text=True, capture_output=True, check=True)
    return time.perf_counter() - started, done.stdout


def _share(told: list[tuple[float, str]], word: str) -> float:
    return sum(word in text for _, text in told) / len(told)


def _settled(home: Path) -> None:
    """Wait until the daemon has taken everything in, so that it does not disturb the next figure."""
    spool = home / "team" / "spool"
    end = time.monotonic() + 60
    while time.monotonic() < end and list(spool.glob("*.json")):
        time.sleep(0.05)


def _summary(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        "p50_ms": statistics.median(ordered) * 1e3,
        "p95_ms": ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))] * 1e3,
    }


@click.command()
@click.option("--memories", type=click.IntRange(1), default=2000, show_default=True, help="Memories to begin with.")
@click.option("--calls", type=click.IntRange(1), default=30, show_default=True, help="Calls of each kind.")
@click.option("--json", "as_json", is_flag=True, help="Print every figure as JSON.")
def hooks(memories: int, calls: int, as_json: bool) -> None:
    """How long a coding agent waits for `rmem hook`: for capture, for recall at a prompt and at a
    failing command, and for the first session of the day.

    \b
    Examples:
      rmem bench hooks
      rmem bench hooks --memories 100000 --json
    """
    report = measure(memories, calls)
    if as_json:
        click.echo(json.dumps(report))
        return
    for name in ("python", "capture", "recall", "failure"):
        figures = report[name]
        answered = f"   answered {figures['answered']:.0%}" if "answered" in figures else ""
        click.echo(f"{name:8} p50 {figures['p50_ms']:6.0f} ms   p95 {figures['p95_ms']:6.0f} ms{answered}")
    told = "answered" if report["first_session_answered"] else "not answered in time"
    click.echo(f"first session start, with the daemon's own: {report['first_session_start_ms']:.0f} ms, {told}")
