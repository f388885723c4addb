"""The spool: a folder of waiting events, so that hooks need not wait for the memory. One file for each event, on disk
before `put` returns; it is removed only after the event is in the memory. Storing an event twice, after a kill between
the two, changes nothing: its id is known. Events that can never be stored are moved to `unusable`, each with its
reason."""

from __future__ import annotations

import os
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
    """Mask an event and write it to the spool. Durable on return; StoreFullError if too many wait."""
    place = paths.spool()
    if not place.is_dir():
        make_folder(place)
        sync_folder(place.parent)
    if len(_names(place)) >= MOST:
        raise StoreFullError(
            f"this event was not kept: {MOST:,} wait in {place} already; `rmem status` shows why they are not taken in"
        )
    path = place / f"{int(event.time * 1e9):020d}-{os.getpid()}-{event.id[:8]}{_SUFFIX}"  # in the order of events
    replace_file(path, mask_event(event).to_json().encode("utf-8", "surrogatepass"))
    return path


def waiting() -> list[Path]:
    """Return the files of waiting events, oldest first."""
    return _events(paths.spool())


def before(event: Event, most: int) -> list[Path]:
    """Return the files of events that wait before this one, or all if it does not wait; none if there are more than
    `most`."""
    paths = waiting()
    if len(paths) > most:
        return []
    for at in range(len(paths) - 1, -1, -1):  # it is one of the last
        try:
            found = read(paths[at])
        except ValueError:
            continue  # the daemon sets it aside
        if found is not None and found.id == event.id:
            return paths[:at]
    return paths


def read(path: Path) -> Event | None:
    """Read an event; None if another process removed it."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    return Event.from_json(data.decode("utf-8", "surrogatepass"))


def unusable() -> list[Path]:
    """Return the files of events that were set aside, oldest first."""
    return _events(paths.spool() / "unusable")


def set_aside(path: Path, reason: str) -> None:
    """Move an event that cannot be stored out of the queue, with the reason beside it."""
    place = path.parent / "unusable"
    make_folder(place)
    replace_file((place / path.name).with_suffix(_REASON), reason.encode("utf-8", "replace"))
    os.replace(path, place / path.name)
    sync_folder(place)


def reason_of(path: Path) -> str:
    """Return why an event was set aside: the first line of the file beside it, or empty."""
    try:
        lines = path.with_suffix(_REASON).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return lines[0] if lines else ""


def remove(path: Path) -> None:
    """Remove an event and its reason durably."""
    for file in (path, path.with_suffix(_REASON)):
        file.unlink(missing_ok=True)
    sync_folder(path.parent)


def put_back() -> int:
    """Move all events that were set aside back to the queue, in order; return how many."""
    events = unusable()
    for path in events:
        os.replace(path, path.parent.parent / path.name)
        path.with_suffix(_REASON).unlink(missing_ok=True)
    return len(events)


def _events(place: Path) -> list[Path]:
    return [place / name for name in sorted(_names(place))]


def _names(place: Path) -> list[str]:
    """Return the names of complete events in a folder; drafts begin with a dot."""
    try:
        with os.scandir(place) as entries:
            return [entry.name for entry in entries if entry.name.endswith(_SUFFIX) and entry.name[0] != "."]
    except FileNotFoundError:
        return []
