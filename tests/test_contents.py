"""Contents read by their layout: paths, words, and what the index derives from a record."""

from __future__ import annotations

import enum
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmem.contents import laid_out, leaves, text_of, words_in
from rmem.filters import attribute_texts
from rmem.index.analyser import HASH, analyse
from rmem.index.columns import attribute_hash
from rmem.index.text_features import TELLS_TIME
from rmem.models import Memory
from rmem.stores.indexed import date_words, derive

WHEN = time.time()

keys = st.one_of(
    st.sampled_from(["position", "a.b", "k[0]", "{name}", "c++", "größe", "the", "der", "und", "x=y", "it's", "1,234"]),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=6),
)
values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**18), 10**18),
    st.sampled_from([2**70, 1987, -2019, 10**11, 10**12]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(
        ["", "the wolf and the stone", "der Hund und die Katze", "{0}", "etl/transform.py", "don't", "北京"]
    ),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20),
)
records = st.dictionaries(
    keys,
    st.recursive(
        values, lambda inside: st.lists(inside, max_size=3) | st.dictionaries(keys, inside, max_size=3), max_leaves=8
    ),
    min_size=1,
    max_size=5,
).filter(lambda contents: "text" not in contents)


def derived(contents, text=None):
    return derive(Memory("m", "ann", 1, WHEN, contents, text=text_of(contents) if text is None else text))


def counts(terms):
    return dict(zip(terms.hashes.tolist(), terms.counts.tolist(), strict=True))


@given(records)
def test_a_record_has_the_terms_of_its_text(contents):
    terms = derived(contents).terms
    plain = analyse(text_of(contents), date_words(WHEN))
    assert counts(terms) == counts(plain)
    assert len(terms.words) == len(terms.hashes) == len(set(terms.hashes.tolist()))


@given(records)
def test_every_value_is_marked_under_its_path(contents):
    marks = set(np.frombuffer(derived(contents).attribute_hashes, HASH).tolist())
    assert marks == {attribute_hash(*one) for one in _marked(None, contents)}
    assert len(attribute_texts(contents)) == len(marks)


def _marked(path, value):
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _marked(key if path is None else f"{path}.{key}", item)
    elif isinstance(value, list):
        for item in value:
            yield from _marked(path, item)
    else:
        yield path, value


def test_values_have_paths_and_words():
    state = {"position": [12.345, 22], "inventory": {"wood": 2, "tools": ["axe", "saw"]}, "asleep": False, "note": ""}
    assert leaves(state) == [
        ("position[0]", 12.345),
        ("position[1]", 22),
        ("inventory.wood", 2),
        ("inventory.tools[0]", "axe"),
        ("inventory.tools[1]", "saw"),
        ("asleep", False),
        ("note", ""),
    ]
    assert text_of(state) == "position: 12.3 22; inventory wood: 2; inventory tools: axe saw; asleep: False; note"
    assert words_in(*laid_out(state)) == "position; inventory wood; inventory tools: axe saw; asleep: False; note"


def test_braces_in_names_and_values_are_only_characters():
    assert text_of({"{0}": "{1}", "{}": 5, "a{b": "{"}) == "{0}: {1}; {}: 5; a{b: {"


def test_a_key_that_looks_like_a_list_is_not_one():
    assert attribute_texts({"a[0]": 1}) == {"a[0]=1"}
    assert attribute_texts({"a": [1]}) == {"a=1"}
    one, other = laid_out({"a[0]": 1})[0], laid_out({"a": [1]})[0]
    assert one is not other
    assert one.paths == other.paths


def test_records_of_one_kind_share_a_layout_and_data_does_not():
    assert laid_out({"x": 1.5, "y": {"z": "a"}})[0] is laid_out({"x": 2.5, "y": {"z": "b"}})[0]
    assert laid_out({"x": 1.5})[0] is not laid_out({"x": 1})[0]
    data = {"samples": list(range(500))}
    assert laid_out(data)[0] is not laid_out(data)[0]
    assert counts(derived(data).terms) == counts(analyse(text_of(data), date_words(WHEN)))


def test_values_of_other_types_are_read_as_what_they_are():
    class Colour(enum.StrEnum):
        RED = "red"

    class Size(enum.IntEnum):
        LARGE = 3

    contents = {"colour": Colour.RED, "size": Size.LARGE, "at": (1.0, 2.0)}
    assert derived(contents).numbers.values.tolist() == [3.0, 1.0, 2.0]
    assert attribute_texts(contents) == attribute_texts({"colour": "red", "size": 3, "at": [1, 2]})


@pytest.mark.parametrize("large", [10**400, -(10**400)])
def test_a_number_that_no_float_can_hold_is_left_out_of_the_numbers(large):
    found = derived({"near": 1.5, "far": large, "nearer": 2}).numbers
    assert found.values.tolist() == [1.5, 2.0]
    assert found.paths.tolist() == derived({"near": 1.5, "nearer": 2}).numbers.paths.tolist()
    assert derived({"far": large}).numbers.paths.size == 0


def test_numbers_make_a_record_specific_and_years_tell_a_time():
    quiet = derived({"weather": "fog", "place": "harbour"}).manner
    assert (quiet.flags, quiet.specific) == (0, 0)
    assert derived({"weather": "fog", "position": [12.5, 3]}).manner.specific == 3
    assert derived({"founded": 1987}).manner.flags == TELLS_TIME
    assert derived({"founded": 1787}).manner.flags == 0
    assert derived({"when": "yesterday", "steps": 4}).manner.flags == TELLS_TIME


def test_a_record_with_another_text_has_the_terms_of_that_text():
    found = derived({"health": 0.5}, text="the lantern on the bridge")
    assert counts(found.terms) == counts(analyse("the lantern on the bridge", date_words(WHEN)))
