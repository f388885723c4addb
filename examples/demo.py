"""One agent stores a fix; another process recalls it. Run it with `make demo`.

swe-01 resolves an out-of-memory crash and stores the trace among those of its team. swe-02 is a separate process:
it hits a different error, asks the same store and gets the fix. Nothing is staged: the hits are what recall finds,
and the demo fails if the fix is not the first of them. Your own memories are not touched; the store is a new
folder, which stays so that you can look around in it.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text
from team_traces import TRACES

from rmem import Brain, config

QUESTION = "ETL job killed by OOM when loading large CSV exports"
REPOSITORY = "data-pipeline"  # where swe-02 works; it asks for what was learned there

FIX = {
    "task": "Fix OOM crash in data pipeline when processing 50GB parquet files",
    "outcome": (
        "Root cause: pandas.read_parquet() loads entire file into memory. Fix: switched to pyarrow.dataset with "
        "batch_size=10000 and row-group filtering. Peak RAM dropped from 48GB to 3.2GB. Also added memory_profiler "
        "guard to CI to catch regressions."
    ),
    "error_trace": "MemoryError: Unable to allocate 47.3 GiB, triggered in ETL step 3 (transform_parquet)",
    "tools_used": ["pyarrow.dataset", "memory_profiler", "htop"],
    "repo": "data-pipeline",
    "error_type": "MemoryError",
    "files_changed": ["etl/transform.py", "ci/memory_guard.yml"],
    "resolution_time_min": 45,
}

TABLES = {
    "memories": "one row is one memory: text, fields, words, vector",
    "changes": "rows replaced or forgotten, so that other processes notice",
    "access": "how often and when a memory was recalled",
    "segments": "packed pieces of the recall index (a cache, from 2,048 rows on)",
    "staged": "vectors of a re-embedding under way",
    "notes": "facts about the store: embedder, dimension, analyser",
}

out = Console(highlight=False, soft_wrap=not sys.stdout.isatty())


def searchable(trace: dict[str, Any]) -> str:
    """The whole trace as one text: whatever a later question may resemble."""
    tools = f"Tools used: {_shown(trace['tools_used'])}"
    lines = (f"[{trace['repo']}] {trace['task']}", trace["error_trace"], trace["outcome"], tools)
    return "\n".join(line for line in lines if line)


def as_memory(trace: dict[str, Any], agent: str, when: datetime) -> dict[str, Any]:
    """A trace as `remember` takes it: a text to search, and the fields themselves as metadata beside it."""
    return {
        "text": searchable(trace),
        "agent": agent,
        "actor": agent,
        "type": "error_fix",
        "tags": {"repo": trace["repo"]},
        "when": when,
        "metadata": trace,
    }


# The two agents


def swe_01_and_the_team() -> str:
    """Store what the team and then swe-01 learned; the id of swe-01's fix."""
    now = datetime.now()
    with Brain() as brain:
        start = time.perf_counter()
        brain.remember_many(
            as_memory(trace, agent, now - timedelta(days=days, hours=at % 9))
            for at, (days, agent, trace) in enumerate(TRACES)
        )
        bulk = time.perf_counter() - start
        start = time.perf_counter()
        memory = brain.remember(**as_memory(FIX, "swe-01", now), session="pipeline-oom", importance=0.8)
        single = time.perf_counter() - start
    say(f"{len(TRACES)} traces of the team stored in {bulk * 1000:.0f} ms (the first write also loads the embedder).")
    say(f"swe-01 stored its own in {single * 1000:.1f} ms; when that returned, it was on disk:")
    facts(("id", memory.memory_id), *((key, _shown(value)) for key, value in FIX.items()))
    return memory.memory_id


def swe_02() -> None:
    """A process of its own: open the store, ask, print the hits as JSON."""
    start = time.perf_counter()
    with Brain() as brain:
        hits = brain.recall(QUESTION, k=3, where={"tags": {"repo": REPOSITORY}}, explain=True)
        seconds = time.perf_counter() - start
        again = time.perf_counter()
        brain.recall(QUESTION, k=3, where={"tags": {"repo": REPOSITORY}})
        warm = time.perf_counter() - again
    print(json.dumps({"pid": os.getpid(), "ms": [seconds * 1000, warm * 1000], "hits": [h.to_dict() for h in hits]}))


def ask_swe_02() -> dict[str, Any]:
    done = subprocess.run([sys.executable, __file__, "--as-swe-02"], stdout=subprocess.PIPE, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


# Showing


def _shown(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def heading(text: str) -> None:
    out.print()
    out.print(Rule(Text(text, "bold"), align="left") if out.is_terminal else f"== {text}")


def say(text: str) -> None:
    out.print(text, markup=False)


def facts(*pairs: tuple[str, str]) -> None:
    """Names and values, two columns."""
    if not out.is_terminal:
        for name, value in pairs:
            say(f"  {name:<20} {value}")
        return
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="cyan", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in pairs:
        grid.add_row(name, Text(value))
    out.print(Padding(grid, (0, 0, 0, 2)))


def show_hit(number: int, hit: dict[str, Any]) -> None:
    memory, why = hit["memory"], hit["explanation"]
    kept = memory["contents"]
    parts = [(name, value) for name, value in why["components"].items() if abs(value) >= 0.005]
    words = (w["word"] if w["word"] == w["matched"] else f"{w['word']}~{w['matched']}" for w in why["words"])
    out.print()
    out.print(f"[bold]{number}. [green]{hit['relevance']:.0%}[/]  {kept['task']}[/]  [dim]{memory['agent_id']}[/]")
    facts(
        ("outcome", kept["outcome"]),
        ("tools used", _shown(kept["tools_used"])),
        ("score", " ".join(f"{name} {value:+.2f}" for name, value in parts)),
        ("similarity", f"BM25 {why['bm25']:.2f}, cosine {why['cosine']:.3f}"),
        ("words matched", ", ".join(words)),
    )


def show_files(store: Path) -> None:
    for path in sorted(store.parent.iterdir()):
        say(f"  {path}  {path.stat().st_size / 1000:,.0f} kB")
    with closing(sqlite3.connect(f"{store.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        counted = [
            (name, connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0], meaning)
            for name, meaning in TABLES.items()
        ]
        notes = connection.execute("SELECT key, value FROM notes ORDER BY key").fetchall()
    facts(*((f"{name} ({rows} rows)", meaning) for name, rows, meaning in counted))
    facts(*((f"notes.{key}", value) for key, value in notes))


def show_next(home: Path) -> None:
    beside = Path(sys.executable).with_name("rmem")
    rmem = "rmem" if not beside.exists() else str(beside)
    if beside.is_relative_to(Path.cwd()):
        rmem = str(beside.relative_to(Path.cwd()))
    for command in (
        f"export RMEM_HOME={shlex.quote(str(home))}",
        f"{rmem} recall {shlex.quote(QUESTION)} --tag repo={REPOSITORY} -k 3 --explain",
        f"{rmem} recall 'flaky test' --tag repo=web-app --since 'two months ago'",
        f"{rmem} remember 'Streaming the CSV exports with pyarrow.csv works too' --agent swe-02 --type error_fix",
        f"{rmem} list --limit 5",
        f"{rmem} doctor",
        f"rm -r {shlex.quote(str(home))}   # when you are done; without RMEM_HOME, rmem uses your own store",
    ):
        say(f"  {command}")


def story(home: Path) -> int:
    started = time.perf_counter()
    os.environ[config.HOME] = str(home)
    os.environ.pop("RMEM_EMBEDDER", None)
    say(f"A new store in {home} (your own memories are not touched)")

    heading("1. swe-01 resolves the OOM in the data pipeline and stores the trace")
    fix = swe_01_and_the_team()

    heading("2. swe-02, a separate process, hits a different error and asks")
    answer = ask_swe_02()
    first, warm = answer["ms"]
    say(f'process {answer["pid"]} (this one is {os.getpid()}) asks in {REPOSITORY}: "{QUESTION}"')
    say(f"open, load and answer: {first:.0f} ms; the same question again: {warm:.1f} ms")
    for number, hit in enumerate(answer["hits"], 1):
        show_hit(number, hit)
    found = bool(answer["hits"]) and answer["hits"][0]["memory"]["memory_id"] == fix
    out.print()
    if found:
        kept = answer["hits"][0]["memory"]["contents"]
        say(f"First hit: what swe-01 stored as {fix}. swe-02 can start from {kept['files_changed'][0]}.")
    else:
        say(f"FAILED: the fix of swe-01 ({fix}) is not the first hit.")

    heading("3. What was written where")
    show_files(config.default_store())

    heading("4. Try next")
    show_next(home)
    say(f"\n{time.perf_counter() - started:.1f} s in all")
    return 0 if found else 1


def main() -> int:
    options = argparse.ArgumentParser(description="One agent learns a fix; another process recalls it.")
    options.add_argument("--home", type=Path, help="an empty or new folder for the store (default: a temporary one)")
    options.add_argument("--as-swe-02", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.as_swe_02:
        swe_02()
        return 0
    if given.home is not None and given.home.exists() and any(given.home.iterdir()):
        options.error(f"--home must be an empty or new folder, but {given.home} has files in it")
    return story(given.home or Path(tempfile.mkdtemp(prefix="rmem-demo-")))


if __name__ == "__main__":
    sys.exit(main())
