"""What a type checker says of a user's script: nothing where it is right, and every mistake."""

from __future__ import annotations

import inspect
import json
import shutil
import subprocess
import sys
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path

import pytest

from rmem import AsyncBrain, Brain, Filter
from rmem.aio import _Awaited
from rmem.annotations import Changes, FilterFields, NewMemory, Stats
from rmem.memory_builder import WRITABLE
from rmem.stores.base import StoreStats

SAMPLES = Path(__file__).parent / "typing_samples"
ROOT = Path(__file__).parents[1]


def test_a_users_script_is_right_and_each_mistake_is_reported(tmp_path):
    """By pyright; mypy sees both scripts in `make check`."""
    if find_spec("pyright") is None:
        pytest.skip("pyright is not installed")
    found: dict[str, set[int]] = {script.name: set() for script in SAMPLES.glob("user_*.py")}
    for name in found:
        shutil.copy(SAMPLES / name, tmp_path)
    mistakes = (SAMPLES / "user_mistakes.py").read_text("utf-8").splitlines()
    calls = ("brain = Brain(", "brain.", "    await face.", "    (await face.")
    expected = {at for at, line in enumerate(mistakes, 1) if line.startswith(calls)}
    assert len(expected) == 13
    assert expected == {at for at, line in enumerate(mistakes, 1) if line.endswith("# type: ignore")}, "for mypy"
    settings = {
        "typeCheckingMode": "strict",
        "extraPaths": [str(ROOT)],
        "reportUnusedExpression": False,
        "enableTypeIgnoreComments": False,
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), "utf-8")
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson"]
    report = json.loads(subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300).stdout)
    assert report["summary"]["filesAnalyzed"] == len(found)
    for one in report["generalDiagnostics"]:
        if one["severity"] == "error":
            found[Path(one["file"]).name].add(one["range"]["start"]["line"] + 1)
    assert found == {"user_script.py": set(), "user_mistakes.py": expected}


def test_async_brain_has_every_method_of_brain_with_its_arguments():
    public = {name for name, value in vars(Brain).items() if not name.startswith("_") and callable(value)}
    inner = {"seek", "tell", "record_remote_recall", "new_recall", "last_recalls"}  # parts of recall, for the server
    face = vars(AsyncBrain)
    assert public - inner <= set(face), "AsyncBrain lacks these methods of Brain"
    for name in public - inner - {"forget"}:
        assert isinstance(face[name], _Awaited)
        assert face[name].__wrapped__ is vars(Brain)[name]
    assert inspect.signature(AsyncBrain.__init__) == inspect.signature(Brain.__init__)


def test_typed_dictionaries_name_what_there_is():
    assert NewMemory.__annotations__.keys() == set(WRITABLE)
    assert Changes.__annotations__.keys() == set(WRITABLE) - {"id", "agent"}
    assert FilterFields.__annotations__.keys() == {field.name for field in fields(Filter)}
    of_store = {field.name for field in fields(StoreStats)}
    assert Stats.__annotations__.keys() == {"address", "embedder", "unreadable"} | of_store
