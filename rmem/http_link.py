"""HTTP with one server: kept-alive connections, retries, errors by their status.

A request that may succeed later is repeated unchanged, with its Idempotency-Key, so that no write happens twice."""

from __future__ import annotations

import http.client
import json
import logging
import random
import re
import time
import urllib.parse
from collections.abc import Callable
from threading import Lock
from typing import Any, NamedTuple

from .errors import (
    ConfigError,
    ConstraintError,
    NoSuchTableError,
    RemanenceError,
    RemoteError,
    SqlError,
    StatementTimeoutError,
    StoreClosedError,
    TableExistsError,
    TooManyRowsError,
)

_log = logging.getLogger(__name__)

_ATTEMPTS = 5
_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 5.0


class Remedy(NamedTuple):
    """Advice about a wrong address or token, in the terms of the caller."""

    address: str = "api_url"
    token: str = "the token goes into RMEM_API_KEY"
    refused: str = "Check the token (RMEM_API_KEY) and the organisation"


class Link:
    """A pool of connections to one server."""

    def __init__(
        self,
        url: str,
        timeout: float,
        *,
        remedy: Remedy | None = None,
        attempts: int = _ATTEMPTS,
        error_of: Callable[[int, str, Remedy], RemanenceError] | None = None,
    ) -> None:
        self._remedy = remedy or Remedy()
        self._error_of = error_of or table_error
        self._attempts = attempts
        parts = _address(url, self._remedy)
        self.url = url.rstrip("/")
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname or "", parts.port
        self._prefix = parts.path.rstrip("/")
        self._timeout = timeout
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = Lock()
        self._closed = False

    def request(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], patience: float | None
    ) -> bytes:
        """Send a request and return the whole answer; retry temporary failures."""
        answer = self._send(method, path, body, headers, patience, whole=True)
        assert isinstance(answer, bytes)
        return answer

    def open(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], patience: float | None
    ) -> HttpAnswer:
        """Send a request and return the answer for reading piece by piece; retry until the answer begins."""
        answer = self._send(method, path, body, headers, patience, whole=False)
        assert isinstance(answer, HttpAnswer)
        return answer

    def _send(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: dict[str, str],
        patience: float | None,
        *,
        whole: bool,
    ) -> HttpAnswer | bytes:
        timeout = self._timeout if patience is None else max(self._timeout, patience + 5)
        attempt = 1
        while True:
            wait = random.uniform(0.5, 1.0) * min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**attempt)
            connection, fresh = self._connection()
            try:
                connection.timeout = timeout
                if connection.sock is not None:
                    connection.sock.settimeout(timeout)
                connection.request(method, self._prefix + path, body, headers)
                answer = connection.getresponse()
                if answer.status < 300 and not whole:
                    return HttpAnswer(self, connection, answer)
                raw = answer.read()
                if not raw and answer.status not in (204, 304) and "Content-Length" not in answer.headers:
                    raise http.client.RemoteDisconnected("the answer ended within its headers")
                self.give_back(connection)
                if answer.status < 300:
                    return raw
                status, retry_after = answer.status, answer.headers.get("Retry-After", "")
                message = _message(answer, raw)
            except TimeoutError:
                connection.close()
                message = f"{self.url} did not answer within {timeout:g} s"
                raise self._error_of(504, message, self._remedy) from None
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                if not fresh:
                    continue  # the server had closed an idle connection
                status, retry_after, message = 0, "", f"{self.url} cannot be reached: {_reason(error)}"
            passes = status in (0, 429, 503) or (status == 409 and retry_after)
            if not passes or attempt == self._attempts:
                raise self._error_of(status or 503, message, self._remedy)
            if re.fullmatch(r"\d+", retry_after):
                wait = min(float(retry_after), _LONGEST_PAUSE)
            _log.warning("%s; trying again in %.1f s", message, wait)
            time.sleep(wait)
            attempt += 1

    def _connection(self) -> tuple[http.client.HTTPConnection, bool]:
        """Return a connection, and whether it is new."""
        with self._lock:
            if self._closed:
                raise StoreClosedError("the client was closed")
            if self._idle:
                return self._idle.pop(), False
        if self._secure:
            import ssl

            context = ssl.create_default_context()
            return http.client.HTTPSConnection(self._host, self._port, context=context), True
        return http.client.HTTPConnection(self._host, self._port), True

    def give_back(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


class HttpAnswer:
    """The body of an answer. Its connection returns to the pool after the body was read, and is closed otherwise."""

    def __init__(self, link: Link, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self._link, self._connection, self._response = link, connection, response

    def header(self, name: str) -> str | None:
        return self._response.headers.get(name)

    def readline(self) -> bytes:
        return self._read(self._response.readline)

    def finish(self) -> None:
        """Read the rest, so that the connection can be used again."""
        while self._read(lambda: self._response.read(65536)):
            pass

    def _read(self, reading: Any) -> bytes:
        try:
            found: bytes = reading()
        except (OSError, http.client.HTTPException) as error:
            raise RemoteError(f"the answer of {self._link.url} ended early: {error!r}", status=502) from None
        return found

    def __enter__(self) -> HttpAnswer:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None and self._response.isclosed():
            self._link.give_back(self._connection)
        else:
            self._connection.close()


# Errors in answers


def table_error(status: int, message: str, remedy: Remedy) -> RemanenceError:
    """Return the error that an embedded workspace would raise, by the HTTP status."""
    if status == 404 and not re.search(r"there is no (?:such )?(?:workspace|route)", message):
        return NoSuchTableError(message)
    if status == 409:
        return TableExistsError(message) if "already exists" in message else ConstraintError(message)
    if status == 413:
        return (
            TooManyRowsError(message) if "rows" in message else RemoteError(f"{message}: send less at once", status=413)
        )
    if status == 400:
        return SqlError(message)
    if status == 408:
        return StatementTimeoutError(message)
    if status in (401, 403):
        message = f"{message}. {remedy.refused}"
    return RemoteError(message, status=status)


def _reason(error: OSError | http.client.HTTPException) -> str:
    """Return what went wrong, without the class of the error where it has words of its own."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _message(answer: http.client.HTTPResponse, raw: bytes) -> str:
    try:
        message = json.loads(raw).get("error")
    except (ValueError, AttributeError):
        message = None
    return str(message) if message else f"the server answered {answer.status} {answer.reason}: {raw[:200]!r}"


def _address(url: str, remedy: Remedy) -> urllib.parse.SplitResult:
    name = remedy.address
    try:
        parts = urllib.parse.urlsplit(url)
        parts.port  # noqa: B018 - raises ValueError for a port that is no number
    except ValueError as error:
        raise ConfigError(f"{name} is malformed: {error}") from None
    if parts.username or parts.password:
        raise ConfigError(f"{name} must not hold a user or password; {remedy.token}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{name} must start with http://host or https://host, got {url!r}")
    if parts.query or parts.fragment:
        raise ConfigError(f"{name} must not have a part after ? or #")
    return parts
