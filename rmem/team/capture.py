"""Turn events into memories. A failure and the later success of the same command become a pair of error and fix;
builds, tests and linters leave their useful lines; rules and decisions in prompts are kept; a session leaves a summary.
Everything passes the privacy policy of the Brain, the state of sessions too."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..brain import Brain
from ..errors import RemanenceError
from ..privacy import PrivacyPolicy
from . import known_repositories
from .dialects.payloads import event_id
from .error_fixes import (
    Change,
    belongs_to,
    change_in,
    command_key,
    failing_tests,
    files_named,
    fix_key,
    fixed_by,
    is_remedy,
    reason_in,
    token_hash,
)
from .events import Event, EventKind
from .identity import Repository, author, repository
from .memory import TeamMemory
from .notes import Note
from .outcomes import has_failed, headline
from .private_text import public
from .prompts import PLANS, is_request, plan_of, statements, step_of
from .repository_file import settings_of
from .review import pending_note
from .sessions import Sessions, SessionState
from .shell_edits import shell_edits
from .tool_output import excerpt, signature

_LONG_PROMPT, _LONG_ERROR, _LONG_FIX = 2000, 1200, 1500
_PATIENCE, _PAUSE = 2.0, 0.05  # seconds to wait for the exit code in a transcript; between two reads
_TEXT_FIELDS = ("prompt", "command", "output", "message", "input")
_MANY_FILES, _MANY_REQUESTS = 15, 5
_GIT_SECONDS = 2.0  # after which git is given up
_LARGEST_FILE = 1 << 20  # bytes
_ABANDONED = 12 * 3600.0  # seconds after which a session that never ended is over
_WORTH_KEEPING = re.compile(
    r"\b(?:pytest|tox|nox|unittest|jest|vitest|mocha|playwright|cypress|go test|go build|go vet|cargo|mvn|gradle|make|"
    r"npm (?:run|test|ci|install)|pnpm|yarn|tsc|eslint|ruff|mypy|flake8|pylint|black|prettier|docker|kubectl|terraform|"
    r"pip install|uv |poetry|alembic|rake|rspec|bundle|dotnet|bazel|cmake|ninja|gcc|clang|swift|xcodebuild)\b"
)


class Capture:
    """Store events one at a time. Storing the same event twice changes nothing."""

    def __init__(self, brain: Brain, sessions: Sessions | None = None) -> None:
        self._brain = brain
        self.sessions = sessions or Sessions()

    def take(self, event: Event) -> None:
        event, edits = read_transcript(event, _PATIENCE)
        event = public(event)
        where, team = self._where(event), self._team(event)
        with self.sessions.changing(event.agent, event.session) as state:
            if state.is_new(event.id):
                for edit in edits:
                    if state.is_new(edit.id):
                        self._take(self._clean_event(public(edit)), state, team, where)
                if event.kind is not EventKind.SESSION_END:  # which is no work, and may come late
                    state.updated = event.time
                state.cwd = event.cwd or state.cwd
                if where is not None:
                    state.repository, state.branch = where.id, where.branch
                self._take(self._clean_event(event), state, team, where)

    def _where(self, event: Event) -> Repository | None:
        return repository(event.cwd) if event.cwd else None

    def _team(self, event: Event) -> TeamMemory:
        whose = author(event.cwd or None)
        return TeamMemory(self._brain, author=whose, origin="hook", workspace=workspace_of(event.cwd))

    def _keep(self, note: Note, team: TeamMemory) -> None:
        team.remember(note)

    def _take(self, event: Event, state: SessionState, team: TeamMemory, where: Repository | None) -> None:
        if event.kind is EventKind.SESSION_START:
            state.ended = None
            self._sum_up_abandoned(team, where, but=event.session)
        elif event.kind is EventKind.PROMPT:
            state.ended = None  # it went on; its end was that of an earlier process
            self._prompt(event, state, team, where)
        elif event.kind is EventKind.TOOL:
            self._tool(event, state, team, where)
        elif event.kind is EventKind.STOP:
            self._explain(event, state, team)
        elif event.kind is EventKind.SESSION_END:
            self._sum_up(state, team, where, event.time)

    def _clean_event(self, event: Event) -> Event:
        """Return the event as the privacy policy allows it; drop fields that the policy refuses."""
        policy = self._brain.privacy
        if policy is None:
            return event
        cleaned = {
            name: _clean_value(policy, getattr(event, name))
            for name in ("prompt", "command", "output", "message", "input")
        }
        return event._replace(**cleaned)

    # Prompts

    def _prompt(self, event: Event, state: SessionState, team: TeamMemory, where: Repository | None) -> None:
        prompt = event.prompt.strip()[:_LONG_PROMPT]
        if not prompt:
            return
        state.prompts = [*state.prompts, prompt][-10:]
        if is_request(prompt):
            if state.task:
                state.requests = [*state.requests, prompt][-_MANY_REQUESTS:]
            else:
                state.task = prompt
        for statement in statements(prompt):
            weight = 0.8 if statement.kind == "preference" else 0.7
            note = _note(event, team, statement.text, statement.kind, importance=weight).at(where)
            self._keep(note if statement.sure else pending_note(note), team)

    # Tools

    def _tool(self, event: Event, state: SessionState, team: TeamMemory, where: Repository | None) -> None:
        files = [where.relative(path) if where else path for path in event.files]
        if event.action == "edit" and not event.failed:
            for path in files:
                _note_edit(state, path, change_in(event.input, path), event.time, where)
        elif event.action == "read":
            for path in files:
                state.looked_at(path)
        if event.action in ("shell", "test") and event.command:
            edits, rest = shell_edits(event.command, event.cwd)
            if edits and (rest or not has_failed(event.command, event.output, event.failed)):
                for path, change in edits:
                    _note_edit(state, where.relative(path) if where else path, change, event.time, where)
            if rest:
                self._ran(event._replace(command=rest), state, team, where)
        if event.tool.casefold() in PLANS:
            state.plan = plan_of(event.input) or state.plan
        else:
            state.plan = step_of(event.tool, event.input, event.output, state.plan) or state.plan

    def _ran(self, event: Event, state: SessionState, team: TeamMemory, where: Repository | None) -> None:
        failed = has_failed(event.command, event.output, event.failed)
        lines = excerpt(event.output, _LONG_ERROR)
        key = command_key(event.command, event.cwd, str(where.root) if where else "")
        output = {"command": event.command[:300], "failed": failed, "output": lines[-600:], "time": event.time}
        state.note_output({**output, "key": key})
        if failed:
            if lines:
                self._note_failure(key, lines, event, state)
                self._keep_output(event, key, lines, team, where, failed=True)
            return
        for fixed in fixed_by(key, state.failures):
            self._keep_fix(event, fixed, state, team, where)
        if lines:
            self._keep_output(event, key, excerpt(event.output, 400), team, where, failed=False)

    def _note_failure(self, key: str, lines: str, event: Event, state: SessionState) -> None:
        name = headline(event.output)
        before = state.failures.get(key)
        since = before["since"] if before is not None and signature(before["name"]) == signature(name) else event.time
        state.failures[key] = {
            "command": event.command[:300], "error": lines, "name": name, "time": event.time, "since": since,
            "files": files_named(event.command, event.output), "tests": failing_tests(event.output),
        }  # fmt: skip

    def _keep_fix(
        self, event: Event, key: str, state: SessionState, team: TeamMemory, where: Repository | None
    ) -> None:
        """Store an error with what was done before the command succeeded; nothing if nothing was done."""
        broken = state.failures.pop(key)
        edits = [edit for edit in state.edits if edit["time"] >= broken["since"] and key in edit["for"]]
        changes: dict[str, list[dict[str, Any]]] = {}
        for edit in edits:
            changes.setdefault(edit["file"], []).append(edit)
        done = []
        for path, made in changes.items():
            texts = dict.fromkeys(edit["change"] for edit in made)
            done.append(": ".join(filter(None, (f"changed {path}", "; ".join(filter(None, texts))))))
        done += [
            f"ran `{output['command']}`"
            for output in state.outputs
            if broken["since"] < output["time"] < event.time and not output["failed"] and is_remedy(output["command"])
        ]
        if not done:
            return
        fix = "; ".join(dict.fromkeys(done))[:_LONG_FIX]
        text = f"{broken['name']}\nSeen when running `{broken['command']}`."
        if state.task:
            text += f" Task: {state.task[:300]}"
        note = _note(
            event, team, f"{text}\nFix: {fix}", "error_fix", importance=0.9 if edits else 0.6, files=list(changes),
            error=broken["error"], fix=fix, command=broken["command"], key=fix_key(broken["name"], changes, fix),
        ).at(where)  # fmt: skip
        self._keep(note, team)
        state.unexplained = [*state.unexplained, note.id][-10:]
        state.fixed = [*state.fixed, broken["name"]][-10:]

    def _explain(self, event: Event, state: SessionState, team: TeamMemory) -> None:
        """Add the agent's explanation of the failure to what was fixed since the last stop."""
        for number in state.unexplained if event.message else ():
            known = self._brain.get(number)
            if known is None or "reason" in known.contents:
                continue
            reason = reason_in(event.message, known.text, alone=len(state.unexplained) == 1)
            if reason:
                team.explain(number, reason, agent=event.agent, session=event.session)
        state.unexplained = []

    def _keep_output(
        self, event: Event, key: str, lines: str, team: TeamMemory, where: Repository | None, *, failed: bool
    ) -> None:
        if not _WORTH_KEEPING.search(event.command) and not failed:
            return
        outcome = "failed" if failed else "passed"
        text = f"`{event.command[:300]}` {outcome}:\n{lines}"
        details = {"failed": failed, "attempt": key}
        weight = 0.4 if failed else 0.2
        command = event.command[:300]
        self._keep(
            _note(
                event,
                team,
                text,
                "tool_output",
                importance=weight,
                command=command,
                details=details,
                key=signature(text),
            ).at(where),
            team,
        )

    # The end

    def _sum_up(self, state: SessionState, team: TeamMemory, where: Repository | None, ended: float) -> None:
        """Store a memory of the session's task, if the session did something."""
        if state.ended is not None:
            return
        state.ended = ended
        if not state.task or not (state.edits or state.outputs):
            return
        parts = [f"Task: {state.task[:600]}"]
        if state.requests:
            parts.append(f"Then asked: {'; '.join(request[:150] for request in state.requests)}")
        if state.edited_files:
            parts.append(f"Changed: {', '.join(state.edited_files[:_MANY_FILES])}")
        if state.fixed:
            parts.append(f"Fixed: {'; '.join(state.fixed)}")
        failing = [failure for failure in state.failures.values() if _WORTH_KEEPING.search(failure["command"])]
        if failing:
            left = "; ".join(f"`{failure['command']}` ({failure['name']})" for failure in failing)
            parts.append(f"Still failing: {left[:600]}")
        elif state.outputs:
            last = state.outputs[-1]
            parts.append(f"Last ran `{last['command']}`, which {'failed' if last['failed'] else 'passed'}.")
        if state.plan:
            parts.append(f"Plan: {'; '.join(state.plan)[:600]}")
        note = Note(
            "\n".join(parts),
            "task",
            author=team.author,
            agent=state.agent,
            session=state.session,
            when=state.updated,
            importance=0.6,
            files=state.edited_files[:_MANY_FILES],
            details={"failing": [failure["command"] for failure in failing]},
        )
        self._keep(note.at(where), team)

    def _sum_up_abandoned(self, team: TeamMemory, where: Repository | None, but: str) -> None:
        """Summarise sessions that ended in a crash, when the next one starts here."""
        for state in self.sessions.all():
            over = time.time() - state.updated > _ABANDONED
            if state.ended is None and over and state.session != but and where and state.repository == where.id:
                self._sum_up(state, team, where, state.updated)
                self.sessions.save(state)


def _note_edit(state: SessionState, path: str, change: Change, when: float, where: Repository | None) -> None:
    """Record an edit of a file, and which failures it is for."""
    net = change.net
    if (change.is_whole or change.is_unknown) and where is not None and state.failures:
        # What was there before is in the last commit.
        net = token_hash(_working_text(where.root, path)) if change.is_unknown else net
        before = [edit.get("net", 0) for edit in state.edits if edit["file"] == path]
        net -= token_hash(_committed_text(where.root, path)) + sum(before)
    edit = {"file": path, "time": when, "change": change.text, "net": net}
    state.note_edit({**edit, "for": belongs_to(path, state.failures)})


def _committed_text(root: Path, name: str) -> str:
    """Return the text of a file in HEAD; empty if it is not there, or large, or not on this machine."""
    # A clone without its contents must not fetch them now.
    env = {**os.environ, "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0"}
    command = ["git", "-C", os.fspath(root), "cat-file", "blob", f"HEAD:{name}"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_GIT_SECONDS, env=env, check=False)
    except (OSError, ValueError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 and len(done.stdout) <= _LARGEST_FILE else ""


def _working_text(root: Path, name: str) -> str:
    """Return the text of a file as it is now; empty if it is not there or large."""
    try:
        path = root / name
        return path.read_text(errors="replace") if path.stat().st_size <= _LARGEST_FILE else ""
    except (OSError, ValueError):
        return ""


def _clean_value(policy: PrivacyPolicy, value: Any) -> Any:
    if isinstance(value, str):
        return policy.question(value) or ""
    if isinstance(value, Mapping):
        return {key: _clean_value(policy, member) for key, member in value.items()}
    return [_clean_value(policy, member) for member in value] if isinstance(value, list) else value


def _note(event: Event, team: TeamMemory, text: str, kind: str, **more: Any) -> Note:
    return Note(text, kind, author=team.author, agent=event.agent, session=event.session, when=event.time, **more)


def workspace_of(cwd: str) -> str | None:
    """Return the workspace that this folder's repository names, or None."""
    try:
        settings = settings_of(cwd) if cwd else None
    except RemanenceError:
        return None  # the hook has logged the broken file, and did not capture
    if settings is None or settings.workspace is None:
        return None
    known_repositories.note(settings.workspace)
    return settings.workspace


def read_transcript(event: Event, patience: float) -> tuple[Event, list[Event]]:
    """Add the exit code that Codex writes to its transcript shortly after calling its hooks; also return the edits that
    come before it there. Wait up to `patience` seconds; the event is unchanged if there is none."""
    if event.failed is not None or not event.transcript or event.action not in ("shell", "test"):
        return event, []
    from .importers.codex import find_outcome

    path, end = Path(event.transcript), time.monotonic() + patience
    while path.is_file():
        found, edits = find_outcome(path, event.call)
        if found is not None or time.monotonic() > end:
            known = [
                edit._replace(id=event_id(edit.agent, event.session, edit.kind, edit.id), session=event.session)
                for edit in edits
            ]
            if found is not None:
                event = event._replace(failed=found.failed, output=event.output or found.output)
            return event, known
        time.sleep(_PAUSE)
    return event, []
