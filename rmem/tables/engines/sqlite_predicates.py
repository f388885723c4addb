"""Compile conditions to SQLite SQL: comparisons, IN, BETWEEN, LIKE, AND and OR; and CASE."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from ...errors import SqlError, SqlUnsupportedError
from ..sql.literals import read
from ..sql.scope import shown
from ..sql.types import UNKNOWN, element, type_of
from .sqlite_calls import Native, scalar
from .sqlite_storage import collation, literal_sql, sort_key, text_sql, writer

if TYPE_CHECKING:
    from .sqlite_compile import Compiler


class PredicateSql(ABC):
    """The part of ExpressionSql that writes conditions, and what all of it stands on."""

    def __init__(self, compiler: Compiler) -> None:
        self.compiler = compiler

    @abstractmethod
    def sql(self, node: exp.Expr | None) -> str:
        """An expression as SQL, as a value of its own type."""

    @abstractmethod
    def convert(self, sql: str, have: str, want: str) -> str:
        """SQL of one type as SQL of another."""

    def sql_as(self, node: exp.Expr | None, want: str) -> str:
        """An expression as a value of a type."""
        if not isinstance(node, exp.Expression):
            raise SqlError("an expression is missing")
        have = type_of(node)
        if have == UNKNOWN:
            return self._constant(node, want)
        return self.convert(self.sql(node), have, want)

    def compare(self, node: exp.Expr | None, want: str) -> str:
        """An expression as it is compared, ordered and grouped."""
        return self.collate(self.sql_as(node, want), want)

    @staticmethod
    def collate(sql: str, kind: str, other: str = "") -> str:
        """SQL with the collation of its type. A collation inside of it would count too, unless another is said."""
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

    def _comparison(self, node: exp.Expression, op: str) -> str:
        if isinstance(node.expression, (exp.Any, exp.All)):
            return self._any_all(node, node.expression, "IN" if op == "=" else "NOT IN")
        if "operands" in node.meta:
            return self._rows(node, op)
        kind = node.meta["operand"]
        other = self.sql_as(node.expression, kind)
        return f"({self.collate(self.sql_as(node.this, kind), kind, other)} {op} {other})"

    def _any_all(self, node: exp.Expression, other: exp.Any | exp.All, word: str) -> str:
        """`x = ANY(…)` is IN, and `x <> ALL(…)` is NOT IN."""
        kind = node.meta["operand"]
        inner = other.this.unnest() if not isinstance(other.this, exp.Subquery) else other.this
        if isinstance(inner, exp.Query):
            assert isinstance(inner, exp.Expression)
            return f"({self.compare(node.this, kind)} {word} ({self.compiler.query(inner, [kind])}))"
        array, items = type_of(other), self.sql(other.this)
        if array == f"{kind}[]" and not collation(kind) and kind not in ("bytea", "float4", "float8"):
            # The elements lie in JSON as values of a column lie in SQLite.
            found = f"{self.sql_as(node.this, kind)} {word} (SELECT value FROM json_each({items}))"
            return f"(CASE WHEN {items} IS NOT NULL THEN {found} END)"
        run = partial(_is_element, sort_key(element(array)))
        udf = scalar("= ANY", (kind, array), "bool", Native(run, strict=False))
        text = self.compiler.call(udf, [self.sql_as(node.this, kind), items])
        return text if word == "IN" else f"(NOT {text})"

    def _rows(self, node: exp.Expression, op: str) -> str:
        kinds = node.meta["operands"]
        left, right = node.this.unnest().expressions, node.expression.unnest().expressions
        pairs = [(self.compare(a, kind), self.sql_as(b, kind)) for a, b, kind in zip(left, right, kinds, strict=True)]
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
        parts = [self.sql_as(part, "bool") for part in node.flatten(unnest=False)]
        return self._balanced(parts, word)

    def _balanced(self, parts: list[str], word: str) -> str:
        """A long chain as a shallow tree, because SQLite limits the depth of expressions."""
        if len(parts) <= 64:
            return "(" + word.join(parts) + ")"
        middle = len(parts) // 2
        return f"({self._balanced(parts[:middle], word)}{word}{self._balanced(parts[middle:], word)})"

    def _not(self, node: exp.Not) -> str:
        return f"(NOT {self.sql_as(node.this, 'bool')})"

    def _is(self, node: exp.Is) -> str:
        word = "IS NOT" if node.args.get("negate") else "IS"
        if isinstance(node.expression, exp.Boolean):
            return f"({self.sql_as(node.this, 'bool')} {word} {int(bool(node.expression.this))})"
        return f"({self.sql(node.this)} {word} NULL)"

    def _in(self, node: exp.In) -> str:
        query = node.args.get("query")
        if query is not None and "operands" in node.meta:
            kinds = node.meta["operands"]
            row = ", ".join(
                self.compare(part, kind) for part, kind in zip(node.this.unnest().expressions, kinds, strict=True)
            )
            return f"(({row}) IN ({self.compiler.query(query, kinds)}))"
        if query is not None:
            kind = node.meta["operand"]
            return f"({self.compare(node.this, kind)} IN ({self.compiler.query(query, [kind])}))"
        if "operands" in node.meta:
            rows = []
            for item in node.expressions:
                pair = exp.EQ(this=node.this.copy(), expression=item.copy())
                pair.meta["operands"] = node.meta["operands"]
                rows.append(self._rows(pair, "="))
            return "(" + " OR ".join(rows) + ")"
        kind = node.meta["operand"]
        items = ", ".join(self.sql_as(item, kind) for item in node.expressions)
        if collation(kind):
            parts = [f"({self.compare(node.this, kind)} = {self.sql_as(item, kind)})" for item in node.expressions]
            return self._balanced(parts, " OR ")
        return f"({self.sql_as(node.this, kind)} IN ({items}))"

    def _between(self, node: exp.Between) -> str:
        kind = node.meta["operand"]
        value = self.compare(node.this, kind)
        low, high = self.sql_as(node.args["low"], kind), self.sql_as(node.args["high"], kind)
        return f"({value} >= {low} AND {value} <= {high})"

    def _like(self, node: exp.Expression, escape: str = "\\") -> str:
        folds = isinstance(node, exp.ILike)
        left, right = self.sql_as(node.this, "text"), self.sql_as(node.expression, "text")
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


def _is_element(key: Callable[[Any], Any], value: Any, items: list[Any] | None) -> bool | None:
    """Whether an array holds a value; NULL where that is not known."""
    if items is None or (value is None and items):
        return None
    if any(item is not None and key(item) == key(value) for item in items):
        return True
    return None if None in items else False
