"""The coding agents themselves, as npm installs them, with a scripted model: one learns a fix, another one, in a clone
without it, is told when the same command fails. Part of `make test-slow`, and skipped unless it is on the PATH.
OpenCode is left out: its first start installs packages, which takes minutes on a busy machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from scripted_model import ScriptedModel

COMMANDS = [
    "python3 -m unittest tests.test_carrier",
    """sed -i 's/row\\["code"\\]/row.get("code")/' carrier.py""",
    "python3 -m unittest tests.test_carrier",
]
LAST = "The test failed because some rows carry no code."
FILES = {
    "carrier.py": 'def read(row):\n    return row["code"]\n',
    "tests/__init__.py": "",
    "tests/test_carrier.py": "import unittest\nfrom carrier import read\n\n\nclass T(unittest.TestCase):\n"
    '    def test_read(self):\n        self.assertIsNone(read({"id": 1}))\n',
}
CODEX = """model = "gpt-5"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "http://model/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
"""
GEMINI = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "general": {"enableAutoUpdate": False}}
AGENTS = {
    "claude-code": (
        ["claude", "-p", "TASK", "--dangerously-skip-permissions"],
        {"ANTHROPIC_BASE_URL": "http://model", "ANTHROPIC_API_KEY": "x", "IS_SANDBOX": "1", "DISABLE_AUTOUPDATER": "1",
         "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
        {},
    ),
    "codex": (
        ["codex", "exec", "--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust", "TASK"],
        {"SCRIPTED_KEY": "x"},
        {".codex/config.toml": CODEX},
    ),
    "gemini": (
        ["gemini", "--yolo", "-m", "gemini-2.5-flash", "-p", "TASK"],
        {"GOOGLE_GEMINI_BASE_URL": "http://model", "GEMINI_API_KEY": "x", "GEMINI_CLI_TRUST_WORKSPACE": "true"},
        {".gemini/settings.json": json.dumps(GEMINI)},
    ),
    "copilot": (
        ["copilot", "-p", "TASK", "--allow-all-tools"],
        {"COPILOT_PROVIDER_BASE_URL": "http://model/v1", "COPILOT_PROVIDER_TYPE": "openai",
         "COPILOT_PROVIDER_API_KEY": "x", "COPILOT_MODEL": "gpt-5",
         "COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false"},
        {},
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("agent", AGENTS)
def test_a_real_agent_learns_a_fix_and_another_is_told_when_the_same_command_fails(agent, tmp_path):
    command, variables, files = AGENTS[agent]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not on the PATH")
    home = tmp_path / "home"
    with ScriptedModel(COMMANDS, LAST) as model:
        for name, text in files.items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(text.replace("http://model", model.url))
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        own = {name: value.replace("http://model", model.url) for name, value in variables.items()}
        direct = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
        env = {**direct, "HOME": str(home), "RMEM_HOME": str(home / "memory"), "PATH": path, **own}
        env["RMEM_KEEPER_IDLE"] = "10"
        home.mkdir(exist_ok=True)
        run(["rmem", "install", agent, "--yes"], tmp_path, env)
        for who, task in (("ann", "Make the tests of the carrier pass"), ("bob", "Look whether the tests pass")):
            asked = len(model.requests)
            run([task if word == "TASK" else word for word in command], clone(tmp_path, who), env)
            drained(home / "memory" / "team" / "spool")
    after_failure = [request["said"] for request in model.requests[asked:] if request["step"] == 1]
    assert after_failure
    assert all("row.get(" in said for said in after_failure)


def run(command, cwd, env):
    done = subprocess.run(
        command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def clone(folder, name):
    for path, text in FILES.items():
        (folder / name / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / name / path).write_text(text)
    for words in ("init -q -b main", "remote add origin git@github.com:acme/parcels.git", "add .",
                  f"config user.email {name}@acme.io", f"config user.name {name}", "commit -qm start"):  # fmt: skip
        subprocess.run(["git", *words.split()], cwd=folder / name, check=True)
    return folder / name


def drained(spool, patience=30.0):
    end = time.monotonic() + patience
    while list(spool.glob("*.json")):
        assert time.monotonic() < end, "the spool was not drained"
        time.sleep(0.1)
