"""Keep PostgreSQL able to stop a statement. It looks for a cancellation between rows, not inside one call of a C
function, and some calls take the time of both arguments multiplied: LIKE, a search for a text, a comparison of two
arrays. Such calls go through functions of ours, which refuse what would take seconds; a statement of very many calls
looks for a cancellation after each of them."""

from __future__ import annotations

from typing import NamedTuple

from sqlglot import exp

from ..deadline import check_each
from ..sql import functions
from ..sql.expression_types import is_array, type_of
from ..sql.scope import replace_node

SCHEMA = "remanence_functions_1"
"""Holds the functions, which everybody may call; another number when one of them changes."""

_BYTES = 400_000_000  # pairs of bytes that a call may compare: about a second
_ELEMENTS = 25_000_000  # pairs of elements
_COMPRESSED = 100_000  # below this product of sizes on disk, nothing is long even when it was compressed
_JSON_BYTES = 32 * 1024 * 1024  # of a text that is read as JSONB
_MANY = 32  # calls on long values in one statement, from which on each looks for a cancellation
_LONG = ("text", "jsonb", "numeric")
_PARAMETER = (exp.Parameter, exp.Placeholder)
_CONSTANT = (exp.Literal, *_PARAMETER)


class _Guard(NamedTuple):
    """A function of ours: its SQL types, the condition under which it refuses its arguments, and the guarded call."""

    name: str
    takes: str
    gives: str
    too_long: str
    call: str
    strict: bool = True


def _text_guard(name: str, takes: str, gives: str, call: str, *, strict: bool = True) -> _Guard:
    """Return a guard that refuses two texts by the product of their lengths."""
    return _Guard(name, takes, gives, f"octet_length($1)::bigint * octet_length($2) > {_BYTES}", call, strict)


def _call_guard(key: str) -> _Guard:
    """Return a guard of the function of a signature."""
    signature = next(each for each in functions.scalars[key.partition("(")[0]] if each.key == key)
    places = ", ".join(f"${at}" for at in range(1, len(signature.takes) + 1))
    takes, strict = ", ".join(signature.takes), signature.name != "string_to_array"  # which splits at NULL
    return _text_guard(signature.name, takes, signature.gives, f"{signature.name}({places})", strict=strict)


def _array_guard(name: str, operator: str) -> _Guard:
    """Return a guard that refuses two arrays by the product of their lengths."""
    too_long = f"cardinality($1)::bigint * cardinality($2) > {_ELEMENTS}"
    return _Guard(name, "anyarray, anyarray", "boolean", too_long, f"$1 {operator} $2")


_LIKE, _ILIKE = "like", "ilike"
_QUADRATIC = (
    *("strpos(text, text)", "split_part(text, text, int4)", "replace(text, text, text)"),
    *("string_to_array(text, text)", "string_to_array(text, text, text)"),
    *("btrim(text, text)", "ltrim(text, text)", "rtrim(text, text)"),
)
_READ_JSON = _Guard("read_json", "text", "jsonb", f"octet_length($1) > {_JSON_BYTES}", "$1::jsonb")
_BY_KEY = {
    **{key: _call_guard(key) for key in _QUADRATIC},
    "@>(anyarray, anyarray)": _array_guard("array_contains", "@>"),
    "&&(anyarray, anyarray)": _array_guard("array_overlaps", "&&"),
    "@>(jsonb, jsonb)": _Guard(
        "json_contains",
        "jsonb, jsonb",
        "boolean",
        f"pg_column_size($1)::bigint * pg_column_size($2) > {_COMPRESSED} "
        f"AND octet_length($1::text)::bigint * octet_length($2::text) > {_BYTES}",
        "$1 @> $2",
    ),
}
_GUARDS = (
    *_BY_KEY.values(),
    _text_guard(_LIKE, "text, text", "boolean", "$1 LIKE $2"),
    _text_guard(_ILIKE, "text, text", "boolean", "$1 ILIKE $2"),
    _READ_JSON,
    _Guard("interruptible", "anyelement", "anyelement", "false", "$1", strict=False),
)
_REFUSED = "the arguments of %s are too long: it would run for many seconds without a chance to stop it"


def create_functions() -> str:
    """Return the statements that create the functions."""
    lines = [f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}; GRANT USAGE ON SCHEMA {SCHEMA} TO PUBLIC;"]
    for guard in _GUARDS:
        strict = "STRICT" if guard.strict else ""
        refused = _REFUSED % guard.name
        lines.append(
            f"CREATE OR REPLACE FUNCTION {SCHEMA}.{guard.name}({guard.takes}) RETURNS {guard.gives} "
            f"LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE {strict} AS $$ BEGIN IF {guard.too_long} THEN "
            f"RAISE EXCEPTION '{refused}' USING ERRCODE = 'program_limit_exceeded'; END IF; "
            f"RETURN {guard.call}; END $$;"
        )
    return "\n".join(lines)


def guard(tree: exp.Expression, cheap_patterns: frozenset[int]) -> None:
    """Change a bound tree so that it can be stopped. `cheap_patterns` are the numbers of parameters that are patterns
    of LIKE and ask for a beginning only."""
    nodes = [node for node in tree.walk() if isinstance(node, exp.Expression)]
    many = sum(map(_is_long, nodes)) > _MANY
    for node in check_each(reversed(nodes)):  # what is inside goes first, because a call takes a copy of it
        if not _guard_call(node, cheap_patterns) and many and _is_long(node):
            replace_node(node, _call("interruptible", node))


def is_cheap_pattern(pattern: object) -> bool:
    """Whether a pattern is compared with the beginning of a text only."""
    return isinstance(pattern, str) and len(pattern) < 1000 and not {"%", "_"} & set(pattern.removesuffix("%"))


def _is_long(node: exp.Expression) -> bool:
    """Whether an expression reads all of a value that may be long, and is no aggregate."""
    if isinstance(node, exp.Anonymous) and node.name.lower() not in functions.scalars:
        return False
    call = node.meta.get("call")
    if call is not None:
        return any(map(_may_be_long, call.takes))
    if isinstance(node, exp.Cast):
        return _may_be_long(type_of(node)) and not isinstance(node.this.unnest(), exp.Literal)
    if isinstance(node, exp.Predicate) and isinstance(node, exp.Binary):
        kind = node.meta.get("operand")
        sides = (node.this.unnest(), node.expression.unnest())
        return isinstance(kind, str) and _may_be_long(kind) and not any(isinstance(side, _CONSTANT) for side in sides)
    return False


def _may_be_long(kind: str) -> bool:
    return kind in _LONG or is_array(kind)


def _guard_call(node: exp.Expression, cheap_patterns: frozenset[int]) -> bool:
    """Let a call go through one of our functions if it can take long."""
    if isinstance(node, exp.Like | exp.ILike):
        return _guard_like(node, cheap_patterns)
    if isinstance(node, exp.Cast) and type_of(node) == "jsonb" and type_of(node.this) == "text":
        replace_node(node, _call(_READ_JSON.name, node.this))
        return True
    call = node.meta.get("call")
    if call is None or call.key not in _BY_KEY:
        return False
    arguments = [node.this, node.expression] if isinstance(node, exp.Binary) else node.expressions
    replace_node(node, _call(_BY_KEY[call.key].name, *arguments))
    return True


def _guard_like(node: exp.Like | exp.ILike, cheap_patterns: frozenset[int]) -> bool:
    """Guard LIKE. PostgreSQL itself compares a column with a constant while they are short: a call costs half a µs."""
    left, right = node.this, node.expression
    pattern = right.unnest()
    if isinstance(pattern, exp.Literal) and is_cheap_pattern(pattern.name):
        return False
    if isinstance(pattern, _PARAMETER) and int(pattern.name) in cheap_patterns:
        return False
    guarded: exp.Expression = _call(_LIKE if isinstance(node, exp.Like) else _ILIKE, left, right)
    if all(isinstance(side.unnest(), (exp.Column, *_CONSTANT)) for side in (left, right)):
        sizes = [exp.Anonymous(this="octet_length", expressions=[side.copy()]) for side in (left, right)]
        product = exp.Mul(this=exp.Cast(this=sizes[0], to=exp.DataType.build("bigint")), expression=sizes[1])
        short = exp.LTE(this=product, expression=exp.Literal.number(_BYTES))
        plain = type(node)(this=left.copy(), expression=right.copy())
        guarded = exp.Case(ifs=[exp.If(this=short, true=plain)], default=guarded)
    replace_node(node, exp.Paren(this=exp.Not(this=guarded)) if node.args.get("negate") else guarded)
    return True


def _call(name: str, *arguments: exp.Expr) -> exp.Expression:
    called = exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])
    return exp.Dot(this=exp.to_identifier(SCHEMA, quoted=True), expression=called)
