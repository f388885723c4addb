"""Copilot CLI: hooks of ~/.copilot/hooks/remanence.json. Names are in camel case; a tool's arguments may come as JSON
in a text, its result as {resultType, textResultForLlm}. Context goes back as additionalContext."""

from __future__ import annotations

import json
from typing import Any

from ..events import Event, Kind
from .reading import decoded, made, tool_event

AGENT = "copilot"
_PLAIN = {"preCompact": Kind.COMPACT, "agentStop": Kind.STOP, "subagentStop": Kind.SUBAGENT_STOP}
_SOURCES = {"new": "startup"}


def read(name: str, payload: dict[str, Any]) -> Event | None:
    session, cwd = payload.get("sessionId") or payload.get("session_id"), payload.get("cwd")
    about = {"transcript": str(payload.get("transcriptPath") or "")}
    if name == "sessionStart":
        source = str(payload.get("source") or "startup")
        return made(AGENT, Kind.SESSION_START, payload, session, cwd, source=_SOURCES.get(source, source), **about)
    if name == "userPromptSubmitted":
        return made(AGENT, Kind.PROMPT, payload, session, cwd, prompt=str(payload.get("prompt") or ""), **about)
    if name in ("postToolUse", "postToolUseFailure"):
        result = payload.get("toolResult")
        out = result.get("textResultForLlm") if isinstance(result, dict) else payload.get("error", result)
        kind = result.get("resultType") if isinstance(result, dict) else None
        failed = True if name == "postToolUseFailure" or kind in ("failure", "denied") else None
        tool = str(payload.get("toolName") or "")
        return tool_event(AGENT, payload, session, cwd, tool, decoded(payload.get("toolArgs")), out, failed=failed)
    if name == "sessionEnd":
        return made(AGENT, Kind.SESSION_END, payload, session, cwd, source=str(payload.get("reason") or ""), **about)
    if name in _PLAIN:
        return made(AGENT, _PLAIN[name], payload, session, cwd, source=str(payload.get("trigger") or ""), **about)
    return None


def answer(name: str, context: str) -> str:
    return json.dumps({"additionalContext": context})
