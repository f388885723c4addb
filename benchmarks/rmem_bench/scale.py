"""`rmem bench scale`: workspaces on one, two and three PostgreSQL servers in one run, and what a memory, a write and a
recall cost there. All servers share this machine, so the ratios show what spreading costs, not what machines add."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import click

from .machine import facts
from .measure import Samples
from .report import figure
from .usage import tree_usage

Advance = Callable[[str, int, int], None]

_DIMENSION = 256
_BATCH = 1000


@dataclass(frozen=True, slots=True)
class ScaleLoad:
    """What is measured at each number of servers."""

    memories: int = 6000
    workspaces: int = 12
    seconds: float = 5.0
    threads: int = 4
    writes_in: int = 5
    large: bool = False
    servers: tuple[int, ...] = (1, 2, 3)


def run(load: ScaleLoad, advance: Advance) -> dict[str, Any]:
    """The figures for each number of servers, and the ratios to the first."""
    from rmem.testing.postgres import PostgresServer

    with ExitStack() as stack:
        servers = [stack.enter_context(PostgresServer()) for _ in range(max(load.servers))]
        measured = [_measure(load, servers[:count], advance) for count in load.servers]
        machine = facts(servers[0].folder)
    first = measured[0]
    for one in measured:
        one["ratios"] = {
            "calls_per_s": round(one["calls_per_s"] / first["calls_per_s"], 2),
            "recall_p95": round(one["recall"]["wall_ms"]["p95"] / first["recall"]["wall_ms"]["p95"], 2),
            "remember_p95": round(one["remember"]["wall_ms"]["p95"] / first["remember"]["wall_ms"]["p95"], 2),
        }
    return {"load": asdict(load), "machine": machine, "measured": measured}


def _measure(load: ScaleLoad, servers: Sequence[Any], advance: Advance) -> dict[str, Any]:
    from rmem import Brain
    from rmem.stores.sql.postgres import HELD_UP_TO, PostgresRecordStore
    from rmem.testing.synthetic import synthetic_memories

    urls, label = [server.new_database() for server in servers], f"{len(servers)} servers"
    each = load.memories // load.workspaces

    def fill(number: int, stack: ExitStack) -> Brain:
        store = PostgresRecordStore(
            urls[number % len(urls)], tenant=f"w{number}", held_up_to=0 if load.large else HELD_UP_TO
        )
        brain = stack.enter_context(Brain(stack.enter_context(store), embedder="none"))
        given = list(synthetic_memories(each, seed=number, agents=10, dimension=_DIMENSION))
        for at in range(0, each, _BATCH):
            brain.remember_many(given[at : at + _BATCH])
        if load.large:
            store.compact()
        return brain

    with ExitStack() as stack:
        brains = []
        begun, cpu = time.perf_counter(), _database_cpu(servers)
        with ThreadPoolExecutor(load.threads) as pool:
            for brain in pool.map(partial(fill, stack=stack), range(load.workspaces)):
                brains.append(brain)
                advance(f"filling {label}", len(brains), load.workspaces)
        filled, fill_cpu = time.perf_counter() - begun, _database_cpu(servers) - cpu
        size = sum(_size(url) for url in urls)
        calls = _Calls(load, brains)
        calls.begin()
        cpu, own = _database_cpu(servers), time.process_time()
        took = calls.run(advance, f"calling {label}")
        database, own = _database_cpu(servers) - cpu, time.process_time() - own
    total = len(calls.recalls.wall) + len(calls.writes.wall)
    stored = each * load.workspaces
    for server, url in zip(servers, urls, strict=True):
        server.drop_database(url)
    return {
        "servers": len(servers),
        "memories": stored,
        "fill_per_s": round(stored / filled, 1),
        "fill_database_cpu_ms": round(1000 * fill_cpu / stored, 3),
        "bytes_per_memory": round(size / stored),
        "calls_per_s": round(total / took, 1),
        "first_recall": calls.first.summary(),
        "recall": calls.recalls.summary(),
        "remember": calls.writes.summary(),
        "database_cpu_ms_per_call": round(1000 * database / total, 3),
        "client_cpu_ms_per_call": round(1000 * own / total, 3),
    }


class _Calls:
    """Threads that recall and remember in random workspaces, each call after the last."""

    def __init__(self, load: ScaleLoad, brains: Sequence[Any]) -> None:
        from rmem.testing.synthetic import clustered_vectors, synthetic_questions

        self._load, self._brains = load, brains
        self._questions = synthetic_questions(200)
        self._vectors = clustered_vectors(200, _DIMENSION, seed=1)
        self.first, self.recalls, self.writes = Samples(), Samples(), Samples()

    def begin(self) -> None:
        """Recall once in each workspace: a process that has not asked there yet reads the index first."""
        for brain in self._brains:
            self.first.time(partial(brain.recall, self._questions[0], vector=self._vectors[0]))

    def run(self, advance: Advance, label: str) -> float:
        begun = time.perf_counter()
        threads = [threading.Thread(target=self._call, args=(number, begun)) for number in range(self._load.threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        advance(label, 1, 1)
        return time.perf_counter() - begun

    def _call(self, number: int, begun: float) -> None:
        chance, turn = random.Random(number), 0
        while time.perf_counter() - begun < self._load.seconds:
            turn += 1
            brain, at = chance.choice(self._brains), chance.randrange(200)
            wall, cpu = time.perf_counter(), time.thread_time()
            if turn % self._load.writes_in == 0:
                text = f"{self._questions[at]} ({number}, {turn})"
                brain.remember(text, agent=f"agent-{number:03d}", vector=self._vectors[at])
                samples = self.writes
            else:
                brain.recall(self._questions[at], vector=self._vectors[at])
                samples = self.recalls
            samples.add(time.perf_counter() - wall, time.thread_time() - cpu)


def _database_cpu(servers: Sequence[Any]) -> float:
    """CPU seconds of the servers so far, of backends that still run: connections are kept between the two looks."""
    return sum(tree_usage(server.pid).cpu for server in servers)


def _size(url: str) -> int:
    """Bytes of the tables and indexes of memories, without what every database has."""
    import psycopg

    sql = (
        "SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class "
        "WHERE relkind = 'r' AND relnamespace = 'remanence'::regnamespace"
    )
    with psycopg.connect(url, autocommit=True) as link:
        row = link.execute(sql).fetchone()
    return 0 if row is None else int(row[0])


@click.command()
@click.option("--memories", type=click.IntRange(min=100), default=6000, show_default=True, help="Memories in all.")
@click.option("--workspaces", type=click.IntRange(min=1), default=12, show_default=True, help="They are spread over.")
@click.option("--seconds", type=click.FloatRange(0.5, 86_400), default=5.0, show_default=True, help="At each number.")
@click.option("--threads", type=click.IntRange(1, 256), default=4, show_default=True, help="That call at once.")
@click.option("--servers", type=click.IntRange(1, 16), default=3, show_default=True, help="From 1 to so many.")
@click.option("--large", is_flag=True, help="Let the database search, as it does beyond 20,000 memories a workspace.")
@click.option("--json", "as_json", is_flag=True, help="Print every figure as JSON.")
def scale(as_json: bool, servers: int, **options: Any) -> None:
    """Spread workspaces over 1, 2 and 3 PostgreSQL servers: throughput, latency, and what a memory and a call cost.

    The servers are started for it and share this machine: the ratios show what spreading costs.

    \b
    Examples:
      rmem bench scale
      rmem bench scale --large --servers 1
      rmem bench scale --memories 10000000 --workspaces 1000 --servers 1 --seconds 60
    """
    from .command import shown_progress

    above = click.get_current_context().parent
    with shown_progress() as bar:
        report = run(ScaleLoad(servers=tuple(range(1, servers + 1)), **options), bar.advance)
    if as_json or (above is not None and above.params.get("as_json")):
        click.echo(json.dumps(report, indent=2))
    else:
        click.echo(told(report))


def told(report: dict[str, Any]) -> str:
    """The report for a reader."""
    headings = (
        "calls/s",
        "ratio",
        "recall p50",
        "p95 ms",
        "ratio",
        "write p50",
        "p95 ms",
        "ratio",
        "db CPU ms",
        "own CPU ms",
    )
    load = report["load"]
    lines = [
        f"{load['memories']:,} memories in {load['workspaces']:,} workspaces, {load['threads']} threads for "
        f"{load['seconds']:g} s, one call in {load['writes_in']} remembers"
        + (", the database searches" if load["large"] else ", indexes held in memory"),
        "",
        "servers" + "".join(f"{heading:>11}" for heading in headings),
    ]
    for one in report["measured"]:
        recall, write, ratios = one["recall"]["wall_ms"], one["remember"]["wall_ms"], one["ratios"]
        cells = (
            one["calls_per_s"], ratios["calls_per_s"], recall["p50"], recall["p95"], ratios["recall_p95"],
            write["p50"], write["p95"], ratios["remember_p95"],
            one["database_cpu_ms_per_call"], one["client_cpu_ms_per_call"],
        )  # fmt: skip
        lines.append(f"{one['servers']:>7}" + "".join(f"{figure(cell):>11}" for cell in cells))
    first = report["measured"][0]
    cold = first["first_recall"]
    lines += [
        "",
        f"the first recall of a process in a workspace of {first['memories'] // load['workspaces']:,} memories took "
        f"{figure(cold['wall_ms']['p50'])} ms, {figure(cold['cpu_ms']['p50'])} ms of its CPU",
        f"a memory takes {first['bytes_per_memory']:,} bytes with its indexes; {first['fill_per_s']:,.0f} a second "
        f"were written in bulk, with {first['fill_database_cpu_ms']:g} ms of the database's CPU each",
    ]
    return "\n".join(lines)
