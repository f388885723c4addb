"""`rmem serve` under load: a real server in a process of its own, clients in others, and what becomes of it. Every
write that was acknowledged is asked for at the end; with `kill`, after the server was killed in mid-load and started
again."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from . import machine
from .load import Advance, WorkerProcess
from .measure import Samples
from .server_clients import KINDS, Order, absent, answer_of
from .usage import tree_usage

FORMAT = 1
WORKSPACE = "default"
TARGETS = {"requests_per_s": 300.0, "p99_ms": 500.0}
_TICK = 0.1
_SAMPLE = 1.0  # seconds between two looks at the server's memory
_PATIENCE = 90.0


@dataclass(frozen=True, slots=True)
class ServerLoad:
    """Who asks what for how long."""

    clients: int = 64
    seconds: float = 60.0
    processes: int = 1
    memories: int = 10_000
    """Synthetic memories that the workspace holds before anybody starts."""
    writes_in: int = 5
    """One call in so many is a remember."""
    k: int = 5
    kill: bool = False
    """Whether the server is killed in the middle, as a power cut would, and started again."""
    seed: int = 0


def run(load: ServerLoad, *, postgres: bool = False, folder: Path | None = None, advance: Advance) -> dict[str, Any]:
    """The whole report, as `--json` prints it."""
    parent = folder or machine.disk_folder()
    facts = machine.facts(parent)
    started = datetime.now(UTC)
    with TemporaryDirectory(prefix="rmem-server-", dir=parent) as temporary, _database(postgres) as database:
        data = Path(temporary)
        token, held = _prepared(data, database, load, advance)
        server = ServerProcess(data, database)
        try:
            server.start()
            server.warm(token)
            results, failures, watched = _simulate(server, token, load, advance)
            found = _verified(server, token, results, held)
            errors = server.complaints()
        finally:
            server.end()
    return {
        "format": FORMAT,
        "date": started.isoformat(timespec="seconds"),
        "machine": facts,
        "load": {**asdict(load), "store": "PostgreSQL" if postgres else "SQLite"},
        **_figures(results, failures, watched),
        **found,
        "server_errors": errors,
    }


@contextmanager
def _database(postgres: bool) -> Iterator[str | None]:
    if not postgres:
        yield None
        return
    from rmem.testing.postgres import PostgresServer

    with PostgresServer() as server:
        yield server.new_database()


def _prepared(data: Path, database: str | None, load: ServerLoad, advance: Advance) -> tuple[str, int]:
    """A data folder with an admin and the first memories: the admin's token, and how many memories there are."""
    from rmem.server.app import close, open_service
    from rmem.server.settings import ServerSettings
    from rmem.testing.synthetic import synthetic_memories

    told: list[str] = []
    service = open_service(ServerSettings(data=data, store=database), on_first_token=told.append)
    try:
        (home,) = service.control.organizations()
        place = service.control.workspace(home.id, WORKSPACE)
        assert place is not None, "the first start makes it"
        space = service.spaces.use(home.id, place.id, place.name)
        if load.memories:
            space.brain.remember_many(
                synthetic_memories(load.memories, load.seed),
                on_progress=lambda done, _: advance("fill", done, load.memories),
            )
        held = int(space.brain.stats()["memories"])
        service.spaces.leave(space)
    finally:
        close(service)
    return told[0], held


class ServerProcess:
    """`rmem serve` on a port of its own, in a process that can be killed and started again."""

    def __init__(self, data: Path, database: str | None) -> None:
        self._log = data / "server.log"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self._line = [sys.executable, "-m", "rmem", "serve", "--data", str(data), "--port", str(self.port)]
        if database is not None:
            self._line += ["--store", database]
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    def start(self, patience: float = 60.0) -> None:
        """Start it and wait until it is ready."""
        with self._log.open("ab") as log:
            self._child = subprocess.Popen(self._line, stdout=log, stderr=log, env=_one_core())
        until = time.monotonic() + patience
        while time.monotonic() < until:
            if self._child.poll() is not None:
                raise RuntimeError(f"rmem serve ended with {self._child.returncode}: {self._tail()}")
            try:
                if self._ask("GET", "/ready", "")[0] == 200:
                    return
            except OSError:
                time.sleep(_TICK / 2)
        raise RuntimeError(f"rmem serve was not ready in time: {self._tail()}")

    def warm(self, token: str) -> None:
        """One recall, which loads the index: that is not what is measured."""
        status, body = self._ask("POST", f"/workspaces/{WORKSPACE}/recall", token, {"query": "what happened", "k": 1})
        if status != 200:
            raise RuntimeError(f"the server does not recall: {status} {body[:300]!r}")

    def memories(self, token: str) -> int:
        """How many memories it says that there are."""
        _, body = self._ask("GET", f"/workspaces/{WORKSPACE}/stats", token)
        return int(json.loads(body)["memories"])

    def _ask(self, method: str, path: str, token: str, document: Any = None) -> tuple[int, bytes]:
        return asyncio.run(answer_of(self.port, method, path, token, document))

    def kill(self) -> None:
        """End it at once, with all its processes, as a power cut does."""
        assert self._child is not None
        for process in reversed(tree_usage(self._child.pid).processes):
            os.kill(process, signal.SIGKILL)
        self._child.wait()

    def end(self) -> None:
        if self._child is None or self._child.poll() is not None:
            return
        self._child.terminate()
        try:
            self._child.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()

    def complaints(self) -> int:
        """Lines of its log that tell an error."""
        return sum('"level": "error"' in line for line in self._log.read_text("utf-8", "replace").splitlines())

    def _tail(self) -> str:
        return " | ".join(self._log.read_text("utf-8", "replace").splitlines()[-3:])


def _one_core() -> dict[str, str]:
    """One thread for numpy's products: the machine is shared with the clients."""
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    return {**os.environ, **{name: os.environ.get(name, "1") for name in names}}


# The run


@dataclass(slots=True)
class Watched:
    """The server over time: (seconds, bytes) of memory, its CPU, and how long it was away."""

    memory: list[tuple[float, int]] = field(default_factory=list)
    cpu: float = 0.0
    away: float | None = None

    def run(self, server: ServerProcess, load: ServerLoad, advance: Advance) -> None:
        """Look at it until the time is up; if it is to be killed, the time that it is away does not count."""
        started, looked, before = time.monotonic(), -_SAMPLE, tree_usage(server.pid).cpu
        while (passed := time.monotonic() - started) < load.seconds + (self.away or 0.0):
            if load.kill and self.away is None and passed >= load.seconds / 2:
                self.cpu += tree_usage(server.pid).cpu - before
                server.kill()
                server.start()
                self.away, before = time.monotonic() - started - passed, 0.0
            if passed - looked >= _SAMPLE:
                looked = passed
                self.memory.append((round(passed, 1), tree_usage(server.pid).resident))
            advance("load", int(min(passed, load.seconds) * 10), int(load.seconds * 10))
            time.sleep(_TICK)
        last = tree_usage(server.pid)
        self.cpu += last.cpu - before
        self.memory.append((round(passed, 1), last.resident))


def orders(server: ServerProcess, token: str, load: ServerLoad) -> list[Order]:
    """Clients dealt out to the processes in turn."""
    names = [f"client-{number:04}" for number in range(load.clients)]
    return [
        Order(
            port=server.port,
            token=token,
            workspace=WORKSPACE,
            clients=names[at :: load.processes],
            seed=load.seed + at,
            size=load.memories,
            writes_in=load.writes_in,
            k=load.k,
            patient=load.kill,
        )
        for at in range(min(load.processes, load.clients))
    ]


def _simulate(
    server: ServerProcess, token: str, load: ServerLoad, advance: Advance
) -> tuple[list[dict[str, Any]], list[str], Watched]:
    workers = [WorkerProcess("rmem.bench.server_clients", asdict(one)) for one in orders(server, token, load)]
    watched = Watched()
    try:
        while not all(worker.ready for worker in workers):
            time.sleep(_TICK)
        for worker in workers:
            worker.say("go")
        watched.run(server, load, advance)
        for worker in workers:
            worker.say("stop")
        until = time.monotonic() + _PATIENCE
        while not all(worker.ended for worker in workers) and time.monotonic() < until:
            time.sleep(_TICK)
        for worker in workers:
            worker.end()
        told = [worker.result() for worker in workers]
    finally:
        for worker in workers:
            worker.end()
    return [one for one in told if isinstance(one, dict)], [one for one in told if isinstance(one, str)], watched


# The figures


def _figures(results: Sequence[dict[str, Any]], failures: Sequence[str], watched: Watched) -> dict[str, Any]:
    clients = [client for one in results for client in one["clients"]]
    wall = max((one["wall_s"] for one in results), default=0.0)
    errors, cut_off = Counter[str](failures), Counter[str]()
    for client in clients:
        errors.update(client["errors"])
        cut_off.update(client["cut_off"])
    kinds = {kind: [seconds for client in clients for seconds in client[kind]] for kind in KINDS}
    everything = [seconds for durations in kinds.values() for seconds in durations]
    figures = {"all": call_figures(everything, wall)}
    figures |= {kind: call_figures(durations, wall) for kind, durations in kinds.items()}
    sizes = [size for _, size in watched.memory]
    half = sizes[len(sizes) // 2] if sizes else 0
    p99 = figures["all"].get("p99_ms", 0.0)
    return {
        "wall_s": round(wall, 3),
        "calls": figures,
        "errors": {"total": errors.total(), "told": dict(errors.most_common(10))},
        "cut_off": {"total": cut_off.total(), "told": dict(cut_off.most_common(10))},
        "away_s": None if watched.away is None else round(watched.away, 2),
        "cpu": {
            "server_s": round(watched.cpu, 2),
            "clients_s": round(sum(one["cpu_s"] for one in results), 2),
            "server_ms_per_call": round(1000 * watched.cpu / max(1, len(everything)), 3),
        },
        "rss": {
            "start_bytes": sizes[0] if sizes else 0,
            "half_bytes": half,
            "end_bytes": sizes[-1] if sizes else 0,
            "late_growth_bytes": sizes[-1] - half if sizes else 0,
            "samples": watched.memory,
        },
        "targets": {
            **TARGETS,
            "met": figures["all"]["per_s"] >= TARGETS["requests_per_s"] and p99 <= TARGETS["p99_ms"],
        },
    }


def call_figures(durations: list[float], wall: float) -> dict[str, Any]:
    """How many calls there were, and how long they took."""
    if not durations:
        return {"calls": 0, "per_s": 0.0}
    samples = Samples()
    samples.wall = samples.cpu = durations
    spread = samples.summary()["wall_ms"]
    return {
        "calls": len(durations),
        "per_s": round(len(durations) / wall, 1),
        **{f"{name}_ms": value for name, value in spread.items()},
        "max_ms": round(1000 * max(durations), 3),
    }


def _verified(server: ServerProcess, token: str, results: Sequence[dict[str, Any]], held: int) -> dict[str, Any]:
    """Are all acknowledged writes there, each once?"""
    kept = [(client["name"], call, key) for one in results for client in one["clients"] for call, key in client["kept"]]
    lost = asyncio.run(absent(server.port, token, WORKSPACE, kept))
    unsure = sum(
        number
        for one in results
        for client in one["clients"]
        for told, number in client["cut_off"].items()
        if told.startswith("remember")
    )
    extra = server.memories(token) - held - len(kept)
    return {
        "acknowledged": len(kept),
        "lost_writes": len(lost),
        "unacknowledged_writes": extra,
        "doubled_writes": max(0, extra - unsure),
    }


def healthy(report: dict[str, Any]) -> bool:
    """Whether nothing failed and nothing was lost; speed is another question."""
    return not (
        report["errors"]["total"] or report["lost_writes"] or report["doubled_writes"] or report["server_errors"]
    )
