"""What is found with encryption is what is found without it: the same memories with the same scores."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st

from rmem import Brain, Encryption
from rmem.crypto.encryption import new_master_key
from rmem.models import Embeddings

WORDS = st.sampled_from(strategies.WORDS)
QUESTIONS = st.one_of(
    st.lists(WORDS, min_size=1, max_size=5).map(" ".join),
    st.tuples(WORDS, WORDS).map(lambda pair: f'"{pair[0]} {pair[1]}"'),
    st.tuples(WORDS, WORDS).map(lambda pair: f"{pair[0]} -{pair[1]}"),
    strategies.any_texts,
)


def found(brain, question, where):
    hits = brain.recall(question, k=50, where=where, mode="lexical", now=datetime(2024, 1, 1), touch=False)
    return [(hit.memory.memory_id, hit.score) for hit in hits]


@pytest.fixture(scope="module")
def key():
    return new_master_key()


@given(
    memories=st.lists(strategies.memories(id_from=strategies.ids), min_size=1, max_size=12),
    encrypted=st.lists(st.booleans(), min_size=12, max_size=12),
    asked=st.lists(st.tuples(QUESTIONS, strategies.filters()), min_size=1, max_size=6),
)
def test_encrypted_memories_are_found_as_plain_ones_are(tmp_path_factory, key, memories, encrypted, asked):
    folder = tmp_path_factory.mktemp("pair")
    memories = [replace(memory, embeddings=Embeddings()) for memory in memories]
    unique = list({memory.memory_id: memory for memory in memories}.values())  # the last of each id
    readable = encrypted.count(False)  # come first: a store that encrypts takes them no more
    with Brain(folder / "plain.db", encryption=False, durability="normal", embedder="none") as plain:
        for memory in unique:
            plain.store.put([memory])
        kept = plain.memories(order="oldest", limit=None)
        expected = [found(plain, *one) for one in asked]
    options = {"durability": "normal", "embedder": "none"}
    sealing = Brain(folder / "sealed.db", encryption=Encryption(master=key), **options)
    with sealing, Brain(folder / "sealed.db", encryption=False, **options) as open_:
        for number, memory in enumerate(unique):
            (open_ if number < readable else sealing).store.put([memory])
        assert [found(sealing, *one) for one in asked] == expected
        assert [memory.to_dict() for memory in sealing.memories(order="oldest", limit=None)] == [
            memory.to_dict() for memory in kept
        ]
