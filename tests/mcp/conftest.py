"""Real MCP servers: `rmem mcp` in a process of its own, and a real HTTP server."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "server"))  # for running_server

from mcp_clients import LEGACY, MODERN, Talk, clone
from running_server import Running

from remanence.server.settings import Limits, ServerSettings


@pytest.fixture(autouse=True)
def _nobody_at_home(tmp_path, monkeypatch):
    """Whoever runs the tests has a name in git; it is not theirs that memories carry."""
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)


@pytest.fixture
def server_with(tmp_path: Path) -> Iterator:
    """A function that starts a server with settings and limits of your own."""
    running: list[Running] = []

    def start(limits: Limits | None = None, **settings: object) -> Running:
        settings.setdefault("data", tmp_path / f"data-{len(running)}")
        running.append(Running(ServerSettings(limits=limits or Limits(), **settings)).start())
        return running[-1]

    yield start
    for one in running:
        one.stop()


@pytest.fixture
def server(server_with) -> Running:
    return server_with()


@pytest.fixture(scope="module")
def lasting(tmp_path_factory) -> Iterator[Running]:
    """A server that the tests of a module share, each in a workspace of its own."""
    running = Running(ServerSettings(data=tmp_path_factory.mktemp("lasting"))).start()
    yield running
    running.stop()


@pytest.fixture(params=["stdio", LEGACY, MODERN])
def talk(request, tmp_path) -> Talk:
    """One who talks to a server in the repository github.com/acme/etl: over standard input and output, and over HTTP
    in the protocol with and without a handshake."""
    if request.param == "stdio":
        return Talk.stdio(clone(tmp_path, "ann"))
    return _over_http(request, request.param)


@pytest.fixture
def over_http(request) -> Talk:
    """The same over HTTP alone, for what does not depend on the transport."""
    return _over_http(request, MODERN)


def _over_http(request, mode: str) -> Talk:
    server = request.getfixturevalue("lasting")
    workspace = f"w{sha256(request.node.nodeid.encode()).hexdigest()[:12]}"
    token = server.token_for("acme", workspace, "WRITE", member=f"ann-{workspace}@acme.io")
    return Talk.http(server, workspace, token, mode=mode)
