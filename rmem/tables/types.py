"""The types of columns as Python names: `types.Text()`, `types.Embedding(1536)`. SQL's own names do as well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..checks import refuse, whole
from ..errors import SqlError
from ..extras import require
from .catalog import Type

FILE = "FILE"
"""Not a type of values: marks a column of paths whose files are read, split and ingested."""


@dataclass(frozen=True, slots=True)
class DataType:
    """A type by its name in SQL."""

    sql: str

    def __str__(self) -> str:
        return self.sql


def _type(sql: str) -> Callable[[], DataType]:
    return lambda: DataType(sql)


Text = _type("TEXT")
Int16 = _type("SMALLINT")
Int32 = _type("INTEGER")
Int64 = _type("BIGINT")
Float32 = _type("REAL")
Float64 = _type("DOUBLE PRECISION")
Bool = _type("BOOLEAN")
Date = _type("DATE")
Uuid = _type("UUID")
Bytes = _type("BYTEA")
Timestamp = _type("TIMESTAMPTZ")
"""A moment, kept in UTC."""
Dict = Json = _type("JSONB")
"""JSON: objects, lists, texts, numbers."""
File = _type(FILE)
"""Paths of files that `ingest` reads: text, Markdown, JSON lines, PDF."""
MultiEmbedding = _type("FLOAT4[][]")
"""Several vectors for one row, such as one for each token; compared with MaxSim."""


def Embedding(size: int) -> DataType:
    """A vector of `size` numbers; all vectors of the column have that size."""
    return DataType(f"EMBEDDING({whole('size', size, low=1)})")


def Numeric(precision: int | None = None, scale: int = 0) -> DataType:
    """Exact decimals: `Numeric(10, 2)` has ten digits, two of them after the point; `Numeric()` any number."""
    if precision is None:
        return DataType("NUMERIC")
    return DataType(f"NUMERIC({whole('precision', precision, low=1)}, {whole('scale', scale)})")


_OTHER_NAMES = {
    "str": "TEXT",
    "string": "TEXT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "int": "BIGINT",
    "float32": "REAL",
    "float64": "DOUBLE PRECISION",
    "float": "DOUBLE PRECISION",
    "bool": "BOOLEAN",
    "dict": "JSONB",
    "json": "JSONB",
    "bytes": "BYTEA",
    "datetime": "TIMESTAMPTZ",
}


def sql_of(field: str, given: object) -> str:
    """Return the SQL of a type: of `types.Text()`, of the function `types.Text` itself, of "TEXT" or of "int64"."""
    if callable(given) and getattr(given, "__module__", None) == __name__ and given not in (Embedding,):
        given = given()
    if isinstance(given, DataType):
        return given.sql
    if isinstance(given, str) and given.strip():
        return _OTHER_NAMES.get(given.strip().lower(), given.strip())
    raise refuse(field, "a type such as 'TEXT', 'EMBEDDING(256)' or types.Text()", given)


def type_of(sql: str) -> Type:
    """Parse the SQL of a type: `type_of("varchar(20)")`."""
    require("tables", "a type of SQL")
    from sqlglot import exp

    from .sql.expression_types import read_type
    from .sql.parse import parse

    cast = parse(f"SELECT NULL::{sql}").tree.expressions
    if len(cast) != 1 or not isinstance(cast[0], exp.Cast) or not isinstance(cast[0].this, exp.Null):
        raise SqlError(f"{sql!r} is not a type")
    return read_type(cast[0].to)[1]


def agrees(wanted: Type, known: Type) -> bool:
    """Whether a column of the known type is what was wanted; limits that are not named do not count."""
    if wanted.kind is not known.kind:
        return False
    limits = ("dimension", "length", "precision", "scale")
    return all(getattr(wanted, limit) in (None, getattr(known, limit)) for limit in limits)
