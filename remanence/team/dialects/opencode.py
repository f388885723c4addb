"""OpenCode: the plugin that `rmem install opencode` writes passes its events on, with sessionID and directory.
Its answers are JSON with the context in it."""

from __future__ import annotations

import json
from typing import Any

from ..events import Event, Kind
from .reading import made, tool_event

AGENT = "opencode"
_PLAIN = {
    "session.compacting": Kind.COMPACT,
    "session.idle": Kind.STOP,
    "session.deleted": Kind.SESSION_END,
}


def read(name: str, payload: dict[str, Any]) -> Event | None:
    session, cwd = payload.get("sessionID"), payload.get("directory") or payload.get("worktree")
    if name == "session.created":
        source = str(payload.get("source") or "startup")
        return made(AGENT, Kind.SESSION_START, payload, session, cwd, source=source)
    if name == "chat.message":
        return made(AGENT, Kind.PROMPT, payload, session, cwd, prompt=str(payload.get("prompt") or ""))
    if name == "tool.execute.after":
        about = payload.get("metadata")
        code = about.get("exit") if isinstance(about, dict) else None
        failed = code != 0 if isinstance(code, int) else None
        tool = str(payload.get("tool") or "")
        return tool_event(AGENT, payload, session, cwd, tool, payload.get("args"), payload.get("output"), failed=failed)
    if name in _PLAIN:
        return made(AGENT, _PLAIN[name], payload, session, cwd)
    return None


def answer(name: str, context: str) -> str:
    return json.dumps({"context": context})
