"""The contract of a vector engine, and what the engines share: how their addresses are read, how their errors are told.
Texts, words and filters stay in the store of memories; an engine holds numbers, vectors and five fields."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar, NamedTuple
from urllib.parse import SplitResult, parse_qsl, urlsplit

import numpy as np
import numpy.typing as npt

from ..errors import ConfigError, InputError, RemanenceError, StoreUnreachableError, VectorError
from ..filters import Filter

Matrix = npt.NDArray[np.float32]
Vector = npt.NDArray[np.float32]

TOKEN = "RMEM_VECTORS_TOKEN"
NAMES = ("agent", "session", "type", "actor")
_COLLECTION = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,47}")


class Fields(NamedTuple):
    """What an engine may filter by; an empty text stands for none. A memory's number never gets others."""

    agent: str = ""
    session: str = ""
    type: str = ""
    actor: str = ""
    time: float = 0.0


class FieldFilter(NamedTuple):
    """The part of a Filter that is about these fields: one of some names, a time from and to."""

    agent: tuple[str, ...] | None = None
    session: tuple[str, ...] | None = None
    type: tuple[str, ...] | None = None
    actor: tuple[str, ...] | None = None
    since: float | None = None
    until: float | None = None

    @classmethod
    def of(cls, where: Filter) -> FieldFilter:
        return cls(where.agent, where.session, where.type, where.actor, where.since, where.until)

    @property
    def names(self) -> dict[str, list[str]]:
        """The fields that must have one of some names."""
        return {name: list(value) for name in NAMES if (value := getattr(self, name)) is not None}

    def covers(self, where: Filter) -> bool:
        """Whether a Filter asks for nothing else."""
        return where == Filter(**{key: value for key, value in self._asdict().items() if value is not None})


class VectorIndex(ABC):
    """Unit vectors by number. What is upserted or deleted is seen by every later search of this process.

    A number that is upserted again is replaced; deleting what is not there is harmless. An engine that cannot be
    reached raises StoreUnreachableError. `rmem.testing.VectorIndexContract` is the suite.
    """

    name: str
    """Where it is, without secrets; for errors."""
    filters: ClassVar[bool] = True
    """Whether `search` regards its filter. One that does not answers with whatever is nearest."""
    exact: bool = True
    """Whether scores are cosines, to about 0.001."""

    @abstractmethod
    def upsert(self, ids: Sequence[int], vectors: Matrix, fields: Sequence[Fields]) -> None:
        """Keep vectors under their numbers."""

    @abstractmethod
    def delete(self, ids: Sequence[int]) -> None:
        """Remove numbers and their vectors for good."""

    @abstractmethod
    def search(self, vector: Vector, k: int, where: FieldFilter | None = None) -> list[tuple[int, float]]:
        """(number, score) of about the nearest, best first."""

    @abstractmethod
    def clear(self, known: Sequence[int] = ()) -> None:
        """Remove everything; vectors of another dimension may follow. `known` are all numbers that may be there, for
        engines that cannot list them."""

    def count(self) -> int | None:
        """How many vectors there are; None where the engine cannot tell."""
        return None

    def flush(self) -> None:  # noqa: B027 - most engines need none
        """Make what was written survive this process, where that does not happen by itself."""

    def close(self) -> None:  # noqa: B027 - some hold nothing
        """Let go of every resource. Closing twice is harmless."""


def check_batch(name: str, ids: Sequence[int], vectors: Matrix, fields: Sequence[Fields], known: int | None) -> int:
    """Refuse a batch that does not fit itself or the dimension that an index has; its dimension."""
    if vectors.ndim != 2 or not len(ids) == len(vectors) == len(fields):
        raise InputError(
            f"{len(ids)} ids need as many vectors and fields, got {vectors.shape} and {len(fields)}", field="ids"
        )
    check_dimension(name, vectors.shape[1], known)
    return int(vectors.shape[1])


def check_dimension(name: str, given: int, known: int | None) -> None:
    if known is not None and given != known:
        raise VectorError(
            f"{name} holds vectors of {known} numbers, got {given}. Another embedder? `rmem reindex` fills it anew; or "
            "name another collection: …?collection=…",
            field="vector",
        )


@contextmanager
def reaching(name: str) -> Iterator[None]:
    """Tell what an engine's client raises as one error. Clients have dozens of classes and no common base."""
    try:
        yield
    except RemanenceError:
        raise
    except Exception as error:
        told = str(error).strip().partition("\n")[0][:300]
        raise StoreUnreachableError(
            f"the vectors at {name} cannot be reached or used: {type(error).__name__}: {told}. Memories are safe in "
            "the store; what is missing there is filled in when it answers again, or by `rmem reindex`"
        ) from error


class EngineAddress:
    """An address such as qdrant://host:6333?collection=notes, or qdrant:///folder for one without a server."""

    def __init__(self, address: str, collection: str, options: Sequence[str] = ()) -> None:
        try:
            self.parts: SplitResult = urlsplit(address)
            self.port = self.parts.port
        except ValueError as error:
            raise ConfigError(f"the address of vectors is malformed: {error}") from None
        if self.parts.password:
            raise ConfigError(f"the address of vectors must not hold a password, which stores note; set {TOKEN}")
        self.options = dict(parse_qsl(self.parts.query))
        self.collection = self.options.pop("collection", collection)
        if unknown := sorted(self.options.keys() - set(options)):
            known = ", ".join(("collection", *options))
            raise ConfigError(f"{self.parts.scheme}:// takes the options {known}, not {unknown[0]!r}")
        if not _COLLECTION.fullmatch(self.collection):
            raise ConfigError(
                f"collection must be a letter, then up to 47 letters, digits and underscores, got {self.collection!r}"
            )

    @property
    def host(self) -> str:
        return self.parts.hostname or ""

    @property
    def path(self) -> str:
        """`file` of engine:///file, `/file` of engine:////file."""
        return self.parts.path.removeprefix("/")

    @property
    def shown(self) -> str:
        where = f"{self.host}:{self.port}" if self.port else self.host or f"/{self.path}"
        return f"{self.parts.scheme}://{where}?collection={self.collection}"

    def whole(self, option: str, default: int) -> int:
        value = self.options.get(option, str(default))
        if not value.isdecimal() or int(value) < 1:
            raise ConfigError(f"{option} must be a whole number ≥ 1, got {value!r}")
        return int(value)

    def one_of(self, option: str, known: Sequence[str]) -> str:
        """An option that is one of some words, the first if it is not given."""
        value = self.options.get(option, known[0])
        if value not in known:
            raise ConfigError(f"{option} must be one of {', '.join(known)}, got {value!r}")
        return value


def token() -> str | None:
    """The key of the engine, from the environment."""
    return os.environ.get(TOKEN, "").strip() or None
