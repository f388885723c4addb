"""JSON bodies of the memory routes, without the web framework: parsing, documents of memories, ETags and cursors.

Field names are checked here; values are checked by the engine."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Collection
from hashlib import blake2b
from typing import Any

from .. import checks
from ..attachments import data_url
from ..contents import own_contents
from ..errors import InputError
from ..models import Memory

Document = dict[str, Any]

MOST_AT_ONCE = 1000
"""Memories in one request."""


def _blob(value: object) -> str:
    """Encode bytes for JSON: an attachment may contain some."""
    if isinstance(value, bytes):
        return data_url(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False, default=_blob).encode


def to_json(document: object) -> bytes:
    return _encode(document).encode()


def parse_json(given: bytes) -> Any:
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


def fields_of(body: object, kind: str, names: Collection[str], needed: Collection[str] = ()) -> Document:
    """Check that a body is an object with only these fields, and with all needed ones; return it."""
    if not isinstance(body, dict):
        raise checks.refuse("the body", "a JSON object", body)
    checks.known_fields(kind, body, names)
    for name in needed:
        if name not in body:
            raise InputError(f"{name} must be given", field=name)
    return body


def memory_document(memory: Memory, *, vectors: bool = False, attachments: bool = True) -> Document:
    """Convert a memory to JSON data, with its vectors if requested."""
    document = memory.to_dict(vectors=vectors)
    if not attachments:
        document["contents"] = own_contents(memory.contents)
    return document


def tag_of(memory: Memory) -> str:
    """Return the ETag of a memory: it changes when the memory is changed, not when it is merely recalled."""
    document = memory_document(memory)
    for name in ("last_access_time", "retrieval_count"):
        del document["metadata"][name]
    return tag_of_bytes(to_json(document))


def tag_of_bytes(content: bytes) -> str:
    return f'"{blake2b(content, digest_size=12).hexdigest()}"'


def is_among(tag: str, wanted: str | None) -> bool:
    """Whether a header such as If-Match names a tag."""
    if wanted is None:
        return False
    names = [name.strip().removeprefix("W/") for name in wanted.split(",")]
    return tag in names or "*" in names


def cursor_of(*parts: object) -> str:
    """Encode the position of the next page as an opaque cursor."""
    return urlsafe_b64encode(to_json(list(parts))).decode().rstrip("=")


def parts_of(cursor: str, count: int) -> list[Any]:
    """Decode a cursor."""
    try:
        parts = json.loads(urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4)))
    except (Base64Error, ValueError, RecursionError):
        parts = None
    if not isinstance(parts, list) or len(parts) != count:
        raise checks.refuse("cursor", "the next_cursor of an answer", cursor)
    return parts
