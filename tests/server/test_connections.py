"""What connections may cost: headers without end, requests that never arrive, answers that nobody reads."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from server_process import ALONE, Process


def start(data: Path, *options: str, **settings: float) -> Process:
    (data / "server.toml").write_text("".join(f"{name} = {value}\n" for name, value in settings.items()))
    return Process(data, *options).ready()


@pytest.fixture
def serving(tmp_path: Path) -> Iterator:
    running: list[Process] = []

    def serve(*options: str, **settings: float) -> Process:
        running.append(start(tmp_path, *options, **settings))
        return running[-1]

    yield serve
    for one in running:
        if one.child.returncode is None:
            one.end(signal.SIGKILL)


@pytest.fixture(scope="module")
def usual(tmp_path_factory) -> Iterator[Process]:
    """A server as it is by default, for all tests that leave it as it was."""
    server = start(tmp_path_factory.mktemp("usual"), *ALONE)
    yield server
    server.end(signal.SIGKILL)


@pytest.fixture(scope="module")
def hurried(tmp_path_factory) -> Iterator[Process]:
    """The same for tests of requests that do not arrive."""
    server = start(tmp_path_factory.mktemp("hurried"), *ALONE, head_seconds=3, body_seconds=1)
    yield server
    server.end(signal.SIGKILL)


def connect(server: Process) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=30)


def rest_of(link: socket.socket) -> bytes:
    """All that comes until the server closes the connection."""
    parts = []
    while True:
        try:
            part = link.recv(65536)
        except ConnectionResetError:
            part = b""
        if not part:
            return b"".join(parts)
        parts.append(part)


def error_of(answer: bytes) -> str:
    return json.loads(answer.partition(b"\r\n\r\n")[2])["error"]


@pytest.mark.parametrize("form", ["one header", "many headers", "the address", "trailers"])
def test_headers_are_bounded(usual, form):
    start = b"GET /health HTTP/1.1\r\nHost: x\r\n"
    piece = {
        "one header": b"x" * 65536,
        "many headers": b"a: b\r\n" * 10_000,
        "the address": b"x" * 65536,
        "trailers": b"a: b\r\n" * 10_000,
    }[form]
    if form == "one header":
        start += b"X-Long: "
    elif form == "the address":
        start = b"GET /"
    elif form == "trailers":
        start = b"POST /health HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
    with connect(usual) as link:
        link.sendall(start)
        sent = 0
        try:
            while sent < 20_000_000:
                sent += link.send(piece)
        except (ConnectionResetError, BrokenPipeError):
            pass
        assert sent < 20_000_000
    if form == "trailers":
        return  # the request was answered before they came
    with connect(usual) as link:
        link.sendall(start + piece + piece[:10_000])
        answer = rest_of(link)
        assert answer.startswith(b"HTTP/1.1 431")
        assert error_of(answer) == "the headers of a request may have at most 65,536 bytes"
    assert httpx.get(f"{usual.url}/health", headers={"X-Long": "x" * 60_000}).status_code == 200


def test_half_open_connections_are_closed_and_hold_nobody_up(hurried):
    halves = [connect(hurried) for _ in range(600)]
    try:
        for link in halves[:300]:
            link.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        started = time.monotonic()
        assert httpx.get(f"{hurried.url}/health").status_code == 200
        assert time.monotonic() - started < 2
        told = [rest_of(link) for link in halves]
        assert time.monotonic() - started < 20
        assert all(one.startswith(b"HTTP/1.1 408") for one in told)
        assert error_of(told[0]) == "the headers of a request must arrive within 3 seconds"
    finally:
        for link in halves:
            link.close()
    assert httpx.get(f"{hurried.url}/health").status_code == 200


def test_headers_that_come_a_byte_at_a_time_are_cut_off(hurried):
    with connect(hurried) as link:
        link.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nX: ")
        started = time.monotonic()
        try:
            while time.monotonic() - started < 10:
                link.sendall(b"x")
                time.sleep(0.1)
        except (ConnectionResetError, BrokenPipeError):
            pass
        assert time.monotonic() - started < 5


def test_a_body_that_does_not_arrive_is_cut_off(hurried):
    token = hurried.first_token()
    head = (
        f"POST /workspaces HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
    )
    with connect(hurried) as link:
        link.sendall(head.encode() + b'Content-Length: 500\r\n\r\n{"name"')
        answer = rest_of(link)
    assert answer.startswith(b"HTTP/1.1 408")
    assert error_of(answer) == "the body of a request must arrive within 1 seconds"


def test_bodies_that_trickle_in_give_their_places_back(serving):
    server = serving(*ALONE, "--no-auth", head_seconds=2, body_rate=1000)
    host = f"Host: 127.0.0.1:{server.port}\r\n".encode()
    head = b"POST /workspaces HTTP/1.1\r\n" + host + b"Content-Type: application/json\r\n"
    slow = [connect(server) for _ in range(300)]  # more than an organisation may have at once
    try:
        for link in slow:
            link.sendall(head + b"Content-Length: 5000\r\n\r\n{")
        until, refused = time.monotonic() + 15, 0
        while httpx.get(f"{server.url}/me").status_code == 429:
            refused += 1
            assert time.monotonic() < until
            for link in slow:
                with suppress(OSError):
                    link.sendall(b" ")
            time.sleep(0.1)
        assert refused
        with connect(server) as steady:  # 5 s, at a third more than what is asked for
            steady.sendall(head + b"Content-Length: 6700\r\n\r\n")
            for _ in range(50):
                steady.sendall(b" " * 134)
                time.sleep(0.1)
            assert steady.recv(65536).startswith(b"HTTP/1.1 400")
    finally:
        for link in slow:
            link.close()


def test_a_newcomer_gets_the_place_of_the_connection_that_waited_longest(serving):
    server = serving(*ALONE, connections=20)
    waiting = [connect(server) for _ in range(60)]
    try:
        assert httpx.get(f"{server.url}/health").status_code == 200
        waiting[0].settimeout(5)
        assert rest_of(waiting[0]) == b""
    finally:
        for link in waiting:
            link.close()


def test_the_server_ends_in_time_whatever_runs(serving):
    server = serving(shutdown_seconds=1)
    token = server.first_token()
    client = httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {token}"}, timeout=60)
    rows = {"columns": {"n": list(range(3000)), "body": ["x" * 2000] * 3000}}
    client.post("/workspaces/default/tables/t/ingest", json=rows).raise_for_status()
    slow = {"query": "SELECT count(*) FROM t a, t b, t c WHERE a.n + b.n + c.n < 0"}
    wide = {"query": "SELECT a.body, b.body FROM t a, t b"}
    statement = threading.Thread(target=lambda: _ignore(lambda: client.post(f"{TABLES}/query", json=slow)))
    statement.start()
    stream = httpx.Client(base_url=server.url, headers=client.headers, timeout=60)
    opened = stream.stream("POST", f"{TABLES}/query", json=wide, headers={"Accept": "application/x-ndjson"})
    with opened as answer:
        next(answer.iter_raw())  # and reads no further
        with connect(server) as half:
            half.sendall(b"GET /health HTTP/1.1\r\n")
            time.sleep(0.5)
            started = time.monotonic()
            server.end(signal.SIGTERM)
            assert time.monotonic() - started < 1 + 5 + 2
            assert server.code == 0
    statement.join()
    client.close()
    stream.close()


TABLES = "/workspaces/default/tables"


def _ignore(call) -> None:
    try:
        call()
    except httpx.HTTPError:
        pass
