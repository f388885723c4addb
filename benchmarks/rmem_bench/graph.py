"""`rmem bench graph`: what facts cost when they are written, and how fast a large graph answers, beside networkx and
beside plain SQL on the same facts."""

from __future__ import annotations

import json
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .machine import disk_folder, facts
from .measure import Samples, interleaved

if TYPE_CHECKING:
    from rmem.brain import Brain

RELATIONS = ("depends on", "runs on", "belongs to", "is owned by", "calls", "is maintained by", "is part of", "uses")
_TOGETHER = 10  # facts in one memory
_START = 1_700_000_000.0


def triples(count: int, seed: int) -> Iterator[tuple[str, str, str]]:
    """Facts between entities, of which few have many and most have few, as in graphs of real things."""
    chosen = random.Random(seed)
    entities = max(10, count // 5)
    for _ in range(count):
        goal = int(entities * chosen.random() ** 2)
        yield f"Node{chosen.randrange(entities)}", chosen.choice(RELATIONS), f"Node{goal}"


def _fill(brain: Brain, count: int, seed: int, tell: Callable[[int], None]) -> None:
    def drafts() -> Iterator[dict[str, Any]]:
        waiting: list[str] = []
        for number, (subject, relation, goal) in enumerate(triples(count, seed)):
            waiting.append(f"{subject} {relation} {goal}.")
            if len(waiting) == _TOGETHER:
                yield {"text": " ".join(waiting), "when": _START + number}
                waiting = []

    brain.remember_many(drafts(), on_progress=lambda done, _: tell(done * _TOGETHER))


def measure(count: int, calls: int, seed: int, folder: Path, tell: Callable[[int], None]) -> dict[str, Any]:
    """CPU and wall milliseconds of each question, of us, of plain SQL and of networkx."""
    import networkx
    import psutil

    from rmem.brain import Brain

    process = psutil.Process()
    with Brain(folder / "graph.db", embedder="none", durability="normal") as brain:
        _fill(brain, count, seed, tell)
        held = len(brain.graph)
    with Brain(folder / "graph.db", embedder="none") as brain:
        before = process.memory_info()
        graph = brain.graph
        chosen = random.Random(seed + 1)
        known = [subject for subject, _, _ in triples(min(count, 20_000), seed)]
        asked = [chosen.choice(known) for _ in range(calls)]
        pairs = [(chosen.choice(known), chosen.choice(known)) for _ in range(calls)]
        ours = interleaved(
            {
                "neighbours": lambda at: graph.neighbours(asked[at % calls]),
                "as_of": lambda at: graph.as_of(_START + count / 2, asked[at % calls]),
                "path of three hops": lambda at: graph.paths(*pairs[at % calls], 3),
            },
            calls,
        )
        after = process.memory_info()
        grown = after.rss - before.rss
        mapped = after.shared - before.shared
    with sqlite3.connect(folder / "plain.db") as plain:
        plain.execute("CREATE TABLE facts (subject TEXT, relation TEXT, object TEXT, time FLOAT)")
        plain.executemany("INSERT INTO facts VALUES (?, ?, ?, 0)", triples(count, seed))
        plain.execute("CREATE INDEX by_subject ON facts (subject)")
        plain.execute("CREATE INDEX by_object ON facts (object)")
        sql = (
            "SELECT subject, relation, object FROM facts WHERE subject = ? UNION ALL SELECT subject, relation, object "
        )
        sql += "FROM facts WHERE object = ? LIMIT 100"
        three = (
            "WITH e(a, b) AS (SELECT subject, object FROM facts UNION ALL SELECT object, subject FROM facts) "
            "SELECT x.a, x.b, y.b FROM e x JOIN e y ON y.a = x.b JOIN e z ON z.a = y.b WHERE x.a = ? "
            "AND z.b = ? LIMIT 1"
        )
        plainly = interleaved(
            {
                "neighbours": lambda at: plain.execute(sql, (asked[at % calls],) * 2).fetchall(),
                "path of three hops": lambda at: plain.execute(three, pairs[at % calls]).fetchone(),
            },
            calls,
        )
    network: networkx.MultiDiGraph[str] = networkx.MultiDiGraph()
    before = process.memory_info().rss
    network.add_edges_from((subject, goal, {"relation": relation}) for subject, relation, goal in triples(count, seed))
    network_grown = process.memory_info().rss - before
    either = network.to_undirected(as_view=True)

    def way(at: int) -> object:
        try:
            return networkx.bidirectional_shortest_path(either, *pairs[at % calls])
        except networkx.NetworkXNoPath:
            return None

    by_networkx = interleaved(
        {
            "neighbours": lambda at: ([*network.out_edges(asked[at % calls]), *network.in_edges(asked[at % calls])]),
            "path of three hops": way,
        },
        calls,
    )
    return {
        "facts": held,
        "rss_growth_mb": round(grown / 2**20, 1),
        "mapped_growth_mb": round(mapped / 2**20, 1),
        "networkx_rss_growth_mb": round(network_grown / 2**20, 1),
        "file_mb": round((folder / "graph.db").stat().st_size / 2**20, 1),
        "ours": {name: one.summary() for name, one in ours.items()},
        "sql": {name: one.summary() for name, one in plainly.items()},
        "networkx": {name: one.summary() for name, one in by_networkx.items()},
    }


def writing(texts: list[str], folder: Path, rounds: int = 5) -> dict[str, Any]:
    """CPU of remembering texts with facts being read, and without; alternating, the least of several rounds."""
    import rmem.facts
    from rmem.brain import Brain

    found, without = rmem.facts.facts_of, Samples()
    with_facts, one_with, one_without = Samples(), Samples(), Samples()
    for number in range(rounds):
        for name, read, bulk, single in (
            ("with", found, with_facts, one_with),
            ("without", lambda memory: (), without, one_without),
        ):
            rmem.facts.facts_of = read  # as if there were no rules
            with Brain(folder / f"{name}-{number}.db", durability="normal") as brain:
                items = [{"text": text} for text in texts]
                bulk.time(lambda brain=brain, items=items: brain.remember_many(items))  # type: ignore[misc]
                started = time.process_time()
                for text in texts[:200]:
                    brain.remember(text)
                single.add(0.0, (time.process_time() - started) / 200)
    rmem.facts.facts_of = found
    return {
        "texts": len(texts),
        "bulk_cpu_ratio": round(min(with_facts.cpu) / min(without.cpu), 3),
        "one_added_cpu_ms": round(1000 * (min(one_with.cpu) - min(one_without.cpu)), 3),
    }


@click.command()
@click.option("--facts", "count", type=click.IntRange(1000), default=100_000, show_default=True, help="Facts to ask.")
@click.option("--calls", type=click.IntRange(1), default=100, show_default=True, help="Calls of each kind.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--texts",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file with one text to a line, for what facts cost in writing; without it, that is left out.",
)
@click.option("--json", "as_json", is_flag=True, help="Print every figure as JSON.")
def graph(count: int, calls: int, seed: int, texts: Path | None, as_json: bool) -> None:
    """What facts cost, and how fast a graph of them answers, beside networkx and plain SQL."""
    from rmem.cli.progress import progress

    folder = disk_folder()
    with tempfile.TemporaryDirectory(dir=folder) as made, progress("remembering facts") as bar:
        found = measure(count, calls, seed, Path(made), lambda done: bar(done, count))
        if texts is not None:
            lines = [line.strip() for line in texts.read_text(encoding="utf-8").splitlines() if line.strip()]
            found["writing"] = writing(lines[:5000], Path(made))
    found = {"machine": facts(folder), **found}
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    click.echo(
        f"{found['facts']:,} facts, {found['file_mb']} MB; asking grew this process by {found['rss_growth_mb']} MB, "
        f"{found['mapped_growth_mb']} MB of them pages of the file "
        f"(networkx: {found['networkx_rss_growth_mb']} MB)"
    )
    for name, ours in found["ours"].items():
        told = [f"{ours['cpu_ms']['p50']:.2f} ms CPU, {ours['wall_ms']['p50']:.2f} ms"]
        for other in ("sql", "networkx"):
            if name in found[other]:
                told.append(f"{other} {found[other][name]['cpu_ms']['p50']:.3f} ms CPU")
        click.echo(f"  {name}: {', '.join(told)}")
    if "writing" in found:
        written = found["writing"]
        click.echo(
            f"  reading facts: {written['bulk_cpu_ratio']:.2f} of the CPU of a bulk without, "
            f"{written['one_added_cpu_ms']:+.3f} ms for one"
        )
