"""Answers as rows, Arrow and Parquet, in bounded memory."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from rmem.errors import InputError, NoSuchTableError
from rmem.tables.catalog import Kind, Type
from rmem.tables.results import Result
from rmem.tables.streams import QueryRows, arrow_reader, write_parquet

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
EVERY = [
    (Type(Kind.TEXT), "x", pa.string(), "x"),
    (Type(Kind.SMALLINT), 1, pa.int16(), 1),
    (Type(Kind.INTEGER), 1, pa.int32(), 1),
    (Type(Kind.BIGINT), 2**60, pa.int64(), 2**60),
    (Type(Kind.REAL), 0.5, pa.float32(), 0.5),
    (Type(Kind.DOUBLE), 0.1, pa.float64(), 0.1),
    (Type(Kind.NUMERIC), Decimal("1.50"), pa.string(), "1.50"),
    (Type(Kind.NUMERIC, precision=10, scale=2), Decimal("1.50"), pa.decimal128(10, 2), Decimal("1.50")),
    (Type(Kind.BOOLEAN), True, pa.bool_(), True),
    (Type(Kind.JSONB), {"a": "ü"}, pa.string(), '{"a":"ü"}'),
    (Type(Kind.TIMESTAMPTZ), NOON, pa.timestamp("us", "UTC"), NOON),
    (Type(Kind.TIMESTAMP), datetime(2026, 1, 1), pa.timestamp("us"), datetime(2026, 1, 1)),
    (Type(Kind.DATE), date(2026, 1, 1), pa.date32(), date(2026, 1, 1)),
    (Type(Kind.TIME), time(1, 2), pa.time64("us"), time(1, 2)),
    (Type(Kind.INTERVAL), timedelta(hours=25), pa.string(), "1 day 01:00:00"),
    (Type(Kind.UUID), UUID(int=1), pa.string(), str(UUID(int=1))),
    (Type(Kind.BYTEA), b"\0", pa.binary(), b"\0"),
    (Type(Kind.VECTOR, dimension=2), [0.5, 1.0], pa.list_(pa.float32()), [0.5, 1.0]),
    (Type(Kind.VECTORS), [[0.5]], pa.list_(pa.list_(pa.float32())), [[0.5]]),
    (Type(Kind.TEXTS), ["a", None], pa.list_(pa.string()), ["a", None]),
    (Type(Kind.INTEGERS), [1], pa.list_(pa.int64()), [1]),
]  # fmt: skip


def test_every_type_has_its_place_in_arrow_and_parquet(tmp_path):
    assert {type.kind for type, *_ in EVERY} == set(Kind)
    names = tuple(f"c{number}" for number in range(len(EVERY)))
    row, empty = tuple(value for _, value, _, _ in EVERY), (None,) * len(EVERY)
    results = [Result(names, tuple(type for type, *_ in EVERY), [row, empty], 2)]
    read = arrow_reader(iter(results)).read_all()
    assert read.schema.types == [arrow for _, _, arrow, _ in EVERY]
    assert list(read.to_pylist()[0].values()) == [expected for *_, expected in EVERY]
    assert set(read.to_pylist()[1].values()) == {None}
    assert write_parquet(arrow_reader(iter(results)), tmp_path / "all.parquet") == 2
    assert parquet.read_table(tmp_path / "all.parquet").to_pylist() == read.to_pylist()


def test_types_that_are_not_told_are_seen_in_the_first_batch():
    batches = [Result(("a", "b"), (None, None), [(Decimal("1.5"), None)], 1)]
    read = arrow_reader(iter(batches)).read_all()
    assert read.schema.types == [pa.string(), pa.string()]


def test_an_empty_answer_keeps_its_columns():
    read = arrow_reader(iter([Result(("a",), (Type(Kind.BIGINT),), [], 0)])).read_all()
    assert (read.num_rows, read.schema.names) == (0, ["a"])
    assert arrow_reader(iter([])).read_all().num_rows == 0


def test_batches_are_made_when_they_are_asked_for():
    made = []

    def batches():
        for number in range(1000):
            made.append(number)
            yield Result(("a",), (Type(Kind.BIGINT),), [(number,)], 1)

    reader = arrow_reader(batches())
    for _ in range(3):
        reader.read_next_batch()
    assert len(made) <= 4


def test_a_value_that_does_not_fit_names_its_column():
    wrong = [Result(("a",), (Type(Kind.SMALLINT),), [(70_000,)], 1)]
    with pytest.raises(InputError, match="column 'a' cannot be written as int16"):
        arrow_reader(iter(wrong)).read_all()


def test_a_file_appears_when_it_is_complete(tmp_path):
    target = tmp_path / "a.parquet"
    target.write_bytes(b"the old one")

    def batches():
        yield Result(("a",), (Type(Kind.BIGINT),), [(1,)], 1)
        assert target.read_bytes() == b"the old one"
        raise InputError("the answer broke off")

    with pytest.raises(InputError, match="broke off"):
        write_parquet(arrow_reader(batches()), target)
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]
    assert target.read_bytes() == b"the old one"


def test_a_folder_that_is_not_there(tmp_path):
    results = [Result(("a",), (Type(Kind.BIGINT),), [(1,)], 1)]
    with pytest.raises(InputError, match="cannot be written"):
        write_parquet(arrow_reader(iter(results)), tmp_path / "nowhere" / "a.parquet")
    with pytest.raises(InputError, match="path must be the path of a file"):
        write_parquet(arrow_reader(iter(results)), 5)


def test_rows_have_columns():
    rows = QueryRows(Result(("a", "b"), (None, None), [(1, "x"), (2, "y")], 2))
    assert rows == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    assert rows["b"] == ["x", "y"]
    assert rows[1:] == [{"a": 2, "b": "y"}]
    assert (rows.columns, rows.row_count) == (("a", "b"), 2)
    with pytest.raises(NoSuchTableError, match="the answer has no column 'c'; it has a, b"):
        _ = rows["c"]


def test_a_client_writes_parquet_and_arrow(connect, tmp_path):
    client = connect()
    client.ingest("t", {"n": list(range(2500)), "e": [[float(n), 0.5] for n in range(2500)]})
    read = client.to_arrow("SELECT n, e FROM t WHERE n < $1 ORDER BY n", [10])
    assert read.to_pylist()[9] == {"n": 9, "e": [9.0, 0.5]}
    reader = client.to_arrow("SELECT n FROM t ORDER BY n", stream=True, batch_size=1000)
    assert [batch.num_rows for batch in reader] == [1000, 1000, 500]
    target = tmp_path / "t.parquet"
    assert client.to_parquet("SELECT n, e FROM t ORDER BY n", target, batch_size=1000) == 2500
    assert parquet.read_table(target).column("n").to_pylist() == list(range(2500))
    with pytest.raises(Exception, match="nowhere"):
        client.to_parquet("SELECT * FROM nowhere", tmp_path / "x.parquet")
    assert [path.name for path in tmp_path.iterdir() if "parquet" in path.name] == ["t.parquet"]
