"""Results in the forms that programs use: rows as dicts, batches, CSV, Arrow, Parquet.

Arrow and Parquet need pyarrow (`rmem[parquet]`). Decimals without a fixed scale, JSON, UUIDs and intervals become texts
there, because Arrow has no matching type."""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, overload

from ..checks import refuse
from ..errors import InputError, NoSuchTableError
from ..extras import require
from .catalog import Kind, Type
from .results import Result
from .wire_values import column_types, to_json

BATCH = 10_000


class QueryRows(list[dict[str, Any]]):
    """The rows of an answer, each a dict: `rows[0]["task"]`. `rows["task"]` is the whole column.

    `columns` names the columns, also of an answer without rows. `row_count` is the number of rows, or how many a
    statement wrote that answers none."""

    def __init__(self, result: Result) -> None:
        super().__init__(result.dicts())
        self.columns = result.columns
        self.row_count = result.row_count

    @overload  # type: ignore[override]
    def __getitem__(self, key: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: slice) -> list[dict[str, Any]]: ...
    @overload
    def __getitem__(self, key: str) -> list[Any]: ...
    def __getitem__(self, key: int | slice | str) -> Any:
        if isinstance(key, str):
            if key not in self.columns:
                raise NoSuchTableError(f"the answer has no column {key!r}; it has {', '.join(self.columns)}")
            return [row[key] for row in self]
        return super().__getitem__(key)


# Arrow


def pyarrow() -> Any:
    require("parquet", "Arrow or Parquet")
    import pyarrow

    return pyarrow


def arrow_reader(results: Iterable[Result]) -> Any:
    """Return a pyarrow RecordBatchReader that builds each batch on demand."""
    pa = pyarrow()
    source = iter(results)
    first = next(source, Result())
    fields = [_arrow(pa, type or Type(Kind.TEXT)) for type in column_types(first)]
    schema = pa.schema([pa.field(name, arrow) for name, (arrow, _) in zip(first.columns, fields, strict=True)])
    forms = [form for _, form in fields]

    batches = (_batch(pa, schema, forms, result.rows) for result in chain([first], source))
    return pa.RecordBatchReader.from_batches(schema, batches)


def _batch(pa: Any, schema: Any, forms: Sequence[Callable[[Any], Any] | None], rows: list[tuple[Any, ...]]) -> Any:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    arrays = []
    for field, form, values in zip(schema, forms, columns, strict=True):
        ready = values if form is None else [None if value is None else form(value) for value in values]
        try:
            arrays.append(pa.array(ready, type=field.type))
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise InputError(f"column {field.name!r} cannot be written as {field.type}: {error}") from error
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _arrow(pa: Any, type: Type) -> tuple[Any, Callable[[Any], Any] | None]:
    """Return the Arrow type of a column and the conversion of its values."""
    if type.kind is Kind.NUMERIC and type.precision and type.precision <= 38:
        return pa.decimal128(type.precision, type.scale or 0), None
    if type.kind is Kind.JSONB:
        return pa.string(), _json
    if type.kind in (Kind.NUMERIC, Kind.UUID, Kind.INTERVAL):
        return pa.string(), lambda value: str(to_json(value))
    simple = {
        Kind.TEXT: pa.string(),
        Kind.SMALLINT: pa.int16(),
        Kind.INTEGER: pa.int32(),
        Kind.BIGINT: pa.int64(),
        Kind.REAL: pa.float32(),
        Kind.DOUBLE: pa.float64(),
        Kind.BOOLEAN: pa.bool_(),
        Kind.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
        Kind.TIMESTAMP: pa.timestamp("us"),
        Kind.DATE: pa.date32(),
        Kind.TIME: pa.time64("us"),
        Kind.BYTEA: pa.binary(),
        Kind.VECTOR: pa.list_(pa.float32()),
        Kind.VECTORS: pa.list_(pa.list_(pa.float32())),
        Kind.TEXTS: pa.list_(pa.string()),
        Kind.INTEGERS: pa.list_(pa.int64()),
    }
    return simple[type.kind], None


def _json(value: Any) -> str:
    return json.dumps(to_json(value), ensure_ascii=False, separators=(",", ":"))


# CSV


def csv_texts(results: Iterable[Result], delimiter: str = ",") -> Iterator[str]:
    """Yield CSV as PostgreSQL's COPY writes it, some rows at a time: NULL is empty, an empty text is quoted, JSON and
    lists are JSON."""
    quoted = re.compile(f'[{re.escape(delimiter)}"\r\n]|^$|^[ \t]|[ \t]$')

    def cell(value: Any) -> str:
        if value is None:
            return ""
        plain = to_json(value)
        text = plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
        return '"' + text.replace('"', '""') + '"' if quoted.search(text) else text

    for number, result in enumerate(results):
        rows = result.rows if number or not result.columns else [result.columns, *result.rows]
        if rows:
            yield "".join(delimiter.join(map(cell, row)) + "\n" for row in rows)


# Parquet


def write_parquet(reader: Any, path: str | os.PathLike[str]) -> int:
    """Write a reader's batches to a file; return the number of rows. The file appears when it is complete."""
    pyarrow()
    import pyarrow.parquet as parquet

    written = 0
    with (
        _replace_on_success(path) as partial,
        parquet.ParquetWriter(partial, reader.schema, compression="zstd") as writer,
    ):
        for batch in reader:
            writer.write_batch(batch)
            written += batch.num_rows
    return written


@contextmanager
def _replace_on_success(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary file that replaces `path` when it is complete."""
    if not isinstance(path, str | os.PathLike) or not str(path):
        raise refuse("path", "the path of a file", path)
    target = Path(path).expanduser()
    partial = target.with_name(f".{target.name}.{uuid.uuid4().hex}.partial")
    try:
        try:
            yield partial
            os.replace(partial, target)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror or error}", field="path") from error
