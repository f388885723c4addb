"""Sessions of the dashboard, and one-time codes that log in without a token.

A session has two halves. Its id is in a cookie that scripts cannot read; its key is in the storage of the page, which
other ports and hosts cannot read, and is sent in a header. Both are needed. Sessions are kept in memory: they end with
the server, and after some time without requests."""

from __future__ import annotations

import hmac
import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

KEY_HEADER = b"x-rmem-key"
CODE_SECONDS = 120.0
"""How long a one-time code may wait to be used."""
_MAX_SESSIONS = 10_000  # beyond, the longest idle one ends
_MAX_OF_TOKEN = 50  # so that one token cannot end the sessions of others
_COOKIE = "rmem_session"


class NewSession(NamedTuple):
    """The two halves of a session."""

    id: str
    key: str


@dataclass(slots=True)
class _Session:
    key: str
    token: str
    used: float


@dataclass(slots=True)
class _Invitation:
    token: str
    until: float


class DashboardSessions:
    """All sessions of one server process. Safe to use from many threads."""

    def __init__(self, idle_seconds: float) -> None:
        self.idle_seconds = idle_seconds
        self._sessions: OrderedDict[str, _Session] = OrderedDict()  # the one idle for longest is the first
        self._invitations: dict[str, _Invitation] = {}
        self._lock = Lock()

    def invite(self, token: str, code: str | None = None) -> str:
        """Return a code that opens a session with a token, once and soon: `code`, or a new one."""
        code = code or secrets.token_urlsafe(32)
        with self._lock:
            self._invitations[code] = _Invitation(token, time.monotonic() + CODE_SECONDS)
        return code

    def accept(self, code: str) -> str | None:
        """Return the token behind a code; None if it was used, has expired or never was."""
        with self._lock:
            found = self._invitations.pop(code, None)
        return found.token if found is not None and time.monotonic() < found.until else None

    def open(self, token: str) -> NewSession:
        """Begin a session with a token that was found valid."""
        made = NewSession(secrets.token_urlsafe(32), secrets.token_urlsafe(32))
        with self._lock:
            self._end_idle()
            same = [id for id, session in self._sessions.items() if session.token == token]
            for id in same[: max(0, len(same) + 1 - _MAX_OF_TOKEN)]:
                del self._sessions[id]
            self._sessions[made.id] = _Session(made.key, token, time.monotonic())
            if len(self._sessions) > _MAX_SESSIONS:
                self._sessions.popitem(last=False)
        return made

    def token_of(self, id: str, key: str) -> str | None:
        """Return the token of a session by both of its halves, and count it as used."""
        with self._lock:
            self._end_idle()
            session = self._sessions.get(id)
            if session is None or not hmac.compare_digest(session.key.encode(), key.encode("utf-8", "replace")):
                return None
            session.used = time.monotonic()
            self._sessions.move_to_end(id)
            return session.token

    def close(self, id: str) -> None:
        with self._lock:
            self._sessions.pop(id, None)

    def _end_idle(self) -> None:
        since = time.monotonic() - self.idle_seconds
        while self._sessions and next(iter(self._sessions.values())).used < since:
            self._sessions.popitem(last=False)


def cookie_name(host: str) -> str:
    """Return the name of the cookie, by the Host header: browsers send cookies to every port of a host, so that two
    servers on one machine need different names."""
    port = host.rpartition(":")[2]
    return f"{_COOKIE}_{port}" if port.isdigit() and port.isascii() else _COOKIE


def session_id(cookies: str, host: str) -> str:
    """Return the id of the session in a Cookie header; empty if there is none."""
    wanted = cookie_name(host)
    for part in cookies.split(";"):
        name, _, value = part.strip().partition("=")
        if name == wanted:
            return value
    return ""
