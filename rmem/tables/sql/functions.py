"""The functions and operators that statements may use: PostgreSQL's names, what they take and what they give.
Nothing that is not written here can be called."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from ...errors import SqlError, SqlUnsupportedError
from .types import UNKNOWN, element, implied, is_array, spelled

SCALARS = """
abs(int2) int2; abs(int4) int4; abs(int8) int8; abs(numeric) numeric; abs(float4) float4; abs(float8) float8
ceil(numeric) numeric; ceil(float8) float8; ceiling(numeric) numeric; ceiling(float8) float8
floor(numeric) numeric; floor(float8) float8; sign(numeric) numeric; sign(float8) float8
round(numeric) numeric; round(float8) float8; round(numeric, int4) numeric
trunc(numeric) numeric; trunc(float8) float8; trunc(numeric, int4) numeric
mod(int2, int2) int2; mod(int4, int4) int4; mod(int8, int8) int8; mod(numeric, numeric) numeric
div(numeric, numeric) numeric; gcd(int4, int4) int4; gcd(int8, int8) int8; lcm(int4, int4) int4
lcm(int8, int8) int8; factorial(int8) numeric; scale(numeric) int4; trim_scale(numeric) numeric
power(float8, float8) float8; power(numeric, numeric) numeric; pow(float8, float8) float8
pow(numeric, numeric) numeric; sqrt(float8) float8; sqrt(numeric) numeric; cbrt(float8) float8
exp(float8) float8; exp(numeric) numeric; ln(float8) float8; ln(numeric) numeric; log(float8) float8
log(numeric) numeric; log10(float8) float8; log10(numeric) numeric; log(numeric, numeric) numeric
degrees(float8) float8; radians(float8) float8; pi() float8; random() float8; sin(float8) float8
cos(float8) float8; tan(float8) float8; cot(float8) float8; asin(float8) float8; acos(float8) float8
atan(float8) float8; atan2(float8, float8) float8; sinh(float8) float8; cosh(float8) float8; tanh(float8) float8
width_bucket(float8, float8, float8, int4) int4; width_bucket(numeric, numeric, numeric, int4) int4
to_hex(int4) text; to_hex(int8) text; to_number(text, text) numeric
length(text) int4; length(bytea) int4; char_length(text) int4; character_length(text) int4
octet_length(text) int4; octet_length(bytea) int4; bit_length(text) int4; bit_length(bytea) int4
lower(text) text; upper(text) text; initcap(text) text; concat(any...) text; concat_ws(text, any...) text
left(text, int4) text; right(text, int4) text; lpad(text, int4) text; lpad(text, int4, text) text
rpad(text, int4) text; rpad(text, int4, text) text; btrim(text) text; btrim(text, text) text
ltrim(text) text; ltrim(text, text) text; rtrim(text) text; rtrim(text, text) text
repeat(text, int4) text; replace(text, text, text) text; reverse(text) text; split_part(text, text, int4) text
strpos(text, text) int4; substr(text, int4) text; substr(text, int4, int4) text; substring(text, int4) text
substring(text, int4, int4) text; substring(text, text) text; starts_with(text, text) bool
translate(text, text, text) text; ascii(text) int4; chr(int4) text; md5(text) text; md5(bytea) text
sha224(bytea) bytea; sha256(bytea) bytea; sha384(bytea) bytea; sha512(bytea) bytea
encode(bytea, text) text; convert_from(bytea, text) text; convert_to(text, text) bytea
decode(text, text) bytea; format(text, any...) text; format(text) text; quote_literal(text) text
quote_ident(text) text; quote_nullable(text) text; overlay(text, text, int4) text
overlay(text, text, int4, int4) text; regexp_replace(text, text, text) text
regexp_replace(text, text, text, text) text; regexp_replace(text, text, text, int4) text
regexp_replace(text, text, text, int4, int4) text; regexp_replace(text, text, text, int4, int4, text) text
regexp_match(text, text) text[]; regexp_match(text, text, text) text[]; regexp_count(text, text) int4
regexp_count(text, text, int4) int4; regexp_count(text, text, int4, text) int4; regexp_like(text, text) bool
regexp_like(text, text, text) bool; regexp_substr(text, text) text; regexp_substr(text, text, int4) text
regexp_instr(text, text) int4; regexp_split_to_array(text, text) text[]
regexp_split_to_array(text, text, text) text[]; string_to_array(text, text) text[]
string_to_array(text, text, text) text[]; array_to_string(anyarray, text) text
array_to_string(anyarray, text, text) text
to_char(timestamptz, text) text; to_char(timestamp, text) text; to_char(interval, text) text
to_char(numeric, text) text; to_char(int4, text) text; to_char(int8, text) text; to_char(float8, text) text
to_date(text, text) date; to_timestamp(float8) timestamptz; to_timestamp(text, text) timestamptz
now() timestamptz; transaction_timestamp() timestamptz; statement_timestamp() timestamptz
clock_timestamp() timestamptz; date_trunc(text, timestamptz) timestamptz; date_trunc(text, timestamp) timestamp
date_trunc(text, interval) interval; date_trunc(text, timestamptz, text) timestamptz
date_part(text, timestamptz) float8; date_part(text, timestamp) float8; date_part(text, date) float8
date_part(text, time) float8; date_part(text, interval) float8
age(timestamptz, timestamptz) interval; age(timestamp, timestamp) interval; age(timestamptz) interval
age(timestamp) interval; make_date(int4, int4, int4) date; make_time(int4, int4, float8) time
make_timestamp(int4, int4, int4, int4, int4, float8) timestamp
make_timestamptz(int4, int4, int4, int4, int4, float8) timestamptz
isfinite(date) bool; isfinite(timestamp) bool; isfinite(timestamptz) bool; isfinite(interval) bool
justify_days(interval) interval; justify_hours(interval) interval; justify_interval(interval) interval
date_bin(interval, timestamp, timestamp) timestamp; date_bin(interval, timestamptz, timestamptz) timestamptz
timezone(text, timestamptz) timestamp; timezone(text, timestamp) timestamptz
make_interval() interval; make_interval(int4) interval; make_interval(int4, int4) interval
make_interval(int4, int4, int4) interval; make_interval(int4, int4, int4, int4) interval
make_interval(int4, int4, int4, int4, int4) interval; make_interval(int4, int4, int4, int4, int4, int4) interval
make_interval(int4, int4, int4, int4, int4, int4, float8) interval
gen_random_uuid() uuid; uuidv4() uuid; uuidv7() uuid
jsonb_build_object(any...) jsonb; jsonb_build_array(any...) jsonb; json_build_object(any...) jsonb
jsonb_build_object() jsonb; jsonb_build_array() jsonb; json_build_object() jsonb; json_build_array() jsonb
json_build_array(any...) jsonb; to_jsonb(any) jsonb; to_json(any) jsonb; jsonb_typeof(jsonb) text
json_typeof(jsonb) text; jsonb_array_length(jsonb) int4; json_array_length(jsonb) int4
jsonb_extract_path(jsonb, text...) jsonb; jsonb_extract_path_text(jsonb, text...) text
json_extract_path(jsonb, text...) jsonb; json_extract_path_text(jsonb, text...) text
jsonb_set(jsonb, text[], jsonb) jsonb; jsonb_set(jsonb, text[], jsonb, bool) jsonb
jsonb_insert(jsonb, text[], jsonb) jsonb; jsonb_insert(jsonb, text[], jsonb, bool) jsonb
jsonb_strip_nulls(jsonb) jsonb; jsonb_pretty(jsonb) text; jsonb_object(text[]) jsonb
jsonb_object(text[], text[]) jsonb; jsonb_exists(jsonb, text) bool
array_length(anyarray, int4) int4; cardinality(anyarray) int4; array_append(anyarray, anyelement) anyarray
array_prepend(anyelement, anyarray) anyarray; array_cat(anyarray, anyarray) anyarray
array_position(anyarray, anyelement) int4; array_position(anyarray, anyelement, int4) int4
array_positions(anyarray, anyelement) int4[]; array_remove(anyarray, anyelement) anyarray
array_replace(anyarray, anyelement, anyelement) anyarray; array_upper(anyarray, int4) int4
array_lower(anyarray, int4) int4; array_ndims(anyarray) int4; trim_array(anyarray, int4) anyarray
coalesce(anyelement...) anyelement; nullif(anyelement, anyelement) anyelement; greatest(anyelement...) anyelement
least(anyelement...) anyelement; num_nulls(any...) int4; num_nonnulls(any...) int4; pg_typeof(any) regtype
cosine_similarity(float4[], float4[]) float8; bm25_similarity(text, text) float8
deeplake_sync_table(text) text
"""

AGGREGATES = """
count() int8; count(any) int8; sum(int2) int8; sum(int4) int8; sum(int8) numeric; sum(numeric) numeric
sum(float4) float4; sum(float8) float8; sum(interval) interval; avg(int2) numeric; avg(int4) numeric
avg(int8) numeric; avg(numeric) numeric; avg(float4) float8; avg(float8) float8; avg(interval) interval
min(int2) int2; min(int4) int4; min(int8) int8; min(numeric) numeric; min(float4) float4; min(float8) float8
min(text) text; min(date) date; min(timestamp) timestamp; min(timestamptz) timestamptz; min(time) time
min(interval) interval; min(bytea) bytea; min(anyarray) anyarray
max(int2) int2; max(int4) int4; max(int8) int8; max(numeric) numeric; max(float4) float4; max(float8) float8
max(text) text; max(date) date; max(timestamp) timestamp; max(timestamptz) timestamptz; max(time) time
max(interval) interval; max(bytea) bytea; max(anyarray) anyarray
bool_and(bool) bool; bool_or(bool) bool; every(bool) bool; string_agg(text, text) text
string_agg(bytea, bytea) bytea; array_agg(anyelement) anyelement[]; any_value(anyelement) anyelement
jsonb_agg(any) jsonb; json_agg(any) jsonb; jsonb_object_agg(any, any) jsonb; json_object_agg(any, any) jsonb
stddev(int2) numeric; stddev(int4) numeric; stddev(int8) numeric; stddev(numeric) numeric; stddev(float4) float8
stddev(float8) float8; stddev_samp(int2) numeric; stddev_samp(int4) numeric; stddev_samp(int8) numeric
stddev_samp(numeric) numeric; stddev_samp(float4) float8; stddev_samp(float8) float8; stddev_pop(int2) numeric
stddev_pop(int4) numeric; stddev_pop(int8) numeric; stddev_pop(numeric) numeric; stddev_pop(float4) float8
stddev_pop(float8) float8; variance(int2) numeric; variance(int4) numeric; variance(int8) numeric
variance(numeric) numeric; variance(float4) float8; variance(float8) float8; var_samp(int2) numeric
var_samp(int4) numeric; var_samp(int8) numeric; var_samp(numeric) numeric; var_samp(float4) float8
var_samp(float8) float8; var_pop(int2) numeric; var_pop(int4) numeric; var_pop(int8) numeric
var_pop(numeric) numeric; var_pop(float4) float8; var_pop(float8) float8
corr(float8, float8) float8; covar_pop(float8, float8) float8; covar_samp(float8, float8) float8
regr_slope(float8, float8) float8; regr_intercept(float8, float8) float8; regr_count(float8, float8) int8
regr_r2(float8, float8) float8
bit_and(int2) int2; bit_and(int4) int4; bit_and(int8) int8; bit_or(int2) int2; bit_or(int4) int4
bit_or(int8) int8; bit_xor(int2) int2; bit_xor(int4) int4; bit_xor(int8) int8
"""

ORDERED = """
percentile_cont(float8, float8) float8; percentile_cont(float8, interval) interval
percentile_disc(float8, anyelement) anyelement; mode(anyelement) anyelement
"""
"""Aggregates that are written with WITHIN GROUP (ORDER BY …); what is ordered is their last argument."""

WINDOWS = """
row_number() int8; rank() int8; dense_rank() int8; percent_rank() float8; cume_dist() float8; ntile(int4) int4
lag(anyelement) anyelement; lag(anyelement, int4) anyelement; lag(anyelement, int4, anyelement) anyelement
lead(anyelement) anyelement; lead(anyelement, int4) anyelement; lead(anyelement, int4, anyelement) anyelement
first_value(anyelement) anyelement; last_value(anyelement) anyelement; nth_value(anyelement, int4) anyelement
"""

SETS = """
generate_series(int4, int4) int4; generate_series(int4, int4, int4) int4; generate_series(int8, int8) int8
generate_series(int8, int8, int8) int8; generate_series(numeric, numeric) numeric
generate_series(numeric, numeric, numeric) numeric
generate_series(timestamp, timestamp, interval) timestamp
generate_series(timestamptz, timestamptz, interval) timestamptz
unnest(anyarray) anyelement; jsonb_array_elements(jsonb) jsonb; jsonb_array_elements_text(jsonb) text
json_array_elements(jsonb) jsonb; json_array_elements_text(jsonb) text; jsonb_object_keys(jsonb) text
json_object_keys(jsonb) text; jsonb_each(jsonb) record; jsonb_each_text(jsonb) record; json_each(jsonb) record
json_each_text(jsonb) record; regexp_matches(text, text) text[]; regexp_matches(text, text, text) text[]
regexp_split_to_table(text, text) text; regexp_split_to_table(text, text, text) text
string_to_table(text, text) text; string_to_table(text, text, text) text; generate_subscripts(anyarray, int4) int4
"""

SET_COLUMNS: dict[str, tuple[tuple[str, str], ...]] = {
    "jsonb_each": (("key", "text"), ("value", "jsonb")),
    "jsonb_each_text": (("key", "text"), ("value", "text")),
    "json_each": (("key", "text"), ("value", "jsonb")),
    "json_each_text": (("key", "text"), ("value", "text")),
    "jsonb_array_elements": (("value", "jsonb"),),
    "jsonb_array_elements_text": (("value", "text"),),
    "json_array_elements": (("value", "jsonb"),),
    "json_array_elements_text": (("value", "text"),),
}
"""The columns of functions in FROM that are not named after the function."""

OPERATORS = """
+(int2, int2) int2; +(int4, int4) int4; +(int8, int8) int8; +(numeric, numeric) numeric; +(float4, float4) float4
+(float8, float8) float8
+(float4, float8) float8; +(float8, float4) float8; +(date, int4) date; +(int4, date) date; +(date, interval) timestamp
+(interval, date) timestamp; +(date, time) timestamp; +(time, date) timestamp; +(timestamp, interval) timestamp
+(interval, timestamp) timestamp; +(timestamptz, interval) timestamptz; +(interval, timestamptz) timestamptz
+(time, interval) time; +(interval, time) time; +(interval, interval) interval
-(int2, int2) int2; -(int4, int4) int4; -(int8, int8) int8; -(numeric, numeric) numeric; -(float4, float4) float4
-(float8, float8) float8
-(float4, float8) float8; -(float8, float4) float8; -(date, int4) date; -(date, date) int4; -(date, interval) timestamp
-(timestamp, interval) timestamp; -(timestamptz, interval) timestamptz; -(timestamp, timestamp) interval
-(timestamptz, timestamptz) interval; -(time, interval) time; -(time, time) interval
-(interval, interval) interval; -(jsonb, text) jsonb; -(jsonb, int4) jsonb; -(jsonb, text[]) jsonb
*(int2, int2) int2; *(int4, int4) int4; *(int8, int8) int8; *(numeric, numeric) numeric; *(float4, float4) float4
*(float8, float8) float8
*(float4, float8) float8; *(float8, float4) float8; *(interval, float8) interval; *(float8, interval) interval
/(int2, int2) int2; /(int4, int4) int4; /(int8, int8) int8; /(numeric, numeric) numeric; /(float4, float4) float4
/(float8, float8) float8
/(float4, float8) float8; /(float8, float4) float8; /(interval, float8) interval
%(int2, int2) int2; %(int4, int4) int4; %(int8, int8) int8; %(numeric, numeric) numeric
^(float8, float8) float8; ^(numeric, numeric) numeric
&(int2, int2) int2; &(int4, int4) int4; &(int8, int8) int8; |(int2, int2) int2; |(int4, int4) int4
|(int8, int8) int8; #(int2, int2) int2; #(int4, int4) int4; #(int8, int8) int8; <<(int2, int4) int2
<<(int4, int4) int4; <<(int8, int4) int8; >>(int2, int4) int2; >>(int4, int4) int4; >>(int8, int4) int8
||(text, text) text; ||(text, anynonarray) text; ||(anynonarray, text) text; ||(jsonb, jsonb) jsonb
||(anyarray, anyarray) anyarray; ||(anyarray, anyelement) anyarray; ||(anyelement, anyarray) anyarray
||(bytea, bytea) bytea
->(jsonb, text) jsonb; ->(jsonb, int4) jsonb; ->>(jsonb, text) text; ->>(jsonb, int4) text
#>(jsonb, text[]) jsonb; #>>(jsonb, text[]) text; #-(jsonb, text[]) jsonb; @>(jsonb, jsonb) bool
@>(anyarray, anyarray) bool; <@(jsonb, jsonb) bool; <@(anyarray, anyarray) bool; ?(jsonb, text) bool
?|(jsonb, text[]) bool; ?&(jsonb, text[]) bool; &&(anyarray, anyarray) bool; ~(text, text) bool
~*(text, text) bool; !~(text, text) bool; !~*(text, text) bool; ^@(text, text) bool
"""

UNARIES = """
-(int2) int2; -(int4) int4; -(int8) int8; -(numeric) numeric; -(float4) float4; -(float8) float8
-(interval) interval; ~(int2) int2; ~(int4) int4; ~(int8) int8
"""


@dataclass(frozen=True, slots=True)
class Signature:
    """One way to call a function. `key` names what an engine has to do: `round(numeric, int4)`."""

    name: str
    takes: tuple[str, ...]
    gives: str
    variadic: bool = False

    @property
    def key(self) -> str:
        return f"{self.name}({', '.join(self.takes)})"


@dataclass(frozen=True, slots=True)
class Call:
    """A call that was understood: the signature, and the types its arguments have to have."""

    signature: Signature
    takes: tuple[str, ...]
    gives: str

    @property
    def key(self) -> str:
        return self.signature.key


def _read(text: str) -> dict[str, list[Signature]]:
    known: dict[str, list[Signature]] = defaultdict(list)
    for line in text.strip().splitlines():
        for entry in line.split(";"):
            head, _, gives = entry.strip().rpartition(" ")
            name, _, inside = head.rstrip(")").partition("(")
            takes = tuple(part.strip() for part in inside.split(",") if part.strip())
            variadic = bool(takes) and takes[-1].endswith("...")
            takes = tuple(part.removesuffix("...") for part in takes)
            known[name].append(Signature(name, takes, gives, variadic))
    return dict(known)


scalars = _read(SCALARS)
aggregates = _read(AGGREGATES)
ordered = _read(ORDERED)
windows = _read(WINDOWS)
sets = _read(SETS)
operators = _read(OPERATORS)
unaries = _read(UNARIES)

_PREFERRED = ("float8", "text", "timestamptz", "bool", "interval")


def resolve(known: dict[str, list[Signature]], name: str, given: list[str], shown: str = "") -> Call:
    """Choose the way of calling that fits best, as PostgreSQL does."""
    signatures = known.get(name)
    if signatures is None:
        raise SqlUnsupportedError(f"function {name}() is not supported")
    best: tuple[float, Call] | None = None
    for signature in signatures:
        fit = _fits(signature, given)
        if fit is not None and (best is None or fit[0] < best[0]):
            best = fit
    if best is None:
        types = ", ".join(spelled(name) for name in given)
        raise SqlError(shown or f"function {name}({types}) does not exist; it takes {_ways(signatures)}")
    return best[1]


def _ways(signatures: list[Signature]) -> str:
    return " or ".join(f"({', '.join(spelled(name) for name in each.takes)})" for each in signatures[:6])


def _fits(signature: Signature, given: list[str]) -> tuple[float, Call] | None:
    """How far arguments are from a signature, and the call with its types filled in."""
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
        want = _filled(take, bound, have)
        if take == "anynonarray" and is_array(have):
            return None
        if have == want:
            distance += 0.3 if take.startswith("any") else 0
        elif have == UNKNOWN:
            distance += 0.1 if want == "text" else 0.15 if want in _PREFERRED else 0.2
        elif implied(have, want) or (is_array(have) and is_array(want) and implied(element(have), element(want))):
            distance += 1 if want in _PREFERRED else 1.2
        else:
            return None
        wanted.append(want)
    return distance, Call(signature, tuple(wanted), _filled(signature.gives, bound, "text"))


def _element_type(takes: tuple[str, ...], given: list[str]) -> str | None:
    """What `anyelement` stands for; None where the arguments do not agree."""
    chosen = UNKNOWN
    for take, have in zip(takes, given, strict=True):
        if take == "anyarray" and have not in (UNKNOWN, "") and not is_array(have):
            return None
        if take not in ("anyelement", "anyarray") or have == UNKNOWN:
            continue
        inner = element(have) if take == "anyarray" else have
        if chosen == UNKNOWN or implied(chosen, inner):
            chosen = inner
        elif not implied(inner, chosen):
            return None
    return "text" if chosen == UNKNOWN else chosen


def _filled(name: str, bound: str, have: str) -> str:
    if name in ("any", "anynonarray"):
        return "text" if have == UNKNOWN else have
    return name.replace("anyelement", bound).replace("anyarray", f"{bound}[]")
