"""Synchronise with a server in both directions. The position of each side is saved after every page, so that an
interruption repeats at most one page, which changes nothing twice."""

from __future__ import annotations

import json
import logging
import time
import uuid
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from .. import config
from ..brain import Brain
from ..errors import InputError, PrivacyError, RemanenceError, RemoteError
from ..http_link import Link, Remedy
from ..models import Memory
from ..stores.base import Progress
from . import known_repositories, paths
from .atomic_files import replace_file
from .exchange import (
    SYNC,
    Document,
    apply_document,
    apply_removal,
    audit_log,
    changes,
    check_document,
    check_removal,
)
from .login import Login
from .notes import FOREIGN, ID
from .versions import CHANGES

log = logging.getLogger(__name__)
_PAGE = 200
_TIMEOUT = 30.0
_ATTEMPTS = 5
_REMEMBERED = 86_400.0  # seconds for which `rmem status` shows what was refused, if it is not pushed again
_REMEDY = Remedy("URL", "`rmem login` asks for the token", "Run `rmem login` again with a token that is valid for this")
_PENDING = 10_000  # changes that are looked through for those that the server does not know yet
_OWN_CHANGES = tuple(action for action in CHANGES if action != SYNC)


@dataclass(slots=True)
class Synced:
    """The result of a sync: how many memories were pushed, pulled and changed here; what either side refused and why;
    which repositories each workspace shares (None: all) and which of them we receive."""

    sent: int = 0
    received: int = 0
    changed: int = 0
    refused: list[Document] = field(default_factory=list)
    pushed: set[str] = field(default_factory=set)
    """The ids of what was pushed."""
    shared: dict[str, Document] = field(default_factory=dict)


class SyncServer:
    """The workspace of a team on a server."""

    def __init__(self, login: Login, token: str, timeout: float = _TIMEOUT, attempts: int = _ATTEMPTS) -> None:
        self._link = Link(login.url, timeout, remedy=_REMEDY, attempts=attempts)
        self._path = f"/workspaces/{quote(login.workspace, safe='')}/sync"
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def me(self) -> dict[str, Any]:
        """Return the member that the token belongs to."""
        return self._json("GET", "/me", None, self._headers)

    def pull(self, after: int, repositories: list[str]) -> dict[str, Any]:
        """Return what changed after an entry of the server's log, in the organisation and in these repositories."""
        query = urlencode([("after", after), ("limit", _PAGE), *[("repository", name) for name in repositories]])
        return self._json("GET", f"{self._path}?{query}", None, self._headers)

    def push(self, page: dict[str, Any]) -> dict[str, Any]:
        headers = {**self._headers, "Idempotency-Key": uuid.uuid4().hex}
        return self._json("POST", self._path, json.dumps(page).encode(), headers)

    def _json(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._link.request(method, path, body, headers, None))
        return found

    def close(self) -> None:
        self._link.close()


class _Position:
    """The saved position of a sync in both logs."""

    def __init__(self, login: Login) -> None:
        name = sha256(f"{login.url}\0{login.workspace}\0{login.org}".encode()).hexdigest()[:16]
        self._path: Path = paths.folder() / f"sync-{name}.json"
        self._repositories: set[str] = set()
        try:
            saved = json.loads(self._path.read_text(encoding="utf-8"))
            self.pushed, self.pulled = int(saved["pushed"]), int(saved["pulled"])
            self._repositories = set(saved.get("repositories", ()))
        except (OSError, ValueError, KeyError, TypeError):
            self.pushed = self.pulled = 0

    def covers(self, repositories: list[str]) -> bool:
        """Whether the pulled entries cover all of these repositories. If not, pull everything again: earlier pulls
        skipped the entries of new ones."""
        before, self._repositories = self._repositories, set(repositories)
        if self._repositories <= before or not self.pulled:
            return True
        self.pulled = 0
        return False

    def save(self) -> None:
        saved = {"pushed": self.pushed, "pulled": self.pulled, "repositories": sorted(self._repositories)}
        replace_file(self._path, json.dumps(saved).encode())


def sync(
    brain: Brain, login: Login, token: str, *, on_progress: Progress | None = None, attempts: int = _ATTEMPTS
) -> Synced:
    """Sync the workspace of the login and those that repositories name. Raise RemoteError without a connection, after
    some attempts; nothing is lost. `rmem status` shows the result."""
    done = Synced()
    try:
        if not login.member:
            login = replace(login, member=_member(login, token, attempts))
        for workspace in dict.fromkeys([login.workspace, *known_repositories.known()]):
            server = SyncServer(replace(login, workspace=workspace), token, attempts=attempts)
            _SyncRun(brain, login, workspace, server, done, on_progress).run()
    except Exception as error:
        message = str(error) if isinstance(error, RemanenceError) else f"{type(error).__name__}: {error}"
        _record(done, message, getattr(error, "status", None))
        raise
    _record(done, None, None)
    return done


def last() -> dict[str, Any] | None:
    """Return the result of the last sync: its time, its error, what was refused, and when one succeeded."""
    try:
        saved = json.loads((config.home() / "team" / paths.LAST_SYNC).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return saved if isinstance(saved, dict) else None


def _record(done: Synced, error: str | None, status: int | None) -> None:
    before, now = last() or {}, time.time()
    refused = [{"time": now, **item} for item in done.refused]
    again = {*done.pushed, *(item.get("id") for item in refused)}
    refused += [
        item
        for item in before.get("refused") or ()
        if item.get("id") not in again and now - float(item.get("time", 0)) < _REMEMBERED
    ]
    record = {
        "time": now,
        "succeeded": now if error is None else before.get("succeeded"),
        "error": error,
        "status": status,
        "sent": done.sent,
        "received": done.received,
        "refused": refused[:_PAGE],
        "workspaces": done.shared or before.get("workspaces") or {},
    }
    try:
        replace_file(paths.last_sync(), json.dumps(record).encode())
    except OSError as failure:
        log.warning("how sharing went cannot be written down: %s", failure)


def _member(login: Login, token: str, attempts: int) -> str:
    server = SyncServer(login, token, attempts=attempts)
    try:
        return str(server.me().get("member") or "")
    finally:
        server.close()


class _SyncRun:
    """One sync with one workspace."""

    def __init__(
        self, brain: Brain, login: Login, workspace: str, server: SyncServer, done: Synced, on_progress: Progress | None
    ) -> None:
        self._brain, self._login, self._workspace, self._done = brain, login, workspace, done
        self._report = on_progress
        self._position, self._server = _Position(replace(login, workspace=workspace)), server

    def run(self) -> None:
        """Push, then pull. A member who may not write only pulls."""
        try:
            refused = None
            try:
                self._push()
            except RemoteError as error:
                if error.status != 403:
                    raise
                refused = error
            self._pull()
            if refused is not None:
                raise refused
        finally:
            self._server.close()

    def _push(self) -> None:
        while True:
            # What came from the server need not go back to it.
            mine = changes(
                self._brain,
                self._position.pushed,
                _PAGE,
                but=(SYNC,),
                only=self._belongs,
                member=self._login.member or None,
            )
            answer: dict[str, Any] = {}
            if mine.memories or mine.gone:
                answer = self._server.push({"memories": mine.memories, "gone": mine.gone})
                self._done.sent += len(mine.memories) + len(mine.gone)
                self._done.pushed |= {item["id"] for item in (*mine.memories, *mine.gone)}
            if mine.next != self._position.pushed:
                self._position.pushed = mine.next
                self._position.save()
            for refused in answer.get("refused", ()):
                log.warning("the server refused memory %s: %s", refused.get("id"), refused.get("error"))
                self._done.refused.append(refused)
            self._take(answer.get("memories", ()), (), {})
            self._progress()
            if not mine.more:
                return

    def _pull(self) -> None:
        while True:
            theirs = self._server.pull(self._position.pulled, known_repositories.repositories())
            try:
                memories, gone, by = list(theirs["memories"]), list(theirs["gone"]), dict(theirs.get("by") or {})
                after, more = int(theirs["next"]), bool(theirs["more"])
                received, shared = list(theirs.get("repositories") or ()), theirs.get("shared")
            except (KeyError, TypeError, ValueError) as error:
                message = f"{self._login.url} sent something that we cannot use: {error}"
                raise RemoteError(message, status=502) from None
            self._done.shared[self._workspace] = {"shared": shared, "received": received}
            if not self._position.covers(received):
                continue
            self._done.received += len(memories) + len(gone)
            self._done.changed += self._take(memories, gone, by)
            self._position.pulled = after
            self._position.save()
            self._progress()
            if not more:
                return

    def _take(self, memories: Any, gone: Any, by: dict[str, str]) -> int:
        """Apply the server's documents one by one; return how many changed something."""
        changed = 0
        if not memories and not gone:
            return 0
        entries = audit_log(self._brain).changed_after(self._position.pushed, _OWN_CHANGES, _PENDING)
        pending = {entry.memory for entry in entries if entry.memory is not None}
        origin = self._login.url
        for item in memories:
            try:
                sent = check_document(item)
                if self._workspace != self._login.workspace:
                    sent["contents"].setdefault(known_repositories.KEY, self._workspace)
                who = str(by.get(sent["id"]) or sent["author"] or origin)
                changed += apply_document(
                    self._brain, sent, member=self._login.member, origin=origin, who=who, pending=pending
                )
            except (InputError, PrivacyError) as error:
                self._skip(item, error)
        for item in gone:
            try:
                sent = check_removal(item)
                changed += apply_removal(self._brain, sent, origin=origin, who=str(by.get(sent["id"]) or origin))
            except InputError as error:
                self._skip(item, error)
        return changed

    def _skip(self, item: Any, error: Exception) -> None:
        named = item.get("id") if isinstance(item, dict) else None
        log.warning("memory %s of the server is left out: %s", named, error)
        self._done.refused.append({"id": named, "error": f"left out here: {error}"})

    def _belongs(self, memory: Memory) -> bool:
        """Return whether a memory goes to this workspace: a note of the team, or what came from a server."""
        is_shared = memory.memory_id.startswith(ID) or FOREIGN in memory.tags
        return is_shared and bool(memory.contents.get(known_repositories.KEY, self._login.workspace) == self._workspace)

    def _progress(self) -> None:
        if self._report is not None:
            self._report(self._done.sent + self._done.received, None)
