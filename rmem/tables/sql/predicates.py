"""Bind conditions: comparisons, IN, BETWEEN, LIKE, AND, OR, and CASE. Untyped operands take the type their place
expects."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from sqlglot import exp

from ...errors import SqlError, SqlUnsupportedError
from .casts import text_of
from .expression_types import INTEGERS, NUMBERS, UNKNOWN, common, element, is_array, long_name, type_of
from .literals import read
from .parameters import lone_type
from .scope import NameScope, only, shown, unsupported

if TYPE_CHECKING:
    from .bind import Binder

NOT_COMPARABLE = ("record", "hybrid")


class Predicates(ABC):
    """The part of Expressions that binds conditions, and its base."""

    def __init__(self, binder: Binder) -> None:
        self.binder = binder

    @abstractmethod
    def bind(self, node: exp.Expr | None, scope: NameScope, want: str | None = None) -> str:
        """Bind an expression and return its type. `want` is the type for what has none of its own."""

    def bind_typed(self, node: exp.Expr | None, scope: NameScope) -> str:
        """Bind an expression that must have a type; undecided ones become text."""
        found = self.bind(node, scope)
        if found == UNKNOWN and isinstance(node, exp.Expression):
            self.use_own_type(node)
            return type_of(node)
        return found

    def use_own_type(self, node: exp.Expression) -> None:
        """Give an untyped node its default type."""
        inner = node.unnest()
        if isinstance(inner, exp.Parameter):
            self.adapt(node, lone_type(self.binder.value(inner)))
        elif type_of(node) == UNKNOWN:
            self.adapt(node, "text")

    def adapt(self, node: exp.Expression, want: str) -> None:
        """Give an untyped node the expected type."""
        if type_of(node) != UNKNOWN:
            return
        node.meta["type"] = want
        if isinstance(node, exp.Paren):
            self.adapt(node.this, want)
        elif isinstance(node, exp.Literal):
            value = read(node.this, want)
            if want in ("float4[]", "float4[][]"):  # `[0.1, 0.2]` is our writing only
                node.set("this", text_of(value, want))
        elif isinstance(node, exp.Array):
            if not is_array(want):
                raise SqlError("cannot determine type of empty array; write ARRAY[]::text[]")
            for item in node.expressions:
                self.adapt(item, element(want))
        elif isinstance(node, exp.Parameter):
            value = self.binder.value(node)
            if isinstance(value, str):
                read(value, want)
            elif value is not None and not (is_array(want) or want == "jsonb"):
                raise SqlError(
                    f"parameter ${node.name} is a {type(value).__name__}, which cannot become {long_name(want)}"
                )

    def boolean(self, node: exp.Expr | None, scope: NameScope, where: str) -> None:
        found = self.bind(node, scope, "bool")
        if found != "bool":
            raise SqlError(f"argument of {where} must be of type boolean, not {long_name(found)}")

    def number(self, node: exp.Expr | None, scope: NameScope, where: str) -> None:
        """Bind a whole number, for LIMIT, OFFSET and subscripts."""
        found = self.bind(node, scope, "int8")
        if found not in (*INTEGERS, "numeric", "float4", "float8"):
            raise SqlError(f"argument of {where} must be of type bigint, not {long_name(found)}")

    # -- conditions -----------------------------------------------------------------------------------------

    def _comparison(self, node: exp.Expression, op: str, scope: NameScope) -> str:
        other = node.expression
        if isinstance(other, (exp.Any, exp.All)):
            node.meta["operand"] = self._bind_quantified(node, other, scope, op)
            return "bool"
        if isinstance(node.this.unnest(), exp.Tuple) or isinstance(other.unnest(), exp.Tuple):
            raise unsupported("comparing rows", f"Compare their columns: {shown(node)}")
        node.meta["operand"] = self.bind_pair(node.this, other, op, scope)
        return "bool"

    def bind_pair(self, left: exp.Expression, right: exp.Expression, op: str, scope: NameScope) -> str:
        """Bind two operands; return the type in which they are compared."""
        kinds = [self.bind(left, scope), self.bind(right, scope)]
        return self._agree_on_type(left, right, kinds, op)

    def _agree_on_type(self, left: exp.Expression, right: exp.Expression, kinds: list[str], op: str) -> str:
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

    def _bind_quantified(self, node: exp.Expression, other: exp.Any | exp.All, scope: NameScope, op: str) -> str:
        """Bind `x = ANY(array)` and `x <> ALL(SELECT …)`."""
        if (op, type(other)) not in (("=", exp.Any), ("<>", exp.All)):
            raise unsupported(f"{op} {type(other).__name__.upper()}", "There are = ANY(…) and <> ALL(…)")
        left = self.bind(node.this, scope)
        inner = other.this.unnest() if not isinstance(other.this, exp.Subquery) else other.this
        if isinstance(inner, exp.Query):
            columns = self.binder.query(inner, scope)
            if len(columns) != 1:
                raise SqlError("subquery has too many columns")
            kind = self._agree_on_type(node.this, exp.Null(), [left, columns[0][1]], op)
            inner.meta["single"] = columns[0][1]
            return kind
        array = self.bind(other.this, scope, f"{'text' if left == UNKNOWN else left}[]")
        if not is_array(array):
            raise SqlError("op ANY/ALL (array) requires array on right side")
        other.meta["type"] = array
        return self._agree_on_type(node.this, exp.Null(), [left, element(array)], op)

    def _logic(self, node: exp.Connector | exp.Not, scope: NameScope) -> str:
        for part in [node.this] if isinstance(node, exp.Not) else list(node.flatten(unnest=False)):
            self.boolean(part, scope, type(node).__name__.upper())
        return "bool"

    def _is(self, node: exp.Is, scope: NameScope) -> str:
        only(node, "this", "expression", "negate")
        if isinstance(node.expression, exp.Boolean):
            self.boolean(node.this, scope, "IS TRUE")
        elif isinstance(node.expression, exp.Null):
            if self.bind_typed(node.this, scope) == "record":
                raise SqlUnsupportedError(f"IS NULL of a row is not supported: {shown(node)}")
        else:
            raise SqlUnsupportedError(f"{shown(node)} is not supported")
        return "bool"

    def _in(self, node: exp.In, scope: NameScope) -> str:
        only(node, "this", "expressions", "query")
        query = node.args.get("query")
        if isinstance(node.this.unnest(), exp.Tuple):
            raise unsupported("IN of rows", f"Use EXISTS, or compare their columns: {shown(node)}")
        if query is not None:
            columns = self.binder.query(query, scope)
            if len(columns) != 1:
                raise SqlError("subquery has too many columns")
            kinds = [self.bind(node.this, scope), columns[0][1]]
            node.meta["operand"] = self._agree_on_type(node.this, exp.Null(), kinds, "=")
            node.meta["columns"] = columns
            return "bool"
        node.meta["operand"] = self._common_type([node.this, *node.expressions], "=", scope)
        return "bool"

    def _common_type(self, parts: list[exp.Expression], op: str, scope: NameScope) -> str:
        """Return the type in which several expressions are compared."""
        known = [kind for part in parts if (kind := self.bind(part, scope)) != UNKNOWN] or ["text"]
        kind = known[0]
        for other in known[1:]:
            kind = self._agree_on_type(exp.Null(), exp.Null(), [kind, other], op)
        for part in parts:
            self.adapt(part, kind)
        return kind

    def _between(self, node: exp.Between, scope: NameScope) -> str:
        only(node, "this", "low", "high")
        node.meta["operand"] = self._common_type([node.this, node.args["low"], node.args["high"]], ">=", scope)
        return "bool"

    def _like(self, node: exp.Like | exp.ILike, scope: NameScope) -> str:
        only(node, "this", "expression", "negate")
        word = "LIKE" if isinstance(node, exp.Like) else "ILIKE"
        left = self.bind(node.this, scope, "text")
        pattern = node.expression
        if isinstance(pattern, (exp.Any, exp.All)):
            raise unsupported(f"{word} {type(pattern).__name__.upper()}")
        right = self.bind(pattern, scope, "text")
        if left != "text" or right != "text":
            raise SqlError(f"operator does not exist: {long_name(left)} {word} {long_name(right)}")
        return "bool"

    def _case(self, node: exp.Case, scope: NameScope) -> str:
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
