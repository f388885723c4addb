"""Copilot CLI: hooks of ~/.copilot/hooks/remanence.json. Names are in camel case; a tool's arguments may come as JSON
in a text, its result as {resultType, textResultForLlm}. A command that ran is a success to it whatever its exit code,
which is the last line: "<exited with exit code 1>", lately "<shellId: 0 completed with exit code 1>". Context goes back
as additionalContext."""

from __future__ import annotations

import json
import re
from typing import Any

from ..events import Event, EventKind
from .payloads import parse_exit, parse_object, session_event, tool_event

AGENT = "copilot"
_EXIT = re.compile(r"\s*<(?:exited|shellId: \S+ completed) with exit code (\d+)>\s*\Z")
_MOMENTS = {
    "sessionStart": EventKind.SESSION_START,
    "userPromptSubmitted": EventKind.PROMPT,
    "preCompact": EventKind.COMPACT,
    "agentStop": EventKind.STOP,
    "subagentStop": EventKind.SUBAGENT_STOP,
    "sessionEnd": EventKind.SESSION_END,
}


def read(name: str, payload: dict[str, Any]) -> Event | None:
    session, cwd = payload.get("sessionId") or payload.get("session_id"), payload.get("cwd")
    if name in ("postToolUse", "postToolUseFailure"):
        result = payload.get("toolResult")
        out = result.get("textResultForLlm") if isinstance(result, dict) else payload.get("error", result)
        kind = result.get("resultType") if isinstance(result, dict) else None
        failed = True if name == "postToolUseFailure" or kind in ("failure", "denied") else None
        code = _EXIT.search(out) if isinstance(out, str) else None
        if code is not None:
            out, failed = parse_exit(_EXIT.sub("", str(out)), int(code[1]))
        tool = str(payload.get("toolName") or "")
        return tool_event(AGENT, payload, session, cwd, tool, parse_object(payload.get("toolArgs")), out, failed=failed)
    event = session_event(AGENT, _MOMENTS.get(name), payload, session, cwd)
    return event._replace(source="startup") if event is not None and event.source == "new" else event


def answer(name: str, context: str) -> str:
    return json.dumps({"additionalContext": context})
