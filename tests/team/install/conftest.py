"""A home folder of its own for every test, with nothing in it, and no coding agent on the PATH."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "cli"))

from rmem_runner import Rmem

_MOVERS = (
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "GEMINI_CLI_HOME",
    "COPILOT_HOME",
    "OPENCODE_CONFIG_DIR",
    "XDG_CONFIG_HOME",
    "AMP_SETTINGS_FILE",
    "CLINE_DIR",
    "CLINE_MCP_SETTINGS_PATH",
    "QWEN_HOME",
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder; `rmem` is on the PATH, so that commands are written as one word."""
    for name in (*_MOVERS, "VIRTUAL_ENV"):
        monkeypatch.delenv(name, raising=False)
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "rmem").write_text("#!/bin/sh\n")
    (programs / "rmem").chmod(0o755)
    place = tmp_path / "user"
    place.mkdir()
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.setenv("RMEM_HOME", str(tmp_path / "rmem"))
    return place


@pytest.fixture
def rmem(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rmem:
    monkeypatch.chdir(home)
    return Rmem(tmp_path / "rmem")
