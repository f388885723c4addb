"""What was made when the package was called `remanence` still counts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rmem import config
from rmem.team.consent import may_capture
from rmem.team.identity import repository


def python(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("RMEM_", "REMANENCE_"))}
    return subprocess.run(
        [sys.executable, "-c", code], env={**plain, **variables}, capture_output=True, text=True, check=True
    )


def test_an_old_variable_counts_and_warns_with_the_new_name(tmp_path: Path) -> None:
    asked = "import rmem.config; print(rmem.config.home())"
    done = python(asked, REMANENCE_HOME=str(tmp_path))
    assert done.stdout.strip() == str(tmp_path)
    assert "REMANENCE_HOME is now called RMEM_HOME" in done.stderr


def test_a_new_variable_wins_over_an_old_one(tmp_path: Path) -> None:
    done = python("import rmem.config; print(rmem.config.home())", REMANENCE_HOME="/nowhere", RMEM_HOME=str(tmp_path))
    assert (done.stdout.strip(), done.stderr) == (str(tmp_path), "")


@pytest.mark.parametrize(("made", "used"), [("remanence", "remanence"), ("remanence rmem", "rmem"), ("", "rmem")])
def test_the_old_data_folder_is_used_where_there_is_no_new_one(
    made: str, used: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(config.HOME, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    for name in made.split():
        (tmp_path / name).mkdir()
    assert config.home() == tmp_path / used


def test_a_repository_that_opted_out_by_the_old_file_stays_out(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".remanence.toml").write_text('repository = "github.com/acme/etl"\ncapture = false\n')
    assert not may_capture(str(tmp_path))
    found = repository(tmp_path)
    assert found is not None
    assert found.id == "github.com/acme/etl"
    (tmp_path / ".rmem.toml").write_text("capture = true\n")
    assert may_capture(str(tmp_path))
