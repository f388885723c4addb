"""What is ingested is checked as a whole, and then written as a whole or not at all."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pandas
import pyarrow
import pytest

from rmem import types
from rmem.errors import InputError, RemanenceError, UnknownFieldError, VectorError
from rmem.tables.ingest import from_body, infer_type, normalize_columns, to_body


@pytest.fixture
def client(connect):
    return connect()


# Data frames


def test_a_data_frame_is_written_as_its_columns_and_what_is_missing_is_null(client):
    frame = pandas.DataFrame(
        {
            "task": ["Fix OOM", None],
            "minutes": [45.5, float("nan")],
            "at": pandas.to_datetime(["2026-01-01 10:00:00.123456789", None]),
            "tags": [["etl", "oom"], ["ui"]],
            "embedding": [[0.1, 0.2], [0.3, 0.4]],
        }
    )
    assert client.ingest("runs", frame)["row_count"] == 2
    assert client.ingest("runs", pyarrow.table({"task": ["later"]}))["created"] is False
    types = {name: column["type"] for name, column in client.describe_table("runs").items()}
    assert types == {
        "id": "bigint",
        "task": "text",
        "minutes": "double precision",
        "at": "timestamptz",
        "tags": "text[]",
        "embedding": "embedding(2)",
    }
    first, second, third = client.query("SELECT task, minutes, at, tags FROM runs ORDER BY id")
    at = datetime(2026, 1, 1, 10, 0, 0, 123456, UTC)
    assert first == {"task": "Fix OOM", "minutes": 45.5, "at": at, "tags": ["etl", "oom"]}
    assert second == {"task": None, "minutes": None, "at": None, "tags": ["ui"]}
    assert third["task"] == "later"


def test_a_data_frame_that_is_no_table_is_refused(client):
    frame = pyarrow.table([pyarrow.array([1]), pyarrow.array([2])], names=["a", "a"])
    with pytest.raises(InputError, match="data must be columns of different names"):
        client.ingest("runs", frame)
    with pytest.raises(InputError, match=r"data cannot be read as Arrow: .*mixed") as error:
        client.ingest("runs", pandas.DataFrame({"mixed": [1, "a"]}))
    assert error.value.field == "data"
    assert client.list_tables() == []


# Types of columns


@pytest.mark.parametrize(
    ("values", "type"),
    [
        (["a", None], "text"),
        (["2026-01-01", "{}"], "text"),
        ([1, None, 2], "bigint"),
        ([1, 2.5], "double precision"),
        ([1, Decimal("2.5")], "numeric"),
        ([2**63], "numeric"),
        ([True], "boolean"),
        ([{"a": 1}, None], "jsonb"),
        ([{"a": 1}, ["x"]], "jsonb"),
        ([[1.0, 2.0], [3.0, 4.0]], "EMBEDDING(2)"),
        ([[1, 2], [0.5, 4]], "EMBEDDING(2)"),
        ([[[1.0], [2.0]]], "float4[][]"),
        ([["a"], []], "text[]"),
        ([[1], [2, 3]], "bigint[]"),
        ([datetime(2026, 1, 1)], "timestamptz"),
        ([date(2026, 1, 1)], "date"),
        ([b"x"], "bytea"),
    ],
)
def test_the_type_of_a_column_is_told_from_its_values(values, type):
    assert infer_type("c", values) == type


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([None, None], "c holds only NULLs: say in schema what type it has"),
        ([], "c holds no values: say in schema"),
        ([[], []], "c holds only empty lists: say in schema"),
        ([1, "a"], r"c must hold values of one type, got bigint \(row 0: 1\) and text \(row 1: 'a'\)"),
        ([True, 1], "c must hold values of one type"),
        ([object()], "c must hold values that a table can keep, row 0 is"),
    ],
)
def test_a_column_without_a_type_is_refused(values, told):
    with pytest.raises(InputError, match=told) as refused:
        infer_type("c", values)
    assert refused.value.field == "c"


def test_vectors_of_one_column_have_one_dimension():
    with pytest.raises(VectorError, match="the first has 2 numbers, row 1 has 3"):
        infer_type("c", [[1.0, 2.0], [1.0, 2.0, 3.0]])


def test_a_schema_decides(client):
    schema = {"a": "TEXT", "b": types.Int32(), "c": types.Embedding(2), "d": "json", "e": types.Text}
    client.ingest("t", {"a": [None], "b": [1], "c": [[1, 2]], "d": [[1, 2]], "e": ["x"]}, schema=schema)
    told = {name: column["type"] for name, column in client.describe_table("t").items()}
    assert told == {"id": "bigint", "a": "text", "b": "integer", "c": "embedding(2)", "d": "jsonb", "e": "text"}
    assert client.query("SELECT a, b, c, d, e FROM t") == [{"a": None, "b": 1, "c": [1.0, 2.0], "d": [1, 2], "e": "x"}]


def test_a_schema_may_come_before_the_rows(client):
    assert client.ingest("t", {"a": []}, schema={"a": "TEXT"})["row_count"] == 0
    assert client.ingest("t", {"a": ["x"]})["created"] is False
    assert client.query("SELECT * FROM t") == [{"id": 1, "a": "x"}]


def test_an_id_of_the_data_is_kept(client):
    client.ingest("t", {"id": ["a-1"], "n": [1]})
    assert client.query("SELECT * FROM t") == [{"id": "a-1", "n": 1}]


# All or nothing


@pytest.mark.parametrize(
    ("data", "schema", "told"),
    [
        ({"a": [1, 2], "b": ["x"]}, None, "'a' has 2, 'b' has 1"),
        ({"a": "text"}, None, r"data\['a'\] must be a list of values"),
        ({}, None, "data must be a mapping"),
        ({"a": [1]}, {"b": "TEXT"}, "the data has no field 'b'"),
        ({"a": [1]}, {"a": 5}, r"schema\['a'\] must be a type such as"),
        ({"a": [1]}, {"a": "NONSENSE"}, "(?i)nonsense"),
        ({"a": ["x"]}, {"a": "BIGINT"}, "a"),
        ({"e": [[1.0, 2.0]]}, {"e": "EMBEDDING(3)"}, "(?i)3.*2|2.*3"),
        ({"a": [None]}, None, "only NULLs"),
    ],
)
def test_bad_columns_make_no_table(client, data, schema, told):
    with pytest.raises(RemanenceError, match=told):
        client.ingest("t", data, schema=schema)
    assert client.list_tables() == []


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"text": ["ok"], "unknown": [1]}, "unknown"),
        ({"n": [1]}, "text is NOT NULL in table 't' and has no default"),
        ({"text": ["ok", None]}, "text"),
        ({"text": ["ok"], "n": ["not a number"]}, "n"),
        ({"text": ["ok", "ok"], "e": [[1.0, 0.0], [1.0]]}, "e"),
        ({"text": ["ok", "ok"], "key": [7, 7]}, "key"),
    ],
)
def test_rows_that_do_not_fit_a_table_change_nothing(client, data, told):
    client.query("CREATE TABLE t (text TEXT NOT NULL, n BIGINT, e EMBEDDING(2), key BIGINT UNIQUE)")
    client.ingest("t", {"text": ["first"], "key": [1]})
    with pytest.raises(RemanenceError, match=told):
        client.ingest("t", data)
    assert client.query("SELECT text FROM t") == [{"text": "first"}]


def test_a_new_table_goes_again_when_its_rows_break_a_key(client):
    with pytest.raises(RemanenceError):
        client.ingest("t", {"id": [1, 1]}, schema={"id": "BIGINT PRIMARY KEY"})
    with pytest.raises(RemanenceError):
        client.ingest("t", {"n": [1]}, index={"n": "nonsense"})
    assert client.list_tables() == []


def test_a_bad_append_takes_its_index_with_it(client):
    client.ingest("t", {"text": ["x"]})
    with pytest.raises(RemanenceError):
        client.ingest("t", {"text": [5]}, index=["text"])
    assert client.describe_table("t")["text"]["index"] is None


def test_a_schema_must_agree_with_the_table(client):
    client.ingest("t", {"a": ["x"], "e": [[1.0, 2.0]]})
    with pytest.raises(InputError, match=r"a holds text in table 't', not BIGINT"):
        client.ingest("t", {"a": ["y"]}, schema={"a": "BIGINT"})
    with pytest.raises(InputError, match=r"e holds embedding\(2\) in table 't', not EMBEDDING\(3\)"):
        client.ingest("t", {"a": ["y"], "e": [[1.0, 2.0, 3.0]]}, schema={"e": "EMBEDDING(3)"})
    client.ingest("t", {"a": ["y"], "e": [[1.0, 2.0]]}, schema={"a": "varchar", "e": "FLOAT4[]"})


def test_unknown_columns_are_told_with_the_nearest_name(client):
    client.ingest("t", {"outcome": ["x"]})
    with pytest.raises(RemanenceError, match="table 't' has no field 'outcom'; did you mean 'outcome'") as refused:
        client.ingest("t", {"outcom": ["y"]})
    assert isinstance(refused.value, UnknownFieldError | InputError)


def test_texts_that_are_no_unicode_are_refused(client):
    for bad in ("\ud800", "a\0b"):
        with pytest.raises(RemanenceError):
            client.ingest("t", {"a": [bad]})
    assert client.list_tables() == []


def test_progress_is_told_and_can_stop_it(client):
    told = []
    client.ingest("t", {"a": list(range(2500))}, on_progress=lambda done, total: told.append((done, total)))
    assert told == [(1000, 2500), (2000, 2500), (2500, 2500), (2500, 2500)]

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        client.ingest("t", {"a": [1]}, on_progress=stop)
    assert client.query("SELECT count(*) AS n FROM t") == [{"n": 2500}]


# Indexes


def test_columns_are_indexed_on_demand(client):
    client.ingest("t", {"text": ["a word"], "e": [[1.0, 0.0]], "n": [1]}, index=["text", "e"])
    told = client.describe_table("t")
    assert told["text"]["index"]
    assert told["e"]["index"]
    assert told["n"]["index"] is None
    client.ingest("t", {"text": ["another"]}, index={"text": "bm25"})
    with pytest.raises(InputError, match="index must be a list of columns"):
        client.ingest("t", {"text": ["x"]}, index="text")
    with pytest.raises(InputError, match="the data has no field 'nothing'"):
        client.ingest("t", {"text": ["x"]}, index=["nothing"])
    assert client.query("SELECT count(*) AS n FROM t") == [{"n": 2}]


# Files


def test_files_become_rows(client, tmp_path):
    (tmp_path / "a.md").write_text("# Install\n\nRun make.\n\n# Use\n\nCall recall.")
    (tmp_path / "b.txt").write_text("Nothing else.")
    paths = [str(tmp_path / "a.md"), str(tmp_path / "b.txt")]
    done = client.ingest("docs", {"path": paths, "team": ["core", "web"]}, schema={"path": "FILE"}, index=["text"])
    assert done["row_count"] == 3
    assert client.query("SELECT path, chunk, text, metadata, team FROM docs ORDER BY id") == [
        {"path": paths[0], "chunk": 0, "text": "# Install\n\nRun make.", "metadata": {"headings": ["Install"]},
         "team": "core"},
        {"path": paths[0], "chunk": 1, "text": "# Use\n\nCall recall.", "metadata": {"headings": ["Use"]},
         "team": "core"},
        {"path": paths[1], "chunk": 0, "text": "Nothing else.", "metadata": {}, "team": "web"},
    ]  # fmt: skip


def test_one_bad_file_and_nothing_is_written(client, tmp_path):
    good = tmp_path / "a.txt"
    good.write_text("Text.")
    with pytest.raises(InputError, match=r"missing\.txt does not exist"):
        client.ingest("docs", {"path": [str(good), str(tmp_path / "missing.txt")]}, schema={"path": types.File()})
    assert client.list_tables() == []
    with pytest.raises(InputError, match="'text' is a column that reading files fills"):
        client.ingest("docs", {"path": [str(good)], "text": ["x"]}, schema={"path": "FILE"})
    with pytest.raises(InputError, match="at most one FILE column"):
        client.ingest("docs", {"a": [str(good)], "b": [str(good)]}, schema={"a": "FILE", "b": "file"})


def test_long_files_are_cut_into_chunks(client, tmp_path):
    path = tmp_path / "long.txt"
    path.write_text(" ".join(f"Sentence number {number} is here." for number in range(200)))
    client.ingest("docs", {"path": [path]}, schema={"path": "FILE"}, chunk_size=300, chunk_overlap=60)
    chunks = client.query("SELECT chunk, text FROM docs ORDER BY chunk")
    assert chunks["chunk"] == list(range(len(chunks)))
    assert len(chunks) > 20
    assert all(len(text) <= 300 and text.endswith("here.") for text in chunks["text"])


# As JSON


def test_columns_survive_as_json():
    data = {
        "t": ["x", None],
        "m": [datetime(2026, 1, 1, tzinfo=UTC), None],
        "naive": [datetime(2026, 1, 1), None],
        "d": [1, Decimal("2.5")],
        "f": [1.5, float("inf")],
        "e": [[0.5], None],
        "j": [{"a": 1}, [1]],
    }
    ready = normalize_columns(data, {"t": "TEXT"})
    assert from_body(to_body(ready)) == ready


def test_arrays_are_sent_as_their_bytes_or_as_lists():
    body = to_body(normalize_columns({"e": np.eye(2, dtype=np.float32), "j": [{"a": 1}, np.array([[1.5]])]}))
    assert body["columns"] == {"e": ["AACAPwAAAAA=", "AAAAAAAAgD8="], "j": [{"a": 1}, [[1.5]]]}
    assert body["types"] == {"e": "float4[]"}
    again = from_body(body).columns["e"]
    assert np.array_equal(again, np.eye(2))
    for wrong in ("AAC", "AAA=", "???", 5):
        with pytest.raises(InputError, match=r"type float4\[\] cannot be read"):
            from_body({"columns": {"e": [wrong]}, "types": {"e": "float4[]"}})


def test_arrays_fit_columns_of_json(client):
    client.ingest("t", {"j": [np.array([1.5, 2.0])]}, schema={"j": "JSONB"})
    assert client.query("SELECT j FROM t") == [{"j": [1.5, 2.0]}]


def test_a_request_cannot_name_files():
    with pytest.raises(InputError, match="the client reads files"):
        from_body({"columns": {"path": ["secrets.txt"]}, "schema": {"path": " file "}})
