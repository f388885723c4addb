"""The search operators in statements, on each engine: what they answer, and in which order."""

from __future__ import annotations

import math

import pytest
from search_by_hand import bm25, cosine, hybrid, in_order

from rmem.errors import SqlError, SqlUnsupportedError

TRACES = {
    1: ("Fix OOM crash in data pipeline when processing 50GB parquet files", [0.9, 0.1, 0.0, 0.1]),
    2: ("Deadlock between the billing worker and the nightly report", [0.0, 0.9, 0.3, 0.0]),
    3: ("ETL job ran out of memory while joining two large tables", [0.8, 0.2, 0.1, 0.2]),
    4: ("Button of the login page is cut off on small screens", [0.0, 0.0, 0.2, 0.9]),
    5: ("TypeError: cannot read property 'id' of undefined in checkout.js", [0.1, 0.1, 0.9, 0.3]),
    6: ("Größe der Datei wird falsch berechnet", [0.2, 0.3, 0.5, 0.1]),
    7: (None, [0.85, 0.1, 0.05, 0.1]),
    8: ("内存不足导致任务失败", None),
    9: (None, None),
}
QUERY = [1.0, 0.1, 0.0, 0.1]
TEXTS = {row: text for row, (text, _) in TRACES.items()}
VECTORS = {row: vector for row, (_, vector) in TRACES.items() if vector is not None}
CLOSE = {row: cosine(vector, QUERY) for row, vector in VECTORS.items()}


@pytest.fixture
def traces(workspace):
    workspace.create_table(
        "traces", {"id": "BIGSERIAL PRIMARY KEY", "task": "TEXT", "embedding": "FLOAT4[]", "team": "TEXT"}
    )
    workspace.insert(
        "traces",
        {
            "task": [text for text, _ in TRACES.values()],
            "embedding": [vector for _, vector in TRACES.values()],
            "team": ["data" if row % 2 else "web" for row in TRACES],
        },
    )
    return workspace


def ids(result):
    return [row[0] for row in result.rows]


def scored(result):
    return {row[0]: row[1] for row in result.rows}


def literal(vector):
    return "{" + ",".join(map(str, vector)) + "}"


# Each operator


@pytest.mark.parametrize(
    ("query", "params"),
    [
        ("embedding <#> $1::float4[]", [literal(QUERY)]),
        ("embedding <#> $1::float4[]", [QUERY]),
        ("embedding <#> $1", ["[1.0, 0.1, 0.0, 0.1]"]),
        ("embedding <#> :q", {"q": QUERY}),
        ("cosine_similarity(embedding, :q)", {"q": QUERY}),
        ("COSINE_SIMILARITY(embedding, $1)", [literal(QUERY)]),
        ("embedding <#> ARRAY[1, 0.1, 0, 0.1]", None),
        ("embedding <#> ARRAY[1.0, 0.1, -0.0, 0.1]::float4[]", None),
        ("embedding <#> '{1,0.1,0,0.1}'", None),
        ("embedding <#> '{1,0.1,0,0.1}'::float4[]", None),
        ("embedding <#> '[1,0.1,0,0.1]'::float4[]", None),
        ("t.embedding <#> '{2,0.2,0,0.2}'", None),
        ("\"embedding\" <#> '{1,0.1,0,0.1}'", None),
    ],
)
def test_cosine_of_a_vector_column(traces, query, params):
    found = traces.query(f"SELECT id, {query} AS score FROM traces AS t", params)
    assert scored(found) == pytest.approx({**CLOSE, 8: None, 9: None}, abs=1e-6)


@pytest.mark.parametrize(
    "query",
    [
        "task <#> 'memory crash'",
        "task <#> $1",
        "task <#> $1::text",
        "bm25_similarity(task, 'memory crash')",
        "bm25_similarity(traces.task, $1)",
    ],
)
def test_bm25_of_a_text_column(traces, query):
    params = ["memory crash"] if "$1" in query else None
    found = traces.query(f"SELECT id, {query} FROM traces", params)
    expected, _ = bm25(TEXTS, "memory crash")
    assert scored(found) == pytest.approx({**expected, 7: None, 9: None}, abs=1e-5)


def test_bm25_finds_words_of_any_script_and_in_any_form(traces):
    for words, best in (
        ("groesse GRÖSSE", 6),
        ("内存", 8),
        ("checkout.js", 5),
        ("crashes", 1),
        ("typeerror", 5),
    ):
        found = traces.query("SELECT id FROM traces WHERE task <#> $1 > 0 ORDER BY task <#> $1 LIMIT 1", [words])
        assert ids(found) == [best], words


def test_statistics_are_those_of_the_whole_table(traces):
    everything = scored(traces.query("SELECT id, task <#> 'memory' FROM traces"))
    some = scored(traces.query("SELECT id, task <#> 'memory' FROM traces WHERE id = 3"))
    assert some[3] == everything[3] > 0


def test_maxsim_of_a_column_of_vectors(workspace):
    workspace.create_table("pages", {"id": "BIGINT", "patches": "FLOAT4[][]"})
    workspace.insert("pages", {"id": [1, 2, 3], "patches": [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0]], None]})
    expected = pytest.approx({1: 2.0, 2: 2 * math.sqrt(0.5), 3: None})
    for query in ("ARRAY[[1, 0], [0, 3]]::float4[][]", "'{{1,0},{0,3}}'::float4[][]", "'{{1,0},{0,3}}'"):
        assert scored(workspace.query(f"SELECT id, patches <#> {query} FROM pages")) == expected
    one = workspace.query("SELECT id FROM pages ORDER BY patches <#> $1::float4[][] LIMIT 1", [[[1.0, 1.0]]])
    assert ids(one) == [2]


@pytest.mark.parametrize("cast", ["", "::deeplake_hybrid_record"])
@pytest.mark.parametrize("weights", [(0.5, 0.5), (0.9, 0.1), (3, 1), (0, 1), (1, 0)])
def test_hybrid_of_a_vector_and_a_text(traces, cast, weights):
    found = traces.query(
        f"SELECT id, (embedding, task){cast} <#> deeplake_hybrid_record($1::float4[], $2, {weights[0]}, {weights[1]}) "
        "AS score FROM traces ORDER BY score DESC",
        [literal(QUERY), "memory crash"],
    )
    expected = hybrid(VECTORS, TEXTS, QUERY, "memory crash", *weights)
    assert scored(found) == pytest.approx({**expected, 9: None}, abs=1e-5)
    assert ids(found) == [*in_order({row: scored(found)[row] for row in expected}), 9]
    assert all(0 <= score <= 1 for _, score in found.rows if score is not None)


def test_weights_may_be_left_out_and_be_parameters(traces):
    plain = traces.query(
        "SELECT id, (embedding, task) <#> deeplake_hybrid_record($1::float4[], 'memory') FROM traces", [QUERY]
    )
    given = traces.query(
        "SELECT id, (embedding, task) <#> deeplake_hybrid_record($1::float4[], 'memory', $2, $3) FROM traces",
        [QUERY, 2, 2.0],
    )
    assert plain.rows == given.rows


def test_hybrid_scores_do_not_depend_on_limit_or_where(traces):
    score = "(embedding, task) <#> deeplake_hybrid_record('{1,0,0,0}', 'memory crash', 0.4, 0.6)"
    everything = scored(traces.query(f"SELECT id, {score} FROM traces"))
    for rest in ("ORDER BY 2 LIMIT 1", "WHERE team = 'web'", "WHERE id > 3 ORDER BY 2 DESC LIMIT 2 OFFSET 1"):
        for row, value in scored(traces.query(f"SELECT id, {score} FROM traces {rest}")).items():
            assert value == everything[row]


def test_a_match_by_words_alone_surfaces(traces):
    found = traces.query(
        "SELECT id FROM traces ORDER BY (embedding, task) <#> "
        "deeplake_hybrid_record('{1,0.1,0,0.1}', 'login page', 0.5, 0.5) LIMIT 2"
    )
    assert 4 in ids(found)


# Order


def test_a_similarity_without_direction_means_best_first(traces):
    best_first = [*in_order(CLOSE), 8, 9]
    for order in (
        "embedding <#> $1",
        "cosine_similarity(embedding, $1)",
        "score",
        "2",
        "score DESC",
        "(embedding <#> $1) DESC",
        "score_of.score",
        "0.5 * (embedding <#> $1) DESC",
        "embedding <#> $1 NULLS LAST",
    ):
        if "score_of" in order:
            statement = (
                f"SELECT id FROM (SELECT id, embedding <#> $1 AS score FROM traces) AS score_of ORDER BY {order}, id"
            )
        else:
            statement = f"SELECT id, embedding <#> $1 AS score FROM traces ORDER BY {order}"
        assert ids(traces.query(statement, [QUERY])) == best_first, order


def test_a_direction_that_is_written_is_kept(traces):
    worst_first = [*reversed(in_order(CLOSE)), 8, 9]
    for order in ("score ASC", "2 ASC", "embedding <#> $1 ASC", "1 - (embedding <#> $1) DESC"):
        found = traces.query(
            f"SELECT id, embedding <#> $1 AS score FROM traces ORDER BY {order} NULLS LAST, id", [QUERY]
        )
        assert ids(found) == worst_first, order
    scaled = traces.query("SELECT id FROM traces ORDER BY 0.5 * (embedding <#> $1) NULLS LAST, id", [QUERY])
    assert ids(scaled) == worst_first
    by_distance = traces.query("SELECT id FROM traces ORDER BY 1 - (embedding <#> $1), id", [QUERY])
    assert ids(by_distance) == [*in_order(CLOSE), 8, 9]
    nulls_first = traces.query("SELECT id FROM traces ORDER BY embedding <#> $1 DESC NULLS FIRST LIMIT 3", [QUERY])
    assert ids(nulls_first) == [8, 9, in_order(CLOSE)[0]]


def test_equal_scores_stand_in_the_order_of_arrival(workspace):
    workspace.create_table("notes", {"id": "BIGINT", "body": "TEXT", "rank": "INTEGER"})
    workspace.insert(
        "notes",
        {
            "id": list(range(100)),
            "body": [f"{'disk full' if n % 3 == 0 else 'quiet'}" for n in range(100)],
            "rank": [-n for n in range(100)],
        },
    )
    plain = workspace.query("SELECT id FROM notes ORDER BY body <#> 'disk' LIMIT 5")
    assert ids(plain) == [0, 3, 6, 9, 12]
    ranked = workspace.query("SELECT id FROM notes ORDER BY body <#> 'disk', rank LIMIT 5")
    assert ids(ranked) == [99, 96, 93, 90, 87]
    beyond = workspace.query("SELECT id FROM notes ORDER BY body <#> 'nothing like it' LIMIT 3")
    assert ids(beyond) == [0, 1, 2]
    after = workspace.query("SELECT id FROM notes ORDER BY body <#> 'disk' LIMIT 3 OFFSET 33")
    assert ids(after) == [99, 1, 2]


# Where operators may stand


def test_where(traces):
    expected = [row for row in in_order(bm25(TEXTS, "memory")[0]) if bm25(TEXTS, "memory")[0][row] > 0]
    found = traces.query("SELECT id FROM traces WHERE bm25_similarity(task, 'memory') > 0 ORDER BY id")
    assert sorted(ids(found)) == sorted(expected)
    both = traces.query(
        "SELECT id FROM traces WHERE 0.5 < embedding <#> $1 AND task <#> 'memory' > 0 AND team = 'data'", [QUERY]
    )
    assert ids(both) == [3]
    either = traces.query(
        "SELECT id FROM traces WHERE task <#> 'memory' > 0 OR embedding <#> $1 >= 0.99 ORDER BY id", [QUERY]
    )
    assert ids(either) == sorted({3} | {row for row, score in CLOSE.items() if score >= 0.99})
    assert traces.query("SELECT count(*) FROM traces WHERE embedding <#> $1 IS NULL", [QUERY]).rows == [(2,)]
    assert traces.query("SELECT count(*) FROM traces WHERE task <#> 'memory' > 1000").rows == [(0,)]


def test_where_with_order_and_limit(traces):
    web = [row for row in in_order(CLOSE) if row % 2 == 0]
    found = traces.query("SELECT id FROM traces WHERE team = 'web' ORDER BY embedding <#> $1 LIMIT 3", [QUERY])
    assert ids(found) == web[:3]
    rest = traces.query("SELECT id FROM traces WHERE team = 'web' ORDER BY embedding <#> $1 LIMIT 9 OFFSET 2", [QUERY])
    assert ids(rest) == [*web[2:], 8]
    other = traces.query("SELECT id FROM traces WHERE embedding <#> $1 > 0 ORDER BY id DESC LIMIT 2", [QUERY])
    assert ids(other) == sorted((row for row, score in CLOSE.items() if score > 0), reverse=True)[:2]


def test_expressions(traces):
    found = traces.query(
        "SELECT id, 0.3 * cosine_similarity(embedding, $1) + 0.7 * bm25_similarity(task, 'memory') AS score, "
        "round((embedding <#> $1)::numeric, 3), CASE WHEN task <#> 'memory' > 0 THEN 'yes' ELSE 'no' END "
        "FROM traces WHERE embedding IS NOT NULL AND task IS NOT NULL ORDER BY score DESC",
        [QUERY],
    )
    words = bm25(TEXTS, "memory")[0]
    expected = {row: 0.3 * CLOSE[row] + 0.7 * words[row] for row in CLOSE if TEXTS[row] is not None}
    assert scored(found) == pytest.approx(expected, abs=1e-5)
    assert ids(found) == in_order(expected)
    for row, _, rounded, said in found.rows:
        assert float(rounded) == pytest.approx(CLOSE[row], abs=6e-4)
        assert said == ("yes" if words[row] > 0 else "no")


@pytest.fixture
def fixes(traces):
    traces.create_table("fixes", {"trace": "BIGINT", "body": "TEXT", "embedding": "FLOAT4[]"})
    traces.insert(
        "fixes",
        {
            "trace": [1, 1, 3, 4],
            "body": ["read the file in batches", "buy memory", "stream the join", "wrap the button"],
            "embedding": [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [0.2, 0.9]],
        },
    )
    return traces


def test_joins(fixes):
    found = fixes.query(
        "SELECT t.id, f.body, t.embedding <#> $1 AS score FROM traces t JOIN fixes f ON f.trace = t.id "
        "ORDER BY score LIMIT 3",
        [QUERY],
    )
    best = [row for row in in_order(CLOSE) if row in (1, 3, 4)]
    doubled = [row for row in best for _ in range(2 if row == 1 else 1)]
    assert ids(found) == doubled[:3]
    two = fixes.query(
        "SELECT t.id, f.body <#> 'memory', t.task <#> 'memory' FROM fixes f JOIN traces t ON f.trace = t.id "
        "WHERE f.body <#> 'memory' > 0"
    )
    assert len(two.rows) == 1
    assert two.rows[0][1] > 0 == two.rows[0][2]
    left = fixes.query(
        "SELECT t.id, f.body <#> 'button' AS score FROM traces t LEFT JOIN fixes f ON f.trace = t.id "
        "ORDER BY score DESC, t.id LIMIT 20"
    )
    assert left.rows[0][0] == 4
    assert len(left.rows) == 10
    assert sum(score is None for _, score in left.rows) == 6
    itself = fixes.query(
        "SELECT a.id, b.id FROM traces a JOIN traces b ON a.id < b.id "
        "ORDER BY a.embedding <#> $1, b.embedding <#> $1 LIMIT 1",
        [QUERY],
    )
    first = in_order(CLOSE)[0]
    assert itself.rows == [(first, next(row for row in in_order(CLOSE) if row > first))]


def test_with_queries_and_subqueries(fixes):
    fused = fixes.query(
        "WITH words AS (SELECT id, row_number() OVER (ORDER BY task <#> 'memory crash') AS place FROM traces "
        "WHERE task <#> 'memory crash' > 0), "
        "near AS (SELECT id, row_number() OVER (ORDER BY embedding <#> $1) AS place FROM traces LIMIT 5) "
        "SELECT coalesce(words.id, near.id) AS id FROM words FULL JOIN near ON words.id = near.id "
        "ORDER BY coalesce(1.0 / (60 + words.place), 0) + coalesce(1.0 / (60 + near.place), 0) DESC, 1 LIMIT 2",
        [QUERY],
    )
    assert sorted(ids(fused)) == [1, 3]
    inner = fixes.query(
        "SELECT best.id FROM (SELECT id, embedding <#> $1 AS score FROM traces ORDER BY score LIMIT 3) AS best "
        "ORDER BY best.id",
        [QUERY],
    )
    assert ids(inner) == sorted(in_order(CLOSE)[:3])
    named = fixes.query(
        "WITH hits (n, closeness) AS (SELECT id, embedding <#> $1 FROM traces) "
        "SELECT n FROM hits ORDER BY closeness LIMIT 2",
        [QUERY],
    )
    assert ids(named) == in_order(CLOSE)[:2]
    within = fixes.query(
        "SELECT trace FROM fixes WHERE trace IN (SELECT id FROM traces WHERE task <#> 'memory' > 0) ORDER BY trace"
    )
    assert ids(within) == [3]
    hidden = fixes.query("WITH traces AS (SELECT 7 AS id) SELECT id FROM traces")
    assert ids(hidden) == [7]


def test_what_to_search_for_may_be_a_query(traces):
    like_3 = {row: cosine(vector, VECTORS[3]) for row, vector in VECTORS.items()}
    found = traces.query(
        "SELECT id, embedding <#> (SELECT embedding FROM traces WHERE id = 3) AS score FROM traces ORDER BY score"
    )
    assert scored(found) == pytest.approx({**like_3, 8: None, 9: None}, abs=1e-6)
    assert ids(found)[0] == 3
    nested = traces.query(
        "SELECT id FROM traces ORDER BY task <#> (SELECT task FROM traces ORDER BY task <#> $1 LIMIT 1) LIMIT 1",
        ["deadlock"],
    )
    assert ids(nested) == [2]
    with pytest.raises(SqlError, match="more than one row"):
        traces.query("SELECT task <#> (SELECT task FROM traces) FROM traces")
    for query in ("(SELECT u.task FROM traces u WHERE u.id = traces.id)", "(SELECT task FROM hits)"):
        with pytest.raises(SqlUnsupportedError, match="stands alone"):
            traces.query(f"WITH hits AS (SELECT task FROM traces WHERE id = 1) SELECT task <#> {query} FROM traces")


def test_results_can_be_kept(traces):
    traces.query("CREATE TABLE near AS SELECT id, embedding <#> '{1,0.1,0,0.1}' AS score FROM traces")
    assert scored(traces.query("SELECT id, score FROM near")) == pytest.approx({**CLOSE, 8: None, 9: None}, abs=1e-6)
    traces.query("INSERT INTO near SELECT id, task <#> 'memory' FROM traces ORDER BY 2 LIMIT 1")
    assert traces.query("SELECT count(*) FROM near WHERE id = 3").rows == [(2,)]


def test_unions(traces):
    both = traces.query(
        "(SELECT id FROM traces ORDER BY task <#> 'memory' LIMIT 1) UNION ALL "
        "(SELECT id FROM traces ORDER BY task <#> 'deadlock' LIMIT 1)"
    )
    assert sorted(ids(both)) == [2, 3]
    ordered = traces.query(
        "SELECT id, task <#> 'memory' AS score FROM traces UNION ALL SELECT id, -1 FROM traces ORDER BY score LIMIT 1"
    )
    assert ids(ordered) == [3]


def test_groups(traces):
    found = traces.query(
        "SELECT team, max(embedding <#> $1) AS best FROM traces GROUP BY team ORDER BY best DESC", [QUERY]
    )
    expected = {
        team: max(score for row, score in CLOSE.items() if (row % 2 == 1) == (team == "data"))
        for team in ("data", "web")
    }
    assert scored(found) == pytest.approx(expected, abs=1e-6)
    assert ids(found) == in_order(expected)
    counted = traces.query("SELECT count(*), avg(task <#> 'memory') FROM traces WHERE task <#> 'memory' > 0")
    assert counted.rows[0][0] == 1


def test_statements_that_write(traces):
    traces.query("UPDATE traces SET team = 'memory' WHERE task <#> 'memory' > 0")
    assert ids(traces.query("SELECT id FROM traces WHERE team = 'memory'")) == [3]
    traces.query("DELETE FROM traces WHERE embedding <#> $1 > 0.5", [QUERY])
    left = [row for row in TRACES if CLOSE.get(row, 0) <= 0.5]
    assert ids(traces.query("SELECT id FROM traces ORDER BY id")) == left
    assert ids(traces.query("SELECT id FROM traces ORDER BY embedding <#> $1 LIMIT 1", [QUERY])) == [
        in_order({row: CLOSE[row] for row in left if row in CLOSE})[0]
    ]


# Following the table


def test_what_was_written_is_found_at_once(open_workspace):
    here, there = open_workspace(), None
    here.create_table("notes", {"id": "BIGSERIAL PRIMARY KEY", "body": "TEXT", "e": "FLOAT4[]"})
    there = open_workspace()
    search = "SELECT id FROM notes WHERE body <#> 'parquet' > 0 ORDER BY e <#> '{1,0}'"
    assert ids(there.query(search)) == []
    for number in range(1, 4):
        here.query("INSERT INTO notes (body, e) VALUES ($1, $2::float4[])", [f"parquet {number}", [1.0, number]])
        assert ids(here.query(search)) == list(range(1, number + 1))
        assert ids(there.query(search)) == list(range(1, number + 1))
    there.query("UPDATE notes SET body = 'csv' WHERE id = 1")
    there.query("UPDATE notes SET e = '{1,-9}' WHERE id = 2")
    assert ids(here.query(search)) == [3, 2]
    here.query("DELETE FROM notes WHERE id = 3")
    assert ids(there.query(search)) == [2]
    there.query("UPDATE notes SET body = NULL")
    assert ids(here.query(search)) == []


def test_a_table_that_was_made_anew_is_another_table(open_workspace):
    here, there = open_workspace(), open_workspace()
    for words in ("first life", "second life"):
        here.create_table("notes", {"body": "TEXT"})
        here.insert("notes", {"body": [words, "else"]})
        for one in (here, there):
            found = one.query("SELECT body, body <#> 'first second' FROM notes ORDER BY 2 LIMIT 1")
            assert found.rows == [(words, pytest.approx(bm25({1: words, 2: "else"}, "first second")[0][1], abs=1e-5))]
        there.drop_table("notes")


def test_explain_names_the_index(traces):
    plain = "EXPLAIN SELECT id FROM traces ORDER BY task <#> 'memory' LIMIT 3"
    lines = ids(traces.query(plain))
    assert "Search: bm25 on the fly on traces(task)" in lines
    assert len(lines) > 1
    traces.query("CREATE INDEX task_words ON traces USING deeplake_index (task) WITH (index_type = 'bm25')")
    assert "Search: bm25 index task_words on traces(task)" in ids(traces.query(plain))
    both = traces.query(
        "EXPLAIN SELECT id FROM traces ORDER BY (embedding, task) <#> "
        "deeplake_hybrid_record('{1,0,0,0}', 'memory', 0.5, 0.5) LIMIT 3"
    )
    assert "Search: cosine on the fly on traces(embedding) and bm25 index task_words on traces(task)" in ids(both)


def test_searches_can_be_streamed(traces):
    everything = ids(traces.query("SELECT id FROM traces ORDER BY embedding <#> $1", [QUERY]))
    for rest, expected in (("", everything), (" LIMIT 2", everything[:2]), (" LIMIT 0", [])):
        batches = list(traces.stream(f"SELECT id FROM traces ORDER BY embedding <#> $1{rest}", [QUERY], batch_size=4))
        assert [number for batch in batches for number in ids(batch)] == expected


# What is refused


@pytest.mark.parametrize(
    ("statement", "params", "message"),
    [
        ("SELECT embedding <#> $1 FROM traces", ["{1,2}"], r"traces\.embedding holds vectors of 4 numbers.*has 2"),
        ("SELECT cosine_similarity(embedding, $1) FROM traces", [[1.0]], r"traces\.embedding.*4 numbers.*has 1"),
        ("SELECT embedding <#> 'words' FROM traces", None, "vector|array"),
        ("SELECT embedding <#> $1 FROM traces", ["{1,NaN,0,0}"], "NaN|number"),
        ("SELECT embedding <#> $1 FROM traces", [[]], "vector"),
        ("SELECT task <#> $1 FROM traces", [[1.0, 2.0]], "text"),
        ("SELECT id <#> 'words' FROM traces", None, "<#>"),
        ("SELECT cosine_similarity(task, 'x') FROM traces", None, "cosine_similarity"),
        ("SELECT bm25_similarity(embedding, 'x') FROM traces", None, "bm25_similarity"),
        (
            "SELECT (embedding, task) <#> deeplake_hybrid_record('{1,0,0,0}', 'x', -1, 1) FROM traces",
            None,
            "weight of the vector.*-1",
        ),
        (
            "SELECT (embedding, task) <#> deeplake_hybrid_record('{1,0,0,0}', 'x', 0, 0) FROM traces",
            None,
            "above 0",
        ),
        ("SELECT (task, embedding) <#> deeplake_hybrid_record('{1}', 'x', 1, 1) FROM traces", None, "FLOAT4"),
        ("SELECT (embedding, task) <#> 'x' FROM traces", None, "deeplake_hybrid_record"),
        ("SELECT embedding <#> deeplake_hybrid_record('{1}', 'x', 1, 1) FROM traces", None, "hybrid|operator"),
    ],
)
def test_what_cannot_be_searched_is_refused(traces, statement, params, message):
    with pytest.raises(SqlError, match=message):
        traces.query(statement, params)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT cosine_similarity(a.embedding, b.embedding) FROM traces a JOIN traces b ON a.id < b.id",
        "SELECT task <#> team FROM traces",
        "SELECT s.task <#> 'x' FROM (SELECT task FROM traces) AS s",
        "WITH s AS (SELECT task FROM traces) SELECT task <#> 'x' FROM s",
        "SELECT lower(task) <#> 'x' FROM traces",
    ],
)
def test_what_is_not_offered_says_so(traces, statement):
    with pytest.raises(SqlUnsupportedError, match=r"<#>|cosine_similarity"):
        traces.query(statement)


def test_a_query_that_is_null_scores_null(traces):
    for score in (
        "embedding <#> NULL::float4[]",
        "task <#> $1",
        "(embedding, task) <#> deeplake_hybrid_record(NULL, 'x', 1, 1)",
    ):
        found = traces.query(f"SELECT id, {score} FROM traces ORDER BY 2 LIMIT 2", [None] if "$1" in score else None)
        assert found.rows == [(1, None), (2, None)]


def test_an_empty_table_and_a_question_without_words(traces):
    traces.create_table("nothing", {"body": "TEXT", "e": "FLOAT4[]"})
    for score in ("body <#> 'x'", "e <#> '{1,2,3}'", "(e, body) <#> deeplake_hybrid_record('{1}', 'x', 1, 1)"):
        assert traces.query(f"SELECT {score} FROM nothing ORDER BY 1 LIMIT 3").rows == []
    for question in ("", "the of and", "?!"):
        assert {score for _, score in traces.query("SELECT id, task <#> $1 FROM traces", [question]).rows} == {
            0.0,
            None,
        }


# The two documents


def test_the_statements_of_the_debugging_memory(workspace):
    workspace.query(
        'CREATE TABLE IF NOT EXISTS "default"."debug_memory" (id BIGSERIAL PRIMARY KEY, task TEXT, outcome TEXT, '
        "error_trace TEXT, tools_used TEXT, metadata JSONB, embedding FLOAT4[]) USING deeplake"
    )
    workspace.query(
        'INSERT INTO "default"."debug_memory" (task, outcome, error_trace, tools_used, metadata, embedding) '
        "VALUES ($1, $2, $3, $4, $5::jsonb, $6::float4[])",
        [
            "Fix OOM crash in data pipeline when processing 50GB parquet files",
            "Root cause: pandas.read_parquet() loads entire file into memory. "
            "Fix: switched to pyarrow.dataset with batch_size=10000.",
            "MemoryError: Unable to allocate 47.3 GiB",
            "pyarrow.dataset, memory_profiler, htop",
            '{"agent": "swe-01", "error_type": "MemoryError"}',
            "{0.25,0.5,0.25}",
        ],
    )
    asked = ("{0.2,0.5,0.3}", "ETL job killed by OOM when loading large CSV exports")
    with_cast = workspace.query(
        """
SELECT task, outcome, error_trace, tools_used, metadata,
(embedding, task)::deeplake_hybrid_record <#>
deeplake_hybrid_record($1::float4[], $2, 0.5, 0.5) AS score
FROM debug_memory
ORDER BY score DESC
LIMIT 3
""",
        asked,
    )
    assert [(row["task"][:7], row["metadata"]["agent"]) for row in with_cast.dicts()] == [("Fix OOM", "swe-01")]
    without = workspace.query(
        "SELECT task, outcome, error_trace, tools_used, (embedding, task) <#> "
        "deeplake_hybrid_record($1::float4[], $2, 0.5, 0.5) AS score "
        'FROM "default"."debug_memory" ORDER BY score DESC LIMIT 3',
        asked,
    )
    assert without.columns == ("task", "outcome", "error_trace", "tools_used", "score")
    assert without.rows[0][-1] == with_cast.rows[0][-1]
    assert 0.5 < without.rows[0][-1] <= 1


def test_the_statement_of_the_coding_agents(workspace):
    workspace.create_table(
        "coding_agent_memory",
        {"content": "TEXT", "embedding": "EMBEDDING(3)", "memory_type": "TEXT", "repo": "TEXT", "file_path": "TEXT"},
    )
    workspace.insert(
        "coding_agent_memory",
        {
            "content": [f"note {n}" for n in range(40)],
            "embedding": [[1.0, n / 10, 0.0] for n in range(40)],
            "memory_type": ["convention"] * 40,
            "repo": ["ours" if n % 2 else "theirs" for n in range(40)],
            "file_path": [""] * 40,
        },
    )
    found = workspace.query(
        """
        SELECT content, memory_type, file_path
        FROM coding_agent_memory
        WHERE repo = :repo
        ORDER BY cosine_similarity(embedding, :q)
        LIMIT 15
    """,
        {"repo": "ours", "q": [1.0, 0.0, 0.0]},
    )
    assert ids(found) == [f"note {n}" for n in range(1, 31, 2)]
    with pytest.raises(SqlError, match=r"coding_agent_memory\.embedding holds vectors of 3 numbers"):
        workspace.query("SELECT cosine_similarity(embedding, :q) FROM coding_agent_memory", {"q": [1.0]})
