"""Cursor: hooks of ~/.cursor/hooks.json. The payload has conversation_id and workspace_roots; shell commands, edits and
MCP calls each have an event of their own. Context goes back as additional_context, beside `continue` for a prompt."""

from __future__ import annotations

import json
from typing import Any

from ..events import Event, EventKind
from .payloads import parse_object, session_event, tool_event

AGENT = "cursor"
_MOMENTS = {
    "sessionStart": EventKind.SESSION_START,
    "beforeSubmitPrompt": EventKind.PROMPT,
    "preCompact": EventKind.COMPACT,
    "stop": EventKind.STOP,
    "subagentStop": EventKind.SUBAGENT_STOP,
    "sessionEnd": EventKind.SESSION_END,
}


def read(name: str, payload: dict[str, Any]) -> Event | None:
    session = payload.get("conversation_id") or payload.get("session_id")
    roots = payload.get("workspace_roots")
    cwd = payload.get("cwd") or (roots[0] if isinstance(roots, list) and roots else "")
    if name == "afterShellExecution":
        given = {"command": payload.get("command")}
        return tool_event(AGENT, payload, session, cwd, "shell", given, payload.get("output"))
    if name == "afterFileEdit":
        return tool_event(AGENT, payload, session, cwd, "edit", _edit_event(payload), None)
    if name == "afterMCPExecution":
        tool = f"mcp_{payload.get('tool_name') or ''}"
        given, out = parse_object(payload.get("tool_input")), parse_object(payload.get("result_json"))
        return tool_event(AGENT, payload, session, cwd, tool, given, out)
    return session_event(AGENT, _MOMENTS.get(name), payload, session, cwd)


def _edit_event(payload: dict[str, Any]) -> dict[str, Any]:
    edits = [edit for edit in payload.get("edits") or () if isinstance(edit, dict)]
    return {
        "file_path": payload.get("file_path"),
        "old_string": "\n".join(str(edit.get("old_string") or "") for edit in edits),
        "new_string": "\n".join(str(edit.get("new_string") or "") for edit in edits),
    }


def answer(name: str, context: str) -> str:
    reply: dict[str, Any] = {"additional_context": context}
    return json.dumps({"continue": True, **reply} if name == "beforeSubmitPrompt" else reply)
