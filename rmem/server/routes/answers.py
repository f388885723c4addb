"""Error responses that routes document, and pages of lists."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel

from ..bodies import cursor_of, parts_of


class Error(BaseModel):
    """What went wrong, in words."""

    error: str


_ERROR = {"application/json": {"schema": {"$ref": f"#/components/schemas/{Error.__name__}"}}}
"""By reference: of `"model": Error`, FastAPI would build a validator for each status of each route, 1,200 in all, which
took half of the time that loading the routes takes."""


def _errors(**by_status: str) -> dict[int | str, dict[str, Any]]:
    return {int(status[1:]): {"content": _ERROR, "description": text} for status, text in by_status.items()}


PLAIN = _errors(_400="The request cannot be read.", _405="Not this method.", _429="Too many requests.")
ANYBODY = {
    **PLAIN,
    **_errors(
        _401="No token, or one that is not valid.",
        _403="The role is too low, or the organisation is another.",
        _413="The body or the answer is too long.",
        _422="Not used: what cannot be read is 400.",
    ),
}
"""For every route that needs a token."""
IN_WORKSPACE = {**ANYBODY, **_errors(_404="No such workspace, or nothing of that name in it.")}
CHANGING = {**IN_WORKSPACE, **_errors(_409="It exists already, or the idempotency key was used for something else.")}
RUNNING = {
    **CHANGING,
    **_errors(
        _408="It took too long.",
        _503="The store is busy or does not answer.",
        _507="The organisation has used up its space.",
    ),
}

Limit = Annotated[int, Query(ge=1, le=10_000, description="At most so many.")]
Cursor = Annotated[str | None, Query(max_length=1000, description="`next_cursor` of the page before.")]


def after(cursor: str | None) -> str:
    """The name behind a cursor; pages go on after it."""
    return "" if cursor is None else str(parts_of(cursor, 1)[0])


def page(key: str, items: list[dict[str, Any]], names: list[str], limit: int) -> dict[str, Any]:
    """A page of a list: `items` are one more than `limit` where there is another page."""
    more = len(items) > limit
    return {key: items[:limit], "next_cursor": cursor_of(names[limit - 1]) if more else None}
