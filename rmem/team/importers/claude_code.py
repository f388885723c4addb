"""Read transcripts of Claude Code: projects/<folder>/<session>.jsonl, and those of its subagents beside them
(agent-<id>.jsonl, or <session>/subagents/agent-<id>.jsonl). A line has type, uuid, sessionId, timestamp, cwd, gitBranch
and message; results of tools come in lines of the user, with toolUseResult beside them: an object, or "Error: …"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..dialects.claude_code import EXIT
from ..dialects.payloads import outcome_of, text_of
from ..events import Event, EventKind
from .transcript_lines import Clock, TranscriptEvent, lines, text_or_none, tool_event

AGENT = "claude-code"
# What the tool writes as messages of the user: output of its commands, reminders, notices, continuations.
_NOT_TYPED = re.compile(
    r"^\s*(?:<(?:command-|local-command-|bash-|system-reminder|task-notification|ide_|user-prompt-submit-hook|"
    r"cross-session|teammate-message|tool_use_error)|\[Request interrupted|Caveat: The messages below|"
    r"This session is being continued from)"
)
_TO_REMEMBER = re.compile(r"^\s*<user-memory-input>(.*?)</user-memory-input>", re.DOTALL)
_NOT_RUN = re.compile(
    r"^\s*(?:The user doesn't want to (?:proceed|take this action)|User rejected|\[Request interrupted)"
)
_QUEUED = ("queued_command", "prompt")


def is_original(path: Path) -> bool:
    """Return whether a transcript is more than a compaction, which repeats its session."""
    return not path.name.startswith("agent-acompact")


def read_events(path: Path) -> Iterator[TranscriptEvent]:
    """Yield the events of a session, in order."""
    calls: dict[str, dict[str, Any]] = {}
    clock = Clock(path)
    for line in lines(path):
        when = clock(line)
        session, cwd = str(line.get("sessionId") or path.stem), str(line.get("cwd") or "")
        for event in _events(line, session, cwd, when, calls):
            yield TranscriptEvent(event, branch=text_or_none(line.get("gitBranch")))


def _events(
    line: dict[str, Any], session: str, cwd: str, when: float, calls: dict[str, dict[str, Any]]
) -> Iterator[Event]:
    number, by_user = str(line.get("uuid") or ""), line.get("type") == "user"
    if line.get("type") == "attachment":  # typed while the agent was at work
        queued = line.get("attachment")
        if isinstance(queued, dict) and (queued.get("type"), queued.get("commandMode", "prompt")) == _QUEUED:
            yield from _prompt_events(queued.get("prompt"), number, session, cwd, when)
        return
    message = line.get("message")
    if line.get("type") not in ("user", "assistant") or not isinstance(message, dict):
        return
    content = message.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    for block in blocks:
        if block.get("type") == "tool_use":
            calls[str(block.get("id"))] = block
        elif block.get("type") == "tool_result":
            call = calls.pop(str(block.get("tool_use_id")), None)
            event = None if call is None else _tool_event(call, block, line.get("toolUseResult"), session, cwd, when)
            if event is not None:
                yield event
    # Prompts of subagents come from agents; text beside the result of a tool comes from the tool.
    own = line.get("isMeta") or line.get("isCompactSummary") or line.get("isVisibleInTranscriptOnly")
    if not by_user or own or line.get("isSidechain") or any(block.get("type") == "tool_result" for block in blocks):
        return
    if isinstance(content, str):
        yield from _prompt_events(content, number, session, cwd, when)
    for at, block in enumerate(blocks):
        if block.get("type") == "text":
            yield from _prompt_events(block.get("text"), f"{number}-{at}" if at else number, session, cwd, when)


def _prompt_events(prompt: Any, number: str, session: str, cwd: str, when: float) -> Iterator[Event]:
    if isinstance(prompt, list):
        prompt = text_of([block for block in prompt if isinstance(block, dict) and block.get("type") == "text"])
    if not isinstance(prompt, str) or not prompt.strip():
        return
    noted = _TO_REMEMBER.match(prompt)
    if noted is not None:
        prompt = f"Remember that {noted[1].strip()}"
    if not _NOT_TYPED.match(prompt):
        yield Event(number, AGENT, EventKind.PROMPT, session, cwd, when, prompt=prompt)


def _tool_event(
    call: dict[str, Any], block: dict[str, Any], result: Any, session: str, cwd: str, when: float
) -> Event | None:
    """Return the event of a tool call; None if it was refused, interrupted or moved to the background."""
    text = text_of(block.get("content"))
    failed = True if block.get("is_error") or (isinstance(result, str) and result.startswith("Error:")) else None
    output = text
    if isinstance(result, dict):
        if result.get("interrupted") or result.get("backgroundTaskId"):
            return None
        if result.get("stdout") or result.get("stderr"):
            output = text_of(result)
        failed = outcome_of(result) if failed is None else failed
    if failed and _NOT_RUN.match(text):
        return None
    output = EXIT.sub("", output, count=1).removeprefix("Error: ") if failed else output
    return tool_event(
        AGENT, str(call.get("id")), session, cwd, when, str(call.get("name") or ""), call.get("input"), output,
        failed=failed,
    )  # fmt: skip
