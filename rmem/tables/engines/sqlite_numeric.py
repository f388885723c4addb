"""Numeric: exact decimals, with as many digits after the point as PostgreSQL gives them."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal

from ...errors import SqlError
from ..sql.reading import EXACT
from ..sql.writing import round_half_up
from .sqlite_calls import native
from .sqlite_numbers import DOMAIN, ZERO


@native("width_bucket(numeric, numeric, numeric, int4)")
def _width_bucket_numeric(value: Decimal, low: Decimal, high: Decimal, count: int) -> int:
    if count <= 0:
        raise SqlError("count must be greater than zero")
    if low == high:
        raise SqlError("lower bound cannot equal upper bound")
    if low < high:
        return 0 if value < low else count + 1 if value >= high else int((value - low) * count / (high - low)) + 1
    return 0 if value > low else count + 1 if value <= high else int((low - value) * count / (low - high)) + 1


def scale_of(value: Decimal) -> int:
    return max(-int(value.as_tuple().exponent), 0)


def _weight(value: Decimal) -> tuple[int, int]:
    """The weight and the first digit of a number in base 10000, as PostgreSQL keeps it."""
    if value.is_zero():
        return 0, 0
    weight = value.adjusted() // 4
    return weight, int(abs(value).scaleb(-4 * weight, context=EXACT))


def select_scale(left: Decimal, right: Decimal) -> int:
    """How many decimals a quotient has: at least 16 significant digits, and no fewer than its operands."""
    weight1, first1 = _weight(left)
    weight2, first2 = _weight(right)
    weight = weight1 - weight2 - (1 if first1 <= first2 else 0)
    return min(max(16 - weight * 4, scale_of(left), scale_of(right), 0), 1000)


def divide(left: Decimal, right: Decimal, scale: int | None = None) -> Decimal:
    if right.is_zero():
        raise SqlError(ZERO)
    scale = select_scale(left, right) if scale is None else scale
    digits = max(left.adjusted() - right.adjusted(), 0) + scale + 10
    return _rounded(Context(prec=digits, rounding=ROUND_DOWN).divide(left, right), left, right, scale)


def _rounded(quotient: Decimal, left: Decimal, right: Decimal, scale: int) -> Decimal:
    return quotient.quantize(
        Decimal(1).scaleb(-scale),
        rounding=ROUND_HALF_UP,
        context=Context(prec=len(quotient.as_tuple().digits) + scale + 20),
    )


def _limited(value: Decimal) -> Decimal:
    if not value.is_zero() and value.adjusted() > 131_071:
        raise SqlError("value overflows numeric format")
    return value


def _scaled(value: Decimal, scale: int) -> Decimal:
    exponent = int(value.as_tuple().exponent)
    return (
        value
        if exponent == -scale
        else value.quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP, context=EXACT)
    )


@native("+(numeric, numeric)")
def _add(left: Decimal, right: Decimal) -> Decimal:
    return _limited(EXACT.add(left, right))


@native("-(numeric, numeric)")
def _subtract(left: Decimal, right: Decimal) -> Decimal:
    return _limited(EXACT.subtract(left, right))


@native("*(numeric, numeric)")
def _multiply(left: Decimal, right: Decimal) -> Decimal:
    return _limited(EXACT.multiply(left, right))


native("/(numeric, numeric)")(lambda left, right: divide(left, right))


@native("%(numeric, numeric)", "mod(numeric, numeric)")
def _numeric_remainder(left: Decimal, right: Decimal) -> Decimal:
    if right.is_zero():
        raise SqlError(ZERO)
    scale = max(scale_of(left), scale_of(right))
    return _scaled(EXACT.remainder(left, right), scale)


@native("div(numeric, numeric)")
def _numeric_quotient(left: Decimal, right: Decimal) -> Decimal:
    if right.is_zero():
        raise SqlError(ZERO)
    return EXACT.divide_int(left, right)


native("negative(numeric)")(lambda value: EXACT.minus(value) if value else value)
native("abs(numeric)")(lambda value: abs(value))
native("sign(numeric)")(lambda value: Decimal((value > 0) - (value < 0)))
native("scale(numeric)")(scale_of)


@native("trim_scale(numeric)")
def _trim_scale(value: Decimal) -> Decimal:
    trimmed = value.normalize(EXACT)
    return trimmed.quantize(Decimal(1), context=EXACT) if int(trimmed.as_tuple().exponent) > 0 else trimmed


for _names, _rounding in ((("ceil", "ceiling"), ROUND_CEILING), (("floor",), ROUND_FLOOR), (("trunc",), ROUND_DOWN)):
    native(*(f"{name}(numeric)" for name in _names))(
        lambda value, how=_rounding: value.quantize(Decimal(1), rounding=how, context=EXACT)
    )
native("round(numeric)")(lambda value: round_half_up(value, 0))


@native("round(numeric, int4)")
def _round_to(value: Decimal, scale: int) -> Decimal:
    return round_half_up(value, min(max(scale, -1000), 1000))


@native("trunc(numeric, int4)")
def _trunc_to(value: Decimal, scale: int) -> Decimal:
    if scale >= 0:
        return value.quantize(Decimal(1).scaleb(-min(scale, 1000)), rounding=ROUND_DOWN, context=EXACT)
    shifted = value.scaleb(scale, context=EXACT).quantize(Decimal(1), rounding=ROUND_DOWN, context=EXACT)
    return shifted.scaleb(-scale, context=EXACT).quantize(Decimal(1), context=EXACT)


def numeric_sqrt(value: Decimal, scale: int) -> Decimal:
    digits = max(value.adjusted() // 2, 0) + scale + 12
    return _scaled(Context(prec=digits).sqrt(value), scale)


@native("sqrt(numeric)")
def _sqrt(value: Decimal) -> Decimal:
    if value < 0:
        raise SqlError(DOMAIN["sqrt"])
    weight, _ = _weight(value)
    half = weight * 4 // 2 + 1 if weight >= 0 else 1 - (1 - weight * 4) // 2
    return numeric_sqrt(value, min(max(16 - half, scale_of(value), 0), 1000))


def _significant(value: Decimal, weight: int, scale: int) -> Decimal:
    return _scaled(value, min(max(16 - weight, scale, 0), 1000))


@native("exp(numeric)")
def _exp(value: Decimal) -> Decimal:
    weight = int(float(value) * 0.434294481903252)
    if weight > 2000:
        raise SqlError("value overflows numeric format")
    result = Context(prec=max(weight, 0) + 60).exp(value)
    return _significant(result, weight, scale_of(value))


def _ln_weight(value: Decimal) -> int:
    """How many digits a logarithm has before its point, roughly."""
    away = abs(float(value - 1))
    if away <= 0.1:  # the logarithm is about as far from 0 as the value is from 1
        return math.floor(math.log10(away)) if away else 0
    return int(math.log10(abs(float(Context(prec=20).ln(value)))))


@native("ln(numeric)")
def _ln(value: Decimal) -> Decimal:
    if value <= 0:
        raise SqlError(DOMAIN["ln"])
    return _significant(Context(prec=60).ln(value), _ln_weight(value), scale_of(value))


@native("log(numeric)", "log10(numeric)")
def _log10(value: Decimal) -> Decimal:
    return _log_base(Decimal(10), value)


@native("log(numeric, numeric)")
def _log_base(base: Decimal, value: Decimal) -> Decimal:
    if value <= 0 or base <= 0:
        raise SqlError(DOMAIN["ln"])
    context = Context(prec=60)
    below = context.ln(base)
    if below.is_zero():
        raise SqlError(ZERO)
    result = context.divide(context.ln(value), below)
    weight = _ln_weight(value) - _ln_weight(base)
    return _significant(result, weight, max(scale_of(base), scale_of(value)))


@native("power(numeric, numeric)", "pow(numeric, numeric)", "^(numeric, numeric)")
def _power(base: Decimal, power: Decimal) -> Decimal:
    if base.is_zero() and power < 0:
        raise SqlError("zero raised to a negative power is undefined")
    whole = power == power.to_integral_value()
    if base < 0 and not whole:
        raise SqlError("a negative number raised to a non-integer power yields a complex result")
    if power.is_zero():
        return _scaled(Decimal(1), min(max(16, scale_of(base), scale_of(power)), 1000))
    weight = float(power) * math.log10(abs(float(base))) if base else 0.0
    if weight > 1500:
        raise SqlError("value overflows numeric format")
    digits = max(int(weight), 0) + 60
    result = Context(prec=digits + 1000 if whole and abs(power) < 1000 else digits).power(base, power)
    return _significant(result, int(weight), max(scale_of(base), scale_of(power)))
