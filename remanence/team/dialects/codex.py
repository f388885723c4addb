"""Codex CLI: hooks of ~/.codex/hooks.json. The payload is close to Claude Code's: session_id, cwd, hook_event_name, and
for tools tool_name, tool_use_id, tool_input and tool_response; context goes back as
hookSpecificOutput.additionalContext."""

from __future__ import annotations

import json
from typing import Any

from ..events import Event, Kind
from .reading import decoded, made, tool_event

AGENT = "codex"
_PLAIN = {"PreCompact": Kind.COMPACT, "Stop": Kind.STOP, "SubagentStop": Kind.SUBAGENT_STOP}


def read(name: str, payload: dict[str, Any]) -> Event | None:
    session, cwd = payload.get("session_id"), payload.get("cwd")
    about = {"transcript": str(payload.get("transcript_path") or ""), "model": str(payload.get("model") or "")}
    if name == "SessionStart":
        source = str(payload.get("source") or "startup")
        return made(AGENT, Kind.SESSION_START, payload, session, cwd, source=source, **about)
    if name == "UserPromptSubmit":
        return made(AGENT, Kind.PROMPT, payload, session, cwd, prompt=str(payload.get("prompt") or ""), **about)
    if name == "PostToolUse":
        tool = str(payload.get("tool_name") or "")
        given, out = decoded(payload.get("tool_input")), decoded(payload.get("tool_response"))
        return tool_event(AGENT, payload, session, cwd, tool, given, out)
    if name == "SessionEnd":
        return made(AGENT, Kind.SESSION_END, payload, session, cwd, source=str(payload.get("reason") or ""), **about)
    if name in _PLAIN:
        return made(AGENT, _PLAIN[name], payload, session, cwd, source=str(payload.get("trigger") or ""), **about)
    return None


def answer(name: str, context: str) -> str:
    return json.dumps({"hookSpecificOutput": {"hookEventName": name, "additionalContext": context}})
