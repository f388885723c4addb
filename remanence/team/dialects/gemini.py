"""Gemini CLI: hooks of ~/.gemini/settings.json. Prompts come as BeforeAgent and tools as AfterTool, whose tool_response
has llmContent, returnDisplay and perhaps error. Nothing but JSON may be printed."""

from __future__ import annotations

import json
from typing import Any

from ..events import Event, Kind
from .reading import made, tool_event

AGENT = "gemini"
_PLAIN = {"PreCompress": Kind.COMPACT, "AfterAgent": Kind.STOP}


def read(name: str, payload: dict[str, Any]) -> Event | None:
    session, cwd = payload.get("session_id"), payload.get("cwd")
    about = {"transcript": str(payload.get("transcript_path") or "")}
    if name == "SessionStart":
        source = str(payload.get("source") or "startup")
        return made(AGENT, Kind.SESSION_START, payload, session, cwd, source=source, **about)
    if name == "BeforeAgent":
        return made(AGENT, Kind.PROMPT, payload, session, cwd, prompt=str(payload.get("prompt") or ""), **about)
    if name == "AfterTool":
        tool = str(payload.get("tool_name") or "")
        return tool_event(AGENT, payload, session, cwd, tool, payload.get("tool_input"), payload.get("tool_response"))
    if name == "SessionEnd":
        return made(AGENT, Kind.SESSION_END, payload, session, cwd, source=str(payload.get("reason") or ""), **about)
    if name in _PLAIN:
        return made(AGENT, _PLAIN[name], payload, session, cwd, source=str(payload.get("trigger") or ""), **about)
    return None


def answer(name: str, context: str) -> str:
    return json.dumps({"hookSpecificOutput": {"hookEventName": name, "additionalContext": context}})
