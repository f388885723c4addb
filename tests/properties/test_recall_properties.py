"""What is true of every recall, whatever was remembered and whatever is asked."""

from __future__ import annotations

import math
from datetime import datetime

import numpy as np
import pytest
from hypothesis import example as such_as
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import AGENTS, WORDS

from rmem import Brain
from rmem.errors import InputError
from rmem.index.analyser import fold
from rmem.index.stopwords import VOTES
from rmem.recall.question import parse_question
from rmem.stores.indexed import date_words
from rmem.stores.sql import cache
from rmem.testing.contract import clustered_vectors, plain_bm25
from rmem.timewords import time_span

NOW = datetime(2026, 5, 20, 15, 30)
PLAIN = [word for word in WORDS if word.isascii() and word not in ("running", "runs", "cats")]  # one form of a stem
MODES = ("hybrid", "lexical", "vector")

questions = st.lists(
    st.sampled_from([*PLAIN, "the", "who", "Ann", "absent", "2023", "November"]), min_size=1, max_size=6
)
asked = questions.map(" ".join)
items = st.fixed_dictionaries(
    {
        "text": st.lists(st.sampled_from(PLAIN), min_size=1, max_size=9).map(" ".join),
        "agent": st.sampled_from(AGENTS),
        "session": st.sampled_from([None, "s1", "s2"]),
        "actor": st.sampled_from([None, "Ann", "Ben"]),
        "importance": st.sampled_from([0.1, 0.5, 0.9]),
        "when": st.integers(0, 60).map(lambda day: 1_700_000_000.0 + 86_400 * day),
    }
)
libraries = st.lists(items, min_size=1, max_size=25)


def _numbered(library):
    return [{**item, "id": f"m{number}"} for number, item in enumerate(library)]


def _brain(library):
    brain = Brain(":memory:")
    brain.remember_many(_numbered(library))
    return brain


def _ranking(hits):
    return [(hit.memory.memory_id, hit.score) for hit in hits]


def _agree(left, right):
    """The same memories with the same scores; those whose scores are equal may stand in any order."""
    assert [score for _, score in left] == pytest.approx([score for _, score in right], rel=1e-3, abs=1e-3)
    assert dict(left) == pytest.approx(dict(right), rel=1e-3, abs=1e-3)


@given(libraries, asked)
@settings(max_examples=2 * settings.default.max_examples)
def test_lexical_recall_is_textbook_bm25(library, question):
    with _brain(library) as brain:
        texts = {item["id"]: (item["text"], date_words(item["when"])) for item in _numbered(library)}
        expected = plain_bm25(texts, question)
        hits = brain.recall(question, k=100, mode="lexical")
        assert dict(_ranking(hits)) == pytest.approx(expected, rel=1e-4)
        scores = [hit.score for hit in hits]
        assert scores == sorted(scores, reverse=True)


@given(libraries, asked, st.sampled_from(AGENTS), st.sampled_from(MODES))
@settings(max_examples=2 * settings.default.max_examples)
def test_a_filter_answers_as_if_nothing_else_had_ever_been_remembered(library, question, agent, mode):
    inside = [item for item in _numbered(library) if item["agent"] == agent]
    with _brain(library) as whole, Brain(":memory:") as part:
        part.remember_many(inside)
        here = whole.recall(question, k=100, where={"agent": agent}, mode=mode, now=NOW)
        alone = part.recall(question, k=100, mode=mode, now=NOW)
        assert {hit.memory.agent_id for hit in here} <= {agent}
        _agree(_ranking(here), _ranking(alone))


@given(libraries, asked, st.data())
@settings(max_examples=2 * settings.default.max_examples)
def test_what_was_forgotten_leaves_no_trace_in_the_ranking(library, question, data):
    gone = data.draw(st.sets(st.integers(0, len(library) - 1)))
    with _brain(library) as brain, Brain(":memory:") as fresh:
        for number in gone:
            assert brain.forget(f"m{number}")
        fresh.remember_many([item for at, item in enumerate(_numbered(library)) if at not in gone])
        left, right = (one.recall(question, k=100, now=NOW) for one in (brain, fresh))
        _agree(_ranking(left), _ranking(right))


@given(libraries, asked, st.sampled_from(MODES))
@settings(max_examples=2 * settings.default.max_examples)
def test_the_parts_of_an_explanation_add_up_to_the_score(library, question, mode):
    with _brain(library) as brain:
        plain = brain.recall(question, k=50, mode=mode, now=NOW)
        hits = brain.recall(question, k=50, mode=mode, explain=True, now=NOW)
        assert _ranking(hits) == _ranking(plain)
        for hit in hits:
            assert hit.explanation.mode == mode
            assert math.fsum(hit.explanation.components.values()) == pytest.approx(hit.score, rel=1e-3, abs=1e-3)
            assert hit.explanation.score == pytest.approx(hit.score, rel=1e-3, abs=1e-3)
            for match in hit.explanation.words:
                assert match.score > 0
        assert all(hit.explanation is None for hit in plain)


@given(libraries, asked, st.sampled_from(MODES), st.integers(1, 10))
def test_asking_for_fewer_gives_the_best_of_more(library, question, mode, k):
    with _brain(library) as brain:
        many = brain.recall(question, k=50, mode=mode, now=NOW)
        assert _ranking(brain.recall(question, k=k, mode=mode, now=NOW)) == _ranking(many)[:k]
        if mode == "hybrid":
            assert len(many) == len(library), "hybrid recall ranks every memory"


@given(libraries, asked, st.sampled_from(PLAIN), st.sampled_from(MODES))
def test_an_excluded_word_never_comes_back(library, question, word, mode):
    with _brain(library) as brain:
        for hit in brain.recall(question, k=50, mode=mode, now=NOW, must_not=[word]):
            assert word not in hit.text.split()


@given(libraries, st.lists(st.sampled_from(PLAIN), min_size=1, max_size=3).map(" ".join), st.sampled_from(MODES))
def test_what_must_be_said_is_in_every_hit_and_every_memory_with_it_is_a_hit(library, phrase, mode):
    with _brain(library) as brain:
        hits = brain.recall(phrase, k=50, mode=mode, now=NOW, must=[phrase])
        holding = {item["id"] for item in _numbered(library) if f" {fold(phrase)} " in f" {fold(item['text'])} "}
        found = {hit.memory.memory_id for hit in hits}
        if all(word.isalpha() for word in phrase.split()):
            assert found == holding
        else:
            assert holding <= found


@given(libraries, asked, st.integers(0, 60), st.integers(0, 60))
def test_since_and_until_are_the_bounds_of_the_answer(library, question, one, two):
    since, until = (1_700_000_000.0 + 86_400 * day for day in sorted((one, two)))
    with _brain(library) as brain:
        hits = brain.recall(question, k=100, since=since, until=until)
        expected = {item["id"] for item in _numbered(library) if since <= item["when"] <= until}
        assert {hit.memory.memory_id for hit in hits} == expected
        same = brain.recall(question, k=100, where={"since": since, "until": until})
        assert _ranking(hits) == _ranking(same)


@given(libraries, asked, st.integers(1, 60))
def test_a_token_budget_is_kept_and_loses_only_what_does_not_fit(library, question, budget):
    from rmem.recall.budget import estimate_tokens

    with _brain(library) as brain:
        hits = brain.recall(question, k=50, token_budget=budget, now=NOW)
        spent = sum(estimate_tokens(hit.text) for hit in hits)
        assert spent <= budget
        kept = {hit.memory.memory_id for hit in hits}
        for hit in brain.recall(question, k=50, now=NOW):
            if hit.memory.memory_id not in kept:
                assert spent + estimate_tokens(hit.text) > budget


@given(libraries, st.lists(asked, min_size=1, max_size=3))
def test_segments_and_tail_answer_as_a_fresh_index_does(tmp_path_factory, library, questions):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "SEGMENT_FROM", 5)
        patch.setattr(cache, "SEGMENT_BULK", 5)
        path = tmp_path_factory.mktemp("segments") / "memories.db"
        with Brain(path, durability="normal") as brain:
            for number, item in enumerate(_numbered(library)):
                brain.remember(**item)
                if number % 6 == 5:
                    brain.update(f"m{number - 3}", text="river engine changed")
                if number % 7 == 6:
                    brain.forget(f"m{number - 5}")
            held = [brain.recall(question, k=50, mode=mode, now=NOW) for question in questions for mode in MODES]
        with Brain(path) as brain:
            loaded = [brain.recall(question, k=50, mode=mode, now=NOW) for question in questions for mode in MODES]
            brain.store.rebuild()
            rebuilt = [brain.recall(question, k=50, mode=mode, now=NOW) for question in questions for mode in MODES]
    for before, after, anew in zip(held, loaded, rebuilt, strict=True):
        _agree(_ranking(before), _ranking(after))
        _agree(_ranking(after), _ranking(anew))


@pytest.mark.parametrize("dimension", [8, 33, 1000, *(pytest.param(n, marks=pytest.mark.slow) for n in (32, 48, 256))])
def test_vector_recall_is_brute_force(dimension):
    count = 4000
    vectors = clustered_vectors(count, dimension, seed=dimension)
    questions = clustered_vectors(20, dimension, seed=dimension)[:10] + 0.05
    questions = np.concatenate([questions, vectors[::401]])
    with Brain(":memory:", embedder="none") as brain:
        brain.remember_many(
            {"text": f"memory {n}", "id": str(n), "vector": vectors[n] * (n % 7 + 0.5), "agent": f"a{n % 3}"}
            for n in range(count)
        )
        for where, rows in (({}, np.arange(count)), ({"agent": "a1"}, np.arange(1, count, 3))):
            for question in questions:
                hits = brain.recall("anything", k=10, where=where, mode="vector", vector=question)
                exact = vectors[rows] @ (question / np.linalg.norm(question))
                assert [hit.score for hit in hits] == pytest.approx(np.sort(exact)[::-1][:10].tolist(), abs=1e-5)


@pytest.fixture(scope="module")
def mixed():
    """Some memories in many scripts, to put any question to."""
    brain = Brain(":memory:")
    brain.remember_many(
        [
            {"text": text, "actor": actor, "session": "s"}
            for text, actor in (
                ("Fixed OOM: switched to pyarrow.dataset", "Ann"),
                ("我在北京大学学习", None),
                ("Der Zug fährt morgen nach Köln", "Jürgen (Bahn)"),
                ("мы встретились в мае", "Оля"),
                ("commit 3f2a9c1d8e7b6a5f4c3d2e1f0a9b8c7d6e5f4a3b", "C++"),
                ("😀 👩‍👩‍👧 ok", "😀"),
                ("who? what? when?", "[a-z]+"),
            )
        ]
    )
    yield brain
    brain.close()


_OPERATORS = st.lists(
    st.sampled_from(
        ['"', "“", "”", "-", "--", "-a", "'", "(", ")", "*", "\\", "%", "\n", "\t", " ", "北", "é", "é", "ﬃ"]
    )
    | st.sampled_from(
        ["-北京", '-"', "OOM", "yesterday", "between", "and", "May", "99999999999", "ago", "İ", "ß", "🏳️‍🌈"]
    ),
    max_size=12,
).map("".join)


@given(st.one_of(st.text(max_size=300), _OPERATORS, st.text(st.characters(codec=None), max_size=40)))
@settings(max_examples=5 * settings.default.max_examples)
@such_as("\ud800")
@such_as("\x00")
@such_as("   ")
@such_as('""')
@such_as("-")
@such_as('"-"')
@such_as("-x")
@such_as("\u0301")
@such_as("in the last 9999 years")
@such_as("9999 years ago")
@such_as("on 31 june")
def test_any_text_is_a_question_or_a_clear_refusal(mixed, text):
    for mode in MODES:
        if not _is_text(text):
            with pytest.raises(InputError) as refused:
                mixed.recall(text, mode=mode)
            assert refused.value.field == "question"
            continue
        hits = mixed.recall(text, k=3, mode=mode, explain=True)
        assert len(hits) <= 3
        for hit in hits:
            assert math.isfinite(hit.score)
            assert isinstance(str(hit.explanation), str)
            assert hit.to_dict()["score"] == hit.score


def _is_text(text):
    """What may be remembered and asked: something to read, in valid Unicode, without NUL."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return bool(text.strip()) and "\x00" not in text


@given(st.text(st.characters(codec=None), max_size=300))
@settings(max_examples=2 * settings.default.max_examples)
def test_any_text_is_kept_exactly_or_clearly_refused(text):
    with Brain(":memory:") as brain:
        if not _is_text(text):
            with pytest.raises(InputError) as refused:
                brain.remember(text)
            assert refused.value.field == "text"
            assert len(brain.store) == 0
            return
        kept = brain.remember(text)
        assert brain.get(kept.memory_id).text == text
        assert brain.memories()[0].contents == {"text": text}


@given(st.text(max_size=200))
@settings(max_examples=2 * settings.default.max_examples)
def test_every_word_that_was_kept_is_found_again_by_itself(text):
    """Each word of a memory, asked for alone, finds the memory."""
    if not _is_text(text):
        return
    with Brain(":memory:", embedder="none") as brain:
        brain.remember(text)
        for piece in text.split()[:5]:
            # "A O" may be the function words of another language
            words = [word for word in parse_question(piece, NOW).words if not word.stop and word.text not in VOTES]
            if words:
                assert brain.recall(piece, mode="lexical"), piece


_TIME_TOKENS = st.lists(
    st.sampled_from(
        "in on the last past this previous between and from to until since before after by of during next may march "
        "june feb february december monday sunday week weekend month months year years day days hour minute ago "
        "earlier yesterday today two a an few couple several 0 1 2 29 30 31 99 9999 29th 1st 2023 1999 2024 2023-05-07 "
        "2023-13-45 2024-02-29 7 , . ' may, summer winter morning night now".split()
    ),
    min_size=1,
    max_size=8,
).map(" ".join)


@given(_TIME_TOKENS, st.datetimes(datetime(1971, 1, 1), datetime(2100, 12, 31)))
@settings(max_examples=5 * settings.default.max_examples)
def test_whatever_time_a_question_names_the_span_is_sound(text, now):
    span = time_span(text, now)
    if span is not None:
        assert span.start < span.end
        assert span.words.strip(" ,.'")
        assert math.isfinite(span.start.timestamp())
        assert math.isfinite(span.end.timestamp())


@given(_TIME_TOKENS)
@settings(max_examples=2 * settings.default.max_examples)
def test_time_words_as_a_filter_never_fail(mixed, text):
    for wished in ({}, {"time_words": "filter"}, {"time": 0}):
        hits = mixed.recall(f"what happened {text}", settings=wished, now=NOW)
        assert len(hits) <= 5
