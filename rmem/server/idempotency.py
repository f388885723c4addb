"""`Idempotency-Key`: run a write once that is sent twice.

The key is claimed durably before the request runs, with a number under which stores write receipts (`rmem.receipts`);
the answer is stored beside it for a day. The same request with the same key gets the stored answer; another request
with that key is refused. A request without a stored answer, because the server or the database failed, is run again
under its number: what it wrote is in the receipts and is not written again."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

import sqlalchemy as sa
from fastapi import Response
from sqlalchemy.exc import IntegrityError
from starlette.types import Message, Send

from .. import receipts
from ..receipts import KEPT_SECONDS
from .control import Control, Role
from .control_tables import ANSWERS
from .problems import problem

LONGEST_ANSWER = 1024 * 1024
_KEY = re.compile(r"[\x21-\x7e]{1,255}\Z")
_KEPT_HEADERS = ("content-type", "location", "etag")
REPLAYED = {"Idempotent-Replayed": "true"}
_CLEAN_EVERY = 600.0
_ROW_BYTES = 512


@dataclass(frozen=True, slots=True)
class Claim:
    """A key of one member in one workspace, and the request that it was used for."""

    scope: str
    key: str
    request: str
    role: Role


class Answers:
    """The stored answers of keys."""

    def __init__(self, control: Control, most_bytes: int) -> None:
        self._control = control
        self._most = most_bytes
        self._kept: dict[str, int] = {}
        self._cleaned = 0.0
        self._lock = Lock()
        self._running: set[tuple[str, str]] = set()

    def claim(self, claim: Claim) -> Response | receipts.Request:
        """Return the stored answer of a request; or the receipts under which it is run, until `release`."""
        own = claim.scope, claim.key
        with self._lock:
            running = own in self._running
            self._running.add(own)
        if running:
            row = self._row(claim)
            return self._running_already() if row is None else self._known(row, claim, running=True)
        try:
            found = self._claimed(claim)
        except BaseException:
            self.release(claim)
            raise
        if isinstance(found, Response):
            self.release(claim)
        return found

    def release(self, claim: Claim) -> None:
        """Mark that the request no longer runs."""
        with self._lock:
            self._running.discard((claim.scope, claim.key))

    def _claimed(self, claim: Claim) -> Response | receipts.Request:
        now, number = time.time(), receipts.new_number()
        own = {"scope": claim.scope, "key": claim.key}
        try:
            with self._control.writing(counted=False) as link:
                if now - self._cleaned > _CLEAN_EVERY:
                    link.execute(ANSWERS.delete().where(ANSWERS.c.created < now - KEPT_SECONDS))
                    self._control.clean_receipts(link)
                    self._cleaned = now
                link.execute(ANSWERS.delete().filter_by(**own).where(ANSWERS.c.created < now - KEPT_SECONDS))
                link.execute(
                    ANSWERS.insert().values(
                        **own, request=claim.request, role=int(claim.role), process=number, created=now
                    )
                )
            return receipts.Request(number)
        except IntegrityError:
            row = self._row(claim)
        if row is None:
            return problem(409, "a request with this Idempotency-Key has just ended; send it again")
        return self._known(row, claim)

    def _row(self, claim: Claim) -> Any:
        with self._control.reading() as link:
            return link.execute(sa.select(ANSWERS).filter_by(scope=claim.scope, key=claim.key)).first()

    def _known(self, row: Any, claim: Claim, *, running: bool = False) -> Response | receipts.Request:
        if row.request != claim.request:
            return problem(409, "this Idempotency-Key was used for another request")
        if row.role > claim.role:
            return problem(403, f"this needs the role {Role(row.role).name}; your role is {claim.role.name}")
        if row.status is None:
            return self._running_already() if running else receipts.Request(row.process)
        if row.body is None:
            return problem(409, "the request with this Idempotency-Key was done; its answer is not kept")
        headers = {**json.loads(row.headers), **REPLAYED}
        return Response(row.body, row.status, headers)

    def _running_already(self) -> Response:
        message = "a request with this Idempotency-Key is still running"
        return problem(409, message, headers={"Retry-After": "1"})

    def keep(self, claim: Claim, status: int, headers: dict[str, str], body: bytes | None) -> None:
        """Store an answer. The key is free again if the answer shows that nothing was done, and is kept for the same
        request if that is unknown."""
        own = {"scope": claim.scope, "key": claim.key}
        if status == 503:
            return
        with self._control.writing(counted=False) as link:
            if 400 <= status < 500:
                link.execute(ANSWERS.delete().filter_by(**own, request=claim.request))
            else:
                kept = {"status": status, "headers": json.dumps(headers), "body": body}
                link.execute(ANSWERS.update().filter_by(**own).values(**kept))
                self._make_room(link, claim.scope.partition("/")[0], _ROW_BYTES + len(body or b""))

    def _make_room(self, link: sa.Connection, org: str, added: int) -> None:
        """Delete the older half of the stored answers of an organisation if they are too many."""
        of_org = ANSWERS.c.scope.startswith(f"{org}/", autoescape=True)
        length = sa.func.coalesce(sa.func.length(ANSWERS.c.body), 0) + _ROW_BYTES
        if org not in self._kept:
            self._kept[org] = link.execute(
                sa.select(sa.func.coalesce(sa.func.sum(length), 0)).where(of_org)
            ).scalar_one()
        else:
            self._kept[org] += added
        if self._kept[org] <= self._most:
            return
        left = self._most // 2
        done = sa.select(ANSWERS.c.created, length).where(of_org, ANSWERS.c.status.is_not(None))
        oldest = 0.0
        for created, bytes_of in link.execute(done.order_by(ANSWERS.c.created.desc())):
            left -= bytes_of
            if left < 0:
                oldest = created
                break
        link.execute(ANSWERS.delete().where(of_org, ANSWERS.c.status.is_not(None), ANSWERS.c.created <= oldest))
        del self._kept[org]  # counted again when the next one is kept

    def empty(self, org: str, workspace_id: str) -> None:
        """Delete the stored answers of a workspace, but not its claimed keys."""
        ours = ANSWERS.c.scope.startswith(f"{org}/{workspace_id}/", autoescape=True)
        with self._control.writing(counted=False) as link:
            link.execute(ANSWERS.update().where(ours, ANSWERS.c.body.is_not(None)).values(body=None))
        self._control.scrub()


class ResponseRecorder:
    """Buffers a response until it is stored, so that retries match."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._held: list[Message] = []
        self._length = 0
        self.status = 0
        self.headers: dict[str, str] = {}

    @property
    def body(self) -> bytes | None:
        """The whole response; None if it was too long."""
        if self._length > LONGEST_ANSWER:
            return None
        return b"".join(message.get("body", b"") for message in self._held)

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            given = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in message["headers"]}
            self.headers = {name: given[name] for name in _KEPT_HEADERS if name in given}
        self._length += len(message.get("body", b""))
        self._held.append(message)
        if self._length > LONGEST_ANSWER:
            await self.release()

    async def release(self, more: Mapping[str, str] | None = None) -> None:
        """Send the buffered response, with further headers."""
        held, self._held = self._held, []
        if held and held[0]["type"] == "http.response.start":
            added = [(name.lower().encode(), value.encode()) for name, value in (more or {}).items()]
            held[0]["headers"] = [*held[0]["headers"], *added]
        for message in held:
            await self._send(message)


def key_of(value: str) -> str | None:
    """Return the key of a header; None if it is malformed."""
    return value if _KEY.match(value) else None


def fingerprint(method: str, path: str, query: bytes, content_type: str, body: bytes) -> str:
    """Return a hash that is equal for equal requests."""
    parts = (
        method.encode(),
        path.encode("utf-8", "surrogatepass"),
        query,
        content_type.encode("utf-8", "replace"),
        body,
    )
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()
