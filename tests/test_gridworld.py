"""The small world runs as a user runs it, and walkers with a memory eat more than the same walkers without one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rmem.agents import AgentMemoryAPI, MemoryConfig

ROOT = Path(__file__).parents[1]
SMALL = ("--steps", "60", "--agents", "2", "--seed", "7")


def script(*arguments: object, folder: Path, before: str = "pass") -> subprocess.CompletedProcess[str]:
    run = f"import runpy, sys; {before}; runpy.run_path({str(ROOT / 'examples/gridworld.py')!r}, run_name='__main__')"
    environment = os.environ | {"RMEM_HOME": str(folder / "own"), "TMPDIR": str(folder), "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, "-c", run, *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        env=environment | {"PYTHONIOENCODING": "utf-8"},
        cwd=folder,
        timeout=120,
    )


@pytest.fixture
def gridworld(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    import gridworld

    yield gridworld
    sys.modules.pop("gridworld", None)


def test_memory_feeds_the_walkers(gridworld, tmp_path):
    with AgentMemoryAPI(MemoryConfig(ltm_config={"path": tmp_path / "m.db"})) as api:
        without = gridworld.run(3, 150, 7, None, lambda: None)
        remembering = gridworld.run(3, 150, 7, api, lambda: None)
        held = api.get_memory_statistics("walker-1")["memory_type_distribution"]
    meals = [sum(walker.meals for walker in group.walkers) for group in (without, remembering)]
    assert meals[1] >= 1.3 * meals[0], meals
    assert held["state"] == 150
    assert held["action"] > 10


def test_both_groups_start_alike_and_only_memory_tells_them_apart(gridworld, monkeypatch):
    """With a memory that knows nothing, a walker does exactly what one without a memory does."""
    monkeypatch.setattr(gridworld.Walker, "remembered", lambda self, step: None)
    with AgentMemoryAPI(MemoryConfig(ltm_config={"path": ":memory:"})) as api:
        groups = [gridworld.run(2, 60, 3, face, lambda: None) for face in (None, api)]
    assert [walker.path for walker in groups[0].walkers] == [walker.path for walker in groups[1].walkers]


def test_it_ends_in_a_table_recollections_and_a_picture(tmp_path):
    pytest.importorskip("matplotlib")
    done = script(*SMALL, "--plot", "berries.png", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    for part in (
        "2 walkers, 60 steps",
        "without memory",
        "with memory",
        "walker-1 remembers",
        "in step",
        "berries.png",
    ):
        assert part in done.stdout
    assert (tmp_path / "berries.png").read_bytes().startswith(b"\x89PNG")
    assert not (tmp_path / "own").exists(), "the user's own store must not be touched"
    assert not list(tmp_path.glob("rmem-gridworld-*")), "its own store is gone"


def test_without_matplotlib_it_says_what_is_missing(tmp_path):
    done = script("--steps", "5", "--agents", "1", folder=tmp_path, before="sys.modules['matplotlib'] = None")
    assert done.returncode == 0, done.stderr
    assert "pip install matplotlib" in done.stdout


def test_help_teaches_and_nonsense_is_refused(tmp_path):
    told = script("--help", folder=tmp_path).stdout
    assert "That question is the only difference" in " ".join(told.split())
    assert script("--steps", "0", folder=tmp_path).returncode == 2
    for picture in (".", "berries", "berries.txt", "nowhere/berries.png"):
        refused = script("--plot", picture, folder=tmp_path)
        assert refused.returncode == 2
        assert f"--plot must be a file .png in a folder that exists, got {picture}" in refused.stderr
