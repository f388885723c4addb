"""Text to vectors: choosing an embedder by name. Each kind loads its libraries only when it is used."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from rmem.embed.base import Embedder, Matrix, Vector
from rmem.errors import ConfigError, EmbedderError, RemanenceError

if TYPE_CHECKING:
    from rmem.embed.static import StaticEmbedder
    from rmem.plugins import Plugin

__all__ = [
    "Embedder",
    "Matrix",
    "Vector",
    "embedder_for",
    "embedder_of_store",
    "question_vectors",
    "spec_of",
    "static_embedder",
    "word_vectors",
]

EmbedderSpec = str | Embedder | Callable[[list[str]], Any] | None

_KNOWN = (
    "static (the default), minilm, onnx:FOLDER, sentence-transformers:NAME, ollama:MODEL, http:MODEL@URL, "
    "http (set RMEM_EMBED_MODEL and RMEM_EMBED_URL), the name of a plugin, an Embedder, or a function from a list of "
    "texts to a list of vectors"
)


def embedder_for(spec: EmbedderSpec = None) -> Embedder:
    """Return the embedder that `spec` names; None means the environment's RMEM_EMBEDDER, or "static".

    >>> embedder_for("static").name
    'static:minilm-256'
    """
    if isinstance(spec, Embedder):
        return spec
    name = spec_of(spec)
    if name is not None:
        return _from_name(name)
    if callable(spec) and not isinstance(spec, type):
        from rmem.embed.function import FunctionEmbedder

        return FunctionEmbedder(spec)
    raise ConfigError(f"embedder must be one of: {_KNOWN}; got {spec!r}")


def embedder_of_store(spec: EmbedderSpec, known: str | None) -> Embedder:
    """Return the embedder for a store that holds vectors of the embedder named `known`. If that is an earlier table of
    the static embedder, warn and return a RetiredEmbedder."""
    embedder = embedder_for(spec)
    if known is None or known == embedder.name or spec_of(spec) != "static":
        return embedder
    from rmem.embed.static import RETIRED, RetiredEmbedder

    if known not in RETIRED:
        return embedder
    warnings.warn(
        f"this store holds vectors of {known!r}, an earlier table of the static embedder: it is searched by words "
        "alone until `rmem reindex` embeds it again",
        FutureWarning,
        stacklevel=4,
    )
    return RetiredEmbedder(known)


def spec_of(spec: EmbedderSpec) -> str | None:
    """Return the name by which `embedder_for` finds this embedder again; None for an object or a function."""
    if spec is None:
        return os.environ.get("RMEM_EMBEDDER", "").strip() or "static"
    return spec if isinstance(spec, str) else None


def _from_name(spec: str) -> Embedder:
    kind, _, rest = spec.partition(":")
    if spec == "static":
        return static_embedder()
    if spec == "minilm":
        return _minilm()
    if kind == "onnx" and rest:
        from rmem.embed.onnx import OnnxEmbedder

        return OnnxEmbedder(rest)
    if kind == "http":
        from rmem.embed.http import HttpEmbedder

        return HttpEmbedder.from_spec(spec)
    if kind == "ollama":
        from rmem.embed.http import ollama

        return ollama(rest)
    if kind == "sentence-transformers":
        return _sentence_transformer(rest)
    from rmem.plugins import plugin

    found = plugin("embedder", kind)
    if found is None:
        raise ConfigError(f"unknown embedder {spec!r}; known are: {_KNOWN}")
    return _from_plugin(found, rest)


def _from_plugin(plugin: Plugin, rest: str) -> Embedder:
    from rmem.plugins import reason

    make = plugin.load()
    who = f"the embedder plugin {plugin.name!r} of {plugin.origin}"
    try:
        embedder = make(rest)
    except RemanenceError:
        raise
    except Exception as error:
        raise EmbedderError(f"{who} failed: {reason(error)}") from error
    if not isinstance(embedder, Embedder):
        raise ConfigError(f"{who} must return an Embedder, but returned a {type(embedder).__name__}")
    return embedder


@cache
def static_embedder() -> StaticEmbedder:
    """Return the one static embedder of the process: every store and agent shares its table."""
    from rmem.embed.static import StaticEmbedder

    return StaticEmbedder()


def word_vectors(words: Sequence[str]) -> Matrix:
    """Embed single words for soft matching, always with the static embedder."""
    return static_embedder().word_vectors(words)


def question_vectors(questions: Sequence[str]) -> Matrix:
    """Embed questions to compare them with each other, always with the static embedder."""
    return static_embedder().embed(questions)


@cache
def _sentence_transformer(name: str) -> Embedder:
    from rmem.embed.sentence import SentenceTransformerEmbedder

    return SentenceTransformerEmbedder(name)


@cache
def _minilm() -> Embedder:
    from rmem.embed.onnx import minilm

    return minilm()
