# ruff: noqa: E501 — the parts of an expression stand together
"""Expressions at random, each of a type: what both engines have to agree on."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

_INTEGERS = st.sampled_from(
    ["0", "1", "-1", "2", "7", "-3", "100", "2147483647", "(-2147483648)", "NULL::int", "i", "j"]
)
_NUMERICS = st.sampled_from(["0.0", "1.5", "-2.25", "10.10", "0.001", "123456.789", "NULL::numeric", "n", "m"])
_FLOATS = st.sampled_from(["0.5::float8", "-1.25::float8", "1e10::float8", "3::float8", "NULL::float8", "f"])
_TEXTS = st.sampled_from(["''", "'a'", "'Abc'", "'é'", "'a,b,c'", "'  x '", "'12'", "NULL::text", "s", "t"])
_BOOLS = st.sampled_from(["true", "false", "NULL::bool", "b"])
_TIMES = st.sampled_from(
    [
        "TIMESTAMP '2024-02-29 12:34:56.789'",
        "TIMESTAMP '1999-12-31 23:59:59'",
        "TIMESTAMP '2024-01-31'",
        "NULL::timestamp",
        "w",
    ]
)
_INTERVALS = st.sampled_from(
    [
        "INTERVAL '1 month'",
        "INTERVAL '1 day 02:03:04'",
        "INTERVAL '-3 hours'",
        "INTERVAL '1 year 2 mons'",
        "NULL::interval",
    ]
)
_JSONS = st.sampled_from(
    [
        '\'{"a": 1, "b": [1, 2.50, null]}\'::jsonb',
        '\'[1, "x", {"a": true}]\'::jsonb',
        "'\"s\"'::jsonb",
        "'null'::jsonb",
        "NULL::jsonb",
        "d",
    ]
)
_OPERATORS = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"])

SETUP = [
    "CREATE TABLE r (i INTEGER, j INTEGER, n NUMERIC, m NUMERIC(8,3), f DOUBLE PRECISION, s TEXT, t TEXT, b BOOLEAN, w TIMESTAMP, d JSONB)",
    "INSERT INTO r VALUES (5, -7, 2.50, 1.125, 0.25, 'hello', 'Wörld', true, '2024-03-31 10:00', '{\"a\": {\"b\": 2}}'), "
    "(NULL, 0, 0, NULL, -1e-3, '', NULL, false, '2000-02-29', '[0]')",
]


def _filled(template: str, *parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map(lambda found: template.format(*found))


def expressions() -> dict[str, st.SearchStrategy[str]]:
    """A strategy of expressions for each type, nested a few levels deep."""
    kinds: dict[str, st.SearchStrategy[str]] = {
        "int": _INTEGERS,
        "numeric": _NUMERICS,
        "float": _FLOATS,
        "text": _TEXTS,
        "bool": _BOOLS,
        "time": _TIMES,
        "interval": _INTERVALS,
        "json": _JSONS,
    }
    for _ in range(2):
        kinds = _deeper(kinds)
    return kinds


def _deeper(k: dict[str, st.SearchStrategy[str]]) -> dict[str, st.SearchStrategy[str]]:
    integer, numeric, real, text = k["int"], k["numeric"], k["float"], k["text"]
    boolean, time, interval, json = k["bool"], k["time"], k["interval"], k["json"]
    small = st.sampled_from(["0", "1", "2", "-1", "3"])
    any_of: Callable[..., st.SearchStrategy[str]] = st.one_of

    def case(kind: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return _filled("CASE WHEN {} THEN {} ELSE {} END", boolean, kind, kind)

    signs = st.sampled_from(["+", "-", "*", "/", "%"])
    return {
        "int": any_of(
            integer, _filled("({} {} {})", integer, signs, integer), _filled("abs({})", integer), case(integer),
            _filled("length({})", text), _filled("coalesce({}, {})", integer, integer),
            _filled("strpos({}, {})", text, text), _filled("({})::int", numeric), _filled("({})::int", boolean),
            _filled("greatest({}, {})", integer, integer), _filled("nullif({}, {})", integer, integer),
            _filled("jsonb_array_length(CASE WHEN jsonb_typeof({}) = 'array' THEN '[1]'::jsonb END)", json),
        ),
        "numeric": any_of(
            numeric, _filled("({} {} {})", numeric, signs, any_of(numeric, integer)), _filled("round({}, {})", numeric, small),
            _filled("({})::numeric(10,2)", numeric), _filled("abs({})", numeric), case(numeric),
            _filled("floor({})", numeric), _filled("extract(epoch FROM {})", any_of(time, interval)), _filled("least({}, {})", numeric, integer),
        ),
        "float": any_of(
            real, _filled("({} {} {})", real, st.sampled_from(["+", "-", "*"]), any_of(real, integer)), _filled("({})::float8", numeric),
            _filled("abs({})", real), case(real), _filled("round({})", real), _filled("floor({})", real),
        ),
        "text": any_of(
            text, _filled("({} || {})", text, any_of(text, integer, numeric, boolean)), _filled("upper({})", text), _filled("left({}, {})", text, small),
            _filled("replace({}, {}, {})", text, text, text), case(text), _filled("({})::text", any_of(integer, numeric, boolean, time, interval, json)),
            _filled("split_part({}, ',', {})", text, st.sampled_from(["1", "2", "-1"])), _filled("concat({}, {}, {})", text, integer, boolean),
            _filled("{} ->> 'a'", json), _filled("substr({}, {}, 2)", text, small), _filled("right({}, {})", text, small),
            _filled("concat_ws({}, {}, {})", text, text, text), _filled("btrim({}, {})", text, text),
        ),
        "bool": any_of(
            boolean, _filled("({} {} {})", integer, _OPERATORS, any_of(integer, numeric)), _filled("({} {} {})", text, _OPERATORS, text),
            _filled("({} AND {})", boolean, boolean), _filled("({} OR {})", boolean, boolean), _filled("(NOT {})", boolean),
            _filled("({} IS NULL)", any_of(integer, text, json)), _filled("({} {} {})", time, _OPERATORS, time), _filled("({} LIKE 'a%')", text),
            _filled("({} BETWEEN {} AND {})", numeric, numeric, integer), _filled("({} IN ({}, {}))", integer, integer, integer),
            _filled("({} {} {})", numeric, _OPERATORS, real), _filled("({} @> {})", json, json), _filled("({} {} {})", interval, _OPERATORS, interval),
            _filled("({} {} {})", json, _OPERATORS, json), _filled("({} ? 'a')", json), _filled("({} ~ '[a-c]')", text), _filled("({} IS TRUE)", boolean),
        ),
        "time": any_of(
            time, _filled("({} + {})", time, interval), _filled("({} - {})", time, interval), case(time),
            _filled("date_trunc({}, {})", st.sampled_from(["'month'", "'week'", "'hour'", "'year'"]), time), _filled("({})::date::timestamp", time),
        ),
        "interval": any_of(
            interval, _filled("({} + {})", interval, interval), _filled("({} - {})", time, time), _filled("({} * {})", interval, small),
        ),
        "json": any_of(
            json, _filled("({} -> 'a')", json), _filled("({} -> {})", json, small), _filled("({} || {})", json, json), _filled("to_jsonb({})", any_of(integer, numeric, text, boolean)),
            _filled("jsonb_build_object('k', {}, 'l', {})", any_of(integer, text, boolean), json), _filled("jsonb_build_array({}, {})", numeric, json), case(json),
        ),
    }  # fmt: skip
