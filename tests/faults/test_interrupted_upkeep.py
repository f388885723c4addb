"""Re-embedding and backups of a store that is in use, and re-embedding that is killed half-way."""

from __future__ import annotations

import json
import random
import sqlite3

import numpy as np
import pytest
from fault_children import kill_after, new_embedding, said, start

from rmem import Brain
from rmem.doctor import examine
from rmem.embed.function import FunctionEmbedder
from rmem.errors import EmbedderMismatchError, InputError, StoreError
from rmem.stores.sql.sqlite import SqliteRecordStore
from rmem.upkeep import backup, reindex


def old_embedding(texts):
    return [[1.0, float(text.count("e") + 1), *[float(ord(text[0]) % 5)] * 14] for text in texts]


def slow():
    return FunctionEmbedder(new_embedding, name="slow", dimension=12)


def _sound(path):
    return [f"{finding.name}: {finding.detail}" for finding in examine(path) if not finding.ok] == []


def _vectors(path):
    with sqlite3.connect(path) as plain:
        rows = plain.execute("SELECT id, vector FROM memories ORDER BY seq").fetchall()
    plain.close()
    return {key: None if blob is None else np.frombuffer(blob, "<f4") for key, blob in rows}


@pytest.fixture
def filled(tmp_path):
    path = tmp_path / "memories.db"
    with Brain(path, embedder=old_embedding) as brain:
        brain.remember_many([{"text": f"{'abcdefg'[n % 7]} stone number {n}", "id": f"m{n}"} for n in range(400)])
    return path


def test_a_killed_reindex_leaves_the_old_vectors_in_use_and_goes_on_where_it_stopped(filled, tmp_path):
    before, rng = _vectors(filled), random.Random(4)
    staged = 0
    for attempt in range(3):
        heard = tmp_path / f"said-{attempt}"
        with heard.open("w") as stdout:
            child = start("reindex_slowly", filled, stdout=stdout)
            kill_after(child, heard, 4, rng.random() * 0.03)
        assert said(heard)[-1][0] != "finished"
        assert said(heard)[0][0] >= staged, "what an earlier run had embedded was thrown away"
        staged = said(heard)[-1][0]
        after = _vectors(filled)
        assert all(np.array_equal(after[key], before[key]) for key in before), "two embedders in one store"
        with Brain(filled, embedder=old_embedding) as brain:
            assert len(brain.recall("a stone", k=3, mode="vector")) == 3
            kept = brain.remember(f"written between the runs {attempt}", id=f"late{attempt}")
            before[kept.memory_id] = kept.embeddings.full_vector
        assert _sound(filled)
    assert 0 < staged < 400
    done = reindex(filled, slow())
    assert done["memories"] == 403
    assert done["embedded"] <= 403 - staged
    vectors = _vectors(filled)
    assert {vector.size for vector in vectors.values()} == {12}
    expected = slow().embed([f"{'abcdefg'[n % 7]} stone number {n}" for n in range(400)])
    assert all(np.allclose(vectors[f"m{n}"], expected[n]) for n in range(400))
    with Brain(filled, embedder=slow()) as brain:
        assert len(brain.recall("a stone", k=3, mode="vector")) == 3
    with pytest.raises(EmbedderMismatchError):
        Brain(filled, embedder=old_embedding)
    assert _sound(filled)


def test_a_reindex_for_another_embedder_does_not_use_what_was_staged_for_the_first(filled, tmp_path):
    heard = tmp_path / "said"
    with heard.open("w") as stdout:
        kill_after(start("reindex_slowly", filled, stdout=stdout), heard, 3, 0)

    def third(texts):
        return [[float(len(text)), *[2.0] * 11] for text in texts]

    assert reindex(filled, third)["embedded"] == 400
    expected = FunctionEmbedder(third).embed(["a stone number 0"])[0]
    assert np.allclose(_vectors(filled)["m0"], expected)
    assert _sound(filled)


def test_a_memory_changed_while_it_is_re_embedded_gets_the_vector_of_its_new_text(filled):
    changed = []

    def meanwhile(done, total):
        if done >= 256 and not changed:
            with SqliteRecordStore(filled) as other:

                def edit(memory):
                    memory.text = "an entirely different text about aardvarks"
                    memory.contents = {"text": memory.text}
                    return memory

                changed.append(other.change("m3", edit))
                other.forget("m4")

    reindex(filled, slow(), meanwhile)
    assert changed
    vectors = _vectors(filled)
    assert np.allclose(vectors["m3"], slow().embed(["an entirely different text about aardvarks"])[0])
    assert "m4" not in vectors
    assert _sound(filled)


def test_an_open_store_follows_a_reindex_by_another_process(filled):
    with Brain(filled, embedder=old_embedding) as brain:
        assert brain.recall("stone number", k=2)
        reindex(filled, slow())
        assert len(brain.recall("stone number 17", k=1, mode="lexical")) == 1
        with pytest.raises(EmbedderMismatchError, match="slow"):
            brain.recall("stone number", mode="vector")


@pytest.mark.parametrize("dimension", [16, 12], ids=["of the same dimension", "of another dimension"])
def test_an_open_brain_does_not_write_old_vectors_into_a_re_embedded_store(filled, dimension):
    def newer(texts):
        return [[float(len(text)), *[2.0] * (dimension - 1)] for text in texts]

    with Brain(filled, embedder=old_embedding) as brain:
        brain.remember("still welcome")
        reindex(filled, newer)
        with pytest.raises(EmbedderMismatchError, match="newer"):
            brain.remember("vectors of two embedders")
    with SqliteRecordStore(filled) as store:
        assert len(store) == 401


def test_a_backup_of_a_store_in_use_is_one_consistent_moment(tmp_path):
    path = tmp_path / "memories.db"
    child = start("write_until_told", path)
    heard = [json.loads(child.stdout.readline())[0] for _ in range(20)]
    copies = []
    for number in range(4):
        heard.append(json.loads(child.stdout.readline())[0])
        copy = tmp_path / f"copy-{number}.db"
        done = backup(path, copy)
        copies.append((copy, done, len(heard)))
    child.stdin.close()
    heard += [json.loads(line)[0] for line in child.stdout]
    assert child.wait(30) == 0
    for copy, done, so_far in copies:
        with Brain(copy) as brain:
            ids = {memory.memory_id for memory in brain.memories(limit=None)}
            assert done["memories"] == len(ids)
            assert {key for pair in heard[:so_far] for key in pair} <= ids, "an acknowledged memory is not in it"
            pairs = len(ids) // 2
            assert ids == {key for pair in heard[:pairs] for key in pair}, "a transaction was copied in part"
            assert brain.recall("left 0", k=1, mode="lexical")[0].text == "left 0"
            brain.remember("a copy is a store of its own")
        assert _sound(copy)
        assert done["bytes"] > 0
    with Brain(path) as brain:
        assert len(brain.store) == 2 * len(heard)


def test_a_backup_never_overwrites_anything(filled, tmp_path):
    target = tmp_path / "precious.txt"
    target.write_text("precious")
    with pytest.raises(InputError, match="must not exist"):
        backup(filled, target)
    with pytest.raises(InputError):
        backup(filled, filled)
    assert target.read_text() == "precious"
    assert _sound(filled)


def test_a_backup_of_nothing_or_into_nowhere_says_so_and_leaves_nothing(filled, tmp_path):
    with pytest.raises(StoreError, match="no store file"):
        backup(tmp_path / "missing.db", tmp_path / "copy.db")
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="file"):
        backup(filled, tmp_path / "file" / "copy.db")
    assert sorted(one.name for one in tmp_path.iterdir() if "copy" in one.name or "missing" in one.name) == []


def test_a_damaged_store_is_not_backed_up_as_if_it_were_whole(filled, tmp_path):
    raw = bytearray(filled.read_bytes())
    raw[len(raw) // 2 : len(raw) // 2 + 20_000] = bytes(20_000)
    filled.write_bytes(raw)
    with pytest.raises(StoreError):
        backup(filled, tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()
    assert not (tmp_path / "copy.db.partial").exists()
