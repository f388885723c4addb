"""Functions of texts, on Python's strings; letters change case one by one, as in PostgreSQL's C.UTF-8."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any

from ...errors import SqlError
from ..sql.reading import read
from ..sql.writing import text_of
from .sqlite_calls import native

MAX_TEXT = 64_000_000
"""The longest text that a function may make."""


def lower(text: str) -> str:
    changed = text.lower()
    return changed if len(changed) == len(text) else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def upper(text: str) -> str:
    changed = text.upper()
    return changed if len(changed) == len(text) else "".join(c.upper() if len(c.upper()) == 1 else c for c in text)


native("lower(text)")(lower)
native("upper(text)")(upper)


@native("initcap(text)")
def _initcap(text: str) -> str:
    return re.sub(r"[^\W_]+", lambda found: upper(found[0][0]) + lower(found[0][1:]), text)


def _sized(length: int) -> int:
    if length > MAX_TEXT:
        raise SqlError("requested length too large")
    return length


native("octet_length(text)")(lambda text: len(text.encode()))
native("bit_length(text)")(lambda text: len(text.encode()) * 8)
native("length(bytea)", "octet_length(bytea)")(len)
native("bit_length(bytea)")(lambda data: len(data) * 8)


@native("concat(any)", strict=False, kinds=True)
def _concat(kinds: tuple[str, ...], *values: Any) -> str:
    return "".join(_shown(value, kind) for value, kind in zip(values, kinds, strict=True) if value is not None)


@native("concat_ws(text, any)", strict=False, kinds=True)
def _concat_ws(kinds: tuple[str, ...], separator: str | None, *values: Any) -> str | None:
    if separator is None:
        return None
    pairs = zip(values, kinds[1:], strict=True)
    return separator.join(_shown(value, kind) for value, kind in pairs if value is not None)


def _shown(value: Any, kind: str) -> str:
    """As functions print values: booleans are t and f."""
    return ("t" if value else "f") if kind == "bool" else text_of(value, kind)


native("||(bytea, bytea)")(lambda left, right: left + right)


@native("left(text, int4)")
def _left(text: str, count: int) -> str:
    return text[:count] if count >= 0 else text[: max(len(text) + count, 0)]


@native("right(text, int4)")
def _right(text: str, count: int) -> str:
    if count >= 0:
        return text[max(len(text) - count, 0) :]
    return text[-count:]


@native("lpad(text, int4)", "lpad(text, int4, text)")
def _lpad(text: str, length: int, fill: str = " ") -> str:
    length = max(_sized(length), 0)
    missing = length - len(text)
    if missing <= 0 or not fill:
        return text[:length]
    return (fill * (missing // len(fill) + 1))[:missing] + text


@native("rpad(text, int4)", "rpad(text, int4, text)")
def _rpad(text: str, length: int, fill: str = " ") -> str:
    length = max(_sized(length), 0)
    missing = length - len(text)
    if missing <= 0 or not fill:
        return text[:length]
    return text + (fill * (missing // len(fill) + 1))[:missing]


native("btrim(text)", "btrim(text, text)")(lambda text, signs=" ": text.strip(signs) if signs else text)
native("ltrim(text)", "ltrim(text, text)")(lambda text, signs=" ": text.lstrip(signs) if signs else text)
native("rtrim(text)", "rtrim(text, text)")(lambda text, signs=" ": text.rstrip(signs) if signs else text)


@native("repeat(text, int4)")
def _repeat(text: str, count: int) -> str:
    _sized(len(text) * max(count, 0))
    return text * max(count, 0)


@native("replace(text, text, text)")
def _replace(text: str, old: str, new: str) -> str:
    if not old:
        return text
    _sized(len(text) + text.count(old) * (len(new) - len(old)))
    return text.replace(old, new)


native("reverse(text)")(lambda text: text[::-1])


@native("split_part(text, text, int4)")
def _split_part(text: str, separator: str, at: int) -> str:
    if at == 0:
        raise SqlError("field position must not be zero")
    parts = text.split(separator) if separator else [text]
    at = at - 1 if at > 0 else at + len(parts)
    return parts[at] if 0 <= at < len(parts) else ""


native("strpos(text, text)")(lambda text, part: text.find(part) + 1)
native("starts_with(text, text)", "^@(text, text)")(lambda text, part: text.startswith(part))


@native("substr(text, int4)", "substring(text, int4)")
def _substr(text: str, start: int) -> str:
    return text[max(start - 1, 0) :]


@native("substr(text, int4, int4)", "substring(text, int4, int4)")
def _substr_of(text: str, start: int, count: int) -> str:
    if count < 0:
        raise SqlError("negative substring length not allowed")
    end = start - 1 + count
    return text[max(start - 1, 0) : max(end, 0)]


@native("translate(text, text, text)")
def _translate(text: str, signs: str, others: str) -> str:
    table: dict[int, str | None] = {}
    for at, sign in enumerate(signs):
        table.setdefault(ord(sign), others[at] if at < len(others) else None)
    return text.translate(table)


native("ascii(text)")(lambda text: ord(text[0]) if text else 0)


@native("chr(int4)")
def _chr(code: int) -> str:
    if code == 0:
        raise SqlError("null character not permitted")
    if not 0 < code <= 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise SqlError(f"requested character too large or not valid for encoding: {code}")
    return chr(code)


native("md5(text)")(lambda text: hashlib.md5(text.encode(), usedforsecurity=False).hexdigest())
native("md5(bytea)")(lambda data: hashlib.md5(data, usedforsecurity=False).hexdigest())
for _bits in (224, 256, 384, 512):
    native(f"sha{_bits}(bytea)")(lambda data, name=f"sha{_bits}": hashlib.new(name, data).digest())


@native("encode(bytea, text)")
def _encode(data: bytes, form: str) -> str:
    if form.lower() == "hex":
        return data.hex()
    if form.lower() == "base64":
        text = base64.b64encode(data).decode()
        return "\n".join(text[at : at + 76] for at in range(0, len(text), 76))
    if form.lower() == "escape":
        return "".join("\\\\" if code == 92 else chr(code) if 0 < code < 128 else f"\\{code:03o}" for code in data)
    raise SqlError(f'unrecognized encoding: "{form}"')


@native("decode(text, text)")
def _decode(text: str, form: str) -> bytes:
    try:
        if form.lower() == "hex":
            return bytes.fromhex(text)
        if form.lower() == "base64":
            return base64.b64decode(re.sub(r"\s", "", text), validate=True)
    except ValueError:
        raise SqlError(f"invalid {form} data") from None
    if form.lower() == "escape":
        return bytes(read(text, "bytea"))
    raise SqlError(f'unrecognized encoding: "{form}"')


def _utf8(name: str) -> None:
    if name.upper().replace("-", "") != "UTF8":
        raise SqlError(f'encoding "{name}" is not supported; UTF8 is')


@native("convert_from(bytea, text)")
def _convert_from(data: bytes, encoding: str) -> str:
    _utf8(encoding)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise SqlError('invalid byte sequence for encoding "UTF8"') from None
    if "\x00" in text:
        raise SqlError('invalid byte sequence for encoding "UTF8": 0x00')
    return text


@native("convert_to(text, text)")
def _convert_to(text: str, encoding: str) -> bytes:
    _utf8(encoding)
    return text.encode()


@native("overlay(text, text, int4)", "overlay(text, text, int4, int4)")
def _overlay(text: str, new: str, start: int, count: int | None = None) -> str:
    if start <= 0:
        raise SqlError("negative substring length not allowed")
    count = len(new) if count is None else count
    return text[: start - 1] + new + text[max(start - 1 + count, 0) :]


def quoted_literal(text: str) -> str:
    inner = text.replace("'", "''")
    return f" E'{inner.replace(chr(92), chr(92) * 2)}'".lstrip() if "\\" in inner else f"'{inner}'"


def quoted_name(text: str) -> str:
    if re.fullmatch(r"[a-z_][a-z0-9_$]*", text) and text not in _KEYWORDS:
        return text
    return '"' + text.replace('"', '""') + '"'


_KEYWORDS = frozenset(
    "all and any array as asc case cast check column constraint create current_date default desc distinct do else end "
    "except false fetch for foreign from grant group having in initially intersect into limit not null offset on only "
    "or order primary references select session_user some table then to true union unique user using when where window "
    "with".split()
)
native("quote_literal(text)")(quoted_literal)
native("quote_nullable(text)", strict=False)(lambda text: "NULL" if text is None else quoted_literal(text))
native("quote_ident(text)")(quoted_name)
_FORMAT = re.compile(r"%(?:(\d+)\$)?(-)?(\d+|\*)?([sIL%])?")


@native("format(text, any)", "format(text)", strict=False, kinds=True)
def _format(kinds: tuple[str, ...], pattern: str | None, *values: Any) -> str | None:
    if pattern is None:
        return None
    place = 0

    def one(found: re.Match[str]) -> str:
        nonlocal place
        number, left, width, form = found.groups()
        if form == "%":
            return "%"
        if form is None or width == "*":
            raise SqlError('unrecognized format() type specifier; use "%%" for a single "%"')
        place = int(number) if number else place + 1
        if not 1 <= place <= len(values):
            raise SqlError("too few arguments for format()")
        value, kind = values[place - 1], kinds[place]
        if form == "s":
            text = "" if value is None else _shown(value, kind)
        elif form == "I":
            if value is None:
                raise SqlError("null values cannot be formatted as an SQL identifier")
            text = quoted_name(_shown(value, kind))
        else:
            text = "NULL" if value is None else quoted_literal(_shown(value, kind))
        size = _sized(int(width)) if width else 0
        return text.ljust(size) if left else text.rjust(size)

    return _FORMAT.sub(one, pattern)


native("num_nulls(any)", strict=False)(lambda *values: sum(value is None for value in values))
native("num_nonnulls(any)", strict=False)(lambda *values: sum(value is not None for value in values))
native("deeplake_sync_table(text)")(lambda name: name)
