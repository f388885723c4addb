"""`rmem serve` as a process, and the commands around it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from running_server import eventually
from server_process import ALONE, Process

from rmem.cli.app import rmem
from rmem.errors import ConfigError
from rmem.server.app import ROUTERS, close, create_app
from rmem.server.settings import Limits, ServerSettings


@pytest.fixture
def serving(tmp_path: Path) -> Iterator:
    running: list[Process] = []

    def start(*options: str, data: str = "data") -> Process:
        running.append(Process(tmp_path / data, *options))
        return running[-1].ready()

    yield start
    for one in running:
        if one.child.returncode is None:
            one.end(signal.SIGKILL)


def client(process: Process, token: str) -> httpx.Client:
    return httpx.Client(base_url=process.url, headers={"Authorization": f"Bearer {token}"}, timeout=30)


def test_a_server_answers_its_first_request_without_building_its_routes_again(tmp_path):
    app = create_app(ServerSettings(data=tmp_path / "data"))
    ready = {id(route) for route in app.routes}
    assert all(id(route) in ready for router in ROUTERS for route in router.routes)
    close(app.state.service)


def test_kill_loses_no_acknowledged_write(serving, server_with, tmp_path):
    first = serving()
    token = first.first_token()
    acknowledged: list[str] = []

    def write(number: int) -> None:
        with client(first, token) as link:
            for turn in range(10_000):
                try:
                    text = f"writer {number} turn {turn}"
                    answer = link.post("/workspaces/default/memories", json={"text": text})
                except httpx.HTTPError:
                    return
                if answer.status_code == 201:
                    acknowledged.append(answer.json()["ids"][0])

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for one in writers:
        one.start()
    until = time.monotonic() + 60
    while len(acknowledged) < 60 and time.monotonic() < until:
        time.sleep(0.01)
    first.end(signal.SIGKILL)
    for one in writers:
        one.join()
    assert len(acknowledged) >= 60
    link = server_with(data=tmp_path / "data").client(token)
    for key in acknowledged:
        assert link.get(f"/workspaces/default/memories/{key}").status_code == 200


def test_sigterm_finishes_what_runs_and_logs_are_json(serving):
    server = serving(*ALONE, "--shutdown-seconds", "20")
    token = server.first_token()
    with client(server, token) as link:
        link.post("/workspaces/default/memories", json={"text": "before"}).raise_for_status()

        def body() -> Iterator[bytes]:
            yield b'{"text": "slow'
            started.set()
            time.sleep(0.5)
            yield b'ly sent"}'

        started, answers = threading.Event(), []
        kind = {"Content-Type": "application/json", "X-Request-Id": "slow-one"}
        slow = threading.Thread(
            target=lambda: answers.append(link.post("/workspaces/default/memories", content=body(), headers=kind))
        )
        slow.start()
        started.wait(30)
        log = server.end(signal.SIGTERM)
        slow.join()
    assert server.code == 0
    assert answers[0].status_code == 201
    assert any(line.get("id") == "slow-one" and line["status"] == 201 for line in log)
    assert all("time" in line and "level" in line for line in log)
    assert token not in json.dumps(log)


def test_warnings_of_json_output_are_json(tmp_path):
    server = Process(tmp_path / "data", *ALONE, "--no-auth").ready()
    first = server.end(signal.SIGTERM)[0]
    assert (first["level"], first["message"][:27]) == ("warning", "no tokens are asked for; ev")


def test_a_busy_port_is_told_in_one_line_before_anything_is_made(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = str(busy.getsockname()[1])
        command = [sys.executable, "-m", "rmem", "serve", "--data", str(tmp_path / "x"), "--port", port, *ALONE]
        done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    assert done.returncode == 2
    assert done.stdout == ""  # no token of a server that never was
    (line,) = done.stderr.splitlines()
    assert f"nothing can listen at 127.0.0.1:{port}: Address already in use" in line
    assert "--port" in line
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("host", ["no-such-host.invalid", "192.0.2.7"])
def test_an_address_of_another_machine_is_told_in_one_line(host, tmp_path):
    command = [
        sys.executable,
        "-m",
        "rmem",
        "serve",
        "--data",
        str(tmp_path / "x"),
        "--host",
        host,
        "--port",
        "0",
        *ALONE,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    assert done.returncode == 2
    assert f"nothing can listen at {host}:0: " in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


# The commands


@pytest.fixture
def run(tmp_path: Path):
    def call(*arguments: str, code: int = 0, **more) -> object:
        result = CliRunner().invoke(rmem, [*arguments, "--data", str(tmp_path / "data"), "--json"], **more)
        assert result.exit_code == code, result.stderr
        return json.loads(result.stdout if code == 0 else result.stderr)

    return call


def test_the_commands_make_what_the_server_then_knows(run, server_with, tmp_path):
    org = run("org", "create", "acme")
    run("workspace", "create", "lab", "--org", "acme")
    run("member", "add", "alice", "write", "--org", "acme", "--workspace", "lab")
    made = run("token", "create", "alice", "--org", "acme", "--days", "3", "--label", "laptop")
    server = server_with(data=tmp_path / "data")
    assert server.first_token == ""  # somebody is there already
    alice = server.client(made["token"])
    assert alice.get("/me").json()["organization"] == {"id": org["id"], "name": "acme"}
    assert [one["name"] for one in alice.get("/workspaces").json()["workspaces"]] == ["lab"]
    (listed,) = run("token", "list", "--org", "acme")["tokens"]
    assert (listed["id"], listed["member"], listed["state"], listed["label"]) == (
        made["id"], "alice", "valid", "laptop",
    )  # fmt: skip
    run("token", "revoke", made["id"], "--org", "acme")
    until = time.monotonic() + 10
    while alice.get("/me").status_code == 200:
        assert time.monotonic() < until
        time.sleep(0.05)
    assert alice.get("/me").json() == {"error": "the token was revoked"}


def test_a_lost_first_token_is_replaced_on_the_machine_of_the_server(run, server_with, tmp_path):
    server = server_with(data=tmp_path / "data")
    fresh = server.client(run("token", "create", "admin")["token"])
    assert fresh.get("/me").json()["role"] == "ADMIN"
    (lost,) = (one["id"] for one in run("token", "list")["tokens"] if one["label"] == "first start")
    run("token", "revoke", lost)
    eventually(lambda: server.client(server.first_token).get("/me").status_code == 401)
    assert fresh.get("/me").status_code == 200


def test_lists_and_removals(run):
    run("org", "create", "acme")
    assert [one["name"] for one in run("org", "list")["organizations"]] == ["acme"]
    run("workspace", "create", "lab", "--org", "acme")
    assert [one["name"] for one in run("workspace", "list", "--org", "acme")["workspaces"]] == ["default", "lab"]
    run("member", "add", "bob", "READ", "--org", "acme")
    assert [(one["member"], one["role"]) for one in run("member", "list", "--org", "acme")["members"]] == [
        ("bob", "READ")
    ]
    assert run("member", "remove", "bob", "--org", "acme") == {"removed": "bob"}
    assert run("workspace", "delete", "lab", "--org", "acme", "--yes") == {"deleted": "lab"}
    assert [one["name"] for one in run("workspace", "list", "--org", "acme")["workspaces"]] == ["default"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("token", "create", "nobody"), "rmem member add nobody"),
        (("token", "list", "--org", "globex"), "known: default"),
        (("token", "revoke", "x"), "rmem token list"),
        (("member", "remove", "nobody"), "no role"),
        (("member", "add", "x", "read", "--workspace", "nope"), "no workspace"),
        (("workspace", "create", "a b"), "letters"),
        (("workspace", "delete", "nope", "--yes"), "no workspace"),
        (("org", "create", "default"), "already exists"),
        (("token", "create", "admin", "--days", "0"), "days"),
    ],
)
def test_mistakes_are_told(run, arguments, told):
    run("org", "create", "default")
    run("member", "add", "admin", "admin")
    assert told in run(*arguments, code=2)["error"]["message"]


def test_looking_at_a_folder_that_is_not_there_makes_nothing(run, tmp_path):
    assert "rmem serve" in run("org", "list", code=4)["error"]["message"]
    assert not (tmp_path / "data").exists()


def test_people_see_tables(tmp_path):
    data = ["--data", str(tmp_path / "data")]
    CliRunner().invoke(rmem, ["org", "create", "acme", *data])
    CliRunner().invoke(rmem, ["member", "add", "bob", "read", "--org", "acme", *data])
    made = CliRunner().invoke(rmem, ["token", "create", "bob", "--org", "acme", *data])
    assert made.stdout.count(".") == 2
    assert len(made.stdout.splitlines()) == 1
    assert "shown this once" in made.stderr
    shown = CliRunner().invoke(rmem, ["token", "list", "--org", "acme", *data]).stdout
    assert shown.splitlines()[0].split() == ["ID", "MEMBER", "ROLE", "STATE", "MADE", "EXPIRES", "LABEL"]
    assert "bob" in shown


# Settings


def test_settings_come_from_options_then_the_environment_then_a_file(tmp_path):
    (tmp_path / "server.toml").write_text('port = 1\nhost = "localhost"\n[limits]\nrows = 5\nburst = 6\n')
    environment = {"RMEM_SERVER_PORT": "2", "RMEM_SERVER_BURST": "7", "RMEM_SERVER_DATA": str(tmp_path)}
    read = ServerSettings.read({"port": None}, environment=environment)
    assert (read.data, read.port, read.host, read.limits.rows, read.limits.burst) == (tmp_path, 2, "localhost", 5, 7)
    read = ServerSettings.read({"port": 3, "rows": 9, "data": str(tmp_path)}, environment=environment)
    assert (read.port, read.limits.rows) == (3, 9)
    assert ServerSettings.read({"data": str(tmp_path / "new")}, environment={}).limits == Limits()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("prot = 1", "did you mean 'port'"),
        ("[limits]\nrow = 1", "did you mean 'rows'"),
        ("port = 99999", "port"),
        ("port = 'x'", "port"),
        ("[limits]\nrows = 0", "rows"),
        ("store = 'mysql://x'", "PostgreSQL"),
        ("auth = false\nhost = '0.0.0.0'", "this machine only"),
        ("root_path = 'memory'", "root_path"),
        ("root_path = '/memory/'", "root_path"),
        ("= 1", "TOML"),
    ],
)
def test_wrong_settings_are_refused(tmp_path, text, told):
    (tmp_path / "server.toml").write_text(text)
    with pytest.raises(ConfigError, match=told):
        ServerSettings.read({"data": str(tmp_path)}, environment={})
