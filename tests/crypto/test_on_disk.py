"""What is in the files of a store that encrypts: every byte is searched for what was said."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest

from rmem import Brain, Encryption
from rmem.index.analyser import analyse, term_hash
from rmem.index.numbers import path_hash
from rmem.stores.sql import cache
from rmem.stores.sql.sqlite import SqliteRecordStore
from rmem.testing.contract import example

SAID = "The Zanzibar vault opens with Rumpelstiltskin at quarter past eleven"
FORBIDDEN = ("Zanzibar", "zanzibar", "Rumpelstiltskin", "rumpelstiltskin", "quarter", "quarterback", "xylophone",
             "clavichord", "marimba", "glockenspiel")  # fmt: skip


def secret(number: int = 0, **fields):
    return example(
        f"{SAID} {number}",
        memory_id=f"m{number}",
        tags={"instrument": "xylophone", "clavichord": "yes"},
        contents={"marimba": {"price": 4711.25}, "list": ["glockenspiel"]},
        **fields,
    )


def found_in(raw: bytes, words=FORBIDDEN) -> list[str]:
    return [word for word in words if word.encode() in raw or word.encode("utf-16-le") in raw]


def hashes_in(raw: bytes) -> list[str]:
    """Terms and marks that anybody could compute again, as eight bytes in either order."""
    terms = analyse(SAID)
    plain = {word: int(hashed) for word, hashed in zip(terms.words, terms.hashes.tolist(), strict=True)}
    plain |= {
        "tag": term_hash("tag\x00instrument\x00xylophone"),
        "attribute": term_hash('attribute\x00list="glockenspiel"'),
        "number": path_hash("marimba.price"),
    }
    return [word for word, hashed in plain.items() if hashed.to_bytes(8, "little") in raw]


@pytest.mark.parametrize("bulk", [False, True], ids=["a row at a time", "in bulk and in segments"])
def test_nothing_that_was_said_is_on_the_disk(path, on_disk, encryption, bulk, monkeypatch):
    if bulk:
        monkeypatch.setattr(cache, "SETTLE_BULK", 1)
    with SqliteRecordStore(path, encryption=encryption) as store:
        memories = [secret(number) for number in range(300 if bulk else 3)]
        if bulk:
            store.put(memories)
        else:
            for memory in memories:
                store.put([memory])
        store.settle(1)
        open_files = on_disk()  # with the log of pages, before it is folded in
        assert store.stats().segments == 1
        assert store.get("m1").text == f"{SAID} 1"
    for raw in (open_files, on_disk()):
        assert found_in(raw) == []
        assert hashes_in(raw) == []
        assert np.float64(4711.25).tobytes() not in raw


def test_the_same_is_on_the_disk_without_encryption(path, on_disk):
    with SqliteRecordStore(path) as store:
        store.put([secret()])
    assert "Rumpelstiltskin" in found_in(on_disk())
    assert len(hashes_in(on_disk())) > 6
    assert np.float64(4711.25).tobytes() in on_disk()


def test_changing_moving_pruning_and_judging_leave_nothing_either(path, on_disk, encryption):
    with Brain(path, encryption=encryption) as brain:
        for number in range(3):
            brain.remember(f"{SAID} {number}", id=f"m{number}", tags={"i": "xylophone"}, metadata={"m": "marimba"})
        brain.update("m0", text="Rumpelstiltskin plays the glockenspiel", tags={"clavichord": "yes"})
        brain.store.move(["m1"], "ltm")
        brain.recall("who plays the glockenspiel?")[0].useful()
        brain.store.set_aside(["m2"], until=9e9, who="test", reason="test")
        open_files = on_disk()
        assert [one.memory.tags for one in brain.store.aside()] == [{"i": "xylophone"}]
    for raw in (open_files, on_disk()):
        assert found_in(raw) == []
    with Brain(path, encryption=encryption) as brain:
        assert brain.store.put_back(["m2"], who="test")[0].text == f"{SAID} 2"
        assert brain.get("m1").text == f"{SAID} 1"
        assert brain.get("m1").contents["m"] == "marimba"
        assert brain.get("m0").tags == {"clavichord": "yes"}
    assert found_in(on_disk()) == []


def test_what_was_readable_is_gone_from_the_files_once_it_was_written_with_a_key(path, on_disk, encryption):
    with SqliteRecordStore(path) as store:
        store.put([secret(number) for number in range(300)])
        store.settle(1)
    assert "rumpelstiltskin" in found_in(on_disk())
    with SqliteRecordStore(path, encryption=encryption) as store:
        for memory in store.select():
            store.change(memory.memory_id, lambda memory: memory)
    assert found_in(on_disk()) == []
    assert hashes_in(on_disk()) == []
    with SqliteRecordStore(path, encryption=encryption) as store:
        assert len(store.match("rumpelstiltskin", k=1000)) == 300


def test_a_dictionary_of_packed_memories_repeats_nothing_encrypted(path, on_disk, encryption):
    with SqliteRecordStore(path, encryption=False) as store:
        state = {"position": [1, 2], "inventory": {"wood": 3, "stone": 4}, "health": 0.5, "near": ["river", "bridge"]}
        store.put(
            [example(f"an open memory {n}", memory_id=f"p{n}", contents={**state, "step": n}) for n in range(600)]
        )
    with SqliteRecordStore(path, encryption=encryption) as store:
        store.refresh()
        store.put([secret(number) for number in range(600)])
        assert store.move([f"m{number}" for number in range(600)], "ltm") == 600
        assert store.codec.has_dictionary
        assert store.get("m5").text == f"{SAID} 5"
    assert found_in(on_disk()) == []


def test_encrypted_memories_alone_make_no_dictionary(path, encryption):
    with SqliteRecordStore(path, encryption=encryption) as store:
        store.put([secret(number) for number in range(600)])
        assert store.move([f"m{number}" for number in range(600)], "im") == 600
        assert not store.codec.has_dictionary


def test_vectors_are_kept_only_where_the_policy_allows_them(path, key):
    vector = np.ones(16, np.float32) / 4
    for allowed in (False, True):
        with SqliteRecordStore(path, encryption=Encryption(master=key, vectors=allowed)) as store:
            (kept,) = store.put([secret(int(allowed), vector=vector)])
            assert (kept.embeddings.full_vector is not None) == allowed
            store.move([kept.memory_id], "im", {kept.memory_id: vector})
            store.move([kept.memory_id], "stm", {kept.memory_id: vector})
    with sqlite3.connect(path) as plain:
        assert plain.execute("SELECT id, vector IS NULL FROM memories ORDER BY id").fetchall() == [("m0", 1), ("m1", 0)]
    plain.close()


def test_only_the_fields_asked_for_are_encrypted(path, on_disk, key):
    with SqliteRecordStore(path, encryption=Encryption(master=key, fields=["tags"])) as store:
        store.put([secret()])
        assert store.get("m0").tags["instrument"] == "xylophone"
        assert store.match("rumpelstiltskin")
    assert found_in(on_disk(), ("xylophone", "clavichord")) == []
    assert "Rumpelstiltskin" in found_in(on_disk())
    with SqliteRecordStore(path, encryption=Encryption(master=key, fields=("text",))) as store:
        store.put([secret()])
        store.move(["m0"], "im")
        assert store.get("m0").text == f"{SAID} 0"
        assert store.get("m0").contents["marimba"] == {"price": 4711.25}


def test_equal_texts_look_different_and_terms_have_no_order(path, encryption):
    with SqliteRecordStore(path, encryption=encryption) as store:
        store.put([example("one two three four five", memory_id=key) for key in "ab"])
    with sqlite3.connect(path) as plain:
        (first, *told), (second, *also) = plain.execute("SELECT sealed, terms, words, flags, specific FROM memories")
    plain.close()
    assert first != second
    assert told == also, "the documented leak: equal terms are equal"
    terms, words, flags, specific = told
    hashes = np.frombuffer(terms, "<u8", len(terms) // 10)
    assert (hashes[1:] > hashes[:-1]).all()
    assert words.strip() == ""
    assert (flags, specific) == (128, 0)
