# ruff: noqa: E501 — a row of values is easier to read on one line
"""Calls of every function and operator that statements may use, with values from the corners of their types."""

from __future__ import annotations

import random
from collections.abc import Iterator

from rmem.tables.sql import functions
from rmem.tables.sql.functions import Signature

VALUES = {
    "int2": ["0::int2", "1::int2", "-7::int2", "32767::int2", "(-32768)::int2", "NULL::int2", "12::int2"],
    "int4": ["0", "1", "-1", "2", "3", "7", "100", "-2147483647", "2147483647", "NULL::int4", "5", "64"],
    "int8": ["0::int8", "-1::int8", "12345678901", "9223372036854775807", "-9223372036854775807", "NULL::int8", "6::int8"],
    "numeric": ["0.0", "1.5", "-2.50", "123456789.123456789", "0.001", "1e-10", "NULL::numeric", "99999999999999999999", "2.5", "-0.5", "7.00"],
    "float4": ["0.1::real", "1.5::real", "-2.25::real", "1e30::real", "NULL::real", "3::real", "0::real"],
    "float8": ["0.1::float8", "-2.5::float8", "1e300::float8", "1e-300::float8", "0::float8", "NULL::float8", "3.5::float8", "0.5::float8", "1::float8"],
    "text": ["''", "'a'", "'Hello World'", "'äÖü'", "'日本語'", "'a%b_c'", "' 12 '", "'x,y,,z'", "NULL::text", "'foo.bar'", "'aaa'", "'o'", "'ABC abc'", "','"],
    "bool": ["true", "false", "NULL::bool"],
    "date": ["'2024-02-29'::date", "'1970-01-01'::date", "'1999-12-31'::date", "NULL::date", "'0001-01-01'::date", "'2024-03-31'::date"],
    "timestamp": ["'2024-02-29 12:34:56.789'::timestamp", "'1969-12-31 23:59:59'::timestamp", "'2000-01-01'::timestamp", "NULL::timestamp", "'2024-03-31 02:30:00'::timestamp"],
    "timestamptz": ["'2024-02-29 12:34:56.789+00'::timestamptz", "'1969-12-31 23:59:59-05'::timestamptz", "'2024-12-31 23:30:00+00'::timestamptz", "NULL::timestamptz", "'2024-07-01 00:00:00.000001Z'::timestamptz"],
    "time": ["'10:30'::time", "'23:59:59.999999'::time", "'00:00'::time", "NULL::time"],
    "interval": ["interval '1 day'", "interval '1 month 2 days 03:04:05.5'", "interval '-90 minutes'", "interval '0'", "NULL::interval", "interval '2 years'", "interval '36 hours'"],
    "uuid": ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid", "NULL::uuid"],
    "bytea": ["'\\x'::bytea", "'\\x00ff10'::bytea", "'abc'::bytea", "NULL::bytea"],
    "jsonb": ["'{}'::jsonb", "'{\"a\": 1, \"b\": [1, {\"c\": null}], \"a b\": \"x\"}'::jsonb", "'[1, \"two\", null, 2.50, [3]]'::jsonb", "'\"text\"'::jsonb", "'12'::jsonb", "'null'::jsonb", "NULL::jsonb", "'true'::jsonb", "'[]'::jsonb"],
    "text[]": ["'{}'::text[]", "'{a,b,c}'::text[]", "'{a,NULL,\"x y\"}'::text[]", "NULL::text[]", "'{b,1,c}'::text[]", "'{a}'::text[]"],
    "int4[]": ["'{}'::int4[]", "'{1,2,3}'::int4[]", "'{3,NULL,1}'::int4[]", "NULL::int4[]"],
    "int8[]": ["'{}'::int8[]", "'{1,2,3}'::int8[]", "'{9223372036854775807}'::int8[]"],
    "float4[]": ["'{}'::float4[]", "'{1,2.5,0.1}'::float4[]", "NULL::float4[]"],
}  # fmt: skip
ANY = ("int4", "text", "numeric", "bool", "date", "jsonb", "float8", "timestamptz", "int4[]", "text[]")
ELEMENTS = ("int4", "text", "int8")
PLACES = {
    ("date_trunc", 0): ["'day'", "'month'", "'hour'", "'week'", "'year'", "'quarter'", "'second'", "'nonsense'"],
    ("timezone", 0): ["'UTC'", "'America/New_York'", "'Nowhere'"],
}
PATTERNS = ["'a'", "'[a-z]+'", "'^(.)(.)'", "'o|l'", "'(\\w+) (\\w+)'", "'\\d'", "''", "'('"]
RANDOM = {"random", "now", "gen_random_uuid"}


def _type(take: str, element: str, chance: random.Random) -> str:
    if take in ("any", "anynonarray"):
        return chance.choice(ANY if take == "any" else ANY[:8])
    return take.replace("anyarray", f"{element}[]").replace("anyelement", element)


def arguments(signature: Signature, chance: random.Random) -> list[str]:
    element = chance.choice(ELEMENTS)
    takes = list(signature.takes)
    if signature.variadic:
        takes = takes[:-1] + takes[-1:] * chance.choice((1, 2, 3))
    found = []
    for at, take in enumerate(takes):
        kind = _type(take, element, chance)
        if (signature.name.startswith("regexp") and at == 1) or (
            signature.name in ("~", "~*", "!~", "!~*") and at == 1
        ):
            found.append(chance.choice(PATTERNS))
        else:
            found.append(chance.choice(PLACES.get((signature.name, at)) or VALUES[kind]))
    return found


def statements(count: int, seed: str = "") -> Iterator[str]:
    """Some calls of each way to call each function, always the same for the same seed."""
    for known in (functions.scalars, functions.operators, functions.unaries, functions.sets, functions.aggregates):
        for name, signatures in known.items():
            if name in RANDOM:
                continue
            for signature in signatures:
                chance = random.Random(f"{signature.key}{seed}")
                for _ in range(count):
                    yield _call(known, signature, chance)


def _call(known: dict[str, list[Signature]], signature: Signature, chance: random.Random) -> str:
    name, given = signature.name, arguments(signature, chance)
    if known is functions.operators:
        return f"SELECT ({given[0]}) {name} ({given[1]}) AS x"
    if known is functions.unaries:
        return f"SELECT {name} ({given[0]}) AS x"
    if known is functions.sets:
        return f"SELECT * FROM (SELECT * FROM {name}({', '.join(given)}) LIMIT 20) AS s"
    if known is functions.aggregates:
        rows = [given, *(arguments(signature, chance) for _ in range(3))] if not _loose(signature) else [given] * 3
        rows = [["2::float8" if "e300" in item else item for item in row] for row in rows]  # sums of them overflow
        names = ", ".join(f"c{at}" for at in range(len(given)))
        if not given:
            return f"SELECT {name}(*) AS x FROM (VALUES (1), (2)) AS v"
        values = ", ".join(f"({', '.join(row)})" for row in rows)
        return f"SELECT {name}({names}) AS x FROM (VALUES {values}) AS v({names})"
    return f"SELECT {name}({', '.join(given)}) AS x"


def _loose(signature: Signature) -> bool:
    """Whether its arguments may be of any type, so that rows would not be of one."""
    return any(take.startswith("any") for take in signature.takes)
