"""Whatever values a column holds, the same come back, and through JSON too."""

from __future__ import annotations

import json
from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmem import Client
from rmem.tables.ingest import from_body, normalize_columns, to_body

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
FLOAT = st.floats(allow_nan=False, allow_infinity=False)
FLOAT32 = st.floats(allow_nan=False, allow_infinity=False, width=32)
DOCUMENT = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
KINDS = {
    "TEXT": TEXT,
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "DOUBLE PRECISION": FLOAT,
    "NUMERIC": st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**30), max_value=10**30),
    "BOOLEAN": st.booleans(),
    "JSONB": st.dictionaries(TEXT, DOCUMENT, max_size=3),
    "TIMESTAMPTZ": st.datetimes(timezones=st.just(UTC)),
    "DATE": st.dates(),
    "TIME": st.times(),
    "UUID": st.uuids(),
    "BYTEA": st.binary(max_size=20),
    "EMBEDDING(3)": st.lists(FLOAT32, min_size=3, max_size=3),
    "FLOAT4[][]": st.lists(st.lists(FLOAT32, min_size=2, max_size=2), min_size=1, max_size=3),
    "TEXT[]": st.lists(st.none() | TEXT, max_size=3),
    "BIGINT[]": st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3),
}


def columns():
    """A few rows with a column of every type."""
    return st.integers(1, 3).flatmap(
        lambda rows: st.fixed_dictionaries(
            {type: st.lists(st.none() | values, min_size=rows, max_size=rows) for type, values in KINDS.items()}
        )
    )


@given(columns())
def test_columns_survive_json(data):
    ready = normalize_columns(data, {name: name for name in data})
    body = json.loads(json.dumps(to_body(ready), allow_nan=False))
    again = from_body(body)
    assert again == ready
    for name, values in ready.columns.items():  # a float is not an int, whatever == says
        assert list(map(type, again.columns[name])) == list(map(type, values)), name


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with Client(path=tmp_path_factory.mktemp("properties") / "a.db") as made:
        yield made


@given(data=columns())
def test_what_goes_in_comes_out(client, data):
    client.drop_table("t", if_exists=True)
    client.ingest("t", data, schema={name: name for name in data})
    rows = client.query("SELECT * FROM t ORDER BY id")
    for name, values in data.items():
        assert rows[name] == values, name
