"""The example plugin as a user gets it: wheels of Remanence and of the plugin, installed in a fresh environment."""

from __future__ import annotations

import json
import shutil

import environments
import pytest

PLUGIN = environments.ROOT / "examples" / "plugins" / "rmem-jsonfile"


@pytest.fixture(scope="module")
def fresh(tmp_path_factory, own_wheel):
    base = tmp_path_factory.mktemp("fresh")
    return environments.environment(base, own_wheel, environments.wheel(base / "plugin", PLUGIN))


@pytest.fixture
def environment(fresh, tmp_path):
    return fresh._replace(folder=tmp_path)


def test_the_environment_has_its_own_package(environment):
    told = environment.run("-c", "import rmem, rmem_jsonfile; print(rmem.__file__)")
    assert told.returncode == 0, told.stderr
    assert str(environment.python.parents[1]) in told.stdout


def test_it_passes_the_suite_and_its_own_tests(environment):
    shutil.copy(PLUGIN / "test_rmem_jsonfile.py", environment.folder)
    command = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_rmem_jsonfile.py")
    done = environment.run(*command, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")  # those of the tests' environment
    assert done.returncode == 0, done.stdout[-5000:]
    assert "passed" in done.stdout


def test_it_is_listed(environment):
    listed = environment.rmem("plugins", "--kind", "store")
    assert listed.returncode == 0, listed.stderr
    assert listed.stdout.splitlines()[1].split() == ["store", "jsonfile", "rmem-jsonfile", "0.1.0", "loads"]
    told = json.loads(environment.rmem("plugins", "--kind", "store", "--json").stdout)
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
