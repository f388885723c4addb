"""OpenCode: the plugin that `rmem install opencode` writes passes its events on, with sessionID and directory.
Its answers are JSON with the context in it."""

from __future__ import annotations

import json
from typing import Any

from ..events import Event, Kind
from .reading import moment, tool_event

AGENT = "opencode"
_MOMENTS = {
    "session.created": Kind.SESSION_START,
    "chat.message": Kind.PROMPT,
    "session.compacting": Kind.COMPACT,
    "session.idle": Kind.STOP,
    "session.deleted": Kind.SESSION_END,
}


def read(name: str, payload: dict[str, Any]) -> Event | None:
    session, cwd = payload.get("sessionID"), payload.get("directory") or payload.get("worktree")
    if name == "tool.execute.after":
        about = payload.get("metadata")
        code = about.get("exit") if isinstance(about, dict) else None
        failed = code != 0 if isinstance(code, int) else None
        tool = str(payload.get("tool") or "")
        return tool_event(AGENT, payload, session, cwd, tool, payload.get("args"), payload.get("output"), failed=failed)
    return moment(AGENT, _MOMENTS.get(name), payload, session, cwd)


def answer(name: str, context: str) -> str:
    return json.dumps({"context": context})
