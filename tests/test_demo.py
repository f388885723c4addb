"""The demo runs as a user runs it, finds the fix, and leaves everything else alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from rmem import Brain

ROOT = Path(__file__).parents[1]
DEMO = ROOT / "examples" / "demo.py"


def run(*arguments: object, home: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"RMEM_HOME": str(home), "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, str(DEMO), *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        env=environment,
        cwd=ROOT,
        timeout=120,
    )


def test_a_second_process_recalls_the_fix_first(tmp_path):
    own, shown = tmp_path / "own", tmp_path / "shown"
    done = run("--home", shown, home=own)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    first = next(line for line in done.stdout.splitlines() if line.startswith("1. "))
    assert "Fix OOM crash in data pipeline" in first
    assert "swe-01" in first
    assert not own.exists(), "the user's own store must not be touched"
    with Brain(shown / "memories.db") as brain:
        assert brain.stats()["memories"] == 41


def test_the_output_is_plain_when_piped(tmp_path):
    done = run("--home", tmp_path / "new", home=tmp_path / "own")
    assert "\x1b" not in done.stdout
    assert "─" not in done.stdout
    for part in ("words ", "vectors ", "BM25", "cosine", "memories.db", "rmem doctor", "RMEM_HOME="):
        assert part in done.stdout


def test_a_folder_with_files_in_it_is_refused(tmp_path):
    (tmp_path / "mine.txt").write_text("keep me")
    done = run("--home", tmp_path, home=tmp_path / "own")
    assert done.returncode == 2
    assert "empty or new folder" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_the_demo_fails_when_the_fix_is_not_first(tmp_path):
    """A demo that cannot fail shows nothing: ask something else and it must say so."""
    script = (
        "import sys; sys.argv = ['demo']; sys.path.insert(0, 'examples'); from pathlib import Path; import demo;"
        "demo.ask_swe_02 = lambda: {'pid': 0, 'ms': [0, 0], 'hits': []};"
        f"sys.exit(demo.story(Path({str(tmp_path / 'new')!r})))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, encoding="utf-8", cwd=ROOT, timeout=120)
    assert done.returncode == 1, done.stderr
    assert "FAILED" in done.stdout
