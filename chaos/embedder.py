"""A fast embedder with another dimension than the built-in ones, installed as the plugin "chaos":
`rmem reindex --embedder chaos` changes the dimension of a store while it is used."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rmem.embed.function import FunctionEmbedder

DIMENSION = 96


def make(_: str = "") -> FunctionEmbedder:
    return FunctionEmbedder(_embed, name="chaos", dimension=DIMENSION)


def _embed(texts: list[str]) -> list[npt.NDArray[Any]]:
    return [sum(map(_word_vector, text.split()), np.full(DIMENSION, 0.01)) for text in texts]


def _word_vector(text: str) -> npt.NDArray[np.float64]:
    return np.random.default_rng(zlib.crc32(text.encode())).normal(size=DIMENSION)


def install(folder: Path) -> None:
    """Install the plugin for processes that have `folder` on their PYTHONPATH."""
    info = folder / "chaos_embedder-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: chaos-embedder\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[rmem.embedders]\nchaos = {__name__}:make\n")
