"""The spool: where hooks put events, so that they need not wait for the memory. One file for each event, on disk before
`put` returns; whoever drains it removes a file only after what it says is in the memory. An event that is drained
twice, because somebody was killed between the two, changes nothing: its id is known."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from . import places
from .events import Event
from .masking import masked

_SUFFIX = ".json"
_MOST = 50_000  # events that may wait; a spool that nobody drains does not fill the disk


def put(event: Event, folder: Path | None = None) -> Path:
    """Hand an event over, masked. It is durable when this returns."""
    event = masked(event)
    place = folder or places.spool()
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    name = f"{time.time_ns():020d}-{os.getpid()}{_SUFFIX}"
    waiting = place / f".{name}"
    descriptor = os.open(waiting, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(event.to_json().encode("utf-8", "surrogatepass"))
        file.flush()
        os.fsync(file.fileno())
    done = place / name
    os.replace(waiting, done)
    return done


def waiting(folder: Path | None = None) -> list[Path]:
    """The events that wait, oldest first."""
    place = folder or places.spool()
    try:
        names = [entry.name for entry in os.scandir(place) if entry.name.endswith(_SUFFIX) and entry.name[0] != "."]
    except FileNotFoundError:
        return []
    return [place / name for name in sorted(names)[:_MOST]]


def read(paths: list[Path]) -> Iterator[tuple[Path, Event | None]]:
    """The events of some files; None for one that cannot be read."""
    for path in paths:
        try:
            yield path, Event.from_json(path.read_bytes().decode("utf-8", "surrogatepass"))
        except FileNotFoundError:
            continue  # somebody else drained it
        except (OSError, ValueError, KeyError, TypeError):
            yield path, None


def set_aside(path: Path) -> None:
    """Keep an event that cannot be used where nobody drains it, so that it can be looked at."""
    place = path.parent / "unusable"
    place.mkdir(exist_ok=True, mode=0o700)
    os.replace(path, place / path.name)
