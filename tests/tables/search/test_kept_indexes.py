"""The search indexes of tables in a SQLite file: what is kept, and what it is worth to a new process."""

from __future__ import annotations

import random
import sqlite3

import numpy as np
import pytest

from rmem.index.analyser import term_hashes
from rmem.index.bits import unit
from rmem.tables.engines import sqlite_changes
from rmem.tables.search import indexes, texts, vectors
from rmem.tables.search.scores import CosineScores
from rmem.tables.search.vectors import VectorColumn
from rmem.tables.workspace import Workspace

WORDS = "parquet memory disk error pipeline garden window theory kernel sugar".split()
HYBRID = (
    "SELECT id, (e, body) <#> deeplake_hybrid_record($1::float4[], $2, 0.5, 0.5) AS s FROM notes ORDER BY s DESC, id"
)

DAMAGE = [lambda data: data[:-4], lambda data: bytes([data[0] ^ 1]) + data[1:], lambda data: b""]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tables.db"


def fill(workspace, rows, first=0):
    chance = random.Random(first)
    workspace.insert(
        "notes",
        {
            "id": list(range(first, first + rows)),
            "body": [" ".join(chance.choices(WORDS, k=4)) for _ in range(rows)],
            "e": [[chance.gauss(0, 1) for _ in range(4)] for _ in range(rows)],
        },
    )


def made(path, rows=60):
    workspace = Workspace(path)
    workspace.create_table("notes", {"id": "BIGINT", "body": "TEXT", "e": "FLOAT4[]"})
    fill(workspace, rows)
    workspace.query("CREATE INDEX notes_body ON notes USING deeplake_index (body) WITH (index_type = 'bm25')")
    workspace.query("CREATE INDEX notes_e ON notes USING deeplake_index (e) WITH (index_type = 'vector')")
    return workspace


def answer(workspace):
    return workspace.query(HYBRID, [[1.0, 0.5, -1.0, 0.0], "memory garden error"]).rows


def plain(path, statement, *values):
    connection = sqlite3.connect(path)
    with connection:
        found = connection.execute(statement, values).fetchall()
    connection.close()
    return found


def kept(path):
    return plain(path, "SELECT table_id, place, first_seq, last_seq, rows FROM table_segments ORDER BY 1, 2, 3")


def from_rows(path):
    """What a workspace answers that has nothing but the rows."""
    plain(path, "DELETE FROM table_segment_arrays")
    plain(path, "DELETE FROM table_segments")
    with Workspace(path) as workspace:
        return answer(workspace)


@pytest.fixture
def nothing_is_read(monkeypatch):
    """No text is analysed from here on."""

    def refuse(text):
        raise AssertionError(f"{text!r} was analysed again")

    return lambda: monkeypatch.setattr(texts, "term_hashes", refuse)


def test_create_index_builds_and_keeps_and_a_new_workspace_reads_no_rows(path, nothing_is_read):
    with made(path) as workspace:
        before = answer(workspace)
    assert [rows for *_, rows in kept(path)] == [60, 60]
    nothing_is_read()
    with Workspace(path) as workspace:
        monitor = []
        changes = workspace._engine.changes
        workspace._engine.changes = lambda *asked: monitor.append(changes(*asked)) or monitor[-1]
        assert answer(workspace) == before
        assert [told.rows.size for told in monitor] == [0]


def test_a_column_that_was_searched_without_an_index_is_kept_too(path, monkeypatch):
    monkeypatch.setattr(indexes, "SAVE_FROM", 10)
    monkeypatch.setattr(indexes.SearchIndexes.follow, "__kwdefaults__", {"save_from": 10})
    with Workspace(path) as workspace:
        workspace.create_table("notes", {"id": "BIGINT", "body": "TEXT", "e": "FLOAT4[]"})
        fill(workspace, 30)
        answer(workspace)
        assert len(kept(path)) == 2
        fill(workspace, 5, 30)
        answer(workspace)
        assert [rows for *_, rows in kept(path)] == [30, 30], "few rows are not worth writing"


def test_many_inserts_into_a_table_with_an_index_are_kept_without_a_search(path, monkeypatch):
    monkeypatch.setattr(indexes, "SAVE_BULK", 50)
    monkeypatch.setattr(indexes.SearchIndexes.follow, "__kwdefaults__", {"save_from": 10})
    with made(path, 10) as workspace:
        fill(workspace, 30, 10)
        assert [last for _, _, _, last, _ in kept(path)] == [10, 10]
        fill(workspace, 30, 40)
        assert max(last for _, _, _, last, _ in kept(path)) == 70


def test_an_update_that_leaves_the_searched_columns_alone_reads_no_text_again(path, nothing_is_read):
    with made(path) as workspace:
        before = dict(answer(workspace))
        nothing_is_read()
        workspace.query("UPDATE notes SET id = id + 1000")
        assert {id - 1000: score for id, score in answer(workspace)} == before


@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_to_a_table_kept_indexes_answer_as_its_rows_do(path, monkeypatch, seed):
    monkeypatch.setattr(indexes.SearchIndexes.follow, "__kwdefaults__", {"save_from": 5})
    monkeypatch.setattr(sqlite_changes, "_PAGE", 7)
    monkeypatch.setattr(vectors, "_HELD", 20)
    monkeypatch.setattr(vectors, "FEW_DIMENSIONS", 1)
    chance = random.Random(seed)
    made(path).close()
    for turn in range(12):
        with Workspace(path) as workspace:
            for _ in range(chance.randrange(1, 4)):
                low = chance.randrange(60)
                statement = chance.choice(
                    [
                        f"DELETE FROM notes WHERE id BETWEEN {low} AND {low + 3}",
                        f"UPDATE notes SET body = body || ' {chance.choice(WORDS)}' WHERE id % 7 = {low % 7}",
                        f"UPDATE notes SET e = '{{{low},1,0,2}}' WHERE id % 11 = {low % 11}",
                        f"UPDATE notes SET body = NULL WHERE id = {low}",
                        "UPDATE notes SET id = id",
                        f"INSERT INTO notes VALUES ({turn + 100}, 'memory of turn {turn}', NULL)",
                        f"ALTER TABLE notes ADD COLUMN IF NOT EXISTS more TEXT DEFAULT '{turn}'",
                        "ALTER TABLE notes DROP COLUMN IF EXISTS more",
                    ]
                )
                workspace.query(statement)
                if chance.random() < 0.5:
                    answer(workspace)
    with Workspace(path) as workspace:
        found = answer(workspace)
    assert found == from_rows(path)


@pytest.mark.parametrize("name", ["terms.rows", "rows", "prints", "4.matrix"])
@pytest.mark.parametrize(
    "damage", [lambda data: data[:-4], lambda data: bytes([data[0] ^ 1]) + data[1:], lambda data: b""]
)
def test_a_damaged_segment_is_read_from_the_rows_and_replaced(path, name, damage):
    with made(path) as workspace:
        before = answer(workspace)
    ((data,),) = plain(path, "SELECT data FROM table_segment_arrays WHERE name LIKE ? LIMIT 1", f"%{name}")[:1]
    plain(path, "UPDATE table_segment_arrays SET data = ? WHERE data = ?", damage(data), data)
    with Workspace(path) as workspace:
        assert answer(workspace) == before
        workspace.query("CREATE INDEX again ON notes USING deeplake_index (body, e)")
    assert [rows for *_, rows in kept(path)] == [60, 60]
    with Workspace(path) as workspace:
        assert answer(workspace) == before


def test_nothing_of_a_deleted_or_changed_row_stays_in_the_file(path):
    secret, other = (np.array(term_hashes(word), np.uint64).tobytes() for word in ("zyzzyva", "qoxwile"))
    with made(path) as workspace:
        workspace.query("INSERT INTO notes VALUES (900, 'zyzzyva', '{7,7,7,7}'), (901, 'qoxwile', '{1,2,3,4}')")
        workspace.query("CREATE INDEX again ON notes USING deeplake_index (body, e)")
    assert secret in path.read_bytes()
    with Workspace(path) as workspace:
        workspace.query("DELETE FROM notes WHERE id = 900")
        workspace.query("UPDATE notes SET body = 'quiet' WHERE id = 901")
    written = path.read_bytes()
    assert secret not in written
    assert other not in written
    with Workspace(path) as workspace:
        found = answer(workspace)
        assert [row for row, _ in workspace.query("SELECT id, body <#> 'quiet' FROM notes").rows if row == 901] == [901]
    assert found == from_rows(path)


def test_a_table_or_column_that_is_dropped_leaves_no_segments(path):
    with made(path) as workspace:
        (body,) = {place for _, place, *_ in kept(path)} - {"c3"}
        workspace.query("DROP INDEX notes_body")
        workspace.query("ALTER TABLE notes DROP COLUMN body")
        assert {place for _, place, *_ in kept(path)} == {"c3"} != {body}
        workspace.query("ALTER TABLE notes ADD COLUMN body TEXT DEFAULT 'garden'")
        assert workspace.query("SELECT count(*) FROM notes WHERE body <#> 'garden' > 0").rows == [(60,)]
        workspace.drop_table("notes")
        assert kept(path) == []
        assert plain(path, "SELECT count(*) FROM table_segment_arrays") == [(0,)]


def test_changes_of_one_table_cost_the_index_of_another_nothing(path, monkeypatch, nothing_is_read):
    monkeypatch.setattr(sqlite_changes, "MAX_LOG", 20)
    with made(path) as workspace:
        before = answer(workspace)
        workspace.query("UPDATE notes SET id = id WHERE id < 3")
        workspace.create_table("busy", {"n": "BIGINT"})
        workspace.insert("busy", {"n": list(range(15))})
        for _ in range(8):
            workspace.query("UPDATE busy SET n = n + 1")
        assert plain(path, "SELECT count(*) FROM table_changes")[0][0] < 40
    with Workspace(path) as workspace:
        # Those of `notes` that were cut have to be read again, once; after that nothing is.
        assert answer(workspace) == before
        workspace.query("CREATE INDEX again ON notes USING deeplake_index (body, e)")
        for _ in range(8):
            workspace.query("UPDATE busy SET n = n + 1")
    nothing_is_read()
    with Workspace(path) as workspace:
        assert answer(workspace) == before


def test_a_search_does_not_wait_for_a_writer_to_keep_its_index(path):
    with Workspace(path) as workspace:
        workspace.create_table("notes", {"id": "BIGINT", "body": "TEXT", "e": "FLOAT4[]"})
        fill(workspace, 3000)
        writer = sqlite3.connect(path, isolation_level=None)
        writer.execute("BEGIN IMMEDIATE")
        before = answer(workspace)
        assert kept(path) == []
        writer.execute("ROLLBACK")
        writer.close()
    assert before == from_rows(path)


@pytest.mark.parametrize("clustered", [True, False])
def test_codes_and_the_vectors_of_the_table_lead_to_the_exact_best(clustered):
    """With and without clusters, the second of which sign bits can tell nothing about."""
    rng = np.random.default_rng(3)
    table = rng.standard_normal((20_000, 256)).astype(np.float32)
    if clustered:
        table += 3 * rng.standard_normal((50, 256)).astype(np.float32)[rng.integers(0, 50, 20_000)]
    asked = []

    def read(rows):
        asked.append(rows.size)
        return {int(row): table[row - 1].tobytes() for row in rows}

    column = VectorColumn(read)
    column.change(np.empty(0, np.int64), np.arange(1, 20_001), list(table))
    column.change(np.arange(1, 100), np.arange(50, 60), list(table[49:59]))
    alive = np.setdiff1d(np.arange(1, 20_001), np.r_[1:50, 60:100])
    for number in range(5):
        query = unit((table[500 + number] + rng.standard_normal(256).astype(np.float32))[None, :])[0]
        exact = np.einsum("ij,j->i", unit(table[alive - 1]), query)
        order = np.lexsort((alive, -exact))[:40]
        rows, scores = CosineScores(column.vectors(256), query).best(40)
        assert rows.tolist() == alive[order].tolist()
        assert scores.tolist() == exact[order].astype(np.float64).tolist()
    assert max(asked) < 2000, "only the vectors that may be among the best are read"
    everything = CosineScores(column.vectors(256), query).all()
    assert everything[1].tolist() == np.clip(exact, -1, 1).astype(np.float64).tolist()
