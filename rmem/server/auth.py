"""Middleware before all routes: request ids, tokens, limits, idempotency, logs and metrics. Plain ASGI, so that it
costs little and streams pass through."""

from __future__ import annotations

import hmac
import json
import logging
import re
import time
import uuid
from typing import Any

from fastapi import HTTPException, Response
from fastapi.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .. import receipts
from ..errors import RemanenceError
from .access import RequestContext, Role, workspace_role_of
from .exchange import SHORT_BODY, whole_body
from .idempotency import REPLAYED, Claim, ResponseRecorder, fingerprint, key_of
from .limits import retry_after
from .problems import error_response, problem
from .service import Service
from .sessions import KEY_HEADER, session_id
from .shares import look_up_once
from .tokens import Caller, Refused

log = logging.getLogger("rmem.server")
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")
_OPEN = frozenset(("/health", "/ready", "/docs", "/openapi.json"))
_DASHBOARD = "/ui"
"""The pages hold no data; they load it by the other routes."""
_STORAGE = "/dataset-storage"
"""The S3 protocol has the token in a header of its own."""
_LONG_BODY = re.compile(rf"/workspaces/[^/]+/(tables|memories|agents|sync|import)(/|\Z)|{_STORAGE}/")
_READING = frozenset(("GET", "HEAD", "OPTIONS"))
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_CLIENT_LEFT = 499
"""Status in the log of a request that did not arrive completely."""
_LOCAL_HOSTS = ("127.0.0.1", "localhost", "[::1]")
_OF_FORMS = ("", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data")
"""Content types that a page may send to any host without a preflight request."""


class AuthMiddleware:
    """Admits requests that have a token and keep to the limits, and logs each one."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        headers = Headers(scope)
        given = headers.get(b"x-request-id")
        context = RequestContext(given if _ID.match(given) else uuid.uuid4().hex, self._service)
        scope["context"] = context
        identity = (b"x-request-id", context.id.encode("ascii"))

        most, replaced = self._service.settings.limits.answer_bytes, False

        async def answer(message: Message) -> None:
            nonlocal replaced
            if replaced:
                return
            if message["type"] == "http.response.start":
                length = dict(message.get("headers", ())).get(b"content-length", b"0")
                if int(length) > most:
                    message_text = (
                        f"the answer has {int(length):,} bytes and may have {most:,}; ask for less, or stream it"
                    )
                    await problem(413, message_text)(scope, receive, answer)
                    replaced = True
                    return
                context.status = message["status"]
                message["headers"] = [*message.get("headers", ()), identity]
            await send(message)

        metrics, entered = self._service.metrics, False
        metrics.running.inc()
        try:
            refused = await self._check_request(scope, headers, context)
            if refused is None and context.caller is not None:
                refused = self._check_rate(context.caller)
                entered = refused is None
            if refused is not None:
                await refused(scope, receive, answer)
            elif headers.has(b"idempotency-key") and scope["method"] not in _READING and context.caller is not None:
                await self._run_once(scope, self._limit_body(receive, headers, scope["path"]), answer, headers, context)
            else:
                await self._app(scope, self._limit_body(receive, headers, scope["path"]), answer)
        except ClientDisconnect:
            context.status = context.status or _CLIENT_LEFT
        except Exception as error:
            if context.status:
                log.error("request %s broke off: %s", context.id, type(error).__name__, exc_info=error)
                raise  # the answer has begun: only closing the connection tells the reader
            if isinstance(error, HTTPException):  # nothing was free
                failed = problem(error.status_code, str(error.detail), headers=error.headers)
            elif isinstance(error, RemanenceError | UnicodeEncodeError):
                failed = error_response(error, context.id)
            else:
                log.error("request %s failed: %s", context.id, type(error).__name__, exc_info=error)
                failed = problem(500, "internal error", request_id=context.id)
            await failed(scope, receive, answer)
        finally:
            if entered and context.caller is not None:
                self._service.buckets.leave(context.caller.org)
            context.leave()
            metrics.running.dec()
            self._log_request(scope, context, time.perf_counter() - started)

    async def _check_request(self, scope: Scope, headers: Headers, context: RequestContext) -> Response | None:
        """Return the error response of a request that is refused, else None."""
        service, path = self._service, scope["path"]
        if service.settings.own_store is not None and (foreign := _foreign_host(headers)) is not None:
            return self._refuse("foreign", 403, foreign)
        if path in _OPEN:
            return None
        if path == _DASHBOARD or path.startswith(f"{_DASHBOARD}/"):
            return self._check_length(path, headers)
        scheme, _, token = headers.get(b"authorization").partition(" ")
        token = token.strip() if scheme.lower() == "bearer" else ""
        if path.startswith(_STORAGE):
            token = headers.get(b"x-amz-security-token")
        if path == "/metrics":
            right = hmac.compare_digest(token.encode("utf-8", "replace"), service.metrics_token.encode())
            return None if right else self._refuse("metrics", 401, "the token of the metrics is needed")
        key = headers.get(KEY_HEADER)
        if service.everybody is not None:
            caller: Caller = service.everybody
            if (foreign := _foreign_host(headers) or foreign_page(scope["method"], headers)) is not None:
                return self._refuse("foreign", 403, foreign)
        elif not token and not key:
            return self._refuse("no token", 401, "a token is needed: Authorization: Bearer …")
        else:
            if not token:
                if (foreign := foreign_page(scope["method"], headers)) is not None:
                    return self._refuse("foreign", 403, foreign)
                id = session_id(headers.get(b"cookie"), headers.get(b"host"))
                token = service.sessions.token_of(id, key) or ""
                if not token:
                    return self._refuse("session", 401, "the session has ended; log in again")
            try:
                known = service.tokens.known(token)
                if known is None:  # what was looked up before a change does not count after it
                    known = await look_up_once((service.control.version, token), service.tokens.caller, token)
                caller = known
            except Refused as refused:
                return self._refuse("token", 401, str(refused))
        org = headers.get(b"x-activeloop-org-id")
        if org and org not in (caller.org, caller.org_name):
            return self._refuse("organisation", 403, "X-Activeloop-Org-Id is not the organisation of the token")
        context.caller = caller
        return self._check_length(path, headers)

    def _check_length(self, path: str, headers: Headers) -> Response | None:
        length = headers.get(b"content-length")
        if length.isdigit() and int(length) > self._most_bytes(path):
            return self._refuse("body", 413, self._too_long(path))
        return None

    def _check_rate(self, caller: Caller) -> Response | None:
        wait = self._service.buckets.enter(caller.org)
        if wait is None:
            return None
        return self._refuse(
            "rate", 429, "too many requests; try again later", headers={"Retry-After": retry_after(wait)}
        )

    def _refuse(self, reason: str, status: int, message: str, **more: Any) -> Response:
        self._service.metrics.refused.labels(reason).inc()
        return problem(status, message, **more)

    def _most_bytes(self, path: str) -> int:
        """Return the largest size of a body. Bodies that this process parses block other requests, so they are
        short."""
        most = self._service.settings.limits.body_bytes
        return most if _LONG_BODY.match(path) else min(most, SHORT_BODY)

    def _too_long(self, path: str) -> str:
        most = self._most_bytes(path)
        where = " on this route" if most < self._service.settings.limits.body_bytes else ""
        return f"a body may have at most {most:,} bytes{where}"

    def _limit_body(self, receive: Receive, headers: Headers, path: str) -> Receive:
        """Limit a body that is sent in chunks; one with a length was checked already."""
        if headers.get(b"content-length"):
            return receive
        left = self._most_bytes(path)

        async def counted() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise HTTPException(413, self._too_long(path))
            return message

        return counted

    async def _run_once(
        self, scope: Scope, receive: Receive, send: Send, headers: Headers, context: RequestContext
    ) -> None:
        """Run a request whose key is new, or whose answer was lost; else send the stored answer."""
        assert context.caller is not None
        caller = context.caller
        key = key_of(headers.get(b"idempotency-key"))
        if key is None:
            refused = problem(400, "Idempotency-Key must be 1 to 255 visible ASCII characters")
            await refused(scope, receive, send)
            return
        try:
            body = await whole_body(receive)
        except HTTPException as error:
            await problem(error.status_code, str(error.detail))(scope, receive, send)
            return
        place, role = "", caller.role
        named = scope["path"].split("/")
        if len(named) > 2 and named[1] == "workspaces":
            workspace_role = await workspace_role_of(self._service, caller, named[2])
            if (
                workspace_role is not None and workspace_role.role < Role.WRITE
            ):  # who writes nothing has no need of kept answers
                await self._app(scope, _replay_body(body, receive), send)
                return
            if workspace_role is not None:
                place, role = workspace_role.workspace_id, workspace_role.role
        parts = scope["method"], scope["path"], scope["query_string"], headers.get(b"content-type"), body
        same = await run_in_threadpool(fingerprint, *parts) if len(body) > SHORT_BODY else fingerprint(*parts)
        claim = Claim(f"{caller.org}/{place}/{caller.member}", key, same, role)
        answers = self._service.answers
        known = await run_in_threadpool(answers.claim, claim)
        if isinstance(known, Response):
            await known(scope, receive, send)
            return
        context.request = known
        try:
            await self._run_recorded(scope, _replay_body(body, receive), ResponseRecorder(send), claim, known)
        finally:
            answers.release(claim)

    async def _run_recorded(
        self, scope: Scope, receive: Receive, recorder: ResponseRecorder, claim: Claim, request: receipts.Request
    ) -> None:
        """Run a request, and store its answer before it is sent."""
        keep = self._service.answers.keep
        try:
            await self._app(scope, receive, recorder.send)
        except Exception:
            failed = json.dumps({"error": "internal error"}).encode("ascii")
            await run_in_threadpool(keep, claim, 500, {"content-type": "application/json"}, failed)
            raise
        await run_in_threadpool(keep, claim, recorder.status, recorder.headers, recorder.body)
        await recorder.release(REPLAYED if request.replayed else None)

    def _log_request(self, scope: Scope, context: RequestContext, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", None) or "unknown"
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._service.metrics.answered(method, route, context.status, seconds)
        if log.isEnabledFor(logging.INFO):
            known = context.caller
            log.info(
                "request",
                extra={
                    "request": {
                        "id": context.id,
                        "org": None if known is None else known.org,
                        "member": None if known is None else known.member,
                        "token": None if known is None else known.token_id,
                        "method": method,
                        "route": route,
                        "status": context.status,
                        "ms": round(seconds * 1000, 2),
                    }
                },
            )


class Headers:
    """The headers of a request by their lower-case names; the last of several."""

    def __init__(self, scope: Scope) -> None:
        self._given: dict[bytes, bytes] = dict(scope["headers"])

    def has(self, name: bytes) -> bool:
        return name in self._given

    def get(self, name: bytes) -> str:
        return self._given.get(name, b"").decode("latin-1")


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that sends a body again that was read already."""
    given = False

    async def read() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return read


def _foreign_host(headers: Headers) -> str | None:
    """Return what is wrong with the Host header of a request to a local server: a DNS name that was rebound to it."""
    if _host(headers.get(b"host")) not in _LOCAL_HOSTS:
        return "this server answers to this machine only: Host must be 127.0.0.1 or localhost"
    return None


def foreign_page(method: str, headers: Headers) -> str | None:
    """Return why a request without a token may come from another web page; None if it does not.

    A page can send requests to any server, and its browser says so in `Origin` and `Sec-Fetch-Site`. Browsers that
    send neither cannot send JSON without a preflight request."""
    host, origin = headers.get(b"host"), headers.get(b"origin")
    if headers.has(b"origin") and origin not in (f"http://{host}", f"https://{host}"):
        return "without a token this server takes no requests of other web pages: Origin is another one"
    if headers.get(b"sec-fetch-site") not in ("", "same-origin", "none"):
        return "without a token this server takes no requests of other web pages: Sec-Fetch-Site is another one"
    kind = headers.get(b"content-type").partition(";")[0].strip().lower()
    empty = not headers.has(b"transfer-encoding") and headers.get(b"content-length") in ("", "0")
    if method not in _READING and kind in _OF_FORMS and not (empty and not kind):
        return "without a token this server takes no forms: Content-Type must be application/json"
    return None


def _host(value: str) -> str:
    return value.rpartition(":")[0] if ":" in value and not value.endswith("]") else value


class JsonLines(logging.Formatter):
    """One JSON object to a line; requests with their fields, other messages as text."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
        }
        request = getattr(record, "request", None)
        line |= request if request is not None else {"logger": record.name, "message": record.getMessage()}
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)
