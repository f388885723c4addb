"""The events of coding agents in one form. `dialects` translates each agent's own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import NoneType
from typing import Any, NamedTuple

from ..errors import InputError

# Those whose hooks we read; `rmem.team.install` knows more.
AGENTS = ("claude-code", "codex", "cursor", "gemini", "opencode", "copilot")

SELF_TEST = "self-test"
"""The source of a session's start with which `rmem status` tries the hooks: nothing is kept of it."""
SELF_TEST_ANSWER = "The team memory answers."

# What JSON may hold for a field, and how that is called; all others are texts.
_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "time": ((int, float), "a number"),
    "files": ((list,), "a list"),
    "input": ((dict,), "an object"),
    "failed": ((bool, NoneType), "true, false or null"),
}


class EventKind(StrEnum):
    SESSION_START = "session start"
    PROMPT = "prompt"
    TOOL = "tool"
    COMPACT = "compact"
    STOP = "stop"
    SUBAGENT_STOP = "subagent stop"
    SESSION_END = "session end"


class Event(NamedTuple):
    """One event. `id` is equal if the same event is reported twice, so that nothing is stored twice.

    A tool's use has its name in the tool's own words (`tool`), one of our names for what it did (`action`: "shell",
    "edit", "read", "search", "test", "web", "mcp" or "other"), what it was given and what came out, and whether it
    `failed` (None if unknown).
    """

    id: str
    agent: str
    kind: EventKind
    session: str
    cwd: str
    time: float
    prompt: str = ""
    tool: str = ""
    action: str = ""
    command: str = ""
    files: Sequence[str] = ()
    input: Mapping[str, Any] = {}
    output: str = ""
    failed: bool | None = None
    message: str = ""
    """What the agent said last, when it stops."""
    call: str = ""
    """The number that the agent gave to this use of a tool."""
    transcript: str = ""
    """The agent's own log, for what it does not report to hooks."""
    source: str = ""
    """Why a session starts or ends, or a context is compacted: "startup", "resume", "compact", "clear", …"""

    def to_json(self) -> str:
        return json.dumps(self._asdict(), ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Event:
        """Reverse `to_json`; ignore fields of other versions."""
        data = json.loads(text)
        if not isinstance(data, dict):
            raise InputError(f"an event must be a JSON object, got {type(data).__name__}", field="event")
        known = {name: data[name] for name in cls._fields if name in data}
        for name, value in known.items():
            types, expected = _TYPES.get(name, ((str,), "a text"))
            if not isinstance(value, types):  # in the state of a session it would harm later events, too
                raise InputError(f"{name} of an event must be {expected}, got {value!r:.60}", field=name)
        return cls(**{**known, "kind": EventKind(data["kind"])})
