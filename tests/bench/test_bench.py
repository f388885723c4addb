"""`rmem bench` measures every part it names and reports in the documented shape. No test looks at a clock."""

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner
from rmem_bench.command import PARTS, bench, run
from rmem_bench.measure import Samples, interleaved, ratios
from rmem_bench.report import TARGETS, judged

TIMING = {"calls", "wall_ms", "cpu_ms"}
SHARES = {"p50", "p95", "p99", "mean"}


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return run([400], calls=3, folder=tmp_path_factory.mktemp("bench"))


@pytest.fixture
def figures(report):
    return report["sizes"]["400"]


def test_real_texts_take_the_place_of_synthetic_ones(tmp_path):
    memories = [
        {"text": f"ticket {n}: the printer on floor {n % 7} is out of paper", "session": "s"} for n in range(60)
    ]
    store = {"memories": memories, "questions": [{"question": "-v: which printer?", "relevant": [0]}]}
    (tmp_path / "set.json").write_text(json.dumps({"name": "tickets", "stores": [store, store]}))
    report = run([150], calls=3, folder=tmp_path, parts=["recall", "start"], texts=tmp_path)
    figures = report["sizes"]["150"]
    assert figures["bulk"]["rows"] == 150, "more than there are: they are taken again"
    assert is_timing(figures["recall"]["hybrid"])
    assert is_timing(figures["start"]["recall_in_a_new_process"])


def is_timing(value):
    return value.keys() == TIMING and all(value[kind].keys() == SHARES for kind in ("wall_ms", "cpu_ms"))


def test_every_part_is_reported(report, figures):
    assert set(figures) == set(PARTS)
    assert {"format", "date", "embedder", "seed", "machine", "sizes", "targets"} == set(report)
    json.dumps(report)


def test_machine_facts_have_no_names_or_paths(report):
    facts = report["machine"]
    assert {"cpu_count", "python", "numpy", "sqlite", "rmem", "filesystem", "blas_threads"} <= set(facts)
    told = json.dumps(report)
    assert "/" not in json.dumps(facts)
    assert os.uname().nodename not in told or len(os.uname().nodename) < 4


def test_writing_is_measured_beside_a_bare_insert(figures):
    assert figures["bulk"]["rows"] == 400
    assert figures["bulk"]["rows_per_wall_s"] > 0
    written = figures["remember"]
    assert is_timing(written["remember"])
    assert is_timing(written["baselines"]["bare_sqlite_insert"])
    assert is_timing(written["hybrid_recall_after_a_remember"])
    assert is_timing(written["baselines"]["hybrid_recall_without_a_remember"])
    assert written["ratios"]["recall_after_a_remember_to_recall"]["cpu"] > 0
    assert written["ratios"]["remember_to_bare_sqlite_insert"].keys() == {"wall", "cpu"}


def test_recall_is_measured_in_every_mode_beside_its_baselines(figures):
    recalled = figures["recall"]
    for name in ("hybrid", "lexical", "vector", "filtered"):
        assert is_timing(recalled[name])
        assert recalled[name]["calls"] == 3
    for name in ("fts5_or", "fts5_or_without_function_words", "numpy_brute_force"):
        assert is_timing(recalled["baselines"][name])
    assert 0 < recalled["filtered_share"] < 0.2


def test_recall_of_vectors_is_compared_with_brute_force(figures):
    assert figures["vectors"]["recall_at_10"] > 0.95
    assert figures["vectors"]["recall_at_10_filtered"] > 0.95
    assert figures["recall"]["vector_recall_at_10"] > 0.95


def test_processes_and_space_are_measured(figures):
    assert is_timing(figures["start"]["recall_in_a_new_process"])
    assert figures["start"]["import_rmem_ms"] > 0
    assert figures["memory"]["rss_bytes"] > 10_000_000
    assert figures["file"]["bytes"] > 400 * 1000


def test_only_the_parts_asked_for_are_measured(tmp_path):
    result = CliRunner().invoke(
        bench, ["--size", "200", "--calls", "2", "--only", "vectors", "--json", "--folder", str(tmp_path)]
    )
    assert result.exit_code == 0, result.output
    assert list(json.loads(result.stdout)["sizes"]["200"]) == ["vectors"]
    assert list(tmp_path.iterdir()) == []


def test_tables_for_a_reader(tmp_path):
    result = CliRunner().invoke(bench, ["--size", "200", "--calls", "2", "--only", "recall", "--folder", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "recall hybrid" in result.stdout
    assert "FTS5" in result.stdout


def test_it_runs_as_a_module_and_prints_only_json(tmp_path):
    line = [sys.executable, "-m", "rmem_bench", "--size", "150", "--calls", "1", "--only", "bulk", "--json"]
    done = subprocess.run([*line, "--folder", str(tmp_path)], capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    assert report["machine"]["blas_threads"] == os.environ.get("OPENBLAS_NUM_THREADS", "1")


def test_targets_are_judged_where_there_is_a_figure():
    fast = {"recall": {"hybrid": {"cpu_ms": {"p50": 3.0, "p99": 11.0}}}, "bulk": {"rows_per_wall_s": 5000.0}}
    verdicts = {(row["name"], row["target"]): row["met"] for row in judged({"100000": fast})}
    assert verdicts == {
        ("hybrid recall, CPU p50", "≤ 4 ms"): True,
        ("hybrid recall, CPU p99", "≤ 10 ms"): False,
        ("remember in bulk, wall", "≥ 4000 /s"): True,
    }


def test_every_target_has_its_figure_in_a_report(figures):
    by_size = {"100000": figures, "1000000": figures}
    assert len(judged(by_size)) == sum(len(target.sizes) for target in TARGETS)


def test_tasks_take_turns_and_slow_ones_stop_early():
    order = []
    tasks = {"one": lambda at: order.append(("one", at)), "two": lambda at: order.append(("two", at))}
    taken = interleaved(tasks, 25)
    assert [name for name, _ in order] == [*["one"] * 10, *["two"] * 10] * 2 + [*["one"] * 5, *["two"] * 5]
    assert len(taken["one"].wall) == 25
    assert len(interleaved(tasks, 25, budget=0.0)["one"].wall) == 10


def test_percentiles_and_ratios():
    slow, quick = Samples(), Samples()
    for number in range(101):
        slow.add(number / 1000, number / 1000)
        quick.add(number / 10_000, number / 10_000)
    assert slow.summary()["wall_ms"] == {"p50": 50.0, "p95": 95.0, "p99": 99.0, "mean": 50.0}
    assert ratios(slow.summary(), quick.summary()) == {"wall": 10.0, "cpu": 10.0}
