"""A server whose workers are forks of the process that opened its control data."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest
from crowds import together
from server_process import free_port

from rmem.errors import StoreForkedError
from rmem.server.control import Control
from rmem.server.settings import ServerSettings

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
CHILD = Path(__file__).parent / "prefork_child.py"
W = "/workspaces/default"


@pytest.mark.parametrize("engine", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def test_workers_that_were_forked_serve_together(tmp_path, request, engine):
    store = [request.getfixturevalue("postgres_url")] if engine == "postgres" else []
    port = free_port()
    command = [sys.executable, str(CHILD), str(tmp_path / "data"), str(port), "2", *store]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    told = json.loads(server.stdout.readline())
    headers = {"Authorization": f"Bearer {told['token']}"}
    url = f"http://127.0.0.1:{port}"

    def write(number: int) -> None:
        for turn in range(5):
            with httpx.Client(base_url=url, headers=headers, timeout=60) as client:  # whichever worker takes it
                key = {"Idempotency-Key": f"{number}-{turn}"}
                for _ in range(2):
                    answer = client.post(f"{W}/memories", json={"text": f"note {number}-{turn}"}, headers=key)
                    assert answer.status_code in (201, 409), answer.text

    try:
        together(6, write)
        os.kill(told["pids"][0], signal.SIGKILL)
        with httpx.Client(base_url=url, headers=headers, timeout=60) as client:
            client.post(f"{W}/memories", json={"text": "after"}).raise_for_status()
            client.post("/workspaces", json={"name": "lab"}).raise_for_status()
            found = client.get(f"{W}/memories", params={"limit": 100}).json()["memories"]
        wanted = sorted(["after", *(f"note {number}-{turn}" for number in range(6) for turn in range(5))])
        assert sorted(one["text"] for one in found) == wanted
    finally:
        for pid in told["pids"][1:]:
            os.kill(pid, signal.SIGTERM)
        told_errors = server.communicate(timeout=60)[1]
    assert server.returncode == 0, told_errors


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_control_data_is_used_by_parent_and_child_while_threads_write(tmp_path, request, engine):
    store = request.getfixturevalue("postgres_url") if engine == "postgres" else None
    control = Control(ServerSettings(data=tmp_path, store=store))
    org = control.create_organization("acme").id
    stop, made, failed = threading.Event(), [], []

    def write(thread: int) -> None:
        try:
            while not stop.wait(0.005):
                made.append(control.create_workspace(org, f"t{thread}-{len(made)}-{time.monotonic_ns()}").name)
                control.organizations()
        except BaseException as error:
            failed.append(error)

    def work(number: int) -> None:
        for n in range(5):
            control.create_workspace(org, f"c{number}-{n}")
        assert control.workspace(org, f"c{number}-4") is not None

    threads = [threading.Thread(target=write, args=(thread,)) for thread in range(2)]
    for thread in threads:
        thread.start()
    children = []
    for number in range(3):
        time.sleep(0.05)
        pid = os.fork()
        if not pid:
            code = 1
            try:
                signal.alarm(60)
                work(number)
                code = 0
            finally:
                os._exit(code)
        children.append(pid)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    stop.set()
    for thread in threads:
        thread.join(60)
    assert (codes, failed) == ([0] * 3, [])
    names = {one.name for one in control.workspaces(org, limit=100_000)}
    assert names == {*made, *(f"c{number}-{n}" for number in range(3) for n in range(5))}
    control.close()


def test_a_child_forked_inside_a_transaction_of_a_file_is_refused_in_words(tmp_path, monkeypatch):
    monkeypatch.setattr("rmem.server.control._FORK_PATIENCE", 0.1)
    control = Control(ServerSettings(data=tmp_path))
    with control.writing():
        pid = os.fork()
        if not pid:
            code = 1
            try:
                control.organizations()
            except StoreForkedError as error:
                code = 0 if "forked" in str(error) else 2
            finally:
                os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert control.create_organization("acme").name == "acme"
    control.close()
