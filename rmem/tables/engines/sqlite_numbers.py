"""Compute with numbers as PostgreSQL does: overflow and division by zero are errors, and numeric has as many digits
after the point as PostgreSQL gives it."""

from __future__ import annotations

import math
import operator
import random as rnd
import uuid
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal
from functools import partial
from typing import Any

from ...errors import SqlError
from ..sql.casts import round_half_up
from ..sql.expression_types import INTEGERS, long_name
from ..sql.literals import EXACT, LIMITS, to_float4
from .sqlite_functions import native

ZERO = "division by zero"


# -- whole numbers ---------------------------------------------------------------------------------------------


def _bounded_operation(kind: str, compute: Callable[[int, int], int]) -> Callable[[int, int], int]:
    limit = LIMITS[kind]

    def run(left: int, right: int) -> int:
        value = compute(left, right)
        if -limit <= value < limit:
            return value
        raise SqlError(f"{long_name(kind)} out of range")

    return run


def _quotient(left: int, right: int) -> int:
    if right == 0:
        raise SqlError(ZERO)
    value = abs(left) // abs(right)
    return value if (left < 0) == (right < 0) else -value


def _remainder(left: int, right: int) -> int:
    if right == 0:
        raise SqlError(ZERO)
    return abs(left) % abs(right) if left >= 0 else -(abs(left) % abs(right))


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
for _kind in INTEGERS:
    for _op, _compute in {**_ARITHMETIC, "/": _quotient, "%": _remainder, "mod": _remainder}.items():
        native(f"{_op}({_kind}, {_kind})")(_bounded_operation(_kind, _compute))
    native(f"negative({_kind})")(partial(_bounded_operation(_kind, operator.sub), 0))
    native(f"abs({_kind})")(partial(_bounded_operation(_kind, lambda a, b: abs(b)), 0))


# -- doubles ---------------------------------------------------------------------------------------------------


def check_float(value: float, *inputs: float) -> float:
    if math.isinf(value) and not any(math.isinf(item) for item in inputs):
        raise SqlError("value out of range: overflow")
    if math.isnan(value):
        raise SqlError("the result is not a number")
    return value


def _float_quotient(left: float, right: float) -> float:
    if right == 0:
        raise SqlError(ZERO)
    return left / right


for _op, _compute in {**_ARITHMETIC, "/": _float_quotient}.items():
    native(f"{_op}(float8, float8)", f"{_op}(float4, float8)", f"{_op}(float8, float4)")(
        lambda a, b, run=_compute: check_float(run(a, b), a, b)
    )
    native(f"{_op}(float4, float4)")(lambda a, b, run=_compute: to_float4(check_float(run(a, b), a, b)))
for _kind in ("float4", "float8"):
    native(f"negative({_kind})")(lambda value: -value)
    native(f"abs({_kind})")(abs)


def _float_power(base: float, power: float) -> float:
    if base == 0 and power < 0:
        raise SqlError("zero raised to a negative power is undefined")
    return math.pow(base, power)


def _real(run: Callable[..., float], *keys: str) -> None:
    def call(*values: float) -> float:
        try:
            return run(*values)
        except OverflowError:
            raise SqlError("value out of range: overflow") from None
        except ValueError:
            raise SqlError(DOMAIN.get(keys[0], "input is out of range")) from None

    native(*keys)(call)


DOMAIN = {
    "sqrt(float8)": "cannot take square root of a negative number",
    "ln(float8)": "cannot take logarithm of zero or of a negative number",
    "power(float8, float8)": "a negative number raised to a non-integer power yields a complex result",
}


def _whole(run: Callable[[float], int]) -> Callable[[float], float]:
    def call(value: float) -> float:
        return value if math.isinf(value) else math.copysign(float(run(value)), value)

    return call


for _name, _run in (
    ("ceil", _whole(math.ceil)),
    ("floor", _whole(math.floor)),
    ("round", _whole(round)),
    ("sqrt", math.sqrt),
    ("exp", math.exp),
    ("ln", math.log),
):
    _real(_run, f"{_name}(float8)")
_real(_float_power, "power(float8, float8)", "^(float8, float8)")
native("random()", stable=False)(rnd.random)


@native("gen_random_uuid()", stable=False)
def _uuid4() -> str:
    return str(uuid.uuid4())


# -- numeric ---------------------------------------------------------------------------------------------------


def scale_of(value: Decimal) -> int:
    return max(-int(value.as_tuple().exponent), 0)


def _weight(value: Decimal) -> tuple[int, int]:
    """Return the weight and the first digit of a number in base 10000, as PostgreSQL stores it."""
    if value.is_zero():
        return 0, 0
    weight = value.adjusted() // 4
    return weight, int(abs(value).scaleb(-4 * weight, context=EXACT))


def divide(left: Decimal, right: Decimal) -> Decimal:
    """Divide with at least 16 significant digits, and as many decimals as the operands have."""
    if right.is_zero():
        raise SqlError(ZERO)
    (weight1, first1), (weight2, first2) = _weight(left), _weight(right)
    weight = weight1 - weight2 - (first1 <= first2)
    scale = min(max(16 - weight * 4, scale_of(left), scale_of(right), 0), 1000)
    digits = max(left.adjusted() - right.adjusted(), 0) + scale + 10
    quotient = Context(prec=digits, rounding=ROUND_DOWN).divide(left, right)
    enough = Context(prec=len(quotient.as_tuple().digits) + scale + 20)
    return quotient.quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP, context=enough)


def _check_digits(value: Decimal) -> Decimal:
    if not value.is_zero() and value.adjusted() > 131_071:
        raise SqlError("value overflows numeric format")
    return value


for _op, _compute in {"+": EXACT.add, "-": EXACT.subtract, "*": EXACT.multiply}.items():
    native(f"{_op}(numeric, numeric)")(lambda a, b, run=_compute: _check_digits(run(a, b)))
native("/(numeric, numeric)")(divide)


@native("%(numeric, numeric)", "mod(numeric, numeric)")
def _numeric_remainder(left: Decimal, right: Decimal) -> Decimal:
    if right.is_zero():
        raise SqlError(ZERO)
    scale = max(scale_of(left), scale_of(right))
    return EXACT.remainder(left, right).quantize(Decimal(1).scaleb(-scale), context=EXACT)


native("negative(numeric)")(lambda value: EXACT.minus(value) if value else value)
native("abs(numeric)")(abs)
for _name, _rounding in (("ceil", ROUND_CEILING), ("floor", ROUND_FLOOR)):
    native(f"{_name}(numeric)")(lambda value, how=_rounding: value.quantize(Decimal(1), rounding=how, context=EXACT))
native("round(numeric)")(lambda value: round_half_up(value, 0))


@native("round(numeric, int4)")
def _round_to(value: Decimal, scale: int) -> Decimal:
    return round_half_up(value, min(max(scale, -1000), 1000))
