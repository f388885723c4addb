"""Read transcripts of Codex CLI: sessions/YYYY/MM/DD/rollout-*.jsonl, lines of timestamp, type and payload.

session_meta names the session, its folder and its git state; turn_context the folder of a turn; response_item has
tool calls and their outputs, which are JSON with metadata.exit_code, or a text headed by the exit code; event_msg has
the user's messages and how commands ended, lately as items; where a model calls tools from JavaScript, the response
item has the script only. Early versions wrote the response items bare."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from ..dialects.payloads import command_in, outcome_of, parse_exit, parse_object, text_of
from ..events import Event, EventKind
from .transcript_lines import Clock, TranscriptEvent, lines, text_or_none, tool_event

AGENT = "codex"
_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")
_SHELLS = ("shell_command", "container.exec", "exec_command", "unified_exec")
# What the tool writes as messages of the user.
_NOT_TYPED = re.compile(
    r"^\s*(?:<(?:environment_context|user_instructions|permissions|turn_aborted|user_shell_command|skill|INSTRUCTIONS|"
    r"collaboration_mode|subagent_notification|user_action|model_switch|apps_instructions|plugins_instructions)|"
    r"# AGENTS\.md instructions)"
)
_IDE_CONTEXT = re.compile(r"^# Context from my IDE setup:.*?^## My request for Codex:\s*", re.DOTALL | re.MULTILINE)
_FOLDER = re.compile(r"<cwd>([^<]+)</cwd>")
_HEADED = re.compile(r"^(?:Exit code|Wall time|Chunk ID|Process exited|Process running|Total output lines)\b", re.M)
_EXIT = re.compile(r"^(?:Exit code:|Process exited with code) (-?\d+)", re.MULTILINE)
_RUNNING = re.compile(r"^Process running with session ID (\d+)", re.MULTILINE)
_LAST = 4 << 20  # bytes of a transcript in which a command that just ended is looked for
_NOT_RUN = re.compile(r"(?:rejected by user|aborted by (?:the )?user|rejected by the user)", re.IGNORECASE)
_REFUSED = re.compile(r"^\s*(?:apply_patch verification failed|patch rejected|Invalid patch|Failed to find)", re.I)


def read_events(path: Path) -> Iterator[TranscriptEvent]:
    """Yield the events of a session, in order."""
    reader = _TranscriptReader(path)
    clock = Clock(path)
    for at, line in enumerate(lines(path)):
        when = clock(line)
        for event in reader.events(at, line, when):
            yield TranscriptEvent(event, reader.branch, reader.commit, reader.address)


def find_outcome(path: Path, call: str) -> tuple[Event | None, list[Event]]:
    """Return how the command with this call id ended, from the end of its transcript, or None if it is not there yet;
    and the edits before it. No hook is called for a patch that a model applies by its shell."""
    reader = _TranscriptReader(path, messages=False)
    clock = Clock(path)
    edits: list[Event] = []
    for at, line in enumerate(lines(path, last=_LAST)):
        for event in reader.events(at, line, clock(line)):
            if event.id == call:
                return event, edits
            if event.action == "edit" and not event.failed:
                edits.append(event)
    return None, edits


class _TranscriptReader:
    """Reads one transcript, line by line."""

    def __init__(self, path: Path, *, messages: bool = True) -> None:
        """`messages=False` skips the user's messages."""
        self.branch: str | None = None
        self.commit: str | None = None
        self.address: str | None = None
        self._session, self._cwd, self._named = path.stem, "", False
        self._by_agent = False
        self._messages = messages and not _contains(path, b'"user_message"')
        self._calls: dict[str, tuple[str, Any, str]] = {}
        self._running: dict[str, tuple[str, str, Any, str, str]] = {}

    def events(self, at: int, line: dict[str, Any], when: float) -> Iterator[Event]:
        body, kind = line.get("payload"), line.get("type")
        if not isinstance(body, dict):
            if "type" not in line and "id" in line:
                body, kind = line, "session_meta"  # the first line of an older version
            elif "payload" not in line:
                body, kind = line, "response_item"
            else:
                return
        if kind == "session_meta":
            self._read_session(body)
        elif kind == "turn_context":
            self._cwd = str(body.get("cwd") or self._cwd)
        elif kind == "event_msg":
            yield from self._read_event_message(at, body, when)
        elif kind == "response_item":
            yield from self._read_item(at, body, when)

    def _read_session(self, body: dict[str, Any]) -> None:
        if self._named:
            return  # a fork also has the header of the session that it came from
        self._named = True
        self._session, self._cwd = str(body.get("id") or self._session), str(body.get("cwd") or self._cwd)
        source = body.get("source")
        self._by_agent = isinstance(source, dict) and "subagent" in source
        git = body.get("git")
        if isinstance(git, dict):
            self.branch, self.commit = text_or_none(git.get("branch")), text_or_none(git.get("commit_hash"))
            self.address = text_or_none(git.get("repository_url"))

    def _read_event_message(self, at: int, body: dict[str, Any], when: float) -> Iterator[Event]:
        if body.get("type") == "user_message":
            yield from self._prompt_event(at, str(body.get("message") or ""), when)
        elif body.get("type") == "exec_command_end":
            number = str(body.get("call_id") or f"{self._session}-{at}")
            tool, given, cwd = self._calls.pop(
                number, ("shell", {"command": body.get("command")}, str(body.get("cwd") or self._cwd))
            )
            failed = outcome_of(body)
            event = self._finished_call(
                number, tool, given, cwd, when, text_of(body.get("aggregated_output") or body), failed
            )
            if event is not None:
                yield event
        elif body.get("type") == "item_completed" and isinstance(item := body.get("item"), dict):
            event = self._read_finished_item(item, when)
            if event is not None:
                yield event

    def _read_finished_item(self, item: dict[str, Any], when: float) -> Event | None:
        if item.get("status") not in ("completed", "failed"):
            return None  # declined, or still running
        number = str(item.get("id") or "")
        if item.get("type") == "CommandExecution":
            folder = str(item.get("cwd") or self._cwd)
            folder = unquote(urlsplit(folder).path) if folder.startswith("file:") else folder
            tool, given, cwd = "shell", {"command": item.get("command")}, folder
        elif item.get("type") == "FileChange" and isinstance(item.get("changes"), dict):
            tool, given, cwd = "apply_patch", {"input": _patch(item["changes"])}, self._cwd
        else:
            return None
        self._calls.pop(number, None)
        output, failed = text_of(item.get("aggregated_output")), item.get("status") == "failed"
        if isinstance(code := item.get("exit_code"), int):
            output, failed = parse_exit(output, code)
        return self._finished_call(number, tool, given, cwd, when, output, failed)

    def _read_item(self, at: int, body: dict[str, Any], when: float) -> Iterator[Event]:
        kind, number = body.get("type"), str(body.get("call_id") or body.get("id") or "")
        if kind == "message" and body.get("role") == "user":
            text = text_of(body.get("content"))
            folder = _FOLDER.search(text) if _NOT_TYPED.match(text) else None
            self._cwd = folder[1].strip() if folder and not self._cwd else self._cwd
            if self._messages:
                yield from self._prompt_event(at, text, when)
        elif kind in _CALLS:
            given = parse_object(body.get("arguments", body.get("input", body.get("action"))))
            name = str(body.get("name") or "shell")
            self._calls[number] = "shell" if name in _SHELLS else name, given, self._folder(given)
        elif kind in _OUTPUTS and number in self._calls:
            event = self._read_output(number, *self._calls.pop(number), body.get("output"), when)
            if event is not None:
                yield event

    def _prompt_event(self, at: int, prompt: str, when: float) -> Iterator[Event]:
        prompt = _IDE_CONTEXT.sub("", prompt)
        if prompt.strip() and not self._by_agent and not _NOT_TYPED.match(prompt):
            yield Event(f"{self._session}-{at}", AGENT, EventKind.PROMPT, self._session, self._cwd, when, prompt=prompt)

    def _folder(self, given: Any) -> str:
        own = given.get("workdir") or given.get("working_directory") if isinstance(given, Mapping) else None
        return os.path.join(self._cwd, own) if isinstance(own, str) else self._cwd

    def _read_output(self, number: str, tool: str, given: Any, cwd: str, out: Any, when: float) -> Event | None:
        """Return the event of a tool call; None if it was refused or still runs."""
        output, failed, running_id = _result(out)
        before = self._running.pop(str(given.get("session_id")), None) if isinstance(given, Mapping) else None
        if before is not None:  # further output of a running command
            number, tool, given, cwd, earlier = before
            output = f"{earlier}\n{output}"
        if running_id is not None:
            self._running[running_id] = number, tool, given, cwd, output
            return None
        return self._finished_call(number, tool, given, cwd, when, output, failed)

    def _finished_call(
        self, number: str, tool: str, given: Any, cwd: str, when: float, output: str, failed: bool | None
    ) -> Event | None:
        if _NOT_RUN.search(output[:300]) and failed is not False:
            return None
        command = command_in(given) if isinstance(given, Mapping) else ""
        if "*** Begin Patch" in command and "apply_patch" in command:
            patch = command[command.index("*** Begin Patch") :]
            tool, given = "apply_patch", {"input": patch}
        if tool == "apply_patch" and _REFUSED.match(output):
            failed = True
        return tool_event(AGENT, number, self._session, cwd, when, tool, given, output, failed=failed)


def _patch(changes: Mapping[str, Any]) -> str:
    """Return the changes of an item, by file, as the patch that `apply_patch` takes."""
    parts = ["*** Begin Patch"]
    for path, change in changes.items():
        kind = change.get("type") if isinstance(change, Mapping) else None
        lines = text_of(change.get("unified_diff") if kind == "update" else change.get("content")) if kind else ""
        marked = (
            lines
            if kind == "update"
            else "\n".join(f"{'-' if kind == 'delete' else '+'}{line}" for line in lines.splitlines())
        )
        parts += [f"*** {str(kind).title()} File: {path}", marked]
    return "\n".join([*parts, "*** End Patch"])


def _result(out: Any) -> tuple[str, bool | None, str | None]:
    """Return the output of a tool, whether it failed, and the session id of a command that still runs."""
    out = parse_object(out)
    if isinstance(out, Mapping):
        metadata = out.get("metadata")
        failed = outcome_of(metadata) if isinstance(metadata, Mapping) else None
        return text_of(out), outcome_of(out) if failed is None else failed, None
    text = text_of(out)
    head, mark, rest = text.partition("Output:\n")
    if not mark or len(head) > 500 or not _HEADED.search(head):
        return text, None, None
    code, running_id = _EXIT.search(head), _RUNNING.search(head)
    if code is not None:
        return *parse_exit(rest, int(code[1])), None
    return rest, None, running_id[1] if running_id else None


def _contains(path: Path, mark: bytes) -> bool:
    with path.open("rb") as file:
        before = b""
        while chunk := file.read(1 << 20):
            if mark in before + chunk:
                return True
            before = chunk[-len(mark) :]
    return False
