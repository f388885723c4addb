"""Check the vectors of memories: shape, type, finite numbers, unit length, the store's dimension and embedder. All
stores use these functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .. import checks
from ..errors import EmbedderMismatchError
from ..index.bits import unit
from ..models import Memory

Vector = npt.NDArray[np.float32]

_TOLERANCE = 1e-3  # of the squared length of a unit vector


class EmbedderIdentity(NamedTuple):
    """The embedder of some vectors: its name, and the specification by which it can be loaded again."""

    name: str
    spec: str | None

    def check(self, known: str | None) -> None:
        """Refuse to mix these vectors with those of the embedder that a store knows."""
        if known is not None and known != self.name:
            raise EmbedderMismatchError(
                f"this store holds vectors of {known!r}, not of {self.name!r}; open it with the embedder it has, "
                "or re-embed it with `rmem reindex --embedder …`"
            )


def first_vector(memories: Iterable[Memory]) -> Vector | None:
    """Return the first full vector of some memories."""
    return next((m.embeddings.full_vector for m in memories if m.embeddings.full_vector is not None), None)


def check_vectors(memories: Sequence[Memory], dimension: int | None = None) -> None:
    """Refuse vectors that do not fit each other or the dimension; scale the others to unit length."""
    if len(memories) == 1 and _is_sound(memories[0].embeddings.full_vector, dimension):
        return
    if _all_sound([memory.embeddings.full_vector for memory in memories], dimension):
        return
    for memory in memories:
        vector = memory.embeddings.full_vector
        if vector is not None:
            checked = checks.vector("vector", vector, dimension=dimension)
            dimension = checked.size
            if abs(float(checked @ checked) - 1) > _TOLERANCE:
                memory.embeddings = replace(memory.embeddings, full_vector=unit(checked[None, :])[0])


def check_dimension(vectors: Iterable[Vector], dimension: int | None) -> None:
    """Refuse vectors of another dimension than that of the store."""
    for vector in vectors:
        checks.vector("vector", vector, dimension=dimension)


def check_vector_format(
    given: Vector | None, known: Mapping[str, str], owner: EmbedderIdentity | None
) -> dict[str, str]:
    """Refuse a vector that is not of the format that a store knows; return the facts that describe it.

    `known` holds the facts `embedder` and `dimension` of the store, as far as it has vectors. Without a vector at hand
    only the embedder is compared.
    """
    facts: dict[str, str] = {}
    if owner is not None:
        owner.check(known.get("embedder"))
        facts["embedder"] = owner.name
        if owner.spec is not None:
            facts["embedder_spec"] = owner.spec
    if given is not None:
        if "dimension" in known:
            check_dimension([given], int(known["dimension"]))
        facts["dimension"] = str(given.size)
    return facts


def _all_sound(vectors: Sequence[Vector | None], dimension: int | None) -> bool:
    """Whether all exist, have the dimension and unit length; a fast check of many. If False, check each."""
    given = [vector for vector in vectors if isinstance(vector, np.ndarray) and vector.dtype == np.float32]
    shapes = {vector.shape for vector in given} | ({(dimension,)} if dimension is not None else set())
    if not given or len(given) < len(vectors) or len(shapes) != 1:
        return False
    matrix = np.stack(given)
    if matrix.ndim != 2 or not checks.MIN_DIMENSION <= matrix.shape[1] <= checks.MAX_DIMENSION:
        return False
    lengths = np.einsum("ij,ij->i", matrix, matrix)
    return bool((np.abs(lengths - 1) <= _TOLERANCE).all())  # False for infinity and NaN


def _is_sound(vector: Vector | None, dimension: int | None) -> bool:
    """Whether a vector exists, has the dimension and unit length."""
    return (
        isinstance(vector, np.ndarray)
        and vector.dtype == np.float32
        and vector.ndim == 1
        and (
            checks.MIN_DIMENSION <= vector.size <= checks.MAX_DIMENSION
            if dimension is None
            else vector.size == dimension
        )
        and abs(float(vector @ vector) - 1) <= _TOLERANCE
    )
