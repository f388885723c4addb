"""<private>…</private> is never kept: in no store, spool, session file or log, and nothing of it is sent."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rmem import Brain
from rmem.team import paths, spool
from rmem.team.capture import Capture
from rmem.team.events import AGENTS, Event, EventKind
from rmem.team.importers.run import import_transcripts
from rmem.team.private_text import without_private

SECRET = "the merger with Initech"
MARKED = f"<private>{SECRET}</private>"


def on_disk(folder: Path) -> list[str]:
    """The files that hold the secret, or any word of it that is rare enough."""
    return [
        str(path)
        for path in folder.rglob("*")
        if path.is_file() and any(word in path.read_bytes() for word in (SECRET.encode(), b"Initech", b"initech"))
    ]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (f"Fix it {MARKED} now", "Fix it  now"),
        ("a<private>b</private>c<PRIVATE>d</Private>e", "ace"),
        ("a<private>b<private>c</private>d</private>e", "ae"),
        ("a<private why='x'>\nb\n</private >c", "ac"),
        ("a<private>b", "a"),
        ("b</private>c", "c"),
        ("a < private > b < / private > c", "a  c"),
        ("<privateer> and private </p>", "<privateer> and private </p>"),
        ("", ""),
    ],
)
def test_private_parts_are_taken_out(text, kept):
    assert without_private(text) == kept
    assert without_private({"x": [text, 3, None], "y": {"z": text}}) == {"x": [kept, 3, None], "y": {"z": kept}}


PAYLOADS = {
    "claude-code": ("UserPromptSubmit", "PostToolUse"),
    "codex": ("UserPromptSubmit", "PostToolUse"),
    "cursor": ("beforeSubmitPrompt", "afterShellExecution"),
    "gemini": ("BeforeAgent", "AfterTool"),
    "opencode": ("chat.message", "tool.execute.after"),
    "copilot": ("userPromptSubmitted", "postToolUse"),
}


@pytest.mark.parametrize("agent", AGENTS)
def test_a_hook_neither_writes_nor_sends_what_is_private(agent, tmp_path, monkeypatch):
    """A listener stands where the daemon would be, so the spool stays as the hook left it."""
    prompt, tool = PAYLOADS[agent]
    command = f"make deploy # {MARKED}"
    payload = {
        **dict.fromkeys(("session_id", "sessionId", "sessionID", "conversation_id"), "s1"),
        **dict.fromkeys(("cwd", "directory"), str(tmp_path)),
        "prompt": f"Always use port 5000 for the importer, because of {MARKED}",
        **dict.fromkeys(("tool_name", "toolName", "tool"), "Bash"),
        **{key: {"command": command, "notes": [MARKED]} for key in ("tool_input", "toolArgs", "args")},
        "command": command,
        **dict.fromkeys(("tool_response", "output"), f"error: cannot reach {MARKED}"),
        "toolResult": {"resultType": "failure", "textResultForLlm": f"error: cannot reach {MARKED}"},
        "last_assistant_message": f"It failed because of {MARKED}",
    }
    heard: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as listening, paths.lock().open("ab") as lock:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX)
        listening.bind(os.fspath(paths.socket()))
        listening.listen()

        def listen() -> None:
            while True:
                try:
                    line, _ = listening.accept()
                except OSError:
                    return
                with line:
                    while part := line.recv(1 << 16):
                        heard.append(part)

        threading.Thread(target=listen, daemon=True).start()
        for event in (prompt, tool):
            subprocess.run(
                [sys.executable, "-m", "rmem", "hook", agent, event],
                input=json.dumps(payload), text=True, check=True, timeout=30,
            )  # fmt: skip
    assert b"port 5000" in b"".join(heard)
    assert b"Initech" not in b"".join(heard)
    assert len(spool.waiting()) == 2
    assert any(b"cannot reach" in path.read_bytes() for path in spool.waiting())
    assert on_disk(paths.folder().parent) == []


def test_a_session_with_private_parts_leaves_only_the_rest(tmp_path):
    home = paths.folder().parent
    with Brain(home / "memories.db", privacy="default") as brain:
        capture = Capture(brain)

        def happen(number: int, kind: EventKind, **more) -> None:
            capture.take(Event(str(number), "claude-code", kind, "s1", "", time.time() + number, **more))

        happen(
            1, EventKind.PROMPT, prompt=f"Always use port 5000 for the importer. {MARKED} Never tell {MARKED}anybody."
        )
        failed = {"tool": "Bash", "action": "shell", "command": f"make test # {MARKED}", "failed": True}
        happen(2, EventKind.TOOL, output=f"ValueError: no port\n{MARKED}\nmake: *** [test] Error 1", **failed)
        edit = {"old_string": "port = 0", "new_string": f"port = 5000  # {MARKED}"}
        happen(3, EventKind.TOOL, tool="Edit", action="edit", files=["a.py"], input={"file_path": "a.py", **edit})
        happen(4, EventKind.TOOL, **{**failed, "failed": False}, output=f"ok {MARKED}")
        happen(5, EventKind.STOP, message=f"The port was wrong because {MARKED} of a typo.")
        happen(6, EventKind.SESSION_END)
        kinds = {memory.type for memory in brain.memories(limit=None)}
    assert {"preference", "error_fix", "task"} <= kinds
    assert on_disk(home) == []


def test_a_transcript_is_imported_without_what_is_private(tmp_path):
    folder, home = tmp_path / "projects" / "p", paths.folder().parent
    folder.mkdir(parents=True)
    long = "x" * 300_000
    lines = [
        {"type": "user", "message": {"role": "user", "content": f"Always use port 5000 here. {MARKED}"}},
        {
            "type": "assistant",
            "message": {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": f"make # {MARKED}"}}],
            },
        },
        {
            "type": "user",
            "message": {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t1",
                        "is_error": True,
                        "content": f"Exit code 2\n<private>{long}{SECRET}{long}</private>\nmake: *** no target. Stop.",
                    }
                ],
            },
        },
    ]
    common = {"sessionId": "s1", "cwd": str(tmp_path), "timestamp": "2026-05-01T10:00:00Z"}
    path = folder / "s1.jsonl"
    path.write_text("".join(json.dumps({**common, "uuid": str(n), **line}) + "\n" for n, line in enumerate(lines)))
    with Brain(home / "memories.db", privacy="default") as brain:
        import_transcripts(brain, "claude-code", folder=tmp_path / "projects")
        texts = " ".join(memory.text for memory in brain.memories(limit=None))
    assert "port 5000" in texts
    assert "no target" in texts
    assert on_disk(home) == []
