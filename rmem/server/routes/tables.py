"""Tables of a workspace: create, list and drop them, query them in SQL, and append rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from io import BytesIO
from itertools import chain
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field, StrictInt

from ... import checks
from ...errors import InputError, RemanenceError, TableExistsError
from ...tables.catalog import Column, Index, Table
from ...tables.deadline import check_each, time_limit
from ...tables.ingest import from_body, write_table
from ...tables.remote import result_of
from ...tables.results import Result
from ...tables.streams import arrow_reader, csv_texts, pyarrow
from ...tables.wire_values import answer_types, parameters_from_json, to_json, type_name
from ..access import Access, Reader, Role, Writer
from ..arrow_bodies import columns_of
from ..bodies import cursor_of, parse_json
from ..exchange import Stream, json_response, tagged_response
from .answers import IN_WORKSPACE, RUNNING, Cursor, Limit, after
from .graph import graph_of

router = APIRouter(prefix="/workspaces/{workspace}", tags=["tables"])

NDJSON, ARROW, CSV = "application/x-ndjson", "application/vnd.apache.arrow.stream", "text/csv"
_BATCH = 1000
_GROWING = ("INSERT", "UPDATE", "CREATE TABLE", "CREATE INDEX")
TableName = Annotated[str, Path(max_length=255, description="The name of a table.")]


class NewTable(BaseModel):
    """A table by its columns: `{"id": "BIGSERIAL", "embedding": "EMBEDDING(1536)"}`."""

    model_config = ConfigDict(extra="forbid")

    table_name: str = Field(max_length=255)
    table_schema: dict[str, str] = Field(min_length=1)


class Statement(BaseModel):
    """One SQL statement. `params` are a list for $1, $2 … or an object for :names."""

    model_config = ConfigDict(extra="forbid")

    query: str = Field(min_length=1, examples=["SELECT task FROM debug_memory WHERE id = $1"])
    params: list[Any] | dict[str, Any] | None = None
    param_types: list[str | None] | dict[str, str] | None = Field(
        None, description="Types of parameters that JSON cannot express, such as timestamptz."
    )
    timeout_ms: StrictInt | None = Field(None, ge=1, description="No longer than the server allows.")


class IngestBody(BaseModel):
    """Rows to append, as columns of equal length. The table is made if there is none."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    columns: dict[str, list[Any]] = Field(min_length=1)
    types: dict[str, str] | None = None
    table_schema: dict[str, str] | None = Field(None, alias="schema")
    index: list[str] | dict[str, str | None] | None = None


class TableAnswer(BaseModel):
    table_name: str
    columns: list[dict[str, Any]]
    primary_key: list[str]
    indexes: list[dict[str, Any]]
    view: str | None = Field(None, description="The SELECT of a view; null for a table.")


class TablesAnswer(BaseModel):
    tables: list[TableAnswer]
    next_cursor: str | None


class RowsAnswer(BaseModel):
    columns: list[str]
    types: list[str | None]
    rows: list[list[Any]]
    row_count: int


class DroppedAnswer(BaseModel):
    dropped: str


class IngestedAnswer(BaseModel):
    table_name: str
    row_count: int
    created: bool


def _body(**schemas: Any) -> dict[str, Any]:
    content = {kind.replace("__", "/"): {"schema": schema} for kind, schema in schemas.items()}
    return {"requestBody": {"required": True, "content": content}}


_UNCHANGED: dict[int | str, dict[str, Any]] = {304: {"description": "The caller has it already (If-None-Match)."}}


@router.get("/tables", responses={**IN_WORKSPACE, **_UNCHANGED, 200: {"model": TablesAnswer}})
def list_tables(request: Request, access: Reader, limit: Limit = 1000, cursor: Cursor = None) -> Response:
    """The tables of the workspace, by name."""
    last = after(cursor)
    found = sorted((table for table in access.tables.tables() if table.name > last), key=lambda table: table.name)
    several = found[:limit]
    following = cursor_of(several[-1].name) if len(found) > limit else None
    return tagged_response(request, {"tables": [_shown(table) for table in several], "next_cursor": following})


@router.post("/tables", status_code=201, responses={**RUNNING, 201: {"model": TableAnswer}})
def create_table(body: NewTable, access: Writer) -> Response:
    """Make an empty table."""
    access.need_room()
    tables = access.tables
    try:
        with access.once():
            made = tables.once(lambda: _shown(tables.create_table(body.table_name, body.table_schema)))
            _record(access, "CREATE TABLE", [body.table_name], 0)
    except TableExistsError:
        raise TableExistsError(f"table {body.table_name!r} already exists") from None
    return json_response(made, 201)


@router.post(
    "/tables/query",
    responses={**RUNNING, 200: {"model": RowsAnswer, "content": {NDJSON: {}, ARROW: {}, CSV: {}}}},
)
def query(request: Request, body: Statement, access: Reader) -> Response:
    """Run one statement: SELECT needs READ, all others WRITE. With `Accept: application/x-ndjson`, `text/csv` or
    `application/vnd.apache.arrow.stream` the answer of a SELECT is streamed and may have any length."""
    limits = access.service.settings.limits
    if len(body.query) > limits.statement_length:
        most = f"a statement may have at most {limits.statement_length:,} characters"
        raise HTTPException(413, f"{most}; put values into params, or ingest them")
    form = _form(request.headers.get("accept", ""))
    if form == ARROW:
        pyarrow()  # or says how to install it
    timeout = limits.statement_seconds if form is None else limits.stream_seconds
    if body.timeout_ms is not None:
        timeout = min(timeout, body.timeout_ms / 1000)
    if access.context.on_limit is not None:
        access.context.on_limit(timeout)
    with time_limit(timeout):
        return _answered(access, body, form, timeout)


def _answered(access: Access, body: Statement, form: str | None, timeout: float) -> Response:
    """Run a statement and write its answer; of a streamed one, the beginning."""
    limits = access.service.settings.limits
    write = access.tables.write_targets(body.query)
    if write is not None:
        access.need(Role.WRITE)
        if write[0] in _GROWING:
            access.need_room()
    params = parameters_from_json(body.params, body.param_types)
    graph = partial(graph_of, access)  # as far as this caller may see it
    most_rows, most_bytes = (limits.rows, limits.answer_bytes) if form is None else (None, None)
    if write is not None:
        tables = access.tables

        def run() -> dict[str, Any]:
            return _document(
                tables.query(body.query, params, timeout=timeout, max_rows=most_rows, max_bytes=most_bytes, graph=graph)
            )

        with access.once():
            answer = tables.once(run)
            _record(access, *write, answer["row_count"])
        return json_response(answer) if form is None else _streamed(result_of(answer), iter(()), form)
    if form is not None:
        batches = access.tables.stream(body.query, params, batch_size=_BATCH, timeout=timeout, graph=graph)
        first = next(batches)  # made here, so that an error in the statement still has its status
        return _streamed(first, batches, form)
    result = access.tables.query(
        body.query, params, timeout=timeout, max_rows=limits.rows, max_bytes=limits.answer_bytes, graph=graph
    )
    return json_response(_document(result))


def _record(access: Access, statement: str, tables: list[str], rows: int) -> None:
    """Record a write in the audit log, after the commit and before the answer, without its values."""
    store, token = access.brain.store, access.token_id
    store.record(access.member, "sql", statement=statement, tables=tables, rows=rows, token=token)


def _document(result: Result) -> dict[str, Any]:
    return {
        "columns": result.columns,
        "types": answer_types(result),
        "rows": [[to_json(value) for value in row] for row in check_each(result.rows)],
        "row_count": result.row_count,
    }


@router.get("/tables/{table}", responses={**IN_WORKSPACE, **_UNCHANGED, 200: {"model": TableAnswer}})
def show_table(request: Request, table: TableName, access: Reader) -> Response:
    """One table: its columns, key and indexes."""
    return tagged_response(request, _shown(access.tables.table(table)))


@router.delete("/tables/{table}", responses={**RUNNING, 200: {"model": DroppedAnswer}})
def drop_table(table: TableName, access: Writer) -> Response:
    """Drop a table with all its rows."""
    tables = access.tables
    with access.once():
        tables.once(lambda: tables.drop_table(table))
        _record(access, "DROP TABLE", [table], 0)
    return json_response({"dropped": table})


@router.post(
    "/tables/{table}/ingest",
    responses={**RUNNING, 200: {"model": IngestedAnswer}},
    openapi_extra=_body(
        application__json=IngestBody.model_json_schema(),
        **{NDJSON.replace("/", "__"): {"type": "string"}, ARROW.replace("/", "__"): {"type": "string"}},
    ),
)
async def ingest(
    request: Request,
    table: TableName,
    access: Writer,
    index: Annotated[list[str] | None, Query(description="Columns to index, if the body does not name them.")] = None,
) -> Response:
    """Append rows, all or none: columns as JSON, one JSON object to a line, or an Arrow stream."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in ("", "application/json"):
        given = parse_json(await request.body())
        make: Callable[[], dict[str, Any]] = lambda: _checked(given)  # noqa: E731
    elif kind == NDJSON:
        raw = await request.body()
        make = lambda: {"columns": _columns_of_lines(raw)}  # noqa: E731
    elif kind == ARROW:
        raw = await request.body()
        most = access.service.settings.limits.body_bytes
        make = lambda: {"columns": columns_of(raw, most)}  # noqa: E731
    else:
        raise InputError(f"Content-Type must be application/json, {NDJSON} or {ARROW}", field="content-type")

    def run() -> dict[str, Any]:
        access.need_room()
        body = make()
        with access.once():
            answer = write_table(access.tables, table, from_body(body), index=body.get("index") or index)
            _record(access, "INSERT", [table], answer["row_count"])
            return answer

    return json_response(await run_in_threadpool(run))


def _checked(given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise checks.refuse("the body", "a JSON object", given)
    checks.known_fields("the body", given, ["columns", "types", "schema", "index"])
    if "columns" not in given:
        raise InputError("columns must be given", field="columns")
    return given


def _columns_of_lines(raw: bytes) -> dict[str, list[Any]]:
    """Columns from one JSON object to a line; what a line does not name is NULL in it."""
    columns: dict[str, list[Any]] = {}
    count = 0
    for number, line in enumerate(raw.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            raise InputError(f"line {number} of the body must be a JSON object", field="body") from None
        if not isinstance(row, dict):
            raise checks.refuse(f"line {number} of the body", "a JSON object", row)
        for name in row.keys() - columns.keys():
            columns[name] = [None] * count
        for name, values in columns.items():
            values.append(row.get(name))
        count += 1
    if not columns:
        raise InputError("the body must have at least one line with a JSON object", field="body")
    return columns


def _form(accept: str) -> str | None:
    """Return the stream format that the Accept header requests; None for JSON."""
    wanted = [part.partition(";")[0].strip().lower() for part in accept.split(",")]
    return next((form for form in wanted if form in (NDJSON, ARROW, CSV)), None)


def _streamed(first: Result, batches: Iterator[Result], form: str) -> Response:
    all_of_them = chain([first], batches)
    if form == CSV:
        return Stream((text.encode() for text in csv_texts(all_of_them)), batches, f"{CSV}; charset=utf-8")
    parts = _arrow(all_of_them) if form == ARROW else _lines(first, all_of_them)
    return Stream(parts, batches, form)


def _lines(first: Result, batches: Iterable[Result]) -> Iterator[bytes]:
    """Yield a line with the columns, an array for each row, and a last line that marks the answer as complete."""
    yield _line({"columns": first.columns, "types": answer_types(first)})
    count = 0
    try:
        for batch in batches:
            if batch.rows:
                count += len(batch.rows)
                yield b"".join(_line([to_json(value) for value in row]) for row in batch.rows)
    except RemanenceError as error:
        yield _line({"error": str(error)})
        return
    yield _line({"row_count": count or first.row_count})


def _line(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _arrow(batches: Iterable[Result]) -> Iterator[bytes]:
    pa = pyarrow()
    sink = BytesIO()
    reader = arrow_reader(batches)
    with pa.ipc.new_stream(sink, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)
            yield _take(sink)
    yield _take(sink)


def _take(sink: BytesIO) -> bytes:
    """Return what was written since the last call."""
    written = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    return written


def _shown(table: Table) -> dict[str, Any]:
    return {
        "table_name": table.name,
        "columns": [_column(item) for item in table.columns],
        "primary_key": list(table.primary_key),
        "indexes": [_index(item) for item in table.indexes],
        "view": table.view,
    }


def _column(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": type_name(column.type),
        "nullable": column.nullable,
        "default": column.default,
        "serial": column.serial,
    }


def _index(index: Index) -> dict[str, Any]:
    return {
        "name": index.name,
        "columns": list(index.columns),
        "method": index.method,
        "unique": index.unique,
        "options": dict(index.options),
    }
