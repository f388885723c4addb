"""Export and import of all memories of a workspace as lines of JSON."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from tempfile import SpooledTemporaryFile
from typing import IO, Annotated, Any, cast

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from ... import transfer
from ...memory_files import read_jsonl
from .. import documents
from ..access import Access, Admin, Writer
from ..exchange import json_response
from ..ownership import check_lines, imported_memory, visible_lines
from .answers import RUNNING
from .memories import where_of

router = APIRouter(prefix="/workspaces/{workspace}", tags=["export"], responses=RUNNING)

_NDJSON = "application/x-ndjson"
_IN_MEMORY = 8 * 1024 * 1024  # of an import; more lies in a temporary file
_BODY = {"required": True, "content": {_NDJSON: {"schema": {"type": "string"}}}}


@router.get(
    "/export",
    response_class=StreamingResponse,
    responses={200: {"description": "A header, then one memory to a line.", "content": {_NDJSON: {}}}},
    summary="Every memory with all of its fields, as lines of JSON",
)
async def export(
    access: Admin,
    where: Annotated[str | None, Query(description="A filter, as JSON.")] = None,
    after: Annotated[str | None, Query(description="The memory_id of the last whole line that you have.")] = None,
    vectors: bool = True,
) -> Response:
    """Sent as it is read, in bounded memory. If it breaks off, ask again with `after`: the rest follows, without the
    header."""
    lines = await access.read(_lines, access, where, after, vectors)
    return StreamingResponse(lines, media_type=_NDJSON)


def _lines(access: Access, where: str | None, after: str | None, vectors: bool) -> Iterator[bytes]:
    return visible_lines(access, transfer.lines(access.brain, where_of(where), vectors=vectors, after=after))


@router.post(
    "/import",
    response_model=documents.ImportAnswer,
    openapi_extra={"requestBody": _BODY},
    summary="Keep the memories of an export",
)
async def import_(access: Writer, request: Request) -> Response:
    """Ids are kept, and what is there is replaced. All lines are checked first: a bad one changes nothing."""
    with SpooledTemporaryFile(max_size=_IN_MEMORY) as held:
        async for part in request.stream():
            await run_in_threadpool(held.write, part)
        held.seek(0)
        return json_response(await access.write(_taken_in, access, cast("IO[bytes]", held)))


def _taken_in(access: Access, held: IO[bytes]) -> dict[str, Any]:
    check_lines(access, held)
    held.seek(0)
    memory_of = partial(imported_memory, access)
    done = transfer.import_(access.brain, held, "jsonl", reader=lambda source: read_jsonl(source, memory_of))
    access.brain.store.record(access.member, "import", origin="rest", token=access.token_id, number=done["imported"])
    return done
