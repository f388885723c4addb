"""`Idempotency-Key`: a write that is sent twice is done once.

The key is claimed durably before the request runs, and the answer is kept beside it for a day. The same request with
the same key gets the kept answer; another request with that key is refused. A key whose request was cut off by a crash
stays claimed: nobody can know whether its write arrived, so it is refused rather than done again. At most once is
promised, never twice."""

from __future__ import annotations

import hashlib
import json
import re
import time
import uuid
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from fastapi import Response
from sqlalchemy.exc import IntegrityError
from starlette.types import Message, Send

from .control import ANSWERS, Control, Role
from .problems import problem

KEPT_SECONDS = 86_400.0
LONGEST_ANSWER = 1024 * 1024
_KEY = re.compile(r"[\x21-\x7e]{1,255}\Z")
_KEPT_HEADERS = ("content-type", "location", "etag")
_CLEAN_EVERY = 600.0


@dataclass(frozen=True, slots=True)
class Claim:
    """A key of one member in one workspace, and the request that it was used for."""

    scope: str
    key: str
    request: str
    role: Role


class Answers:
    """The answers that are kept for keys."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._process = uuid.uuid4().hex
        self._cleaned = 0.0

    def claim(self, claim: Claim) -> Response | None:
        """None where the request is to be run; else its answer."""
        now = time.time()
        own = {"scope": claim.scope, "key": claim.key}
        try:
            with self._control.writing(counted=False) as link:
                if now - self._cleaned > _CLEAN_EVERY:
                    link.execute(ANSWERS.delete().where(ANSWERS.c.created < now - KEPT_SECONDS))
                    self._cleaned = now
                link.execute(ANSWERS.delete().filter_by(**own).where(ANSWERS.c.created < now - KEPT_SECONDS))
                link.execute(
                    ANSWERS.insert().values(
                        **own, request=claim.request, role=int(claim.role), process=self._process, created=now
                    )
                )
            return None
        except IntegrityError:
            pass
        with self._control.reading() as link:
            row = link.execute(sa.select(ANSWERS).filter_by(**own)).first()
        if row is None:
            return problem(409, "a request with this Idempotency-Key has just ended; send it again")
        return self._known(row, claim)

    def _known(self, row: Any, claim: Claim) -> Response:
        if row.request != claim.request:
            return problem(409, "this Idempotency-Key was used for another request")
        if row.role > claim.role:
            return problem(403, f"this needs the role {Role(row.role).name}; your role is {claim.role.name}")
        if row.status is None and row.process == self._process:
            running = "a request with this Idempotency-Key is still running"
            return problem(409, running, headers={"Retry-After": "1"})
        if row.status is None:
            return problem(
                409,
                "the request with this Idempotency-Key runs elsewhere or was cut off, and whether it was done is not "
                "known; look, and use a new key to do it again",
            )
        if row.body is None:
            return problem(409, "the request with this Idempotency-Key was done; its answer was too long to be kept")
        headers = {**json.loads(row.headers), "Idempotent-Replayed": "true"}
        return Response(row.body, row.status, headers)

    def keep(self, claim: Claim, status: int, headers: dict[str, str], body: bytes | None) -> None:
        """Keep an answer; the key is free again where the answer says that nothing was done."""
        own = {"scope": claim.scope, "key": claim.key}
        with self._control.writing(counted=False) as link:
            if 400 <= status < 500 or status == 503:
                link.execute(ANSWERS.delete().filter_by(**own, request=claim.request))
            else:
                kept = {"status": status, "headers": json.dumps(headers), "body": body}
                link.execute(ANSWERS.update().filter_by(**own).values(**kept))


class Recorder:
    """Passes an answer on once it is kept, so that nobody is told what a retry would not be told."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._held: list[Message] = []
        self._length = 0
        self.status = 0
        self.headers: dict[str, str] = {}

    @property
    def body(self) -> bytes | None:
        """The whole answer; None where it was too long."""
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

    async def release(self) -> None:
        held, self._held = self._held, []
        for message in held:
            await self._send(message)


def key_of(value: str) -> str | None:
    """The key of a header, or None where it is none."""
    return value if _KEY.match(value) else None


def fingerprint(method: str, path: str, query: bytes, content_type: str, body: bytes) -> str:
    """What makes two requests the same one."""
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
