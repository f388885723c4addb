"""to_char and to_number: PostgreSQL's patterns for numbers."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Context, Decimal

from ...errors import SqlError
from ..sql.writing import float_to_numeric
from .sqlite_calls import native

MAX_PATTERN = 10_000


def check_pattern(pattern: str) -> None:
    if len(pattern) > MAX_PATTERN:
        raise SqlError(f"a format may have {MAX_PATTERN:,} characters, this one has {len(pattern):,}")


def number_text(value: Decimal, pattern: str) -> str:
    """A number by a pattern of 9, 0, D, G, S, MI, PL, FM, L and EEEE."""
    check_pattern(pattern)
    fill = "FM" in pattern
    pattern = pattern.replace("FM", "")
    if "EEEE" in pattern:
        return _scientific(value, pattern)
    if "V" in pattern or "RN" in pattern:
        raise SqlError(f"the pattern {pattern!r} of to_char is not supported")
    whole, point, fraction = _split(pattern)
    places = sum(sign in "90" for sign in fraction)
    number = abs(value).quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP, context=Context(prec=400))
    digits, _, decimals = format(number, "f").partition(".")
    negative = value < 0 and not number.is_zero()
    slots = [sign for sign in whole if sign in "90"]
    if len(digits) > len(slots) and not (digits == "0" and not slots):
        return _signed(_overflow(pattern), pattern, negative, fill)
    text = _whole(whole, digits if digits != "0" or not point else "", fill)
    if point:
        shown = decimals
        if fill:
            keep = max((at + 1 for at, sign in enumerate(s for s in fraction if s in "90") if sign == "0"), default=0)
            shown = decimals[:keep] + decimals[keep:].rstrip("0")
        if not text and not shown:
            text = "0"
        text += "." + shown
    return _signed(text, pattern, negative, fill)


def _split(pattern: str) -> tuple[str, str, str]:
    for at, sign in enumerate(pattern):
        if sign in ".D":
            return pattern[:at], ".", pattern[at + 1 :]
    return pattern, "", ""


def _overflow(pattern: str) -> str:
    """A number that does not fit is written as #."""
    text = re.sub(r"[90]", "#", pattern.replace("D", ".").replace("G", ","))
    return re.sub(r"MI|PL|SG|S|L|PR", "", text)


def _whole(pattern: str, digits: str, fill: bool) -> str:
    slots = [sign for sign in pattern if sign in "90,G"]
    count = sum(sign in "90" for sign in slots)
    padded = digits.rjust(count)
    first_zero = next((at for at, sign in enumerate(s for s in slots if s in "90") if sign == "0"), count)
    out = []
    at = 0
    started = False
    for sign in slots:
        if sign in ",G":
            out.append("," if started else ("" if fill else " "))
            continue
        digit = padded[at]
        if digit == " ":
            digit = "0" if at >= first_zero else " "
        if digit != " ":
            started = True
        out.append("" if digit == " " and fill else digit)
        at += 1
    return "".join(out)


def _signed(text: str, pattern: str, negative: bool, fill: bool) -> str:
    if pattern.rstrip().endswith("PR"):
        inner = text.strip()
        return (f"<{inner}>" if negative else (inner if fill else f" {inner} ")).rjust(0 if fill else len(text) + 2)
    if pattern.endswith("MI"):
        return text + ("-" if negative else ("" if fill else " "))
    if pattern.startswith("MI"):
        return ("-" if negative else ("" if fill else " ")) + text
    if pattern.endswith("S"):
        return text + ("-" if negative else "+")
    stripped = text.lstrip(" ")
    pad = text[: len(text) - len(stripped)]
    if pattern.startswith(("S", "SG")):
        return pad + ("-" if negative else "+") + stripped
    if pattern.startswith("PL"):
        return (("-" if negative else "+") + text) if not negative else "-" + text
    mark = "-" if negative else ("" if fill else " ")
    return pad + mark + stripped


def _scientific(value: Decimal, pattern: str) -> str:
    _, _, fraction = _split(pattern)
    places = sum(sign in "90" for sign in fraction)
    text = f"{value:.{places}e}"
    mantissa, _, exponent = text.partition("e")
    sign = "" if value < 0 else " "
    return f"{sign}{mantissa}e{exponent[0]}{int(exponent[1:]):02d}"


native("to_char(numeric, text)")(number_text)
native("to_char(int4, text)", "to_char(int8, text)")(lambda value, pattern: number_text(Decimal(value), pattern))
native("to_char(float8, text)")(lambda value, pattern: number_text(float_to_numeric(value, 15), pattern))


@native("to_number(text, text)")
def _to_number(text: str, pattern: str) -> Decimal:
    check_pattern(pattern)
    _, _, fraction = _split(pattern)
    kept = re.sub(r"[^0-9.+-]", "", text)
    negative = "-" in kept or ("<" in text and "PR" in pattern)
    digits = kept.replace("-", "").replace("+", "")
    if not re.fullmatch(r"\d*\.?\d*", digits) or digits in ("", "."):
        raise SqlError(f'invalid input syntax for type numeric: "{text}"')
    value = Decimal(digits)
    places = sum(sign in "90" for sign in fraction)
    value = value.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP, context=Context(prec=400))
    return -value if negative else value
