"""A command's outcome as each coding agent tells it to its hooks, from their sources and documents:

- Claude Code 2.1: PostToolUse for exit code 0 (and for the 1 of grep and diff, with returnCodeInterpretation), else
  PostToolUseFailure whose error begins with "Exit code N"
- Codex 0.166: the output as a text, nothing else; the exit code is in the transcript only, in that of 0.169 as a
  finished item
- Gemini CLI: llmContent of "Output: …", "Exit Code: N" only if it is not 0, "Process Group PGID: …"; 0.61 wraps all of
  it in <untrusted_context>
- Copilot CLI: resultType "success" whatever the exit code, which is the last line: "<exited with exit code N>"
- OpenCode: metadata.exit
- Cursor: the output as a text, nothing else
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Row = dict[str, Any]
CORPUS = Path(__file__).with_name("corpus.jsonl")
_ANSWERS = {"grep": "No matches found", "diff": "Files differ", "test": "Condition is false"}


def rows() -> list[Row]:
    return [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]


def claude_code(row: Row) -> tuple[str, dict[str, Any]]:
    base = {"session_id": "s", "cwd": "/srv/project", "tool_name": "Bash", "tool_use_id": f"toolu_{row['id']}"}
    base |= {"tool_input": {"command": row["command"], "description": "Run it"}, "transcript_path": "/t.jsonl"}
    answer = _ANSWERS.get(row["command"].split()[0]) if row["exit"] == 1 else None
    if row["exit"] and answer is None:
        error = f"Exit code {row['exit']}\n{row['output']}".rstrip()
        return "PostToolUseFailure", {**base, "error": error, "is_interrupt": False}
    out = {"stdout": row["output"].rstrip("\n"), "stderr": "", "interrupted": False, "isImage": False}
    out |= {"returnCodeInterpretation": answer} if answer else {}
    return "PostToolUse", {**base, "tool_response": {**out, "noOutputExpected": False}}


def codex(row: Row) -> tuple[str, dict[str, Any]]:
    return "PostToolUse", {
        "session_id": "s", "turn_id": "1", "cwd": "/srv/project", "transcript_path": None, "model": "gpt-5",
        "permission_mode": "default", "tool_name": "Bash", "tool_use_id": f"call_{row['id']}",
        "tool_input": {"command": row["command"]}, "tool_response": row["output"],
    }  # fmt: skip


def codex_line(row: Row) -> str:
    """What Codex writes into its transcript after that."""
    head = f"Chunk ID: 3f2a11\nWall time: 0.4000 seconds\nProcess exited with code {row['exit']}\n"
    text = f"{head}Original token count: 12\nOutput:\n{row['output']}"
    item = {"type": "function_call_output", "call_id": f"call_{row['id']}", "output": text}
    return json.dumps({"timestamp": "2026-03-02T09:00:00.000Z", "type": "response_item", "payload": item}) + "\n"


def codex_item(row: Row) -> str:
    """What Codex 0.169 writes, also where a model runs commands from JavaScript."""
    item = {
        "type": "CommandExecution", "id": f"call_{row['id']}", "process_id": "45336",
        "command": ["/bin/bash", "-lc", row["command"]], "cwd": "file:///srv/project", "source": "unified_exec_startup",
        "status": "failed" if row["exit"] else "completed", "exit_code": row["exit"],
        "aggregated_output": row["output"],
    }  # fmt: skip
    body = {"type": "item_completed", "thread_id": "t", "turn_id": "1", "item": item}
    return json.dumps({"timestamp": "2026-11-18T09:00:00.000Z", "type": "event_msg", "payload": body}) + "\n"


def gemini(row: Row) -> tuple[str, dict[str, Any]]:
    parts = [f"Output: {row['output'].rstrip() or '(empty)'}"]
    parts += [f"Exit Code: {row['exit']}"] if row["exit"] else []
    told = {"llmContent": "\n".join([*parts, "Process Group PGID: 4711"]), "returnDisplay": row["output"]}
    return "AfterTool", {
        "session_id": "s", "cwd": "/srv/project", "transcript_path": "/t.json", "hook_event_name": "AfterTool",
        "timestamp": "2026-05-01T10:00:00Z", "tool_name": "run_shell_command",
        "tool_input": {"command": row["command"]}, "tool_response": told,
    }  # fmt: skip


def gemini_untrusted(row: Row) -> tuple[str, dict[str, Any]]:
    name, payload = gemini(row)
    told = payload["tool_response"]
    return name, {
        **payload,
        "tool_response": {**told, "llmContent": f"<untrusted_context>\n{told['llmContent']}\n</untrusted_context>"},
    }


def copilot(row: Row) -> tuple[str, dict[str, Any]]:
    text = f"{row['output'].rstrip()}\n<exited with exit code {row['exit']}>"
    return "postToolUse", {
        "sessionId": "s", "cwd": "/srv/project", "timestamp": 1777632000000 + row["id"], "toolName": "bash",
        "toolArgs": {"command": row["command"], "description": "Run it"},
        "toolResult": {"resultType": "success", "textResultForLlm": text},
    }  # fmt: skip


def copilot_lately(row: Row) -> tuple[str, dict[str, Any]]:
    """As 1.0.102 tells it."""
    name, payload = copilot(row)
    text = f"{row['output'].rstrip()}\n<shellId: {row['id']} completed with exit code {row['exit']}>"
    return name, {**payload, "toolResult": {"resultType": "success", "textResultForLlm": text}}


def opencode(row: Row) -> tuple[str, dict[str, Any]]:
    return "tool.execute.after", {
        "sessionID": "s", "directory": "/srv/project", "worktree": "/srv/project", "tool": "bash",
        "callID": f"c{row['id']}", "args": {"command": row["command"]}, "title": row["command"],
        "output": row["output"], "metadata": {"exit": row["exit"]},
    }  # fmt: skip


def cursor(row: Row) -> tuple[str, dict[str, Any]]:
    return "afterShellExecution", {
        "conversation_id": "s", "generation_id": f"g{row['id']}", "workspace_roots": ["/srv/project"],
        "hook_event_name": "afterShellExecution", "command": row["command"], "output": row["output"], "duration": 900,
    }  # fmt: skip


AGENTS: dict[str, Callable[[Row], tuple[str, dict[str, Any]]]] = {
    "claude-code": claude_code, "codex": codex, "gemini": gemini, "copilot": copilot, "opencode": opencode,
    "cursor": cursor,
}  # fmt: skip
