"""The contract of a vector engine, with the parsing of addresses and the error handling that all engines share. Texts
and words stay in the store; an engine holds numbers, vectors and five fields."""

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

TOKEN_VARIABLE = "RMEM_VECTORS_TOKEN"
NAME_FIELDS = ("agent", "session", "type", "actor")
_COLLECTION = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,47}")


class Fields(NamedTuple):
    """The fields that an engine may filter by; "" means none. They never change for a number."""

    agent: str = ""
    session: str = ""
    type: str = ""
    actor: str = ""
    time: float = 0.0


class FieldFilter(NamedTuple):
    """The part of a Filter that concerns these fields: allowed names, and a range of time."""

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
        """Return the allowed names of each field that is restricted."""
        return {name: list(value) for name in NAME_FIELDS if (value := getattr(self, name)) is not None}

    def covers(self, where: Filter) -> bool:
        """Whether a Filter restricts no other field."""
        return where == Filter(**{key: value for key, value in self._asdict().items() if value is not None})


class VectorIndex(ABC):
    """Unit vectors by number. Every later search of this process sees what was upserted or deleted.

    Upserting a number again replaces it; deleting an absent number does nothing. Raise StoreUnreachableError if the
    engine cannot be reached. `rmem.testing.VectorIndexContract` is the test suite.
    """

    name: str
    """The address without secrets, for error messages."""
    filters: ClassVar[bool] = True
    """Whether `search` applies its filter. If False, it returns the nearest regardless of the filter."""
    exact: bool = True
    """Whether scores are cosines, to about 0.001."""

    @abstractmethod
    def upsert(self, ids: Sequence[int], vectors: Matrix, fields: Sequence[Fields]) -> None:
        """Store vectors under their numbers."""

    @abstractmethod
    def delete(self, ids: Sequence[int]) -> None:
        """Remove numbers and their vectors permanently."""

    @abstractmethod
    def search(self, vector: Vector, k: int, where: FieldFilter | None = None) -> list[tuple[int, float]]:
        """Return (number, score) of the approximately nearest, best first."""

    @abstractmethod
    def clear(self, known: Sequence[int] = ()) -> None:
        """Remove everything, so that vectors of another dimension can be stored. `known` are all numbers that may be
        present, for engines that cannot list them."""

    def count(self) -> int | None:
        """Return the number of vectors; None if the engine cannot count them."""
        return None

    def flush(self) -> None:  # noqa: B027 - most engines need none
        """Make written vectors durable, if the engine does not do so itself."""

    def close(self) -> None:  # noqa: B027 - some hold nothing
        """Release all resources. Closing twice is harmless."""


def check_batch(name: str, ids: Sequence[int], vectors: Matrix, fields: Sequence[Fields], known: int | None) -> int:
    """Check that a batch is consistent and has the dimension `known` of the index, if any; return its dimension."""
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
def translate_errors(name: str) -> Iterator[None]:
    """Raise all errors of an engine's client as StoreUnreachableError: clients have no common base class."""
    try:
        yield
    except RemanenceError:
        raise
    except Exception as error:
        message = str(error).strip().partition("\n")[0][:300]
        raise StoreUnreachableError(
            f"the vectors at {name} cannot be reached or used: {type(error).__name__}: {message}. Check that it runs "
            f"and that {TOKEN_VARIABLE} holds its key, if it has one. Memories are safe in the store; what is missing "
            "there is filled in when it answers again, or by `rmem reindex`"
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
            raise ConfigError(
                f"the address of vectors must not hold a password, which stores note; set {TOKEN_VARIABLE}"
            )
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

    def positive_int(self, option: str, default: int) -> int:
        value = self.options.get(option, str(default))
        if not value.isdecimal() or int(value) < 1:
            raise ConfigError(f"{option} must be a whole number ≥ 1, got {value!r}")
        return int(value)

    def choice(self, option: str, known: Sequence[str]) -> str:
        """Return an option that must be one of `known`; the first of them if it is not given."""
        value = self.options.get(option, known[0])
        if value not in known:
            raise ConfigError(f"{option} must be one of {', '.join(known)}, got {value!r}")
        return value


def read_token() -> str | None:
    """Read the password or API key of the engine from the environment."""
    return os.environ.get(TOKEN_VARIABLE, "").strip() or None
