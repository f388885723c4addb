"""PostgreSQL as an engine of tables: what it does beyond running the same statements as SQLite."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal

import numpy as np
import pytest

from remanence.errors import NoSuchTableError, SqlError, TableExistsError
from remanence.tables.catalog import Column, Index, Kind, Table, Type
from remanence.tables.engines.base import Plan
from remanence.tables.engines.postgres import PostgresEngine
from remanence.tables.sql.parse import parse

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


def plan(sql, *parameters, **settings):
    return Plan(parse(sql).tree, parameters, **settings)


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
    assert docs.drop_index("by_title")
    assert [index.name for index in other.tables()["docs"].indexes] == ["by_words"]
    assert other.drop_table("docs")
    assert docs.tables() == {}
    other.close()


def test_what_is_there_or_missing_is_said(docs):
    with pytest.raises(TableExistsError):
        docs.create_table(DOCS)
    assert not docs.create_table(DOCS, exists_ok=True)
    with pytest.raises(NoSuchTableError):
        docs.drop_table("nothing")
    assert not docs.drop_table("nothing", missing_ok=True)
    index = Index("i", "docs", ("title",))
    assert docs.create_index(index)
    assert not docs.create_index(index, exists_ok=True)
    with pytest.raises(TableExistsError):
        docs.create_index(index)
    with pytest.raises(NoSuchTableError):
        docs.drop_index("nothing")
    assert not docs.drop_index("nothing", missing_ok=True)


def test_a_table_that_cannot_be_made_leaves_nothing(engine):
    bad = Table("bad", (Column("a", Type(Kind.INTEGER), default="nonsense()"),))
    with pytest.raises(SqlError):
        engine.create_table(bad)
    assert engine.tables() == {}
    assert engine.create_table(Table("bad", (Column("a", Type(Kind.INTEGER)),)))


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
    assert engine.insert(table, names, [list(values.values()), [None] * len(columns)]) == 2
    marks = ", ".join(f"${number + 1}" for number in range(len(columns)))
    engine.run(plan(f"INSERT INTO kinds VALUES ({marks})", *values.values()))
    result = engine.run(plan(f"SELECT {', '.join(f'kinds.{name}' for name in names)} FROM kinds"))
    assert result.rows == [tuple(values.values()), (None,) * len(columns), tuple(values.values())]
    assert [type(value) for value in result.rows[0]] == [type(value) for value in values.values()]
    assert result.rows[0][list(values).index(Kind.TIMESTAMPTZ)].tzinfo is dt.UTC
    assert [found.kind for found in result.types] == [Kind.VECTOR if kind is Kind.VECTORS else kind for kind in values]


def test_hidden_columns_are_not_part_of_insert_without_columns(docs):
    docs.run(plan("INSERT INTO docs VALUES (7, 'seven')"))
    docs.run(plan("INSERT INTO docs SELECT docs.id + 1, 'eight' FROM docs"))
    assert docs.run(plan("SELECT docs.id, docs.title FROM docs ORDER BY docs.id")).rows == [(7, "seven"), (8, "eight")]


@pytest.mark.parametrize("vector", [[1.0, 2.0], [1.0, 2.0, 3.0, 4.0], [], [[1.0, 2.0, 3.0]], "{1,2,NULL}"])
def test_a_vector_that_does_not_fit_is_refused(docs, vector):
    with pytest.raises(SqlError, match="3 numbers"):
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
