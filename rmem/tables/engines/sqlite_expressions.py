"""Compile bound expressions to SQLite SQL. Nothing a user wrote gets into it but numbers and quoted texts: columns,
tables and aliases have names of our own, functions are those of the registry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp

from ...errors import SqlError, SqlUnsupportedError
from ..catalog import ROW, Type
from ..sql import functions
from ..sql.casts import converter
from ..sql.dialect import Operator
from ..sql.expressions import ARITHMETIC
from ..sql.functions import Call
from ..sql.literals import read
from ..sql.scope import fold_name, shown
from ..sql.types import INTEGERS, NUMBERS, element, type_of
from . import (  # noqa: F401 - they register their functions
    sqlite_arrays,
    sqlite_json,
    sqlite_numeric,
    sqlite_text,
    sqlite_times,
)
from .sqlite_aggregates import aggregate_sql, window_sql
from .sqlite_calls import Native, natives, scalar
from .sqlite_predicates import PredicateSql
from .sqlite_storage import has_limits, kept, literal_sql, named_column, text_sql, writer

_COMPARED: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "IS",
    exp.NullSafeNEQ: "IS NOT",
}


class ExpressionSql(PredicateSql):
    """The part of a Compiler that writes expressions."""

    def sql(self, node: exp.Expr | None) -> str:
        if not isinstance(node, exp.Expression):
            raise SqlError("an expression is missing")
        kind = type(node)
        if kind in ARITHMETIC:
            text = self._operator(node)
        elif kind in _COMPARED:
            text = self._comparison(node, _COMPARED[kind])
        else:
            branch = self._BRANCHES.get(kind)
            if branch is None:
                raise SqlUnsupportedError(f"{kind.__name__} is not supported: {shown(node)}")
            text = branch(self, node)
        self.compiler.count(text)
        return text

    # -- casts ----------------------------------------------------------------------------------------------

    def convert(self, sql: str, have: str, want: str) -> str:
        """SQL of one type as SQL of another."""
        if have == want or (have, want) in _ALIKE:
            return sql
        template = _CAST_SQL.get((have, want))
        if template is not None:
            return template.format(sql)
        run = converter(have, want)
        return self.compiler.call(scalar(f"cast({have}) {want}", (have,), want, Native(run)), [sql])

    def fit_sql(self, sql: str, kind: str, limits: Type, column: str = "") -> str:
        """A value that keeps the limits of its type. A cast cuts a text; a column refuses a long one."""
        if limits.length is not None and kind == "text" and not column:
            return f"substr({sql}, 1, {limits.length})"
        if not has_limits(limits):
            return sql

        def fit(stored: Any) -> Any:
            return kept(stored, limits, column)

        form = "bytea" if kind == "float4[]" else "text"  # as it is stored
        key = f"kept({limits.length},{limits.precision},{limits.scale},{limits.dimension},{column})"
        return self.compiler.call(scalar(key, (form,), form, Native(fit)), [sql])

    def assign_sql(self, node: exp.Expression, kind: str, limits: Type, column: str) -> str:
        """A value that is written into a column. What is known now is checked now."""
        inner = node.unnest()
        if isinstance(inner, exp.Parameter) and type_of(inner) == kind:
            return self.compiler.slot(int(inner.name) - 1, kind, limits, column)
        if isinstance(inner, exp.Literal) and not isinstance(node, exp.Neg):
            with named_column(column):
                have = type_of(inner)
                value = converter(have, kind)(read(inner.this, have))
            return literal_sql(kept(writer(kind)(value), limits, column))
        return self.fit_sql(self.sql_as(node, kind), kind, limits, column)

    # -- values ---------------------------------------------------------------------------------------------

    def _literal(self, node: exp.Literal) -> str:
        kind = type_of(node)
        return literal_sql(writer(kind)(read(node.this, kind)))

    def _parameter(self, node: exp.Parameter) -> str:
        return self.compiler.slot(int(node.name) - 1, type_of(node))

    def _column(self, node: exp.Column) -> str:
        name = node.name
        if "output" in node.meta:
            return f"o{node.meta['output'] + 1}"
        return self.compiler.column(node.table, ROW if name == ROW else name)

    def _paren(self, node: exp.Paren) -> str:
        return f"({self.sql(node.this)})"

    def _cast(self, node: exp.Cast) -> str:
        kind = type_of(node)
        inner = node.this
        if isinstance(inner, exp.Array) and type_of(inner) == kind:
            return self.sql(inner)
        return self.fit_sql(self.sql_as(inner, kind), kind, node.meta["limits"])

    def _array(self, node: exp.Array) -> str:
        kind = type_of(node)
        inner = element(kind)
        items = [self.sql_as(item, inner) for item in node.expressions]

        def build(*values: Any) -> list[Any]:
            return list(values)

        udf = scalar(f"array({len(items)})", (inner,) * len(items), kind, Native(build, strict=False))
        return self.compiler.call(udf, items)

    def _bracket(self, node: exp.Bracket) -> str:
        kind = type_of(node.this)
        udf = scalar("subscript", (kind, "int8"), element(kind))
        return self.compiler.call(udf, [self.sql(node.this), self.sql_as(node.expressions[0], "int8")])

    # -- operators ------------------------------------------------------------------------------------------

    def _operator(self, node: exp.Expression) -> str:
        call: Call = node.meta["call"]
        if call.key in _JOINED:
            parts, _ = _chain(node, lambda inner: inner.meta["call"].key in _JOINED)
            return "(" + " || ".join(self.sql_as(part, "text") for part in parts) + ")"
        kind = call.gives
        if call.takes == (kind, kind) and kind in NUMBERS and type(node) in _FOLDED:
            parts, signs = _chain(
                node, lambda inner: type(inner) in _FOLDED and inner.meta["call"].takes == (kind, kind)
            )
            if len(parts) > 2:
                return self._folded(parts, signs, kind)
        return self._called(call, [node.this, node.expression])

    def _folded(self, parts: list[exp.Expression], signs: list[str], kind: str) -> str:
        """A long sum as one call, because SQLite limits how deep calls may be nested."""
        runs = [natives[f"{sign}({kind}, {kind})"].run for sign in signs]

        def fold(first: Any, *others: Any) -> Any:
            for run, other in zip(runs, others, strict=True):
                first = run(first, other)
            return first

        udf = scalar(f"fold({''.join(signs)})", (kind,) * len(parts), kind, Native(fold))
        return self.compiler.call(udf, [self.sql_as(part, kind) for part in parts])

    def _called(self, call: Call, arguments: list[exp.Expression]) -> str:
        items = [self.sql_as(argument, want) for argument, want in zip(arguments, call.takes, strict=True)]
        template = _CALL_SQL.get(call.key)
        if template is not None:
            return template.format(*items)
        takes = ("bytea", "bytea") if call.key in _AS_STORED else call.takes
        return self.compiler.call(scalar(call.key, takes, call.gives), items)

    def _unary(self, node: exp.Expression) -> str:
        call: Call = node.meta["call"]
        if isinstance(node.this, exp.Literal) and type_of(node) in INTEGERS:
            return f"({literal_sql(-int(node.this.this))})"
        udf = scalar(f"negative({call.takes[0]})", call.takes, call.gives)
        return self.compiler.call(udf, [self.sql_as(node.this, call.takes[0])])

    def _extract(self, node: exp.Extract) -> str:
        kind = type_of(node.expression)
        udf = scalar(f"extract({kind})", ("text", kind), "numeric")
        return self.compiler.call(udf, [text_sql(node.this.name.lower()), self.sql(node.expression)])

    def _at_time_zone(self, node: exp.AtTimeZone) -> str:
        return self._called(node.meta["call"], [node.args["zone"], node.this])

    def _current(self, node: exp.Expression) -> str:
        return self.convert(self.compiler.now(), "timestamptz", type_of(node))

    # -- subqueries and functions ---------------------------------------------------------------------------

    def _subquery(self, node: exp.Subquery) -> str:
        return self.compiler.single(node)

    def _exists(self, node: exp.Exists) -> str:
        return f"EXISTS ({self.compiler.query(node.this)})"

    def _function(self, node: exp.Anonymous) -> str:
        name = fold_name(node.this)
        if name == "rmem_score":
            return self.compiler.score(int(node.expressions[0].name), self.sql(node.expressions[1]))
        call: Call | None = node.meta.get("call")
        if call is None:
            raise SqlUnsupportedError(f"function {name}() is not supported here")
        special = _SPECIAL.get(name)
        if special is not None:
            return special(self, node, call)
        if call.signature.name in functions.aggregates:
            return aggregate_sql(self, node, "", "")
        return self._called(call, node.expressions)

    def _filter(self, node: exp.Filter) -> str:
        condition = f" FILTER (WHERE {self.sql_as(node.expression.this, 'bool')})"
        return aggregate_sql(self, node.this, condition, "")

    _BRANCHES: ClassVar[dict[type[exp.Expr], Callable[..., str]]] = {
        exp.Literal: _literal,
        exp.Parameter: _parameter,
        exp.Boolean: lambda self, node: str(int(bool(node.this))),
        exp.Null: lambda self, node: "NULL",
        exp.Column: _column,
        exp.Paren: _paren,
        exp.Cast: _cast,
        exp.Array: _array,
        exp.Bracket: _bracket,
        Operator: _operator,
        exp.Neg: _unary,
        exp.And: PredicateSql._connector,
        exp.Or: PredicateSql._connector,
        exp.Not: PredicateSql._not,
        exp.Is: PredicateSql._is,
        exp.In: PredicateSql._in,
        exp.Between: PredicateSql._between,
        exp.Like: PredicateSql._like,
        exp.ILike: PredicateSql._like,
        exp.Escape: PredicateSql._escape,
        exp.Case: PredicateSql._case,
        exp.Extract: _extract,
        exp.AtTimeZone: _at_time_zone,
        exp.CurrentTimestamp: _current,
        exp.CurrentDate: _current,
        exp.Subquery: _subquery,
        exp.Exists: _exists,
        exp.Anonymous: _function,
        exp.Filter: _filter,
        exp.Window: window_sql,
    }


_AS_STORED = ("<->(float4[], float4[])",)
_JOINED = ("||(text, text)", "||(text, anynonarray)", "||(anynonarray, text)")
_FOLDED = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_LONGEST = 100  # arguments that a function of SQLite may have, and some left over


def _chain(node: exp.Expression, same: Callable[[exp.Expression], bool]) -> tuple[list[exp.Expression], list[str]]:
    """`a + b - c` as [a, b, c] and ["+", "-"]: the operators of one kind that lean to the left."""
    parts = [node.expression]
    signs = [ARITHMETIC[type(node)]]
    left = node.this
    while len(parts) < _LONGEST:
        inner = left.unnest()
        if type(inner) not in ARITHMETIC or not same(inner):
            break
        parts.append(inner.expression)
        signs.append(ARITHMETIC[type(inner)])
        left = inner.this
    parts.append(left)
    return parts[::-1], signs[::-1]


def _coalesce(self: ExpressionSql, node: exp.Anonymous, call: Call) -> str:
    items = [self.sql_as(argument, call.gives) for argument in node.expressions]
    return items[0] if len(items) == 1 else f"coalesce({', '.join(items)})"


def _nullif(self: ExpressionSql, node: exp.Anonymous, call: Call) -> str:
    kind = call.takes[0]
    left, right = node.expressions
    same = f"{self.compare(left, kind)} = {self.sql_as(right, kind)}"
    return f"(CASE WHEN {same} THEN NULL ELSE {self.sql_as(left, call.gives)} END)"


def _now(self: ExpressionSql, node: exp.Anonymous, call: Call) -> str:
    return self.compiler.now()


_SPECIAL: dict[str, Callable[[ExpressionSql, exp.Anonymous, Call], str]] = {
    "coalesce": _coalesce,
    "nullif": _nullif,
    "now": _now,
}
_ALIKE = {
    *((a, b) for a in INTEGERS for b in INTEGERS if INTEGERS.index(a) < INTEGERS.index(b)),
    ("bool", "int4"),
    ("float4", "float8"),
    ("timestamp", "timestamptz"),
    ("timestamptz", "timestamp"),
    ("uuid", "text"),
}
_CAST_SQL = {
    **{(kind, "numeric"): "CAST({0} AS TEXT)" for kind in INTEGERS},
    **{(kind, "text"): "CAST({0} AS TEXT)" for kind in INTEGERS},
    **{(kind, "float8"): "CAST({0} AS REAL)" for kind in INTEGERS},
    ("bool", "text"): "(CASE {0} WHEN 1 THEN 'true' WHEN 0 THEN 'false' END)",
    ("numeric", "text"): "({0} || '')",  # so that the collation of a column is left behind
    ("jsonb", "text"): "({0} || '')",
    ("int4", "bool"): "({0} <> 0)",
    ("date", "timestamp"): "({0} * 86400000000)",
    ("date", "timestamptz"): "({0} * 86400000000)",
}
_CALL_SQL = {
    "length(text)": "length({0})",
    "+(date, int4)": "({0} + {1})",
    "+(int4, date)": "({0} + {1})",
    "-(date, int4)": "({0} - {1})",
    "-(date, date)": "({0} - {1})",
}
