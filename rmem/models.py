"""The records that every part speaks of: a Memory, with the structure of the Agent Memory API, and a Hit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import checks
from .contents import without_attachments
from .errors import InputError

if TYPE_CHECKING:
    from .judgements import Recall
    from .recall.explain import Explanation

TIERS = ("stm", "im", "ltm")
_MOST_RECALLS = 1_000_000  # of one memory, as a file may tell

Vector = npt.NDArray[np.float32]


@dataclass(slots=True)
class Metadata:
    """A memory's own bookkeeping. The caller's data is in `Memory.contents`."""

    creation_time: float = 0.0
    last_access_time: float = 0.0
    compression_level: int = 0
    importance_score: float = 0.5
    retrieval_count: int = 0
    memory_type: str = "memory"


@dataclass(slots=True, eq=False, repr=False)
class Embeddings:
    """One vector for each resolution: short-term, intermediate, long-term."""

    full_vector: Vector | None = None
    compressed_vector: Vector | None = None
    abstract_vector: Vector | None = None

    def __repr__(self) -> str:
        sizes = {f.name: getattr(self, f.name).size for f in fields(self) if getattr(self, f.name) is not None}
        return f"Embeddings({', '.join(f'{name}=<{size} numbers>' for name, size in sizes.items())})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Embeddings):
            return NotImplemented
        return all(_same(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))


def _same(left: Vector | None, right: Vector | None) -> bool:
    if left is None or right is None:
        return left is right
    return np.array_equal(left, right)


@dataclass(slots=True)
class Memory:
    """One memory. The first seven fields are the documented structure; the rest is how it can be found.

    `remember(..., metadata={…})` keeps the caller's data in `contents` beside the text; `metadata` is the
    record's own bookkeeping, as the document has it.
    """

    memory_id: str
    agent_id: str
    step_number: int
    timestamp: float
    contents: dict[str, Any]
    metadata: Metadata = field(default_factory=Metadata)
    embeddings: Embeddings = field(default_factory=Embeddings)
    text: str = ""
    session: str | None = None
    actor: str | None = None
    tags: dict[str, str] = field(default_factory=dict)
    tier: str = "stm"
    position: tuple[float, ...] | None = None
    place: str | None = None

    @property
    def id(self) -> str:
        return self.memory_id

    @property
    def type(self) -> str:
        return self.metadata.memory_type

    @property
    def importance(self) -> float:
        return self.metadata.importance_score

    def copied(self) -> Memory:
        """A record of its own that shares the parts; `dataclasses.replace` takes five times as long."""
        return Memory(
            self.memory_id,
            self.agent_id,
            self.step_number,
            self.timestamp,
            self.contents,
            self.metadata,
            self.embeddings,
            self.text,
            self.session,
            self.actor,
            self.tags,
            self.tier,
            self.position,
            self.place,
        )

    def document(self) -> dict[str, Any]:
        """The documented structure, exactly its keys, ready for JSON."""
        kept, vectors = self.metadata, self.embeddings
        return {
            "memory_id": self.memory_id,
            "agent_id": self.agent_id,
            "step_number": self.step_number,
            "timestamp": self.timestamp,
            "contents": self.contents,
            "metadata": {
                "creation_time": kept.creation_time,
                "last_access_time": kept.last_access_time,
                "compression_level": kept.compression_level,
                "importance_score": kept.importance_score,
                "retrieval_count": kept.retrieval_count,
                "memory_type": kept.memory_type,
            },
            "embeddings": {
                "full_vector": None if vectors.full_vector is None else vectors.full_vector.tolist(),
                "compressed_vector": None if vectors.compressed_vector is None else vectors.compressed_vector.tolist(),
                "abstract_vector": None if vectors.abstract_vector is None else vectors.abstract_vector.tolist(),
            },
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON; `Memory.from_dict` reads it back."""
        extra = {key: getattr(self, key) for key in _EXTRA}
        extra["position"] = list(self.position) if self.position is not None else None
        return {**self.document(), **extra}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Memory:
        """The reverse of `to_dict`; every field is checked and unknown ones are refused."""
        if not isinstance(data, Mapping):
            raise checks.refuse("memory", "a mapping", data)
        checks.known_fields("a memory", data, [f.name for f in fields(cls)])
        for key in ("memory_id", "agent_id", "step_number", "timestamp", "contents"):
            if key not in data:
                raise InputError(f"a memory must have the field {key!r}", field=key)
        for key in ("metadata", "embeddings"):
            if data.get(key) is not None and not isinstance(data[key], Mapping):
                raise checks.refuse(key, "a mapping", data[key])
        body = _read_metadata(data.get("metadata") or {})
        vectors = data.get("embeddings") or {}
        checks.known_fields("embeddings", vectors, [f.name for f in fields(Embeddings)])
        contents = checks.json_object("contents", data["contents"])
        written = data.get("text") or contents.get("text")
        return cls(
            memory_id=checks.memory_id("memory_id", data["memory_id"]),
            agent_id=checks.name("agent_id", data["agent_id"]),
            step_number=checks.whole("step_number", data["step_number"]),
            timestamp=checks.moment("timestamp", data["timestamp"]),
            contents=contents,
            metadata=body,
            embeddings=Embeddings(
                **{
                    key: checks.vector(f"embeddings.{key}", value, low=8 if key == "full_vector" else 1)
                    for key, value in vectors.items()
                    if value is not None
                }
            ),
            text=checks.text("text", written),
            session=_optional_name("session", data.get("session")),
            actor=_optional_name("actor", data.get("actor")),
            tags=checks.labels("tags", {} if data.get("tags") is None else data["tags"]),
            tier=checks.one_of("tier", data.get("tier", "stm"), TIERS),
            position=None if data.get("position") is None else checks.point("position", data["position"]),
            place=_optional_name("place", data.get("place")),
        )


_EXTRA = ("text", "session", "actor", "tags", "tier", "position", "place")


def _optional_name(field_name: str, value: object) -> str | None:
    return None if value is None else checks.name(field_name, value)


def _read_metadata(data: Mapping[str, Any]) -> Metadata:
    checks.known_fields("metadata", data, [f.name for f in fields(Metadata)])
    default = Metadata()
    return Metadata(
        creation_time=checks.moment("creation_time", data.get("creation_time", default.creation_time)),
        last_access_time=checks.moment("last_access_time", data.get("last_access_time", default.last_access_time)),
        compression_level=checks.whole("compression_level", data.get("compression_level", 0)),
        importance_score=checks.share("importance_score", data.get("importance_score", default.importance_score)),
        retrieval_count=checks.whole("retrieval_count", data.get("retrieval_count", 0), high=_MOST_RECALLS),
        memory_type=checks.name("memory_type", data.get("memory_type", default.memory_type)),
    )


@dataclass(slots=True)
class Hit:
    """A memory that answers a question, and how well."""

    memory: Memory
    score: float
    explanation: Explanation | None = None
    rank: int = 0
    recall: Recall | None = field(default=None, repr=False, compare=False)

    @property
    def text(self) -> str:
        return self.memory.text

    @property
    def recall_id(self) -> str | None:
        return None if self.recall is None else self.recall.id

    def useful(self, useful: bool = True) -> None:
        """Tell the store that this hit helped, or that it did not; `rmem eval online` reads it."""
        if self.recall is None:
            raise InputError("hit must come from Brain.recall", field="hit")
        self.recall.tell(self.recall.of_hit(self, useful))

    def to_dict(self) -> dict[str, Any]:
        """The hit for JSON, without its vectors and attachments."""
        memory = self.memory.to_dict()
        del memory["embeddings"]
        memory["contents"] = without_attachments(memory["contents"])
        result: dict[str, Any] = {"score": self.score, "memory": memory}
        if self.explanation is not None:
            result["explanation"] = self.explanation.to_dict()
        return result


class Hits(list[Hit]):
    """What a recall found, best first: a list that knows which recall it was, even when it is empty."""

    def __init__(self, hits: Iterable[Hit], recall: Recall) -> None:
        super().__init__(hits)
        self.recall = recall
        recall.found(self)

    @property
    def recall_id(self) -> str:
        return self.recall.id

    def useless(self) -> None:
        """Tell the store that nothing here helped."""
        self.recall.tell(self.recall.of_all(False))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (list(self), self.recall)
