"""The default embedder: meaning, unit length, odd and very long texts, start-up manners."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rmem.embed.static import StaticEmbedder, _map_table
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


def test_rows_have_unit_length_and_texts_without_content_are_zeros() -> None:
    rows = EMBEDDER.embed(["hello", "", "   \n\t", "world"])
    assert rows.shape == (4, EMBEDDER.dimension)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), [1, 0, 0, 1], atol=1e-6)


def test_no_texts_give_no_rows() -> None:
    assert EMBEDDER.embed([]).shape == (0, 256)


def weighted_mean(text: str) -> np.ndarray:
    """The definition of a vector, computed in one plain product."""
    counts = np.bincount(EMBEDDER._tokenizer.numbers(" " + text), minlength=32_000)
    mean: np.ndarray = counts @ EMBEDDER._table.astype(np.float64)
    mean /= np.linalg.norm(mean)
    return mean


def test_vectors_are_the_weighted_mean_of_the_token_vectors() -> None:
    text = "the quick brown fox"
    np.testing.assert_allclose(EMBEDDER.embed_query(text), weighted_mean(text), atol=1e-6)


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


def test_every_token_of_a_long_text_counts() -> None:
    text = "ship anchor harbour sail " * 20_000 + "soup pepper onion kitchen " * 20_000
    np.testing.assert_allclose(EMBEDDER.embed_query(text), weighted_mean(text), atol=1e-5)


@settings(max_examples=300, deadline=None)
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
        "print([m for m in ('wordllama', 'tokenizers', 'safetensors', 'onnxruntime') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("content", [b"", b"\xff" * 64, b"\x02\0\0\0\0\0\0\0{}", b"not a safetensors file at all"])
def test_damaged_weights_are_reported_with_what_to_do(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "weights.safetensors"
    path.write_bytes(content)
    with pytest.raises(EmbedderError, match=r"weights\.safetensors.*pip install"):
        _map_table(path)


def test_truncated_weights_are_reported(tmp_path: Path) -> None:
    header = b'{"embedding.weight":{"dtype":"F16","shape":[32000,256],"data_offsets":[0,16384000]}}'
    path = tmp_path / "weights.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * 1000)
    with pytest.raises(EmbedderError, match="damaged"):
        _map_table(path)
