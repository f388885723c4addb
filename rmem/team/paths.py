"""The paths of everything the team memory keeps beside memories: waiting events, logs, locks, the login."""

from __future__ import annotations

import os
from pathlib import Path

from .. import config
from ..private_files import make_folder

LAST_SYNC = "last-sync.json"
OLD_LOG = ".old.log"
_LONGEST_SOCKET = 100


def folder() -> Path:
    """The folder of all this, made for its owner alone."""
    place = config.home() / "team"
    make_folder(place)
    return place


def spool() -> Path:
    return folder() / "spool"


def sessions() -> Path:
    return folder() / "sessions"


def log() -> Path:
    return folder() / "hooks.log"


def lock() -> Path:
    return folder() / "keeper.lock"


def socket() -> Path:
    """Where the daemon listens. The system allows a hundred characters or so; deeper homes have it among the temporary
    files, under a name that only they have."""
    place = folder() / "keeper.sock"
    if len(os.fsencode(place)) <= _LONGEST_SOCKET:
        return place
    import tempfile
    from hashlib import sha256

    own = sha256(os.fsencode(place)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"rmem-{config.user()[:16]}-{own}.sock"


def outage() -> Path:
    """What keeps events from being taken in."""
    return folder() / "outage.json"


def last_capture() -> Path:
    return folder() / "last-capture.json"


def last_sync() -> Path:
    return folder() / LAST_SYNC


def login() -> Path:
    return folder() / "login.json"
