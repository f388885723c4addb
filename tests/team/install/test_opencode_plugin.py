"""The plugin for OpenCode, run by node: it passes events on, takes context in, and survives without `rmem`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rmem.team.dialects import dialect
from rmem.team.install import Command, opencode, tool
from rmem.team.install.files import Ledger
from rmem.team.install.plan import install, plan_install

NODE = shutil.which("node")
SESSION = Path(__file__).with_name("opencode_session.mjs")
RECORDER = """\
import json, os, sys, time
name = f"{time.time_ns()}-{os.getpid()}"
event, payload = sys.argv[-1], json.load(sys.stdin)
open(os.path.join(os.path.dirname(__file__), name + ".event"), "w").write(json.dumps([event, payload]))
if event in ("session.created", "chat.message", "tool.execute.after"):
    print(json.dumps({"context": "known about " + event}))
"""

pytestmark = pytest.mark.skipif(NODE is None, reason="needs node")


def played(command: Command) -> dict[str, Any]:
    install(plan_install(tool("opencode", command)), Ledger())
    plugin = tool("opencode", command).home / "plugins" / "remanence.js"
    copy = plugin.with_suffix(".mjs")  # node takes no module from a .js file without a package
    shutil.copy(plugin, copy)
    done = subprocess.run([str(NODE), str(SESSION), str(copy)], capture_output=True, text=True, timeout=60, check=True)
    parts: dict[str, Any] = json.loads(done.stdout)
    return parts


def test_events_go_out_and_context_comes_in(home, tmp_path):
    recorder = tmp_path / "recorded" / "recorder.py"
    recorder.parent.mkdir()
    recorder.write_text(RECORDER)
    parts = played(Command((sys.executable, str(recorder))))
    texts = [part["text"] for part in parts["first"]]
    assert texts == ["fix the build", "known about session.created", "known about chat.message"]
    assert [part.get("synthetic") for part in parts["first"]] == [None, True, True]
    assert [part["text"] for part in parts["second"]][1:] == ["known about session.created", "known about chat.message"]
    assert parts["output"] == "no rule\n\nknown about tool.execute.after"
    deadline = time.monotonic() + 30
    expected = {"session.created": 3, "chat.message": 3, **dict.fromkeys(opencode.EVENTS[2:], 1), "session.deleted": 2}
    while True:  # some are sent without waiting for them
        told = [json.loads(path.read_text() or "[0, 0]") for path in recorder.parent.glob("*.event")]
        counts = {event: sum(1 for one, _ in told if one == event) for event in opencode.EVENTS}
        if counts == expected or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    assert counts == expected
    events = {event: dialect("opencode").read(event, payload) for event, payload in told}
    assert events["chat.message"].prompt in ("fix the build", "again", "fix the tests")
    tool_use = events["tool.execute.after"]
    assert (tool_use.command, tool_use.output, tool_use.failed) == ("make", "no rule", True)
    ended = [payload for event, payload in told if event == "session.deleted"]
    assert {(one["sessionID"], one.get("reason")) for one in ended} == {("s1", None), ("s2", "exit")}
    assert all(abs(payload["time"] / 1000 - time.time()) < 300 for _, payload in told)


def test_without_the_program_a_session_goes_on(home):
    parts = played(Command(("/no/such/rmem",)))
    assert [part["text"] for part in parts["first"]] == ["fix the build"]
    assert parts["output"] == "no rule"
