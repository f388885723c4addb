"""Codex CLI: hooks of ~/.codex/hooks.json. The payload is close to Claude Code's: session_id, cwd, hook_event_name, and
for tools tool_name, tool_use_id, tool_input and tool_response, which is the output of a command and nothing else: how
it ended is in the transcript only, a moment later. Context goes back as hookSpecificOutput.additionalContext."""

from __future__ import annotations

from typing import Any

from ..events import Event
from .claude_code import MOMENTS
from .payloads import hook_specific, parse_object, session_event, tool_event

AGENT = "codex"
answer = hook_specific


def read(name: str, payload: dict[str, Any]) -> Event | None:
    session, cwd = payload.get("session_id"), payload.get("cwd")
    if name == "PostToolUse":
        tool = str(payload.get("tool_name") or "")
        given, out = parse_object(payload.get("tool_input")), parse_object(payload.get("tool_response"))
        event = tool_event(AGENT, payload, session, cwd, tool, given, out)
        if event.failed is not None:
            return event
        path, call = payload.get("transcript_path"), payload.get("tool_use_id")
        return event._replace(transcript=str(path or ""), call=str(call or ""))
    return session_event(AGENT, MOMENTS.get(name), payload, session, cwd)
