"""`rmem bench agents` measures one agent's memory beside its baselines. No test looks at a clock."""

import json

import pytest
from click.testing import CliRunner

from rmem.bench.agents import RESULTS, life
from rmem.bench.agents_report import SINGLE, TARGETS, TIMED
from rmem.bench.command import bench, run_agents
from rmem.bench.report import figure_at, judged

QUESTIONS = ("similar", "time_range", "attributes", "recent", "content")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return run_agents([600], calls=3, redis=True, folder=tmp_path_factory.mktemp("bench"))


@pytest.fixture
def figures(report):
    return report["sizes"]["600"]


def test_a_life_has_a_hundred_memories_of_each_patrol():
    stretches = list(life(2400, 0))
    assert [(kind, first) for kind, first, _ in stretches][:4] == [
        ("state", 0),
        ("action", 800),
        ("interaction", 900),
        ("state", 1000),
    ]
    lived = [kept["patrol"] for _, _, contents in stretches for kept in contents]
    assert len(lived) == 2400
    assert {lived.count(patrol) for patrol in lived} == {RESULTS}
    assert list(life(50, 3)) == list(life(50, 3))


def test_every_question_is_measured_in_both_places(figures):
    for place in ("embedded", "redis"):
        measured = figures[place]
        assert all(measured[name]["calls"] == 3 for name in (*QUESTIONS, "store"))
        assert measured["results"] == {"time_range": RESULTS, "attributes": RESULTS}
        assert sum(measured["tiers"].values()) == 600 + 3 + 10  # and those that warm up
        assert measured["similar_agrees"] >= 0.95
        assert set(measured["baselines"]) == {"bare_sqlite_insert", "numpy_brute_force"}


def test_bytes_are_counted_in_redis_only(figures):
    assert 100 < figures["redis"]["redis_bytes"]["state"] < 10_000
    assert "redis_bytes" not in figures["embedded"]


def test_every_target_and_every_row_of_the_tables_has_its_figure(figures):
    sizes = {"10000": figures, "100000": figures}
    assert len(judged(sizes, TARGETS)) == sum(len(target.sizes) for target in TARGETS)
    rows = [path for _, path, _ in SINGLE] + [f"{path}.cpu_ms.p50" for _, path in TIMED]
    assert [path for path in rows if figure_at(figures, path) is None] == []


@pytest.mark.parametrize("line", [["agents", "--json"], ["--json", "agents"]])
def test_it_is_a_benchmark_of_its_own(line, tmp_path):
    given = [*line, "--size", "150,200", "--calls", "1", "--folder", str(tmp_path)]
    done = CliRunner().invoke(bench, given)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert list(found["sizes"]) == ["150", "200"]
    assert list(found["sizes"]["150"]) == ["embedded"]
    assert list(tmp_path.iterdir()) == []


def test_tables_for_a_reader(tmp_path):
    done = CliRunner().invoke(bench, ["agents", "--size", "150", "--calls", "1", "--folder", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "similar states" in done.stdout
    assert "numpy brute force" in done.stdout
    assert "Redis" not in done.stdout


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (["--size", "200", "agents"], "Put the options behind `agents`"),
        (["agents", "--size", "many"], "whole numbers"),
        (["agents", "--size", "50"], "fewer than 100"),
    ],
)
def test_options_that_make_no_sense_are_refused(line, told):
    done = CliRunner().invoke(bench, line)
    assert done.exit_code == 2
    assert told in done.output
