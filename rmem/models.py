"""The records that every part uses: Memory, with the structure of the Agent Memory API, Hit, and lists of both. How
lists print and become tables is in `display`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from . import checks
from .contents import ATTACHMENTS, EARLIER, own_contents
from .earlier_texts import EarlierText, earlier_texts
from .errors import InputError
from .fields import Field, compile_function, declared_fields, stored

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from .feedback import Recall
    from .recall.explain import Explanation

TIERS = ("stm", "im", "ltm")
_MAX_RECALLS = 1_000_000  # of one memory that an imported file may claim

_SHOWN = 60  # characters of one field in a repr

Vector = npt.NDArray[np.float32]


@dataclass(slots=True)
class Bookkeeping:
    """What the store records about a memory; `document()` and JSON call it "metadata", as the documented structure
    does."""

    creation_time: float = field(
        default=0.0, metadata=stored(checks.moment, bound=checks.common_time, column="created", slot=1)
    )
    last_access_time: float = field(default=0.0, metadata=stored(checks.moment, bound=checks.common_time))
    compression_level: int = field(default=0, metadata=stored(checks.whole, column="level"))
    importance_score: float = field(
        default=0.5, metadata=stored(checks.share, argument="importance", column="importance", slot=2)
    )
    retrieval_count: int = field(default=0, metadata=stored(partial(checks.whole, high=_MAX_RECALLS)))
    memory_type: str = field(default="memory", metadata=stored(checks.name, argument="type", column="type", slot=3))


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


@dataclass(slots=True, repr=False)
class Memory:
    """One memory. The arguments of `remember` are attributes: `memory.agent`, `memory.metadata`.

    The first seven fields are the documented structure of the Agent Memory API; the rest is how it can be found.
    `contents` holds the text and the caller's metadata together, `bookkeeping` what the store notes about it.
    """

    memory_id: str = field(
        metadata=stored(checks.memory_id, bound=checks.no_path, argument="id", fixed=True, filled=True, column="id")
    )
    agent_id: str = field(  # which begins the id of a memory that is given none
        metadata=stored(checks.name, bound=checks.no_path, argument="agent", fixed=True, column="agent")
    )
    step_number: int = field(metadata=stored(checks.whole, argument="step", filled=True, column="step"))
    timestamp: float = field(
        metadata=stored(checks.moment, bound=checks.common_time, argument="when", filled=True, column="time", slot=0)
    )
    contents: dict[str, Any] = field(metadata=stored(checks.json_object, argument="metadata", filled=True, slot=11))
    bookkeeping: Bookkeeping = field(default_factory=Bookkeeping)
    embeddings: Embeddings = field(default_factory=Embeddings)
    text: str = field(default="", metadata=stored(checks.text, argument="text", slot=10))
    session: str | None = field(
        default=None, metadata=stored(checks.name, argument="session", column="session", slot=5)
    )
    actor: str | None = field(default=None, metadata=stored(checks.name, argument="actor", column="actor", slot=6))
    tags: dict[str, str] = field(
        default_factory=dict, metadata=stored(checks.labels, argument="tags", filled=True, slot=9)
    )
    tier: str = field(
        default="stm", metadata=stored(partial(checks.one_of, choices=TIERS), argument="tier", column="tier", slot=4)
    )
    position: tuple[float, ...] | None = field(
        default=None, metadata=stored(checks.point, argument="position", column="position", slot=8)
    )
    place: str | None = field(default=None, metadata=stored(checks.name, argument="place", column="place", slot=7))

    @property
    def id(self) -> str:
        return self.memory_id

    @property
    def agent(self) -> str:
        return self.agent_id

    @property
    def step(self) -> int:
        return self.step_number

    @property
    def when(self) -> datetime:
        """Return when it happened, as local time with its zone."""
        return datetime.fromtimestamp(self.timestamp).astimezone()

    @property
    def type(self) -> str:
        return self.bookkeeping.memory_type

    @property
    def importance(self) -> float:
        return self.bookkeeping.importance_score

    @property
    def metadata(self) -> dict[str, Any]:
        """Return the caller's own data as a new dictionary: contents without text, earlier texts and attachments."""
        return {key: value for key, value in self.contents.items() if key not in ("text", ATTACHMENTS, EARLIER)}

    @property
    def earlier(self) -> list[EarlierText]:
        """Return what it said before it was edited, the oldest first; `update(…, text=…)` restores one."""
        return earlier_texts(self.contents)

    @property
    def vector(self) -> Vector | None:
        return self.embeddings.full_vector

    def __repr__(self) -> str:
        return f"Memory({describe(self)})"

    def _repr_html_(self) -> str:
        from .display import html_of_memory

        return html_of_memory(self)

    def copied(self) -> Memory:
        """Return a shallow copy; `dataclasses.replace` takes five times as long."""
        return _copied(self)

    def check_bounds(self) -> None:
        """Refuse a memory that comes in with a value beyond the bounds of its field."""
        for spec in _BOUNDED:
            spec.check_new(spec.name, attrgetter(spec.path)(self))

    def document(self) -> dict[str, Any]:
        """Return the documented structure with exactly its keys, for JSON."""
        whole = self.to_dict()
        return {name: whole[name] for name in _DOCUMENTED}

    def to_dict(self, *, vectors: bool = True) -> dict[str, Any]:
        """Return all fields for JSON; `Memory.from_dict` reads them back. Without `vectors`, omit the embeddings."""
        document = _to_json_fields(self)
        if vectors:
            held = self.embeddings
            document["embeddings"] = {
                name: None if (vector := getattr(held, name)) is None else vector.tolist() for name in VECTORS
            }
        return document

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Memory:
        """Reverse `to_dict`; check every field and refuse unknown ones."""
        if not isinstance(data, Mapping):
            raise checks.refuse("memory", "a mapping", data)
        checks.known_fields("a memory", data, _JSON_NAMES)
        for spec in FIELDS:
            if spec.required and spec.name not in data:
                raise InputError(f"a memory must have the field {spec.name!r}", field=spec.name)
        for key in ("metadata", "embeddings"):
            if data.get(key) is not None and not isinstance(data[key], Mapping):
                raise checks.refuse(key, "a mapping", data[key])
        body, vectors = data.get("metadata") or {}, data.get("embeddings") or {}
        checks.known_fields("metadata", body, _BOOKKEEPING_NAMES)
        checks.known_fields("embeddings", vectors, VECTORS)
        read = {spec.name: spec.read(data) for spec in FIELDS if spec.name != "text"}
        return cls(
            **read,
            bookkeeping=Bookkeeping(*(spec.read(body) for spec in BOOKKEEPING)),
            embeddings=Embeddings(
                **{
                    key: checks.vector(f"embeddings.{key}", value, low=8 if key == "full_vector" else 1)
                    for key, value in vectors.items()
                    if value is not None
                }
            ),
            text=checks.text("text", data.get("text") or read["contents"].get("text")),
        )


FIELDS: tuple[Field, ...] = declared_fields(Memory)
"""The fields of a memory, without its bookkeeping and embeddings."""
BOOKKEEPING: tuple[Field, ...] = declared_fields(Bookkeeping, "bookkeeping")
"""The fields of its bookkeeping, which JSON calls "metadata"."""
_BOUNDED = [field for field in (*FIELDS, *BOOKKEEPING) if field.stored.bound is not None]
VECTORS = tuple(field.name for field in fields(Embeddings))
_NAMES = tuple(field.name for field in fields(Memory))
_BOOKKEEPING_NAMES = tuple(field.name for field in BOOKKEEPING)
_JSON_NAMES = tuple("metadata" if name == "bookkeeping" else name for name in _NAMES)
_DOCUMENTED = _JSON_NAMES[: _NAMES.index("embeddings") + 1]
_copied: Callable[[Memory], Memory] = compile_function(
    ["m"], f"Memory({', '.join(f'm.{n}' for n in _NAMES)})", Memory=Memory
)


def _json_expression(field: Field) -> str:
    """Return the expression for a field of the memory `m` in JSON."""
    listed = f"None if m.{field.path} is None else list(m.{field.path})"
    return f"{field.name!r}: {listed if field.kind.startswith('tuple') else f'm.{field.path}'}"


_to_json_fields: Callable[[Memory], dict[str, Any]] = compile_function(
    ["m"],
    f"{{{', '.join(map(_json_expression, FIELDS))}, 'metadata': {{{', '.join(map(_json_expression, BOOKKEEPING))}}}}}",
)


def memory_maker(
    arguments: Iterable[str], values: Mapping[str, str], *, only_if: str = "", **names: Any
) -> Callable[..., Memory]:
    """Return a function that makes a memory from some arguments. `values` has an expression for each path, such as
    "bookkeeping.memory_type"; `only_if` is "condition else what to do". In all of them `names` may occur."""
    own = ", ".join(values[field.path] for field in BOOKKEEPING)
    whole = ", ".join(f"Bookkeeping({own})" if name == "bookkeeping" else values[name] for name in _NAMES)
    guard = f" if {only_if}" if only_if else ""
    return compile_function(arguments, f"Memory({whole}){guard}", Memory=Memory, Bookkeeping=Bookkeeping, **names)


def describe(memory: Memory) -> str:
    """Describe a memory in one printable line, for its repr."""
    shown = {"id": memory.memory_id, "agent": memory.agent_id, "type": memory.type, "text": memory.text}
    return ", ".join(f"{name}={shorten(value)!r}" for name, value in shown.items())


def shorten(text: str, width: int = _SHOWN) -> str:
    """Return a text as one line of at most `width` characters, cut with an ellipsis."""
    line = " ".join(text[: 4 * width].split())
    return line if len(line) <= width and len(text) <= 4 * width else line[: width - 1] + "…"


def id_of(memory: object) -> str:
    """Return the id of a memory given as itself, as a hit or by its id."""
    if isinstance(memory, Memory | Hit):
        return memory.id
    return checks.memory_id("memory_id", memory)


@dataclass(slots=True, repr=False)
class Hit:
    """A memory that answers a question, and how well."""

    memory: Memory
    score: float
    explanation: Explanation | None = None
    rank: int = 0
    recall: Recall | None = field(default=None, compare=False)
    relevance: float | None = None
    """Probability that it answers the question, 0 to 1; comparable between questions and stores, unlike the score."""

    @property
    def id(self) -> str:
        return self.memory.memory_id

    @property
    def text(self) -> str:
        return self.memory.text

    @property
    def recall_id(self) -> str | None:
        return None if self.recall is None else self.recall.id

    def useful(self, useful: bool = True) -> None:
        """Record that this hit was useful, or was not; `rmem eval online` reads it."""
        if self.recall is None:
            raise InputError("hit must come from Brain.recall", field="hit")
        self.recall.record(self.recall.of_hit(self, useful))

    def to_dict(self) -> dict[str, Any]:
        """Return the hit for JSON, without vectors and attachments."""
        memory = self.memory.to_dict(vectors=False)
        memory["contents"] = own_contents(memory["contents"])
        result: dict[str, Any] = {"score": self.score, "relevance": self.relevance, "memory": memory}
        if self.explanation is not None:
            result["explanation"] = self.explanation.to_dict()
        return result

    def __repr__(self) -> str:
        likely = "" if self.relevance is None else f"relevance={self.relevance:.2f}, "
        return f"Hit(score={self.score:.2f}, {likely}{describe(self.memory)})"

    def _repr_html_(self) -> str:
        from .display import html_of_hit

        return html_of_hit(self)


Row = TypeVar("Row", bound=Memory | Hit)


class Rows(list[Row]):
    """A list of memories or hits that prints as a few lines, displays as a table, and converts to pandas and Arrow."""

    def to_pandas(self) -> pandas.DataFrame:
        """Convert to a data frame with the columns named as in `remember`."""
        from .display import frame_of

        return frame_of(self)

    def to_arrow(self) -> pyarrow.Table:
        """Convert to an Arrow table; metadata is JSON text, because its structure is the caller's."""
        from .display import arrow_of

        return arrow_of(self)

    def __repr__(self) -> str:
        from .display import lines_of

        return lines_of(self)

    def _repr_html_(self) -> str:
        from .display import html_of

        return html_of(self)


class Memories(Rows[Memory]):
    """A list of memories."""


class Hits(Rows[Hit]):
    """The hits of a recall, best first, with the id of the recall even if there are none."""

    def __init__(self, hits: Iterable[Hit], recall: Recall) -> None:
        super().__init__(hits)
        self.recall = recall
        recall.record_hits(self)

    @property
    def recall_id(self) -> str:
        return self.recall.id

    def useless(self) -> None:
        """Record that no hit was useful."""
        self.recall.record(self.recall.of_all(False))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (list(self), self.recall)
