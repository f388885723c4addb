"""Bringing it in, with progress. What was read whole is noted, so that a second run goes on behind it."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ...brain import Brain
from ...errors import InputError
from .. import places
from ..capture import Capture
from ..identity import author, repository
from ..memory import TeamMemory
from ..sessions import Sessions
from . import git, transcripts

Progress = Callable[[int, int], None]
"""Called with how many are done, and of how many."""


class Imported(NamedTuple):
    """What an import did."""

    read: int
    passed_over: int
    memories: int


class _Done:
    """Which files were read, as they were then."""

    def __init__(self, name: str) -> None:
        self._path = places.folder() / f"imported-{name}.json"
        try:
            self._known: dict[str, Any] = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            self._known = {}

    def knows(self, path: Path) -> bool:
        return self._known.get(str(path)) == _print(path)

    def note(self, path: Path) -> None:
        self._known[str(path)] = _print(path)
        draft = self._path.with_suffix(".new")
        draft.write_text(json.dumps(self._known), encoding="utf-8")
        os.replace(draft, self._path)


def _print(path: Path) -> list[int]:
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns]


def import_transcripts(
    brain: Brain, agent: str, *, folder: Path | None = None, on_progress: Progress | None = None
) -> Imported:
    """Read the transcripts of an agent as if its hooks had told them."""
    paths = transcripts.transcripts(agent, folder)
    done, before, passed = _Done(agent), brain.store.count(), 0
    for number, path in enumerate(paths, 1):
        if done.knows(path):
            passed += 1
        else:
            _read_transcript(brain, agent, path)
            done.note(path)
        if on_progress is not None:
            on_progress(number, len(paths))
    return Imported(len(paths) - passed, passed, brain.store.count() - before)


def _read_transcript(brain: Brain, agent: str, path: Path) -> None:
    # The sessions are over: their states are of no use to anybody but this run.
    with tempfile.TemporaryDirectory() as scratch:
        capture = Capture(brain, Sessions(Path(scratch)))
        for event in transcripts.events_of(agent, path):
            capture.take(event)


def import_git(brain: Brain, path: Path, *, on_progress: Progress | None = None) -> Imported:
    """Mine the history of the repository that a path lies in."""
    where = repository(path.resolve())
    if where is None:
        raise InputError(f"path must lie in a git repository, got {path.name!r}", field="path")
    team = TeamMemory(brain, author=author(where.root))
    total, before, read, passed = git.count(where.root), brain.store.count(), 0, 0
    together = git.Together()
    for commit in git.commits(where.root):
        read += 1
        together.add(commit.files)
        note = git.note_of(commit, where)
        if note is not None:
            if brain.get(note.id) is None:
                team.remember(note)
            else:
                passed += 1
        if on_progress is not None:
            on_progress(read, total)
    for note in together.notes(where, team.author, time.time()):
        if brain.get(note.id) is None:
            team.remember(note)
        else:
            passed += 1
    return Imported(read, passed, brain.store.count() - before)
