"""`<=>` is the cosine distance of two vectors and `<->` their euclidean distance; the nearest come first."""

from __future__ import annotations

import math

import pytest

from rmem.errors import SqlError, SqlUnsupportedError

VECTORS = {1: [1.0, 0.0], 2: [3.0, 4.0], 3: [0.0, 2.0], 4: [-1.0, 0.0]}


@pytest.fixture
def tables(workspace):
    workspace.query("CREATE TABLE v (id INT PRIMARY KEY, e FLOAT4[], f FLOAT4[])")
    workspace.insert("v", {"id": [*VECTORS, 5], "e": [*VECTORS.values(), None]})
    return workspace


def test_cosine_distance_is_one_without_the_cosine(tables):
    rows = tables.query("SELECT id, e <=> $1 AS d FROM v ORDER BY id", [[1.0, 0.0]]).rows
    assert [None if d is None else round(d, 6) for _, d in rows] == [0.0, 0.4, 1.0, 2.0, None]


def test_euclidean_distance_is_the_length_of_the_difference(tables):
    rows = tables.query("SELECT id, e <-> $1 AS d FROM v ORDER BY id", [[1.0, 0.0]]).rows
    wanted = [math.dist(vector, [1.0, 0.0]) for vector in VECTORS.values()]
    assert [d for _, d in rows[:4]] == pytest.approx(wanted)
    assert rows[4][1] is None


@pytest.mark.parametrize("operator", ["<=>", "<->"])
@pytest.mark.parametrize("order", ["e {} $1", "d", "2", "e {} $1 ASC"])
def test_ordering_by_a_distance_gives_the_nearest_first_and_null_last(tables, operator, order):
    sql = f"SELECT id, e {operator} $1 AS d FROM v ORDER BY {order.format(operator)}"
    nearest = {"<=>": [1, 2, 3, 4, 5], "<->": [1, 4, 3, 2, 5]}[operator]
    assert [row[0] for row in tables.query(sql, [[1.0, 0.0]]).rows] == nearest
    assert [row[0] for row in tables.query(f"{sql} LIMIT 2", [[1.0, 0.0]]).rows] == nearest[:2]


@pytest.mark.parametrize("operator", ["<=>", "<->"])
def test_descending_gives_the_farthest_first(tables, operator):
    sql = f"SELECT id FROM v WHERE e IS NOT NULL ORDER BY e {operator} '{{1,0}}'::float4[] DESC LIMIT 1"
    assert tables.query(sql).rows == [({"<=>": 4, "<->": 2}[operator],)]


@pytest.mark.parametrize("operator", ["<=>", "<->"])
def test_a_distance_can_be_a_condition(tables, operator):
    rows = tables.query(f"SELECT id FROM v WHERE e {operator} ARRAY[1, 0]::float4[] < 0.1").rows
    assert rows == [(1,)]


def test_the_nearest_by_cosine_are_found_by_the_index(tables):
    lines = tables.query("EXPLAIN SELECT id FROM v ORDER BY e <=> $1 LIMIT 2", [[1.0, 0.0]]).rows
    assert any("Best rows first" in line for (line,) in lines)


def test_euclidean_distance_of_two_columns(tables):
    tables.query("UPDATE v SET f = '{0,0}' WHERE id = 2")
    assert tables.query("SELECT e <-> f FROM v WHERE id IN (1, 2) ORDER BY id").rows == [(None,), (5.0,)]


def test_distances_count_in_groups_and_beside_each_other(tables):
    (row,) = tables.query("SELECT min(e <-> $1), max(e <=> $1), count(*) FROM v", [[1.0, 0.0]]).rows
    assert (row[0], round(row[1], 6), row[2]) == (0.0, 2.0, 5)


@pytest.mark.parametrize("operator", ["<=>", "<->"])
def test_vectors_of_another_dimension_are_refused(tables, operator):
    with pytest.raises(SqlError, match=r"dimensions 2 and 3|of 2 numbers, the query has 3"):
        tables.query(f"SELECT e {operator} $1 FROM v", [[1.0, 0.0, 0.0]])


def test_what_has_no_distance_is_refused(tables):
    with pytest.raises(SqlError):
        tables.query("SELECT id <-> 5 FROM v")
    with pytest.raises(SqlError):
        tables.query("SELECT id <=> 5 FROM v")
    with pytest.raises(SqlUnsupportedError, match=r"needs a column|must be a value"):
        tables.query("SELECT e <=> f FROM v")


def test_a_table_can_be_made_of_distances(tables):
    tables.query("CREATE TABLE near AS SELECT id, e <=> '{1,0}' AS c, e <-> '{1,0}' AS d FROM v WHERE id < 3")
    assert tables.query("SELECT id, round(c::numeric, 3)::text FROM near ORDER BY id").rows == [
        (1, "0.000"),
        (2, "0.400"),
    ]
