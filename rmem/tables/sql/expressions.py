"""Bind expressions: give every column its source, every expression its type, every call its signature. Unlisted node
types are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from sqlglot import exp

from ...errors import SqlError, SqlUnsupportedError
from ..catalog import ROW
from ..deadline import check
from . import functions
from .calls import Calls
from .dialect import SIMILARITY, Operator
from .expression_types import (
    UNKNOWN,
    castable,
    common,
    element,
    is_array,
    long_name,
    read_type,
    type_of,
)
from .literals import read
from .parameters import integer_type, parameter_type
from .predicates import NOT_COMPARABLE
from .scope import NameScope, fold_name, identifier, only, replace_node, shown, unsupported
from .times import zone_of

ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.Pow: "^",
    exp.DPipe: "||",
}
COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}
_OF_JSON = ("->", "->>", "#>", "#>>", "@>", "?", "?|", "?&")
MAX_DIMENSIONS = 6  # of an array, as in PostgreSQL
MAX_OPERATORS = 30  # each the operand of the next


class Expressions(Calls):
    """The part of a Binder that binds expressions."""

    def bind(self, node: exp.Expr | None, scope: NameScope, want: str | None = None) -> str:
        """Bind an expression and return its type. `want` is the type for what has none of its own."""
        if not isinstance(node, exp.Expression):
            raise SqlError("an expression is missing")
        check()
        kind = type(node)
        if kind in ARITHMETIC:
            found = self._operator(node, ARITHMETIC[kind], scope)
        elif kind in COMPARISONS:
            found = self._comparison(node, COMPARISONS[kind], scope)
        else:
            branch = self._BRANCHES.get(kind)
            if branch is None:
                raise unsupported(shown(node))
            found = branch(self, node, scope)
        node.meta["type"] = found
        if want is not None:
            self.adapt(node, want)
            return type_of(node)
        return found

    # -- names and values ---------------------------------------------------------------------------------

    def _column(self, node: exp.Column, scope: NameScope) -> str:
        if node.meta.get("bound"):
            return type_of(node)
        only(node, "this", "table", "db")
        if isinstance(node.this, exp.Star):
            raise SqlUnsupportedError(f"{shown(node)} is only supported in the list of a SELECT")
        name = fold_name(node.this)
        table = fold_name(node.args["table"]) if node.args.get("table") else None
        if node.args.get("db") and fold_name(node.args["db"]) not in (self.binder.workspace, "public"):
            raise SqlError(f'missing FROM-clause entry for table "{table}"')
        if name == ROW:
            raise SqlError(f'column "{name}" does not exist')
        found = scope.find(name, table)
        if isinstance(found, exp.Expression):
            merged = found.copy()
            replace_node(node, merged)
            return type_of(merged)
        source, kind = found
        node.set("this", identifier(name))
        node.set("table", identifier(source.alias))
        node.set("db", None)
        node.meta["bound"] = True
        return kind

    def _literal(self, node: exp.Literal, scope: NameScope) -> str:
        if node.is_string:
            return UNKNOWN
        text = str(node.this)
        if len(text) > 5000:
            raise SqlError(f"the number {text[:20]}… is too long")
        if text.isdecimal():
            return integer_type(int(text))
        read(text, "numeric")
        return "numeric"

    def _tuple(self, node: exp.Tuple, scope: NameScope) -> str:
        for item in node.expressions:
            self.bind_typed(item, scope)
        return "record"

    def _cast(self, node: exp.Cast, scope: NameScope) -> str:
        only(node, "this", "to")
        to = node.args["to"]
        if self._is_hybrid(to):
            if not isinstance(node.this, exp.Tuple):
                raise SqlError("deeplake_hybrid_record is the type of (embedding, text)")
            self.bind(node.this, scope)
            return "hybrid"
        name, limits = read_type(to)
        found = self.bind(node.this, scope, name)
        if not castable(found, name):
            raise SqlError(f"cannot cast type {long_name(found)} to {long_name(name)}")
        node.meta["limits"] = limits
        return name

    @staticmethod
    def _is_hybrid(to: exp.Expression) -> bool:
        kind = to.args.get("kind")
        return to.this == exp.DType.USERDEFINED and fold_name(kind) == "deeplake_hybrid_record"

    def _array(self, node: exp.Array, scope: NameScope) -> str:
        if not node.expressions:
            return UNKNOWN
        kind = common([self.bind(item, scope) for item in node.expressions], "ARRAY")
        for item in node.expressions:
            self.adapt(item, kind)
        if kind.count("[]") >= MAX_DIMENSIONS:
            raise SqlError(f"an array may have {MAX_DIMENSIONS} dimensions, this one has more")
        return f"{kind}[]"

    def _bracket(self, node: exp.Bracket, scope: NameScope) -> str:
        kind = self.bind(node.this, scope)
        if len(node.expressions) != 1:
            raise SqlUnsupportedError(f"subscripts with several parts are not supported: {shown(node)}")
        subscript = node.expressions[0]
        if kind == "jsonb":
            raise unsupported("a subscript of JSONB", "Use ->")
        if not is_array(kind):
            raise SqlError(f"cannot subscript type {long_name(kind)} because it does not support subscripting")
        if isinstance(subscript, exp.Slice):
            raise unsupported("a slice of an array", "Use a subscript, or unnest()")
        self.number(subscript, scope, "array subscript")
        return element(kind)

    # -- operators ----------------------------------------------------------------------------------------

    def _operator(self, node: exp.Expression, op: str, scope: NameScope) -> str:
        left, right = self.bind(node.this, scope), self.bind(node.expression, scope)
        call = self._choose_operator(op, left, right)
        self.adapt(node.this, call.takes[0])
        self.adapt(node.expression, call.takes[1])
        depth = 1 + max(side.unnest().meta.get("depth", 0) for side in (node.this, node.expression))
        if depth > MAX_OPERATORS:
            raise SqlError(f"an expression may have {MAX_OPERATORS} operators in a row; use brackets, or concat()")
        node.meta.update(call=call, depth=depth)
        return call.gives

    def _choose_operator(self, op: str, left: str, right: str) -> functions.FunctionCall:
        if (
            (op in ("+", "-") and "time" in (left, right))
            or (op == "/" and left == "interval")
            or (op == "-" and left == "jsonb" and right not in ("text", UNKNOWN))
        ):
            raise unsupported(f"{long_name(left)} {op} {long_name(right)}")
        message = f"operator does not exist: {long_name(left)} {op} {long_name(right)}"
        if left == "text" and op in _OF_JSON:
            message += "; a text that holds JSON is cast first, as in (metadata::jsonb)"
        if (left == UNKNOWN) != (right == UNKNOWN):
            same = right if left == UNKNOWN else left
            for signature in functions.operators[op]:
                if signature.takes == (same, same):
                    return functions.FunctionCall(signature, signature.takes, signature.gives)
        return functions.resolve(functions.operators, op, [left, right], message)

    def _custom(self, node: Operator, scope: NameScope) -> str:
        if node.op == SIMILARITY:
            return self._similarity(node, scope)
        if node.op not in functions.operators:
            raise unsupported(f"operator {node.op}")
        return self._operator(node, node.op, scope)

    def _similarity(self, node: Operator, scope: NameScope) -> str:
        """`column <#> question`. What it searches for, `search.operators` checks."""
        left = self.bind(node.this, scope)
        right = self.bind(node.expression, scope, left if left in ("text", "float4[]", "float4[][]") else None)
        if (right == "hybrid") != (left in NOT_COMPARABLE):
            raise SqlError("<#> takes (vector, text) with deeplake_hybrid_record(vector, text, w_vector, w_text)")
        return "float8"

    def _negative(self, node: exp.Expression, scope: NameScope) -> str:
        kind = self.bind(node.this, scope, "float8")
        call = functions.resolve(functions.unaries, "-", [kind], f"operator does not exist: - {long_name(kind)}")
        node.meta["call"] = call
        if isinstance(node.this, exp.Literal) and node.this.this.isdecimal():
            return integer_type(-int(node.this.this))
        return call.gives

    def _extract(self, node: exp.Extract, scope: NameScope) -> str:
        field = node.this.name.lower()
        functions.check_unit("extract", field)
        kind = self.bind(node.expression, scope, "timestamp")
        if kind not in ("timestamptz", "timestamp", "date", "time", "interval"):
            raise SqlError(f"function extract({field} from {long_name(kind)}) does not exist")
        node.set("this", exp.Var(this=field.upper()))
        return "numeric"

    def _at_time_zone(self, node: exp.AtTimeZone, scope: NameScope) -> str:
        only(node, "this", "zone")
        kind = self.bind(node.this, scope, "timestamptz")
        zone = self.bind(node.args["zone"], scope, "text")
        if node.args["zone"].is_string:
            zone_of(node.args["zone"].name)
        call = functions.resolve(functions.scalars, "timezone", [zone, kind])
        node.meta["call"] = call
        return call.gives

    def _current(self, node: exp.Expression, scope: NameScope) -> str:
        only(node)
        return "timestamptz" if isinstance(node, exp.CurrentTimestamp) else "date"

    # -- subqueries ---------------------------------------------------------------------------------------

    def _subquery(self, node: exp.Subquery, scope: NameScope) -> str:
        columns = self.binder.query(node, scope)
        if len(columns) != 1:
            raise SqlError("subquery must return only one column")
        return columns[0][1]

    def _exists(self, node: exp.Exists, scope: NameScope) -> str:
        self.binder.query(node.this, scope)
        return "bool"

    _BRANCHES: ClassVar[dict[type[exp.Expr], Callable[..., str]]] = {
        exp.Column: _column,
        exp.Literal: _literal,
        exp.Boolean: lambda self, node, scope: "bool",
        exp.Null: lambda self, node, scope: UNKNOWN,
        exp.Parameter: lambda self, node, scope: parameter_type(self.binder.value(node)),
        exp.Paren: lambda self, node, scope: self.bind(node.this, scope),
        exp.Tuple: _tuple,
        exp.Cast: _cast,
        exp.Array: _array,
        exp.Bracket: _bracket,
        Operator: _custom,
        exp.Not: Calls._logic,
        exp.And: Calls._logic,
        exp.Or: Calls._logic,
        exp.Neg: _negative,
        exp.Is: Calls._is,
        exp.In: Calls._in,
        exp.Between: Calls._between,
        exp.Like: Calls._like,
        exp.ILike: Calls._like,
        exp.Case: Calls._case,
        exp.Extract: _extract,
        exp.AtTimeZone: _at_time_zone,
        exp.CurrentTimestamp: _current,
        exp.CurrentDate: _current,
        exp.Subquery: _subquery,
        exp.Exists: _exists,
        exp.Anonymous: Calls._function,
        exp.Filter: Calls._filter,
        exp.Window: Calls._window,
    }
