"""Bind conditions: comparisons, IN, BETWEEN, LIKE, AND and OR; and CASE."""

from __future__ import annotations

from sqlglot import exp

from ...errors import SqlError, SqlUnsupportedError
from .expression_base import ExpressionBase
from .scope import Scope, only, refused, shown
from .types import NUMBERS, UNKNOWN, common, element, is_array, long_name

NOT_COMPARABLE = ("record", "hybrid")


class Predicates(ExpressionBase):
    def _comparison(self, node: exp.Expression, op: str, scope: Scope) -> str:
        other = node.expression
        if isinstance(other, (exp.Any, exp.All)):
            node.meta["operand"] = self._quantified(node, other, scope, op)
            return "bool"
        left, right = node.this.unnest(), other.unnest()
        if isinstance(left, exp.Tuple) or isinstance(right, exp.Tuple):
            self._rows(node, left, right, op, scope)
            return "bool"
        node.meta["operand"] = self.bind_pair(node.this, other, op, scope)
        return "bool"

    def _rows(self, node: exp.Expression, left: exp.Expr, right: exp.Expr, op: str, scope: Scope) -> None:
        if isinstance(right, exp.Query) and isinstance(left, exp.Tuple):
            raise SqlUnsupportedError(f"comparing a row with a subquery is not supported: {shown(node)}")
        if not (isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple)):
            raise SqlError(f"a row can only be compared with a row: {shown(node)}")
        if len(left.expressions) != len(right.expressions):
            raise SqlError("unequal number of entries in row expressions")
        node.meta["operands"] = [
            self.bind_pair(a, b, op, scope) for a, b in zip(left.expressions, right.expressions, strict=True)
        ]
        left.meta["type"] = right.meta["type"] = "record"

    def bind_pair(self, left: exp.Expression, right: exp.Expression, op: str, scope: Scope) -> str:
        """The type in which two expressions are compared."""
        kinds = [self.bind(left, scope), self.bind(right, scope)]
        return self._agreed(left, right, kinds, op)

    def _agreed(self, left: exp.Expression, right: exp.Expression, kinds: list[str], op: str) -> str:
        message = f"operator does not exist: {long_name(kinds[0])} {op} {long_name(kinds[1])}"
        if any(kind in NOT_COMPARABLE for kind in kinds):
            raise SqlError(message)
        if "float4" in kinds and kinds[0] != kinds[1] and kinds[0] in NUMBERS and kinds[1] in NUMBERS:
            kinds = ["float8", "float8"]
        try:
            kind = common(kinds, "")
        except SqlError:
            if is_array(kinds[0]) and is_array(kinds[1]):
                kind = common([element(kinds[0]), element(kinds[1])], "comparison") + "[]"
            else:
                raise SqlError(message) from None
        self.adapt(left, kind)
        self.adapt(right, kind)
        return kind

    def _quantified(self, node: exp.Expression, other: exp.Any | exp.All, scope: Scope, op: str) -> str:
        """`x = ANY(array)` and `x <> ALL(SELECT …)`."""
        if (op, type(other)) not in (("=", exp.Any), ("<>", exp.All)):
            raise refused(f"{op} {type(other).__name__.upper()}", "There are = ANY(…) and <> ALL(…)")
        left = self.bind(node.this, scope)
        inner = other.this.unnest() if not isinstance(other.this, exp.Subquery) else other.this
        if isinstance(inner, exp.Query):
            columns = self.binder.query(inner, scope)
            if len(columns) != 1:
                raise SqlError("subquery has too many columns")
            kind = self._agreed(node.this, exp.Null(), [left, columns[0][1]], op)
            inner.meta["single"] = columns[0][1]
            return kind
        array = self.bind(other.this, scope, f"{'text' if left == UNKNOWN else left}[]")
        if not is_array(array):
            raise SqlError("op ANY/ALL (array) requires array on right side")
        other.meta["type"] = array
        return self._agreed(node.this, exp.Null(), [left, element(array)], op)

    def _not(self, node: exp.Not, scope: Scope) -> str:
        self.boolean(node.this, scope, "NOT")
        return "bool"

    def _connector(self, node: exp.Connector, scope: Scope) -> str:
        word = "AND" if isinstance(node, exp.And) else "OR"
        parts = list(node.flatten(unnest=False))
        for part in parts:
            self.boolean(part, scope, word)
        return "bool"

    def _is(self, node: exp.Is, scope: Scope) -> str:
        only(node, "this", "expression", "negate")
        if isinstance(node.expression, exp.Boolean):
            self.boolean(node.this, scope, "IS TRUE")
        elif isinstance(node.expression, exp.Null):
            if self.bind_typed(node.this, scope) == "record":
                raise SqlUnsupportedError(f"IS NULL of a row is not supported: {shown(node)}")
        else:
            raise SqlUnsupportedError(f"{shown(node)} is not supported")
        return "bool"

    def _in(self, node: exp.In, scope: Scope) -> str:
        only(node, "this", "expressions", "query")
        query = node.args.get("query")
        left = node.this.unnest()
        if query is not None:
            kinds = [self.bind_typed(part, scope) for part in left.expressions] if isinstance(left, exp.Tuple) else None
            columns = self.binder.query(query, scope)
            if len(columns) != (len(kinds) if kinds else 1):
                raise SqlError("subquery has too many columns" if len(columns) > 1 else "subquery has too few columns")
            if kinds is None:
                node.meta["operand"] = self._agreed(
                    node.this, exp.Null(), [self.bind(node.this, scope), columns[0][1]], "="
                )
            else:
                left.meta["type"] = "record"
                node.meta["operands"] = [common([a, b], "IN") for a, (_, b) in zip(kinds, columns, strict=True)]
            node.meta["columns"] = columns
            return "bool"
        if isinstance(left, exp.Tuple):
            for item in node.expressions:
                row = item.unnest()
                if not isinstance(row, exp.Tuple):
                    raise SqlError(f"a row can only be compared with a row: {shown(node)}")
                self._rows(node, left, row, "=", scope)
            return "bool"
        kinds = [self.bind(node.this, scope), *(self.bind(item, scope) for item in node.expressions)]
        known = [kind for kind in kinds if kind != UNKNOWN] or ["text"]
        kind = known[0]
        for other in known[1:]:
            kind = self._agreed(node.this, exp.Null(), [kind, other], "=")
        for item in (node.this, *node.expressions):
            self.adapt(item, kind)
        node.meta["operand"] = kind
        return "bool"

    def _between(self, node: exp.Between, scope: Scope) -> str:
        only(node, "this", "low", "high")
        parts = [node.this, node.args["low"], node.args["high"]]
        kinds = [self.bind(part, scope) for part in parts]
        known = [kind for kind in kinds if kind != UNKNOWN] or ["text"]
        kind = known[0]
        for other in known[1:]:
            kind = self._agreed(exp.Null(), exp.Null(), [kind, other], ">=")
        for part in parts:
            self.adapt(part, kind)
        node.meta["operand"] = kind
        return "bool"

    def _like(self, node: exp.Like | exp.ILike, scope: Scope) -> str:
        only(node, "this", "expression", "negate")
        word = "LIKE" if isinstance(node, exp.Like) else "ILIKE"
        left = self.bind(node.this, scope, "text")
        pattern = node.expression
        if isinstance(pattern, (exp.Any, exp.All)):
            raise refused(f"{word} {type(pattern).__name__.upper()}")
        right = self.bind(pattern, scope, "text")
        if left != "text" or right != "text":
            raise SqlError(f"operator does not exist: {long_name(left)} {word} {long_name(right)}")
        return "bool"

    def _escape(self, node: exp.Escape, scope: Scope) -> str:
        found = self.bind(node.this, scope)
        if not isinstance(node.this, (exp.Like, exp.ILike)) or self.bind(node.expression, scope, "text") != "text":
            raise SqlUnsupportedError(f"ESCAPE is supported after LIKE and ILIKE: {shown(node)}")
        return found

    def _case(self, node: exp.Case, scope: Scope) -> str:
        subject = node.args.get("this")
        branches = [*node.args["ifs"]]
        for branch in branches:
            if subject is None:
                self.boolean(branch.this, scope, "CASE/WHEN")
            else:
                branch.meta["operand"] = self.bind_pair(subject, branch.this, "=", scope)
        results = [branch.args["true"] for branch in branches]
        if node.args.get("default") is not None:
            results.append(node.args["default"])
        kind = common([self.bind(result, scope) for result in results], "CASE")
        for result in results:
            self.adapt(result, kind)
        return kind
