"""Read bodies from requests and send JSON responses. The models of `forms` and `documents` only describe them in the
OpenAPI document."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping
from typing import Any

from anyio import CancelScope
from fastapi import HTTPException, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from pydantic import BaseModel
from starlette.types import Receive, Scope, Send

from .bodies import MOST_AT_ONCE, Document, fields_of, is_among, parse_json, tag_of_bytes, to_json
from .forms import Form

SHORT_BODY = 256 * 1024
"""Bytes of a body that the server itself reads: parsing JSON holds the interpreter's lock, in whichever thread."""


def body_schema(form: type[BaseModel], *, several: bool = False) -> dict[str, Any]:
    """Describe the body of a request in the OpenAPI document; with `several`, one object or a list."""
    schema: dict[str, Any] = form.model_json_schema()
    if several:
        schema = {"anyOf": [schema, {"type": "array", "items": schema, "minItems": 1, "maxItems": MOST_AT_ONCE}]}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def json_body(form: type[Form]) -> Callable[[Request], Coroutine[Any, Any, Document]]:
    """Make a dependency that reads the body of a request: an object with the fields of the form."""
    names = list(form.model_fields)
    needed = [name for name, field in form.model_fields.items() if field.is_required()]

    async def read(request: Request) -> Document:
        return fields_of(parse_json(await request.body()), form.kind, names, needed)

    return read


async def whole_body(receive: Receive) -> bytes:
    """Read the whole body of a request."""
    parts = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise HTTPException(400, "the request ended before its body")
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


def json_response(document: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Make a JSON response without a model."""
    return Response(to_json(document), status, headers, media_type="application/json")


class Stream(StreamingResponse):
    """A streamed response of parts that are read from `source`. Both generators are closed at its end, also if the
    client went away: garbage collection would release their connections at a random moment."""

    def __init__(self, parts: Iterator[bytes], source: Iterator[object], media_type: str) -> None:
        super().__init__(parts, media_type=media_type)
        self._open = [generator for generator in (parts, source) if isinstance(generator, Generator)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            with CancelScope(shield=True):
                await run_in_threadpool(self._close)

    def _close(self) -> None:
        for generator in self._open:
            generator.close()


def tagged_response(request: Request, document: object, tag: str | None = None) -> Response:
    """Make a JSON response with an ETag (of the body by default), or 304 if the caller has it."""
    content = to_json(document)
    mark = tag or tag_of_bytes(content)
    headers = {"ETag": mark, "Cache-Control": "private, no-cache"}
    if is_among(mark, request.headers.get("if-none-match")):
        return Response(status_code=304, headers=headers)
    return Response(content, 200, headers, media_type="application/json")
