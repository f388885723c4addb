"""What the client does when a server is slow, busy, gone or cut off, against a real HTTP server that misbehaves."""

from __future__ import annotations

import base64
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rmem import Client
from rmem import http_link as link
from rmem.errors import (
    ConfigError,
    ConstraintError,
    NoSuchTableError,
    RemoteError,
    SqlError,
    StatementTimeoutError,
    TableExistsError,
    TooManyRowsError,
)
from rmem.tables.remote import organisation_of

TOKEN = ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in (b"{}", b'{"OrgID": "acme"}', b"x"))
EMPTY = {"tables": [], "next_cursor": None}


class Misbehaving:
    """Answers requests as the script says, then with an empty list of tables; keeps what it was asked."""

    def __init__(self) -> None:
        self.script = []
        self.seen = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.seen.append((self.command, self.path, dict(self.headers), body, self.client_address))
                step = outer.script.pop(0) if outer.script else (200, EMPTY)
                if step == "hang up":
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                status, told, *more = step
                raw = told if isinstance(told, bytes) else json.dumps(told).encode()
                self.send_response(status)
                for name, value in (more[0] if more else {}).items():
                    self.send_header(name, value)
                if "Content-Length" not in (more[0] if more else {}):
                    self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)
                if more[1:]:
                    self.close_connection = True

            do_GET = do_POST = do_DELETE = answer

            def log_message(self, *_args) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def server():
    made = Misbehaving()
    yield made
    made.close()


@pytest.fixture
def client(server, monkeypatch):
    monkeypatch.setattr(link, "_FIRST_PAUSE", 0.001)
    with Client(token=TOKEN, api_url=f"{server.url}/base/", workspace_id="my space") as made:
        yield made


def test_what_is_sent(server, client):
    server.script = [(200, {"columns": [], "types": [], "rows": [], "row_count": 1})]
    client.query("INSERT INTO t VALUES ($1)", ["x"], timeout=2)
    method, path, headers, body, _ = server.seen[0]
    assert (method, path) == ("POST", "/base/workspaces/my%20space/tables/query")
    assert json.loads(body) == {"query": "INSERT INTO t VALUES ($1)", "params": ["x"], "timeout_ms": 2000}
    assert headers["Authorization"] == f"Bearer {TOKEN}"
    assert headers["X-Activeloop-Org-Id"] == "acme"
    assert headers["Idempotency-Key"]


def test_one_connection_serves_many_requests(server, client):
    for _ in range(3):
        client.list_tables()
    assert len({seen[4] for seen in server.seen}) == 1


@pytest.mark.parametrize(
    "trouble", ["hang up", (503, {"error": "busy"}), (429, {"error": "slow"}, {"Retry-After": "0"})]
)
def test_a_write_is_sent_again_with_its_key(server, client, trouble):
    server.script = [trouble, trouble, (200, {"table_name": "t", "row_count": 1, "created": True})]
    assert client.ingest("t", {"a": [1]})["row_count"] == 1
    assert len({seen[2]["Idempotency-Key"] for seen in server.seen}) == 1
    assert len({seen[3] for seen in server.seen}) == 1


def test_a_write_whose_answer_was_cut_off_is_sent_again(server, client):
    told = {"table_name": "t", "row_count": 1, "created": True}
    server.script = [(200, b'{"table', {"Content-Length": "99"}, "close"), (200, told)]
    assert client.ingest("t", {"a": [1]}) == told
    assert len({seen[2]["Idempotency-Key"] for seen in server.seen}) == 1


def test_a_write_that_still_runs_is_waited_for(server, client):
    running = (409, {"error": "a request with this Idempotency-Key is still running"}, {"Retry-After": "0"})
    server.script = [running, (200, {"table_name": "t", "row_count": 1, "created": True})]
    assert client.ingest("t", {"a": [1]})["row_count"] == 1


def test_an_idle_connection_that_was_closed_is_replaced(server, client):
    server.script = [(200, EMPTY, {}, "close")]
    client.list_tables()
    assert client.list_tables() == []


def test_giving_up_says_why(server, client):
    server.script = [(503, {"error": "the store is busy; try again"})] * 9
    with pytest.raises(RemoteError, match="the store is busy") as refused:
        client.list_tables()
    assert refused.value.status == 503
    assert len(server.seen) == 5


def test_a_server_that_is_not_there(monkeypatch):
    monkeypatch.setattr(link, "_FIRST_PAUSE", 0.001)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with Client(api_url=url) as client, pytest.raises(RemoteError, match="cannot be reached") as refused:
        client.list_tables()
    assert refused.value.status == 503


def test_a_server_that_does_not_answer_in_time():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with (
            Client(api_url=url, timeout=0.05) as client,
            pytest.raises(RemoteError, match=r"within 0\.05 s") as refused,
        ):
            client.list_tables()
    assert refused.value.status == 504


@pytest.mark.parametrize(
    ("status", "message", "error"),
    [
        (400, "the statement cannot be read", SqlError),
        (401, "the token has expired", RemoteError),
        (403, "this needs the role WRITE", RemoteError),
        (404, "table 't' does not exist in workspace 'w'", NoSuchTableError),
        (404, "there is no such workspace", RemoteError),
        (408, "the statement took too long", StatementTimeoutError),
        (409, "table 't' already exists", TableExistsError),
        (409, "a row breaks t_key", ConstraintError),
        (413, "the answer has more than 10 rows", TooManyRowsError),
        (413, "the body is too large", RemoteError),
        (500, "internal error", RemoteError),
    ],
)
def test_each_status_is_an_error_of_ours(server, client, status, message, error):
    server.script = [(status, {"error": message})]
    with pytest.raises(error, match=message) as refused:
        client.query("SELECT 1")
    assert type(refused.value) is error
    assert refused.value.status == status
    assert TOKEN not in str(refused.value)


@pytest.mark.parametrize("answer", [(200, b"<html>"), (302, b"", {"Location": "http://elsewhere/"}), (500, b"\xff")])
def test_what_is_no_answer_of_ours(server, client, answer):
    server.script = [answer]
    with pytest.raises(RemoteError):
        client.list_tables()


def lines(*values):
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def test_a_stream_that_breaks_off_is_noticed(server, client):
    head = {"columns": ["a"], "types": ["bigint"]}
    server.script = [(200, lines(head, [1], [2]))]
    with pytest.raises(RemoteError, match="broke off"):
        list(client.stream("SELECT a FROM t", 1))
    server.script = [(200, lines(head, [1], {"row_count": 2}))]
    with pytest.raises(RemoteError, match="broke off"):
        list(client.stream("SELECT a FROM t"))
    server.script = [(200, lines(head, [1], {"error": "the statement took too long"}))]
    with pytest.raises(RemoteError, match="took too long"):
        list(client.stream("SELECT a FROM t"))
    server.script = [(200, lines(head, [1]), {"Content-Length": "1000"}, "close")]
    with pytest.raises(RemoteError, match="broke off"):
        client.query("SELECT a FROM t")
    assert client.list_tables() == []


def test_the_organisation_of_a_token():
    assert organisation_of(TOKEN) == "acme"
    for other in (None, "", "opaque", "a.b.c", "a.e30.c", "a.W10.c"):
        assert organisation_of(other) is None


def test_a_token_with_a_line_break_is_refused_without_showing_it():
    with pytest.raises(ConfigError) as refused:
        Client(token="secret\nInjected: header", api_url="http://localhost")
    assert "secret" not in str(refused.value)
