"""The types of expressions, by PostgreSQL's short names (`int4`, `text`, `float4[]`), and how they convert.

A column has a `catalog.Type`; an expression has a name. `unknown` is an untyped literal, which takes the type that its
place expects, as in PostgreSQL."""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp

from ...errors import SqlError, SqlUnsupportedError
from ..catalog import Kind, Type

UNKNOWN = "unknown"
NUMBERS = ("int2", "int4", "int8", "numeric", "float4", "float8")
INTEGERS = ("int2", "int4", "int8")

NAMES: dict[Kind, str] = {
    Kind.TEXT: "text",
    Kind.SMALLINT: "int2",
    Kind.INTEGER: "int4",
    Kind.BIGINT: "int8",
    Kind.REAL: "float4",
    Kind.DOUBLE: "float8",
    Kind.NUMERIC: "numeric",
    Kind.BOOLEAN: "bool",
    Kind.JSONB: "jsonb",
    Kind.TIMESTAMPTZ: "timestamptz",
    Kind.TIMESTAMP: "timestamp",
    Kind.DATE: "date",
    Kind.TIME: "time",
    Kind.INTERVAL: "interval",
    Kind.UUID: "uuid",
    Kind.BYTEA: "bytea",
    Kind.VECTOR: "float4[]",
    Kind.VECTORS: "float4[][]",
    Kind.TEXTS: "text[]",
    Kind.INTEGERS: "int8[]",
}
KINDS: dict[str, Kind] = {name: kind for kind, name in NAMES.items()}

SPELLED: dict[str, str] = {
    "int2": "smallint",
    "int4": "integer",
    "int8": "bigint",
    "float4": "real",
    "float8": "double precision",
    "bool": "boolean",
    "timestamptz": "timestamp with time zone",
    "timestamp": "timestamp without time zone",
    "time": "time without time zone",
}

_T = exp.DType
_SIMPLE: dict[exp.DType, str] = {
    _T.TEXT: "text",
    _T.VARCHAR: "text",
    _T.CHAR: "text",
    _T.BPCHAR: "text",
    _T.SMALLINT: "int2",
    _T.INT: "int4",
    _T.BIGINT: "int8",
    _T.SMALLSERIAL: "int2",
    _T.SERIAL: "int4",
    _T.BIGSERIAL: "int8",
    _T.FLOAT: "float4",
    _T.DOUBLE: "float8",
    _T.DECIMAL: "numeric",
    _T.BOOLEAN: "bool",
    _T.JSON: "jsonb",
    _T.JSONB: "jsonb",
    _T.TIMESTAMPTZ: "timestamptz",
    _T.TIMESTAMP: "timestamp",
    _T.DATE: "date",
    _T.TIME: "time",
    _T.INTERVAL: "interval",
    _T.UUID: "uuid",
    _T.VARBINARY: "bytea",
}
_VECTORS = ("embedding", "vector")
MAX_DIMENSION = 65_536
MAX_PRECISION = 1000


def long_name(name: str) -> str:
    """Return the name that PostgreSQL's messages use."""
    return SPELLED.get(name.removesuffix("[]"), name.removesuffix("[]")) + ("[]" if name.endswith("[]") else "")


def type_of(node: exp.Expr) -> str:
    """Return the type that binding gave an expression."""
    return str(node.meta.get("type", UNKNOWN))


def element(name: str) -> str:
    return name.removesuffix("[]")


def is_array(name: str) -> bool:
    return name.endswith("[]")


def read_type(to: exp.DataType) -> tuple[str, Type]:
    """Parse a type: its short name and modifiers."""
    kind = to.this
    if kind == _T.ARRAY:
        inner = to.expressions[0] if to.expressions else None
        if not isinstance(inner, exp.DataType):
            raise _unsupported(to)
        name, _ = read_type(inner)
        dimension = _number(to.args["values"][0]) if to.args.get("values") else None
        name += "[]"
        if name.endswith("[][]") and name != "float4[][]":
            raise SqlUnsupportedError(f"type {name} is not supported; arrays of arrays are of float4 only")
        return name, Type(KINDS.get(_stored_array(name), Kind.TEXTS), dimension=dimension)
    if kind == _T.USERDEFINED or kind == _T.VECTOR:
        return _vector(to)
    name = _SIMPLE.get(kind, "")
    if not name:
        raise _unsupported(to)
    limits = [_number(limit) for limit in to.expressions]
    if kind in (_T.VARCHAR, _T.CHAR, _T.BPCHAR):
        length = limits[0] if limits else (1 if kind == _T.CHAR else None)
        if length is not None and not 1 <= length <= 10_485_760:
            raise SqlError(f"length of {to.sql(dialect='postgres')} must be 1 to 10485760")
        return name, Type(Kind.TEXT, length=length)
    if name == "numeric":
        return name, numeric_type(limits)
    if limits and kind == _T.FLOAT:
        name = "float4" if limits[0] <= 24 else "float8"
    elif limits and name not in ("timestamptz", "timestamp", "time", "interval"):
        raise _unsupported(to)
    return name, Type(KINDS[name])


def _unsupported(to: exp.DataType) -> SqlUnsupportedError:
    """Name a type, and the type of ours that stands for one of another database."""
    ours = to.sql(dialect="postgres")
    name = to.this.value if isinstance(to.this, _T) else ours
    word = ours.partition("(")[0].strip()
    if word != name and any(kind.value == word for kind in _SIMPLE):
        return SqlUnsupportedError(f"type {name} is not supported; write {ours}")
    return SqlUnsupportedError(f"type {ours} is not supported")


def numeric_type(limits: list[int]) -> Type:
    precision = limits[0] if limits else None
    scale = limits[1] if len(limits) > 1 else (0 if limits else None)
    if precision is not None and not 1 <= precision <= MAX_PRECISION:
        raise SqlError(f"precision of numeric must be 1 to {MAX_PRECISION}, got {precision}")
    if scale is not None and precision is not None and not 0 <= scale <= precision:
        raise SqlError(f"scale of numeric must be 0 to its precision {precision}, got {scale}")
    return Type(Kind.NUMERIC, precision=precision, scale=scale)


def _vector(to: exp.DataType) -> tuple[str, Type]:
    """Read EMBEDDING(n) and VECTOR(n) as float4[] with a dimension."""
    kind = to.args.get("kind") if to.this == _T.USERDEFINED else "vector"
    name = (kind.sql() if isinstance(kind, exp.Expression) else str(kind)).strip('"').lower()
    name, _, limit = name.partition("(")
    if name not in _VECTORS:
        raise SqlUnsupportedError(f"type {name} is not supported")
    digits = limit.rstrip(") ").strip()
    if to.expressions:
        dimension: int | None = _number(to.expressions[0])
    else:
        dimension = int(digits) if digits.isdecimal() else None
    if dimension is not None and not 1 <= dimension <= MAX_DIMENSION:
        raise SqlError(f"dimension of a vector must be 1 to {MAX_DIMENSION}, got {dimension}")
    return "float4[]", Type(Kind.VECTOR, dimension=dimension)


def _stored_array(name: str) -> str:
    return {"int2[]": "int8[]", "int4[]": "int8[]"}.get(name, name)


def _number(node: exp.Expression) -> int:
    value = node.this if isinstance(node, exp.DataTypeParam) else node
    if isinstance(value, exp.Literal) and not value.is_string and value.this.isdecimal() and len(value.this) < 10:
        return int(value.this)
    raise SqlError(f"a type's limit must be a whole number, got {node.sql(dialect='postgres')}")


_IMPLIED: dict[str, tuple[str, ...]] = {
    "int2": ("int4", "int8", "numeric", "float4", "float8"),
    "int4": ("int8", "numeric", "float4", "float8"),
    "int8": ("numeric", "float4", "float8"),
    "numeric": ("float4", "float8"),
    "float4": ("float8",),
    "date": ("timestamp", "timestamptz"),
    "timestamp": ("timestamptz",),
}
_ASSIGNED: dict[str, tuple[str, ...]] = {
    "int4": ("int2",),
    "int8": ("int2", "int4"),
    "numeric": INTEGERS,
    "float4": (*INTEGERS, "numeric"),
    "float8": (*INTEGERS, "numeric", "float4"),
    "timestamptz": ("date", "timestamp", "time"),
    "timestamp": ("date", "time"),
}
_EXPLICIT: dict[str, tuple[str, ...]] = {
    "int4": ("bool",),
    "bool": ("int4",),
    "jsonb": ("bool", *NUMBERS),
}


def is_implicit(source: str, target: str) -> bool:
    """Return whether one type converts implicitly to another."""
    return source in (target, UNKNOWN) or target in _IMPLIED.get(source, ())


def assignable(source: str, target: str) -> bool:
    """Return whether a value of one type can be written to a column of another."""
    if is_implicit(source, target) or target in _ASSIGNED.get(source, ()) or target == "text":
        return True
    return is_array(source) and is_array(target) and assignable(element(source), element(target))


def castable(source: str, target: str) -> bool:
    """Return whether `value::type` is possible."""
    if assignable(source, target) or target in _EXPLICIT.get(source, ()) or source == "text":
        return True
    return is_array(source) and is_array(target) and castable(element(source), element(target))


def common(names: list[str], where: str) -> str:
    """Return the common type for CASE, COALESCE, UNION, ARRAY and VALUES."""
    chosen = UNKNOWN
    for name in names:
        if chosen == UNKNOWN:
            chosen = name
        elif name not in (chosen, UNKNOWN):
            if is_implicit(chosen, name):
                chosen = name
            elif not is_implicit(name, chosen):
                raise SqlError(f"{where} types {long_name(chosen)} and {long_name(name)} cannot be matched")
    return "text" if chosen == UNKNOWN else chosen


@lru_cache(maxsize=256)
def result_type(name: str) -> Type | None:
    """Return the type for a Result; None if the catalogue has none."""
    kind = KINDS.get(_stored_array(name))
    return Type(kind) if kind is not None else None
