"""The default embedder: meaning, unit length, odd and very long texts, start-up manners."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rmem.embed.static import StaticEmbedder, load_table
from rmem.embed.wordpiece import words_of
from rmem.errors import EmbedderError

EMBEDDER = StaticEmbedder()


def test_car_is_nearer_to_automobile_than_to_banana() -> None:
    car, automobile, banana = EMBEDDER.word_vectors(["car", "automobile", "banana"])
    assert car @ automobile > 0.5 > 0.3 > car @ banana


def test_a_question_is_nearest_to_the_memory_that_answers_it() -> None:
    memories = EMBEDDER.embed(
        [
            "The parquet reader ran out of memory, so we stream row groups now",
            "Lunch is at noon in the garden",
            "The cat sleeps on the sofa",
        ]
    )
    assert int(np.argmax(memories @ EMBEDDER.embed_query("how was the memory error in parquet fixed?"))) == 0


def test_telling_words_of_a_question_count_more_when_it_is_weighed() -> None:
    plain = EMBEDDER.embed_query("the parquet and the garden")
    weighed = EMBEDDER.embed_query(
        "the parquet and the garden", lambda word: {"parquet": 5.0, "garden": 0.1}.get(word, 0.1)
    )
    parquet, garden = EMBEDDER.word_vectors(["parquet", "garden"])
    assert weighed @ parquet > plain @ parquet
    assert weighed @ garden < plain @ garden


def test_the_parts_of_an_identifier_are_weighed_by_themselves() -> None:
    weights = {"parquet": 5.0}
    both = EMBEDDER.embed_query("garden_parquet", lambda word: weights.get(word, 0.5))
    garden, parquet = EMBEDDER.embed(["garden", "parquet"])
    assert both @ parquet > both @ garden + 0.3


def test_rows_have_unit_length_and_texts_without_content_are_zeros() -> None:
    rows = EMBEDDER.embed(["hello", "", "   \n\t", "world"])
    assert rows.shape == (4, EMBEDDER.dimension)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), [1, 0, 0, 1], atol=1e-6)


def test_no_texts_give_no_rows() -> None:
    assert EMBEDDER.embed([]).shape == (0, 256)


def weighted_sum(text: str) -> np.ndarray:
    """The definition of a vector, computed in one plain product."""
    codes, scales = EMBEDDER._table
    weights = np.zeros(len(codes))
    for word, count in Counter(words_of(text)).items():
        np.add.at(weights, EMBEDDER._pieces.rows([word]), np.sqrt(count))
    total: np.ndarray = (weights * scales) @ codes.astype(np.float64)
    total /= np.linalg.norm(total)
    return total


def test_vectors_are_the_sum_of_the_piece_vectors_by_the_root_of_the_count() -> None:
    for text in ("the quick brown fox", "the fox and the hound and the hedgehog", "数据库里的数据，数据"):
        np.testing.assert_allclose(EMBEDDER.embed_query(text), weighted_sum(text), atol=1e-6)


def test_a_vector_does_not_depend_on_the_texts_beside_it() -> None:
    texts = [f"memory number {number} " * (number % 7 + 1) for number in range(3000)]
    together = EMBEDDER.embed(texts)
    for row in (0, 1, 1499, 2999):
        assert np.array_equal(together[row], EMBEDDER.embed([texts[row]])[0])


def test_learning_many_words_at_once_changes_no_vector() -> None:
    rng = np.random.default_rng(5)
    syllables = ["ka", "lo", "mir", "té", "шу", "zz", "Qu", "9", "-", "'s", "ing"]
    texts = [" ".join("".join(rng.choice(syllables, 4)) for _ in range(12)) for _ in range(600)]
    together = StaticEmbedder().embed(texts)
    alone = StaticEmbedder()
    assert np.array_equal(together, np.concatenate([alone.embed([text]) for text in texts]))


def test_every_word_of_a_long_text_counts() -> None:
    text = "ship anchor harbour sail " * 20_000 + "soup pepper onion kitchen " * 20_000
    np.testing.assert_allclose(EMBEDDER.embed_query(text), weighted_sum(text), atol=1e-5)


def test_a_question_in_another_language_is_nearest_to_what_answers_it() -> None:
    for question, answer, other in (
        (
            "Wann fährt der Zug nach Berlin?",
            "Der Zug nach Berlin fährt um neun Uhr ab.",
            "Die Katze schläft auf dem Sofa.",
        ),
        ("数据库的密码是什么？", "我们把数据库密码放在保险箱里。", "明天去公园吃饭。"),
        ("когда отправляется поезд?", "Поезд отправляется в девять часов.", "Кошка спит на диване."),
        ("متى يغادر القطار؟", "يغادر القطار في الساعة التاسعة.", "القطة تنام على الأريكة."),
        ("電車はいつ出発しますか", "電車は九時に出発します。", "猫はソファで寝ています。"),
    ):
        right, wrong = EMBEDDER.embed([answer, other]) @ EMBEDDER.embed_query(question)
        assert right > wrong + 0.1, question


@settings(max_examples=5 * settings.default.max_examples)
@given(st.lists(st.text(max_size=60), max_size=5))
def test_odd_texts_never_crash(texts: list[str]) -> None:
    rows = EMBEDDER.embed(texts)
    assert rows.shape == (len(texts), 256)
    assert np.isfinite(rows).all()
    for text, row in zip(texts, rows, strict=True):
        assert np.linalg.norm(row) == pytest.approx(1.0 if text.strip() else 0.0, abs=1e-5)


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\x00", "\x00" * 100, "\ufffe", "😀" * 10_000, "\u202e"])
def test_lone_surrogates_and_nul_are_texts_like_others(text: str) -> None:
    assert np.linalg.norm(EMBEDDER.embed_query(text)) == pytest.approx(1.0, abs=1e-5)


_MEMORY = """
import resource
from rmem.embed.static import StaticEmbedder
embedder = StaticEmbedder()
embedder.embed(["warm up"])
text = {text}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
embedder.embed([text])
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss has another unit elsewhere")
@pytest.mark.parametrize("text", ["'some words to remember ' * 430_000", "' ' * 9_999_999 + 'x'"])
def test_ten_megabytes_of_text_need_little_memory(text: str) -> None:
    grown = subprocess.run(
        [sys.executable, "-c", _MEMORY.format(text=text)], capture_output=True, text=True, check=True
    )
    assert int(grown.stdout) < 60, "MB more than before"


def test_starting_up_imports_no_heavy_library() -> None:
    code = (
        "import sys; from rmem.embed import embedder_for; embedder_for('static').embed(['hello']);"
        "print([m for m in ('tokenizers', 'onnxruntime') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("content", [b"", b"\xff" * 64, b"not a table at all"])
def test_a_damaged_table_is_reported_with_what_to_do(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "static_codes.npy").write_bytes(content)
    with pytest.raises(EmbedderError, match=r"static_codes\.npy.*damaged.*Install rmem again"):
        load_table(tmp_path)


def test_a_truncated_table_is_reported(tmp_path: Path) -> None:
    codes, scales = EMBEDDER._table
    np.save(tmp_path / "static_codes.npy", codes[:100])
    np.save(tmp_path / "static_scales.npy", scales)
    with pytest.raises(EmbedderError, match="damaged"):
        load_table(tmp_path)
