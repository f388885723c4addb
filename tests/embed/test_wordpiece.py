"""Words to rows of the static table: like BERT's tokenizer in English, and nothing left out elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

import rmem.embed
from rmem.embed.wordpiece import SPARE_ROWS, WordPieces, words_of

LINES = (Path(rmem.embed.__file__).parent / "data" / "bert_vocab.txt").read_text(encoding="utf-8")
BERT = LINES.splitlines()
OURS = WordPieces(LINES)
OURS.rows(BERT[1000:1100])  # more words than it searches for one by one
THEIRS: Any = tokenizers.models.WordPiece(
    {piece: row for row, piece in enumerate(BERT)}, unk_token="[UNK]", max_input_chars_per_word=64
)


@settings(max_examples=5 * settings.default.max_examples)
@given(st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=64))
def test_pieces_of_a_word_are_those_of_the_tokenizers_library(word: str) -> None:
    expected = [token.id for token in THEIRS.tokenize(word)]
    assert OURS.rows([word]) == expected
    assert WordPieces(LINES).rows([word]) == expected  # its first search


def test_words_are_cut_at_everything_that_is_neither_letter_nor_digit() -> None:
    assert words_of("Fix `parse_url(x)`, see #12: don't!") == ["fix", "parse", "url", "x", "see", "12", "don", "t"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Größe CAFÉ naïve", ["grosse", "cafe", "naive"]),
        ("Ёлка и йод", ["елка", "и", "йод"]),
        ("إلى آخِر المدينة", ["الي", "اخر", "المدينه"]),
        ("私はPython3が好き", ["私は", "python3", "が好き"]),
        ("ＡＢＣ１２", ["abc12"]),
        ("각하", ["각하"]),
    ],
)
def test_letters_of_other_languages_keep_what_tells_words_apart(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def test_signs_are_read_one_by_one_with_the_pairs_that_the_table_knows() -> None:
    pieces = WordPieces("数\n据\n库\n数据\n")
    assert pieces.rows(["数据库"]) == [0, 1, 2, 3]


@settings(max_examples=5 * settings.default.max_examples)
@given(st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=20))
def test_no_letter_is_left_out(text: str) -> None:
    rows = OURS.rows(words_of(text)) or OURS.spare_rows(text)
    assert rows
    assert all(0 <= row < len(BERT) + SPARE_ROWS for row in rows)
