"""Sharing with a server, both ways: what changed here goes there, what changed there comes here. How far each side got
is noted after every page, so that a cut or a kill in the middle repeats a page at most, which changes nothing twice."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..brain import Brain
from ..errors import RemoteError
from ..models import Memory
from ..tables.link import Link
from . import places, routes
from .drafts import replace_file
from .exchange import apply, changes, checked
from .login import Login

_PAGE = 200
_TIMEOUT = 30.0

Progress = Callable[[int, int | None], None]


@dataclass(slots=True)
class Synced:
    """How many memories went there, came here and changed something here."""

    sent: int = 0
    received: int = 0
    changed: int = 0


class Server:
    """The workspace of a team on a server."""

    def __init__(self, login: Login, token: str, timeout: float = _TIMEOUT) -> None:
        self._link = Link(login.url, timeout)
        self._path = f"/workspaces/{quote(login.workspace, safe='')}/sync"
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def me(self) -> dict[str, Any]:
        """Who the server says we are."""
        found: dict[str, Any] = json.loads(self._link.ask("GET", "/me", None, self._headers, None))
        return found

    def pull(self, after: int) -> dict[str, Any]:
        path = f"{self._path}?after={after}&limit={_PAGE}"
        found: dict[str, Any] = json.loads(self._link.ask("GET", path, None, self._headers, None))
        return found

    def push(self, told: dict[str, Any]) -> None:
        headers = {**self._headers, "Idempotency-Key": uuid.uuid4().hex}
        self._link.ask("POST", self._path, json.dumps(told).encode(), headers, None)

    def close(self) -> None:
        self._link.close()


class _Position:
    """How far the two sides know each other."""

    def __init__(self, login: Login) -> None:
        name = sha256(f"{login.url}\0{login.workspace}\0{login.org}".encode()).hexdigest()[:16]
        self._path: Path = places.folder() / f"sync-{name}.json"
        try:
            told = json.loads(self._path.read_text(encoding="utf-8"))
            self.pushed, self.pulled = int(told["pushed"]), int(told["pulled"])
        except (OSError, ValueError, KeyError, TypeError):
            self.pushed = self.pulled = 0

    def save(self) -> None:
        replace_file(self._path, json.dumps({"pushed": self.pushed, "pulled": self.pulled}).encode())


def sync(brain: Brain, login: Login, token: str, *, on_progress: Progress | None = None) -> Synced:
    """Bring both sides together, in the workspace of the login and in those that repositories route to. Without a
    connection this raises a RemoteError, and nothing is lost."""
    done = Synced()
    for workspace in dict.fromkeys([login.workspace, *routes.known()]):
        _meet(brain, login, workspace, token, done, on_progress)
    return done


def _meet(brain: Brain, login: Login, workspace: str, token: str, done: Synced, on_progress: Progress | None) -> None:
    where = replace(login, workspace=workspace)
    position, server = _Position(where), Server(where, token)

    def belongs(memory: Memory) -> bool:
        return bool(memory.contents.get(routes.KEY, login.workspace) == workspace)

    try:
        while True:
            # What came from the server need not go back to it.
            mine = changes(brain, position.pushed, _PAGE, but=("sync",), only=belongs)
            if mine.memories or mine.gone:
                server.push({"memories": mine.memories, "gone": mine.gone})
                done.sent += len(mine.memories) + len(mine.gone)
            if mine.next != position.pushed:
                position.pushed = mine.next
                position.save()
            if on_progress is not None:
                on_progress(done.sent + done.received, None)
            if not mine.more:
                break
        while True:
            theirs = server.pull(position.pulled)
            try:
                memories = [checked(one) for one in theirs["memories"]]
                gone = [{"id": str(one["id"]), "when": float(one["when"])} for one in theirs["gone"]]
                after, more = int(theirs["next"]), bool(theirs["more"])
            except (KeyError, TypeError, ValueError) as error:
                raise RemoteError(f"{login.url} told something that we cannot use: {error}", status=502) from None
            if workspace != login.workspace:
                for one in memories:
                    one["contents"].setdefault(routes.KEY, workspace)
            done.received += len(memories) + len(gone)
            done.changed += apply(brain, memories, gone, who=login.url)
            position.pulled = after
            position.save()
            if on_progress is not None:
                on_progress(done.sent + done.received, None)
            if not more:
                return
    finally:
        server.close()
