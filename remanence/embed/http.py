"""Embedding with a server that speaks the OpenAI `POST {base_url}/embeddings` protocol.

The key comes from the environment at the moment of a request and is kept nowhere: not in the object, the log or
an error. Redirects are not followed, because they would carry the key to another host.
"""

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
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import Any

import numpy as np

from remanence.embed.base import Embedder, Matrix
from remanence.embed.vectors import checked_rows, has_content, unit_rows, windows
from remanence.errors import ConfigError, EmbedderError

_log = logging.getLogger(__name__)

_KEY_VARIABLE = "REMANENCE_EMBED_API_KEY"
_KEY_VARIABLE_OF_HOST = {"openrouter.ai": "OPENROUTER_API_KEY", "api.openai.com": "OPENAI_API_KEY"}
_BATCH_CHARACTERS = 200_000
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
_EXCERPT = 300  # characters of a server's message that an error repeats

_Piece = tuple[int, str]  # the row of the text it belongs to, and a part of the text


class HttpEmbedder(Embedder):
    """Vectors from an embeddings endpoint.

    >>> HttpEmbedder("google/gemini-embedding-001", "https://openrouter.ai/api/v1").name
    'http:google/gemini-embedding-001'

    Texts longer than `max_characters` go in windows whose vectors are averaged, because servers refuse long
    texts or cut them silently. `dimension` is learned from the first answer when not given.
    """

    def __init__(
        self,
        model: str,
        base_url: str,
        *,
        dimension: int | None = None,
        batch: int = 64,
        max_characters: int = 6_000,
        timeout: float = 60.0,
        retries: int = 4,
        longest_wait: float = 60.0,
    ) -> None:
        """`longest_wait` is how long a server may ask us to wait (Retry-After) before we give up instead."""
        if not model:
            raise ConfigError("the HTTP embedder needs a model name, such as google/gemini-embedding-001")
        if batch < 1 or max_characters < 1 or timeout <= 0 or retries < 0:
            raise ConfigError("batch, max_characters and timeout must be above 0, retries at least 0")
        self.name = f"http:{model}"
        self._model = model
        self._host, self._url = _endpoint(base_url)
        self._known_dimension = dimension
        self._batch = batch
        self._max_characters = max_characters
        self._timeout = timeout
        self._retries = retries
        self._longest_wait = longest_wait
        self._opener = urllib.request.build_opener(_NoRedirect)

    @classmethod
    def from_spec(cls, spec: str) -> HttpEmbedder:
        """`http`, `http:MODEL` or `http:MODEL@URL`; what is left out comes from the environment."""
        match = re.fullmatch(r"http(?::(?P<model>(?!//).+?)(?:@(?P<url>https?://.+))?)?", spec)
        if match is None:
            raise ConfigError(f"{_without_login(spec)!r} is not an HTTP embedder; write http:MODEL@URL")
        model = match["model"] or os.environ.get("REMANENCE_EMBED_MODEL", "")
        url = match["url"] or os.environ.get("REMANENCE_EMBED_URL", "")
        if not model or not url:
            raise ConfigError(
                "the embedder 'http' needs a model and an address: write http:MODEL@URL, or set "
                "REMANENCE_EMBED_MODEL and REMANENCE_EMBED_URL (such as https://openrouter.ai/api/v1)"
            )
        return cls(model, url)

    def __repr__(self) -> str:
        return f"HttpEmbedder({self._model!r}, {self._url.removesuffix('/embeddings')!r})"

    @property
    def dimension(self) -> int:
        return self._known_dimension or self._ask(["dimension"]).shape[1]

    def embed(self, texts: Sequence[str]) -> Matrix:
        sums: Matrix | None = None
        for pieces in self._batches(texts):
            rows = self._ask([piece for _, piece in pieces])
            if sums is None:
                sums = np.zeros((len(texts), rows.shape[1]), dtype=np.float32)
            shares = np.array([len(piece) for _, piece in pieces], dtype=np.float32)
            np.add.at(sums, [row for row, _ in pieces], rows * shares[:, None])
        return np.zeros((len(texts), self.dimension), dtype=np.float32) if sums is None else unit_rows(sums)

    def _batches(self, texts: Sequence[str]) -> Iterator[list[_Piece]]:
        """All texts with content, in requests of at most `batch` pieces and `_BATCH_CHARACTERS`."""
        pieces: list[_Piece] = []
        characters = 0
        for row, text in enumerate(texts):
            if not has_content(text):
                continue
            for piece in windows(text, self._max_characters):
                if not has_content(piece):
                    continue
                if pieces and (len(pieces) >= self._batch or characters + len(piece) > _BATCH_CHARACTERS):
                    yield pieces
                    pieces, characters = [], 0
                pieces.append((row, piece))
                characters += len(piece)
        if pieces:
            yield pieces

    def _ask(self, texts: list[str]) -> Matrix:
        """Unit vectors of `texts`, in order, from one request."""
        readable = [text.encode("utf-8", "replace").decode() for text in texts]  # JSON has no lone surrogates
        answer = self._post(json.dumps({"model": self._model, "input": readable}).encode())
        vectors = self._in_order(answer, len(texts))
        rows = checked_rows(vectors, count=len(texts), dimension=self._known_dimension, source=self._url)
        self._known_dimension = rows.shape[1]
        return rows

    def _in_order(self, answer: Any, count: int) -> list[Any]:
        """The vectors of an answer sorted by their "index"."""
        data = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
            raise self._failed(f'must answer with a list "data" of embeddings, got: {self._excerpt(answer)}')
        if len(data) != count:
            raise self._failed(f"must return {count} embeddings, got {len(data)}")
        vectors = {item["index"]: item.get("embedding") for item in data if isinstance(item.get("index"), int)}
        if vectors.keys() != set(range(count)):
            raise self._failed(f'must number its embeddings by "index", 0 to {count - 1}, each once')
        return [vectors[place] for place in range(count)]

    def _post(self, body: bytes) -> Any:
        """Send one request, again after failures that may pass, and return the parsed answer."""
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if key := self._key():
            headers["Authorization"] = f"Bearer {key}"
        request = urllib.request.Request(self._url, data=body, headers=headers, method="POST")
        attempt = 0
        while True:
            wait: float | None = None
            try:
                with self._opener.open(request, timeout=self._timeout) as response:
                    raw = response.read()
                break
            except urllib.error.HTTPError as error:
                with error:
                    failure = f"answered {error.code} {error.reason}: {self._excerpt(_told(error))}"
                    wait = _retry_after(error.headers)
                if error.code not in (408, 429) and error.code < 500:
                    raise self._failed(failure + self._advice(error.code)) from None
            except (OSError, http.client.HTTPException) as error:
                failure = f"could not be reached: {error!r}"
            if attempt == self._retries:
                raise self._failed(f"{failure}. Gave up after {attempt + 1} attempts")
            if wait is None:
                wait = random.uniform(0.5, 1.0) * min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**attempt)
            if wait > self._longest_wait:
                raise self._failed(
                    f"{failure}. It asks to wait {wait:.0f} s, the limit is {self._longest_wait:.0f} s: try later"
                )
            _log.warning("%s; trying again in %.1f s", self._failed(failure), wait)
            time.sleep(wait)
            attempt += 1
        try:
            return json.loads(raw)
        except ValueError as error:
            raise self._failed(f"did not answer with JSON ({error}): {self._excerpt(raw)}") from None

    def _failed(self, what: str) -> EmbedderError:
        return EmbedderError(f"{self._url} {self._without_key(what)}")

    def _excerpt(self, answer: Any) -> str:
        """The beginning of an answer; the key goes first, or a cut through it would leave half of it."""
        text = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else json.dumps(answer)
        return self._without_key(text.strip())[:_EXCERPT] or "(nothing)"

    def _without_key(self, text: str) -> str:
        """Servers repeat a key in their complaints about it."""
        key = self._key()
        return text.replace(key, "[key]") if key else text

    def _key(self) -> str:
        """The key for our host, or nothing. Keys of known providers are sent to them alone."""
        for variable in self._key_variables():
            key = os.environ.get(variable, "").strip()
            if key and not (key.isascii() and key.isprintable()):
                raise ConfigError(f"{variable} holds characters that no key has (not shown); set it again")
            if key:
                return key
        return ""

    def _key_variables(self) -> list[str]:
        known = _KEY_VARIABLE_OF_HOST.get(self._host) if self._url.startswith("https:") else None
        return [_KEY_VARIABLE, known] if known else [_KEY_VARIABLE]

    def _advice(self, status: int) -> str:
        return f". Check the key in {' or '.join(self._key_variables())}" if status in (401, 403) else ""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Lets a redirect surface as the HTTP error that it is for us."""

    def redirect_request(self, *_args: Any, **_kwargs: Any) -> None:
        return None


def _endpoint(base_url: str) -> tuple[str, str]:
    """Host and full address of the endpoint, or a ConfigError."""
    try:
        parts = urllib.parse.urlsplit(base_url)
        host = parts.hostname
        parts.port  # noqa: B018 - raises ValueError for a port that is no number
    except ValueError as error:
        raise ConfigError(f"the address of the HTTP embedder is malformed: {error}") from None
    if parts.username or parts.password:
        raise ConfigError(
            f"the address of the HTTP embedder must not hold a user or password; put the key in {_KEY_VARIABLE}"
        )
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError(f"the address of the HTTP embedder must start with https://host, got {base_url!r}")
    if parts.query or parts.fragment:
        raise ConfigError("the address of the HTTP embedder must not have a part after ? or #")
    return host, base_url.rstrip("/").removesuffix("/embeddings") + "/embeddings"


def _told(error: urllib.error.HTTPError) -> bytes:
    try:
        return error.read(4096)
    except (OSError, http.client.HTTPException):  # the status alone must do
        return b""


def _retry_after(headers: Message) -> float | None:
    """Seconds to wait by the header Retry-After, which holds a number or a date."""
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


def _without_login(spec: str) -> str:
    return re.sub(r"//[^/@]*@", "//", spec)
