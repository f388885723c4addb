"""Bound expressions as SQLite's SQL. Nothing a user wrote gets into it but numbers and quoted texts: columns,
tables and aliases have names of our own, functions are those of the registry."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp

from ...errors import SqlError, SqlUnsupportedError
from ..catalog import ROW, Type
from ..sql.dialect import Operator
from ..sql.functions import Call
from ..sql.reading import read
from ..sql.scope import folded, shown
from ..sql.types import INTEGERS, NUMBERS, UNKNOWN, element, spelled, type_of
from ..sql.writing import converter
from . import sqlite_arrays, sqlite_formats, sqlite_json, sqlite_numbers, sqlite_text, sqlite_times  # noqa: F401 - they register their functions
from .sqlite_aggregates import aggregate_sql
from .sqlite_calls import Native, natives, scalar
from .sqlite_quantified import quantified
from .sqlite_storage import collation, has_limits, kept, named_column, writer

if TYPE_CHECKING:
    from .sqlite_compile import Compiler

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
_WORDS: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.Pow: "^",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "#",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
    exp.DPipe: "||",
}


def text_sql(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def literal_sql(stored: Any) -> str:
    """A stored value written into a statement."""
    if stored is None:
        return "NULL"
    if isinstance(stored, bytes):
        return f"x'{stored.hex()}'"
    if isinstance(stored, str):
        return text_sql(stored)
    if isinstance(stored, float):
        return repr(stored).replace("inf", "9e999")
    return str(int(stored)) if stored != -(2**63) else "(-9223372036854775807 - 1)"


class ExpressionSql:
    """The part of a Compiler that writes expressions."""

    def __init__(self, compiler: Compiler) -> None:
        self.compiler = compiler

    def sql(self, node: exp.Expr | None) -> str:
        if not isinstance(node, exp.Expression):
            raise SqlError("an expression is missing")
        kind = type(node)
        if kind in _WORDS:
            return self._operator(node)
        if kind in _COMPARED:
            return self._comparison(node, _COMPARED[kind])
        branch = self._BRANCHES.get(kind)
        if branch is None:
            raise SqlUnsupportedError(f"{kind.__name__} is not supported: {shown(node)}")
        return branch(self, node)

    def typed(self, node: exp.Expr | None, want: str) -> str:
        """An expression as a value of a type."""
        if not isinstance(node, exp.Expression):
            raise SqlError("an expression is missing")
        have = type_of(node)
        if have == UNKNOWN:
            return self._constant(node, want)
        return self.converted(self.sql(node), have, want)

    def compared(self, node: exp.Expr | None, want: str) -> str:
        """An expression as it is compared, ordered and grouped."""
        return self.collated(self.typed(node, want), want)

    @staticmethod
    def collated(sql: str, kind: str, other: str = "") -> str:
        """SQL with the collation of its type. A collation inside of it would count too, unless another is said."""
        order = collation(kind)
        if not order and kind in ("text", "uuid") and (" COLLATE " in sql or " COLLATE " in other):
            order = "BINARY"
        return f"{sql} COLLATE {order}" if order else sql

    def key(self, node: exp.Expression) -> str:
        return self.compared(node, type_of(node))

    def _constant(self, node: exp.Expression, want: str) -> str:
        inner = node.unnest()
        if isinstance(inner, exp.Null):
            return "NULL"
        if isinstance(inner, exp.Literal):
            return literal_sql(writer(want)(read(inner.this, want)))
        if isinstance(inner, exp.Parameter):
            return self.compiler.slot(int(inner.name) - 1, want)
        raise SqlError(f"the type of {shown(node)} is not known")

    # -- casts ----------------------------------------------------------------------------------------------

    def converted(self, sql: str, have: str, want: str) -> str:
        """SQL of one type as SQL of another."""
        if have == want or (have, want) in _ALIKE:
            return sql
        template = _CAST_SQL.get((have, want))
        if template is not None:
            return template.format(sql)
        run = converter(have, want)
        return self.compiler.call(scalar(f"cast({have}) {want}", (have,), want, Native(run)), [sql])

    def limited(self, sql: str, kind: str, limits: Type, column: str = "") -> str:
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

    def assigned(self, node: exp.Expression, kind: str, limits: Type, column: str) -> str:
        """A value that is written into a column. What is known now is checked now."""
        inner = node.unnest()
        if isinstance(inner, exp.Parameter) and type_of(inner) == kind:
            return self.compiler.slot(int(inner.name) - 1, kind, limits, column)
        if isinstance(inner, exp.Literal) and not isinstance(node, exp.Neg):
            with named_column(column):
                have = type_of(inner)
                value = converter(have, kind)(read(inner.this, have))
            return literal_sql(kept(writer(kind)(value), limits, column))
        return self.limited(self.typed(node, kind), kind, limits, column)

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
        return self.limited(self.typed(inner, kind), kind, node.meta["limits"])

    def _array(self, node: exp.Array) -> str:
        kind = type_of(node)
        inner = element(kind)
        items = [self.typed(item, inner) for item in node.expressions]

        def build(*values: Any) -> list[Any]:
            return list(values)

        udf = scalar(f"array({len(items)})", (inner,) * len(items), kind, Native(build, strict=False))
        return self.compiler.call(udf, items)

    def _bracket(self, node: exp.Bracket) -> str:
        kind = type_of(node.this)
        subscript = node.expressions[0]
        if kind == "jsonb":
            want = type_of(subscript)
            key = f"->(jsonb, {want})"
            return self.compiler.call(scalar(key, ("jsonb", want), "jsonb"), [self.sql(node.this), self.sql(subscript)])
        if isinstance(subscript, exp.Slice):
            ends = [
                "NULL" if end is None else self.typed(end, "int8") for end in (subscript.this, subscript.expression)
            ]
            run = natives["slice"]
            return self.compiler.call(scalar("slice", (kind, "int8", "int8"), kind, run), [self.sql(node.this), *ends])
        run = natives["subscript"]
        udf = scalar("subscript", (kind, "int8"), element(kind), run)
        return self.compiler.call(udf, [self.sql(node.this), self.typed(subscript, "int8")])

    # -- operators ------------------------------------------------------------------------------------------

    def _operator(self, node: exp.Expression) -> str:
        call: Call = node.meta["call"]
        if call.key in _JOINED:
            parts, _ = _chain(node, lambda inner: inner.meta["call"].key in _JOINED)
            return "(" + " || ".join(self.typed(part, "text") for part in parts) + ")"
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
        return self.compiler.call(udf, [self.typed(part, kind) for part in parts])

    def _called(self, call: Call, arguments: list[exp.Expression]) -> str:
        items = [self.typed(argument, want) for argument, want in zip(arguments, call.takes, strict=True)]
        template = _CALL_SQL.get(call.key)
        if template is not None:
            return template.format(*items)
        return self.compiler.call(scalar(call.key, call.takes, call.gives), items)

    def _unary(self, node: exp.Expression) -> str:
        call: Call = node.meta["call"]
        if isinstance(node.this, exp.Literal) and type_of(node) in INTEGERS and isinstance(node, exp.Neg):
            return f"({literal_sql(-int(node.this.this))})"
        symbol = "-" if isinstance(node, exp.Neg) else "~"
        if symbol == "~":
            return f"(~{self.typed(node.this, call.takes[0])})"
        udf = scalar(f"negative({call.takes[0]})", call.takes, call.gives)
        return self.compiler.call(udf, [self.typed(node.this, call.takes[0])])

    def _comparison(self, node: exp.Expression, op: str) -> str:
        if isinstance(node.expression, (exp.Any, exp.All)):
            return quantified(self, node, op)
        if "operands" in node.meta:
            return self._rows(node, op)
        kind = node.meta["operand"]
        other = self.typed(node.expression, kind)
        return f"({self.collated(self.typed(node.this, kind), kind, other)} {op} {other})"

    def _rows(self, node: exp.Expression, op: str) -> str:
        kinds = node.meta["operands"]
        left, right = node.this.unnest().expressions, node.expression.unnest().expressions
        pairs = [(self.compared(a, kind), self.typed(b, kind)) for a, b, kind in zip(left, right, kinds, strict=True)]
        if op in ("=", "IS"):
            return "(" + " AND ".join(f"({a} {op} {b})" for a, b in pairs) + ")"
        if op in ("<>", "IS NOT"):
            return "(" + " OR ".join(f"({a} {op} {b})" for a, b in pairs) + ")"
        strict = op.rstrip("=")
        text = f"({pairs[-1][0]} {op} {pairs[-1][1]})"
        for a, b in reversed(pairs[:-1]):
            text = f"(({a} {strict} {b}) OR (({a} = {b}) AND {text}))"
        return text

    def _connector(self, node: exp.Connector) -> str:
        word = " AND " if isinstance(node, exp.And) else " OR "
        parts = [self.typed(part, "bool") for part in node.flatten(unnest=False)]
        return self._balanced(parts, word)

    def _balanced(self, parts: list[str], word: str) -> str:
        """A long chain as a shallow tree, because SQLite limits the depth of expressions."""
        if len(parts) <= 64:
            return "(" + word.join(parts) + ")"
        middle = len(parts) // 2
        return f"({self._balanced(parts[:middle], word)}{word}{self._balanced(parts[middle:], word)})"

    def _not(self, node: exp.Not) -> str:
        return f"(NOT {self.typed(node.this, 'bool')})"

    def _is(self, node: exp.Is) -> str:
        word = "IS NOT" if node.args.get("negate") else "IS"
        if isinstance(node.expression, exp.Boolean):
            return f"({self.typed(node.this, 'bool')} {word} {int(bool(node.expression.this))})"
        return f"({self.sql(node.this)} {word} NULL)"

    def _in(self, node: exp.In) -> str:
        query = node.args.get("query")
        if query is not None and "operands" in node.meta:
            kinds = node.meta["operands"]
            row = ", ".join(
                self.compared(part, kind) for part, kind in zip(node.this.unnest().expressions, kinds, strict=True)
            )
            return f"(({row}) IN ({self.compiler.query(query, kinds)}))"
        if query is not None:
            kind = node.meta["operand"]
            return f"({self.compared(node.this, kind)} IN ({self.compiler.query(query, [kind])}))"
        if "operands" in node.meta:
            rows = []
            for item in node.expressions:
                pair = exp.EQ(this=node.this.copy(), expression=item.copy())
                pair.meta["operands"] = node.meta["operands"]
                rows.append(self._rows(pair, "="))
            return "(" + " OR ".join(rows) + ")"
        kind = node.meta["operand"]
        items = ", ".join(self.typed(item, kind) for item in node.expressions)
        if collation(kind):
            parts = [f"({self.compared(node.this, kind)} = {self.typed(item, kind)})" for item in node.expressions]
            return self._balanced(parts, " OR ")
        return f"({self.typed(node.this, kind)} IN ({items}))"

    def _between(self, node: exp.Between) -> str:
        kind = node.meta["operand"]
        value = self.compared(node.this, kind)
        low, high = self.typed(node.args["low"], kind), self.typed(node.args["high"], kind)
        text = f"({value} >= {low} AND {value} <= {high})"
        if node.args.get("symmetric"):
            text = f"({text} OR ({value} >= {high} AND {value} <= {low}))"
        return text

    def _like(self, node: exp.Expression, escape: str = "\\") -> str:
        folds = isinstance(node, exp.ILike)
        pattern = node.expression
        if isinstance(pattern, (exp.Any, exp.All)):
            return quantified(self, node, "ilike" if folds else "like")
        left, right = self.typed(node.this, "text"), self.typed(pattern, "text")
        if folds or len(escape) != 1:
            udf = scalar(f"{'ilike' if folds else 'like'}(text, text, text)", ("text",) * 3, "bool")
            text = self.compiler.call(udf, [left, right, text_sql(escape)])
        else:
            text = f"({left} LIKE {right} ESCAPE {text_sql(escape)})"
        return f"(NOT {text})" if node.args.get("negate") else text

    def _escape(self, node: exp.Escape) -> str:
        inner = node.expression.unnest()
        if not isinstance(inner, exp.Literal):
            raise SqlUnsupportedError(f"ESCAPE takes a constant: {shown(node)}")
        if len(inner.this) > 1:
            raise SqlError("invalid escape string: it must be empty or one character")
        return self._like(node.this, inner.this)

    def _similar(self, node: exp.SimilarTo) -> str:
        udf = scalar("similar(text, text)", ("text", "text"), "bool")
        return self.compiler.call(udf, [self.typed(node.this, "text"), self.typed(node.expression, "text")])

    def _case(self, node: exp.Case) -> str:
        kind = type_of(node)
        text = "CASE"
        for branch in node.args["ifs"]:
            if "operand" in branch.meta:
                wanted = branch.meta["operand"]
                condition = f"{self.compared(node.this, wanted)} = {self.typed(branch.this, wanted)}"
            else:
                condition = self.typed(branch.this, "bool")
            text += f" WHEN {condition} THEN {self.typed(branch.args['true'], kind)}"
        default = node.args.get("default")
        return f"({text} ELSE {self.typed(default, kind) if default is not None else 'NULL'} END)"

    def _extract(self, node: exp.Extract) -> str:
        kind = type_of(node.expression)
        udf = scalar(f"extract({kind})", ("text", kind), "numeric")
        return self.compiler.call(udf, [text_sql(node.this.name.lower()), self.sql(node.expression)])

    def _at_time_zone(self, node: exp.AtTimeZone) -> str:
        return self._called(node.meta["call"], [node.args["zone"], node.this])

    def _current(self, node: exp.Expression) -> str:
        return self.converted(self.compiler.now(), "timestamptz", type_of(node))

    # -- subqueries and functions ---------------------------------------------------------------------------

    def _subquery(self, node: exp.Subquery) -> str:
        return self.compiler.single(node)

    def _exists(self, node: exp.Exists) -> str:
        return f"EXISTS ({self.compiler.query(node.this)})"

    def _function(self, node: exp.Anonymous) -> str:
        name = folded(node.this)
        if name == "rmem_score":
            return self.compiler.score(int(node.expressions[0].name), self.sql(node.expressions[1]))
        if name == "grouping":
            return "0"
        if name == "array":
            return self.compiler.items(node.expressions[0], element(type_of(node)))
        call: Call | None = node.meta.get("call")
        if call is None:
            raise SqlUnsupportedError(f"function {name}() is not supported here")
        special = _SPECIAL.get(name)
        if special is not None:
            return special(self, node, call)
        if call.signature.name in self.compiler.aggregate_names:
            return aggregate_sql(self, node, "", "")
        return self._called(call, node.expressions)

    def _filter(self, node: exp.Filter) -> str:
        condition = f" FILTER (WHERE {self.typed(node.expression.this, 'bool')})"
        target = node.this.this if isinstance(node.this, exp.WithinGroup) else node.this
        return aggregate_sql(self, target, condition, "")

    def _within_group(self, node: exp.WithinGroup) -> str:
        return aggregate_sql(self, node.this, "", "")

    def _window(self, node: exp.Window) -> str:
        return self.compiler.window(node)

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
        exp.BitwiseNot: _unary,
        exp.And: _connector,
        exp.Or: _connector,
        exp.Not: _not,
        exp.Is: _is,
        exp.In: _in,
        exp.Between: _between,
        exp.Like: _like,
        exp.ILike: _like,
        exp.Escape: _escape,
        exp.SimilarTo: _similar,
        exp.Case: _case,
        exp.Extract: _extract,
        exp.AtTimeZone: _at_time_zone,
        exp.CurrentTimestamp: _current,
        exp.CurrentDate: _current,
        exp.Localtimestamp: _current,
        exp.Localtime: _current,
        exp.Collate: lambda self, node: self.sql(node.this),
        exp.Subquery: _subquery,
        exp.Exists: _exists,
        exp.Anonymous: _function,
        exp.Filter: _filter,
        exp.WithinGroup: _within_group,
        exp.Window: _window,
    }


_JOINED = ("||(text, text)", "||(text, anynonarray)", "||(anynonarray, text)")
_FOLDED = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_LONGEST = 100  # arguments that a function of SQLite may have, and some left over


def _chain(node: exp.Expression, same: Callable[[exp.Expression], bool]) -> tuple[list[exp.Expression], list[str]]:
    """`a + b - c` as [a, b, c] and ["+", "-"]: the operators of one kind that lean to the left."""
    parts = [node.expression]
    signs = [_WORDS[type(node)]]
    left = node.this
    while len(parts) < _LONGEST:
        inner = left.unnest()
        if type(inner) not in _WORDS or not same(inner):
            break
        parts.append(inner.expression)
        signs.append(_WORDS[type(inner)])
        left = inner.this
    parts.append(left)
    return parts[::-1], signs[::-1]


def _coalesce(self: ExpressionSql, node: exp.Anonymous, call: Call) -> str:
    items = [self.typed(argument, call.gives) for argument in node.expressions]
    return items[0] if len(items) == 1 else f"coalesce({', '.join(items)})"


def _nullif(self: ExpressionSql, node: exp.Anonymous, call: Call) -> str:
    kind = call.takes[0]
    left, right = node.expressions
    same = f"{self.compared(left, kind)} = {self.typed(right, kind)}"
    return f"(CASE WHEN {same} THEN NULL ELSE {self.typed(left, call.gives)} END)"


def _typeof(self: ExpressionSql, node: exp.Anonymous, call: Call) -> str:
    return text_sql(spelled(type_of(node.expressions[0])))


def _now(self: ExpressionSql, node: exp.Anonymous, call: Call) -> str:
    return self.compiler.now()


_SPECIAL: dict[str, Callable[[ExpressionSql, exp.Anonymous, Call], str]] = {
    "coalesce": _coalesce,
    "nullif": _nullif,
    "pg_typeof": _typeof,
    "now": _now,
    "transaction_timestamp": _now,
    "statement_timestamp": _now,
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
    "char_length(text)": "length({0})",
    "character_length(text)": "length({0})",
    "+(date, int4)": "({0} + {1})",
    "+(int4, date)": "({0} + {1})",
    "-(date, int4)": "({0} - {1})",
    "-(date, date)": "({0} - {1})",
    **{f"&({kind}, {kind})": "({0} & {1})" for kind in INTEGERS},
    **{f"|({kind}, {kind})": "({0} | {1})" for kind in INTEGERS},
}
