"""Run an import, with progress. The position in each transcript is saved in the store, so that a run that was killed,
or a transcript that grew, continues from there."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ...brain import Brain
from ...errors import InputError
from ..capture import Capture, workspace_of
from ..consent import may_capture
from ..events import Event, EventKind
from ..identity import Repository, author, local_id, repository, repository_id
from ..memory import TeamMemory
from ..notes import Note
from ..sessions import Sessions, SessionState
from ..staleness import prints_of
from . import git, transcripts
from .transcript_lines import TranscriptEvent

Progress = Callable[[int, int], None]
"""Called with the number done and the total."""
_STEP = 25  # events between two saved positions; fewer than the sources that a memory keeps


class Imported(NamedTuple):
    """Counts of an import."""

    read: int
    passed_over: int
    memories: int
    without_patch: int = 0
    """Commits whose contents are not all in this clone: what their patches would show is missing."""
    left_out: int = 0
    """Commits that say nothing worth a memory: releases, formatting, tests or documents alone."""


def import_transcripts(
    brain: Brain, agent: str, *, folder: Path | None = None, on_progress: Progress | None = None
) -> Imported:
    """Import the transcripts of an agent as if its hooks had reported the events."""
    paths = transcripts.find_transcripts(agent, folder)
    before, passed = brain.store.count(), 0
    seen: set[str] = set()
    for number, path in enumerate(paths, 1):
        if not _read_transcript(brain, agent, path, seen):
            passed += 1
        if on_progress is not None:
            on_progress(number, len(paths))
    return Imported(len(paths) - passed, passed, brain.store.count() - before)


def _read_transcript(brain: Brain, agent: str, path: Path, seen: set[str]) -> bool:
    """Import a transcript; return whether it had anything new. `seen` has the ids of other transcripts' events: a
    session that was resumed or forked may begin with events of the first one."""
    place = f"imported {agent} {path.resolve()}"
    version = [path.stat().st_size, path.stat().st_mtime_ns]
    progress = json.loads(brain.store.get_meta(place) or "null") or {"file": None, "events": 0, "task": None}
    if progress["file"] == version:
        return False
    past, own = _PastCapture(brain, progress["task"]), set[str]()
    last, number = None, 0
    for number, entry in enumerate(transcripts.read_transcript(agent, path), 1):
        last = entry
        known = number <= progress["events"] or entry.event.id in seen
        own.add(entry.event.id)
        if may_capture(entry.event.cwd):
            past.replay(entry, quiet=known)
        if number > progress["events"] and number % _STEP == 0:
            brain.store.set_meta(place, json.dumps({"file": None, "events": number, "task": past.task}))
    if last is not None and may_capture(last.event.cwd):
        past.replay(last._replace(event=_end(last.event)), quiet=False)
    brain.store.set_meta(place, json.dumps({"file": version, "events": number, "task": past.task}))
    seen |= own
    return True


def _end(event: Event) -> Event:
    number, agent, session = f"{event.session}-end", event.agent, event.session
    return Event(number, agent, EventKind.SESSION_END, session, event.cwd, event.time, source="imported")


class _PastCapture(Capture):
    """Captures events of the past, perhaps of another machine: the repository is as it was then, and its folder may be
    gone."""

    def __init__(self, brain: Brain, task: str | None) -> None:
        """`task` is the id of the session's summary from an earlier import."""
        super().__init__(brain, _EndedSessions())
        self.task = task
        self._current: TranscriptEvent | None = None
        self._quiet = False

    def replay(self, entry: TranscriptEvent, *, quiet: bool) -> None:
        """Process an event; store what it teaches unless `quiet`."""
        self._current, self._quiet = entry, quiet
        self.take(entry.event)

    def _where(self, event: Event) -> Repository | None:
        assert self._current is not None
        entry, folder = self._current, Path(event.cwd)
        found = repository(folder) if folder.is_absolute() else None
        gone = not folder.is_dir()
        if gone and event.cwd and (found is None or entry.address is not None):
            # Without an address only the folder's name identifies it: the memories stay private, but are not lost.
            found = Repository(repository_id(entry.address) if entry.address else local_id(folder), folder)
        return None if found is None else replace(found, branch=entry.branch, commit=entry.commit)

    def _team(self, event: Event) -> TeamMemory:
        whose = author(event.cwd if Path(event.cwd).is_absolute() else None)
        return TeamMemory(self._brain, author=whose, origin="import", workspace=workspace_of(event.cwd))

    def _keep(self, note: Note, team: TeamMemory) -> None:
        assert self._current is not None
        if note.kind == "task" and not self._is_new_summary(note):
            return
        if not self._quiet:
            root = repository(self._current.event.cwd) if Path(self._current.event.cwd).is_dir() else None
            super()._keep(note if root is None else _add_prints(note, root.root, _exist(note, root.root)), team)

    def _is_new_summary(self, note: Note) -> bool:
        """Return whether the summary of the session changed; if so, make it supersede the earlier one."""
        before, self.task = self.task, note.id
        if before is not None and before != note.id and self._brain.get(before) is not None:
            note.supersedes = before
        return before != note.id


def _exist(note: Note, root: Path) -> bool:
    return any((root / name).exists() for name in note.files)


def _add_prints(note: Note, root: Path, exist: bool) -> Note:
    """Add hashes of the lines of its files as they are today, or record that none of them exists any more."""
    if note.files:
        prints = prints_of(root, note.files) if exist else {note.files[0]: []}
        note.details = {**note.details, "prints": prints} if prints else note.details
    return note


class _EndedSessions(Sessions):
    """States of ended sessions, kept in memory for this run only."""

    def __init__(self) -> None:
        super().__init__()
        self._states: dict[tuple[str, str], SessionState] = {}

    def load(self, agent: str, session: str) -> SessionState:
        return self._states.get((agent, session)) or SessionState(agent, session)

    def save(self, state: SessionState) -> None:
        self._states[state.agent, state.session] = state

    def all(self) -> Iterator[SessionState]:
        yield from self._states.values()


def import_git(brain: Brain, path: Path, *, on_progress: Progress | None = None) -> Imported:
    """Import the git history of the repository that contains `path`."""
    where = repository(path.resolve())
    if where is None:
        raise InputError(f"path must lie in a git repository, got {path.resolve().name!r}", field="path")
    if not may_capture(str(where.root)):
        raise InputError(f"{where.name!r} opts out by its .rmem.toml", field="path")
    ids, before = git.commit_ids(where.root), brain.store.count()
    present = git.files_now(where.root)  # not what is checked out: that may be part of it, or nothing
    writer = _NoteWriter(brain, TeamMemory(brain, author=author(where.root), workspace=workspace_of(str(where.root))))
    history, pairs = git.History(where), git.FilePairs()
    read = without_patch = left_out = 0
    for commit in git.commits(where.root, ids):
        read += 1
        without_patch += not commit.is_whole
        if not commit.by_bot:
            pairs.add(commit.files)
        note = history.learn(commit)
        if note is not None:
            writer.keep(_add_prints(note, where.root, not present.isdisjoint(note.files)))
        left_out += note is None
        if on_progress is not None:
            on_progress(read, len(ids))
    for note in pairs.notes(where, writer.team.author, time.time(), present):
        writer.keep(_add_prints(note, where.root, True))
    return Imported(read, writer.passed_over, brain.store.count() - before, without_patch, left_out)


class _NoteWriter:
    """Stores notes of many authors; each author may be named in their own notes only."""

    def __init__(self, brain: Brain, team: TeamMemory) -> None:
        self.team = team
        self.passed_over = 0
        self._brain = brain

    def keep(self, note: Note) -> None:
        if self._brain.get(note.id) is not None:
            self.passed_over += 1
            return
        if note.supersedes is not None and self._brain.get(note.supersedes) is None:
            return  # the revert that it undoes was never stored
        note.supersedes = note.supersedes or self._find_reverted(note)
        self.team.remember(note)

    def _find_reverted(self, note: Note) -> str | None:
        """Return the id of the memory of the commit that a revert undoes."""
        key = f"commit {note.details['takes_back']}" if "takes_back" in note.details else None
        known = (replace(note, kind=kind, key=key).id for kind in ("codebase", "error_fix", "decision") if key)
        return next((number for number in known if self._brain.get(number) is not None), None)
