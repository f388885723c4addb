"""A search that is asked again is not planned again, and answers for the values and the tables of the moment."""

from __future__ import annotations

import math

import pytest

from rmem.errors import SqlError
from rmem.tables import workspace as workspace_module
from rmem.tables.engines import postgres_render, sqlite

WORDS = ["red fox", "red red hen", "grey goose", "a red fox and a hen"]


@pytest.fixture
def notes(workspace):
    workspace.query("CREATE TABLE notes (id INT PRIMARY KEY, body TEXT, place FLOAT4[2])")
    for number, words in enumerate(WORDS * 20, 1):
        workspace.query(
            "INSERT INTO notes VALUES ($1, $2, $3)", [number, words, [math.cos(number / 60), math.sin(number / 60)]]
        )
    return workspace


def test_a_repeated_search_is_planned_and_rendered_once(notes, monkeypatch):
    made = []
    plan, compiler, rendering = workspace_module.plan_search, sqlite.Compiler, postgres_render._Rendering
    monkeypatch.setattr(workspace_module, "plan_search", lambda *given: made.append("plan") or plan(*given))
    for module, name, real in ((sqlite, "Compiler", compiler), (postgres_render, "_Rendering", rendering)):
        monkeypatch.setattr(module, name, lambda *given, real=real, **more: made.append("text") or real(*given, **more))
    sql = "SELECT id FROM notes WHERE id > $2 ORDER BY body <#> $1 DESC LIMIT $3"
    asked = (["fox", 4, 2], ["goose", 9, 1], ["hen", 70, 3])
    answers = [[(5,), (9,)], [(11,)], [(72,), (74,), (76,)]]
    assert [notes.query(sql, values).rows for values in asked] == answers
    assert made == ["plan", "text", "text"]  # on the best rows, and on all
    assert [notes.query(sql, values).rows for values in asked] == answers
    assert made == ["plan", "text", "text"]


def test_a_repeated_search_by_distance_and_with_a_bar_takes_each_value(notes):
    sql = "SELECT count(*) FROM notes WHERE body <#> $1 > $2"
    assert [notes.query(sql, values).rows[0][0] for values in (["fox", 0.0], ["fox", 99.0], ["hen", 0.0])] == [
        40,
        0,
        40,
    ]
    both = "SELECT id FROM notes ORDER BY (place, body) <#> deeplake_hybrid_record($1, $2) DESC LIMIT 1"
    assert [notes.query(both, [[0.2, 1.0], words]).rows for words in ("goose", "fox")] == [[(79,)], [(77,)]]
    assert notes.query(both, [None, "fox"]).rows == [(1,)]


def test_a_repeated_search_follows_the_tables(notes, open_workspace):
    sql = "SELECT id FROM notes ORDER BY body <#> $1 DESC LIMIT 1"
    assert notes.query(sql, ["goose"]).rows == [(3,)]
    other = open_workspace()
    other.query("ALTER TABLE notes DROP COLUMN id")
    with pytest.raises(SqlError, match='"id"'):
        notes.query(sql, ["goose"])
    other.query("DROP TABLE notes")
    other.query("CREATE TABLE notes (id INT, body TEXT)")
    other.query("INSERT INTO notes VALUES (7, 'goose')")
    assert notes.query(sql, ["goose"]).rows == [(7,)]


def test_a_query_inside_an_operator_is_asked_each_time(notes):
    sql = "SELECT id FROM notes WHERE id <> $1 ORDER BY place <#> (SELECT place FROM notes WHERE id = $1) DESC LIMIT 1"
    assert [notes.query(sql, [number]).rows for number in (80, 1)] == [[(79,)], [(2,)]]
    notes.query("UPDATE notes SET place = $1 WHERE id = 40", [[math.cos(0), math.sin(0)]])
    assert notes.query(sql, [1]).rows == [(40,)]
