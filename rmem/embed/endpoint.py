"""Send JSON to a model server over HTTP, as the OpenAI protocol does: embeddings here, summaries elsewhere.

The key is read from the environment at each request and stored nowhere: not in the object, the log or an error.
Redirects are not followed, because they would carry the key to another host."""

from __future__ import annotations

import http.client
import json
import logging
import os
import random
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import Any

from rmem.errors import ConfigError, RemanenceError

_log = logging.getLogger(__name__)

_KEY_VARIABLE_OF_HOST = {"openrouter.ai": "OPENROUTER_API_KEY", "api.openai.com": "OPENAI_API_KEY"}
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
_EXCERPT = 300  # characters of a server's message that an error repeats


class Endpoint:
    """`POST {base_url}{path}` with a JSON body, again after failures that may pass.

    `what` names the user of the endpoint in errors about its address; `error` is what failures are raised as.
    """

    def __init__(
        self,
        base_url: str,
        path: str,
        *,
        what: str,
        key_variable: str,
        error: type[RemanenceError],
        timeout: float,
        retries: int,
        longest_wait: float,
    ) -> None:
        """`longest_wait` is the longest Retry-After, in seconds, that is obeyed; above it the request fails."""
        self._path = path
        self._key_variable = key_variable
        self._host, self.url = self._address(base_url, what)
        self._error = error
        self._timeout = timeout
        self._retries = retries
        self._longest_wait = longest_wait
        self._opener = urllib.request.build_opener(_NoRedirect)

    @property
    def base_url(self) -> str:
        return self.url.removesuffix(self._path)

    def post(self, payload: dict[str, Any]) -> Any:
        """Send one request, retry temporary failures, and return the parsed answer."""
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if key := self._key():
            headers["Authorization"] = f"Bearer {key}"
        body = json.dumps(payload).encode()
        request = urllib.request.Request(self.url, data=body, headers=headers, method="POST")
        attempt = 0
        while True:
            wait: float | None = None
            try:
                with self._opener.open(request, timeout=self._timeout) as response:
                    raw = response.read()
                break
            except urllib.error.HTTPError as error:
                with error:
                    failure = f"answered {error.code} {error.reason}: {self.excerpt(_message_of(error))}"
                    wait = _retry_after(error.headers)
                if error.code not in (408, 429) and error.code < 500:
                    raise self.failed(failure + self._advice(error.code)) from None
            except (OSError, http.client.HTTPException) as error:
                failure = f"could not be reached: {error!r}"
            if attempt == self._retries:
                raise self.failed(f"{failure}. Gave up after {attempt + 1} attempts")
            if wait is None:
                wait = random.uniform(0.5, 1.0) * min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**attempt)
            if wait > self._longest_wait:
                raise self.failed(
                    f"{failure}. It asks to wait {wait:.0f} s, the limit is {self._longest_wait:.0f} s: try later"
                )
            _log.warning("%s; trying again in %.1f s", self.failed(failure), wait)
            time.sleep(wait)
            attempt += 1
        try:
            return json.loads(raw)
        except ValueError as error:
            raise self.failed(f"did not answer with JSON ({error}): {self.excerpt(raw)}") from None

    def failed(self, what: str) -> RemanenceError:
        return self._error(f"{self.url} {self._without_key(what)}")

    def excerpt(self, answer: Any) -> str:
        """Return the start of an answer, without the key. The key is removed before the cut, which could split it."""
        text = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else json.dumps(answer)
        return self._without_key(text.strip())[:_EXCERPT] or "(nothing)"

    def _without_key(self, text: str) -> str:
        """Remove the key from a text: servers repeat it in errors about it."""
        key = self._key()
        return text.replace(key, "[key]") if key else text

    def _key(self) -> str:
        """Return the key for this host, or nothing. Keys of known providers are sent only to them."""
        for variable in self._key_variables():
            key = os.environ.get(variable, "").strip()
            if key and not (key.isascii() and key.isprintable()):
                raise ConfigError(f"{variable} holds characters that no key has (not shown); set it again")
            if key:
                return key
        return ""

    def _key_variables(self) -> list[str]:
        known = _KEY_VARIABLE_OF_HOST.get(self._host) if self.url.startswith("https:") else None
        return [self._key_variable, known] if known else [self._key_variable]

    def _advice(self, status: int) -> str:
        if status not in (401, 403):
            return ""
        variables = " or ".join(self._key_variables())
        return f". Check the key in {variables}" if self._key() else f". No key was sent: put it in {variables}"

    def _address(self, base_url: str, what: str) -> tuple[str, str]:
        """Check the address; return its host and the full URL of the endpoint."""
        try:
            parts = urllib.parse.urlsplit(base_url)
            host = parts.hostname
            parts.port  # noqa: B018 - raises ValueError for a port that is no number
        except ValueError as error:
            raise ConfigError(f"the address of {what} is malformed: {error}") from None
        if parts.username or parts.password:
            raise ConfigError(
                f"the address of {what} must not hold a user or password; put the key in {self._key_variable}"
            )
        if parts.scheme not in ("http", "https") or not host:
            raise ConfigError(f"the address of {what} must start with https://host, got {base_url!r}")
        if parts.query or parts.fragment:
            raise ConfigError(f"the address of {what} must not have a part after ? or #")
        return host, base_url.rstrip("/").removesuffix(self._path) + self._path


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Makes a redirect an HTTP error."""

    def redirect_request(self, *_args: Any, **_kwargs: Any) -> None:
        return None


def _message_of(error: urllib.error.HTTPError) -> bytes:
    try:
        return error.read(4096)
    except (OSError, http.client.HTTPException):  # report the status alone
        return b""


def _retry_after(headers: Message) -> float | None:
    """Return the seconds in the header Retry-After, which is a number or a date."""
    value = str(headers.get("Retry-After", "")).strip()
    if re.fullmatch(r"\d+(\.\d+)?", value):
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
