"""A statement that wants the best rows gives what it would give without LIMIT, cut off, and what anyone would compute
by hand."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from search_by_hand import bm25, cosine, hybrid

ROWS = 240
WORDS = ["disk", "full", "memory", "error", "pipeline", "parquet", "timeout", "retry", "Größe", "内存"]


def _rows():
    """Rows with many equal values, so that there are ties."""
    draw = random.Random(5)
    for number in range(1, ROWS + 1):
        text = None if draw.random() < 0.05 else " ".join(draw.choices(WORDS, k=draw.randint(0, 5)))
        vector = None if draw.random() < 0.05 else [float(draw.randint(-1, 1)) for _ in range(3)]
        yield number, text, vector, draw.randint(0, 9), f"group{draw.randint(0, 3)}"


TABLE = {number: (text, vector, rank, name) for number, text, vector, rank, name in _rows()}
TEXTS = {number: row[0] for number, row in TABLE.items()}
VECTORS = {number: row[1] for number, row in TABLE.items() if row[1] is not None}

FILTERS = {
    "": lambda number, row: True,
    "rank < 3": lambda number, row: row[2] < 3,
    "name = 'group1' AND rank = 7": lambda number, row: row[3] == "group1" and row[2] == 7,
    "rank = 99": lambda number, row: False,
    "id % 2 = 0": lambda number, row: number % 2 == 0,
}

queries = st.lists(st.integers(-2, 2), min_size=3, max_size=3).map(lambda numbers: [float(n) for n in numbers])
questions = st.lists(st.sampled_from([*WORDS, "unheard"]), max_size=3).map(" ".join)


@pytest.fixture
def stocked(workspace):
    workspace.create_table(
        "items", {"id": "BIGINT", "body": "TEXT", "e": "FLOAT4[]", "rank": "INTEGER", "name": "TEXT"}
    )
    values = zip(*((number, *row) for number, row in TABLE.items()), strict=True)
    workspace.insert("items", dict(zip(("id", "body", "e", "rank", "name"), map(list, values), strict=True)))
    return workspace


@st.composite
def searches(draw):
    """A score in SQL with its parameters, and the same by hand."""
    query, question = draw(queries), draw(questions)
    kind = draw(st.sampled_from(["cosine", "bm25", "hybrid"]))
    if kind == "cosine":
        return "e <#> $1::float4[]", [query], {number: cosine(vector, query) for number, vector in VECTORS.items()}
    if kind == "bm25":
        return "body <#> $1::text", [question], bm25(TEXTS, question)[0]
    weights = draw(st.sampled_from([(0.5, 0.5), (0.9, 0.1), (0.0, 1.0), (2.0, 1.0)]))
    score = f"(e, body) <#> deeplake_hybrid_record($1::float4[], $2, {weights[0]}, {weights[1]})"
    return score, [query, question], hybrid(VECTORS, TEXTS, query, question, *weights)


@given(
    search=searches(),
    where=st.sampled_from(list(FILTERS)),
    above=st.sampled_from([None, 0, 0.5]),
    order=st.sampled_from(["", ", rank", ", rank DESC, name"]),
    limit=st.integers(0, 40),
    offset=st.sampled_from([0, 0, 1, 13]),
)
@settings(max_examples=2 * settings.default.max_examples, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_best_rows_are_the_first_of_all_rows(stocked, search, where, above, order, limit, offset):
    score, params, expected = search
    conditions = [part for part in (where, "" if above is None else f"{score} > {above}") if part]
    clause = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    statement = f"SELECT id, {score} AS score FROM items {clause} ORDER BY score{order}"
    everything = stocked.query(statement, params).rows
    some = stocked.query(f"{statement} LIMIT {limit} OFFSET {offset}", params).rows
    assert some == everything[offset : offset + limit]
    found = dict(everything)
    for number, value in found.items():
        assert value == pytest.approx(expected.get(number), abs=1e-5)
    near = 1e-5  # by hand, with other rounding, a score may fall on the other side
    passing = {number for number, row in TABLE.items() if FILTERS[where](number, row)}
    if above is not None:
        assert {n for n in passing if expected.get(n, -9) > above + near} <= set(found)
        assert set(found) <= {n for n in passing if expected.get(n, -9) > above - near}
    else:
        assert set(found) == passing
    places = [(-9.0 if value is None else value) for _, value in everything]
    assert places == sorted(places, reverse=True)


@pytest.fixture
def counted(stocked, monkeypatch):
    """How many candidates the engine was asked for by the last statement, in each of its runs."""
    asked = []
    query, run = type(stocked).query, stocked._engine.run

    def counting(plan):
        asked.append({alias: rows.size for alias, rows in plan.candidates.items()})
        return run(plan)

    def fresh(self, *given, **options):
        asked.clear()
        return query(self, *given, **options)

    monkeypatch.setattr(stocked._engine, "run", counting)
    monkeypatch.setattr(type(stocked), "query", fresh)
    return asked


def test_the_engine_is_asked_for_few_rows(stocked, counted):
    stocked.query("SELECT id FROM items ORDER BY e <#> '{1,1,0}' LIMIT 5")
    assert counted == [{"items": 20}]
    stocked.query("SELECT id FROM items WHERE id > 0 ORDER BY (e <#> '{1,1,0}') DESC LIMIT 3 OFFSET 2")
    assert counted == [{"items": 20}]
    stocked.query("SELECT id FROM items AS i WHERE rank = 7 ORDER BY e <#> '{1,1,0}' LIMIT 2")
    assert set(counted[0]) == {"i"}
    assert len(counted) <= 3
    stocked.query("SELECT id FROM items WHERE body <#> 'unheard' > 0 ORDER BY id")
    assert counted == [{"items": 0}]


def test_the_best_rows_of_a_query_inside_another(stocked, counted):
    inner = "SELECT id, body <#> 'disk memory' AS score, rank FROM items ORDER BY score{} LIMIT 7 OFFSET 2"
    for order in ("", ", rank DESC", ", id DESC"):
        expected = stocked.query(inner.format(order)).rows
        for statement in (
            "SELECT * FROM ({}) AS best",
            "WITH best AS ({}) SELECT * FROM best",
            "SELECT best.* FROM ({}) AS best JOIN items ON items.id = best.id",
        ):
            assert sorted(stocked.query(statement.format(inner.format(order))).rows) == sorted(expected)
            assert 9 <= counted[0].get("items", counted[0].get("items_2", 0)) < ROWS
    few = "SELECT count(*) FROM (SELECT id FROM items ORDER BY e <#> '{1,1,0}' LIMIT 239) AS most"
    assert stocked.query(few).rows == [(239,)]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT id FROM items ORDER BY e <#> '{1,1,0}' ASC LIMIT 2",
        "SELECT id FROM items ORDER BY e <#> '{1,1,0}'",
        "SELECT id FROM items ORDER BY id, e <#> '{1,1,0}' LIMIT 2",
        "SELECT DISTINCT e <#> '{1,1,0}' AS s FROM items ORDER BY s LIMIT 2",
        "SELECT id, count(*) OVER () FROM items ORDER BY e <#> '{1,1,0}' LIMIT 2",
        "SELECT max(e <#> '{1,1,0}') AS s FROM items ORDER BY s LIMIT 2",
        "SELECT a.id FROM items b LEFT JOIN items a ON a.id = b.id ORDER BY a.e <#> '{1,1,0}' LIMIT 2",
        "SELECT a.id FROM items a RIGHT JOIN items b ON a.id = b.id ORDER BY a.e <#> '{1,1,0}' LIMIT 2",
    ],
)
def test_all_rows_are_asked_where_the_best_are_not_enough(stocked, counted, statement):
    stocked.query(statement)
    assert counted == [{}]
