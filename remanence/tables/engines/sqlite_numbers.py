"""Arithmetic as PostgreSQL does it: overflow and division by zero are errors, numeric is exact with PostgreSQL's
scales."""

from __future__ import annotations

import math
import random as rnd
import uuid
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal
from functools import partial

from ...errors import SqlError
from ..sql.reading import EXACT, LIMITS, to_float4
from ..sql.types import INTEGERS, spelled
from ..sql.writing import round_half_up
from .sqlite_calls import native

_ZERO = "division by zero"


# -- whole numbers ---------------------------------------------------------------------------------------------


def _bounded(kind: str, compute: Callable[[int, int], int]) -> Callable[[int, int], int]:
    limit = LIMITS[kind]

    def run(left: int, right: int) -> int:
        value = compute(left, right)
        if -limit <= value < limit:
            return value
        raise SqlError(f"{spelled(kind)} out of range")

    return run


def _quotient(left: int, right: int) -> int:
    if right == 0:
        raise SqlError(_ZERO)
    value = abs(left) // abs(right)
    return value if (left < 0) == (right < 0) else -value


def _remainder(left: int, right: int) -> int:
    if right == 0:
        raise SqlError(_ZERO)
    return (
        int(math.fmod(left, right))
        if abs(left) < 2**53 and abs(right) < 2**53
        else left - right * _quotient(left, right)
    )


def _shift(kind: str, *, left: bool) -> Callable[[int, int], int]:
    bits = {"int2": 16, "int4": 32, "int8": 64}[kind]

    def run(value: int, count: int) -> int:
        count %= bits if bits != 16 else 32
        shifted = value << count if left else value >> count
        wrapped = shifted & ((1 << bits) - 1)
        return wrapped - (1 << bits) if wrapped >> (bits - 1) else wrapped

    return run


def _lcm(left: int, right: int) -> int:
    return math.lcm(left, right)


for _kind in INTEGERS:
    native(f"+({_kind}, {_kind})")(_bounded(_kind, lambda a, b: a + b))
    native(f"-({_kind}, {_kind})")(_bounded(_kind, lambda a, b: a - b))
    native(f"*({_kind}, {_kind})")(_bounded(_kind, lambda a, b: a * b))
    native(f"/({_kind}, {_kind})")(_bounded(_kind, _quotient))
    native(f"%({_kind}, {_kind})", f"mod({_kind}, {_kind})")(_bounded(_kind, _remainder))
    native(f"#({_kind}, {_kind})")(lambda a, b: a ^ b)
    native(f"<<({_kind}, int4)")(_shift(_kind, left=True))
    native(f">>({_kind}, int4)")(_shift(_kind, left=False))
    native(f"negative({_kind})")(partial(_bounded(_kind, lambda a, b: a - b), 0))
    native(f"abs({_kind})")(partial(_bounded(_kind, lambda a, b: abs(b)), 0))
for _kind in ("int4", "int8"):
    native(f"gcd({_kind}, {_kind})")(_bounded(_kind, math.gcd))
    native(f"lcm({_kind}, {_kind})")(_bounded(_kind, _lcm))


@native("to_hex(int4)")
def _hex4(value: int) -> str:
    return f"{value & 0xFFFFFFFF:x}"


@native("to_hex(int8)")
def _hex8(value: int) -> str:
    return f"{value & 0xFFFFFFFFFFFFFFFF:x}"


@native("factorial(int8)")
def _factorial(value: int) -> Decimal:
    if value < 0:
        raise SqlError("factorial of a negative number is undefined")
    if value > 1000:
        raise SqlError("value overflows numeric format: factorial of more than 1000 is not supported")
    return Decimal(math.factorial(value))


# -- doubles ---------------------------------------------------------------------------------------------------


def checked_float(value: float, *inputs: float) -> float:
    if math.isinf(value) and not any(math.isinf(item) for item in inputs):
        raise SqlError("value out of range: overflow")
    if math.isnan(value):
        raise SqlError("the result is not a number")
    return value


def _float_quotient(left: float, right: float) -> float:
    if right == 0:
        raise SqlError(_ZERO)
    return left / right


_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _float_quotient,
}
for _op, _compute in _ARITHMETIC.items():
    native(f"{_op}(float8, float8)", f"{_op}(float4, float8)", f"{_op}(float8, float4)")(
        lambda a, b, run=_compute: checked_float(run(a, b), a, b)
    )
    native(f"{_op}(float4, float4)")(lambda a, b, run=_compute: to_float4(checked_float(run(a, b), a, b)))
for _kind in ("float4", "float8"):
    native(f"negative({_kind})")(lambda value: -value)
    native(f"abs({_kind})")(abs)


def float_round(value: float) -> float:
    """Half to even."""
    return value if math.isinf(value) or abs(value) >= 2**52 else math.copysign(float(round(value)), value)


def _float_power(base: float, power: float) -> float:
    if base == 0 and power < 0:
        raise SqlError("zero raised to a negative power is undefined")
    if base < 0 and power != math.floor(power):
        raise SqlError("a negative number raised to a non-integer power yields a complex result")
    try:
        return math.pow(base, power)
    except OverflowError:
        raise SqlError("value out of range: overflow") from None


def _real(name: str, run: Callable[[float], float]) -> None:
    def call(value: float) -> float:
        try:
            return run(value)
        except OverflowError:
            raise SqlError("value out of range: overflow") from None
        except ValueError:
            raise SqlError(_DOMAIN.get(name, "input is out of range")) from None

    native(f"{name}(float8)")(call)


_DOMAIN = {
    "sqrt": "cannot take square root of a negative number",
    "ln": "cannot take logarithm of zero or of a negative number",
    "log": "cannot take logarithm of zero or of a negative number",
    "log10": "cannot take logarithm of zero or of a negative number",
}


def _whole(run: Callable[[float], int]) -> Callable[[float], float]:
    def call(value: float) -> float:
        return value if math.isinf(value) else math.copysign(float(run(value)), value)

    return call


for _name, _run in (
    ("ceil", _whole(math.ceil)),
    ("ceiling", _whole(math.ceil)),
    ("floor", _whole(math.floor)),
    ("trunc", _whole(math.trunc)),
    ("round", float_round),
    ("sqrt", math.sqrt),
    ("cbrt", lambda value: math.copysign(_cube_root(abs(value)), value)),
    ("exp", math.exp),
    ("ln", math.log),
    ("log", math.log10),
    ("log10", math.log10),
    ("degrees", math.degrees),
    ("radians", math.radians),
    ("sin", math.sin),
    ("cos", math.cos),
    ("tan", math.tan),
    ("cot", lambda value: 1 / math.tan(value)),
    ("asin", math.asin),
    ("acos", math.acos),
    ("atan", math.atan),
    ("sinh", lambda value: math.sinh(value) if abs(value) < 710 else math.copysign(math.inf, value)),
    ("cosh", lambda value: math.cosh(value) if abs(value) < 710 else math.inf),
    ("tanh", math.tanh),
    ("sign", lambda value: float((value > 0) - (value < 0))),
):
    _real(_name, _run)
native("power(float8, float8)", "pow(float8, float8)", "^(float8, float8)")(_float_power)
native("atan2(float8, float8)")(math.atan2)
native("pi()")(lambda: math.pi)
native("random()", stable=False)(rnd.random)


def _cube_root(value: float) -> float:
    return float(math.cbrt(value))


@native("gen_random_uuid()", "uuidv4()", stable=False)
def _uuid4() -> str:
    return str(uuid.uuid4())


@native("uuidv7()", stable=False)
def _uuid7() -> str:
    import time

    stamp = time.time_ns() // 1_000_000
    value = (stamp << 80) | (7 << 76) | (rnd.getrandbits(12) << 64) | (2 << 62) | rnd.getrandbits(62)
    return str(uuid.UUID(int=value))


@native("width_bucket(float8, float8, float8, int4)")
def _width_bucket(value: float, low: float, high: float, count: int) -> int:
    if count <= 0:
        raise SqlError("count must be greater than zero")
    if low == high:
        raise SqlError("lower bound cannot equal upper bound")
    if low < high:
        return 0 if value < low else count + 1 if value >= high else int((value - low) / (high - low) * count) + 1
    return 0 if value > low else count + 1 if value <= high else int((low - value) / (low - high) * count) + 1


@native("width_bucket(numeric, numeric, numeric, int4)")
def _width_bucket_numeric(value: Decimal, low: Decimal, high: Decimal, count: int) -> int:
    if count <= 0:
        raise SqlError("count must be greater than zero")
    if low == high:
        raise SqlError("lower bound cannot equal upper bound")
    if low < high:
        return 0 if value < low else count + 1 if value >= high else int((value - low) * count / (high - low)) + 1
    return 0 if value > low else count + 1 if value <= high else int((low - value) * count / (low - high)) + 1


# -- numeric ---------------------------------------------------------------------------------------------------


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
        raise SqlError(_ZERO)
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
        raise SqlError(_ZERO)
    scale = max(scale_of(left), scale_of(right))
    return _scaled(EXACT.remainder(left, right), scale)


@native("div(numeric, numeric)")
def _numeric_quotient(left: Decimal, right: Decimal) -> Decimal:
    if right.is_zero():
        raise SqlError(_ZERO)
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
        raise SqlError(_DOMAIN["sqrt"])
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
        raise SqlError(_DOMAIN["ln"])
    return _significant(Context(prec=60).ln(value), _ln_weight(value), scale_of(value))


@native("log(numeric)", "log10(numeric)")
def _log10(value: Decimal) -> Decimal:
    return _log_base(Decimal(10), value)


@native("log(numeric, numeric)")
def _log_base(base: Decimal, value: Decimal) -> Decimal:
    if value <= 0 or base <= 0:
        raise SqlError(_DOMAIN["ln"])
    context = Context(prec=60)
    below = context.ln(base)
    if below.is_zero():
        raise SqlError(_ZERO)
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
