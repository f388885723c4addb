"""What the readers of all transcripts share: JSON lines, times and tool calls."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from ..dialects.payloads import action_of, command_in, files_in
from ..events import Event, EventKind
from ..private_text import without_private

LONGEST_LINE = 8 << 20
_LONGEST_INPUT, _LONGEST_OUTPUT = 4_000, 200_000  # characters that are kept


class TranscriptEvent(NamedTuple):
    """An event of a transcript, and the git state recorded with it."""

    event: Event
    branch: str | None = None
    commit: str | None = None
    address: str | None = None
    """Where the repository is cloned from."""


def lines(path: Path, last: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON Lines file, or of its `last` bytes. Skip broken lines and those over LONGEST_LINE."""
    with path.open("rb") as file:
        if last is not None:
            file.seek(max(0, path.stat().st_size - last))
        while line := file.readline(LONGEST_LINE):
            if not line.endswith(b"\n") and len(line) == LONGEST_LINE:
                while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                    pass
                continue
            try:
                data = json.loads(line.decode("utf-8", "replace"))
            except (ValueError, RecursionError):
                continue
            if isinstance(data, dict):
                yield data


class Clock:
    """The time of each line; a line without one happened when the line before it did, or when the file was written."""

    def __init__(self, path: Path) -> None:
        self._last = path.stat().st_mtime

    def __call__(self, line: Mapping[str, Any]) -> float:
        try:
            self._last = datetime.fromisoformat(str(line.get("timestamp")).replace("Z", "+00:00")).timestamp()
        except (ValueError, OverflowError):
            pass
        return self._last


def text_or_none(value: object) -> str | None:
    """Return a text that is not empty; None for anything else."""
    return value if isinstance(value, str) and value else None


def tool_event(
    agent: str, number: str, session: str, cwd: str, when: float, tool: str, given: Any, output: str,
    *, failed: bool | None,
) -> Event | None:  # fmt: skip
    """Build the event of a tool call; None for a failed edit."""
    given, output = without_private(given), without_private(output)  # before anything is cut off
    arguments = dict(given) if isinstance(given, Mapping) else {"input": given} if given else {}
    command = command_in(arguments)
    if not command and isinstance(arguments.get("input"), str) and tool.casefold() in ("shell", "exec"):
        command = arguments["input"]
    action = action_of(tool, command)
    if action == "edit" and failed:
        return None
    return Event(
        number,
        agent,
        EventKind.TOOL,
        session,
        cwd,
        when,
        tool=tool,
        action=action,
        command=command,
        files=[os.path.normpath(os.path.join(cwd, name)) for name in files_in(arguments)],
        input={key: _short(value) for key, value in arguments.items()},
        output=output[-_LONGEST_OUTPUT:] if action in ("shell", "test") else "",
        failed=failed,
    )


def _short(value: Any) -> Any:
    return value[:_LONGEST_INPUT] if isinstance(value, str) else value
