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
from ..events import Event, Kind
from ..identity import Repository, author, local_id, repository, repository_id
from ..memory import TeamMemory
from ..notes import Note
from ..sessions import Sessions, SessionState
from ..staleness import prints_of
from . import git, transcripts
from .transcript_lines import TranscriptEvent

Progress = Callable[[int, int], None]
"""Called with how many are done, and of how many."""
_STEP = 25  # events after which a run that is killed goes on; fewer than the sources that a memory keeps


class Imported(NamedTuple):
    """What an import did."""

    read: int
    passed_over: int
    memories: int


def import_transcripts(
    brain: Brain, agent: str, *, folder: Path | None = None, on_progress: Progress | None = None
) -> Imported:
    """Read the transcripts of an agent as if its hooks had told them."""
    paths = transcripts.transcripts(agent, folder)
    before, passed = brain.store.count(), 0
    seen: set[str] = set()
    for number, path in enumerate(paths, 1):
        if not _read_transcript(brain, agent, path, seen):
            passed += 1
        if on_progress is not None:
            on_progress(number, len(paths))
    return Imported(len(paths) - passed, passed, brain.store.count() - before)


def _read_transcript(brain: Brain, agent: str, path: Path, seen: set[str]) -> bool:
    """Whether there was anything new. `seen` has the ids of other transcripts' events: a session that was resumed or
    forked may begin with what the first one told."""
    place = f"imported {agent} {path.resolve()}"
    look = [path.stat().st_size, path.stat().st_mtime_ns]
    noted = json.loads(brain.store.get_meta(place) or "null") or {"file": None, "events": 0, "task": None}
    if noted["file"] == look:
        return False
    past, own = _Past(brain, noted["task"]), set[str]()
    last, number = None, 0
    for number, told in enumerate(transcripts.read_transcript(agent, path), 1):
        last = told
        known = number <= noted["events"] or told.event.id in seen
        own.add(told.event.id)
        if may_capture(told.event.cwd):
            past.live(told, quiet=known)
        if number > noted["events"] and number % _STEP == 0:
            brain.store.set_meta(place, json.dumps({"file": None, "events": number, "task": past.task}))
    if last is not None and may_capture(last.event.cwd):
        past.live(last._replace(event=_end(last.event)), quiet=False)
    brain.store.set_meta(place, json.dumps({"file": look, "events": number, "task": past.task}))
    seen |= own
    return True


def _end(event: Event) -> Event:
    number, agent, session = f"{event.session}-end", event.agent, event.session
    return Event(number, agent, Kind.SESSION_END, session, event.cwd, event.time, source="imported")


class _Past(Capture):
    """Takes in what happened on another day, perhaps on another machine: the repository is as it was then, and its
    folder may be gone."""

    def __init__(self, brain: Brain, task: str | None) -> None:
        """`task` is the id of what summed the session up when less of it was known."""
        super().__init__(brain, _Over())
        self.task = task
        self._told: TranscriptEvent | None = None
        self._quiet = False

    def live(self, told: TranscriptEvent, *, quiet: bool) -> None:
        """Go through a moment; what it taught is kept unless `quiet`."""
        self._told, self._quiet = told, quiet
        self.take(told.event)

    def _where(self, event: Event) -> Repository | None:
        assert self._told is not None
        told, folder = self._told, Path(event.cwd)
        found = repository(folder) if folder.is_absolute() else None
        gone = not folder.is_dir()
        if gone and event.cwd and (found is None or told.address is not None):
            # Without an address it is known by its folder's name only: nobody else is told, but nothing is lost.
            found = Repository(repository_id(told.address) if told.address else local_id(folder), folder)
        return None if found is None else replace(found, branch=told.branch, commit=told.commit)

    def _team(self, event: Event) -> TeamMemory:
        whose = author(event.cwd if Path(event.cwd).is_absolute() else None)
        return TeamMemory(self._brain, author=whose, origin="import", workspace=workspace_of(event.cwd))

    def _keep(self, note: Note, team: TeamMemory) -> None:
        assert self._told is not None
        if note.kind == "task" and not self._summed_up(note):
            return
        if not self._quiet:
            root = repository(self._told.event.cwd) if Path(self._told.event.cwd).is_dir() else None
            super()._keep(note if root is None else _printed(note, root.root), team)

    def _summed_up(self, note: Note) -> bool:
        """Whether there is more to say of the session than before, in place of which it is said then."""
        before, self.task = self.task, note.id
        if before is not None and before != note.id and self._brain.get(before) is not None:
            note.supersedes = before
        return before != note.id


def _printed(note: Note, root: Path) -> Note:
    """The note with what its files look like today; that they are gone already is told too."""
    if note.files:
        gone = not any((root / name).exists() for name in note.files)
        prints = {note.files[0]: []} if gone else prints_of(root, note.files)
        note.details = {**note.details, "prints": prints} if prints else note.details
    return note


class _Over(Sessions):
    """Sessions that are over: their states are of no use to anybody but this run."""

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
    """Mine the history of the repository that a path lies in."""
    where = repository(path.resolve())
    if where is None:
        raise InputError(f"path must lie in a git repository, got {path.resolve().name!r}", field="path")
    if not may_capture(str(where.root)):
        raise InputError(f"{where.name!r} opts out by its .rmem.toml", field="path")
    total, before, read = git.count(where.root), brain.store.count(), 0
    writer = _NoteWriter(brain, TeamMemory(brain, author=author(where.root), workspace=workspace_of(str(where.root))))
    history, together = git.History(where), git.Together()
    for commit in git.commits(where.root):
        read += 1
        together.add(commit.files)
        note = history.note_of(commit)
        if note is not None:
            writer.keep(_printed(note, where.root))
        if on_progress is not None:
            on_progress(read, total)
    present = git.files_now(where.root)
    for note in together.notes(where, writer.team.author, time.time(), present):
        writer.keep(_printed(note, where.root))
    return Imported(read, writer.passed_over, brain.store.count() - before)


class _NoteWriter:
    """Keeps notes of many authors, each of whom may be named in their own notes and nowhere else."""

    def __init__(self, brain: Brain, team: TeamMemory) -> None:
        self.team = team
        self.passed_over = 0
        self._brain = brain

    def keep(self, note: Note) -> None:
        if self._brain.get(note.id) is not None:
            self.passed_over += 1
            return
        if note.supersedes is not None and self._brain.get(note.supersedes) is None:
            return  # what it brings back was never known as taken back
        note.supersedes = note.supersedes or self._taken_back(note)
        self.team.remember(note)

    def _taken_back(self, note: Note) -> str | None:
        """What was learned of the commit that a revert takes back."""
        key = f"commit {note.details['takes_back']}" if "takes_back" in note.details else None
        known = (replace(note, kind=kind, key=key).id for kind in ("codebase", "error_fix", "decision") if key)
        return next((number for number in known if self._brain.get(number) is not None), None)
