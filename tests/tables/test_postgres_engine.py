"""PostgreSQL as an engine of tables: what it does beyond running the same statements as SQLite."""

from __future__ import annotations

import datetime as dt
import threading
import uuid
from collections import defaultdict
from dataclasses import replace
from decimal import Decimal

import numpy as np
import psycopg
import pytest
from sqlglot import exp

from rmem.errors import (
    ConstraintError,
    NoSuchTableError,
    SqlError,
    StatementTimeoutError,
    TooManyRowsError,
)
from rmem.tables.catalog import Column, Index, Kind, Table, Type
from rmem.tables.engines import postgres_changes
from rmem.tables.engines.base import StatementPlan
from rmem.tables.engines.postgres import PostgresEngine
from rmem.tables.sql.bind import Binder
from rmem.tables.sql.literals import check_columns
from rmem.tables.sql.parse import parse
from rmem.tables.sql.statements import bind_statement

DOCS = Table(
    "docs",
    (
        Column("id", Type(Kind.BIGINT), nullable=False, serial=True),
        Column("title", Type(Kind.TEXT)),
        Column("embedding", Type(Kind.VECTOR, dimension=3)),
        Column("at", Type(Kind.TIMESTAMPTZ), default="now()"),
    ),
    primary_key=("id",),
)


def plan(sql, *parameters, table=DOCS, **settings):
    """A statement as an engine gets it: bound to a table, unless it holds what search operators become."""
    tree = parse(sql).tree
    if table is not None and "rmem_score" not in sql:
        bind_statement(Binder({table.name: table}, "default", parameters), tree)
    elif table is not None:
        for node in tree.find_all(exp.Table):
            if node.name == table.name:
                node.meta["table"] = table
    return StatementPlan(tree, parameters, **settings)


@pytest.fixture
def tenant():
    return f"Test {uuid.uuid4().hex}/ünïcode'\""


@pytest.fixture
def engine(tables_url, tenant):
    engine = PostgresEngine(tables_url, tenant=tenant)
    yield engine
    engine.close()


@pytest.fixture
def docs(engine):
    engine.create_table(DOCS)
    return engine


def titles(engine, sql="SELECT docs.title FROM docs ORDER BY docs.id"):
    return [row[0] for row in engine.run(plan(sql)).rows]


def fill(engine, *names):
    return engine.insert(DOCS, ["title"], [[name] for name in names])


# The catalogue


def test_a_table_is_known_to_every_engine_of_its_tenant(docs, tables_url, tenant):
    other = PostgresEngine(tables_url, tenant=tenant)
    assert other.tables() == {"docs": DOCS} == docs.tables()
    other.create_index(Index("by_words", "docs", ("title",), method="deeplake_index", options={"index_type": "bm25"}))
    other.create_index(Index("by_title", "docs", ("title",), unique=True))
    assert [index.name for index in docs.tables()["docs"].indexes] == ["by_words", "by_title"]
    docs.drop_index(docs.tables()["docs"].indexes[1])
    assert [index.name for index in other.tables()["docs"].indexes] == ["by_words"]
    other.drop_table("docs")
    assert docs.tables() == {}
    other.close()


def test_a_table_that_cannot_be_made_leaves_nothing(engine):
    bad = Table("bad", (Column("a", Type(Kind.INTEGER), default="nonsense()"),))
    with pytest.raises(SqlError):
        engine.create_table(bad)
    assert engine.tables() == {}
    engine.create_table(Table("bad", (Column("a", Type(Kind.INTEGER)),)))


def test_every_kind_of_value_comes_back_as_it_went(engine):
    now = dt.datetime(2024, 2, 29, 12, 30, 15, 123456, tzinfo=dt.timezone(dt.timedelta(hours=5)))
    values = {
        Kind.TEXT: "ä𝄞'\"\\",
        Kind.SMALLINT: -3,
        Kind.INTEGER: 2**31 - 1,
        Kind.BIGINT: 2**63 - 1,
        Kind.REAL: float(np.float32(0.1)),
        Kind.DOUBLE: 0.1,
        Kind.NUMERIC: Decimal("12345678901234567890.123456789"),
        Kind.BOOLEAN: True,
        Kind.JSONB: {"a": [1, 2.5, None, "x"], "b": {}},
        Kind.TIMESTAMPTZ: now,
        Kind.TIMESTAMP: now.replace(tzinfo=None),
        Kind.DATE: now.date(),
        Kind.TIME: dt.time(23, 59, 59, 1),
        Kind.INTERVAL: dt.timedelta(days=3, seconds=5, microseconds=7),
        Kind.UUID: uuid.uuid4(),
        Kind.BYTEA: b"\x00\xff",
        Kind.VECTOR: [float(np.float32(number)) for number in (0.1, -2.5, 1e-20)],
        Kind.VECTORS: [[1.0, 2.0], [3.0, 4.0]],
        Kind.TEXTS: ["a", 'b"', "NULL", None],
        Kind.INTEGERS: [1, -(2**60)],
    }
    assert set(values) == set(Kind)
    columns = tuple(Column(f"c{number}", Type(kind)) for number, kind in enumerate(values))
    table = Table("kinds", columns)
    engine.create_table(table)
    names = [column.name for column in columns]
    given = {name: [value, None] for name, value in zip(names, values.values(), strict=True)}
    assert engine.insert(table, *check_columns(table, given)) == 2
    marks = ", ".join(f"${number + 1}" for number in range(len(columns)))
    engine.run(plan(f"INSERT INTO kinds VALUES ({marks})", *values.values(), table=table))
    result = engine.run(plan(f"SELECT {', '.join(f'kinds.{name}' for name in names)} FROM kinds", table=table))
    assert result.rows == [tuple(values.values()), (None,) * len(columns), tuple(values.values())]
    assert [type(value) for value in result.rows[0]] == [type(value) for value in values.values()]
    assert result.rows[0][list(values).index(Kind.TIMESTAMPTZ)].tzinfo is dt.UTC
    assert [found.kind for found in result.types] == list(values)


def test_hidden_columns_are_not_part_of_insert_without_columns(docs):
    docs.run(plan("INSERT INTO docs VALUES (7, 'seven')"))
    docs.run(plan("INSERT INTO docs SELECT docs.id + 1, 'eight' FROM docs"))
    assert docs.run(plan("SELECT docs.id, docs.title FROM docs ORDER BY docs.id")).rows == [(7, "seven"), (8, "eight")]


@pytest.mark.parametrize("vector", [[1.0, 2.0], [1.0, 2.0, 3.0, 4.0], [], [[1.0, 2.0, 3.0]], "{1,2,NULL}"])
def test_a_vector_that_does_not_fit_is_refused(docs, vector):
    with pytest.raises(SqlError, match=r"numbers|NULL"):
        docs.run(plan("INSERT INTO docs (embedding) VALUES ($1)", vector))
    docs.run(plan("INSERT INTO docs (embedding) VALUES ($1), (NULL), ('{1,2,3}')", [0.1, 2, 3]))
    assert docs.run(plan("SELECT count(*) FROM docs")).rows == [(3,)]


def test_names_of_a_with_hide_tables_as_in_sql(docs):
    fill(docs, "a", "b")
    sql = "WITH docs AS (SELECT docs.title FROM docs WHERE docs.title = 'b') SELECT docs.title FROM docs"
    assert docs.run(plan(sql)).rows == [("b",)]
    nested = "SELECT x.title FROM (WITH docs AS (SELECT 'c' AS title) SELECT docs.title FROM docs) AS x, docs"
    assert docs.run(plan(nested)).rows == [("c",), ("c",)]


def test_texts_are_ordered_by_code_point_whatever_the_database_says(postgres, tenant):
    url = postgres.new_database()
    engine = PostgresEngine(url, tenant=tenant)
    engine.create_table(DOCS)
    fill(engine, "b", "a", "B", "ä", "A", "Z", "_")
    assert titles(engine, "SELECT docs.title FROM docs ORDER BY docs.title") == ["A", "B", "Z", "_", "a", "b", "ä"]
    engine.close()
    postgres.drop_database(url)


# Changes


def followed(seen, changes):
    """What an index knows after some changes, from what it knew."""
    gone = seen if changes.whole else set(changes.gone.tolist())
    rows = {row: values for row, values in seen.items() if row not in gone}
    assert len(set(changes.gone.tolist())) == changes.gone.size
    return rows | dict(zip(changes.rows.tolist(), changes.values, strict=True))


def now_in(engine, columns=("title",)):
    return followed({}, engine.changes("docs", columns, 0))


def test_changes_tell_what_was_inserted_updated_and_deleted(docs):
    fill(docs, "a", "b", "c")
    first = docs.changes("docs", ["title"], 0)
    assert sorted(first.values) == [("a",), ("b",), ("c",)]
    assert first.gone.size == 0
    quiet = docs.changes("docs", ["title"], first.version)
    assert quiet.rows.size == quiet.gone.size == 0
    docs.run(plan("UPDATE docs SET title = 'B' WHERE title = 'b'"))
    docs.run(plan("DELETE FROM docs WHERE title = 'a'"))
    docs.run(plan("INSERT INTO docs (id, title) VALUES (3, 'x') ON CONFLICT (id) DO UPDATE SET title = excluded.title"))
    later = docs.changes("docs", ["title"], first.version)
    assert sorted(later.values) == [("B",), ("x",)]
    assert later.gone.size == 3
    assert followed(followed({}, first), later) == now_in(docs)
    assert later.version > first.version


def test_vectors_arrive_as_arrays(docs):
    docs.insert(DOCS, ["embedding"], [[[1.0, 2.0, 0.1]], [None]])
    values = [row[0] for row in docs.changes("docs", ["embedding"], 0).values]
    assert values[0].dtype == np.float32
    assert values[0].tolist() == [1.0, 2.0, float(np.float32(0.1))]
    assert values[1] is None


def test_a_transaction_that_commits_late_is_not_missed(docs, tables_url):
    fill(docs, "first")
    seen = docs.changes("docs", ["title"], 0)
    place = docs._words.place("docs")
    with psycopg.connect(tables_url) as slow, psycopg.connect(tables_url) as slower:
        slow.execute(f"INSERT INTO {place} (title) VALUES ('slow')")
        slower.execute(f"DELETE FROM {place} WHERE title = 'first'")
        fill(docs, "fast")
        middle = docs.changes("docs", ["title"], seen.version)
        known = followed(followed({}, seen), middle)
        assert sorted(known.values()) == [("fast",), ("first",)]
        slow.commit()
        after = docs.changes("docs", ["title"], middle.version)
        known = followed(known, after)
        assert sorted(known.values()) == [("fast",), ("first",), ("slow",)]
        slower.commit()
    known = followed(known, docs.changes("docs", ["title"], after.version))
    assert sorted(known.values()) == [("fast",), ("slow",)]


def test_many_writers_and_a_reader_agree_in_the_end(docs):
    def write(number):
        for turn in range(15):
            docs.insert(DOCS, ["title"], [[f"{number}-{turn}"]])
            docs.run(plan("UPDATE docs SET title = $1 WHERE docs.title = $2", f"{number}={turn}", f"{number}-{turn}"))
            if turn % 3 == 0:
                docs.run(plan("DELETE FROM docs WHERE docs.title = $1", f"{number}={turn}"))

    writers = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for writer in writers:
        writer.start()
    known, version = {}, 0
    while any(writer.is_alive() for writer in writers):
        changes = docs.changes("docs", ["title"], version)
        known, version = followed(known, changes), changes.version
    known = followed(known, docs.changes("docs", ["title"], version))
    assert known == now_in(docs)
    assert sorted(known.values()) == sorted((f"{n}={t}",) for n in range(6) for t in range(15) if t % 3)


def test_deletions_are_forgotten_and_late_readers_still_right(docs):
    fill(docs, *"abcdefghij")
    early = docs.changes("docs", ["title"], 0)
    for name in "abcdef":
        docs.run(plan("DELETE FROM docs WHERE docs.title = $1", name))
    late = docs.changes("docs", ["title"], early.version)
    postgres_changes.forget(docs._link, docs._tenant, "docs", kept=2)
    docs.run(plan("DELETE FROM docs WHERE docs.title = 'g'"))
    held = docs._link.read_directly(
        lambda connection: connection.execute(
            "SELECT count(*) FROM remanence.table_deletions WHERE tenant = %s", [docs._tenant.name]
        ).fetchone()
    )
    assert held[0] <= 4
    assert followed(followed({}, early), docs.changes("docs", ["title"], early.version)) == now_in(docs)
    known = followed(followed({}, early), late)
    assert followed(known, docs.changes("docs", ["title"], late.version)) == now_in(docs)


def test_a_table_made_again_is_followed_by_name(docs):
    fill(docs, "old", "older")
    seen = docs.changes("docs", ["title"], 0)
    docs.drop_table("docs")
    with pytest.raises(NoSuchTableError):
        docs.changes("docs", ["title"], seen.version)
    docs.create_table(DOCS)
    fill(docs, "new")
    known = followed(followed({}, seen), docs.changes("docs", ["title"], seen.version))
    assert list(known.values()) == [("new",)]
    assert not set(known) & set(seen.rows.tolist())


def test_a_table_whose_column_was_dropped_is_read_again(docs):
    fill(docs, "1", "2")
    seen = docs.changes("docs", ["title"], 0)
    docs.alter_table(replace(DOCS, columns=tuple(column for column in DOCS.columns if column.name != "title")))
    docs.alter_table(DOCS)
    found = docs.changes("docs", ["title"], seen.version)
    assert found.whole
    assert found.values == [(None,), (None,)]


# Statements


class Fixed:
    """Scores as a search gives them."""

    def __init__(self, scores):
        self.scores = scores
        self.by_row = defaultdict(lambda: None, scores)

    def best(self, count):
        rows = sorted(self.scores, key=self.scores.get, reverse=True)[:count]
        return np.array(rows, np.int64), np.array([self.scores[row] for row in rows], np.float64)

    def all(self):
        return self.best(len(self.scores))


SCORED = [
    ("SELECT d.title, rmem_score(0, d._row) AS s FROM docs AS d ORDER BY s DESC NULLS LAST, d.id", None,
     [("c", 0.9), ("a", 0.5), ("b", None), ("d", None)]),
    ("SELECT d.title, rmem_score(0, d._row) AS s FROM docs AS d ORDER BY s DESC LIMIT 2", [1, 3],
     [("c", 0.9), ("a", 0.5)]),
    ("SELECT d.title, rmem_score(0, d._row) + rmem_score(1, d._row) AS s FROM docs AS d WHERE d.id > 0 ORDER BY d.id",
     None, [("a", 1.5), ("b", None), ("c", None), ("d", None)]),
    ("SELECT d.title, rmem_score(0, d._row) AS s FROM docs AS d WHERE d.title <> 'c' ORDER BY s DESC", [3, 1, 2],
     [("b", None), ("a", 0.5)]),
    ("SELECT o.title, d.title FROM docs AS o LEFT JOIN docs AS d ON d.id = o.id AND rmem_score(0, d._row) > 0.6 "
     "ORDER BY o.id", None, [("a", None), ("b", None), ("c", "c"), ("d", None)]),
    ("SELECT d.id, max(rmem_score(0, d._row)) AS s FROM docs AS d GROUP BY d.id ORDER BY d.id", None,
     [(1, 0.5), (2, None), (3, 0.9), (4, None)]),
    ("SELECT x.title FROM (SELECT d.title, rmem_score(0, d._row) AS s FROM docs AS d) AS x WHERE x.s > 0.6", None,
     [("c",)]),
    ("SELECT d.title, e.title FROM docs AS d, docs AS e WHERE rmem_score(0, d._row) > rmem_score(1, e._row) - 0.5",
     None, [("c", "a")]),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "narrowed", "expected"), SCORED)
def test_scores_are_joined_to_their_rows(docs, sql, narrowed, expected):
    fill(docs, "a", "b", "c", "d")
    candidates = {} if narrowed is None else {"d": np.array(narrowed)}
    scores = [Fixed({1: 0.5, 3: 0.9}), Fixed({1: 1.0})]
    assert docs.run(plan(sql, scores=scores, candidates=candidates)).rows == expected


def test_scores_choose_rows_to_change(docs):
    fill(docs, "a", "b", "c", "d")
    scores = [Fixed({1: 0.5, 3: 0.9})]
    docs.run(plan("UPDATE docs SET title = 'best' WHERE rmem_score(0, docs._row) > 0.6", scores=scores))
    docs.run(plan("DELETE FROM docs AS d WHERE rmem_score(0, d._row) < 0.6", scores=scores))
    narrow = {"docs": np.array([2])}
    docs.run(plan("DELETE FROM docs WHERE rmem_score(0, docs._row) IS NULL", scores=scores, candidates=narrow))
    assert titles(docs) == ["best", "d"]


def test_a_statement_that_takes_too_long_is_stopped(docs):
    with pytest.raises(StatementTimeoutError):
        docs.run(plan("SELECT count(*) FROM generate_series(1, 100000000) AS a", timeout=0.05))
    assert docs.run(plan("SELECT 1")).rows == [(1,)]


def test_an_answer_with_too_many_rows_is_refused(docs):
    fill(docs, "a", "b", "c")
    assert len(docs.run(plan("SELECT docs.title FROM docs", max_rows=3)).rows) == 3
    for sql in (
        "SELECT docs.title FROM docs",
        "SELECT docs.title FROM docs LIMIT 1000000",
        "SELECT docs.title FROM docs LIMIT 3 OFFSET 0",
        "SELECT docs.title FROM docs UNION ALL SELECT 'x'",
        "SELECT a FROM generate_series(1, 100000) AS a",
    ):
        with pytest.raises(TooManyRowsError):
            docs.run(plan(sql, max_rows=2, timeout=20))
    assert docs.run(plan("SELECT docs.title FROM docs ORDER BY docs.id LIMIT 2", max_rows=2)).row_count == 2
    with pytest.raises(TooManyRowsError):
        docs.run(plan("INSERT INTO docs (title) SELECT docs.title FROM docs RETURNING docs.id", max_rows=2))
    assert titles(docs) == ["a", "b", "c"]


def test_broken_constraints_leave_nothing_and_say_what(docs):
    fill(docs, "a")
    docs.create_index(Index("one", "docs", ("title",), unique=True))
    with pytest.raises(ConstraintError, match=r"\(title\)=\(a\)"):
        docs.run(plan("INSERT INTO docs (title) VALUES ('z'), ('a')"))
    with pytest.raises(ConstraintError):
        docs.insert(DOCS, ["title"], [["y"], ["a"]])
    with pytest.raises(ConstraintError, match="'id'"):
        docs.run(plan("INSERT INTO docs (id) VALUES (NULL)"))
    with pytest.raises(SqlError):
        docs.run(plan("SELECT 1 / 0"))
    with pytest.raises(SqlError):
        docs.run(plan("SELECT 'x'::integer"))
    with pytest.raises(NoSuchTableError) as refused:
        docs.run(plan("SELECT 1 FROM nothing", table=None))
    assert docs._tenant.schema not in str(refused.value)
    assert titles(docs) == ["a"]


def test_a_stream_reads_one_state_in_batches(docs):
    fill(docs, *(f"t{number}" for number in range(25)))
    stream = docs.stream(plan("SELECT docs.title FROM docs ORDER BY docs.id"), 10)
    first = next(stream)
    docs.run(plan("DELETE FROM docs"))
    rest = list(stream)
    assert [batch.row_count for batch in [first, *rest]] == [10, 10, 5]
    assert [row[0] for batch in [first, *rest] for row in batch.rows] == [f"t{number}" for number in range(25)]
    empty = list(docs.stream(plan("SELECT docs.title FROM docs"), 10))
    assert [(batch.columns, batch.rows) for batch in empty] == [(("title",), [])]
    with pytest.raises(SqlError):
        list(docs.stream(plan("SELECT 1 / 0"), 10))


def test_explain_tells_lines_without_the_schema(docs):
    lines = docs.explain(plan("SELECT docs.title FROM docs WHERE docs.id = $1", 1))
    assert any("docs" in line for line in lines)
    assert docs._tenant.schema not in "\n".join(lines)


# Who connects


@pytest.mark.parametrize("rights", ["NOCREATEROLE", "CREATEROLE"])
def test_a_user_without_all_rights_is_enough(postgres, empty_postgres_url, rights):
    """One that may create roles gives each tenant one; one that may not goes without."""
    user = f"u{uuid.uuid4().hex}"
    with psycopg.connect(empty_postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {user} LOGIN {rights}")
        connection.execute(f"GRANT CREATE ON DATABASE {connection.info.dbname} TO {user}")
    engine = PostgresEngine(empty_postgres_url.replace("postgres@", f"{user}@"), tenant=uuid.uuid4().hex)
    assert (engine._tenant.role is not None) == (rights == "CREATEROLE")
    engine.create_table(DOCS)
    fill(engine, "a", "b")
    engine.run(plan("DELETE FROM docs WHERE docs.title = 'a'"))
    assert titles(engine) == ["b"]
    assert engine.changes("docs", ["title"], 0).values == [("b",)]
    more = Column("more", Type(Kind.JSONB), default="'{}'")
    engine.alter_table(replace(DOCS, columns=(*DOCS.columns, more)))
    assert engine.run(plan("SELECT docs.more FROM docs", table=engine.tables()["docs"])).rows == [({},)]
    assert [batch.rows for batch in engine.stream(plan("SELECT docs.title FROM docs"), 5)] == [[("b",)]]
    engine.drop_table("docs")
    engine.close()


def test_many_open_the_same_tenant_at_once(empty_postgres_url):
    engines, failed = [], []

    def opening():
        try:
            engines.append(PostgresEngine(empty_postgres_url, tenant="new"))
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=opening) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert len({engine._tenant for engine in engines}) == 1
    made = []

    def making(engine):
        def make(catalogue):
            if "docs" not in catalogue:
                engine.create_table(DOCS)
            return "docs" not in catalogue

        made.append(engine.change_catalogue(make))

    threads = [threading.Thread(target=making, args=[engine]) for engine in engines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == [False] * 7 + [True]
    for engine in engines:
        engine.close()


def test_a_statement_that_comes_again_takes_other_values(docs):
    fill(docs, "a", "b", "c")
    again = plan("SELECT docs.title FROM docs WHERE docs.title >= $1 ORDER BY docs.id", "b")
    assert docs.run(again).rows == [("b",), ("c",)]
    assert docs.run(replace(again, parameters=["c"])).rows == [("c",)]
    assert docs.run(replace(again, parameters=[None])).rows == []
    assert docs.run(replace(again, parameters=["a"], max_rows=5)).row_count == 3
    changed = again.tree.copy()
    changed.args["where"].replace(None)
    assert docs.run(replace(again, tree=changed)).row_count == 3
