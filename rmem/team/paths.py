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
    """Return the folder of the team memory's own files; create it for its owner alone."""
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
    """Return the daemon's socket. Systems allow about a hundred characters, so a long home uses the temporary
    folder."""
    place = folder() / "keeper.sock"
    if len(os.fsencode(place)) <= _LONGEST_SOCKET:
        return place
    import tempfile
    from hashlib import sha256

    own = sha256(os.fsencode(place)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"rmem-{config.user()[:16]}-{own}.sock"


def outage() -> Path:
    """Return the file that records why events cannot be stored."""
    return folder() / "outage.json"


def last_capture() -> Path:
    return folder() / "last-capture.json"


def last_sync() -> Path:
    return folder() / LAST_SYNC


def login() -> Path:
    return folder() / "login.json"
