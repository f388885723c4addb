"""Synthetic memories: the same for the same seed, and like real ones where a search engine would notice."""

from collections import Counter
from itertools import islice

import numpy as np
import pytest

from rmem import Brain
from rmem.index.stopwords import ENGLISH
from rmem.testing.synthetic import clustered_vectors, synthetic_memories, synthetic_questions, vocabulary


@pytest.fixture(scope="module")
def memories():
    return list(synthetic_memories(8000))


def words_of(memories):
    return [word for memory in memories for word in memory["text"].lower().rstrip(".?").split()]


def test_the_same_seed_gives_the_same_memories():
    assert list(synthetic_memories(300, seed=3)) == list(synthetic_memories(300, seed=3))
    assert synthetic_questions(50, seed=3) == synthetic_questions(50, seed=3)


def test_another_seed_gives_other_memories():
    ours, others = synthetic_memories(300, seed=3), synthetic_memories(300, seed=4)
    assert not {memory["text"] for memory in ours} & {memory["text"] for memory in others}
    assert synthetic_questions(50, seed=3) != synthetic_questions(50, seed=4)


def test_texts_do_not_depend_on_how_many_are_asked_for():
    few = [memory["text"] for memory in synthetic_memories(500)]
    many = [memory["text"] for memory in islice(synthetic_memories(9000), 500)]
    assert few == many


def test_exactly_as_many_as_asked_for():
    for n in (0, 1, 4095, 4096, 4097):
        assert sum(1 for _ in synthetic_memories(n)) == n


def test_function_words_come_at_natural_rates(memories):
    words = words_of(memories)
    assert 0.38 < sum(word in ENGLISH for word in words) / len(words) < 0.5
    counts = Counter(words)
    assert [word for word, _ in counts.most_common(3)] == ["the", "of", "and"]


def test_words_follow_zipf(memories):
    counts = [count for _, count in Counter(words_of(memories)).most_common()]
    assert len(counts) > 10_000
    ranks = np.geomspace(10, 3000, 30).astype(int)
    slope = np.polyfit(np.log(ranks), np.log([counts[rank - 1] for rank in ranks]), 1)[0]
    assert -1.25 < slope < -0.8


def test_texts_are_of_natural_length(memories):
    lengths = [len(memory["text"].split()) for memory in memories]
    assert min(lengths) >= 8
    assert max(lengths) <= 42
    assert 15 < np.mean(lengths) < 28


def test_some_texts_name_code_errors_and_versions(memories):
    text = " ".join(memory["text"] for memory in memories)
    for sign in ("Error", "/", "_", "()", ".py"):
        assert sign in text
    named = sum(any(not word.strip(".?").isalpha() for word in memory["text"].split()) for memory in memories)
    assert 0.15 < named / len(memories) < 0.35


def test_a_hundred_agents_with_sessions_of_about_twenty(memories):
    agents = Counter(memory["agent"] for memory in memories)
    assert len(agents) == 100
    sessions = Counter(memory["session"] for memory in memories)
    assert 12 < len(memories) / len(sessions) < 28
    owner = {memory["session"]: memory["agent"] for memory in memories}
    assert all(owner[memory["session"]] == memory["agent"] for memory in memories)


def test_times_run_over_a_year_in_order(memories):
    times = [memory["when"] for memory in memories]
    assert times == sorted(times)
    assert 360 < (times[-1] - times[0]) / 86_400 <= 365


def test_vocabulary_is_large_distinct_and_pronounceable():
    words = vocabulary(20_000)
    assert len(set(words)) == 20_000
    assert all(word.isalpha() and word.isascii() and word.islower() for word in words)
    assert all(set(word) & set("aeiouy") for word in words[5000:])


def test_vectors_are_clustered_and_of_unit_length():
    vectors = clustered_vectors(3000, 64)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    products = np.sort(vectors[:200] @ vectors.T, axis=1)
    assert np.median(products[:, -2]) > 0.4  # another of the same cluster
    assert abs(products.mean()) < 0.05


def test_memories_with_vectors_of_any_dimension():
    for dimension in (8, 384):
        memories = list(synthetic_memories(50, dimension=dimension))
        assert all(memory["vector"].shape == (dimension,) for memory in memories)


def test_questions_are_made_from_words_of_the_memories():
    texts = {word for memory in synthetic_memories(2000) for word in memory["text"].rstrip(".?").split()}
    for question in synthetic_questions(40, size=2000):
        content = [word for word in question.rstrip("?").split() if word.lower() not in ENGLISH]
        assert sum(word in texts for word in content) >= 0.5 * len(content)


def test_a_brain_takes_them_and_finds_them_again():
    with Brain(":memory:") as brain:
        kept = brain.remember_many(synthetic_memories(300))
        assert len(kept) == 300
        assert brain.recall(kept[17].text, k=1)[0].memory.memory_id == kept[17].memory_id
