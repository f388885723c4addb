"""Write columns of Python values to a table: infer types, check everything, then write all or nothing.

`normalize_columns` needs no database: it reads files and values, also in a client far from its server. `write_table`
checks against the table and writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from .. import checks
from ..checks import shown
from ..errors import InputError, SqlError, SqlUnsupportedError, VectorError
from ..extras import require
from .builder import quote_name
from .catalog import Kind, Table
from .chunks import CHUNK_OVERLAP, CHUNK_SIZE, check_sizes
from .files import chunks_of
from .types import FILE, agrees, sql_of, type_of
from .wire_values import from_json, kind_of_value, pack_vector, to_json, type_name

if TYPE_CHECKING:
    from .workspace import Workspace

Progress = Callable[[int, int], None]
"""Called with how many rows (or files, where files are read) are ready and how many there are, and once with the
number of rows when they are written. An error that it raises before that stops everything."""
Schema = Mapping[str, object]


@runtime_checkable
class Frame(Protocol):
    """A data frame of pandas or polars, an Arrow table, or whatever else speaks Arrow's C interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Indexes = Sequence[str] | Mapping[str, str | None]

KEY = {"id": "BIGSERIAL PRIMARY KEY"}
_STEP = 1000
_TRIES = 5
_LONGEST_NAME = 63
_WHOLE = 2**63
_LISTS = {Kind.JSONB, Kind.VECTOR, Kind.VECTORS, Kind.TEXTS, Kind.INTEGERS}
_WIDER = (
    ({Kind.BIGINT, Kind.DOUBLE}, Kind.DOUBLE),
    ({Kind.BIGINT, Kind.NUMERIC}, Kind.NUMERIC),
    ({Kind.INTEGERS, Kind.VECTOR}, Kind.VECTOR),
    (_LISTS, Kind.JSONB),
)


@dataclass(frozen=True, slots=True)
class NormalizedColumns:
    """Columns of equal length, ready to write, and the requested types."""

    columns: dict[str, list[Any]]
    schema: dict[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return len(next(iter(self.columns.values())))


# Without a database


def normalize_columns(
    data: Mapping[str, Any] | Frame,
    schema: Schema | None = None,
    *,
    chunk_size: int = CHUNK_SIZE,
    chunk_overlap: int = CHUNK_OVERLAP,
    on_progress: Progress | None = None,
) -> NormalizedColumns:
    """Convert columns to lists of Python values; files become rows of chunks."""
    size, overlap = check_sizes(chunk_size, chunk_overlap)
    if isinstance(data, Frame):
        data = _columns_of(data)
    if not isinstance(data, Mapping) or not data:
        raise checks.refuse("data", "a mapping of column names to lists of values, or a data frame", data)
    if schema is not None and not isinstance(schema, Mapping):
        raise checks.refuse("schema", "a mapping of column names to types", schema)
    types = {checks.name("schema", name): sql_of(f"schema[{name!r}]", type) for name, type in (schema or {}).items()}
    columns = {checks.name("data", name): _values(name, values) for name, values in data.items()}
    checks.known_fields("the data", types, columns)
    _same_length(columns)
    files = [name for name, type in types.items() if type.upper() == FILE]
    if len(files) > 1:
        raise InputError(f"schema must have at most one FILE column, got {', '.join(files)}", field="schema")
    total = len(next(iter(columns.values())))
    for start in range(0, total, _STEP):
        for values in columns.values():
            values[start : start + _STEP] = map(_plain, values[start : start + _STEP])
        if on_progress is not None and not files:
            on_progress(min(start + _STEP, total), total)
    if files:
        del types[files[0]]
        columns = _with_chunks(columns, files[0], size, overlap, on_progress)
    return NormalizedColumns(columns, types)


def _columns_of(frame: Frame) -> dict[str, list[Any]]:
    """Return the columns of a data frame; what is missing there is None."""
    require("parquet", "a data frame")
    import pyarrow

    try:
        table = pyarrow.table(frame)
    except pyarrow.ArrowException as error:
        raise InputError(f"data cannot be read as Arrow: {error}", field="data") from None
    names = table.column_names
    if len(set(names)) < len(names):
        raise checks.refuse("data", "columns of different names", names)
    return {name: column.to_pylist() for name, column in zip(names, table.columns, strict=True)}


def _values(name: str, values: Any) -> list[Any]:
    single = isinstance(values, str | bytes | bytearray | Mapping | set | frozenset)
    if single or not isinstance(values, Iterable) or (isinstance(values, np.ndarray) and values.ndim == 0):
        raise checks.refuse(f"data[{name!r}]", "a list of values, one for each row", values)
    return list(values)


def _same_length(columns: Mapping[str, list[Any]]) -> None:
    lengths = {name: len(values) for name, values in columns.items()}
    first, expected = next(iter(lengths.items()))
    for name, length in lengths.items():
        if length != expected:
            raise InputError(
                f"all columns must have the same number of values: {first!r} has {expected}, {name!r} has {length}",
                field=name,
            )


def _plain(value: Any) -> Any:
    """Convert numpy values to Python, except vectors, which are smaller and faster as arrays."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.ndim <= 2:
        return value
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, tuple):
        value = list(value)
    if isinstance(value, list) and value and isinstance(value[0], np.ndarray | np.generic | tuple):
        return [_plain(item) for item in value]
    return value


def _with_chunks(
    columns: Mapping[str, list[Any]], paths: str, size: int, overlap: int, on_progress: Progress | None
) -> dict[str, list[Any]]:
    """Make one row for each chunk of each file; repeat the other columns."""
    taken = [name for name in ("chunk", "text", "metadata") if name in columns]
    if taken:
        raise InputError(f"{taken[0]!r} is a column that reading files fills; name yours otherwise", field=taken[0])
    made: dict[str, list[Any]] = {paths: [], "chunk": [], "text": [], "metadata": []}
    made |= {name: [] for name in columns if name != paths}
    for row, path in enumerate(columns[paths]):
        for number, chunk in enumerate(chunks_of(path, size, overlap)):
            for name in columns:
                made[name].append(str(path) if name == paths else columns[name][row])
            made["chunk"].append(number)
            made["text"].append(chunk.text)
            made["metadata"].append(chunk.metadata)
        if on_progress is not None:
            on_progress(row + 1, len(columns[paths]))
    return made


def infer_type(name: str, values: Sequence[Any]) -> str:
    """Infer the type of a column from its values."""
    kinds: dict[Kind, int] = {}
    for row, value in enumerate(values):
        if value is None or (isinstance(value, list | np.ndarray) and len(value) == 0):
            continue
        kind = kind_of_value(value)
        if kind is None:
            raise InputError(f"{name} must hold values that a table can keep, row {row} is {shown(value)}", field=name)
        kinds.setdefault(kind, row)
    if not kinds:
        what = "no values" if not values else "only empty lists" if any(v is not None for v in values) else "only NULLs"
        raise InputError(f"{name} holds {what}: say in schema what type it has", field=name)
    kind = _common_kind(name, kinds, values)
    if kind is Kind.VECTOR:
        return f"EMBEDDING({_common_dimension(name, values)})"
    if kind is Kind.BIGINT and not all(value is None or -_WHOLE <= value < _WHOLE for value in values):
        return Kind.NUMERIC.value
    return kind.value


def _common_kind(name: str, kinds: Mapping[Kind, int], values: Sequence[Any]) -> Kind:
    if len(kinds) == 1:
        return next(iter(kinds))
    for together, wider in _WIDER:
        if together >= kinds.keys():
            return wider
    found = " and ".join(f"{kind.value} (row {row}: {shown(values[row])})" for kind, row in list(kinds.items())[:2])
    raise InputError(f"{name} must hold values of one type, got {found}; say in schema what it is", field=name)


def _common_dimension(name: str, values: Sequence[Any]) -> int:
    first = next(len(value) for value in values if value is not None)
    for row, value in enumerate(values):
        if value is not None and len(value) != first:
            raise VectorError(
                f"{name} must hold vectors of one dimension: the first has {first} numbers, row {row} has {len(value)}",
                field=name,
            )
    return first


# Into a table


def write_table(
    workspace: Workspace,
    table: str,
    ready: NormalizedColumns,
    *,
    index: Indexes | None = None,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Write normalized columns in one transaction, with the missing table and indexes."""
    checks.name("table", table)
    indexes = index_kinds(index, ready)
    for left in reversed(range(_TRIES)):
        try:
            done = _write_once(workspace, table, ready, indexes)
        except _Changed:
            if not left:
                raise SqlError(f"table {table!r} is being changed faster than rows can be checked for it") from None
        else:
            break
    if on_progress is not None:
        on_progress(done["row_count"], done["row_count"])
    return done


class _Changed(Exception):
    """The table changed after the rows were checked."""


def _write_once(
    workspace: Workspace, table: str, ready: NormalizedColumns, indexes: Mapping[str, str]
) -> dict[str, Any]:
    from .sql.define import create_statement, table_of

    known = _find_table(workspace, table)
    if known is not None and known.view is not None:
        raise SqlUnsupportedError(f'"{table}" is a view; ingest into the tables that it reads')
    columns = ({} if "id" in ready.columns else KEY) | _types(ready) if known is None else {}
    if known is None:
        target = table_of(create_statement(table, columns), {}, "")  # the table that these columns will create
    else:
        target = known
        _fits(known, ready)
    names, rows = _rows_for(target, ready)  # which takes a while, so not while others wait for the transaction

    def write() -> dict[str, Any]:
        there = _find_table(workspace, table)
        if there is None and known is None:
            there = workspace.create_table(table, columns)
        if there != target:
            raise _Changed
        held = {existing.name for existing in target.indexes}
        for column, kind in indexes.items():
            name = index_name(table, column, kind)
            if name not in held:
                workspace.query(index_statement(table, column, kind, name))
        count = workspace.insert_rows(workspace.table(table), names, rows)
        return {"table_name": table, "row_count": count, "created": known is None}

    return workspace.run_in_transaction(write)


def _find_table(workspace: Workspace, table: str) -> Table | None:
    return next((known for known in workspace.tables() if known.name == table), None)


def _rows_for(table: Table, ready: NormalizedColumns) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
    """Return column names and rows that fit a table; arrays become lists for JSON columns."""
    from .sql.literals import check_columns

    columns = dict(ready.columns)
    for column in table.columns:
        if column.type.kind is Kind.JSONB and column.name in columns:
            values = columns[column.name]
            columns[column.name] = [value.tolist() if isinstance(value, np.ndarray) else value for value in values]
    return check_columns(table, columns)


def index_name(table: str, columns: str | Sequence[str], kind: str) -> str:
    """Return a default index name: equal for equal columns, and never too long."""
    parts = [table, *([columns] if isinstance(columns, str) else columns), *([] if kind == "search" else [kind])]
    name = "_".join([*parts, "idx"])
    if len(name.encode()) <= _LONGEST_NAME:
        return name
    return f"{name.encode()[:40].decode(errors='ignore')}_{sha256(name.encode()).hexdigest()[:12]}_idx"


def index_statement(table: str, columns: str | Sequence[str], kind: str, name: str) -> str:
    """Build a CREATE INDEX: `search` if the column type decides, `btree`, or a given index_type."""
    several = [columns] if isinstance(columns, str) else list(columns)
    unique = "UNIQUE " if kind == "unique" else ""
    method = "" if kind in ("btree", "unique") else " USING deeplake_index"
    quoted = kind.replace("'", "''")
    option = "" if kind in ("search", "btree", "unique") else f" WITH (index_type = '{quoted}')"
    names = ", ".join(quote_name(column) for column in several)
    return f"CREATE {unique}INDEX IF NOT EXISTS {quote_name(name)} ON {quote_name(table)}{method} ({names}){option}"


def index_kinds(index: Indexes | None, ready: NormalizedColumns) -> dict[str, str]:
    """Return the kind of index for each column to be indexed."""
    if index is None:
        return {}
    if isinstance(index, str) or not isinstance(index, Mapping | Sequence):
        raise checks.refuse("index", "a list of columns, or a mapping of columns to kinds of index", index)
    wanted = dict(index) if isinstance(index, Mapping) else dict.fromkeys(index)
    checks.known_fields("the data", wanted, ready.columns)
    return {column: checks.name("index", kind or "search") for column, kind in wanted.items()}


def _types(ready: NormalizedColumns) -> dict[str, str]:
    """Return the type of each new column: as requested, else inferred."""
    return {name: ready.schema.get(name) or infer_type(name, values) for name, values in ready.columns.items()}


def _fits(known: Table, ready: NormalizedColumns) -> None:
    """Refuse columns that cannot be appended to an existing table. The insert checks single values."""
    checks.known_fields(f"table {known.name!r}", ready.columns, [column.name for column in known.columns])
    for column in known.columns:
        wanted = ready.schema.get(column.name)
        if wanted is not None and not agrees(type_of(wanted), column.type):
            raise InputError(
                f"{column.name} holds {type_name(column.type)} in table {known.name!r}, not {wanted}", field=column.name
            )
        needed = not column.nullable and column.default is None and not column.serial
        if column.name not in ready.columns and needed:
            raise InputError(f"{column.name} is NOT NULL in table {known.name!r} and has no default", field=column.name)


# As JSON


def to_body(ready: NormalizedColumns) -> dict[str, Any]:
    """Convert normalized columns to a request body, with the types that JSON cannot express."""
    columns: dict[str, list[Any]] = {}
    types: dict[str, str] = {}
    for name, values in ready.columns.items():
        vectors = [pack_vector(value) for value in values]
        if all(vector or value is None for vector, value in zip(vectors, values, strict=True)):
            columns[name], kind = vectors, Kind.VECTOR if any(vectors) else None
        else:
            columns[name], kind = [to_json(value) for value in values], _lost_in_json(values)
        if kind is not None:
            types[name] = kind.value
    body: dict[str, Any] = {"columns": columns}
    return body | ({"types": types} if types else {}) | ({"schema": ready.schema} if ready.schema else {})


def from_body(body: Mapping[str, Any]) -> NormalizedColumns:
    """Reverse `to_body`; `types` and `schema` are optional. File paths are not read."""
    columns, types, schema = body.get("columns"), body.get("types") or {}, body.get("schema") or {}
    if not isinstance(types, Mapping):
        raise checks.refuse("types", "a mapping of column names to types", types)
    if isinstance(schema, Mapping) and any(str(type).strip().upper() == FILE for type in schema.values()):
        raise InputError("schema must not have a FILE column here: the client reads files", field="schema")
    ready = normalize_columns(columns, schema)  # type: ignore[arg-type]
    for name, type in types.items():
        if name in ready.columns:
            ready.columns[name][:] = [from_json(value, type) for value in ready.columns[name]]
    return ready


def _lost_in_json(values: Sequence[Any]) -> Kind | None:
    """Return the kind of values that JSON would turn into texts."""
    kinds = {kind for value in values if value is not None and (kind := kind_of_value(value))}
    lost = kinds - {Kind.TEXT, Kind.BOOLEAN, Kind.BIGINT, *_LISTS}
    if not lost:
        return None
    if lost == {Kind.TIMESTAMPTZ} and all(value is None or value.tzinfo is None for value in values):
        return Kind.TIMESTAMP
    return Kind.NUMERIC if Kind.NUMERIC in lost else next(iter(lost))
