"""A key-value store searched by meaning: each value has the vector of its text, compared one by one with the
query's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .. import checks
from ..embed import EmbedderSpec, embedder_for
from ..embed.base import Embedder, Matrix
from ..errors import ConfigError
from ..forks import new_rlock
from ..index.bits import top
from ..privacy.choice import PrivacySpec, policy_of
from .base import Entry, Hits, KeyedStore, check_query, copy_value

_MODELS = {"all-minilm-l6-v2": "minilm", "sentence-transformers/all-minilm-l6-v2": "minilm"}
_FIRST_ROWS = 64  # allocated for the first value


class VectorMemoryStore(KeyedStore):
    """`VectorMemoryStore()`, `VectorMemoryStore("all-MiniLM-L6-v2")` or `VectorMemoryStore(embedder=my_function)`.

    `embedder` is any that Brain takes: "static" (the default), "minilm", "onnx:PATH", "http:MODEL@URL", an Embedder or
    a function from a list of texts to a list of vectors. Scores are exact cosines; a search
    returns the nearest values however low their score.
    """

    def __init__(
        self, model_name: str | None = None, *, embedder: EmbedderSpec = None, privacy: PrivacySpec = None
    ) -> None:
        self.privacy = policy_of(privacy)
        if model_name is not None and embedder is not None:
            raise ConfigError("model_name and embedder must not both be given: they mean the same")
        if model_name is not None:
            checks.name("model_name", model_name)
            embedder = _MODELS.get(model_name.lower(), model_name)
        self.model: Embedder = embedder_for(embedder)
        self._lock = new_rlock()
        self._row_of: dict[str, int] = {}  # oldest key first
        self._entries: dict[int, Entry] = {}
        self._free: list[int] = []
        self._matrix: Matrix = np.zeros((0, 0), np.float32)
        self._used: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)

    @property
    def keys(self) -> list[str]:
        """Return all keys, oldest first."""
        return self._keys()

    @property
    def texts(self) -> list[str]:
        """Return the texts of all values, in the order of `keys`."""
        return [one.text for one in self._all()]

    @property
    def embeds(self) -> list[Matrix]:
        """Return the unit vectors of all values, in the order of `keys`."""
        with self._lock:
            return [self._matrix[row].copy() for row in self._row_of.values()]

    def _put(self, entries: Sequence[Entry]) -> None:
        vectors = self.model.embed([_replace_surrogates(one.text) for one in entries])
        with self._lock:
            for one, vector in zip(entries, vectors, strict=True):
                row = self._row_of.get(one.key)
                if row is None:
                    row = self._new_row(vector.size)
                    self._row_of[one.key] = row
                self._entries[row] = one
                self._matrix[row] = vector
                self._used[row] = bool(vector.any())

    def _new_row(self, dimension: int) -> int:
        if self._free:
            return self._free.pop()
        row = len(self._entries)
        if row >= len(self._matrix):
            larger = np.zeros((max(_FIRST_ROWS, 2 * row), dimension), np.float32)
            larger[:row] = self._matrix[:row] if row else 0
            self._matrix = larger
            self._used = np.concatenate([self._used, np.zeros(len(larger) - len(self._used), np.bool_)])
        return row

    def _get_many(self, keys: Sequence[str]) -> list[Entry | None]:
        with self._lock:
            found = [self._entries.get(self._row_of.get(key, -1)) for key in keys]
        return [None if one is None else Entry(one.key, copy_value(one.value), copy_value(one.meta)) for one in found]

    def _keys(self) -> list[str]:
        with self._lock:
            return list(self._row_of)

    def search(self, query: str, top_k: int = 5) -> Hits:
        """Return the nearest values with their cosines; none for a blank query."""
        count = check_query(query, top_k)
        if not self._row_of or not query.strip():
            return []
        vector = self.model.embed_query(_replace_surrogates(query))
        if not vector.any():
            return []
        with self._lock:
            size = len(self._entries) + len(self._free)
            scores = self._matrix[:size] @ vector
            rows = np.flatnonzero(self._used[:size])
            best = rows[top(scores[rows], count)] if rows.size else rows
            found = [(self._entries[row], float(scores[row])) for row in best.tolist()]
        return [(one.key, copy_value(one.value), score) for one, score in found]

    def _forget(self, key: str) -> bool:
        with self._lock:
            row = self._row_of.pop(key, None)
            if row is None:
                return False
            del self._entries[row]
            self._used[row] = False
            self._matrix[row] = 0
            self._free.append(row)
            return True


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which tokenizers reject."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
