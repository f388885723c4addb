"""What PostgreSQL has and the tables do not is refused by its name, before any engine sees it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rmem.errors import NoSuchTableError, SqlError, SqlUnsupportedError
from rmem.tables.sql import functions
from rmem.tables.workspace import Workspace

CONSTRUCTS = {
    "SELECT n FROM t GROUP BY ROLLUP (n)": "ROLLUP",
    "SELECT n FROM t GROUP BY CUBE (n)": "CUBE",
    "SELECT n FROM t GROUP BY GROUPING SETS ((n), ())": "GROUPING SETS",
    "SELECT s LIKE 'a!%' ESCAPE '!' FROM t": "ESCAPE",
    "SELECT 1 FROM (t JOIN t AS u ON t.n = u.n)": "a join in brackets",
    "SELECT s SIMILAR TO 'a%' FROM t": "SIMILAR TO",
    "SELECT n & 1 FROM t": "n & 1",
    "SELECT n | 1 FROM t": "n | 1",
    "SELECT n # 1 FROM t": "n # 1",
    "SELECT ~n FROM t": "~n",
    "SELECT n << 1 FROM t": "n << 1",
    "SELECT s ^@ 'a' FROM t": "operator ^@",
    "SELECT j #- '{a}' FROM t": "operator #-",
    "SELECT overlay(s PLACING 'x' FROM 1) FROM t": "overlay",
    "SELECT to_timestamp(s, 'YYYY') FROM t": "to_timestamp",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY n) FROM t": "WITHIN GROUP",
    "SELECT array_agg(n)[1:2] FROM t": "slice of an array",
    "SELECT j['a'] FROM t": "subscript of JSONB",
    "SELECT ARRAY(SELECT n FROM t)": "ARRAY(SELECT",
    "SELECT n > ANY(ARRAY[1]) FROM t": "> ANY",
    "SELECT n = ALL(SELECT 1) FROM t": "= ALL",
    "SELECT s LIKE ANY(ARRAY['a']) FROM t": "LIKE ANY",
    "SELECT j <@ '{}' FROM t": "operator <@",
    "SELECT j ?| ARRAY['a'] FROM t": "operator ?|",
    "SELECT n FROM t EXCEPT ALL SELECT 1": "EXCEPT ALL",
    "SELECT n FROM t INTERSECT ALL SELECT 1": "INTERSECT ALL",
    "SELECT n FROM t FETCH FIRST ROW ONLY": "FETCH",
    "SELECT n FROM t NATURAL JOIN t AS u": "NATURAL JOIN",
    "SELECT 1 FROM t CROSS JOIN LATERAL (SELECT t.n) AS u": "LATERAL",
    "SELECT 1 FROM t, LATERAL generate_series(1, t.n) AS u": "LATERAL",
    "SELECT sum(n) OVER (ORDER BY n RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t": "RANGE with an offset",
    "SELECT localtimestamp": "LOCALTIMESTAMP",
    "SELECT to_jsonb(t) FROM t": "whole row",
    "SELECT (n, s) = (1, 'a') FROM t": "comparing rows",
    "SELECT n FROM t WHERE (n, s) IN (SELECT n, s FROM t)": "IN of rows",
    "SELECT '10:00'::time + interval '1 hour'": "time without time zone + interval",
    "SELECT interval '1 day' / 2": "interval / integer",
    "SELECT j - 1 FROM t": "jsonb - integer",
    "SELECT substring(s from 'a.') FROM t": "substring() with a pattern",
    "SELECT $$a$$": "dollar signs",
    "SELECT $tag$a$tag$": "dollar signs",
    "SELECT interval '1.5 days'": "part of a day",
    "SELECT m FROM regexp_matches('a', 'a') AS m": "regexp_matches",
    "SELECT make_interval(days => 3)": "make_interval",
    "SELECT U&'\\00e9'": "U&",
    'SELECT s COLLATE "C" FROM t': "COLLATE",
    "SELECT sum(n) OVER w FROM t WINDOW w AS (ORDER BY n)": "WINDOW",
    "INSERT INTO t VALUES (1) ON CONFLICT ON CONSTRAINT t_pkey DO NOTHING": "ON CONSTRAINT",
    "SELECT k FROM jsonb_each('{}'::jsonb) WITH ORDINALITY AS e (k, v, n)": "WITH ORDINALITY",
    "SELECT n FROM unnest(ARRAY[1]) WITH ORDINALITY AS u (x, n)": "WITH ORDINALITY",
    "INSERT INTO t DEFAULT VALUES": "DEFAULT VALUES",
    "ALTER TABLE t RENAME COLUMN s TO u": "RENAME COLUMN",
    "ALTER TABLE t RENAME TO u": "RENAME TO",
    "ALTER TABLE t ALTER COLUMN s SET NOT NULL": "ALTER COLUMN",
    "ALTER TABLE t DROP COLUMN s, ADD COLUMN s INT": "drops and adds",
    "UPDATE t SET (n, s) = (1, 'a')": "SET (…) = (…)",
    "UPDATE t SET n = 1 FROM t AS u RETURNING u.s": "RETURNING s of a joined table",
    "DELETE FROM t USING t AS u RETURNING u.*": "RETURNING n of a joined table",
    "SELECT sqrt(2.5)": "sqrt of numeric",
    "SELECT power(n, 0.5) FROM t": "power of numeric",
    "SELECT 2 ^ 0.5": "^ of numeric",
    "SELECT extract(century FROM now())": "century",
    "SELECT extract(decade FROM now())": "decade",
    "SELECT date_trunc('milliseconds', now())": "milliseconds",
    "SELECT 'a\\001b'::bytea": "octal",
}


@pytest.fixture
def tables(workspace):
    workspace.query("CREATE TABLE t (n INT, s TEXT, j JSONB)")
    return workspace


@pytest.mark.parametrize(("sql", "name"), CONSTRUCTS.items())
def test_a_construct_is_refused_by_its_name(tables, sql, name):
    with pytest.raises(SqlUnsupportedError, match="not supported here") as refused:
        tables.query(sql)
    assert name in str(refused.value)


@pytest.mark.parametrize("name", ["lpad", "to_char", "justify_days", "percentile_cont", "regr_r2", "nosuch"])
def test_a_function_that_is_not_offered_is_refused_by_its_name(tables, name):
    with pytest.raises(SqlUnsupportedError, match=rf"^function {name}\(\) is not supported here; docs/tables.md lists"):
        tables.query(f"SELECT {name}(1)")


def test_a_long_row_of_operators_is_refused(tables):
    assert tables.query("SELECT " + " + ".join(["1"] * 31)).rows == [(31,)]
    with pytest.raises(SqlError, match="30 operators in a row"):
        tables.query("SELECT " + " || ".join(["s"] * 32) + " FROM t")


def test_a_function_with_another_name_here_is_told(tables):
    with pytest.raises(SqlUnsupportedError, match=r"json_agg\(\) is not supported here; use jsonb_agg\(\)"):
        tables.query("SELECT json_agg(n) FROM t")
    with pytest.raises(SqlUnsupportedError, match=r"to_json\(\) is not supported here; use to_jsonb\(\)"):
        tables.query("SELECT to_json(n) FROM t")


def test_the_documentation_lists_every_function_and_no_other():
    text = (Path(__file__).parents[3] / "docs" / "tables.md").read_text()
    section = text.partition("| functions | |")[2].partition("### Metadata")[0]
    listed = set(re.findall(r"`([a-z_0-9]+)`", section)) - {"current_date"}
    tables = (functions.scalars, functions.aggregates, functions.windows, functions.sets)
    spelled = {"trim", "position", "extract", "deeplake_hybrid_record"}  # not called like other functions
    assert listed == {name for table in tables for name in table} | spelled


@pytest.mark.parametrize(
    ("sql", "near"),
    [
        ("SELECT salry FROM emp", 'column "salry" does not exist in "emp"; did you mean "salary"?'),
        ("SELECT e.nmae FROM emp e", 'column "nmae" does not exist in "e"; did you mean "name"?'),
        ("UPDATE emp SET salery = 1", 'column "salery" does not exist in "emp"; did you mean "salary"?'),
        ("INSERT INTO emp (nam) VALUES ('x')", 'column "nam" does not exist in "emp"; did you mean "name"?'),
        ("SELECT zzz FROM emp", 'column "zzz" does not exist in "emp"'),
        ("SELECT 1 FROM emps", 'table "emps" does not exist in workspace "default"; did you mean "emp"?'),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest_one(tmp_path, sql, near):
    with Workspace(tmp_path / "tables.db") as workspace:
        workspace.query("CREATE TABLE emp (name TEXT, salary INT)")
        with pytest.raises((SqlError, NoSuchTableError)) as error:
            workspace.query(sql)
    assert str(error.value) == near


@pytest.mark.parametrize(
    "value",
    [
        "Jan 5, 2024",
        "01/05/2024",
        "20240105",
        "2024-01-05 6:07 PM",
        "now",
        "today",
        "epoch",
        "2024-01-05 10:00 +2 hours",
    ],
)
def test_a_time_that_is_not_written_in_iso_8601_is_refused_with_an_example(tables, value):
    with pytest.raises(SqlError, match="invalid input syntax"):
        tables.query(f"SELECT '{value}'::timestamptz")
    with pytest.raises(SqlError, match="invalid input syntax"):
        tables.query("SELECT $1::timestamptz", [value])


@pytest.mark.parametrize("value", ["1 day ago", "P1Y2M", "1-2", "3 4:05:06", "5", "1 fortnight", ""])
def test_an_interval_whose_parts_have_no_unit_is_refused(tables, value):
    with pytest.raises(SqlError, match="invalid input syntax for type interval"):
        tables.query(f"SELECT '{value}'::interval")


def test_a_zone_is_a_name(tables):
    with pytest.raises(SqlError, match="Europe/Berlin"):
        tables.query("SELECT now() AT TIME ZONE '+02'")


@pytest.mark.parametrize(
    ("written", "instead"),
    [("DATETIME", "TIMESTAMP"), ("LONGTEXT", "TEXT"), ("NVARCHAR", "VARCHAR"), ("TINYINT", "SMALLINT")],
)
def test_a_type_of_another_database_is_refused_with_the_one_to_write(tables, written, instead):
    with pytest.raises(SqlUnsupportedError, match=re.escape(f"type {written} is not supported; write {instead}")):
        tables.query(f"CREATE TABLE other (at {written})")
    tables.query(f"CREATE TABLE other (at {instead})")


def test_a_type_that_nothing_stands_for_is_refused_by_its_name(tables):
    with pytest.raises(SqlUnsupportedError, match=r"type HSTORE is not supported$"):
        tables.query("CREATE TABLE other (at HSTORE)")
    with pytest.raises(SqlUnsupportedError, match=r"type REGCLASS is not supported$"):
        tables.query("SELECT s::regclass FROM t")


@pytest.mark.parametrize(
    ("sql", "near"),
    [
        ("selct * from t", "'selct' is not the beginning of one; did you mean SELECT?"),
        ("INSER INTO t VALUES (1)", "'INSER' is not the beginning of one; did you mean INSERT?"),
        ("EXPLAIN SELEC 1", "'SELEC' is not the beginning of one; did you mean SELECT?"),
        ("hello world", "'hello' is not the beginning of one"),
    ],
)
def test_a_misspelt_first_word_is_answered_with_the_nearest_one(tables, sql, near):
    with pytest.raises(SqlError, match=re.escape(f"the statement cannot be read: {near}") + "$"):
        tables.query(sql)


@pytest.mark.parametrize("sql", ["SELECT a FROM t WHERE a = %s", "SELECT a FROM t WHERE a = ?"])
def test_parameters_of_other_drivers_are_refused_with_ours(tables, sql):
    with pytest.raises(SqlError, match=r"parameters are written \$1 or :name"):
        tables.query(sql, ("x",))


@pytest.mark.parametrize("sql", ["SELECT a FROM t WHERE a = 'x", 'SELECT "a FROM t'])
def test_a_quote_that_is_not_closed_is_told(tables, sql):
    with pytest.raises(SqlError, match=r"cannot be read: Missing ['\"] from 1:\d+"):
        tables.query(sql)
