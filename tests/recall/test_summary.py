"""Summaries by choosing sentences, and texts cut to a number of tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmem.embed import static_embedder
from rmem.recall.budget import estimate_tokens, shorten
from rmem.recall.summary import split, summarise

FILLER = (
    "It was a long and rather quiet afternoon by the sea",
    "people walked along the beach and talked about nothing in particular",
    "the children played with a ball near the water",
    "somebody sold ice cream from a small white cart",
    "a few clouds drifted over the hills behind the town",
    "later the wind became stronger and the umbrellas were closed",
    "an old dog slept in the shade of a wall",
    "the music of the café could be heard from far away",
)
TELLING = (
    "the build failed with an exception in the parser",
    "the invoice is 4711 euros",
    "we decided to use the other supplier",
    "the connection was refused by the server",
    "Call Priya Raman about the contract",
    "the deadline is the 3rd of May",
)


def told(texts, budget):
    return summarise(texts, budget, static_embedder().embed)


ANY_TEXT = st.text(max_size=300) | st.lists(st.sampled_from([*FILLER, *TELLING, "Dr. Who", "?", "user:"])).map(
    ". ".join
)


@given(st.lists(ANY_TEXT, max_size=12), st.integers(0, 200))
def test_a_summary_is_never_above_its_budget(texts, budget):
    assert estimate_tokens(told(texts, budget)) <= budget


@given(st.lists(ANY_TEXT, max_size=12), st.integers(1, 200))
def test_the_same_texts_give_the_same_summary(texts, budget):
    assert told(texts, budget) == told(list(texts), budget)


@given(st.permutations(FILLER), st.sampled_from(TELLING), st.integers(0, 8), st.integers(30, 80))
def test_the_sentence_that_matters_is_kept(filler, telling, at, budget):
    sentences = [*filler[:at], telling, *filler[at:]]
    texts = [f"user: {sentence[0].upper()}{sentence[1:]}." for sentence in sentences]
    assert telling[1:] in told(texts, budget)


@given(st.permutations([*FILLER, *TELLING]), st.integers(20, 120))
def test_sentences_stay_as_they_were_and_in_their_order(sentences, budget):
    texts = [f"{sentence[0].upper()}{sentence[1:]}." for sentence in sentences]
    places = [texts.index(line) for line in told(texts, budget).splitlines()]
    assert places == sorted(places)


def test_what_fits_is_told_whole():
    texts = ["user: I moved to Paris. It is lovely.", "user: I work as a baker.", "assistant: Nice!"]
    assert told(texts, 100) == "user: I moved to Paris. It is lovely. I work as a baker.\nassistant: Nice!"


def test_nothing_is_told_twice():
    texts = ["user: The server listens on port 8443."] * 20 + ["user: Backups run at night and are kept for a month."]
    summary = told(texts, 30)
    assert summary.count("8443") == 1
    assert "Backups" in summary


def test_like_sentences_give_way_to_other_news():
    texts = [f"user: The test number {number} of the parser failed again today." for number in range(10)]
    texts.append("user: Maria Lopez will move to Lisbon in June.")
    assert "Lisbon" in told(texts, 40)


def test_a_sentence_that_does_not_fit_is_shortened():
    text = "user: Error 500 was returned by " + "the very long chain of proxies behind " * 20 + "the gateway."
    summary = told([text], 12)
    assert 0 < estimate_tokens(summary) <= 12
    assert "Error 500" in summary


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("user: One. Two? Three!", ["One.", "Two?", "Three!"]),
        ("Dr. Smith came at 3.5 p.m. exactly. He left.", ["Dr. Smith came at 3.5 p.m. exactly.", "He left."]),
        ("see etl/transform.py and v1.2.3 now", ["see etl/transform.py and v1.2.3 now"]),
        ("- a\n- b\n\n- c", ["- a", "- b", "- c"]),
        ("今日は雨です。明日は晴れます。", ["今日は雨です。", "明日は晴れます。"]),
        ("...", []),
        ("", []),
    ],
)
def test_sentences_end_where_they_end(text, sentences):
    assert [one.text for one in split(text)] == sentences


def test_no_part_of_a_long_line_is_lost():
    line = " ".join(f"word{number}," for number in range(1000))
    assert " ".join(one.text for one in split(line)) == line
    assert "".join(one.text for one in split("x" * 5000)) == "x" * 5000


@given(st.text(max_size=400), st.integers(0, 100))
def test_a_shortened_text_fits(text, tokens):
    cut = shorten(text, tokens)
    assert estimate_tokens(cut) <= tokens
    if estimate_tokens(text) <= tokens:
        assert cut == text


def test_a_shortened_text_keeps_its_beginning_and_its_end():
    cut = shorten("first words " + "and so on " * 100 + "last words", 20)
    assert cut.startswith("first words")
    assert cut.endswith("last words")
    assert "…" in cut
    assert estimate_tokens(cut) == 20
    assert shorten("a" * 1000, 50).startswith("aaaa")
