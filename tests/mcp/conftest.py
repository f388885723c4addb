"""Real MCP servers: `rmem mcp` in a process of its own, and a real HTTP server."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

import pytest
from mcp_clients import LEGACY, MODERN, Talk, clone
from running_server import Running

from rmem.server.settings import ServerSettings


@pytest.fixture(autouse=True)
def _nobody_at_home(tmp_path, monkeypatch):
    """Whoever runs the tests has a name in git; it is not theirs that memories carry."""
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)


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
