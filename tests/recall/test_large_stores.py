"""What holds in a small store holds in a large one, where only candidates are ranked to the end."""

from __future__ import annotations

from datetime import datetime

import pytest

from rmem import Brain
from rmem.index import filtered_rows
from rmem.testing.synthetic import synthetic_memories, synthetic_questions

NOW = datetime(2026, 5, 20, 15, 30)
COUNT = filtered_rows._SMALL + 2500


@pytest.fixture(scope="module")
def large():
    with Brain(":memory:") as brain:
        brain.remember_many(synthetic_memories(COUNT))
        brain.remember("the gardener repotted a bonsai", id="yesterday", when=datetime(2026, 5, 19, 9), session="y")
        brain.remember("XKQ-4471 is the serial number", id="serial", when=datetime(2020, 1, 1), session="z")
        brain.remember("it stood under the old oak", id="reply", when=datetime(2020, 1, 1), session="z")
        brain.remember("paint the fence", id="quimby", actor="Quimby", when=datetime(2019, 1, 1))
        yield brain


@pytest.fixture(scope="module")
def bare():
    """The same size without any vectors."""
    with Brain(":memory:", embedder="none") as brain:
        brain.remember_many([{"text": f"entry {n} of the ledger"} for n in range(COUNT)])
        yield brain


def _ids(hits):
    return [hit.memory.memory_id for hit in hits]


def test_candidates_give_the_ranking_of_all_rows(large, monkeypatch):
    """Against the same question with every row ranked to the end."""
    best = shared = asked = 0
    for question in synthetic_questions(40, size=COUNT):
        few = _ids(large.recall(question, k=10, now=NOW))
        with monkeypatch.context() as patch:
            patch.setattr(filtered_rows, "_SMALL", 10**9)
            everything = _ids(large.recall(question, k=10, now=NOW))
        asked += 1
        best += few[0] == everything[0]
        shared += len(set(few) & set(everything))
    assert best / asked >= 0.95
    assert shared / (10 * asked) >= 0.85


def test_a_rare_word_surfaces(large):
    assert _ids(large.recall("XKQ-4471", k=1)) == ["serial"]
    assert "reply" in _ids(large.recall("XKQ-4471", k=10)), "its neighbour in the session is lifted"


@pytest.mark.parametrize("question", ["what happened yesterday?", "anything new since 19 May 2026", "on 2026-05-19"])
def test_a_time_surfaces_although_no_word_and_no_vector_points_there(large, question):
    assert "yesterday" in _ids(large.recall(question, k=10, now=NOW))


def test_the_one_who_is_named_surfaces(large):
    assert "quimby" in _ids(large.recall("what did Quimby do?", k=10, now=NOW))


def test_phrases_and_exclusions_hold(large):
    hits = large.recall("number", k=10, must=["serial number"])
    assert _ids(hits) == ["serial"]
    words = large.recall("error", k=1, mode="lexical")[0].text
    for hit in large.recall("error test build", k=200, must_not=["error"]):
        assert "error" not in hit.text.lower().split()
    assert words


def test_the_parts_of_a_score_add_up(large):
    for question in ("what happened yesterday?", "deploy failed", "Quimby", "XKQ-4471"):
        for hit in large.recall(question, k=50, explain=True, now=NOW):
            assert sum(hit.explanation.components.values()) == pytest.approx(hit.score, abs=1e-3)


def test_more_hits_begin_with_the_fewer(large):
    for question in synthetic_questions(5):
        many = _ids(large.recall(question, k=100, now=NOW))
        assert len(many) == 100
        assert len(set(many)) == 100
        assert len(set(_ids(large.recall(question, k=10, now=NOW))) & set(many[:12])) >= 9


def test_asking_for_everything_gives_everything(large, bare):
    assert len(large.recall("error", k=10**6)) == COUNT + 4
    assert len(large.recall("error", k=10**6, mode="vector")) == COUNT + 4
    assert len(bare.recall("ledger", k=10**6)) == COUNT


def test_a_question_that_matches_nothing_is_harmless(bare):
    assert isinstance(bare.recall("zeppelin"), list)
    assert bare.recall("zeppelin", mode="lexical") == []
    assert bare.recall("zeppelin", mode="vector") == []
    assert bare.recall("ledger", must_not=["ledger"]) == []
    assert _ids(bare.recall("entry 4711", k=1)) == [bare.memories({"min_step": 4711, "max_step": 4711})[0].memory_id]


def test_a_quotation_of_common_words_reads_only_candidates(large, monkeypatch):
    """No word of the quotation is in the index, so every row may contain it."""
    read = []
    texts_at = large.store.texts_at
    monkeypatch.setattr(large.store, "texts_at", lambda seqs: read.append(len(seqs)) or texts_at(seqs))
    hits = large.recall('a serial number "of the"', k=5)
    assert "serial" in _ids(hits)
    assert 0 < sum(read) < COUNT / 2
