# ruff: noqa: E501 — a statement is easier to read on one line
"""No statement runs on in PostgreSQL long after its time limit, nor after the process that sent it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid

import psycopg
import pytest

from rmem.errors import RemanenceError
from rmem.tables.workspace import Workspace

LIMIT = 1.0
BUSY = 4.0
"""Seconds that a busy machine may add; the statements below ran for minutes."""
HAY, NEEDLE = "a" * 4_000_000, "b" + "a" * 1_000_000
_NUMBERS = "(SELECT array_agg(g) AS x FROM generate_series(1, 300000) g)"
_JSON = "(SELECT jsonb_agg(g) AS x FROM generate_series(1, 200000) g)"
_LIST = f"replace(replace('{'x' * 200}', 'x', '{'y' * 200}'), 'y', '{'1,' * 500}')"
_SEARCH = f"strpos({_LIST}, 'b' || {_LIST})"
HOSTILE = {
    "ILIKE": ("SELECT $1 ILIKE $2", ["ab" * 2_000_000, "%a" + "_" * 5000 + "c"]),
    "LIKE": ("SELECT $1 LIKE $2", ["a" * 2_000_000, "%" + "a" * 100_000 + "b%c"]),
    "NOT LIKE of a column": ("SELECT count(*) FROM long WHERE x NOT LIKE $1", ["%" + "a_" * 20_000 + "b%c"]),
    "LIKE of an aggregate": ("SELECT max(x) LIKE $1 FROM long", ["%" + "a_" * 20_000 + "b%c"]),
    "strpos": ("SELECT strpos($1, $2)", [HAY, NEEDLE]),
    "split_part": ("SELECT split_part($1, $2, 1)", [HAY, NEEDLE]),
    "replace": ("SELECT length(replace($1, $2, 'c'))", [HAY, NEEDLE]),
    "string_to_array": ("SELECT cardinality(string_to_array($1, $2))", [HAY, NEEDLE]),
    "ltrim": ("SELECT length(ltrim($1, $2))", [HAY, "b" * 1_000_000 + "a"]),
    "arrays": (f"SELECT a.x @> a.x FROM {_NUMBERS} a", []),
    "other arrays": (f"SELECT a.x && b.x FROM {_NUMBERS} a, (SELECT array_agg(-g) AS x FROM generate_series(1, 300000) g) b", []),
    "JSON": (f"SELECT a.x @> a.x FROM {_JSON} a", []),
    "long JSON": (f"SELECT length(('[' || {_LIST} || '1]')::jsonb::text)", []),
    "many divisions": ("SELECT greatest(" + ", ".join(["length((a.x % a.y)::text)"] * 300) + ") FROM (SELECT $1::numeric AS x, $2::numeric AS y) a", ["9" * 130_000, "7" * 65_000]),
    "many long texts": ("SELECT greatest(" + ", ".join(["length(upper($1))"] * 300) + ")", ["é" * 5_000_000]),
    "a CHECK": ("INSERT INTO checked (x, y) VALUES ($1, $2)", [HAY, NEEDLE]),
    "a CHECK of many divisions": ("INSERT INTO divided VALUES ($1, $2)", ["9" * 130_000, "7" * 65_000]),
    "a CHECK of an older version": ("INSERT INTO old (x, y) VALUES ($1, $2)", [HAY, NEEDLE]),
    "a default": ("INSERT INTO checked (x, y) VALUES ('a', 'b')", []),
    "a view": ("SELECT * FROM seen", []),
    "an index": ("CREATE INDEX words_found ON words USING deeplake_index (x)", []),
    "a table": ("CREATE TABLE big AS SELECT a FROM generate_series(1, 100000000) a", []),
}  # fmt: skip


@pytest.fixture(scope="module")
def place(tables_url):
    tenant = uuid.uuid4().hex
    with Workspace(tables_url, tenant=tenant) as made:
        made.query("CREATE TABLE long (x TEXT)")
        made.query("INSERT INTO long VALUES ($1)", ["a" * 3_000_000])
        made.query("CREATE TABLE words (x TEXT)")
        made.query("INSERT INTO words SELECT 'word ' || a FROM generate_series(1, 300000) a")
        made.query(f"CREATE TABLE checked (x TEXT, y TEXT, z BIGINT DEFAULT {_SEARCH}, CHECK (strpos(x, y) >= 0))")
        rules = " AND ".join(f"length((x % y)::text) <> {-number}" for number in range(1, 300))
        made.query(f"CREATE TABLE divided (x NUMERIC, y NUMERIC, CHECK ({rules}))")
        made.query("CREATE TABLE old (x TEXT, y TEXT, z BIGINT DEFAULT 1, CHECK (strpos(x, y) >= 0))")
        made.query("CREATE VIEW seen AS SELECT strpos(x, 'b' || x) FROM long")
    _as_in_layout_1(tables_url, tenant)
    return tables_url, tenant


def _as_in_layout_1(url: str, tenant: str) -> None:
    """Leave the checks of a table as layout 1 wrote them."""
    with psycopg.connect(url) as connection:
        sql = "UPDATE remanence.table_tenants SET layout = 1 WHERE tenant = %s RETURNING schema"
        place = f'"{connection.execute(sql, [tenant]).fetchone()[0]}".old'
        connection.execute(f"ALTER TABLE {place} DROP CONSTRAINT old_check")
        connection.execute(f"ALTER TABLE {place} ADD CONSTRAINT old_check CHECK (strpos(x, y) >= 0)")


def active(url: str, text: str = "") -> int:
    """How many statements with this text run in the database."""
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND datname = current_database() "
            "AND backend_type = 'client backend' AND pid <> pg_backend_pid() AND position(%s in query) > 0",
            [text],
        ).fetchone()
    return row[0]


def test_hostile_statements_end_in_time_or_are_refused(place):
    url, tenant = place
    late = []
    with Workspace(url, tenant=tenant) as workspace:
        for name, (sql, params) in HOSTILE.items():
            started = time.monotonic()
            with pytest.raises(RemanenceError):
                workspace.query(sql, params or None, timeout=LIMIT)
            if time.monotonic() - started > 1.5 * LIMIT + BUSY:
                late.append(name)
    assert not late


def test_a_statement_ends_with_the_process_that_sent_it(place):
    url, tenant = place
    sql = "SELECT count(*) AS abandoned FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b"
    code = "import sys; from rmem.tables.workspace import Workspace as W; W(sys.argv[1], tenant=sys.argv[2]).query(sys.argv[3])"
    child = subprocess.Popen([sys.executable, "-c", code, url, tenant, sql])
    until = time.monotonic() + 60
    while not active(url, "abandoned") and time.monotonic() < until:
        time.sleep(0.1)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    killed = time.monotonic()
    while active(url, "abandoned") and time.monotonic() < killed + 20:
        time.sleep(0.1)
    assert time.monotonic() - killed < 10


@pytest.mark.parametrize(
    ("sql", "params", "rows"),
    [
        ("SELECT x LIKE $1, x NOT LIKE $1, x ILIKE $2 FROM (VALUES ('a_b')) v(x)", ["a%b%", "A!_B"], [(True, False, False)]),
        ("SELECT count(*) LIKE '%x%' FROM long", None, None),
        ("SELECT max(x) LIKE '%b%', string_agg(x, ',') NOT LIKE $1 FROM (VALUES ('abc')) v(x)", ["%z%"], [(True, True)]),
        ("SELECT strpos('abc', 'c'), split_part('a,b', ',', 2), replace('abc', 'b', ''), btrim('xax', 'x')", None, [(3, "b", "ac", "a")]),
        ("SELECT string_to_array('a,b', ','), string_to_array('a,b', NULL), string_to_array('a,', ',', '')", None, [(["a", "b"], ["a", ",", "b"], ["a", None])]),
        ("SELECT NULL::text LIKE '%x%', x && ARRAY[2], x @> '{3}' FROM (SELECT ARRAY[1, 2] AS x) v", None, [(None, True, False)]),
        ("SELECT ('{\"a\": ' || 1 || '}')::jsonb @> '{\"a\": 1}', replace(x, 'a', 'b'), count(*) FROM (VALUES ('a')) v(x) GROUP BY replace(x, 'a', 'b')", None, [(True, "b", 1)]),
    ],
)  # fmt: skip
def test_guarded_calls_answer_as_before(place, sql, params, rows):
    url, tenant = place
    with Workspace(url, tenant=tenant) as workspace:
        if rows is None:
            with pytest.raises(RemanenceError, match="operator does not exist"):
                workspace.query(sql, params)
        else:
            assert workspace.query(sql, params).rows == rows
