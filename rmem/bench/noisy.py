"""`rmem bench server --noisy`: how long one organisation waits for /health and for recalls while another keeps a real
`rmem serve` as busy as it can: with recalls, statements made to run for ever, imports and long answers."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from . import machine
from .load import Advance, WorkerProcess
from .load_worker import QUESTIONS
from .server import FORMAT, WORKSPACE, ServerProcess, call_figures
from .server_clients import answer_of, connected, request

TARGETS = {"health_p99_ms": 100.0, "recall_p99_ms": 1000.0}
QUIET = "quiet"
_PAUSE = 0.05  # seconds between two calls of the quiet organisation
_PATIENCE = 30.0
_TABLES = f"/workspaces/{WORKSPACE}/tables"
_HOSTILE: tuple[tuple[str, list[Any]], ...] = (
    ("SELECT " + "ARRAY[" * 30 + "1" + "]" * 30, []),
    ("SELECT " + " ".join(f"$a{number}$" for number in range(10_000)), []),
    ("SELECT $1 ILIKE $2", ["ab" * 50_000, "%a_b" * 500 + "c"]),
    ("SELECT length(('[' || repeat('1,', 20000000) || '1]')::jsonb::text)", []),
    ("SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b", []),
    ("SELECT 1 WHERE 1 IN (" + ",".join("1" * 120_000) + ")", []),
    ("SELECT cardinality(string_to_array(repeat('a,', 1900000), ','))", []),
)


@dataclass(frozen=True, slots=True)
class NoisyLoad:
    """What the noisy organisation does, by connections at once."""

    seconds: float = 60.0
    memories: int = 10_000
    """Synthetic memories of each organisation."""
    recalls: int = 32
    statements: int = 16
    """Statements made to run for long, with the server's own time limit and with a short one."""
    imports: int = 4
    answers: int = 4
    seed: int = 0


def run(load: NoisyLoad, *, folder: Path | None = None, advance: Advance) -> dict[str, Any]:
    """The whole report, as `--json` prints it."""
    parent = folder or machine.disk_folder()
    facts = machine.facts(parent)
    started = datetime.now(UTC)
    with TemporaryDirectory(prefix="rmem-noisy-", dir=parent) as temporary:
        data = Path(temporary)
        noisy, quiet = _prepared(data, load, advance)
        server = ServerProcess(data, None)
        worker = None
        try:
            server.start()
            server.warm(noisy)
            server.warm(quiet)
            alone, _ = asyncio.run(_measured(server.port, quiet, min(5.0, load.seconds), load, lambda *_: None))
            worker = WorkerProcess("rmem.bench.noisy", {"port": server.port, "token": noisy, "load": asdict(load)})
            while not worker.ready:
                time.sleep(0.1)
            worker.say("go")
            found, errors = asyncio.run(_measured(server.port, quiet, load.seconds, load, advance))
            worker.say("stop")
            until = time.monotonic() + _PATIENCE
            while not worker.ended and time.monotonic() < until:
                time.sleep(0.1)
            worker.end()
            told = worker.result()
        finally:
            if worker is not None:
                worker.end()
            server.end()
    figures = {kind: call_figures(durations, load.seconds) for kind, durations in found.items()}
    met = all(figures[kind].get("p99_ms", float("inf")) <= TARGETS[f"{kind}_p99_ms"] for kind in found)
    return {
        "format": FORMAT,
        "date": started.isoformat(timespec="seconds"),
        "machine": facts,
        "load": asdict(load),
        "load_average_at_end": round(os.getloadavg()[0], 2),
        "alone": {kind: call_figures(durations, 5.0) for kind, durations in alone.items()},
        "calls": figures,
        "errors": {"total": errors.total(), "told": dict(errors.most_common(10))},
        "noise": told if isinstance(told, dict) else {"failed": told},
        "targets": {**TARGETS, "met": met and not errors},
    }


def _prepared(data: Path, load: NoisyLoad, advance: Advance) -> tuple[str, str]:
    """A data folder with two organisations that have memories: tokens of the noisy one and of the quiet one."""
    from rmem.server.app import close, open_service
    from rmem.server.control import Role
    from rmem.server.settings import ServerSettings
    from rmem.testing.synthetic import synthetic_memories

    told: list[str] = []
    service = open_service(ServerSettings(data=data), on_first_token=told.append)
    try:
        control = service.control
        (noisy,) = control.organizations()
        quiet = control.create_organization(QUIET)
        control.create_workspace(quiet.id, WORKSPACE)
        control.set_member(quiet.id, "reader", Role.ADMIN)
        token, _ = service.tokens.issue(quiet.id, "reader", days=1)
        for number, org in enumerate((noisy, quiet)):
            place = control.workspace(org.id, WORKSPACE)
            assert place is not None
            space = service.spaces.use(org.id, place.id, place.name)
            space.brain.remember_many(
                synthetic_memories(load.memories, load.seed + number),
                on_progress=lambda done, _: advance("fill", done, load.memories),
            )
            service.spaces.leave(space)
    finally:
        close(service)
    return told[0], token


async def _measured(
    port: int, token: str, seconds: float, load: NoisyLoad, advance: Advance
) -> tuple[dict[str, list[float]], Counter[str]]:
    """The seconds of the quiet organisation's calls: in turn /health and a recall, one at a time."""
    from rmem.testing.synthetic import synthetic_questions

    questions = list(synthetic_questions(QUESTIONS, load.seed, max(100, load.memories)))
    found: dict[str, list[float]] = {"health": [], "recall": []}
    errors: Counter[str] = Counter()
    link = await connected(port)
    begun = time.monotonic()
    while (passed := time.monotonic() - begun) < seconds:
        advance("load", int(passed * 10), int(seconds * 10))
        document = {"query": questions[len(found["recall"]) % len(questions)], "k": 5}
        for kind, call in (
            ("health", request("GET", "/health", token)),
            ("recall", request("POST", f"/workspaces/{WORKSPACE}/recall", token, document)),
        ):
            started = time.perf_counter()
            try:
                status, body = await link.ask(call)
            except (OSError, TimeoutError) as error:
                errors[f"{kind}: {type(error).__name__}"] += 1
                link.close()
                link = await connected(port)
                continue
            found[kind].append(time.perf_counter() - started)
            if status != 200:
                errors[f"{kind}: {status} {body[:100].decode('utf-8', 'replace')}"] += 1
            await asyncio.sleep(_PAUSE)
    link.close()
    return found, errors


# The noise, in a process of its own


class _Noise:
    def __init__(self, port: int, token: str, load: NoisyLoad) -> None:
        from rmem.testing.synthetic import synthetic_memories, synthetic_questions

        self._port, self._token, self.stopped = port, token, False
        self.statuses: Counter[str] = Counter()
        self._recalls = [
            self._request(f"/workspaces/{WORKSPACE}/recall", {"query": question, "k": 50, "explain": True})
            for question in synthetic_questions(QUESTIONS, load.seed, max(100, load.memories))
        ]
        texts = [{"text": memory["text"]} for memory in synthetic_memories(1000, load.seed + 7)]
        rows = {"columns": {"n": list(range(50_000)), "t": [f"some text of row {n}" for n in range(50_000)]}}
        self._imports = [
            self._request(f"/workspaces/{WORKSPACE}/memories", texts[:100]),
            self._request(f"/workspaces/{WORKSPACE}/memories", [{**one, "text": one["text"] * 9} for one in texts]),
            self._request(f"{_TABLES}/rows/ingest", rows),
        ]
        self._statements = [
            self._request(f"{_TABLES}/query", {"query": query, "params": params, **limit})
            for query, params in _HOSTILE
            for limit in ({}, {"timeout_ms": 1000})
        ]
        answers = "SELECT a AS n, repeat('x', 500) AS t FROM generate_series(1, 10000) a"
        self._answers = [self._request(f"{_TABLES}/query", {"query": answers})]

    def _request(self, path: str, document: Any) -> bytes:
        return request("POST", path, self._token, document)

    async def prepare(self) -> None:
        """Make the table that rows are imported into."""
        table = {"table_name": "rows", "table_schema": {"n": "BIGINT", "t": "TEXT"}}
        await answer_of(self._port, "POST", _TABLES, self._token, table)

    def calling(self, load: NoisyLoad) -> list[asyncio.Task[None]]:
        kinds = (
            ("recall", self._recalls, load.recalls),
            ("statement", self._statements, load.statements),
            ("import", self._imports, load.imports),
            ("answer", self._answers, load.answers),
        )
        return [
            asyncio.create_task(self._call(kind, requests, number))
            for kind, requests, count in kinds
            for number in range(count)
        ]

    async def _call(self, kind: str, requests: Sequence[bytes], number: int) -> None:
        while not self.stopped:
            link = await connected(self._port)
            try:
                while not self.stopped:
                    status, _ = await link.ask(requests[number % len(requests)])
                    self.statuses[f"{kind} {status}"] += 1
                    number += 1
            except (OSError, TimeoutError) as error:
                self.statuses[f"{kind} {type(error).__name__}"] += 1
            finally:
                link.close()


async def _make(order: dict[str, Any]) -> dict[str, Any]:
    load = NoisyLoad(**order["load"])
    noise = _Noise(order["port"], order["token"], load)
    await noise.prepare()
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    calling = noise.calling(load)
    await asyncio.to_thread(sys.stdin.readline)
    noise.stopped = True
    for task in calling:
        task.cancel()
    await asyncio.gather(*calling, return_exceptions=True)
    return {"answers": dict(sorted(noise.statuses.items()))}


def main() -> None:
    print(json.dumps(asyncio.run(_make(json.loads(sys.stdin.readline())))), flush=True)


if __name__ == "__main__":
    main()
