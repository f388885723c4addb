"""Transcripts as events. Claude Code keeps one JSONL file for each session under projects/, Codex under sessions/;
lines that this version does not know are passed over. Ids are the transcript's, so reading it twice adds nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from ..dialects.reading import action_of, command_in, decoded, files_in, outcome_of, text_of
from ..events import Event, Kind

_LONGEST_LINE = 8 << 20


def folder_of(agent: str) -> Path:
    """Where an agent keeps its transcripts."""
    if agent == "claude-code":
        return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude") / "projects"
    return Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex") / "sessions"


def transcripts(agent: str, folder: Path | None = None) -> list[Path]:
    """The transcripts of an agent, oldest first."""
    found = (folder or folder_of(agent)).rglob("*.jsonl")
    return sorted((path for path in found if path.is_file()), key=lambda path: (path.stat().st_mtime, path))


def events_of(agent: str, path: Path) -> Iterator[Event]:
    """What happened in a session, in order, and its end."""
    told = _claude_code(path) if agent == "claude-code" else _codex(path)
    last = None
    for event in told:
        last = event
        yield event
    if last is not None:
        yield Event(
            f"{last.session}-end", agent, Kind.SESSION_END, last.session, last.cwd, last.time, source="imported"
        )


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8", errors="replace") as file:
        while line := file.readline(_LONGEST_LINE):
            try:
                data = json.loads(line)
            except ValueError:
                continue
            if isinstance(data, dict):
                yield data


def _moment(told: object) -> float:
    try:
        return datetime.fromisoformat(str(told).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0


def _claude_code(path: Path) -> Iterator[Event]:
    calls: dict[str, dict[str, Any]] = {}
    for line in _lines(path):
        message = line.get("message")
        if line.get("type") not in ("user", "assistant") or not isinstance(message, dict) or line.get("isMeta"):
            continue
        session, cwd = str(line.get("sessionId") or path.stem), str(line.get("cwd") or "")
        when, number = _moment(line.get("timestamp")), str(line.get("uuid") or "")
        content = message.get("content")
        if line["type"] == "user" and isinstance(content, str):
            if not content.startswith("<"):  # commands and reminders of the tool itself
                yield Event(number, "claude-code", Kind.PROMPT, session, cwd, when, prompt=content)
            continue
        for block in content if isinstance(content, list) else ():
            if not isinstance(block, dict):
                continue
            if block.get("type") == "tool_use":
                calls[str(block.get("id"))] = block
            elif block.get("type") == "tool_result":
                call = calls.pop(str(block.get("tool_use_id")), None)
                if call is not None:
                    result = line.get("toolUseResult")
                    yield _used(
                        "claude-code", str(call.get("id")), session, cwd, when, str(call.get("name") or ""),
                        call.get("input"), result if isinstance(result, dict) else block.get("content"),
                        failed=True if block.get("is_error") else None,
                    )  # fmt: skip
            elif block.get("type") == "text" and line["type"] == "user":
                said = str(block.get("text") or "")
                if said and not said.startswith("<"):
                    yield Event(number, "claude-code", Kind.PROMPT, session, cwd, when, prompt=said)


def _codex(path: Path) -> Iterator[Event]:
    session, cwd = path.stem, ""
    calls: dict[str, tuple[str, Any]] = {}
    for at, line in enumerate(_lines(path)):
        body = line.get("payload")
        if not isinstance(body, dict):
            continue
        when, kind = _moment(line.get("timestamp")), line.get("type")
        if kind == "session_meta":
            session, cwd = str(body.get("id") or session), str(body.get("cwd") or cwd)
        elif kind == "turn_context":
            cwd = str(body.get("cwd") or cwd)
        elif kind == "event_msg" and body.get("type") == "user_message":
            said = str(body.get("message") or "")
            yield Event(f"{session}-{at}", "codex", Kind.PROMPT, session, cwd, when, prompt=said)
        elif kind == "response_item" and body.get("type") in ("function_call", "custom_tool_call", "local_shell_call"):
            given = body.get("arguments", body.get("input", body.get("action")))
            calls[str(body.get("call_id"))] = str(body.get("name") or "shell"), decoded(given)
        elif kind == "response_item" and body.get("type") in ("function_call_output", "custom_tool_call_output"):
            known = calls.pop(str(body.get("call_id")), None)
            if known is not None:
                out = decoded(body.get("output"))
                told = out.get("metadata", out) if isinstance(out, Mapping) else out
                yield _used(
                    "codex", str(body.get("call_id")), session, cwd, when, *known, out, failed=outcome_of(told)
                )  # fmt: skip


def _used(
    agent: str, number: str, session: str, cwd: str, when: float, tool: str, given: Any, out: Any,
    *, failed: bool | None,
) -> Event:  # fmt: skip
    arguments = dict(given) if isinstance(given, Mapping) else {"input": given} if given else {}
    command = command_in(arguments)
    return Event(
        number,
        agent,
        Kind.TOOL,
        session,
        cwd,
        when,
        tool=tool,
        action=action_of(tool, command),
        command=command,
        files=files_in(arguments),
        input=arguments,
        output=text_of(out),
        failed=outcome_of(out) if failed is None else failed,
    )
