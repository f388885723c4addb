"""What the memory routes are given and what they answer, apart from their meaning.

A body is read as plain JSON and its names are checked here; its values are checked by the engine, in the engine's own
words. The models in `forms` only describe both for the OpenAPI document, so that no answer is validated twice."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Collection, Coroutine, Mapping
from hashlib import blake2b
from typing import Any

from fastapi import Request, Response
from pydantic import BaseModel

from .. import checks
from ..errors import InputError
from ..models import Memory

Document = dict[str, Any]

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


def encoded(document: object) -> bytes:
    """A document as JSON."""
    return _encode(document).encode()


# What comes in


def asking(form: type[BaseModel], *, several: bool = False) -> dict[str, Any]:
    """The body of a request for the OpenAPI document; with `several`, one of them or a list."""
    schema: dict[str, Any] = form.model_json_schema()
    if several:
        schema = {"anyOf": [schema, {"type": "array", "items": schema, "minItems": 1, "maxItems": MOST_AT_ONCE}]}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


MOST_AT_ONCE = 1000
"""Memories in one request."""


async def json_body(request: Request) -> Any:
    """The body of a request."""
    return json_of(await request.body())


def json_of(given: bytes) -> Any:
    try:
        return json.loads(given, parse_constant=_no_number)
    except InputError:
        raise
    except UnicodeDecodeError as error:
        raise InputError(f"the body must be UTF-8, but is not at byte {error.start}", field="body") from None
    except json.JSONDecodeError as error:
        raise InputError(f"the body must be JSON: {error.msg} at character {error.pos + 1}", field="body") from None
    except RecursionError:
        raise InputError("the body must not be nested so deeply", field="body") from None
    except ValueError as error:  # a whole number of thousands of digits
        raise InputError(f"the body must be JSON: {error}", field="body") from None


def _no_number(name: str) -> float:
    raise InputError(f"the body must be JSON, which has no {name}", field="body")


def given(form: type[BaseModel], kind: str) -> Callable[[Request], Coroutine[Any, Any, Document]]:
    """A dependency that reads the body of a request: an object with no other fields than those of the form, and with
    all that it must have."""
    names = list(form.model_fields)
    needed = [name for name, field in form.model_fields.items() if field.is_required()]

    async def read(request: Request) -> Document:
        return fields_of(await json_body(request), kind, names, needed)

    return read


def fields_of(body: object, kind: str, names: Collection[str], needed: Collection[str] = ()) -> Document:
    if not isinstance(body, dict):
        raise checks.refuse("the body", "a JSON object", body)
    checks.known_fields(kind, body, names)
    for name in needed:
        if name not in body:
            raise InputError(f"{name} must be given", field=name)
    return body


# What goes out


def answer(document: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer as it is, without a model in between."""
    content = encoded(document)
    return Response(content, status, headers, media_type="application/json")


def tagged(request: Request, document: object, tag: str | None = None) -> Response:
    """A JSON answer with an ETag (of the body, if none is given), or 304 if the caller has it."""
    content = encoded(document)
    mark = tag or f'"{blake2b(content, digest_size=12).hexdigest()}"'
    headers = {"ETag": mark, "Cache-Control": "private, no-cache"}
    if is_among(mark, request.headers.get("if-none-match")):
        return Response(status_code=304, headers=headers)
    return Response(content, 200, headers, media_type="application/json")


def is_among(tag: str, wanted: str | None) -> bool:
    """Whether a header such as If-Match names a tag."""
    if wanted is None:
        return False
    names = [name.strip().removeprefix("W/") for name in wanted.split(",")]
    return tag in names or "*" in names


def tag_of(memory: Memory) -> str:
    """The ETag of a memory: it changes when the memory is changed, not when it is merely recalled."""
    document = told(memory)
    document["metadata"] = {
        key: value for key, value in document["metadata"].items() if key not in ("last_access_time", "retrieval_count")
    }
    return f'"{blake2b(encoded(document), digest_size=12).hexdigest()}"'


def told(memory: Memory, *, vectors: bool = False) -> Document:
    """A memory for JSON; its vectors only where they were asked for."""
    data = memory.metadata
    document = {
        "memory_id": memory.memory_id,
        "agent_id": memory.agent_id,
        "step_number": memory.step_number,
        "timestamp": memory.timestamp,
        "text": memory.text,
        "contents": memory.contents,
        "metadata": {
            "creation_time": data.creation_time,
            "last_access_time": data.last_access_time,
            "compression_level": data.compression_level,
            "importance_score": data.importance_score,
            "retrieval_count": data.retrieval_count,
            "memory_type": data.memory_type,
        },
        "session": memory.session,
        "actor": memory.actor,
        "tags": memory.tags,
        "tier": memory.tier,
        "position": memory.position,
        "place": memory.place,
    }
    if vectors:
        document["embeddings"] = memory.document()["embeddings"]
    return document


def cursor_of(*parts: object) -> str:
    """Where a list goes on, in a form that need not be understood."""
    return urlsafe_b64encode(encoded(list(parts))).decode().rstrip("=")


def parts_of(cursor: str, count: int) -> list[Any]:
    """The reverse of `cursor_of`."""
    try:
        parts = json.loads(urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4)))
    except (Base64Error, ValueError, RecursionError):
        parts = None
    if not isinstance(parts, list) or len(parts) != count:
        raise checks.refuse("cursor", "the next_cursor of an answer", cursor)
    return parts
