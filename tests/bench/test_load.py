"""`rmem bench load`: many agents on one real store, for a second; every acknowledged write is found again."""

from __future__ import annotations

import json
import os
import sqlite3
from dataclasses import asdict, replace

import pytest
from click.testing import CliRunner
from rmem_bench import load as loading
from rmem_bench.command import bench
from rmem_bench.load import Load, healthy, orders, run, shared
from rmem_bench.load_command import told
from rmem_bench.load_worker import Agent, Order, is_marked, marked

from rmem import Brain

QUICK = Load(readers=6, writers=4, seconds=1.0, processes=2, memories=300)


def silent(name, done, total):
    pass


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return run(QUICK, folder=tmp_path_factory.mktemp("load"), advance=silent)


def test_readers_and_writers_are_measured(report):
    assert report["load"]["agents"] == 10
    for name in ("reads", "writes"):
        calls = report[name]
        assert calls["calls"] > 0
        assert calls["per_s"] > 0
        assert calls["wall_ms"].keys() == {"p50", "p95", "p99", "mean", "max"}
        assert calls["wall_ms"]["p50"] <= calls["wall_ms"]["p99"] <= calls["wall_ms"]["max"]
        assert calls["cpu_ms"]["p50"] > 0
    assert report["cpu"]["seconds"] > 0
    assert report["wall_s"] >= 1.0


def test_no_acknowledged_write_is_lost_and_nothing_fails(report):
    assert report["acknowledged"] == report["writes"]["calls"]
    assert (report["lost_writes"], report["unindexed_writes"]) == (0, 0)
    assert report["errors"] == {"total": 0, "told": {}}
    assert healthy(report)


def test_memory_is_told_at_both_ends(report):
    rss = report["rss"]
    assert len(rss["processes"]) == 2
    assert rss["growth_bytes"] == rss["end_bytes"] - rss["start_bytes"]
    assert rss["late_growth_bytes"] == rss["end_bytes"] - rss["half_bytes"]
    assert rss["start_bytes"] > 10_000_000


def test_the_report_is_json_without_names_or_paths_and_text_for_a_reader(report):
    written = json.dumps(report)
    assert "/tmp" not in written
    assert os.uname().nodename not in written or len(os.uname().nodename) < 4
    text = told(report)
    assert "10 agents (6 readers, 4 writers) in 2 processes" in text
    assert "lost writes    0 of" in text


def test_nothing_is_left_behind(tmp_path):
    seen = []
    run(
        replace(QUICK, seconds=0.3, memories=100),
        folder=tmp_path,
        advance=lambda name, done, total: seen.append((name, done, total)),
    )
    assert list(tmp_path.iterdir()) == []
    assert {name for name, _, _ in seen} == {"fill", "load"}
    assert all(0 <= done <= total for _, done, total in seen)


def test_a_store_of_yours_is_as_it_was_afterwards(tmp_path):
    path = tmp_path / "mine.db"
    with Brain(path) as brain:
        brain.remember("mine", id="m")
    line = ["load", "--agents", "4", "--seconds", "0.5", "--memories", "50", "--store", str(path), "--json"]
    result = CliRunner().invoke(bench, line)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["acknowledged"] > 0
    with Brain(path) as brain:
        assert [memory.memory_id for memory in brain.memories()] == ["m"]
    assert CliRunner().invoke(bench, [*line, "--keep", "--processes", "1"]).exit_code == 0
    with Brain(path) as brain:
        assert brain.stats()["memories"] > 50


def test_writes_that_get_lost_are_noticed(tmp_path, monkeypatch):
    """A store that loses rows after acknowledging them: here somebody deletes them behind its back."""
    path = tmp_path / "lossy.db"
    honest = loading._simulate

    def lossy(*arguments):
        results = honest(*arguments)
        with sqlite3.connect(path) as connection:
            connection.execute(
                "DELETE FROM memories WHERE seq = (SELECT min(seq) FROM memories WHERE agent LIKE '%-writer-%')"
            )
        return results

    monkeypatch.setattr(loading, "_simulate", lossy)
    result = CliRunner().invoke(
        bench, ["load", "--agents", "2", "--seconds", "0.5", "--memories", "0", "--store", str(path), "--json"]
    )
    assert result.exit_code == 6
    report = json.loads(result.stdout)
    assert report["lost_writes"] == 1, "on a busy machine it is the only one"


def test_a_store_that_cannot_be_opened_is_told_and_ends_with_6(tmp_path):
    path = tmp_path / "no.db"
    path.write_text("not a store, " * 100)
    result = CliRunner().invoke(bench, ["load", "--agents", "2", "--seconds", "0.5", "--store", str(path)])
    assert result.exit_code != 0


def test_an_agent_whose_calls_fail_goes_on():
    agent = Agent("a")

    def act(number):
        if number % 2:
            raise OSError("disk on fire")

    import time

    agent.work(act, time.monotonic() + 0.05, 0.0)
    assert agent.errors["OSError: disk on fire"] > 0
    assert json.loads(json.dumps(agent.told()))["errors"] == agent.errors
    assert len(agent.wall) > 0


def test_a_process_that_dies_is_an_error_of_the_report(tmp_path):
    order = Order(str(tmp_path), ["r"], [], 0.1, 0.0, 0, 0)  # a folder is no store
    process = loading.WorkerProcess("rmem_bench.load_worker", asdict(order))
    while not process.ended:
        pass
    process.say("go")
    assert "a process ended with 1: " in process.result()
    process.end()


def test_agents_are_dealt_out_to_processes():
    dealt = orders("x", replace(Load(), readers=3, writers=2, processes=2), "run")
    assert [len(one.readers) for one in dealt] == [2, 1]
    assert [len(one.writers) for one in dealt] == [1, 1]
    assert len(orders("x", replace(Load(), readers=1, writers=0, processes=4), "run")) == 1


def test_a_fifth_of_the_agents_write_unless_said_otherwise():
    def mix(*given):
        load = shared(*given)
        return load.readers, load.writers

    assert mix(50, None, None) == (40, 10)
    assert mix(1, None, None) == (0, 1)
    assert mix(50, 45, None) == (45, 5)
    assert mix(50, None, 45) == (5, 45)
    with pytest.raises(ValueError, match="are not 50 agents"):
        shared(50, 10, 10)
    refused = CliRunner().invoke(bench, ["load", "--agents", "5", "--readers", "1", "--writers", "1"])
    assert refused.exit_code == 2
    assert CliRunner().invoke(bench, ["load", "--store", ":memory:"]).exit_code == 2


def test_a_write_is_known_again_by_its_mark():
    text = marked("The river.", "ana", 12)
    assert is_marked(text, "ana", 12)
    assert not is_marked(text, "ana", 2)
    assert not is_marked(text, "bo", 12)


def test_global_options_reach_it(tmp_path):
    from rmem.cli.app import rmem

    path = tmp_path / "mine.db"
    line = ["--json", "--store", str(path), "bench", "load", "--agents", "2", "--seconds", "0.3", "--memories", "0"]
    result = CliRunner().invoke(rmem, line)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["load"]["store"] == "an SQLite file"
    assert path.exists()
