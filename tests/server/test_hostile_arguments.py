"""Every function and operator of SQL with arguments that are as large as they can be: none outlives its time limit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from random import Random

import pytest
from running_server import eventually

from rmem.server.settings import Limits
from rmem.tables.sql import functions

QUERY = "/workspaces/default/tables/query"
LIMIT = 1.0
BUSY = 4.0
"""Seconds that a busy machine may add."""
TEXTS = ("repeat('a', 20000000)", "repeat('ab,', 5000000)", "repeat('[', 200000)", "repeat('é', 3000000)", "','")
PATTERNS = (
    "'(a+)+$'", "'(a|aa)+b'", "'((a*)*)*b'", "repeat('(a?)', 2000)", "'^(([a-z])+.)+[A-Z]([a-z])+$'",
    "repeat('a?', 5000) || repeat('a', 5000)", "'(a{0,250}){0,250}b'", "repeat('(', 5000)", "'%a%a%a%a%a%a%b'",
)  # fmt: skip
LONG_ARRAY = "string_to_array(repeat('a,', 3000000), ',')"
LARGE = {
    "text": (*TEXTS, *PATTERNS),
    "int4": ("2000000000", "-2000000000", "1"),
    "int8": ("9000000000000000000", "-9000000000000000000", "1"),
    "int2": ("32000::int2",),
    "numeric": ("('9' || repeat('9', 130000))::numeric", "('0.' || repeat('3', 100000))::numeric", "3.7"),
    "float8": ("1e308::float8", "2.5::float8"),
    "float4": ("1e38::float4",),
    "bytea": ("repeat('a', 20000000)::bytea",),
    "bool": ("true",),
    "date": ("'2024-01-01'::date",),
    "timestamp": ("'0001-01-01'::timestamp", "'2024-01-01'::timestamp"),
    "timestamptz": ("now()", "'0001-01-01'::timestamptz"),
    "time": ("'10:00'::time",),
    "interval": ("'1 microsecond'::interval", "'178000 years'::interval"),
    "jsonb": ("('[' || repeat('1,', 3000000) || '1]')::jsonb", "(repeat('[', 5000) || repeat(']', 5000))::jsonb"),
    "text[]": (LONG_ARRAY,),
    "float4[]": ("ARRAY[1.0, 2.0]::float4[]",),
    "anyarray": (LONG_ARRAY,),
    "anyelement": ("repeat('a', 20000000)",),
    "anynonarray": ("repeat('a', 20000000)",),
    "any": ("repeat('a', 20000000)", LONG_ARRAY),
}


def statements(random: Random) -> Iterator[str]:
    def values(signature: functions.Signature) -> list[str]:
        return [random.choice(LARGE[kind]) for kind in signature.takes]

    for known, form in (
        (functions.scalars, "SELECT length(({name}({values}))::text)"),
        (functions.aggregates, "SELECT length(({name}({values}))::text) FROM generate_series(1, 5000)"),
        (functions.sets, "SELECT count(*) FROM {name}({values})"),
    ):
        for name, ways in known.items():
            for signature in ways:
                yield form.format(name=name, values=", ".join(values(signature)) or ("*" if name == "count" else ""))
    for name, ways in functions.operators.items():
        for signature in ways:
            yield "SELECT length((({}) {} ({}))::text)".format(*values(signature)[:1], name, values(signature)[1])
    for pattern in PATTERNS:
        for form in ("{} ~* {}", "{} ILIKE {}", "length(regexp_replace({}, {}, 'x', 'g'))", "{} SIMILAR TO {}"):
            yield f"SELECT {form.format(random.choice(TEXTS), pattern)}"


@pytest.mark.slow
def test_no_function_outlives_the_limit_of_its_statement(server_with):
    server = server_with(Limits(statement_seconds=LIMIT))
    client = server.client(server.first_token)
    eventually(lambda: client.post(QUERY, json={"query": "SELECT 1"}).status_code == 200)
    wrong = []
    for sql in statements(Random(0)):
        started = time.monotonic()
        answer = client.post(QUERY, json={"query": sql})
        passed = time.monotonic() - started
        if passed > 1.5 * LIMIT + BUSY or answer.status_code not in (200, 400, 408, 413):
            wrong.append((round(passed, 2), answer.status_code, sql, answer.text[:200]))
    assert wrong == []
