"""Values survive the way through JSON with their types."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import numpy as np
import pytest

from rmem.errors import InputError, SqlError
from rmem.tables.catalog import Kind, Type
from rmem.tables.results import Result
from rmem.tables.wire_values import (
    answer_types,
    from_json,
    kind_of_type,
    kind_of_value,
    parameters_from_json,
    parameters_to_json,
    to_json,
    type_name,
)

SAMPLES = [
    ("text", '{"a": 1}'),
    ("boolean", True),
    ("bigint", 2**62),
    ("real", 0.5),
    ("double precision", 1e300),
    ("double precision", math.inf),
    ("double precision", -math.inf),
    ("numeric", Decimal("12345678901234567890.1200")),
    ("jsonb", {"a": [1, None, "x"], "b": {"c": True}}),
    ("jsonb", "only a text"),
    ("timestamptz", datetime(2026, 3, 29, 1, 30, 0, 123456, tzinfo=UTC)),
    ("timestamp", datetime(2026, 3, 29, 1, 30)),
    ("date", date(2026, 3, 29)),
    ("time", time(23, 59, 59, 5)),
    ("interval", timedelta(days=3, hours=4, seconds=5.5)),
    ("interval", -timedelta(hours=30, microseconds=1)),
    ("interval", timedelta(0)),
    ("uuid", UUID(int=7)),
    ("bytea", b"\x00\xff"),
    ("bytea", b""),
    ("float4[]", [0.5, -1.0]),
    ("float4[][]", [[0.5], [1.0]]),
    ("text[]", ["a", None]),
    ("bigint[]", [1, 2**62]),
]


@pytest.mark.parametrize(("type", "value"), SAMPLES)
def test_a_value_is_the_same_after_json(type, value):
    written = json.dumps(to_json(value), allow_nan=False)
    assert from_json(json.loads(written), type) == value
    assert from_json(None, type) is None


def test_nan_survives():
    assert math.isnan(from_json(json.loads(json.dumps(to_json(math.nan), allow_nan=False)), "real"))
    assert math.isnan(from_json(to_json([1.0, math.nan]), "float4[]")[1])


def test_times_come_back_in_utc():
    there = datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=5)))
    assert from_json(to_json(there), Kind.TIMESTAMPTZ) == there
    assert from_json(to_json(there), Kind.TIMESTAMPTZ).tzinfo is UTC


def test_intervals_with_months_stay_text():
    assert from_json("1 mon", "interval") == "1 mon"


def test_numpy_values_are_plain_in_json():
    assert to_json(np.array([[1, 2]], np.float32)) == [[1.0, 2.0]]
    assert to_json(np.int64(4)) == 4
    assert to_json(np.bool_(True)) is True


def test_what_json_cannot_hold_is_refused():
    with pytest.raises(InputError, match="value must be a text, number"):
        to_json(object())
    with pytest.raises(SqlError, match="type uuid cannot be read from 'nonsense'"):
        from_json("nonsense", "uuid")


def test_names_of_types():
    assert type_name(Type(Kind.VECTOR, dimension=256)) == "embedding(256)"
    assert type_name(Type(Kind.NUMERIC, precision=10, scale=2)) == "numeric(10,2)"
    assert type_name(Type(Kind.TEXT, length=20)) == "varchar(20)"
    assert type_name(Type(Kind.BIGINT)) == "bigint"
    for kind in Kind:
        assert kind_of_type(type_name(Type(kind))) is kind
        assert kind_of_type(type_name(Type(kind, dimension=4))) is kind
    assert kind_of_type("varchar(20)") is Kind.TEXT
    assert kind_of_type("nothing of ours") is None


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("2026-01-01", Kind.TEXT),
        ("{}", Kind.TEXT),
        (True, Kind.BOOLEAN),
        (1, Kind.BIGINT),
        (np.int32(1), Kind.BIGINT),
        (1.0, Kind.DOUBLE),
        (np.float32(1), Kind.DOUBLE),
        ({"a": 1}, Kind.JSONB),
        ([1.0, 2], Kind.VECTOR),
        ([1, 2], Kind.INTEGERS),
        (np.zeros(3), Kind.VECTOR),
        ([[1.0], [2.0]], Kind.VECTORS),
        (np.zeros((2, 3)), Kind.VECTORS),
        (["a"], Kind.TEXTS),
        ([{"a": 1}], Kind.JSONB),
        ([1.0, None], Kind.JSONB),
        ([], None),
        (datetime(2026, 1, 1), Kind.TIMESTAMPTZ),
        (date(2026, 1, 1), Kind.DATE),
        (UUID(int=1), Kind.UUID),
        (Decimal(1), Kind.NUMERIC),
        (b"x", Kind.BYTEA),
        (object(), None),
    ],
)
def test_the_kind_of_a_value(value, kind):
    assert kind_of_value(value) is kind


def test_types_that_an_answer_does_not_declare_are_told_from_its_values():
    result = Result(("a", "b", "c"), (Type(Kind.TEXT), None, None), [("x", None, None), ("y", Decimal(1), None)], 2)
    assert answer_types(result) == ["text", "numeric", None]


@pytest.mark.parametrize(
    "params",
    [
        None,
        ["a", 1, None, [0.5], {"a": 1}],
        [Decimal("1.5"), datetime(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC), b"x", UUID(int=1), math.inf],
        {"a": "text", "when": date(2026, 1, 1), "none": None},
    ],
)
def test_parameters_survive(params):
    body = json.loads(json.dumps(parameters_to_json(params), allow_nan=False))
    assert parameters_from_json(body.get("params"), body.get("param_types")) == params


def test_vectors_of_32_bits_are_sent_as_their_bytes():
    vector = np.arange(3, dtype=np.float32)
    body = parameters_to_json([vector, vector.astype(np.float64)])
    assert body == {"params": ["AAAAAAAAgD8AAABA", [0.0, 1.0, 2.0]], "param_types": ["float4[]", None]}
    again = parameters_from_json(body["params"], body["param_types"])
    assert np.array_equal(again[0], vector)


def test_plain_parameters_need_no_types():
    assert parameters_to_json(("{0.5,1}", "text", 3)) == {"params": ["{0.5,1}", "text", 3]}


def test_types_must_fit_their_parameters():
    with pytest.raises(InputError, match="param_types must be a list of 2 types"):
        parameters_from_json([1, 2], ["bigint"])
    with pytest.raises(InputError, match="params must be a list or a mapping"):
        parameters_from_json("x")


def test_a_dict_goes_in_and_comes_out_and_is_asked_inside(connect):
    client = connect()
    given = [
        {"agent": "swe-01", "files": ["a.py", "b.py"], "minutes": 45, "done": True},
        {"agent": "ops", "note": None},
        {},
    ]
    client.ingest("runs", {"id": [1, 2, 3], "metadata": given})
    assert client.describe_table("runs")["metadata"]["type"] == "jsonb"
    rows = client.query("SELECT metadata FROM runs ORDER BY id")
    assert rows["metadata"] == given
    assert isinstance(rows[0]["metadata"], dict)
    asked = client.query(
        "SELECT metadata->>'agent' AS agent, metadata->'files' AS files, metadata->'files'->>0 AS first, "
        "(metadata->>'minutes')::int AS minutes FROM runs WHERE metadata @> $1",
        [{"agent": "swe-01"}],
    )
    assert asked == [{"agent": "swe-01", "files": ["a.py", "b.py"], "first": "a.py", "minutes": 45}]
    client.query("INSERT INTO runs VALUES ($1, $2)", [4, {"agent": "new", "deep": {"er": [1, {"x": None}]}}])
    client.query("UPDATE runs SET metadata = metadata || $1 WHERE id = 4", [{"done": False}])
    (row,) = client.query("SELECT metadata FROM runs WHERE metadata ? 'deep'")
    assert row["metadata"] == {"agent": "new", "deep": {"er": [1, {"x": None}]}, "done": False}


def test_a_text_that_holds_json_is_asked_inside_after_a_cast(connect):
    client = connect()
    client.ingest("runs", {"metadata": ['{"agent": "swe-01"}']})
    with pytest.raises(SqlError, match=r"\(metadata::jsonb\)"):
        client.query("SELECT metadata->>'agent' FROM runs")
    assert client.query("SELECT (metadata::jsonb)->>'agent' AS agent FROM runs") == [{"agent": "swe-01"}]
