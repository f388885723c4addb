"""A real embeddings server on a free port, told beforehand how to answer each request."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answer:
    """What the server sends: a body (JSON, or bytes as they are) after an optional delay."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0


def embeddings(request: dict[str, Any]) -> list[dict[str, Any]]:
    """One recognisable vector for each text: its length, and one."""
    return [
        {"object": "embedding", "index": place, "embedding": [float(len(text)), 1.0]}
        for place, text in enumerate(request["input"])
    ]


class EmbeddingServer:
    """Answers with `script` in turn, then with proper embeddings; keeps what it was asked."""

    def __init__(self) -> None:
        self.script: list[Answer | Callable[[dict[str, Any]], Answer]] = []
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.requests.append(request)
                server.headers.append(dict(self.headers))
                server.paths.append(self.path)
                step = server.script.pop(0) if server.script else Answer()
                answer = step(request) if callable(step) else step
                time.sleep(answer.delay)
                body = {"data": embeddings(request)} if answer.body is None else answer.body
                raw = body if isinstance(body, bytes) else json.dumps(body).encode()
                try:
                    self.send_response(answer.status)
                    for name, value in answer.headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(raw)))
                    self.end_headers()
                    self.wfile.write(raw)
                except ConnectionError:
                    pass  # the client has given up, as some tests want

            def log_message(self, *_args: Any) -> None:
                pass

        return Handler
