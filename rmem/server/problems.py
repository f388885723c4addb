"""Error responses `{"error": "…"}`: the status of each kind of error, and what its message may reveal."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from ..errors import (
    ConfigError,
    EmbedderError,
    InputError,
    KeyMissingError,
    KeyWrongError,
    MemoryAPIException,
    NotFoundError,
    RemanenceError,
    StoreBusyError,
    StoreClosedError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    TableError,
)

log = logging.getLogger(__name__)

_KNOWN = {404: "there is no such route", 405: "this route does not take that method"}
_PLAIN = {"Not Found": 404, "Method Not Allowed": 405}
_AGAIN = "; try again"
_UNAVAILABLE: tuple[tuple[type[RemanenceError], str], ...] = (
    (StoreBusyError, "the store is busy" + _AGAIN),
    (StoreReadOnlyError, "the store is read-only"),
    (StoreFullError, "the disk of the store is full"),
    (KeyMissingError, "this is encrypted, and the server has no master key"),
    (KeyWrongError, "the store is encrypted with another master key than the server's"),
    (RemanenceError, "the store or the embedder does not answer" + _AGAIN),
)
_MAX_MESSAGE = 4000  # characters of a message: it may quote a value that the request has computed


def problem(status: int, message: str, *, headers: Mapping[str, str] | None = None, **more: Any) -> Response:
    """Make an error response."""
    shown = message if len(message) <= _MAX_MESSAGE else f"{message[:_MAX_MESSAGE]}…"
    body = json.dumps({"error": shown, **more}).encode("ascii")
    given = dict(headers or {})
    if status == 401:
        given.setdefault("WWW-Authenticate", "Bearer")
    return Response(body, status, media_type="application/json", headers=given)


def status_of(error: Exception) -> int:
    """Return the status: 400 to 413 for errors of the caller, 503 for temporary ones, 500 for the rest."""
    if isinstance(error, TableError):
        return error.status
    if isinstance(error, InputError | ConfigError):
        return 400
    if isinstance(error, NotFoundError):
        return 404
    if isinstance(error, MemoryAPIException) and isinstance(error.__cause__, Exception):
        return status_of(error.__cause__)
    if isinstance(error, StoreClosedError):
        return 404  # the workspace was deleted meanwhile
    if isinstance(error, StoreError | EmbedderError):
        return 503
    return 500


def unavailable(error: RemanenceError) -> str:
    """Say why something is not to be had now, without the names of the server's own files."""
    causes = (error, error.__cause__)
    return next(words for kind, words in _UNAVAILABLE if any(isinstance(cause, kind) for cause in causes))


def error_response(error: RemanenceError | UnicodeEncodeError, request_id: str) -> Response:
    """Make the response of an error of this package. Errors about the server's own files are logged, not sent."""
    if isinstance(error, UnicodeEncodeError):
        return problem(400, f"the request must be valid Unicode: {error.reason}")
    status = status_of(error)
    if status < 500:
        message = "there is no such workspace" if isinstance(error, StoreClosedError) else str(error)
        return problem(status, message)
    log.error("request %s failed: %s: %s", request_id, type(error).__name__, error, exc_info=error)
    if status == 500:
        return problem(500, "internal error", request_id=request_id)
    message = unavailable(error)
    headers = {"Retry-After": "1"} if message.endswith(_AGAIN) else {}
    return problem(503, message, headers=headers, request_id=request_id)


def install(app: FastAPI) -> None:
    """Answer errors of the framework, of reading a request and of this package in one form."""

    @app.exception_handler(HTTPException)
    async def http(_request: Request, error: HTTPException) -> Response:
        detail = str(error.detail)
        message = _KNOWN[error.status_code] if _PLAIN.get(detail) == error.status_code else detail
        return problem(error.status_code, message, headers=error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(_request: Request, error: RequestValidationError) -> Response:
        return problem(400, "; ".join(_describe(item) for item in error.errors()[:5]))

    @app.exception_handler(RemanenceError)
    async def ours(request: Request, error: RemanenceError) -> Response:
        return error_response(error, request.scope["context"].id)


def _describe(error: Mapping[str, Any]) -> str:
    """`body.limit: Input should be a valid integer`, without the value, which may be long or secret."""
    where = [str(part) for part in error["loc"] if part != "body"] or ["body"]
    if error["type"] == "json_invalid":
        return f"the body must be JSON: {error.get('ctx', {}).get('error', 'it cannot be read')} at {where[-1]}"
    return f"{'.'.join(where)}: {error['msg']}"
