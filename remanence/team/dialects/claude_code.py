"""Claude Code: hooks of ~/.claude/settings.json. The payload has session_id, cwd and hook_event_name; context goes back
as hookSpecificOutput.additionalContext."""

from __future__ import annotations

from typing import Any

from ..events import Event, Kind
from .reading import hook_specific, moment, tool_event

AGENT = "claude-code"
MOMENTS = {
    "SessionStart": Kind.SESSION_START,
    "UserPromptSubmit": Kind.PROMPT,
    "PreCompact": Kind.COMPACT,
    "Stop": Kind.STOP,
    "SubagentStop": Kind.SUBAGENT_STOP,
    "SessionEnd": Kind.SESSION_END,
}
answer = hook_specific


def read(name: str, payload: dict[str, Any]) -> Event | None:
    session, cwd = payload.get("session_id"), payload.get("cwd")
    if name in ("PostToolUse", "PostToolUseFailure"):
        out = payload.get("tool_response", payload.get("error"))
        tool = str(payload.get("tool_name") or "")
        failed = True if name == "PostToolUseFailure" else None
        return tool_event(AGENT, payload, session, cwd, tool, payload.get("tool_input"), out, failed=failed)
    return moment(AGENT, MOMENTS.get(name), payload, session, cwd)
