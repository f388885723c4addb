"""Our tokenizer against the library whose numbers it must give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rmem.embed.bpe import PieceTokenizer
from rmem.embed.wheels import file_in_wheel
from rmem.errors import EmbedderError

FILE = file_in_wheel("wordllama", "tokenizers/l2_supercat_tokenizer_config.json", install="pip install wordllama")
OURS = PieceTokenizer.from_file(FILE)
THEIRS: Any = tokenizers.Tokenizer.from_file(str(FILE))

CONTROL = ("<s>", "</s>", "<unk>")


def theirs(text: str) -> list[int]:
    numbers: list[int] = THEIRS.encode(text, add_special_tokens=False).ids
    return numbers


@pytest.mark.parametrize(
    "text",
    [
        "When did Caroline go to the support group?",
        "def transform_parquet(path):\n        return pq.read_table(path)\n\n\n# etl/transform.py",
        "a  b   c    d" + " " * 40 + "e" + " " * 17,
        " leading and trailing ",
        "naïve café, Größe, Ελληνικά, Привет, 这是一个测试。日本語 한국어 العربية",
        "😀👩‍👩‍👧 emoji, \t tabs \r\n and \x00 NUL",
        "2024-05-01T12:00:00Z 3.14159 1,000,000 £5 5€",
        '(((a)))?)?)?)?\' """ ;;;; ---- ==== ______',
        "<0x0A> is text, ▁ is a space",
        "aaaaaaaaaaaaaaaa hahahahahahaha babababab",
    ],
)
def test_numbers_are_those_of_the_tokenizers_library(text: str) -> None:
    assert OURS.numbers(" " + text) == theirs(text)


@settings(max_examples=500, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=80))
def test_any_short_text_gets_the_same_numbers(text: str) -> None:
    assume(not any(word in text for word in CONTROL))
    assert OURS.numbers(" " + text) == theirs(text)


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(["the", "re", "in", " ", "  ", "\n", "()", "?)", ");", "ing", "Ж", "é", "7", "\t"])))
def test_any_mix_of_pieces_gets_the_same_numbers(parts: list[str]) -> None:
    text = "".join(parts)
    if text:
        assert OURS.numbers(" " + text) == theirs(text)


def test_own_source_code_gets_the_same_numbers() -> None:
    for path in sorted(Path(__file__).parent.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        for word in CONTROL:
            text = text.replace(word, "")
        assert OURS.numbers(" " + text) == theirs(text)


@pytest.mark.parametrize("word", CONTROL)
def test_control_words_in_a_text_are_plain_characters(word: str) -> None:
    assert min(OURS.numbers(f"a {word} b\n{word}")) > 2


def test_a_long_run_without_spaces_is_cut_but_loses_nothing() -> None:
    numbers = OURS.numbers("x" * 100_000 + "🦖" * 1000)
    assert "".join(THEIRS.id_to_token(number) for number in numbers[:-4000]) == "x" * 100_000
    assert numbers[-4000:] == [3 + byte for byte in "🦖".encode()] * 1000


@pytest.mark.parametrize("content", [b"", b"{}", b'{"vocab": {"a": 0}, "merges": []}', b'"vocab": {"merges"'])
def test_a_damaged_tokenizer_file_is_reported_with_its_path(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(EmbedderError, match=r"tokenizer\.json"):
        PieceTokenizer.from_file(path)
