"""`rmem bench server`: a real server under load for a second, killed in the middle the second time."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner
from rmem_bench.command import bench
from rmem_bench.server import ServerLoad, ServerProcess, healthy, orders, run
from rmem_bench.server_clients import Link
from rmem_bench.server_command import told
from rmem_bench.usage import tree_usage

QUICK = ServerLoad(clients=6, seconds=1.0, processes=2, memories=200)


def silent(name, done, total):
    pass


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return run(QUICK, folder=tmp_path_factory.mktemp("server"), advance=silent)


def test_recalls_and_writes_are_measured(report):
    calls = report["calls"]
    assert calls["all"]["calls"] == calls["recall"]["calls"] + calls["remember"]["calls"]
    for kind in ("recall", "remember"):
        assert calls[kind]["calls"] > 0
        assert calls[kind]["p50_ms"] <= calls[kind]["p99_ms"] <= calls[kind]["max_ms"]
    assert calls["recall"]["calls"] > calls["remember"]["calls"]
    assert report["cpu"]["server_s"] > 0
    assert report["cpu"]["clients_s"] > 0
    assert report["rss"]["start_bytes"] > 10_000_000
    assert len(report["rss"]["samples"]) >= 2


def test_nothing_fails_and_nothing_is_lost(report):
    assert report["errors"] == {"total": 0, "told": {}}
    assert report["server_errors"] == 0
    assert report["acknowledged"] == report["calls"]["remember"]["calls"]
    assert (report["lost_writes"], report["doubled_writes"], report["unacknowledged_writes"]) == (0, 0, 0)
    assert healthy(report)


def test_the_report_is_json_without_paths_and_text_for_a_reader(report):
    written = json.dumps(report)
    assert "/tmp" not in written
    assert os.path.expanduser("~") not in written
    text = told(report)
    assert "6 clients" in text
    assert "lost writes    0 of" in text
    assert not healthy({**report, "lost_writes": 1})
    assert not healthy({**report, "errors": {"total": 1, "told": {"x": 1}}})


@pytest.mark.slow
def test_a_server_that_is_killed_loses_no_acknowledged_write(tmp_path):
    report = run(ServerLoad(clients=6, seconds=3.0, memories=100, kill=True), folder=tmp_path, advance=silent)
    assert report["away_s"] > 0
    assert report["acknowledged"] > 0
    assert (report["lost_writes"], report["doubled_writes"]) == (0, 0)
    assert report["errors"]["total"] == 0
    assert "killed" in told(report)


def test_clients_are_dealt_out_to_processes(tmp_path):
    server = ServerProcess(tmp_path, None)
    dealt = orders(server, "token", ServerLoad(clients=5, processes=2))
    assert [len(one.clients) for one in dealt] == [3, 2]
    assert len({name for one in dealt for name in one.clients}) == 5
    assert len(orders(server, "token", ServerLoad(clients=1, processes=4))) == 1


def test_a_server_that_does_not_start_says_why(tmp_path):
    server = ServerProcess(tmp_path, "mysql://nowhere")
    with pytest.raises(RuntimeError, match="rmem serve ended with"):
        server.start()


def test_answers_in_pieces_are_put_together():
    async def act() -> tuple[int, bytes]:
        link = Link()

        class Transport(asyncio.Transport):
            def write(self, data: object) -> None:
                loop = asyncio.get_running_loop()
                whole = b"HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello"
                for at in range(len(whole)):
                    loop.call_soon(link.data_received, whole[at : at + 1])

        link.connection_made(Transport())
        return await link.ask(b"")

    assert asyncio.run(act()) == (201, b"hello")


def test_the_usage_of_a_process_counts_its_children():
    line = [sys.executable, "-c", "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"]
    with subprocess.Popen(line, stdin=subprocess.PIPE) as parent:
        while len(tree_usage(parent.pid).processes) < 2:
            assert parent.poll() is None
        used = tree_usage(parent.pid)
        assert used.processes[0] == parent.pid
        assert used.resident > 1_000_000
        assert parent.stdin is not None
        parent.stdin.close()
    assert tree_usage(parent.pid).processes == []


def test_the_command_prints_a_report(tmp_path):
    line = ["server", "--clients", "2", "--seconds", "0.5", "--memories", "20", "--folder", str(tmp_path), "--json"]
    done = CliRunner().invoke(bench, line)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["load"]["clients"] == 2
