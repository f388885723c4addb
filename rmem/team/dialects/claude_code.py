"""Claude Code: hooks of ~/.claude/settings.json. The payload has session_id, cwd and hook_event_name; context goes back
as hookSpecificOutput.additionalContext.

A command that ends with 0 is a PostToolUse, any other a PostToolUseFailure whose error has a line "Exit code N"; the 1
of grep, diff and test is no failure to it."""

from __future__ import annotations

import re
from typing import Any

from ..events import Event, EventKind
from .payloads import hook_specific, parse_exit, session_event, text_of, tool_event

AGENT = "claude-code"
MOMENTS = {
    "SessionStart": EventKind.SESSION_START,
    "UserPromptSubmit": EventKind.PROMPT,
    "PreCompact": EventKind.COMPACT,
    "Stop": EventKind.STOP,
    "SubagentStop": EventKind.SUBAGENT_STOP,
    "SessionEnd": EventKind.SESSION_END,
}
EXIT = re.compile(r"\A\s*(?:Error: )?Exit code (\d+)[^\S\n]*(?:\n|\Z)|\n[^\S\n]*Exit code (\d+)\s*\Z")
answer = hook_specific


def read(name: str, payload: dict[str, Any]) -> Event | None:
    session, cwd = payload.get("session_id"), payload.get("cwd")
    if name not in ("PostToolUse", "PostToolUseFailure"):
        return session_event(AGENT, MOMENTS.get(name), payload, session, cwd)
    tool, out = str(payload.get("tool_name") or ""), payload.get("tool_response", payload.get("error"))
    if payload.get("is_interrupt") or (
        isinstance(out, dict) and (out.get("interrupted") or out.get("backgroundTaskId"))
    ):
        return None  # nobody knows how it ends
    failed = True if name == "PostToolUseFailure" else None
    if failed:
        text = text_of(out)
        code = EXIT.search(text)
        out = parse_exit(EXIT.sub("", text, count=1), int(code[1] or code[2]))[0] if code else text
    elif tool == "Bash":
        failed = False
    return tool_event(AGENT, payload, session, cwd, tool, payload.get("tool_input"), out, failed=failed)
