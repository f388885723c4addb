"""The search operators in a statement: what they search, and for what.

- `column <#> query`: cosine on FLOAT4[], BM25 on TEXT, MaxSim on FLOAT4[][];
- `(vector, text) <#> deeplake_hybrid_record(vector, 'words', weight of the vector, weight of the words)`;
- `cosine_similarity(column, query)` and `bm25_similarity(column, 'words')`."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sqlglot import exp

from ...errors import SqlError, SqlUnsupportedError
from ...index.bits import Matrix, unit
from ..catalog import Column, Kind, Table
from ..results import Result
from ..sql.dialect import SIMILARITY, Operator
from ..sql.scope import shown as _shown
from ..sql.sources import SourceNodes, real_table, stands_alone

COSINE, BM25, MAXSIM, HYBRID = "cosine", "bm25", "maxsim", "hybrid"
RECORD = "deeplake_hybrid_record"
_FUNCTIONS = ("cosine_similarity", "bm25_similarity")
_FORMS = {Kind.VECTOR: COSINE, Kind.TEXT: BM25, Kind.VECTORS: MAXSIM}
_BRACKETS = str.maketrans("{}", "[]")


RunQuery = Callable[[exp.Expression], Result]
"""Runs a query that stands inside another statement."""


@dataclass(frozen=True, slots=True)
class SearchOperator:
    """One operator of a statement: the searched columns, and the expressions of its query."""

    form: str
    alias: str
    table: Table
    columns: tuple[Column, ...]
    shown: str
    query: tuple[exp.Expr, ...]
    """One expression; of a hybrid search the vector, the words and perhaps their weights."""

    def evaluate(self, parameters: Sequence[Any], run_query: RunQuery) -> SearchQuery | None:
        """Evaluate the query; None if a part of it is NULL, and so every score."""
        values = [_evaluate(part, parameters, run_query, self.shown) for part in self.query]
        names = [f"{self.table.name}.{column.name}" for column in self.columns]
        if any(value is None for value in values[:2]):
            return None
        if self.form == BM25:
            return SearchQuery(_words(values[0], f"{self.shown} on {names[0]}"))
        vectors = _vectors(values[0], f"{self.shown} on {names[0]}", many=self.form == MAXSIM)
        check_dimension(names[0], self.columns[0].type.dimension, vectors.shape[1])
        if self.form != HYBRID:
            return SearchQuery(vectors=vectors)
        words = _words(values[1], f"{self.shown} on {names[1]}")
        return SearchQuery(words, vectors, _weights(values[2], values[3]) if len(values) == 4 else (0.5, 0.5))


class SearchQuery(NamedTuple):
    """What an operator searches for in one run."""

    words: str = ""
    vectors: Matrix = np.empty((0, 0), np.float32)
    """At unit length; one line, except for MaxSim."""
    weights: tuple[float, float] = (0.5, 0.5)
    """Of the vector and of the words."""


class _NotConstant(Exception):
    """An expression whose value depends on the row."""


def is_search(node: exp.Expr) -> bool:
    if isinstance(node, Operator):
        return node.op == SIMILARITY
    return isinstance(node, exp.Anonymous) and node.name.lower() in _FUNCTIONS


def read_operator(node: exp.Expr, known: SourceNodes) -> SearchOperator:
    """Check an operator of a bound statement."""
    if isinstance(node, exp.Anonymous):
        left, right = node.expressions
        return _read_column_search(left, right, known, shown=f"{node.name.lower()}()")
    left, right = _bare(node.this), node.expression
    if isinstance(left, exp.Tuple):
        return _read_hybrid(left, _bare(right), known)
    return _read_column_search(left, right, known, shown=SIMILARITY)


def _read_column_search(left: exp.Expr, right: exp.Expr, known: SourceNodes, *, shown: str) -> SearchOperator:
    left, right = _bare(left), _bare(right)
    if isinstance(right, exp.Column) and not isinstance(left, exp.Column):
        left, right = right, left
    if not isinstance(left, exp.Column):
        raise SqlUnsupportedError(f"{shown} needs a column of a table, got {_shown(left)}")
    table, column = _column(left, shown, known)
    kind = column.type.kind
    if kind not in _FORMS:
        expected = "FLOAT4[], TEXT or FLOAT4[][]"
        raise SqlError(f"{shown} searches columns of type {expected}; {table.name}.{column.name} is {kind.upper()}")
    return SearchOperator(_FORMS[kind], left.table, table, (column,), shown, (_query(right),))


def _read_hybrid(record: exp.Tuple, right: exp.Expr, known: SourceNodes) -> SearchOperator:
    parts = [part for part in map(_bare, record.expressions) if isinstance(part, exp.Column)]
    if len(parts) != 2 or len(record.expressions) != 2:
        raise SqlError(f"{SIMILARITY} with {RECORD}() needs (vector column, text column), got {_shown(record)}")
    (table, vector), (_, text) = (_column(part, SIMILARITY, known) for part in parts)
    if parts[0].table != parts[1].table:
        raise SqlError(f"both columns of {_shown(record)} must be of the same table")
    if (vector.type.kind, text.type.kind) != (Kind.VECTOR, Kind.TEXT):
        raise SqlError(f"{SIMILARITY} with {RECORD}() needs columns of type (FLOAT4[], TEXT), got {_shown(record)}")
    query = tuple(map(_query, right.expressions))
    return SearchOperator(HYBRID, parts[0].table, table, (vector, text), f"{RECORD}()", query)


def _column(node: exp.Column, shown: str, known: SourceNodes) -> tuple[Table, Column]:
    table = real_table(known.get(node.table))
    if table is None:
        raise SqlUnsupportedError(
            f"{shown} needs a column of a table; {_shown(node)} comes from a query: search inside that query"
        )
    column = table.column(node.name)
    if column is None:
        raise SqlError(f"no column {node.name!r} in table {table.name!r}")
    return table, column


def _query(node: exp.Expr) -> exp.Expr:
    """Return the query of an operator: an expression, or a subquery that can run by itself."""
    bare = _bare(node)
    if isinstance(bare, exp.Subquery) and isinstance(bare.this, exp.Select | exp.SetOperation) and stands_alone(bare):
        query: exp.Expr = bare.this.copy()
        return query
    return node


def _evaluate(node: exp.Expr, parameters: Sequence[Any], run_query: RunQuery, shown: str) -> Any:
    """Evaluate `embedding <#> $1` or `embedding <#> (SELECT embedding FROM … WHERE …)`."""
    if isinstance(node, exp.Select | exp.SetOperation):
        rows = run_query(node).rows
        if len(rows) > 1:
            raise SqlError("more than one row returned by a subquery used as an expression")
        return rows[0][0] if rows else None
    try:
        return constant(node, parameters)
    except _NotConstant:
        raise SqlUnsupportedError(
            f"the query of {shown} must be a value, a parameter or a query that stands alone, not {_shown(node)}"
        ) from None


def constant(node: exp.Expr, parameters: Sequence[Any]) -> Any:
    """Return the value of an expression that is equal for every row."""
    node = _bare(node)
    if isinstance(node, exp.Literal):
        return node.this if node.is_string else float(node.this)
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Neg):
        value = constant(node.this, parameters)
        if isinstance(value, int | float):
            return -value
    if isinstance(node, exp.Array):
        return [constant(part, parameters) for part in node.expressions]
    if isinstance(node, exp.Parameter):
        return parameters[int(node.name) - 1]
    raise _NotConstant


def whole(node: exp.Expr | None, parameters: Sequence[Any]) -> int | None:
    """Return the value of LIMIT or OFFSET; None if it is not a plain number."""
    value = None if node is None else number(node, parameters)
    return int(value) if value is not None and 0 <= value < math.inf and value == int(value) else None


def number(node: exp.Expr, parameters: Sequence[Any]) -> float | None:
    """The value of a number that is the same for every row; None for anything else."""
    try:
        value = constant(node, parameters)
        return None if isinstance(value, bool) else float(value)
    except (_NotConstant, TypeError, ValueError):
        return None


def _bare(node: exp.Expr) -> exp.Expr:
    """Strip brackets and casts."""
    while isinstance(node, exp.Paren | exp.Cast):
        node = node.this
    return node


def _words(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise SqlError(f"the query of {where} must be a text, got {type(value).__name__}")
    return value


def _weights(vector: Any, words: Any) -> tuple[float, float]:
    found = []
    for name, value in (("the vector", vector), ("the words", words)):
        try:
            weight = float(value)
        except (TypeError, ValueError):
            weight = math.nan
        if isinstance(value, bool) or not math.isfinite(weight) or weight < 0:
            raise SqlError(f"the weight of {name} in {RECORD}() must be a number ≥ 0, got {value!r}")
        found.append(weight)
    if not any(found):
        raise SqlError(f"one of the weights in {RECORD}() must be above 0")
    return found[0], found[1]


def _vectors(value: Any, where: str, *, many: bool) -> Matrix:
    """Return the query vectors at unit length."""
    expected = "vectors" if many else "a vector"
    try:
        matrix = np.array(json.loads(value.translate(_BRACKETS)) if isinstance(value, str) else value, dtype=np.float32)
    except (TypeError, ValueError):
        raise SqlError(f"the query of {where} must be {expected} such as '{{0.1,0.2}}', got {value!r:.40}") from None
    if (matrix.ndim != 1 and not (many and matrix.ndim == 2)) or not matrix.size:
        raise SqlError(f"the query of {where} must be {expected} of numbers")
    if not np.isfinite(matrix).all():
        raise SqlError(f"the query of {where} must be {expected} of finite numbers")
    return unit(np.atleast_2d(matrix))


def check_dimension(name: str, held: int | None, given: int) -> None:
    if held is not None and held != given:
        raise SqlError(f"{name} holds vectors of {held} numbers, the query has {given}", field=name)
