"""Memories and filters, written and read back in every shape they can take."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import any_texts, contents, filters, memories

from rmem import Filter, Memory
from rmem.errors import InputError
from rmem.filters import attribute_text, attribute_texts


@given(memories(id_from=st.just("m"), texts=any_texts))
def test_a_memory_survives_json(memory):
    memory.step_number = max(memory.step_number, 0)
    there = json.loads(json.dumps(memory.to_dict()))
    back = Memory.from_dict(there)
    assert back == memory
    assert back.to_dict() == memory.to_dict()


@given(memories(id_from=st.just("m")))
def test_the_documented_structure_has_exactly_the_documented_keys(memory):
    document = memory.document()
    assert list(document) == [
        "memory_id",
        "agent_id",
        "step_number",
        "timestamp",
        "contents",
        "metadata",
        "embeddings",
    ]
    assert set(document["metadata"]) == {
        "creation_time",
        "last_access_time",
        "compression_level",
        "importance_score",
        "retrieval_count",
        "memory_type",
    }
    assert set(document["embeddings"]) == {"full_vector", "compressed_vector", "abstract_vector"}


@given(memories(id_from=st.just("m")), st.sampled_from(["colour", "Text", "agent", "memoryid", "", "metadata "]))
def test_a_memory_with_an_unknown_field_is_refused(memory, field):
    memory.step_number = max(memory.step_number, 0)
    with pytest.raises(InputError, match="has no field") as refused:
        Memory.from_dict({**memory.to_dict(), field: 1})
    assert refused.value.field == field


@given(filters())
def test_a_filter_survives_json_and_means_the_same(where):
    once = Filter.of(where)
    there = json.loads(json.dumps(once.to_dict()))
    again = Filter.of(there)
    assert again == once
    assert hash(again) == hash(once)
    assert again.to_dict() == once.to_dict()
    assert Filter.of(once) is once
    assert bool(once) == bool(where)


@given(filters(), memories(id_from=st.just("m")))
def test_a_filter_holds_where_each_of_its_parts_holds(where, memory):
    whole = Filter.of(where)
    pairs = [{key} for key in where if key not in ("near", "radius")]
    if "near" in where:
        pairs.append({"near", "radius"})
    parts = [Filter.of({key: where[key] for key in keys}) for keys in pairs]
    assert whole.matches(memory) == all(part.matches(memory) for part in parts)


@given(filters(), memories(id_from=st.just("m")))
def test_a_filter_that_is_narrowed_never_lets_more_through(where, memory):
    narrow = Filter.of(where)
    for key in where:
        if key in ("near", "radius"):
            continue
        wider = Filter.of({other: value for other, value in where.items() if other != key})
        assert wider.matches(memory) or not narrow.matches(memory)


@given(contents, st.sampled_from(["count", "flag", "list", "deep.b", "a.b"]))
def test_an_attribute_is_found_by_its_own_value_and_by_no_other_type(body, path):
    marks = attribute_texts(body)
    for value in (True, False, None, 1, 0, "1", "True", 0.5):
        held = attribute_text(path, value) in marks
        assert held == any(_equal(value, one) for one in _values(body, path))


def _values(body, path):
    """Every value under a dotted path, by the plain reading of the words."""
    found = []

    def walk(at, value):
        if isinstance(value, dict):
            for key, item in value.items():
                walk(f"{at}.{key}" if at else key, item)
        elif isinstance(value, list):
            for item in value:
                walk(at, item)
        elif at == path:
            found.append(value)

    walk("", body)
    return found


def _equal(left, right):
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left == right
    return type(left) is type(right) and left == right


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_no_number_that_is_not_finite_gets_into_a_memory(number):
    data = {"memory_id": "m", "agent_id": "a", "step_number": 0, "timestamp": 0, "contents": {"text": "x", "n": number}}
    if math.isfinite(number):
        assert Memory.from_dict(data).contents["n"] == number
    else:
        with pytest.raises(InputError, match="finite"):
            Memory.from_dict(data)
