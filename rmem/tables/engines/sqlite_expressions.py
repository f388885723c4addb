"""Compile bound expressions to SQLite SQL. Nothing a user wrote gets into it but numbers and quoted texts: columns,
tables and aliases have names of our own, functions are those of the registry."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp

from ...errors import SqlError, SqlUnsupportedError
from ..catalog import ROW, Type
from ..sql import functions
from ..sql.casts import converter
from ..sql.dialect import Operator
from ..sql.expression_types import INTEGERS, UNKNOWN, element, type_of
from ..sql.expressions import ARITHMETIC, COMPARISONS
from ..sql.functions import FunctionCall
from ..sql.literals import read
from ..sql.scope import fold_name, shown
from . import (  # noqa: F401 - they register their functions
    sqlite_arrays,
    sqlite_json,
    sqlite_numbers,
    sqlite_text,
    sqlite_times,
)
from .sqlite_aggregates import aggregate_sql, window_sql
from .sqlite_functions import MAX_ARGUMENTS, Native, scalar
from .sqlite_storage import (
    collation,
    fit_limits,
    has_limits,
    literal_sql,
    named_column,
    text_sql,
    writer,
)
from .sqlite_text import MAX_LIKE, is_short

if TYPE_CHECKING:
    from .sqlite_compile import Compiler

_COMPARED: dict[type[exp.Expr], str] = {**COMPARISONS, exp.NullSafeEQ: "IS", exp.NullSafeNEQ: "IS NOT"}


class ExpressionSql:
    """The part of a Compiler that compiles expressions."""

    def __init__(self, compiler: Compiler) -> None:
        self.compiler = compiler

    def sql_as(self, node: exp.Expr | None, want: str) -> str:
        """Compile an expression as a value of a type."""
        if not isinstance(node, exp.Expression):
            raise SqlError("an expression is missing")
        have = type_of(node)
        if have == UNKNOWN:
            return self._constant(node, want)
        return self.convert(self.sql(node), have, want)

    def compare(self, node: exp.Expr | None, want: str) -> str:
        """Compile an expression for comparing, ordering and grouping."""
        return self.collate(self.sql_as(node, want), want)

    @staticmethod
    def collate(sql: str, kind: str, other: str = "") -> str:
        """Add the collation of a type; it overrides one inside the expression."""
        order = collation(kind)
        if not order and kind in ("text", "uuid") and (" COLLATE " in sql or " COLLATE " in other):
            order = "BINARY"
        return f"{sql} COLLATE {order}" if order else sql

    def key(self, node: exp.Expression) -> str:
        return self.compare(node, type_of(node))

    def _constant(self, node: exp.Expression, want: str) -> str:
        inner = node.unnest()
        if isinstance(inner, exp.Null):
            return "NULL"
        if isinstance(inner, exp.Literal):
            return literal_sql(writer(want)(read(inner.this, want)))
        if isinstance(inner, exp.Parameter):
            return self.compiler.slot(int(inner.name) - 1, want)
        raise SqlError(f"the type of {shown(node)} is not known")

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
        """Convert SQL of one type to another."""
        if have == want or (have, want) in _ALIKE:
            return sql
        template = _CAST_SQL.get((have, want))
        if template is not None:
            return template.format(sql)
        run = converter(have, want)
        return self.compiler.call(scalar(f"cast({have}) {want}", (have,), want, Native(run)), [sql])

    def fit_sql(self, sql: str, kind: str, limits: Type, column: str = "") -> str:
        """Apply the limits of a type. A cast truncates a text; a column refuses a long one."""
        if limits.length is not None and kind == "text" and not column:
            return f"substr({sql}, 1, {limits.length})"
        if not has_limits(limits):
            return sql

        def fit(stored: Any) -> Any:
            return fit_limits(stored, limits, column)

        form = "bytea" if kind == "float4[]" else "text"  # as it is stored
        key = f"kept({limits.length},{limits.precision},{limits.scale},{limits.dimension},{column})"
        return self.compiler.call(scalar(key, (form,), form, Native(fit)), [sql])

    def assign_sql(self, node: exp.Expression, kind: str, limits: Type, column: str) -> str:
        """Compile a value for a column; check constants now."""
        inner = node.unnest()
        if isinstance(inner, exp.Parameter) and type_of(inner) == kind:
            return self.compiler.slot(int(inner.name) - 1, kind, limits, column)
        if isinstance(inner, exp.Literal) and not isinstance(node, exp.Neg):
            with named_column(column):
                have = type_of(inner)
                value = converter(have, kind)(read(inner.this, have))
            return literal_sql(fit_limits(writer(kind)(value), limits, column))
        return self.fit_sql(self.sql_as(node, kind), kind, limits, column)

    # -- values ---------------------------------------------------------------------------------------------

    def _literal(self, node: exp.Literal) -> str:
        kind = type_of(node)
        return literal_sql(writer(kind)(read(node.this, kind)))

    def _column(self, node: exp.Column) -> str:
        name = node.name
        if "output" in node.meta:
            return f"o{node.meta['output'] + 1}"
        return self.compiler.column(node.table, ROW if name == ROW else name)

    def _cast(self, node: exp.Cast) -> str:
        kind = type_of(node)
        inner = node.this
        if isinstance(inner, exp.Array) and type_of(inner) == kind:
            return self.sql(inner)
        return self.fit_sql(self.sql_as(inner, kind), kind, node.meta["limits"])

    def _array(self, node: exp.Array) -> str:
        """Compile an array as one call, or as calls that join the arrays of others."""
        kind = type_of(node)
        name, takes, run = "array", element(kind), _BUILD
        parts = [self.sql_as(item, takes) for item in node.expressions]
        while name == "array" or len(parts) > 1:
            pieces = [parts[at : at + MAX_ARGUMENTS] for at in range(0, len(parts) or 1, MAX_ARGUMENTS)]
            calls = [scalar(f"{name}({len(piece)})", (takes,) * len(piece), kind, run) for piece in pieces]
            parts = [self.compiler.call(call, piece) for call, piece in zip(calls, pieces, strict=True)]
            name, takes, run = "joined", kind, _JOIN
        return parts[0]

    def _bracket(self, node: exp.Bracket) -> str:
        kind = type_of(node.this)
        udf = scalar("subscript", (kind, "int8"), element(kind))
        return self.compiler.call(udf, [self.sql(node.this), self.sql_as(node.expressions[0], "int8")])

    # -- operators ------------------------------------------------------------------------------------------

    def _operator(self, node: exp.Expression) -> str:
        call: FunctionCall = node.meta["call"]
        if call.key in functions.TEXT_JOINS:
            return f"({self.sql_as(node.this, 'text')} || {self.sql_as(node.expression, 'text')})"
        return self._call_sql(call, [node.this, node.expression])

    def _call_sql(self, call: FunctionCall, arguments: list[exp.Expression]) -> str:
        items = [self.sql_as(argument, want) for argument, want in zip(arguments, call.takes, strict=True)]
        template = _CALL_SQL.get(call.key)
        if template is not None:
            return template.format(*items)
        # Vectors in stored form, because converting them to lists would take most of the time.
        takes = ("bytea", "bytea") if call.key == "<->(float4[], float4[])" else call.takes
        return self.compiler.call(scalar(call.key, takes, call.gives), items)

    def _unary(self, node: exp.Expression) -> str:
        call: FunctionCall = node.meta["call"]
        if isinstance(node.this, exp.Literal) and type_of(node) in INTEGERS:
            return f"({literal_sql(-int(node.this.this))})"
        udf = scalar(f"negative({call.takes[0]})", call.takes, call.gives)
        return self.compiler.call(udf, [self.sql_as(node.this, call.takes[0])])

    def _extract(self, node: exp.Extract) -> str:
        kind = type_of(node.expression)
        udf = scalar(f"extract({kind})", ("text", kind), "numeric")
        return self.compiler.call(udf, [text_sql(node.this.name.lower()), self.sql(node.expression)])

    # -- conditions -----------------------------------------------------------------------------------------

    def _comparison(self, node: exp.Expression, op: str) -> str:
        if isinstance(node.expression, (exp.Any, exp.All)):
            return self._any_all(node, node.expression, "IN" if op == "=" else "NOT IN")
        kind = node.meta["operand"]
        other = self.sql_as(node.expression, kind)
        return f"({self.collate(self.sql_as(node.this, kind), kind, other)} {op} {other})"

    def _any_all(self, node: exp.Expression, other: exp.Any | exp.All, word: str) -> str:
        """Compile `x = ANY(…)` as IN and `x <> ALL(…)` as NOT IN."""
        kind = node.meta["operand"]
        inner = other.this.unnest() if not isinstance(other.this, exp.Subquery) else other.this
        if isinstance(inner, exp.Query):
            assert isinstance(inner, exp.Expression)
            return f"({self.compare(node.this, kind)} {word} ({self.compiler.query(inner, [kind])}))"
        value, floats = "rmem_bytes(value)" if kind == "bytea" else "value", kind in ("float4", "float8")
        items = self.convert(self.sql(other.this), type_of(other), "float8[]" if floats else f"{kind}[]")
        found = f"{self.compare(node.this, kind)} {word} (SELECT {value} FROM json_each({items}))"
        return f"(CASE WHEN {items} IS NOT NULL THEN {found} END)"

    def _connector(self, node: exp.Connector) -> str:
        word = " AND " if isinstance(node, exp.And) else " OR "
        parts = [self.sql_as(part, "bool") for part in node.flatten(unnest=False)]
        return self._balance(parts, word)

    def _balance(self, parts: list[str], word: str) -> str:
        """Compile a long chain as a shallow tree, because SQLite limits the depth of expressions."""
        if len(parts) <= 64:
            return "(" + word.join(parts) + ")"
        middle = len(parts) // 2
        return f"({self._balance(parts[:middle], word)}{word}{self._balance(parts[middle:], word)})"

    def _is(self, node: exp.Is) -> str:
        word = "IS NOT" if node.args.get("negate") else "IS"
        if isinstance(node.expression, exp.Boolean):
            return f"({self.sql_as(node.this, 'bool')} {word} {int(bool(node.expression.this))})"
        return f"({self.sql(node.this)} {word} NULL)"

    def _in(self, node: exp.In) -> str:
        query = node.args.get("query")
        kind = node.meta["operand"]
        if query is not None:
            return f"({self.compare(node.this, kind)} IN ({self.compiler.query(query, [kind])}))"
        items = ", ".join(self.sql_as(item, kind) for item in node.expressions)
        return f"({self.compare(node.this, kind)} IN ({items}))"

    def _between(self, node: exp.Between) -> str:
        kind = node.meta["operand"]
        low, high = self.sql_as(node.args["low"], kind), self.sql_as(node.args["high"], kind)
        return f"({self.compare(node.this, kind)} BETWEEN {low} AND {high})"

    def _like(self, node: exp.Expression) -> str:
        left, right = self.sql_as(node.this, "text"), self.sql_as(node.expression, "text")
        if isinstance(node, exp.ILike):
            lower = scalar("lower(text)", ("text",), "text")
            left, right = self.compiler.call(lower, [left]), self.compiler.call(lower, [right])
        text = f"({left} LIKE {right} ESCAPE '\\')"
        pattern = node.expression.unnest()
        if isinstance(pattern, exp.Parameter):
            short = int(pattern.name) not in self.compiler.long_patterns
        else:
            short = isinstance(pattern, exp.Literal) and is_short(pattern.this)
        if not short:
            refused = self.compiler.call(scalar("refused like", (), "bool"), [])
            text = f"(CASE WHEN length({left}) * length({right}) > {MAX_LIKE} THEN {refused} ELSE {text} END)"
        return f"(NOT {text})" if node.args.get("negate") else text

    def _case(self, node: exp.Case) -> str:
        kind = type_of(node)
        text = "CASE"
        for branch in node.args["ifs"]:
            if "operand" in branch.meta:
                wanted = branch.meta["operand"]
                condition = f"{self.compare(node.this, wanted)} = {self.sql_as(branch.this, wanted)}"
            else:
                condition = self.sql_as(branch.this, "bool")
            text += f" WHEN {condition} THEN {self.sql_as(branch.args['true'], kind)}"
        default = node.args.get("default")
        return f"({text} ELSE {self.sql_as(default, kind) if default is not None else 'NULL'} END)"

    # -- subqueries and functions ---------------------------------------------------------------------------

    def _function(self, node: exp.Anonymous) -> str:
        name = fold_name(node.this)
        if name == "rmem_score":
            return f"rmem_score({int(node.expressions[0].name)}, {self.sql(node.expressions[1])})"
        call: FunctionCall | None = node.meta.get("call")
        if call is None:
            raise SqlUnsupportedError(f"function {name}() is not supported here")
        if call.signature.name in functions.aggregates:
            return aggregate_sql(self, node, "", "")
        if name == "coalesce":
            items = [self.sql_as(argument, call.gives) for argument in node.expressions]
            return items[0] if len(items) == 1 else f"coalesce({', '.join(items)})"
        if name == "nullif":
            (left, right), kind = node.expressions, call.takes[0]
            same = f"{self.compare(left, kind)} = {self.sql_as(right, kind)}"
            return f"(CASE WHEN {same} THEN NULL ELSE {self.sql_as(left, call.gives)} END)"
        return self._call_sql(call, node.expressions)

    def _filter(self, node: exp.Filter) -> str:
        condition = f" FILTER (WHERE {self.sql_as(node.expression.this, 'bool')})"
        return aggregate_sql(self, node.this, condition, "")

    _BRANCHES: ClassVar[dict[type[exp.Expr], Callable[..., str]]] = {
        exp.Literal: _literal,
        exp.Parameter: lambda self, node: self.compiler.slot(int(node.name) - 1, type_of(node)),
        exp.Boolean: lambda self, node: str(int(bool(node.this))),
        exp.Null: lambda self, node: "NULL",
        exp.Column: _column,
        exp.Paren: lambda self, node: f"({self.sql(node.this)})",
        exp.Cast: _cast,
        exp.Array: _array,
        exp.Bracket: _bracket,
        Operator: _operator,
        exp.Neg: _unary,
        exp.And: _connector,
        exp.Or: _connector,
        exp.Not: lambda self, node: f"(NOT {self.sql_as(node.this, 'bool')})",
        exp.Is: _is,
        exp.In: _in,
        exp.Between: _between,
        exp.Like: _like,
        exp.ILike: _like,
        exp.Case: _case,
        exp.Extract: _extract,
        exp.AtTimeZone: lambda self, node: self._call_sql(node.meta["call"], [node.args["zone"], node.this]),
        exp.CurrentTimestamp: lambda self, node: "rmem_now()",
        exp.CurrentDate: lambda self, node: self.convert("rmem_now()", "timestamptz", "date"),
        exp.Subquery: lambda self, node: self.compiler.single(node),
        exp.Exists: lambda self, node: f"EXISTS ({self.compiler.query(node.this)})",
        exp.Anonymous: _function,
        exp.Filter: _filter,
        exp.Window: window_sql,
    }


_BUILD = Native(lambda *values: list(values), strict=False)
_JOIN = Native(lambda *arrays: list(chain.from_iterable(arrays)), strict=False)


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
    "now()": "rmem_now()",
    "+(date, int4)": "({0} + {1})",
    "+(int4, date)": "({0} + {1})",
    "-(date, int4)": "({0} - {1})",
    "-(date, date)": "({0} - {1})",
}
