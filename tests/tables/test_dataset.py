"""Datasets grow column by column and row by row, and are read like lists."""

from __future__ import annotations

import numpy as np
import pytest

import rmem
from rmem import types
from rmem.errors import ConfigError, InputError, NoSuchTableError, RemanenceError
from rmem.tables.dataset import Dataset, as_columns, place_of


@pytest.fixture
def dataset(connect):
    return Dataset(connect(), "notes")


@pytest.fixture
def notes(dataset):
    dataset.add_column("content", types.Text())
    dataset.add_column("embedding", types.Embedding(2))
    dataset.append([{"content": f"note {number}", "embedding": [float(number), 1.0]} for number in range(5)])
    return dataset


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("rmem://my-org/coding-agent-memory", ("my-org", "coding_agent_memory")),
        ("al://my-org/coding-agent-memory", ("my-org", "coding_agent_memory")),
        ("rmem://a/Notes.v2/", ("a", "notes_v2")),
        ("rmem://a/2026", ("a", "_2026")),
    ],
)
def test_addresses(address, place):
    assert place_of(address) == place


@pytest.mark.parametrize("address", ["notes", "rmem://only", "rmem://a/b/c", "http://a/b", "rmem:///b", 5])
def test_addresses_that_lead_nowhere(address):
    with pytest.raises(ConfigError, match="address must be rmem://workspace/dataset"):
        rmem.open(address)


def test_a_dataset_stays(tmp_path, monkeypatch):
    monkeypatch.setenv("RMEM_HOME", str(tmp_path))
    with rmem.open("rmem://team/notes") as notes:
        assert len(notes) == 0
        assert list(notes) == []
        assert notes.schema == {}
        notes.add_column("content", types.Text())
        notes.append({"content": "kept"})
    with rmem.open("al://team/notes") as notes:
        assert notes[0] == {"content": "kept"}
    with rmem.open("rmem://other/notes") as notes:
        assert len(notes) == 0


def test_columns_are_added_once(notes):
    notes.add_column("content", "text")
    notes.add_column("embedding", types.Embedding(2))
    assert notes.schema == {"content": "text", "embedding": "embedding(2)"}
    with pytest.raises(InputError, match=r"column 'content' is there already and holds text, not BIGINT"):
        notes.add_column("content", types.Int64())
    with pytest.raises(InputError, match=r"holds embedding\(2\), not EMBEDDING\(3\)"):
        notes.add_column("embedding", types.Embedding(3))
    notes.add_column("stars", types.Int64())
    assert notes[0] == {"content": "note 0", "embedding": [0.0, 1.0], "stars": None}
    assert notes.columns == ["content", "embedding", "stars"]


@pytest.mark.parametrize("type", [5, "", "NONSENSE", types.File()])
def test_types_that_are_none(dataset, type):
    with pytest.raises(RemanenceError):
        dataset.add_column("a", type)
    assert dataset.schema == {}


def test_a_column_cannot_take_the_place_of_the_row_number(dataset):
    with pytest.raises(InputError, match="_id is the number of a row"):
        dataset.add_column("_id", types.Int64())


def test_rows_are_read_like_a_list(notes):
    assert len(notes) == 5
    assert notes[0]["content"] == "note 0"
    assert notes[-1]["content"] == "note 4"
    assert [row["content"] for row in notes[1:3]] == ["note 1", "note 2"]
    assert [row["content"] for row in notes[::-2]] == ["note 4", "note 2", "note 0"]
    assert notes[10:] == []
    assert [row["content"] for row in notes] == [f"note {number}" for number in range(5)]
    assert notes["content"] == [f"note {number}" for number in range(5)]
    for missing in (5, -6):
        with pytest.raises(IndexError):
            _ = notes[missing]
    with pytest.raises(NoSuchTableError, match="no column 'nothing'"):
        _ = notes["nothing"]


def test_every_way_to_append(notes):
    assert notes.append({"content": "one", "embedding": [9.0, 9.0]}) == 1
    assert notes.append({"content": ["two", "three"], "embedding": np.ones((2, 2))}) == 2
    assert notes.append([{"content": "four"}, {"embedding": [0.5, 0.5]}]) == 2
    assert notes["content"][5:] == ["one", "two", "three", "four", None]
    assert notes["embedding"][5:] == [[9.0, 9.0], [1.0, 1.0], [1.0, 1.0], None, [0.5, 0.5]]


SCHEMA = {"t": "text", "e": "embedding(2)", "j": "jsonb", "w": "text[]", "m": "float4[][]"}


@pytest.mark.parametrize(
    ("data", "columns"),
    [
        ({"t": "a", "j": [1, 2]}, {"t": ["a"], "j": [[1, 2]]}),
        ({"t": ["a", "b"], "j": [1, 2]}, {"t": ["a", "b"], "j": [1, 2]}),
        ({"e": [1.0, 2.0]}, {"e": [[1.0, 2.0]]}),
        ({"e": [[1.0, 2.0]]}, {"e": [[1.0, 2.0]]}),
        ({"w": ["a"]}, {"w": [["a"]]}),
        ({"m": [[1.0]]}, {"m": [[[1.0]]]}),
        ({"j": {"a": 1}}, {"j": [{"a": 1}]}),
        ({"j": [{"a": 1}]}, {"j": [{"a": 1}]}),
        ({"t": None, "e": [1.0, 2.0]}, {"t": [None], "e": [[1.0, 2.0]]}),
        ([{"t": "a"}, {"j": 1}], {"t": ["a", None], "j": [None, 1]}),
    ],
)
def test_one_row_is_told_from_columns(data, columns):
    assert as_columns(data, SCHEMA) == columns


@pytest.mark.parametrize("data", [{}, [], "text", 5, [1], {"t": "a", "e": [[1.0, 2.0]]}, {"x": 1}, [{"x": 1}]])
def test_what_cannot_be_appended(data):
    with pytest.raises(InputError):
        as_columns(data, SCHEMA)


def test_a_dataset_without_columns_takes_no_rows(dataset):
    with pytest.raises(InputError, match="has no columns yet; add_column first"):
        dataset.append({"content": "x"})


def test_an_append_that_fails_leaves_nothing(notes):
    with pytest.raises(RemanenceError):
        notes.append([{"content": "fine"}, {"embedding": [1.0]}])
    assert len(notes) == 5


def test_query_names_the_dataset_as_a_table(notes):
    found = notes.query(
        "SELECT content FROM notes ORDER BY cosine_similarity(embedding, :q) LIMIT 1", {"q": [4.0, 1.0]}
    )
    assert found == [{"content": "note 4"}]
    assert found["content"] == ["note 4"]


def test_versions_tell_states_apart(notes):
    first = notes.commit("five notes")
    assert notes.commit() == first == notes.version
    notes.append({"content": "another"})
    assert notes.version != first


def test_a_table_made_otherwise_can_be_opened(connect):
    client = connect()
    client.ingest("notes", {"content": ["a", "b"]})
    notes = Dataset(client, "notes")
    assert notes.columns == ["id", "content"]
    assert notes[1] == {"id": 2, "content": "b"}
