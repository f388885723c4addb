"""Whole numbers and doubles as PostgreSQL computes them: overflow and division by zero are errors."""

from __future__ import annotations

import math
import random as rnd
import uuid
from collections.abc import Callable
from decimal import Decimal
from functools import partial

from ...errors import SqlError
from ..sql.reading import LIMITS, to_float4
from ..sql.types import INTEGERS, spelled
from .sqlite_calls import native

ZERO = "division by zero"


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
        raise SqlError(ZERO)
    value = abs(left) // abs(right)
    return value if (left < 0) == (right < 0) else -value


def _remainder(left: int, right: int) -> int:
    if right == 0:
        raise SqlError(ZERO)
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
        raise SqlError(ZERO)
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
            raise SqlError(DOMAIN.get(name, "input is out of range")) from None

    native(f"{name}(float8)")(call)


DOMAIN = {
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
