"""Packed bodies: what the library zstandard wrote stays readable, and damage is an error of the store."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path

import pytest

from rmem.errors import StoreCorruptError
from rmem.models import Memory
from rmem.stores import redis_rows
from rmem.stores.packing import Codec, dictionary_number, dictionary_of, train

OLD = json.loads(Path(__file__).with_name("packed_by_zstandard.json").read_text(encoding="utf-8"))
DICTIONARY = b64decode(OLD["dictionary"])
BODIES = [(f"step {n}", {"position": [n, n * 2], "bag": {"wood": n % 5}}) for n in range(1000)]


def codec(*dictionaries: bytes) -> Codec:
    return Codec(lambda: dictionaries, None)


@pytest.mark.parametrize("frame", ["without_dictionary", "with_dictionary"])
def test_bodies_written_by_the_library_zstandard_are_read(frame):
    assert codec(DICTIONARY).unpack(b64decode(OLD[frame])) == (OLD["text"], OLD["contents"])


def test_dictionaries_written_by_the_library_zstandard_keep_their_number():
    assert dictionary_number(DICTIONARY) == dictionary_number(DICTIONARY[:8]) == OLD["number"]
    assert dictionary_of(b64decode(OLD["with_dictionary"])) == OLD["number"]
    assert dictionary_of(b64decode(OLD["without_dictionary"])) == 0


def test_rows_in_redis_written_by_the_library_zstandard_are_read():
    memory = redis_rows.memory_of("a", "m1", b"1 7\n" + b64decode(OLD["redis_row"]))
    assert memory.to_dict() == Memory.from_dict(OLD["redis_memory"]).to_dict()


def test_a_trained_dictionary_is_written_and_read_with():
    data = train(BODIES)
    packed = codec(data).pack(*BODIES[3])
    assert dictionary_of(packed) == dictionary_number(data)
    assert len(packed) < len(codec().pack(*BODIES[3])) / 2
    assert codec(data).unpack(packed) == BODIES[3]


def test_too_little_to_train_on_gives_no_dictionary():
    assert train([]) is None
    assert train(BODIES[:3]) is None


def test_another_dictionary_is_used_from_the_next_body_on():
    one, two = train(BODIES), train([(f"wholly other words {n} {n * 7}", {"at": n}) for n in range(1000)])
    both = codec(one, two)
    for data in (one, two, b"", one):
        both.use_dictionary(dictionary_number(data), lambda data=data: data)
        packed = both.pack(*BODIES[5])
        assert dictionary_of(packed) == dictionary_number(data)
        assert both.unpack(packed) == BODIES[5]


@pytest.mark.parametrize("frame", [b"", b"\0", b"no frame", b64decode(OLD["with_dictionary"])[:-4]])
def test_a_damaged_body_is_an_error_of_the_store(frame):
    with pytest.raises(StoreCorruptError, match="a packed memory cannot be read"):
        codec(DICTIONARY).unpack(frame)


def test_what_follows_a_frame_is_not_part_of_it():
    frame = b64decode(OLD["with_dictionary"])
    assert codec(DICTIONARY).unpack(frame + frame) == (OLD["text"], OLD["contents"])


def test_a_missing_or_damaged_dictionary_is_named():
    frame = b64decode(OLD["with_dictionary"])
    with pytest.raises(StoreCorruptError, match=f"the dictionary {OLD['number']} of a packed memory is missing"):
        codec().unpack(frame)
    with pytest.raises(StoreCorruptError, match="a dictionary of packed memories is damaged"):
        codec(b"no dictionary").unpack(frame)
