"""Types of expressions: what has no type of its own takes the one that its place expects."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from sqlglot import exp

from ...errors import SqlError
from .casts import text_of
from .literals import read
from .parameters import lone_type
from .scope import Scope
from .types import INTEGERS, UNKNOWN, element, is_array, long_name, type_of

if TYPE_CHECKING:
    from .bind import Binder


class ExpressionBase(ABC):
    def __init__(self, binder: Binder) -> None:
        self.binder = binder

    @abstractmethod
    def bind(self, node: exp.Expr | None, scope: Scope, want: str | None = None) -> str:
        """The type of an expression. `want` is what its place expects, for what has no type of its own."""

    def bind_typed(self, node: exp.Expr | None, scope: Scope) -> str:
        """The type of an expression that has to have one: what nothing decides is a text."""
        found = self.bind(node, scope)
        if found == UNKNOWN and isinstance(node, exp.Expression):
            self.settle(node)
            return type_of(node)
        return found

    def settle(self, node: exp.Expression) -> None:
        """Give what has no type the one that it has by itself."""
        inner = node.unnest()
        if isinstance(inner, exp.Parameter):
            self.adapt(node, lone_type(self.binder.value(inner)))
        elif type_of(node) == UNKNOWN:
            self.adapt(node, "text")

    def adapt(self, node: exp.Expression, want: str) -> None:
        """Make what has no type yet the type that its place expects."""
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

    def boolean(self, node: exp.Expr | None, scope: Scope, where: str) -> None:
        found = self.bind(node, scope, "bool")
        if found != "bool":
            raise SqlError(f"argument of {where} must be of type boolean, not {long_name(found)}")

    def number(self, node: exp.Expr | None, scope: Scope, where: str) -> None:
        """LIMIT, OFFSET and subscripts want whole numbers."""
        found = self.bind(node, scope, "int8")
        if found not in (*INTEGERS, "numeric", "float4", "float8"):
            raise SqlError(f"argument of {where} must be of type bigint, not {long_name(found)}")
