"""How indexes keep up with their tables: many threads, changed columns, limited memory, failures."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from rmem.tables.catalog import Column, Kind, Table, Type
from rmem.tables.engines.base import TableChanges
from rmem.tables.search.allowance import Allowance
from rmem.tables.search.indexes import SearchIndexes
from rmem.tables.search.scores import TextScores


def ids(result):
    return [row[0] for row in result.rows]


def test_many_threads_search_and_write_at_once(workspace):
    workspace.create_table("notes", {"id": "BIGSERIAL PRIMARY KEY", "who": "TEXT", "body": "TEXT", "e": "FLOAT4[]"})
    started = threading.Barrier(4)

    def work(name):
        started.wait()
        for turn in range(8):
            workspace.query(
                "INSERT INTO notes (who, body, e) VALUES ($1, $2, $3::float4[])",
                [name, f"{name} wrote parquet {turn}", [1.0, float(turn)]],
            )
            own = workspace.query(
                "SELECT e <#> '{1,0}' FROM notes WHERE who = $1 AND body <#> $2 > 0 "
                "ORDER BY (e, body) <#> deeplake_hybrid_record('{1,0}', 'parquet', 0.5, 0.5)",
                [name, name],
            )
            assert len(own.rows) == turn + 1
            assert all(score is not None for (score,) in own.rows)
            if turn % 3 == 2:
                workspace.query("UPDATE notes SET body = body || ' revised' WHERE who = $1", [name])

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work, name) for name in ("ana", "boris", "chen", "dalia")]:
            done.result()
    found = workspace.query("SELECT count(*) FROM notes WHERE body <#> 'parquet' > 0 AND body <#> 'revised' > 0")
    assert found.rows == [(24,)]


def test_a_column_that_is_another_one_now_is_read_anew(workspace):
    workspace.create_table("notes", {"id": "BIGINT", "body": "TEXT", "e": "FLOAT4[]"})
    workspace.insert("notes", {"id": [1, 2], "body": ["old words", "old"], "e": [[1.0, 0.0], [0.0, 1.0]]})
    search = "SELECT id FROM notes WHERE body <#> $1 > 0 ORDER BY id"
    assert ids(workspace.query(search, ["old"])) == [1, 2]
    workspace.query("ALTER TABLE notes DROP COLUMN body")
    workspace.query("ALTER TABLE notes ADD COLUMN body TEXT DEFAULT 'fresh'")
    assert ids(workspace.query(search, ["old"])) == []
    assert ids(workspace.query(search, ["fresh"])) == [1, 2]


class Tables:
    """Tables in a dictionary, told as an engine tells them."""

    def __init__(self, **texts):
        self.texts, self.asked, self.version = texts, [], 1

    def changes(self, table, columns, since):
        self.asked.append((table, tuple(columns), since))
        rows = [] if since == self.version else list(self.texts[table])
        values = [tuple(self.texts[table][row] for _ in columns) for row in rows]
        return TableChanges(self.version, np.empty(0, np.int64), np.array(rows, np.int64), values, whole=bool(rows))


def table(name, *columns):
    return Table(name, tuple(Column(column, Type(Kind.TEXT)) for column in columns))


def test_columns_of_a_table_are_followed_together():
    tables = Tables(notes={1: "a text"})
    indexes = SearchIndexes(tables)
    notes = table("notes", "a", "b")
    indexes.follow(notes, ["b", "a"])
    indexes.follow(notes, ["a", "b"])
    assert tables.asked == [("notes", ("a", "b"), 0), ("notes", ("a", "b"), 1)]


def test_indexes_that_were_not_used_for_longest_are_dropped():
    words = {row: f"some words of row {row}" for row in range(2000)}
    tables, others = Tables(first=words, second=words), Tables(third=words)
    allowance = Allowance(100_000)
    indexes, neighbours = SearchIndexes(tables, allowance=allowance), SearchIndexes(others, allowance=allowance)
    first, second, third = (table(name, "a") for name in ("first", "second", "third"))
    indexes.follow(first, ["a"])
    indexes.follow(first, ["a"])
    assert [since for _, _, since in tables.asked] == [0, 1], "one that is needed stays, however large"
    indexes.follow(second, ["a"])
    tables.asked.clear()
    held = indexes.follow(first, ["a"])
    assert tables.asked == [("first", ("a",), 0)]
    assert TextScores(held["a"].texts(), "words").all()[0].size == 2000
    neighbours.follow(third, ["a"])
    indexes.follow(first, ["a"])
    assert tables.asked[1:] == [("first", ("a",), 0)], "the memory is that of the process"


def test_indexes_of_tables_and_workspaces_that_are_no_more_take_no_memory():
    allowance = Allowance(1 << 30)
    indexes = SearchIndexes(Tables(notes={1: "a text"}, letters={1: "a text"}), allowance=allowance)
    indexes.follow(table("notes", "a"), ["a"])
    indexes.follow(table("letters", "a"), ["a"])
    before = allowance._total
    indexes.keep_only(["letters"])
    assert 0 < allowance._total < before
    del indexes
    assert allowance._total == 0


def test_a_change_that_fails_is_taken_again():
    tables = Tables(notes={1: "fine", 2: 3.5})
    indexes = SearchIndexes(tables)
    notes = table("notes", "a")
    with pytest.raises(TypeError):
        indexes.follow(notes, ["a"])
    tables.texts["notes"][2] = "mended"
    held = indexes.follow(notes, ["a"])["a"]
    assert TextScores(held.texts(), "mended").best(1)[0].tolist() == [2]
    indexes.keep_only([])
    indexes.follow(notes, ["a"])
    assert [since for _, _, since in tables.asked] == [0, 0, 0]
