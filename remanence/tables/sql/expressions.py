"""Binding expressions: every column gets its source, every expression its type, every call one way of being meant.
What has no branch here cannot be said."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from ...errors import SqlError, SqlUnsupportedError
from ..catalog import ROW
from . import functions
from .dialect import SIMILARITY, Operator
from .parameters import integer_type, lone_type, parameter_type
from .reading import read
from .scope import Scope, folded, only, quoted, shown
from .types import (
    INTEGERS,
    NUMBERS,
    UNKNOWN,
    castable,
    common,
    element,
    implied,
    is_array,
    spelled,
    type_of,
    written,
)
from .writing import text_of

if TYPE_CHECKING:
    from .bind import Binder

_ARITHMETIC: dict[type[exp.Expr], str] = {
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
_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}
_FIELDS = frozenset(
    "century day decade dow doy epoch hour isodow isoyear julian microseconds millennium milliseconds minute month "
    "quarter second week year".split()
)
_INTERVAL_PARTS = ("years", "months", "weeks", "days", "hours", "mins", "secs")
_ROW_TAKERS = ("to_jsonb", "to_json", "row_to_json", "jsonb_agg", "json_agg")
NOT_COMPARABLE = ("record", "hybrid")


class Expressions:
    """The part of a Binder that looks at expressions."""

    def __init__(self, binder: Binder) -> None:
        self.binder = binder

    def bind(self, node: exp.Expr | None, scope: Scope, want: str | None = None) -> str:
        """The type of an expression. `want` is what its place expects, for what has no type of its own."""
        if not isinstance(node, exp.Expression):
            raise SqlError("an expression is missing")
        kind = type(node)
        if kind in _ARITHMETIC:
            found = self._operator(node, _ARITHMETIC[kind], scope)
        elif kind in _COMPARISONS:
            found = self._comparison(node, _COMPARISONS[kind], scope)
        else:
            branch = self._BRANCHES.get(kind)
            if branch is None:
                raise SqlUnsupportedError(f"{kind.__name__} is not supported: {shown(node)}")
            found = branch(self, node, scope)
        node.meta["type"] = found
        if want is not None:
            self.adapt(node, want)
            return type_of(node)
        return found

    def typed(self, node: exp.Expr | None, scope: Scope) -> str:
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
            for item in node.expressions:
                self.adapt(item, element(want))
        elif isinstance(node, exp.Parameter):
            value = self.binder.value(node)
            if isinstance(value, str):
                read(value, want)
            elif value is not None and not (is_array(want) or want == "jsonb"):
                raise SqlError(
                    f"parameter ${node.name} is a {type(value).__name__}, which cannot become {spelled(want)}"
                )

    def boolean(self, node: exp.Expr | None, scope: Scope, where: str) -> None:
        found = self.bind(node, scope, "bool")
        if found != "bool":
            raise SqlError(f"argument of {where} must be of type boolean, not {spelled(found)}")

    def number(self, node: exp.Expr | None, scope: Scope, where: str) -> None:
        """LIMIT, OFFSET and subscripts want whole numbers."""
        found = self.bind(node, scope, "int8")
        if found not in (*INTEGERS, "numeric", "float4", "float8"):
            raise SqlError(f"argument of {where} must be of type bigint, not {spelled(found)}")

    # -- names and values ---------------------------------------------------------------------------------

    def _column(self, node: exp.Column, scope: Scope) -> str:
        if node.meta.get("bound"):
            return type_of(node)
        only(node, "this", "table", "db")
        if isinstance(node.this, exp.Star):
            raise SqlUnsupportedError(f"{shown(node)} is only supported in the list of a SELECT")
        name = folded(node.this)
        table = folded(node.args["table"]) if node.args.get("table") else None
        if node.args.get("db") and folded(node.args["db"]) not in (self.binder.workspace, "public"):
            raise SqlError(f'missing FROM-clause entry for table "{table}"')
        if name == ROW:
            raise SqlError(f'column "{name}" does not exist')
        found = scope.find(name, table)
        if isinstance(found, exp.Expression):
            merged = found.copy()
            node.replace(merged)
            return type_of(merged)
        source, kind = found
        node.set("this", quoted(name))
        node.set("table", quoted(source.alias))
        node.set("db", None)
        node.meta["bound"] = True
        return kind

    def _literal(self, node: exp.Literal, scope: Scope) -> str:
        if node.is_string:
            return UNKNOWN
        text = str(node.this)
        if text.isdecimal():
            return integer_type(int(text)) if len(text) < 5000 else self._too_long(text)
        if len(text) > 5000:
            return self._too_long(text)
        read(text, "numeric")
        return "numeric"

    def _too_long(self, text: str) -> str:
        raise SqlError(f"the number {text[:20]}… is too long")

    def _parameter(self, node: exp.Parameter, scope: Scope) -> str:
        return parameter_type(self.binder.value(node))

    def _paren(self, node: exp.Paren, scope: Scope) -> str:
        return self.bind(node.this, scope)

    def _tuple(self, node: exp.Tuple, scope: Scope) -> str:
        for item in node.expressions:
            self.typed(item, scope)
        return "record"

    def _cast(self, node: exp.Cast, scope: Scope) -> str:
        only(node, "this", "to")
        to = node.args["to"]
        if self._is_hybrid(to):
            if not isinstance(node.this, exp.Tuple):
                raise SqlError("deeplake_hybrid_record is the type of (embedding, text)")
            self.bind(node.this, scope)
            return "hybrid"
        name, limits = written(to)
        found = self.bind(node.this, scope, name)
        if not castable(found, name):
            raise SqlError(f"cannot cast type {spelled(found)} to {spelled(name)}")
        node.meta["limits"] = limits
        return name

    @staticmethod
    def _is_hybrid(to: exp.Expression) -> bool:
        kind = to.args.get("kind")
        return to.this == exp.DType.USERDEFINED and folded(kind) == "deeplake_hybrid_record"

    def _array(self, node: exp.Array, scope: Scope) -> str:
        if not node.expressions:
            return UNKNOWN
        kind = common([self.bind(item, scope) for item in node.expressions], "ARRAY")
        for item in node.expressions:
            self.adapt(item, kind)
        return f"{kind}[]"

    def _bracket(self, node: exp.Bracket, scope: Scope) -> str:
        kind = self.bind(node.this, scope)
        if len(node.expressions) != 1:
            raise SqlUnsupportedError(f"subscripts with several parts are not supported: {shown(node)}")
        subscript = node.expressions[0]
        if kind == "jsonb":
            found = self.bind(subscript, scope, "text")
            if found not in ("text", "int4"):
                raise SqlError(f"subscript of jsonb must be text or integer, not {spelled(found)}")
            return "jsonb"
        if not is_array(kind):
            raise SqlError(f"cannot subscript type {spelled(kind)} because it does not support subscripting")
        if isinstance(subscript, exp.Slice):
            for end in (subscript.this, subscript.expression):
                if end is not None:
                    self.number(end, scope, "array subscript")
            return kind
        self.number(subscript, scope, "array subscript")
        return element(kind)

    # -- operators ----------------------------------------------------------------------------------------

    def _operator(self, node: exp.Expression, op: str, scope: Scope) -> str:
        left, right = self.bind(node.this, scope), self.bind(node.expression, scope)
        call = self._chosen(op, left, right)
        self.adapt(node.this, call.takes[0])
        self.adapt(node.expression, call.takes[1])
        node.meta["call"] = call
        return call.gives

    def _chosen(self, op: str, left: str, right: str) -> functions.Call:
        message = f"operator does not exist: {spelled(left)} {op} {spelled(right)}"
        if (left == UNKNOWN) != (right == UNKNOWN):
            same = right if left == UNKNOWN else left
            for signature in functions.operators[op]:
                if signature.takes == (same, same):
                    return functions.Call(signature, signature.takes, signature.gives)
        return functions.resolve(functions.operators, op, [left, right], message)

    def _custom(self, node: Operator, scope: Scope) -> str:
        if node.op == SIMILARITY:
            return self._similarity(node, scope)
        return self._operator(node, node.op, scope)

    def _similarity(self, node: Operator, scope: Scope) -> str:
        """`column <#> question`: text with text, a vector with a vector, (vector, text) with a hybrid record."""
        left = self.bind(node.this, scope)
        if left in ("record", "hybrid"):
            parts = node.this.unnest()
            parts = parts.this if isinstance(parts, exp.Cast) else parts
            if [type_of(part) for part in parts.expressions] != ["float4[]", "text"]:
                raise SqlError("<#> on a pair takes (vector, text), a FLOAT4[] column and a TEXT column")
            if self.bind(node.expression, scope) != "hybrid":
                raise SqlError("(vector, text) <#> takes a deeplake_hybrid_record(vector, text, w_vector, w_text)")
            return "float8"
        if left not in ("text", "float4[]", "float4[][]"):
            raise SqlError(f"<#> takes TEXT, FLOAT4[], FLOAT4[][] or (FLOAT4[], TEXT) on its left, not {spelled(left)}")
        right = self.bind(node.expression, scope, left)
        if right != left and not castable(right, left):
            raise SqlError(f"operator does not exist: {spelled(left)} <#> {spelled(right)}")
        return "float8"

    def _comparison(self, node: exp.Expression, op: str, scope: Scope) -> str:
        other = node.expression
        if isinstance(other, (exp.Any, exp.All)):
            node.meta["operand"] = self._quantified(node, other, scope, op)
            return "bool"
        left, right = node.this.unnest(), other.unnest()
        if isinstance(left, exp.Tuple) or isinstance(right, exp.Tuple):
            self._rows(node, left, right, op, scope)
            return "bool"
        node.meta["operand"] = self.matched(node.this, other, op, scope)
        return "bool"

    def _rows(self, node: exp.Expression, left: exp.Expr, right: exp.Expr, op: str, scope: Scope) -> None:
        if isinstance(right, exp.Query) and isinstance(left, exp.Tuple):
            raise SqlUnsupportedError(f"comparing a row with a subquery is not supported: {shown(node)}")
        if not (isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple)):
            raise SqlError(f"a row can only be compared with a row: {shown(node)}")
        if len(left.expressions) != len(right.expressions):
            raise SqlError("unequal number of entries in row expressions")
        node.meta["operands"] = [
            self.matched(a, b, op, scope) for a, b in zip(left.expressions, right.expressions, strict=True)
        ]
        left.meta["type"] = right.meta["type"] = "record"

    def matched(self, left: exp.Expression, right: exp.Expression, op: str, scope: Scope) -> str:
        """The type in which two expressions are compared."""
        kinds = [self.bind(left, scope), self.bind(right, scope)]
        return self._agreed(left, right, kinds, op)

    def _agreed(self, left: exp.Expression, right: exp.Expression, kinds: list[str], op: str) -> str:
        message = f"operator does not exist: {spelled(kinds[0])} {op} {spelled(kinds[1])}"
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
        """`x = ANY(array)` and `x > ALL(SELECT …)`."""
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

    def _negative(self, node: exp.Expression, scope: Scope) -> str:
        op = "-" if isinstance(node, exp.Neg) else "~"
        kind = self.bind(node.this, scope, "float8" if op == "-" else "int4")
        call = functions.resolve(functions.unaries, op, [kind], f"operator does not exist: {op} {spelled(kind)}")
        node.meta["call"] = call
        if isinstance(node.this, exp.Literal) and op == "-" and node.this.this.isdecimal():
            return integer_type(-int(node.this.this))
        return call.gives

    def _is(self, node: exp.Is, scope: Scope) -> str:
        only(node, "this", "expression", "negate")
        if isinstance(node.expression, exp.Boolean):
            self.boolean(node.this, scope, "IS TRUE")
        elif isinstance(node.expression, exp.Null):
            if self.typed(node.this, scope) == "record":
                raise SqlUnsupportedError(f"IS NULL of a row is not supported: {shown(node)}")
        else:
            raise SqlUnsupportedError(f"{shown(node)} is not supported")
        return "bool"

    def _in(self, node: exp.In, scope: Scope) -> str:
        only(node, "this", "expressions", "query")
        query = node.args.get("query")
        left = node.this.unnest()
        if query is not None:
            kinds = [self.typed(part, scope) for part in left.expressions] if isinstance(left, exp.Tuple) else None
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
        only(node, "this", "low", "high", "symmetric")
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
            kind = self.bind(pattern.this, scope, "text[]")
            pattern.meta["type"] = kind
            right = element(kind)
        else:
            right = self.bind(pattern, scope, "text")
        if left != "text" or right != "text":
            raise SqlError(f"operator does not exist: {spelled(left)} {word} {spelled(right)}")
        return "bool"

    def _similar(self, node: exp.SimilarTo, scope: Scope) -> str:
        for part in (node.this, node.expression):
            if self.bind(part, scope, "text") != "text":
                raise SqlError("SIMILAR TO takes texts")
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
                branch.meta["operand"] = self.matched(subject, branch.this, "=", scope)
        results = [branch.args["true"] for branch in branches]
        if node.args.get("default") is not None:
            results.append(node.args["default"])
        kind = common([self.bind(result, scope) for result in results], "CASE")
        for result in results:
            self.adapt(result, kind)
        return kind

    def _extract(self, node: exp.Extract, scope: Scope) -> str:
        field = node.this.name.lower()
        if field not in _FIELDS:
            raise SqlError(f'unit "{field}" is not recognised by EXTRACT')
        kind = self.bind(node.expression, scope, "timestamp")
        if kind not in ("timestamptz", "timestamp", "date", "time", "interval"):
            raise SqlError(f"function extract({field} from {spelled(kind)}) does not exist")
        node.set("this", exp.Var(this=field.upper()))
        return "numeric"

    def _at_time_zone(self, node: exp.AtTimeZone, scope: Scope) -> str:
        only(node, "this", "zone")
        kind = self.bind(node.this, scope, "timestamptz")
        zone = self.bind(node.args["zone"], scope, "text")
        call = functions.resolve(functions.scalars, "timezone", [zone, kind])
        node.meta["call"] = call
        return call.gives

    def _current(self, node: exp.Expression, scope: Scope) -> str:
        only(node)
        kinds: dict[type[exp.Expr], str] = {
            exp.CurrentTimestamp: "timestamptz",
            exp.CurrentDate: "date",
            exp.Localtimestamp: "timestamp",
            exp.Localtime: "time",
        }
        return kinds[type(node)]

    def _collate(self, node: exp.Collate, scope: Scope) -> str:
        if folded(node.expression) not in ("C", "POSIX"):
            raise SqlUnsupportedError(f'only COLLATE "C" is supported, not {shown(node.expression)}')
        return self.bind(node.this, scope, "text")

    # -- subqueries ---------------------------------------------------------------------------------------

    def _subquery(self, node: exp.Subquery, scope: Scope) -> str:
        columns = self.binder.query(node, scope)
        if len(columns) != 1:
            raise SqlError("subquery must return only one column")
        return columns[0][1]

    def _exists(self, node: exp.Exists, scope: Scope) -> str:
        self.binder.query(node.this, scope)
        return "bool"

    # -- functions ----------------------------------------------------------------------------------------

    def _function(self, node: exp.Anonymous, scope: Scope) -> str:
        name = folded(node.this)
        if name == "array" and len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Query):
            return self._array_of_query(node, scope)
        if name == "deeplake_hybrid_record":
            return self._hybrid(node, scope)
        if name == "make_interval":
            self._name_parts(node)
        elif name == "grouping":
            for argument in node.expressions:
                self.typed(argument, scope)
            return "int4"
        elif name in _ROW_TAKERS:
            self._spread_rows(node, scope)
        if name in functions.aggregates or name in functions.ordered:
            return self._aggregate(node, name, scope)
        if name in functions.windows:
            raise SqlError(f"window function {name} requires an OVER clause")
        if name in functions.sets:
            raise SqlUnsupportedError(
                f"{name}() is supported in FROM, and alone in the list of a SELECT: {shown(node)}"
            )
        if name not in functions.scalars:
            raise SqlUnsupportedError(f"function {name}() is not supported")
        return self._call(node, functions.scalars, name, node.expressions, scope)

    def _call(
        self,
        node: exp.Expression,
        known: dict[str, list[functions.Signature]],
        name: str,
        arguments: list[exp.Expression],
        scope: Scope,
    ) -> str:
        kinds = [self.bind(argument, scope) for argument in arguments]
        if "record" in kinds or "hybrid" in kinds:
            raise SqlError(f"function {name}() does not take rows")
        call = functions.resolve(known, name, kinds)
        for argument, want in zip(arguments, call.takes, strict=True):
            if type_of(argument) == UNKNOWN and call.signature.takes and call.signature.takes[-1] == "any":
                self.settle(argument)
            self.adapt(argument, want)
        takes = tuple(
            type_of(argument)
            if implied(type_of(argument), want) and want == "text" and type_of(argument) != want
            else want
            for argument, want in zip(arguments, call.takes, strict=True)
        )
        node.meta["call"] = functions.Call(call.signature, takes, call.gives)
        return call.gives

    def _array_of_query(self, node: exp.Anonymous, scope: Scope) -> str:
        columns = self.binder.query(node.expressions[0], scope)
        if len(columns) != 1:
            raise SqlError("subquery must return only one column")
        return f"{columns[0][1]}[]"

    def _hybrid(self, node: exp.Anonymous, scope: Scope) -> str:
        if not 2 <= len(node.expressions) <= 4:
            raise SqlError("deeplake_hybrid_record takes (vector, text, vector weight, text weight)")
        for argument, want in zip(node.expressions, ("float4[]", "text", "float8", "float8"), strict=False):
            found = self.bind(argument, scope, want)
            if not (implied(found, want) or (is_array(found) and is_array(want))):
                raise SqlError(
                    f"deeplake_hybrid_record takes (vector, text, weight, weight), not {spelled(found)} there"
                )
        return "hybrid"

    def _name_parts(self, node: exp.Anonymous) -> None:
        """make_interval(days => 3) has its arguments by place."""
        if not any(isinstance(argument, exp.Kwarg) for argument in node.expressions):
            return
        parts: list[exp.Expression] = [exp.Literal.number(0) for _ in _INTERVAL_PARTS]
        for place, argument in enumerate(node.expressions):
            if isinstance(argument, exp.Kwarg):
                word = folded(argument.this)
                if word not in _INTERVAL_PARTS:
                    raise SqlError(f"make_interval() has no argument {word}")
                place, argument = _INTERVAL_PARTS.index(word), argument.expression
            parts[place] = argument
        node.set("expressions", parts)

    def _spread_rows(self, node: exp.Anonymous, scope: Scope) -> None:
        """`to_jsonb(t)` of a whole row is an object of its columns."""
        if folded(node.this) == "row_to_json":
            node.set("this", "to_jsonb")
            node.meta["name"] = "row_to_json"
        for argument in list(node.find_all(exp.Column)):
            name = folded(argument.this)
            plain = not argument.args.get("table") and not argument.meta.get("bound")
            if argument.parent_select is not node.parent_select or not plain or name not in scope.sources:
                continue
            if argument.parent not in (node, *node.find_all(exp.Order, exp.Distinct)):
                continue
            if any(source.type_of(name) is not None for source in scope.sources.values()):
                continue
            pairs: list[exp.Expression] = []
            source = scope.sources[name]
            for column, kind in source.columns:
                inner = exp.Column(this=quoted(column), table=quoted(source.alias))
                inner.meta.update(type=kind, bound=True)
                pairs += [exp.Literal.string(column), inner]
            argument.replace(exp.Anonymous(this="jsonb_build_object", expressions=pairs))

    def _aggregate(self, node: exp.Anonymous, name: str, scope: Scope) -> str:
        if not scope.aggregates:
            raise SqlError(f"aggregate functions are not allowed here: {shown(node)}")
        over = node.parent.parent if isinstance(node.parent, exp.Filter) else node.parent
        nested = isinstance(over, exp.Window) and scope.nested
        inside = Scope(scope.outer, scope.sources, scope.queries, scope.merged, aggregates=nested)
        arguments, distinct, order = aggregate_parts(node)
        if name in functions.ordered:
            group = node.parent
            if not isinstance(group, exp.WithinGroup):
                raise SqlError(f"WITHIN GROUP is required for ordered-set aggregate {name}")
            ordered = group.expression.expressions
            if len(ordered) != 1:
                raise SqlUnsupportedError(f"{name}() orders by one expression")
            arguments = [*arguments, ordered[0].this]
            return self._call(node, functions.ordered, name, arguments, inside)
        if len(arguments) == 1 and isinstance(arguments[0], exp.Star):
            if name != "count":
                raise SqlError(f"{name}(*) is not supported; only count(*) is")
            arguments = []
        elif name == "count" and not arguments:
            raise SqlError("count(*) must be used to call a parameterless aggregate function")
        kind = self._call(node, functions.aggregates, name, arguments, inside)
        for key in order:
            self.typed(key.this, inside)
        if distinct:
            for argument in arguments:
                if type_of(argument) in NOT_COMPARABLE:
                    raise SqlError(f"DISTINCT of {spelled(type_of(argument))} is not supported")
        return kind

    def _within_group(self, node: exp.WithinGroup, scope: Scope) -> str:
        if not isinstance(node.this, exp.Anonymous) or folded(node.this.this) not in functions.ordered:
            raise SqlError(f"WITHIN GROUP is for percentile_cont, percentile_disc and mode: {shown(node)}")
        return self.bind(node.this, scope)

    def _filter(self, node: exp.Filter, scope: Scope) -> str:
        target = node.this.this if isinstance(node.this, exp.WithinGroup) else node.this
        if not isinstance(target, exp.Anonymous) or folded(target.this) not in {
            **functions.aggregates,
            **functions.ordered,
        }:
            raise SqlError(f"FILTER is for aggregate functions: {shown(node)}")
        found = self.bind(node.this, scope)
        inside = Scope(outer=scope.outer, sources=scope.sources, queries=scope.queries, merged=scope.merged)
        self.boolean(node.expression.this, inside, "FILTER")
        return found

    def _window(self, node: exp.Window, scope: Scope) -> str:
        only(node, "this", "partition_by", "order", "spec", "alias", "over")
        if not scope.windows:
            raise SqlError(f"window functions are not allowed here: {shown(node)}")
        inside = Scope(scope.outer, scope.sources, scope.queries, scope.merged, aggregates=scope.aggregates)
        target = node.this.this if isinstance(node.this, exp.Filter) else node.this
        if not isinstance(target, exp.Anonymous):
            raise SqlUnsupportedError(f"OVER is supported after functions: {shown(node)}")
        name = folded(target.this)
        if name in functions.windows:
            found = self._call(target, functions.windows, name, target.expressions, inside)
            target.meta["type"] = found
        elif name in functions.aggregates:
            inside.nested = scope.aggregates
            inside.aggregates = True
            found = self.bind(node.this, inside)
        else:
            raise SqlError(f"OVER specified, but {name} is not a window function nor an aggregate function")
        if node.args.get("alias") is not None and folded(node.args["alias"]) not in scope.named_windows:
            raise SqlError(f'window "{folded(node.args["alias"])}" does not exist')
        self.window_parts(node, scope)
        return found

    def window_parts(self, node: exp.Expression, scope: Scope) -> None:
        inside = Scope(scope.outer, scope.sources, scope.queries, scope.merged, aggregates=scope.aggregates)
        for part in node.args.get("partition_by") or []:
            self.typed(part, inside)
        order = node.args.get("order")
        for key in order.expressions if order is not None else []:
            only(key, "this", "desc", "nulls_first")
            self.typed(key.this, inside)
        spec = node.args.get("spec")
        if spec is None:
            return
        only(spec, "kind", "start", "start_side", "end", "end_side", "exclude")
        for end in ("start", "end"):
            bound = spec.args.get(end)
            side = str(spec.args.get(f"{end}_side") or "").upper()
            if bound and str(bound).upper() != "CURRENT ROW" and side not in ("PRECEDING", "FOLLOWING"):
                raise SqlError("a window frame is bounded by PRECEDING or FOLLOWING")
            if isinstance(bound, exp.Expression):
                if spec.args.get("kind") == "RANGE" and not isinstance(bound, exp.Literal):
                    raise SqlUnsupportedError("RANGE with an offset is supported for numbers only")
                self.number(bound, scope, "a window frame")

    _BRANCHES: ClassVar[dict[type[exp.Expr], Callable[..., str]]] = {
        exp.Column: _column,
        exp.Literal: _literal,
        exp.Boolean: lambda self, node, scope: "bool",
        exp.Null: lambda self, node, scope: UNKNOWN,
        exp.Parameter: _parameter,
        exp.Paren: _paren,
        exp.Tuple: _tuple,
        exp.Cast: _cast,
        exp.Array: _array,
        exp.Bracket: _bracket,
        Operator: _custom,
        exp.Not: _not,
        exp.And: _connector,
        exp.Or: _connector,
        exp.Neg: _negative,
        exp.BitwiseNot: _negative,
        exp.Is: _is,
        exp.In: _in,
        exp.Between: _between,
        exp.Like: _like,
        exp.ILike: _like,
        exp.SimilarTo: _similar,
        exp.Escape: _escape,
        exp.Case: _case,
        exp.Extract: _extract,
        exp.AtTimeZone: _at_time_zone,
        exp.CurrentTimestamp: _current,
        exp.CurrentDate: _current,
        exp.Localtimestamp: _current,
        exp.Localtime: _current,
        exp.Collate: _collate,
        exp.Subquery: _subquery,
        exp.Exists: _exists,
        exp.Anonymous: _function,
        exp.WithinGroup: _within_group,
        exp.Filter: _filter,
        exp.Window: _window,
    }


def aggregate_parts(node: exp.Anonymous) -> tuple[list[exp.Expression], bool, list[exp.Ordered]]:
    """The arguments of an aggregate, whether they are DISTINCT, and its ORDER BY."""
    arguments = list(node.expressions)
    distinct = bool(arguments) and isinstance(arguments[0], exp.Distinct)
    if distinct:
        only(arguments[0], "expressions")
        arguments = [*arguments[0].expressions, *arguments[1:]]
    order: list[exp.Ordered] = []
    if arguments and isinstance(arguments[-1], exp.Order):
        order = arguments[-1].expressions
        arguments[-1] = arguments[-1].this
    if arguments and isinstance(arguments[0], exp.Distinct):
        distinct = True
        arguments = [*arguments[0].expressions, *arguments[1:]]
    return arguments, distinct, order
