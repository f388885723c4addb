"""Check the arguments of callers. Each function returns the value in its canonical form or raises an InputError that
names the field, what was expected and what was given. Nothing here knows about stores."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from .errors import InputError, UnknownFieldError, VectorError
from .timewords import time_ago, time_span

Choice = TypeVar("Choice", bound=str)

MAX_TEXT = 4 * 1024 * 1024
MAX_BITS = 1024
MAX_DEPTH = 64
_SMALL = 2**62
_CONTAINERS = (dict, list, tuple)  # a union `dict | list | tuple` would be built again for every check
MAX_NAME = 512
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_STEP = re.compile(r"(?:^|[/\\])\.\.?(?:[/\\]|$)|^[/\\]")  # of a path: "..", ".", or the root
_YEARS = (2, 9998)  # so that every time zone and the end of every day can be represented
_EARLIEST = datetime(_YEARS[0], 1, 1, tzinfo=UTC).timestamp()
_LATEST = datetime(_YEARS[1] + 1, 1, 1, tzinfo=UTC).timestamp()
MIN_DIMENSION, MAX_DIMENSION = 8, 4096


def shown(value: object) -> str:
    """Return the repr of a value for an error message, shortened."""
    try:
        text = repr(value)
    except Exception as error:  # a broken __repr__ of the caller must not hide the real error
        text = f"<{type(value).__name__}, whose repr raised {type(error).__name__}>"
    return text if len(text) <= 80 else f"{text[:77]}…"


def refuse(field: str, expected: str, value: object) -> InputError:
    return InputError(f"{field} must be {expected}, got {shown(value)}", field=field)


def known_fields(kind: str, given: Iterable[object], known: Iterable[str]) -> None:
    """Refuse unknown fields: one that is silently dropped would widen a filter."""
    names = list(known)
    for field in given:
        if field in names:
            continue
        import difflib

        near = difflib.get_close_matches(str(field), names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(names)}"
        raise UnknownFieldError(f"{kind} has no field {shown(field)}{hint}", field=str(field))


def _check_characters(field: str, value: str) -> str:
    if value.isascii() and "\x00" not in value:
        return value
    if "\x00" in value:
        raise InputError(f"{field} must not contain NUL characters (one at {value.index(chr(0))})", field=field)
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"{field} must be valid Unicode, got a lone surrogate at character {error.start}", field=field
        ) from None
    return value


def text(field: str, value: object, *, maximum: int = MAX_TEXT) -> str:
    """Check a text: not blank, valid Unicode, at most `maximum` characters."""
    if not isinstance(value, str):
        raise refuse(field, "a text", value)
    if not value.strip():
        raise InputError(f"{field} must not be empty or only white space, got {shown(value)}", field=field)
    if len(value) > maximum:
        raise InputError(f"{field} must be at most {maximum:,} characters, got {len(value):,}", field=field)
    return _check_characters(field, value)


def name(field: str, value: object, *, maximum: int = MAX_NAME) -> str:
    """Check a short identifier: an agent, a type, a session, a tag."""
    # Fast path: printable text has neither control characters nor lone surrogates.
    if isinstance(value, str) and value.isprintable() and len(value) <= maximum and value.strip():
        return value
    checked = text(field, value, maximum=maximum)
    if _CONTROL.search(checked):
        raise refuse(field, "a name without control characters", value)
    return checked


def memory_id(field: str, value: object) -> str:
    """Check an id, which may contain the whole name of an agent, a step and a time."""
    return name(field, value, maximum=MAX_NAME + 64)


def no_path(field: str, value: str) -> str:
    """Refuse a name that is a path to somewhere else: URLs and file names are made of it."""
    if _STEP.search(value):
        raise refuse(field, "a name that does not begin with / and has no . or .. as a part", value)
    return value


def names(field: str, value: object) -> tuple[str, ...]:
    """Check one name or a list of names."""
    if isinstance(value, str):
        return (name(field, value),)
    if isinstance(value, list | tuple | set | frozenset) and value:
        return tuple(dict.fromkeys(name(field, item) for item in value))
    raise refuse(field, "a name or a non-empty list of names", value)


def number(field: str, value: object, *, low: float = -math.inf, high: float = math.inf) -> float:
    if type(value) is float and math.isfinite(value) and low <= value <= high:
        return value
    span = f" from {low:g} to {high:g}" if math.isfinite(low) and math.isfinite(high) else ""
    if not span and math.isfinite(low):
        span = f" ≥ {low:g}"
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise refuse(field, f"a number{span}", value)
    try:
        result = float(value)
    except OverflowError:
        raise refuse(field, f"a number{span}", value) from None
    if not math.isfinite(result) or not low <= result <= high:
        raise refuse(field, f"a number{span}" if span else "a finite number", value)
    return result


def share(field: str, value: object) -> float:
    """Check a number from 0 to 1."""
    return number(field, value, low=0.0, high=1.0)


def whole(field: str, value: object, *, low: int = 0, high: int = 2**62) -> int:
    if type(value) is int and low <= value <= high:
        return value
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral) or int(value) < low:
        raise refuse(field, f"a whole number ≥ {low}", value)
    if int(value) > high:
        raise refuse(field, f"a whole number from {low} to {high}", value)
    return int(value)


def flag(field: str, value: object) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise refuse(field, "True or False", value)
    return bool(value)


def one_of(field: str, value: object, choices: Sequence[Choice]) -> Choice:
    for choice in choices:
        if isinstance(value, str) and choice == value:
            return choice
    raise refuse(field, "one of " + ", ".join(repr(choice) for choice in choices), value)


def moment(field: str, value: object, *, end_of_day: bool = False) -> float:
    """Convert a datetime, a date, a number, an ISO text or words ("two weeks ago") to seconds since the epoch.

    A datetime without a zone is local time. A bare date, or words that mean a span such as "yesterday", are
    their first instant, or their last with `end_of_day`.
    """
    expected = "a datetime, a date, seconds since the epoch or a text such as '2026-05-01' or 'two weeks ago'"
    if isinstance(value, datetime):
        return _seconds(field, value)
    if isinstance(value, date):
        return _edge(field, value, end_of_day)
    if isinstance(value, str):
        stripped = text(field, value, maximum=200).strip()
        try:
            if len(stripped) == 10:
                return _edge(field, date.fromisoformat(stripped), end_of_day)
            return _seconds(field, datetime.fromisoformat(stripped))
        except ValueError:
            return _read_words(field, stripped, expected, end_of_day)
    if type(value) is not float and (isinstance(value, bool | np.bool_) or not isinstance(value, Real)):
        raise refuse(field, expected, value)
    try:
        return _representable(float(value))
    except (OverflowError, OSError, ValueError):
        raise refuse(field, expected, value) from None


def common_time(field: str, seconds: float) -> float:
    """Refuse a time at either end of the calendar, which other time zones cannot show."""
    if not _EARLIEST <= seconds < _LATEST:
        raise refuse(field, f"a time from the year {_YEARS[0]} to the year {_YEARS[1]}", seconds)
    return seconds


def _representable(seconds: float) -> float:
    datetime.fromtimestamp(seconds)  # refuse what this system cannot show as a date
    return seconds


def _edge(field: str, day: date, end_of_day: bool) -> float:
    start = _seconds(field, datetime.combine(day, time.min))
    if not end_of_day:
        return start
    try:
        return _seconds(field, datetime.combine(day, time.min) + timedelta(days=1)) - 1e-6
    except OverflowError:
        raise refuse(field, "a time that this system can represent", day) from None


def _seconds(field: str, value: datetime) -> float:
    try:
        return _representable(value.timestamp())
    except (OverflowError, OSError, ValueError):
        raise refuse(field, "a time that this system can represent", value) from None


def _read_words(field: str, words: str, expected: str, end: bool) -> float:
    """Parse words as questions do ("last May": its first or last instant), else with dateparser."""
    now = datetime.now()
    exact = time_ago(words, now)
    if exact is not None:
        return _seconds(field, exact)
    span = time_span(words, now)
    if span is not None and span.words == " ".join(words.lower().split()):
        return _seconds(field, span.end - timedelta(microseconds=1) if end else span.start)
    try:
        import dateparser  # an extra of 15 MB that takes 0.2 s to import: only for words that timewords does not know
    except ImportError:
        more = '; `pip install "rmem[dates]"` understands more'
        raise refuse(field, expected + more, words) from None
    found: datetime | None = dateparser.parse(words, languages=["en"], settings={"PREFER_DATES_FROM": "past"})
    if found is None:
        raise refuse(field, expected, words)
    return _seconds(field, found)


def labels(field: str, value: object) -> dict[str, str]:
    """Check tags: names to short texts. Numbers and booleans become text."""
    if not isinstance(value, dict) and not isinstance(value, Mapping):
        raise refuse(field, "a mapping of names to texts", value)
    result = {}
    for key, item in value.items():
        key = name(f"{field} key", key)
        if isinstance(item, bool | int | float):
            item = json.dumps(_json_value(item, (field,), key))
        result[key] = name(f"{field}[{key!r}]", item)
    return result


def wanted_labels(field: str, value: object) -> dict[str, str | tuple[str, ...]]:
    """Check tags to filter by: names to a text, or to a list of texts of which any matches."""
    if not isinstance(value, Mapping):
        raise refuse(field, "a mapping of names to texts or lists of texts", value)
    several = {key: names(f"{field}[{key!r}]", item) for key, item in value.items() if isinstance(item, list | tuple)}
    single = labels(field, {key: item for key, item in value.items() if key not in several})
    return {key: several[key] if key in several else single[key] for key in value}


def json_object(field: str, value: object) -> dict[str, Any]:
    """Check a mapping that JSON can store and return unchanged."""
    if not isinstance(value, dict) and not isinstance(value, Mapping):
        raise refuse(field, "a mapping", value)
    return _json_members(value, (field,))


_PathParts = tuple[Any, ...]
"""A field, and the keys and positions inside it. Joined to a text only for an error, because that is slow."""


def _path_text(where: _PathParts) -> str:
    return str(where[0]) + "".join(f"[{key!r}]" for key in where[1:])


def _json_members(value: Mapping[Any, Any], where: _PathParts) -> dict[str, Any]:
    """Check all members. Most keys and values are plain, and testing that here saves two calls for each."""
    sound = {}
    for key, item in value.items():
        if type(key) is not str or not key.isascii() or "\x00" in key:
            key = _check_key(key, where)
        kind = type(item)
        if (kind is float and math.isfinite(item)) or (kind is int and -_SMALL < item < _SMALL):
            sound[key] = item
        else:
            sound[key] = _json_value(item, where, key)
    return sound


def _check_key(key: object, where: _PathParts) -> str:
    if not isinstance(key, str):
        raise refuse(f"{_path_text(where)} key", "a text", key)
    return _check_characters(f"{_path_text(where)} key", str.__str__(key))


def _json_value(value: Any, where: _PathParts, key: object) -> Any:
    """Check the member `key` of the value at `where`."""
    kind = type(value)
    if kind is float and math.isfinite(value):
        return value
    if kind is int and -_SMALL < value < _SMALL:
        return value
    if kind is str and value.isascii() and "\x00" not in value:
        return value
    return _check_value(value, (*where, key))


def _check_value(value: Any, where: _PathParts) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, _CONTAINERS):
        if len(where) > MAX_DEPTH and value:
            field = _path_text(where)
            raise InputError(f"{field} must not be nested deeper than {MAX_DEPTH} levels", field=field)
        if isinstance(value, dict):
            return _json_members(value, where)
        return [_json_value(item, where, at) for at, item in enumerate(value)]
    if isinstance(value, str):
        return _check_characters(
            _path_text(where), str.__str__(value)
        )  # a plain str, also for a member of a string enumeration
    if isinstance(value, np.generic):
        value = from_numpy(value)
    if isinstance(value, int):
        if value.bit_length() > MAX_BITS:
            raise InputError(
                f"{_path_text(where)} must be a number of at most {MAX_BITS} bits", field=_path_text(where)
            )
        return value if isinstance(value, bool) else int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise refuse(_path_text(where), "a finite number", value)
        return float(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, np.ndarray):
        return _check_value(from_numpy(value), where)
    if isinstance(value, Mapping):
        return _check_value(dict(value), where)
    raise refuse(_path_text(where), "a value that JSON can hold", value)


def from_numpy(value: np.generic | npt.NDArray[Any]) -> Any:
    """Convert a numpy value or array to plain Python."""
    if value.dtype == "datetime64[ns]":  # which numpy would convert to a number
        value = value.astype("datetime64[us]")
    return value.tolist()


def point(field: str, value: object) -> tuple[float, ...]:
    """Check a position of two or three numbers."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, list | tuple) or len(value) not in (2, 3):
        raise refuse(field, "two or three numbers", value)
    return tuple(number(f"{field}[{at}]", item) for at, item in enumerate(value))


def vector(
    field: str, value: object, *, dimension: int | None = None, low: int = MIN_DIMENSION
) -> npt.NDArray[np.float32]:
    """Check a vector of 8 (or `low`) to 4096 finite numbers; return it as float32."""
    try:
        given = np.asarray(value)
        if given.dtype.kind not in "fiu" and given.size:
            raise TypeError
        if given.dtype == np.float32:
            array = given
        else:
            with np.errstate(over="ignore"):
                array = given.astype(np.float32)
    except (TypeError, ValueError, OverflowError):
        raise VectorError(f"{field} must be a list of numbers, got {shown(value)}", field=field) from None
    if array.ndim != 1:
        raise VectorError(f"{field} must have one dimension, got the shape {array.shape}", field=field)
    if dimension is not None and array.size != dimension:
        raise VectorError(f"{field} must have {dimension} numbers, got {array.size}", field=field)
    if not low <= array.size <= MAX_DIMENSION:
        raise VectorError(f"{field} must have {low} to {MAX_DIMENSION} numbers, got {array.size}", field=field)
    if not np.isfinite(array).all():
        raise VectorError(f"{field} must hold finite numbers only, got NaN or infinity", field=field)
    return array
