"""OpenCode: the plugin that `rmem install opencode` writes passes its events on, with sessionID and directory.
`opencode run` puts quotation marks around a prompt with spaces. Its answers are JSON with the context in it."""

from __future__ import annotations

import json
import re
from typing import Any

from ..events import Event, EventKind
from .payloads import parse_exit, session_event, text_of, tool_event

AGENT = "opencode"
_MOMENTS = {
    "session.created": EventKind.SESSION_START,
    "chat.message": EventKind.PROMPT,
    "session.compacting": EventKind.COMPACT,
    "session.idle": EventKind.STOP,
    "session.deleted": EventKind.SESSION_END,
}


def read(name: str, payload: dict[str, Any]) -> Event | None:
    session, cwd = payload.get("sessionID"), payload.get("directory") or payload.get("worktree")
    if name == "tool.execute.after":
        about = payload.get("metadata")
        code = about.get("exit") if isinstance(about, dict) else None
        out, failed = payload.get("output"), None
        if isinstance(code, int):
            out, failed = parse_exit(text_of(out), code)
        tool = str(payload.get("tool") or "")
        return tool_event(AGENT, payload, session, cwd, tool, payload.get("args"), out, failed=failed)
    prompt = str(payload.get("prompt") or "").strip()
    if len(prompt) > 1 and prompt[0] == prompt[-1] == '"' and not re.search(r'(?<!\\)"', prompt[1:-1]):
        payload = {**payload, "prompt": prompt[1:-1].replace('\\"', '"')}
    return session_event(AGENT, _MOMENTS.get(name), payload, session, cwd)


def answer(name: str, context: str) -> str:
    return json.dumps({"context": context})
