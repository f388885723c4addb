"""Claude Code: hooks of ~/.claude/settings.json. The payload has session_id, transcript_path, cwd and
hook_event_name; context goes back as hookSpecificOutput.additionalContext."""

from __future__ import annotations

import json
from typing import Any

from ..events import Event, Kind
from .reading import made, tool_event

AGENT = "claude-code"
_PLAIN = {"PreCompact": Kind.COMPACT, "Stop": Kind.STOP, "SubagentStop": Kind.SUBAGENT_STOP}


def read(name: str, payload: dict[str, Any]) -> Event | None:
    session, cwd = payload.get("session_id"), payload.get("cwd")
    about = {"transcript": str(payload.get("transcript_path") or ""), "model": str(payload.get("model") or "")}
    if name == "SessionStart":
        source = str(payload.get("source") or "startup")
        return made(AGENT, Kind.SESSION_START, payload, session, cwd, source=source, **about)
    if name == "UserPromptSubmit":
        return made(AGENT, Kind.PROMPT, payload, session, cwd, prompt=str(payload.get("prompt") or ""), **about)
    if name in ("PostToolUse", "PostToolUseFailure"):
        out = payload.get("tool_response", payload.get("error"))
        tool = str(payload.get("tool_name") or "")
        failed = True if name == "PostToolUseFailure" else None
        return tool_event(AGENT, payload, session, cwd, tool, payload.get("tool_input"), out, failed=failed)
    if name == "SessionEnd":
        return made(AGENT, Kind.SESSION_END, payload, session, cwd, source=str(payload.get("reason") or ""), **about)
    if name in _PLAIN:
        source = str(payload.get("trigger") or "")
        return made(AGENT, _PLAIN[name], payload, session, cwd, source=source, **about)
    return None


def answer(name: str, context: str) -> str:
    return json.dumps({"hookSpecificOutput": {"hookEventName": name, "additionalContext": context}})
