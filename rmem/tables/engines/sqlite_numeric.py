"""Numeric: exact decimals, with as many digits after the point as PostgreSQL gives them."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal

from ...errors import SqlError
from ..sql.casts import round_half_up
from ..sql.literals import EXACT
from .sqlite_calls import native
from .sqlite_numbers import ZERO


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


native("negative(numeric)")(lambda value: EXACT.minus(value) if value else value)
native("abs(numeric)")(lambda value: abs(value))
for _name, _rounding in (("ceil", ROUND_CEILING), ("floor", ROUND_FLOOR)):
    native(f"{_name}(numeric)")(lambda value, how=_rounding: value.quantize(Decimal(1), rounding=how, context=EXACT))
native("round(numeric)")(lambda value: round_half_up(value, 0))


@native("round(numeric, int4)")
def _round_to(value: Decimal, scale: int) -> Decimal:
    return round_half_up(value, min(max(scale, -1000), 1000))


def numeric_sqrt(value: Decimal, scale: int) -> Decimal:
    digits = max(value.adjusted() // 2, 0) + scale + 12
    return _scaled(Context(prec=digits).sqrt(value), scale)
