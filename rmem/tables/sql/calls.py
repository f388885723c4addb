"""Bind calls of functions, aggregates and window functions. What `functions` does not list cannot be called."""

from __future__ import annotations

from sqlglot import exp

from ...errors import SqlError, SqlUnsupportedError
from . import functions
from .expression_types import UNKNOWN, is_implicit, long_name, type_of
from .predicates import NOT_COMPARABLE, Predicates
from .scope import NameScope, fold_name, only, shown, unsupported


class Calls(Predicates):
    """The part of Expressions that binds calls."""

    def _function(self, node: exp.Anonymous, scope: NameScope) -> str:
        name = fold_name(node.this)
        if name == "array":
            raise unsupported("ARRAY(SELECT …)", "Use (SELECT array_agg(…) …)")
        if name == "deeplake_hybrid_record":
            return self._hybrid(node, scope)
        if name in functions.aggregates:
            return self._aggregate(node, name, scope)
        if name in functions.windows:
            raise SqlError(f"window function {name} requires an OVER clause")
        if name in functions.sets:
            raise SqlUnsupportedError(
                f"{name}() is supported in FROM, and alone in the list of a SELECT: {shown(node)}"
            )
        if name not in functions.scalars:
            raise functions.unknown_function(name)
        if name == "date_trunc" and node.expressions and node.expressions[0].is_string:
            functions.check_unit(name, node.expressions[0].name.lower())
        return self.call(node, functions.scalars, name, node.expressions, scope)

    def call(
        self,
        node: exp.Expression,
        known: dict[str, list[functions.Signature]],
        name: str,
        arguments: list[exp.Expression],
        scope: NameScope,
    ) -> str:
        kinds = [self.bind(argument, scope) for argument in arguments]
        if "record" in kinds or "hybrid" in kinds:
            raise SqlError(f"function {name}() does not take rows")
        call = functions.resolve(known, name, kinds)
        for argument, want in zip(arguments, call.takes, strict=True):
            if type_of(argument) == UNKNOWN and call.signature.takes and call.signature.takes[-1] == "any":
                self.use_own_type(argument)
            self.adapt(argument, want)
        takes = tuple(
            type_of(argument)
            if is_implicit(type_of(argument), want) and want == "text" and type_of(argument) != want
            else want
            for argument, want in zip(arguments, call.takes, strict=True)
        )
        node.meta["call"] = functions.FunctionCall(call.signature, takes, call.gives)
        return call.gives

    def _hybrid(self, node: exp.Anonymous, scope: NameScope) -> str:
        if len(node.expressions) not in (2, 4):
            raise SqlError("deeplake_hybrid_record takes (vector, text) or (vector, text, vector weight, text weight)")
        for argument, want in zip(node.expressions, ("float4[]", "text", "float8", "float8"), strict=False):
            self.bind(argument, scope, want)
        return "hybrid"

    def _aggregate(self, node: exp.Anonymous, name: str, scope: NameScope) -> str:
        if not scope.aggregates:
            raise SqlError(f"aggregate functions are not allowed here: {shown(node)}")
        over = node.parent.parent if isinstance(node.parent, exp.Filter) else node.parent
        nested = isinstance(over, exp.Window) and scope.nested
        inside = scope.inside(aggregates=nested)
        arguments, distinct, order = aggregate_parts(node)
        if len(arguments) == 1 and isinstance(arguments[0], exp.Star):
            if name != "count":
                raise SqlError(f"{name}(*) is not supported; only count(*) is")
            arguments = []
        elif name == "count" and not arguments:
            raise SqlError("count(*) must be used to call a parameterless aggregate function")
        kind = self.call(node, functions.aggregates, name, arguments, inside)
        for key in order:
            self.bind_typed(key.this, inside)
        if distinct:
            for argument in arguments:
                if type_of(argument) in NOT_COMPARABLE:
                    raise SqlError(f"DISTINCT of {long_name(type_of(argument))} is not supported")
        return kind

    def _filter(self, node: exp.Filter, scope: NameScope) -> str:
        if not isinstance(node.this, exp.Anonymous) or fold_name(node.this.this) not in functions.aggregates:
            raise SqlError(f"FILTER is for aggregate functions: {shown(node)}")
        found = self.bind(node.this, scope)
        inside = scope.inside(aggregates=False)
        self.boolean(node.expression.this, inside, "FILTER")
        return found

    def _window(self, node: exp.Window, scope: NameScope) -> str:
        only(node, "this", "partition_by", "order", "spec", "alias", "over")
        if not scope.windows:
            raise SqlError(f"window functions are not allowed here: {shown(node)}")
        inside = scope.inside(aggregates=scope.aggregates)
        target = node.this.this if isinstance(node.this, exp.Filter) else node.this
        if not isinstance(target, exp.Anonymous):
            raise SqlUnsupportedError(f"OVER is supported after functions: {shown(node)}")
        name = fold_name(target.this)
        if name in functions.windows:
            found = self.call(target, functions.windows, name, target.expressions, inside)
            target.meta["type"] = found
        elif name in functions.aggregates:
            inside.nested = scope.aggregates
            inside.aggregates = True
            found = self.bind(node.this, inside)
        else:
            raise SqlError(f"OVER specified, but {name} is not a window function nor an aggregate function")
        if node.args.get("alias") is not None:
            raise SqlError(f'window "{fold_name(node.args["alias"])}" does not exist; write OVER (…)')
        self.window_parts(node, scope)
        return found

    def window_parts(self, node: exp.Expression, scope: NameScope) -> None:
        inside = scope.inside(aggregates=scope.aggregates)
        for part in node.args.get("partition_by") or []:
            self.bind_typed(part, inside)
        order = node.args.get("order")
        for key in order.expressions if order is not None else []:
            only(key, "this", "desc", "nulls_first")
            self.bind_typed(key.this, inside)
        spec = node.args.get("spec")
        if spec is None:
            return
        only(spec, "kind", "start", "start_side", "end", "end_side")
        for end in ("start", "end"):
            bound = spec.args.get(end)
            side = str(spec.args.get(f"{end}_side") or "").upper()
            if bound and str(bound).upper() != "CURRENT ROW" and side not in ("PRECEDING", "FOLLOWING"):
                raise SqlError("a window frame is bounded by PRECEDING or FOLLOWING")
            if isinstance(bound, exp.Expression):
                if spec.args.get("kind") == "RANGE":
                    raise unsupported("RANGE with an offset", "Use ROWS")
                self.number(bound, scope, "a window frame")


def aggregate_parts(node: exp.Anonymous) -> tuple[list[exp.Expression], bool, list[exp.Ordered]]:
    """Return the arguments of an aggregate, whether it is DISTINCT, and its ORDER BY."""
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
