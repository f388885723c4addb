"""The functions and operators that statements may use, with PostgreSQL's names and types. Unlisted ones are refused."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from ...errors import SqlError, SqlUnsupportedError
from .expression_types import INTEGERS, NUMBERS, UNKNOWN, element, is_array, is_implicit, long_name
from .scope import unsupported

_GROUPS = {
    "exact*": (*INTEGERS, "numeric"),
    "float*": ("float4", "float8"),
    "number*": NUMBERS,
    "ordered*": (*NUMBERS, "text", "date", "timestamp", "timestamptz", "time", "interval"),
    "stamp*": ("timestamp", "timestamptz"),
}
"""Words that stand for several types: `abs(number*) number*` is one signature for each of them."""

SCALARS = """
abs(number*) number*; ceil(numeric) numeric; ceil(float8) float8; floor(numeric) numeric; floor(float8) float8
round(numeric) numeric; round(float8) float8; round(numeric, int4) numeric; mod(exact*, exact*) exact*
power(float8, float8) float8; sqrt(float8) float8; exp(float8) float8; ln(float8) float8; random() float8
length(text) int4; lower(text) text; upper(text) text; concat(any...) text; concat_ws(text, any...) text
left(text, int4) text; right(text, int4) text; btrim(text) text; btrim(text, text) text
ltrim(text) text; ltrim(text, text) text; rtrim(text) text; rtrim(text, text) text
replace(text, text, text) text; split_part(text, text, int4) text; strpos(text, text) int4
substr(text, int4) text; substr(text, int4, int4) text; substring(text, int4) text
substring(text, int4, int4) text; starts_with(text, text) bool
regexp_replace(text, text, text) text; regexp_replace(text, text, text, text) text
regexp_match(text, text) text[]; regexp_match(text, text, text) text[]
string_to_array(text, text) text[]; string_to_array(text, text, text) text[]
array_to_string(anyarray, text) text; array_to_string(anyarray, text, text) text
now() timestamptz; to_timestamp(float8) timestamptz
date_trunc(text, timestamptz) timestamptz; date_trunc(text, timestamp) timestamp
timezone(text, timestamptz) timestamp; timezone(text, timestamp) timestamptz
jsonb_build_object(any...) jsonb; jsonb_build_array(any...) jsonb; jsonb_build_object() jsonb
jsonb_build_array() jsonb; to_jsonb(any) jsonb; jsonb_typeof(jsonb) text; jsonb_array_length(jsonb) int4
jsonb_set(jsonb, text[], jsonb) jsonb; jsonb_set(jsonb, text[], jsonb, bool) jsonb; gen_random_uuid() uuid
array_length(anyarray, int4) int4; cardinality(anyarray) int4; array_append(anyarray, anyelement) anyarray
array_position(anyarray, anyelement) int4; array_remove(anyarray, anyelement) anyarray
coalesce(anyelement...) anyelement; nullif(anyelement, anyelement) anyelement; greatest(anyelement...) anyelement
least(anyelement...) anyelement
cosine_similarity(float4[], float4[]) float8; bm25_similarity(text, text) float8; deeplake_sync_table(text) text
"""

AGGREGATES = """
count() int8; count(any) int8; sum(int2) int8; sum(int4) int8; sum(int8) numeric; sum(numeric) numeric
sum(float*) float*; sum(interval) interval; avg(exact*) numeric; avg(float*) float8; avg(interval) interval
min(ordered*) ordered*; max(ordered*) ordered*; bool_and(bool) bool; bool_or(bool) bool; string_agg(text, text) text
array_agg(anyelement) anyelement[]; jsonb_agg(any) jsonb; jsonb_object_agg(any, any) jsonb
stddev(float8) float8; variance(float8) float8
"""

WINDOWS = """
row_number() int8; rank() int8; dense_rank() int8; ntile(int4) int4
lag(anyelement) anyelement; lag(anyelement, int4) anyelement; lag(anyelement, int4, anyelement) anyelement
lead(anyelement) anyelement; lead(anyelement, int4) anyelement; lead(anyelement, int4, anyelement) anyelement
first_value(anyelement) anyelement; last_value(anyelement) anyelement
"""

SETS = """
generate_series(int4, int4) int4; generate_series(int4, int4, int4) int4; generate_series(int8, int8) int8
generate_series(int8, int8, int8) int8; generate_series(stamp*, stamp*, interval) stamp*
unnest(anyarray) anyelement; jsonb_array_elements(jsonb) jsonb; jsonb_array_elements_text(jsonb) text
jsonb_object_keys(jsonb) text; jsonb_each(jsonb) record; jsonb_each_text(jsonb) record
"""

_INSTEAD = {
    "ceiling": "ceil", "char_length": "length", "character_length": "length", "clock_timestamp": "now",
    "date_part": "extract", "every": "bool_and", "pow": "power", "row_to_json": "to_jsonb",
    "statement_timestamp": "now", "stddev_samp": "stddev", "to_json": "to_jsonb", "transaction_timestamp": "now",
    "uuidv4": "gen_random_uuid", "var_samp": "variance",
}  # fmt: skip


def unknown_function(name: str) -> SqlUnsupportedError:
    """Return the error for an unlisted function."""
    instead = _INSTEAD.get(name, name.replace("json_", "jsonb_", 1) if name.startswith("json_") else "")
    known = instead in scalars or instead in aggregates or instead in sets or instead == "extract"
    hint = f"use {instead}()" if known else "docs/tables.md lists the functions that there are"
    return SqlUnsupportedError(f"function {name}() is not supported here; {hint}")


_TRUNCATED = frozenset("second minute hour day week month quarter year".split())
_UNITS = {"date_trunc": _TRUNCATED, "extract": _TRUNCATED | {"epoch", "dow", "isodow", "doy"}}


def check_unit(function: str, unit: str) -> None:
    """Refuse an unknown field of a time."""
    known = _UNITS[function]
    if unit not in known:
        instead = f"There are {', '.join(sorted(known))}"
        raise SqlUnsupportedError(f'unit "{unit}" of {function}() is not supported here. {instead}')


SET_COLUMNS: dict[str, tuple[tuple[str, str], ...]] = {
    "jsonb_each": (("key", "text"), ("value", "jsonb")),
    "jsonb_each_text": (("key", "text"), ("value", "text")),
    "jsonb_array_elements": (("value", "jsonb"),),
    "jsonb_array_elements_text": (("value", "text"),),
}
"""The columns of functions in FROM that are not named after the function."""

OPERATORS = """
+(number*, number*) number*; +(float4, float8) float8; +(float8, float4) float8; +(date, int4) date; +(int4, date) date
+(date, interval) timestamp; +(interval, date) timestamp; +(stamp*, interval) stamp*; +(interval, stamp*) stamp*
+(interval, interval) interval
-(number*, number*) number*; -(float4, float8) float8; -(float8, float4) float8; -(date, int4) date; -(date, date) int4
-(date, interval) timestamp; -(stamp*, interval) stamp*; -(stamp*, stamp*) interval
-(interval, interval) interval; -(jsonb, text) jsonb
*(number*, number*) number*; *(float4, float8) float8; *(float8, float4) float8
*(interval, float8) interval; *(float8, interval) interval
/(number*, number*) number*; /(float4, float8) float8; /(float8, float4) float8
%(exact*, exact*) exact*; ^(float8, float8) float8
||(text, text) text; ||(text, anynonarray) text; ||(anynonarray, text) text; ||(jsonb, jsonb) jsonb
||(anyarray, anyarray) anyarray; ||(anyarray, anyelement) anyarray; ||(anyelement, anyarray) anyarray
->(jsonb, text) jsonb; ->(jsonb, int4) jsonb; ->>(jsonb, text) text; ->>(jsonb, int4) text
#>(jsonb, text[]) jsonb; #>>(jsonb, text[]) text; @>(jsonb, jsonb) bool
@>(anyarray, anyarray) bool; ?(jsonb, text) bool; &&(anyarray, anyarray) bool; ~(text, text) bool
~*(text, text) bool; !~(text, text) bool; !~*(text, text) bool; <->(float4[], float4[]) float8
"""

TEXT_JOINS = ("||(text, text)", "||(text, anynonarray)", "||(anynonarray, text)")
"""The signatures of `||` that join texts."""

UNARIES = "-(number*) number*; -(interval) interval"


@dataclass(frozen=True, slots=True)
class Signature:
    """One signature of a function. `key` names it for engines: `round(numeric, int4)`."""

    name: str
    takes: tuple[str, ...]
    gives: str
    variadic: bool = False

    @property
    def key(self) -> str:
        return f"{self.name}({', '.join(self.takes)})"


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A resolved call: the signature and the types of its arguments."""

    signature: Signature
    takes: tuple[str, ...]
    gives: str

    @property
    def key(self) -> str:
        return self.signature.key


def _read(text: str) -> dict[str, list[Signature]]:
    known: dict[str, list[Signature]] = defaultdict(list)
    for entry in text.strip().replace("\n", ";").split(";"):
        group = next((word for word in _GROUPS if word in entry), "")
        for kind in _GROUPS.get(group, ("",)):
            head, _, gives = (entry.replace(group, kind) if group else entry).strip().rpartition(" ")
            name, _, inside = head.rstrip(")").partition("(")
            takes = tuple(part.strip() for part in inside.split(",") if part.strip())
            variadic = bool(takes) and takes[-1].endswith("...")
            takes = tuple(part.removesuffix("...") for part in takes)
            known[name].append(Signature(name, takes, gives, variadic))
    return dict(known)


scalars = _read(SCALARS)
aggregates = _read(AGGREGATES)
windows = _read(WINDOWS)
sets = _read(SETS)
operators = _read(OPERATORS)
unaries = _read(UNARIES)

_OF_DOUBLES = ("power", "^", "sqrt", "exp", "ln")
_PREFERRED = ("float8", "text", "timestamptz", "bool", "interval")


def resolve(known: dict[str, list[Signature]], name: str, given: list[str], shown: str = "") -> FunctionCall:
    """Choose the best signature, as PostgreSQL does."""
    signatures = known.get(name)
    if signatures is None:
        raise unknown_function(name)
    if name in _OF_DOUBLES and "numeric" in given and not {"float4", "float8"} & set(given):
        raise unsupported(f"{name} of numeric", "Cast to double precision: (…)::float8")
    if name == "substring" and given[1:] in (["text"], [UNKNOWN]):
        raise unsupported("substring() with a pattern", "Use regexp_match()")
    best: tuple[float, FunctionCall] | None = None
    for signature in signatures:
        fit = _fits(signature, given)
        if fit is not None and (best is None or fit[0] < best[0]):
            best = fit
    if best is None:
        if name == "to_timestamp" and len(given) == 2:
            raise unsupported("to_timestamp() with a pattern")
        types = ", ".join(long_name(name) for name in given)
        ways = " or ".join(f"({', '.join(map(long_name, signature.takes))})" for signature in signatures[:6])
        raise SqlError(shown or f"function {name}({types}) does not exist here; it takes {ways}")
    return best[1]


def _fits(signature: Signature, given: list[str]) -> tuple[float, FunctionCall] | None:
    """Return how far arguments are from a signature, and the call with its types filled in."""
    takes = signature.takes
    if signature.variadic:
        if len(given) < len(takes):
            return None
        takes = takes[:-1] + takes[-1:] * (len(given) - len(takes) + 1)
    if len(given) != len(takes):
        return None
    bound = _element_type(takes, given)
    if bound is None:
        return None
    distance = 0.0
    wanted = []
    for take, have in zip(takes, given, strict=True):
        want = _fill_type(take, bound, have)
        if take == "anynonarray" and is_array(have):
            return None
        if have == want:
            distance += 0.3 if take.startswith("any") else 0
        elif have == UNKNOWN:
            distance += 0.1 if want == "text" else 0.15 if want in _PREFERRED else 0.2
        elif is_implicit(have, want) or (
            is_array(have) and is_array(want) and is_implicit(element(have), element(want))
        ):
            distance += 1 if want in _PREFERRED else 1.2
        else:
            return None
        wanted.append(want)
    return distance, FunctionCall(signature, tuple(wanted), _fill_type(signature.gives, bound, "text"))


def _element_type(takes: tuple[str, ...], given: list[str]) -> str | None:
    """Return the type of `anyelement`; None if the arguments disagree."""
    chosen = UNKNOWN
    for take, have in zip(takes, given, strict=True):
        if take == "anyarray" and have not in (UNKNOWN, "") and not is_array(have):
            return None
        if take not in ("anyelement", "anyarray") or have == UNKNOWN:
            continue
        inner = element(have) if take == "anyarray" else have
        if chosen == UNKNOWN or is_implicit(chosen, inner):
            chosen = inner
        elif not is_implicit(inner, chosen):
            return None
    return "text" if chosen == UNKNOWN else chosen


def _fill_type(name: str, bound: str, have: str) -> str:
    if name in ("any", "anynonarray"):
        return "text" if have == UNKNOWN else have
    return name.replace("anyelement", bound).replace("anyarray", f"{bound}[]")
