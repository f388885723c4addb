"""The files in deploy/ with the real programs they are for, and a server behind a reverse proxy."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from running_server import eventually
from server_process import ALONE, Process, free_port

from rmem.cli.app import rmem

DEPLOY = Path(__file__).parents[2] / "deploy"


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


@pytest.fixture
def proxied(tmp_path):
    """The address of Caddy, in front of a server of its own, and the server's first token."""
    options = (*ALONE, "--root-path", "/memory", "--behind-proxy")
    server = Process(tmp_path / "data", *options).ready()
    port = free_port()
    environment = {
        **os.environ, "SITE": f"https://localhost:{port}", "HTTP_PORT": str(free_port()),
        "UPSTREAM": f"127.0.0.1:{server.port}", "XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path),
    }  # fmt: skip
    command = ["caddy", "run", "--adapter", "caddyfile", "--config", str(DEPLOY / "Caddyfile")]
    with open(tmp_path / "caddy.log", "wb") as log:
        caddy = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        yield f"https://localhost:{port}", server.first_token()
    finally:
        caddy.terminate()
        caddy.wait(30)
        server.end(signal.SIGTERM)


@needs("caddy")
def test_a_server_behind_caddy_answers_under_its_prefix(proxied):
    address, token = proxied
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=address, verify=False, headers=headers, timeout=60) as link:
        eventually(lambda: answers(f"{address}/memory/health"), 60)
        assert link.get("/memory/me").json()["member"] == "admin"
        made = link.post("/memory/workspaces/default/memories", json={"text": "through the proxy"})
        assert made.status_code == 201
        assert "openapi.json" in link.get("/memory/docs").text
        assert link.get("/memory/openapi.json").json()["servers"] == [{"url": "/memory"}]
        assert link.get("/memory/tokens/").headers["location"] == f"{address}/memory/tokens"
        assert link.get("/memory/metrics").status_code == link.get("/elsewhere").status_code == 404


@needs("systemd-analyze")
def test_the_unit_is_sound(tmp_path):
    program = Path(sys.executable).with_name("rmem")
    unit = (DEPLOY / "rmem.service").read_text().replace("/opt/rmem/bin/rmem", str(program))
    (tmp_path / "rmem.service").write_text(unit)
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / "rmem.service")],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize(
    ("options", "warned"),
    [((), False), (("--host", "0.0.0.0"), True), (("--host", "0.0.0.0", "--behind-proxy"), False)],
)
def test_listening_for_others_without_tls_is_warned_of(tmp_path, monkeypatch, options, warned):
    started = []
    monkeypatch.setattr("rmem.server.serve.serve", lambda settings, **_: started.append(settings))
    told = CliRunner().invoke(rmem, ["serve", "--data", str(tmp_path), *options])
    assert len(started) == 1, told.output
    assert ("cross the network in the clear" in told.stderr) == warned


def answers(url: str) -> bool:
    try:
        return httpx.get(url, verify=False).status_code == 200
    except httpx.TransportError:
        return False
