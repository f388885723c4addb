"""The spool: a folder of waiting events, so that hooks need not wait for the memory. One file for each event, on disk
before `put` returns; it is removed only after the event is in the memory. Storing an event twice, after a kill between
the two, changes nothing: its id is known. Events that can never be stored are moved to `unusable`, each with its
reason."""

from __future__ import annotations

import os
import time
from pathlib import Path

from ..errors import StoreFullError
from ..private_files import make_folder
from . import paths
from .atomic_files import replace_file, sync_folder
from .event_mask import mask_event
from .events import Event

MOST = 50_000
"""Events that may wait; a spool that nobody drains does not fill the disk."""
_SUFFIX, _REASON = ".json", ".reason"


def put(event: Event) -> Path:
    """Hand an event over, masked. It is durable when this returns; a StoreFullError if too many wait already."""
    place = paths.spool()
    if not place.is_dir():
        make_folder(place)
        sync_folder(place.parent)
    if len(_names(place)) >= MOST:
        raise StoreFullError(
            f"this event was not kept: {MOST:,} wait in {place} already; `rmem status` shows why they are not taken in"
        )
    path = place / f"{time.time_ns():020d}-{os.getpid()}{_SUFFIX}"
    replace_file(path, mask_event(event).to_json().encode("utf-8", "surrogatepass"))
    return path


def waiting() -> list[Path]:
    """The events that wait, oldest first."""
    return _events(paths.spool())


def read(path: Path) -> Event | None:
    """The event of a file; None if it is gone, because somebody else drained it."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    return Event.from_json(data.decode("utf-8", "surrogatepass"))


def unusable() -> list[Path]:
    """The events that were set aside, oldest first."""
    return _events(paths.spool() / "unusable")


def set_aside(path: Path, reason: str) -> None:
    """Keep an event that can never be taken in where nobody drains it, with the reason beside it."""
    place = path.parent / "unusable"
    make_folder(place)
    replace_file((place / path.name).with_suffix(_REASON), reason.encode("utf-8", "replace"))
    os.replace(path, place / path.name)
    sync_folder(place)


def reason_of(path: Path) -> str:
    """Why an event was set aside: the first line of the file beside it, or empty if there is none."""
    try:
        lines = path.with_suffix(_REASON).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return lines[0] if lines else ""


def remove(path: Path) -> None:
    """Remove an event, and the reason why it was set aside; they are gone from the disk when this returns."""
    for file in (path, path.with_suffix(_REASON)):
        file.unlink(missing_ok=True)
    sync_folder(path.parent)


def put_back() -> int:
    """Let all events that were set aside wait again, in their old places; how many there were."""
    events = unusable()
    for path in events:
        os.replace(path, path.parent.parent / path.name)
        path.with_suffix(_REASON).unlink(missing_ok=True)
    return len(events)


def _events(place: Path) -> list[Path]:
    return [place / name for name in sorted(_names(place))]


def _names(place: Path) -> list[str]:
    """The names of whole events in a folder; drafts begin with a dot."""
    try:
        with os.scandir(place) as entries:
            return [entry.name for entry in entries if entry.name.endswith(_SUFFIX) and entry.name[0] != "."]
    except FileNotFoundError:
        return []
