"""Any statement is read, bound and compiled, or refused, in bounded time, whatever is nested or repeated in it.

The statements of others are from PostgreSQL's regression tests (PostgreSQL licence) and sqlglot's fixtures (MIT)."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmem.errors import RemanenceError, SqlError, StatementTimeoutError
from rmem.tables.sql.parse import parse
from rmem.tables.workspace import Workspace

OF_OTHERS = [
    "SELECT x::int[], y FROM (VALUES (ARRAY[1,2]::text[], 1)) v(x, y)",
    "select array[[['hello','world'],['happy','birthday']]]",
    "SELECT ARRAY[ARRAY[1,2],ARRAY[3,4]] || ARRAY[5,6]",
    "select * from int8_tbl a left join lateral (select *, coalesce(a.q2, 42) as x from int8_tbl b) ss on a.q2 = ss.q1",
    "SELECT interval '1 day' AS one, INTERVAL(2) '5 days 6 hours', interval '1' minute to second",
    "select case when b > 3 then case when a = any(array[1,2]) then 'x' else (select max(c) from t2) end end from t1",
    "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL SELECT n+1 FROM t WHERE n < 100) SELECT sum(n) FROM t",
    "select sum(c) filter (where a <> 0) over (order by c rows between 1 preceding and current row) from t",
    "select a, b, grouping(a,b), sum(v) from gstest1 group by rollup (a,b), grouping sets ((a), (b), ())",
    "SELECT 'abcdefg' SIMILAR TO '_bcd#%' ESCAPE '#' AS t, U&'d!0061t!+000061' UESCAPE '!'",
    "SELECT $$dollar 'quoted'$$, $body$ text $x$ inside $body$, e'esc\\'aped', 'it''s'",
    "INSERT INTO upsert VALUES (1) ON CONFLICT (key) DO UPDATE SET val = (select (select max(f1) from t)) RETURNING *",
    "SELECT jsonb_path_query('[1]', '$[*] ? (@ > 1)') -> 'a' ->> 0 #>> '{a,b}' @> '{\"a\": 1}'::jsonb",
    "SELECT EXTRACT(EPOCH FROM TIMESTAMP '2020-01-01') , OVERLAY('abcdef' PLACING '45' FROM 4), TRIM(BOTH 'x' FROM b)",
    "SELECT a.b.c.d.e, {'a': [1, {2: 3}]}, x[1][2:3], STRUCT(1 AS a, [STRUCT('b')] AS c), MAP([1], [2])",
    "SELECT CAST(CAST(x AS DECIMAL(38, 0)) AS ARRAY<STRUCT<a INT, b ARRAY<MAP<TEXT, INT>>>>) FROM t",
    "create table t (a int check (a > 0), b numeric(10,2)[] default array[1.5], foreign key (b) references u)",
    "SELECT * FROM ((t1 JOIN t2 USING (a)) CROSS JOIN (t3 NATURAL JOIN t4)) AS x(a, b) TABLESAMPLE SYSTEM (10)",
]
NESTED = [
    ("(", ")"), ("ARRAY[", "]"), ("[", "]"), ("f(", ")"), ("(SELECT ", ")"), ("CASE WHEN ", " THEN 1 END"),
    ("CAST(", " AS INT)"), ("INTERVAL (", ")"), ("1 = ANY(ARRAY[", "])"), ("1 IN (", ")"), ("EXISTS (SELECT ", ")"),
    ("NOT ", ""), ("- ", ""), ("NULLIF(", ", 1)"), ("coalesce(", ", 1)"), ("(1, ", ")"), ("1 BETWEEN ", " AND 2"),
    ("MAP[", "]"), ("STRUCT(", ")"), ("DECIMAL(", ")"), ("TIMESTAMP(", ")"), ("ARRAY<", ">"), ("NULLABLE(", ")"),
    ("JSON(", ")"), ("REF(", ")"), ("ENUM(", ")"), ("sum(", ") OVER (PARTITION BY 1)"), ("/*", "*/"), ("$a$ ", ""),
    ("1 IS DISTINCT FROM ", ""), ("TRIM(BOTH 'x' FROM ", ")"), ("(VALUES (", "))"), ("{", "}"), ("b <#> ", ""),
]  # fmt: skip
FRAMES = [
    "SELECT {}", "SELECT 1 FROM {}", "SELECT 1 FROM t WHERE {}", "INSERT INTO t (a) VALUES ({})",
    "CREATE TABLE z (a {})", "UPDATE t SET a = {}", "SELECT 1 FROM t ORDER BY {}", "SELECT 1::{}",
    "SELECT a FROM t GROUP BY {}",
]  # fmt: skip
REPEATED = [
    "1,", "1+", "- ", "NOT ", "a.", "$a$", "$1 ", "/*", "*/", "--", "'", '"', "(", ")", "[", "ARRAY[", "INTERVAL ",
    "(1),", ":a,", "::int", "||'a'", "CASE ", "SELECT ", "JOIN t ", "UNION SELECT 1 ", "x AS (SELECT 1), ", "->'a'",
    "E'\\'",
]  # fmt: skip


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    with Workspace(tmp_path_factory.mktemp("bounded") / "t.db") as made:
        made.query("CREATE TABLE t (id BIGSERIAL PRIMARY KEY, a INT, b TEXT)")
        yield made


def cpu_of(workspace: Workspace, sql: str, timeout: float | None = None) -> float:
    """The CPU seconds until a statement is answered or refused."""
    started = time.process_time()
    try:
        workspace.query(sql, timeout=timeout)
    except RemanenceError:
        pass
    return time.process_time() - started


def too_long(workspace, statements, most, timeout=None):
    found = ((cpu_of(workspace, sql, timeout), sql) for sql in statements)
    return [(round(seconds, 2), sql[:80]) for seconds, sql in found if seconds > most]


def test_statements_of_others_are_read_or_refused_at_once(workspace):
    assert not too_long(workspace, OF_OTHERS, 1.0)


def test_whatever_is_nested_is_read_or_refused_at_once(workspace):
    nested = ["SELECT " + begin * 31 + "1" + end * 31 for begin, end in NESTED]
    unclosed = ["SELECT " + begin * 31 + "1" for begin, _ in NESTED]
    assert not too_long(workspace, nested + unclosed, 1.0)


def test_whatever_is_repeated_keeps_to_the_time_limit(workspace):
    assert not too_long(workspace, ["SELECT " + words * 2000 + "1" for words in REPEATED], 1.5, timeout=1.0)


@pytest.mark.parametrize("words", [":a,", r"E'\n',", "e <=> e,"])
def test_thousands_of_nodes_that_are_replaced_keep_to_the_time_limit(workspace, words):
    assert not too_long(workspace, [f"SELECT {words * 8000}1"], 2.0, timeout=1.0)


@pytest.mark.slow
def test_every_mutation_is_read_or_refused_in_time(workspace):
    nested = [
        frame.format(begin * depth + "1" + end * depth * closed)
        for frame in FRAMES
        for begin, end in NESTED
        for depth in (10, 16, 31, 200)
        for closed in (True, False)
        if "{" not in begin
    ]
    assert not too_long(workspace, nested, 1.5, timeout=1.0)
    repeated = [frame.format(words * 10_000) for frame in FRAMES[:4] for words in REPEATED]
    assert not too_long(workspace, repeated, 2.0, timeout=1.0)
    cut = [sql[:at] for sql in OF_OTHERS for at in range(0, len(sql), 3)]
    assert not too_long(workspace, cut, 1.0, timeout=1.0)


def test_many_parameters_take_no_time_for_each_pair_of_them(workspace):
    numbers = ", ".join(f"${number}" for number in range(1, 1501))
    started = time.process_time()
    assert len(workspace.query(f"SELECT {numbers}", [1] * 1500).rows[0]) == 1500
    assert time.process_time() - started < 3


@pytest.mark.parametrize("sql", ["SELECT '{}'::int8", "SELECT interval '{} days'", "SELECT ${}"])
def test_numbers_of_thousands_of_digits_are_refused(workspace, sql):
    with pytest.raises(SqlError, match=r"99…|got \$9{20}$"):
        workspace.query(sql.format("9" * 5000))


def test_dollar_signs_stand_in_texts_names_and_comments():
    def text(sql: str) -> str:
        return parse(sql).tree.sql(dialect="postgres")

    assert text("SELECT '$c$', \"$d$\"") == "SELECT '$c$', \"$d$\""
    assert text("SELECT 1 /* $a$ */ -- $b$") == "SELECT 1 /* $a$ */ /* $b$ */"
    assert text("SELECT E'\\'$a$', $1") == "SELECT '''$a$', $1"
    for sql in ("SELECT $a$ text", "SELECT $$", "SELECT $"):
        with pytest.raises(SqlError):
            parse(sql)


def test_types_with_a_length_are_still_types(workspace):
    assert workspace.query("SELECT ARRAY[ARRAY[1, 2], ARRAY[3, 4]] AS a").rows == [([[1, 2], [3, 4]],)]
    with pytest.raises(SqlError, match="6 dimensions"):
        workspace.query("SELECT " + "ARRAY[" * 7 + "1" + "]" * 7)


@given(st.text("ab%_", max_size=8), st.text("ab", max_size=10))
def test_like_is_what_a_plain_regular_expression_says(workspace, pattern, text):
    plain = "".join({"%": ".*", "_": "."}.get(sign, sign) for sign in pattern)
    found = [bool(re.fullmatch(plain, text))] * 2
    assert list(workspace.query("SELECT $1 LIKE $2, $3 ILIKE $2", [text, pattern, text.upper()]).rows[0]) == found


def test_hostile_patterns_of_like_are_refused_or_end_in_time(workspace):
    started = time.process_time()
    with pytest.raises(SqlError, match="arguments of LIKE are too long"):
        workspace.query("SELECT $1 ILIKE $2", ["ab" * 2_000_000, "%a" + "_" * 5000 + "c"], timeout=0.3)
    assert time.process_time() - started < 2
    assert workspace.query("SELECT $1 ILIKE $2", ["A" * 3000, "%a" * 300 + "%b"], timeout=5).rows == [(False,)]


@pytest.mark.parametrize("pattern", ["$2", "(SELECT $2)", "'%" + "a" * 15_000 + "b%c'"], ids=["value", "query", "text"])
def test_long_patterns_of_like_are_refused_before_a_long_text_alone(workspace, pattern):
    text, long = "a" * 2_000_000, "%" + "a" * 15_000 + "b%c"
    started = time.process_time()
    parameters = [long] if "$2" in pattern else []
    with pytest.raises(SqlError, match="arguments of LIKE are too long"):
        workspace.query(f"SELECT $1 LIKE {pattern}", [text, *parameters], timeout=0.3)
    assert workspace.query(f"SELECT $1 LIKE {pattern}", [text[:20_000], *parameters]).rows == [(False,)]
    assert time.process_time() - started < 2


def test_long_and_short_patterns_of_like_match_alike(workspace):
    like = "SELECT x LIKE $1, x NOT LIKE $1, x LIKE y FROM (VALUES ($2, $1)) AS t (x, y)"
    for word in ("a_c\\%", "a_c\\%" * 20):
        for text, found in ((word.replace("_", "b").replace("\\", ""), True), (word, False)):
            assert workspace.query(like, [word, text]).rows == [(found, not found, found)]


def test_building_an_index_keeps_to_the_limit_and_goes_on_next_time(tmp_path):
    with Workspace(tmp_path / "t.db") as tables:
        tables.query("CREATE TABLE d (id BIGSERIAL PRIMARY KEY, body TEXT)")
        words = " ".join(f"word{number}" for number in range(300))
        tables.insert("d", {"body": [f"{words} number{number}" for number in range(4000)]})
        search = "SELECT id FROM d ORDER BY body <#> 'number77' DESC LIMIT 1"
        tries = 0
        while True:
            started = time.process_time()  # a busy machine adds seconds of waiting
            limit = 0.5 * 2 ** (tries // 10)  # of which a busy machine works for a part only
            try:
                found = tables.query(search, timeout=limit)
                break
            except StatementTimeoutError:
                tries += 1
                assert time.process_time() - started < limit + 1
                assert tries < 60, "it does not get any further"
        assert tries > 0
        assert found.rows == [(78,)]
