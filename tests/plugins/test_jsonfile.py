"""The example plugin as a user gets it: wheels of Remanence and of the plugin, installed in a fresh environment."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "examples" / "plugins" / "rmem-jsonfile"
OURS = ("rmem", "pyproject.toml", "README.md", "LICENSE", "NOTICE")


class Environment(NamedTuple):
    """Its interpreter, and a folder outside of the checkout to work in."""

    python: Path
    folder: Path

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYTEST"))}
        return subprocess.run(
            [self.python, *arguments],
            cwd=self.folder,
            env={**clean, "RMEM_HOME": str(self.folder / "home")},
            capture_output=True,
            encoding="utf-8",
            timeout=300,
        )

    def rmem(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run("-m", "rmem", *arguments)


def pip(*arguments: object) -> None:
    line = [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, arguments)]
    done = subprocess.run(line, capture_output=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """No network: the wheels are built here, and what they depend on is read from the environment of the tests."""
    base = tmp_path_factory.mktemp("fresh")
    sources = base / "sources"
    skipped = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
    for name in OURS:  # copied, because building leaves traces beside the sources
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, sources / "rmem" / name, ignore=skipped)
        else:
            shutil.copy(ROOT / name, sources / "rmem" / name)
    shutil.copytree(PLUGIN, sources / "plugin", ignore=skipped)
    options = ("--quiet", "--no-deps", "--no-build-isolation")
    pip("wheel", *options, "--wheel-dir", base / "wheels", sources / "rmem", sources / "plugin")
    venv.create(base / "venv", with_pip=False)
    python = base / "venv" / "bin" / "python"
    told = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True, text=True
    )
    packages = Path(told.stdout.strip())
    pip("install", "--quiet", "--no-deps", "--no-index", "--target", packages, *(base / "wheels").glob("*.whl"))
    # Behind its own packages, and as a plain path: editable installations of the tests' environment stay out.
    (packages / "dependencies.pth").write_text(
        f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n", encoding="utf-8"
    )
    return Environment(python, base)


@pytest.fixture
def environment(fresh, tmp_path):
    return fresh._replace(folder=tmp_path)


def test_the_environment_has_its_own_package(environment):
    told = environment.run("-c", "import rmem, rmem_jsonfile; print(rmem.__file__)")
    assert told.returncode == 0, told.stderr
    assert str(environment.python.parents[1]) in told.stdout


def test_it_passes_the_suite_and_its_own_tests(environment):
    shutil.copy(PLUGIN / "test_rmem_jsonfile.py", environment.folder)
    done = environment.run("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_rmem_jsonfile.py")
    assert done.returncode == 0, done.stdout[-5000:]
    assert "passed" in done.stdout


def test_it_is_listed(environment):
    listed = environment.rmem("plugins")
    assert listed.returncode == 0, listed.stderr
    assert listed.stdout.splitlines()[1].split() == ["store", "jsonfile", "rmem-jsonfile", "0.1.0", "loads"]
    told = json.loads(environment.rmem("plugins", "--json").stdout)
    assert told["plugins"] == [
        {
            "kind": "store",
            "name": "jsonfile",
            "distribution": "rmem-jsonfile",
            "version": "0.1.0",
            "target": "rmem_jsonfile:JsonFileStore",
            "loads": True,
            "problem": None,
        }
    ]


def test_its_addresses_are_stores_of_the_command_line(environment):
    address = "jsonfile:///notes.jsonl"
    kept = environment.rmem("--store", address, "remember", "Parquet it is, CSV is dropped", "--id", "d-1")
    assert (kept.returncode, kept.stdout) == (0, "d-1\n"), kept.stderr
    found = environment.rmem("--store", address, "recall", "csv or parquet?", "--json")
    assert [hit["memory"]["memory_id"] for hit in json.loads(found.stdout)["hits"]] == ["d-1"]
    assert "Parquet it is" in (environment.folder / "notes.jsonl").read_text(encoding="utf-8")
