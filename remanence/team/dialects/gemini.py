"""Gemini CLI: hooks of ~/.gemini/settings.json. Prompts come as BeforeAgent and tools as AfterTool, whose tool_response
has llmContent, returnDisplay and perhaps error. Nothing but JSON may be printed."""

from __future__ import annotations

from typing import Any

from ..events import Event, Kind
from .reading import hook_specific, moment, tool_event

AGENT = "gemini"
_MOMENTS = {
    "SessionStart": Kind.SESSION_START,
    "BeforeAgent": Kind.PROMPT,
    "PreCompress": Kind.COMPACT,
    "AfterAgent": Kind.STOP,
    "SessionEnd": Kind.SESSION_END,
}
answer = hook_specific


def read(name: str, payload: dict[str, Any]) -> Event | None:
    session, cwd = payload.get("session_id"), payload.get("cwd")
    if name == "AfterTool":
        tool = str(payload.get("tool_name") or "")
        return tool_event(AGENT, payload, session, cwd, tool, payload.get("tool_input"), payload.get("tool_response"))
    return moment(AGENT, _MOMENTS.get(name), payload, session, cwd)
