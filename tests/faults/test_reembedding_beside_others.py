"""Re-embedding while others use the store: interrupted, resumed, to another dimension; everybody goes on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rmem import Brain
from rmem.admin import reindex
from rmem.doctor import examine
from rmem.embed.function import FunctionEmbedder
from rmem.errors import EmbedderError
from rmem.stores.packing import LEVELS
from rmem.transfer import export, import_


class Stopped(Exception):
    pass


def embedder(dimension: int, *, stop_after: int | None = None) -> FunctionEmbedder:
    """Texts by their letters, in any dimension."""
    calls = 0

    def embed(texts: list[str]) -> list[list[float]]:
        nonlocal calls
        calls += 1
        if stop_after is not None and calls > stop_after:
            raise Stopped
        found = np.ones((len(texts), dimension))
        for at, text in enumerate(texts):
            for letter in text:
                found[at, ord(letter) % dimension] += 1
        return found.tolist()

    return FunctionEmbedder(embed, name=f"letters-{dimension}", dimension=dimension)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memories.db"


@pytest.mark.parametrize("dimension", [256, 1024, 37])
def test_moves_between_an_interrupted_and_a_resumed_reindex_do_no_harm(path, dimension):
    with Brain(path) as brain:
        brain.remember_many([{"text": f"memory {n} of the river", "id": f"m{n}"} for n in range(900)])
        brain.store.move([f"m{n}" for n in range(0, 900, 9)], "im")
    with pytest.raises(EmbedderError, match="Stopped"):
        reindex(path, embedder(dimension, stop_after=2))
    with Brain(path) as brain:
        for tier in LEVELS:
            brain.store.move([f"m{n}" for n in range(len(tier), 500, 5)], tier)
    reindex(path, embedder(dimension))
    with Brain(path, embedder=embedder(dimension)) as brain:
        assert len(brain.recall("river", k=1000)) == 900
        assert brain.stats()["vectors"] == 900
        assert brain.stats()["dimension"] == dimension
    assert [finding for finding in examine(path) if not finding.ok] == []


@pytest.mark.parametrize("name", ["onnx", "letters"])
@pytest.mark.parametrize("explain", [False, True])
def test_processes_that_are_open_go_on_after_another_has_re_embedded(path, tmp_path, name, explain, monkeypatch):
    """Of another dimension or not: `static` has 256 numbers, `minilm` 384, and a function what it likes."""
    chosen = "minilm" if name == "onnx" else embedder(256)
    with Brain(path) as source:
        source.remember_many([{"text": f"from a file {n}"} for n in range(5)])
        export(source, tmp_path / "memories.jsonl")
        for memory in source.memories():
            source.forget(memory.memory_id)
    held = Brain(path)  # has not been told an embedder
    held.remember("the bridge is closed", id="a", tags={"repo": "x"})
    held.remember("the ferry goes twice a day", id="b")
    held.recall("bridge")
    reindex(path, chosen)
    if name == "letters":
        # a function has no name to load it by
        monkeypatch.setattr("rmem.store_embedding.embedder_of_store", lambda spec, known: chosen)
        held._embedding._wanted = chosen
        held._embedding._identity = held._embedding._identity._replace(name="another")  # as resolved before
    held.pin("a")
    assert held.update("a", importance=0.9).importance == 0.9
    assert held.update("b", text="the ferry goes once a day").text.endswith("once a day")
    held.remember("stored afterwards", id="c")
    assert import_(held, tmp_path / "memories.jsonl")["imported"] == 5
    assert [hit.memory.memory_id for hit in held.recall("ferry once a day", k=1, explain=explain)] == ["b"]
    assert held.stats()["vectors"] == 8
    held.close()
    assert [finding for finding in examine(path) if not finding.ok] == []


def test_a_memory_that_is_moved_up_with_a_vector_from_before_is_refused_and_stays(path):
    with Brain(path) as brain:
        brain.remember("the bridge is closed", id="a")
        old = brain.vector_of("the bridge is closed")
        brain.store.move(["a"], "ltm")
        reindex(path, embedder(64))
        with pytest.raises(ValueError, match="must have 64 numbers, got 256"):
            brain.store.move(["a"], "stm", {"a": old})
        assert brain.get("a").tier == "ltm"


def test_a_file_of_vectors_of_another_embedder_is_embedded_anew(path, tmp_path):
    other = Path(tmp_path / "lines.jsonl")
    with Brain(tmp_path / "other.db", embedder=embedder(64)) as brain:
        brain.remember("the bridge is closed", id="a")
        export(brain, other)
    assert json.loads(other.read_text().splitlines()[0])["remanence"]["embedder"] == "function:letters-64"
    with Brain(path) as brain:
        assert import_(brain, other)["vectors_kept"] == 0
        assert brain.stats()["dimension"] == 256
