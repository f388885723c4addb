"""`python -m rmem.bench.server_clients`: the clients of `rmem bench server`, in a process of their own. Each has
one connection and calls again as soon as it has its answer. The HTTP is just enough for our own server, so that it
costs little of the machine that both share. Orders come as a line of JSON on stdin, the figures go out as a line."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from .load_worker import QUESTIONS, TEXTS, is_marked, marked

KINDS = ("recall", "remember")
_WAIT = 60.0  # seconds for an answer
_BETWEEN = 0.05  # seconds between two attempts to connect


@dataclass(slots=True)
class Order:
    """What one process of clients is to do."""

    port: int
    token: str
    workspace: str
    clients: list[str]
    seed: int
    size: int
    writes_in: int = 5
    """One call in so many is a remember."""
    k: int = 5
    patient: bool = False
    """Whether the server is to be killed: calls that break off are counted by themselves, and tried no more."""


@dataclass(slots=True)
class Client:
    """What one client did: the seconds of its calls, what failed, and the ids of what was acknowledged."""

    name: str
    recall: list[float] = field(default_factory=list)
    remember: list[float] = field(default_factory=list)
    kept: list[tuple[int, str]] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    cut_off: Counter[str] = field(default_factory=Counter)

    def told(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}  # asdict would count a Counter's pairs


class Link(asyncio.Protocol):
    """One connection: requests go out, and each waits for its answer."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._held = b""
        self._waiting: asyncio.Future[tuple[int, bytes]] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(ConnectionResetError("the connection was lost"))

    def data_received(self, data: bytes) -> None:
        self._held += data
        end = self._held.find(b"\r\n\r\n")
        if end < 0 or self._waiting is None:
            return
        head = self._held[:end].lower()
        at = head.find(b"content-length:")
        length = 0 if at < 0 else int(head[at + 15 :].partition(b"\r\n")[0])
        if len(self._held) < end + 4 + length:
            return
        status, body = int(head[9:12]), self._held[end + 4 : end + 4 + length]
        self._held = self._held[end + 4 + length :]
        if not self._waiting.done():
            self._waiting.set_result((status, body))

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        if self._transport is None:
            raise ConnectionResetError("the connection was lost")
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await asyncio.wait_for(self._waiting, _WAIT)

    @property
    def open(self) -> bool:
        return self._transport is not None

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


async def connected(port: int) -> Link:
    _, link = await asyncio.get_running_loop().create_connection(Link, "127.0.0.1", port)
    return link


def request(method: str, path: str, token: str, document: Any = None) -> bytes:
    """A request as it goes over the wire."""
    body = b"" if document is None else json.dumps(document).encode()
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode("ascii") + body


class _Work:
    """What the clients of one process share."""

    def __init__(self, order: Order) -> None:
        from rmem.testing.synthetic import synthetic_memories, synthetic_questions

        self.order = order
        self.stopped = False
        self.path = f"/workspaces/{quote(order.workspace, safe='')}"
        self.texts = [memory["text"] for memory in synthetic_memories(TEXTS, order.seed + 1)]
        self.questions = [
            request("POST", f"{self.path}/recall", order.token, {"query": question, "k": order.k})
            for question in synthetic_questions(QUESTIONS, order.seed, max(100, order.size))
        ]

    async def run(self, client: Client, number: int) -> None:
        link: Link | None = None
        call = number
        while not self.stopped:
            if link is None or not link.open:
                link = await self._connect(client)
                continue
            call += 1
            kind = "remember" if call % self.order.writes_in == 0 else "recall"
            await self._call(client, link, kind, call, number)
        if link is not None:
            link.close()

    async def _connect(self, client: Client) -> Link | None:
        try:
            return await connected(self.order.port)
        except OSError as error:
            (client.cut_off if self.order.patient else client.errors)[f"{type(error).__name__} at connecting"] += 1
            await asyncio.sleep(_BETWEEN)
            return None

    async def _call(self, client: Client, link: Link, kind: str, call: int, number: int) -> None:
        started = time.perf_counter()
        try:
            if kind == "recall":
                at = (number * 37 + call) % len(self.questions)
                status, body = await link.ask(self.questions[at])
            else:
                text = marked(self.texts[(number * 41 + call) % len(self.texts)], client.name, call)
                session = f"{client.name}-{call // 100}"
                document = {"text": text, "agent": client.name, "type": "observation", "session": session}
                status, body = await link.ask(request("POST", f"{self.path}/memories", self.order.token, document))
        except (OSError, TimeoutError) as error:
            link.close()
            (client.cut_off if self.order.patient else client.errors)[f"{kind}: {type(error).__name__}"] += 1
            return
        passed = time.perf_counter() - started
        if status not in (200, 201):
            client.errors[f"{kind}: {status} {body[:200].decode('utf-8', 'replace')}"] += 1
        elif kind == "recall":
            client.recall.append(passed)
        else:
            client.remember.append(passed)
            client.kept.append((call, json.loads(body)["ids"][0]))


async def run(order: Order, ready: Callable[[], None], wait: Callable[[], object]) -> dict[str, Any]:
    """Let the clients call from when they are `ready` until `wait` returns."""
    work = _Work(order)
    clients = [Client(name) for name in order.clients]
    ready()
    started, cpu = time.monotonic(), time.process_time()
    calling = [asyncio.create_task(work.run(client, number)) for number, client in enumerate(clients)]
    await asyncio.to_thread(wait)
    work.stopped = True
    await asyncio.gather(*calling)
    wall, cpu = time.monotonic() - started, time.process_time() - cpu
    return {"clients": [client.told() for client in clients], "wall_s": wall, "cpu_s": cpu}


async def absent(port: int, token: str, workspace: str, kept: list[tuple[str, int, str]], links: int = 8) -> list[str]:
    """The ids of (client, call, id) that the server does not answer with the text that was sent."""
    waiting, missing = list(kept), list[str]()
    path = f"/workspaces/{quote(workspace, safe='')}/memories"

    async def look(link: Link) -> None:
        while waiting:
            name, call, key = waiting.pop()
            status, body = await link.ask(request("GET", f"{path}/{quote(key, safe='')}", token))
            if status != 200 or not is_marked(json.loads(body)["text"], name, call):
                missing.append(key)

    opened = [await connected(port) for _ in range(links)]
    await asyncio.gather(*(look(link) for link in opened))
    for link in opened:
        link.close()
    return missing


async def answer_of(port: int, method: str, path: str, token: str, document: Any = None) -> tuple[int, bytes]:
    """One call on a connection of its own."""
    link = await connected(port)
    try:
        return await link.ask(request(method, path, token, document))
    finally:
        link.close()


def main() -> None:
    order = Order(**json.loads(sys.stdin.readline()))

    def ready() -> None:
        print("ready", flush=True)
        sys.stdin.readline()  # all start together

    print(json.dumps(asyncio.run(run(order, ready, sys.stdin.readline))), flush=True)


if __name__ == "__main__":
    main()
