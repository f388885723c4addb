"""Remove what the team memory holds about somebody beside memories: session states, waiting events, lines of the log.
Part of `rmem forget --subject`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, NamedTuple

from .. import config
from ..tiers.forgetting import Subject
from . import paths, spool
from .atomic_files import replace_file
from .identity import author
from .sessions import Sessions, SessionState


class Removed(NamedTuple):
    """How many sessions were removed or edited, and how many waiting events and log lines were removed."""

    sessions: int = 0
    events: int = 0
    lines: int = 0


def forget_subject(subject: str, *, dry_run: bool = False) -> Removed:
    """Remove the sessions and events of a person or agent, and what names it in other sessions."""
    if not (config.home() / "team").is_dir():
        return Removed()
    somebody = Subject(subject)
    return Removed(
        events=_events(somebody, dry_run), sessions=_sessions(somebody, dry_run), lines=_lines(somebody, dry_run)
    )


def _events(subject: Subject, dry_run: bool) -> int:
    """Remove the events of a subject, waiting or set aside. One that cannot be parsed is searched as text."""
    number = 0
    for path in (*spool.waiting(), *spool.unusable()):
        try:
            event = spool.read(path)
            found = event is not None and (
                subject.is_among(event.agent, event.session, author(event.cwd or None))
                or _names(event._asdict(), subject)
            )
        except ValueError:
            found = subject.is_named_in(path.read_text(encoding="utf-8", errors="replace"))
        number += found
        if found and not dry_run:
            spool.remove(path)
    return number


def _sessions(subject: Subject, dry_run: bool) -> int:
    sessions, number = Sessions(), 0
    with sessions.lock():
        for state in sessions.all():
            if subject.is_among(state.agent, state.session, author(state.cwd or None)):
                number += 1
                if not dry_run:
                    sessions.remove(state)
            elif _names(asdict(state), subject):
                number += 1
                if not dry_run:
                    sessions.save(SessionState(**_without(asdict(state), subject)))
    return number


def _lines(subject: Subject, dry_run: bool) -> int:
    """Remove log lines, and one-line status files."""
    number = 0
    last = paths.outage(), paths.last_capture(), paths.last_sync()
    for path in (paths.log(), paths.log().with_suffix(paths.OLD_LOG), *last):
        try:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
        except FileNotFoundError:
            continue
        kept = [line for line in lines if not subject.is_named_in(line)]
        number += len(lines) - len(kept)
        if len(kept) < len(lines) and not dry_run:
            if kept:
                replace_file(path, "".join(kept).encode())
            else:
                path.unlink()
    return number


def _names(value: Any, subject: Subject) -> bool:
    """Return whether a text anywhere in a value names the subject."""
    if isinstance(value, str):
        return subject.is_named_in(value)
    if isinstance(value, dict):
        return any(_names(part, subject) for pair in value.items() for part in pair)
    return any(_names(member, subject) for member in value) if isinstance(value, list | tuple) else False


def _without(state: dict[str, Any], subject: Subject) -> dict[str, Any]:
    """Return a session's fields without texts and entries that name the subject."""
    kept: dict[str, Any] = {}
    for field, value in state.items():
        if isinstance(value, str):
            kept[field] = "" if _names(value, subject) else value
        elif isinstance(value, list):
            kept[field] = [member for member in value if not _names(member, subject)]
        elif isinstance(value, dict):
            kept[field] = {key: member for key, member in value.items() if not _names({key: member}, subject)}
        else:
            kept[field] = value
    return kept
