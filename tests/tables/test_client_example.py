"""The example runs as a user runs it, in a file and against a server, and finds the fix."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "debug_memory.py"


@pytest.mark.parametrize("place", ["file", "server"])
def test_the_debugging_memory_finds_the_fix(request, tmp_path, place):
    arguments, environment = [], os.environ | {"RMEM_HOME": str(tmp_path), "PYTHONIOENCODING": "utf-8"}
    if place == "server":
        server = request.getfixturevalue("table_server")
        arguments = ["--server", server.url]
        environment |= {"RMEM_API_KEY": server.token, "RMEM_WORKSPACE": server.new_workspace()}
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), *arguments], capture_output=True, encoding="utf-8", env=environment, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Fix OOM crash in data pipeline" in done.stdout.splitlines()[2]
    assert list(tmp_path.iterdir()) == [], "nothing of the user's is touched"
