"""Choosing an embedder by a word, an address, an object or the environment."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rmem.embed import embedder_for
from rmem.embed.function import FunctionEmbedder
from rmem.embed.http import HttpEmbedder
from rmem.embed.static import StaticEmbedder
from rmem.errors import ConfigError


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RMEM_EMBEDDER", "RMEM_EMBED_URL", "RMEM_EMBED_MODEL"):
        monkeypatch.delenv(name, raising=False)


def test_static_is_the_default_and_shared_by_the_process() -> None:
    assert isinstance(embedder_for(None), StaticEmbedder)
    assert embedder_for() is embedder_for("static")
    assert embedder_for("static").name == "static:minilm-256"


def test_the_environment_chooses_when_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMEM_EMBEDDER", "http:m@http://127.0.0.1:1/v1")
    assert embedder_for(None).name == "http:m"
    assert embedder_for("static").name == "static:minilm-256"


def test_an_embedder_is_taken_as_it_is() -> None:
    mine = FunctionEmbedder(lambda texts: [[1.0] for _ in texts], name="mine")
    assert embedder_for(mine) is mine


def test_a_function_is_wrapped() -> None:
    def ones(texts: list[str]) -> list[list[float]]:
        return [[1.0, 1.0] for _ in texts]

    embedder = embedder_for(ones)
    assert embedder.dimension == 2
    assert embedder.name.endswith(".ones")


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("http:google/gemini-embedding-001@https://openrouter.ai/api/v1", "http:google/gemini-embedding-001"),
        ("http:@cf/baai/bge-m3@https://example.com/v1/embeddings", "http:@cf/baai/bge-m3"),
    ],
)
def test_an_http_spec_holds_model_and_address(spec: str, name: str) -> None:
    embedder = embedder_for(spec)
    assert isinstance(embedder, HttpEmbedder)
    assert embedder.name == name


def test_bare_http_reads_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMEM_EMBED_URL", "https://openrouter.ai/api/v1/")
    monkeypatch.setenv("RMEM_EMBED_MODEL", "a/b")
    assert repr(embedder_for("http")) == "HttpEmbedder('a/b', 'https://openrouter.ai/api/v1')"
    assert embedder_for("http:c").name == "http:c"


@pytest.mark.parametrize("spec", ["http", "http:only-a-model", "http:"])
def test_http_without_an_address_says_what_to_set(spec: str) -> None:
    with pytest.raises(ConfigError, match="http:MODEL@URL"):
        embedder_for(spec)


@pytest.mark.parametrize("spec", ["", "Static", "glove", "onnx:", "static:minilm-256", 7, StaticEmbedder])
def test_an_unknown_spec_lists_what_is_known(spec: str) -> None:
    with pytest.raises(ConfigError, match="minilm, onnx:FOLDER, sentence-transformers"):
        embedder_for(spec)


@pytest.mark.parametrize(
    "spec", ["http://user:hunter2@host/v1", "http:m@https://user:hunter2@host/v1", "http:m@https://hunter2@host"]
)
def test_a_password_in_an_address_is_refused_and_not_repeated(spec: str) -> None:
    with pytest.raises(ConfigError) as caught:
        embedder_for(spec)
    assert "hunter2" not in str(caught.value)


def test_importing_the_package_is_light() -> None:
    code = (
        "import sys, rmem.embed;print([m for m in ('tokenizers', 'onnxruntime', 'urllib.request') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
