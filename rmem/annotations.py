"""Types for callers of Brain: what arguments may be, and the dictionaries that go in and out. Nothing runs here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Required, TypeAlias, TypedDict, Union

if TYPE_CHECKING:
    from .filters import Filter
    from .models import Hit, Memory, Vector

Mode: TypeAlias = Literal["hybrid", "lexical", "vector"]
Tier: TypeAlias = Literal["stm", "im", "ltm"]
Durability: TypeAlias = Literal["full", "normal"]
Moment: TypeAlias = datetime | float | str
Names: TypeAlias = str | Sequence[str]
VectorLike: TypeAlias = Union[Sequence[float], "Vector"]
MemoryOrId: TypeAlias = Union[str, "Memory", "Hit"]


class Changes(TypedDict, total=False):
    """The fields that `update` can change."""

    text: str
    type: str
    session: str | None
    actor: str | None
    tags: Mapping[str, Any]
    importance: float
    when: Moment
    metadata: Mapping[str, Any]
    step: int
    position: Sequence[float] | None
    place: str | None
    vector: VectorLike
    tier: Tier


class NewMemory(TypedDict, total=False):
    """The arguments of `remember`, as `remember_many` takes them: `items: list[NewMemory] = [{"text": "…"}]`."""

    text: Required[str]
    agent: str
    type: str
    session: str | None
    actor: str | None
    tags: Mapping[str, Any] | None
    importance: float
    when: Moment | None
    metadata: Mapping[str, Any] | None
    step: int | None
    position: Sequence[float] | None
    place: str | None
    vector: VectorLike | None
    id: str | None
    tier: Tier


class FilterFields(TypedDict, total=False):
    """A filter as a dictionary."""

    agent: Names
    type: Names
    session: Names
    actor: Names
    place: Names
    tier: Tier | Sequence[Tier]
    tags: Mapping[str, Names]
    attributes: Mapping[str, Any]
    min_step: int
    max_step: int
    since: Moment
    until: Moment
    min_importance: float
    max_importance: float
    box: tuple[Sequence[float], Sequence[float]]
    near: Sequence[float]
    radius: float


Where: TypeAlias = Union["Filter", FilterFields, Mapping[str, Any]]


class Stats(TypedDict):
    """The statistics of a store, from `Brain.stats`."""

    address: str
    embedder: str | None
    memories: int
    by_agent: dict[str, int]
    by_type: dict[str, int]
    by_tier: dict[str, int]
    sessions: int
    oldest: float | None
    newest: float | None
    vectors: int
    dimension: int | None
    words: int
    encrypted: int
    unreadable: int
    segments: int
    bytes: int
