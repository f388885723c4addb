"""A key-value store searched by meaning: values in a key-value store, the vectors of their texts in a vector index."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from hashlib import blake2b
from itertools import islice

import numpy as np

from .. import checks
from ..embed import EmbedderSpec, embedder_for
from ..embed.base import Embedder, Matrix
from ..errors import ConfigError, StoreUnreachableError
from ..forks import new_rlock
from ..plugins import BUILT_IN, plugin
from ..privacy.choice import PrivacySpec, policy_of
from ..vectors import ACCEPTED, open_vectors
from ..vectors.base import Fields, VectorIndex
from ..vectors.memory import MemoryIndex
from .base import Entry, Hits, KeyedStore, check_query
from .memory import InMemoryStore

log = logging.getLogger(__name__)

_MODELS = {"all-minilm-l6-v2": "minilm", "sentence-transformers/all-minilm-l6-v2": "minilm"}
_BATCH = 512  # texts embedded together


class VectorMemoryStore(KeyedStore):
    """`VectorMemoryStore()`, `VectorMemoryStore("all-MiniLM-L6-v2")` or `VectorMemoryStore(embedder=my_function)`.

        VectorMemoryStore(values=SqliteStore("notes.db"), vectors="milvus://host:19530?collection=notes")

    `embedder` is any that Brain takes. `vectors` is a vector engine as Brain takes it; by default vectors are in this
    process. `values` is the store of the values, by default a dictionary. Vectors that the engine lacks, because it was
    unreachable or is new, are computed again. Without an engine scores are exact cosines. A search returns the nearest
    values, however far they are.
    """

    def __init__(
        self,
        model_name: str | None = None,
        *,
        embedder: EmbedderSpec = None,
        privacy: PrivacySpec = None,
        values: KeyedStore | None = None,
        vectors: str | VectorIndex | None = None,
    ) -> None:
        self.privacy = policy_of(privacy)
        if model_name is not None and embedder is not None:
            raise ConfigError("model_name and embedder must not both be given: they mean the same")
        if model_name is not None:
            checks.name("model_name", model_name)
            embedder = _spec_of(model_name)
        if values is not None and not isinstance(values, KeyedStore):
            raise checks.refuse("values", "a KeyedStore such as SqliteStore", values)
        if vectors is not None and not isinstance(vectors, str | VectorIndex):
            raise checks.refuse("vectors", ACCEPTED, vectors)
        self.model: Embedder = embedder_for(embedder)
        self.values = InMemoryStore() if values is None else values
        self.index = open_vectors(vectors, "rmem_values") if isinstance(vectors, str) else vectors or MemoryIndex()
        self._lock = new_rlock()
        self._key_of: dict[int, str] = {}
        self._missing: dict[str, str] = {}  # keys whose vectors the index lacks, with their texts
        self._unwanted: set[int] = set()  # numbers of removed values that the index still has
        for entry in self.values._all():
            self._key_of[_number(entry.key)] = entry.key
        if self.index.count() != len(self._key_of):
            self._missing = {entry.key: entry.text for entry in self.values._all()}

    @property
    def keys(self) -> list[str]:
        """Return all keys, oldest first."""
        return self._keys()

    @property
    def texts(self) -> list[str]:
        """Return the texts of all values, in the order of `keys`."""
        return [entry.text for entry in self._all()]

    @property
    def embeds(self) -> list[Matrix]:
        """Compute the unit vectors of all values, in the order of `keys`."""
        texts = self.texts
        return list(self._embed(texts)) if texts else []

    def _embed(self, texts: Sequence[str]) -> Matrix:
        return self.model.embed([_replace_surrogates(text) for text in texts])

    def _put(self, entries: Sequence[Entry]) -> None:
        vectors = self._embed([entry.text for entry in entries])  # first: if the embedder fails, nothing is changed
        with self._lock:
            try:
                self._write([entry.key for entry in entries], vectors)  # first: it may refuse the dimension
            except StoreUnreachableError as error:
                log.warning("%s", error)
                self._missing |= {entry.key: entry.text for entry in entries}
            self.values._put(entries)
            self._key_of |= {_number(entry.key): entry.key for entry in entries}

    def _write(self, keys: Sequence[str], vectors: Matrix) -> None:
        """Write vectors to the index. Texts without content have none."""
        held = np.flatnonzero(vectors.any(axis=1)).tolist()
        bare = [_number(key) for at, key in enumerate(keys) if at not in set(held)]
        if bare:
            self.index.delete(bare)
        if held:
            self.index.upsert([_number(keys[at]) for at in held], vectors[held], [Fields()] * len(held))
        for key in keys:
            self._missing.pop(key, None)

    def _catch_up(self) -> None:
        """Add the vectors that the index lacks, and delete those of removed values."""
        if self._unwanted:
            self.index.delete(sorted(self._unwanted))
            self._unwanted.clear()
        while self._missing:
            part = dict(islice(self._missing.items(), _BATCH))
            self._write(list(part), self._embed(list(part.values())))

    def _get_many(self, keys: Sequence[str]) -> list[Entry | None]:
        return self.values._get_many(keys)

    def _keys(self) -> list[str]:
        return self.values._keys()

    def search(self, query: str, top_k: int = 5) -> Hits:
        """Return the nearest values with their cosines; [] for a query without content. While the engine cannot be
        reached, search the values by words."""
        count = check_query(query, top_k)
        if not self._key_of or not query.strip():
            return []
        vector = self.model.embed_query(_replace_surrogates(query))
        if not vector.any():
            return []
        try:
            with self._lock:
                self._catch_up()
            found = self.index.search(vector, count)
        except StoreUnreachableError as error:
            log.warning("%s; values are searched by words", error)
            return list(self.values.search(query, top_k))
        scores = {self._key_of[number]: score for number, score in found if number in self._key_of}
        hits = [
            (entry.key, entry.value, scores[entry.key]) for entry in self._get_many(list(scores)) if entry is not None
        ]
        if hits and not self.index.exact:
            cosines = self._embed([Entry(key, value, {}).text for key, value, _ in hits]) @ vector
            hits = [(key, value, float(score)) for (key, value, _), score in zip(hits, cosines, strict=True)]
            hits.sort(key=lambda hit: -hit[2])
        return hits

    def _forget(self, key: str) -> bool:
        with self._lock:
            gone = self.values._forget(key)
            self._missing.pop(key, None)
            number = _number(key)
            if self._key_of.pop(number, None) is None:
                return gone
            try:
                self.index.delete([number])
            except StoreUnreachableError as error:
                self._unwanted.add(number)
                log.warning("%s", error)
            return gone

    def close(self) -> None:
        self.index.close()
        self.values.close()


def _spec_of(model_name: str) -> str:
    """Return the embedder of a model name, which is one of ours, of a plugin, or of SentenceTransformers as in the
    guide."""
    known = _MODELS.get(model_name.lower())
    if known is not None:
        return known
    kind = model_name.partition(":")[0]
    ours = kind in BUILT_IN["embedder"] or plugin("embedder", kind) is not None
    return model_name if ours else f"sentence-transformers:{model_name}"


def _number(key: str) -> int:
    """Return the number of a key in the index: the same in every process."""
    return int.from_bytes(blake2b(key.encode("utf-8", "replace"), digest_size=8).digest(), "big") >> 1


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which tokenizers reject."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
