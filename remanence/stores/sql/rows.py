"""Between a memory and its row: the SQL of the embedded store and the two conversions."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ...errors import StoreCorruptError
from ...index.analyser import Terms
from ...index.manner import Manner
from ...index.recall_index import IndexRow
from ...models import Embeddings, Memory, Metadata
from ..indexed import Derived

_MEMORY = (
    "id", "agent", "session", "type", "actor", "tier", "step", "time", "created", "importance", "level",
    "position", "place", "tags", "text", "contents", "vector",
)  # fmt: skip
_INDEX = (
    "seq", "born", "agent", "session", "type", "actor", "tier", "step", "time", "importance", "position", "flags",
    "specific", "words", "terms", "marks", "vector",
)  # fmt: skip
_ALL = (*_MEMORY, "born", "flags", "specific", "words", "terms", "marks")

INSERT = f"INSERT INTO memories ({', '.join(_ALL)}) VALUES ({', '.join('?' * len(_ALL))})"
READ = (
    f"SELECT m.seq, {', '.join('m.' + name for name in _MEMORY)}, a.last, a.count "
    "FROM memories m LEFT JOIN access a ON a.born = m.born"
)
READ_INDEX = f"SELECT {', '.join(_INDEX)} FROM memories WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?"


_json = json.JSONEncoder(ensure_ascii=False).encode  # json.dumps would make an encoder for every row


def to_row(memory: Memory, derived: Derived, born: int) -> tuple[Any, ...]:
    """The values of INSERT."""
    contents = memory.contents
    if contents.get("text") == memory.text:
        contents = {key: value for key, value in contents.items() if key != "text"}
    elif "text" not in contents:
        contents = {**contents, "text": None}  # so that reading does not put the text in
    vector = memory.embeddings.full_vector
    return (
        memory.memory_id,
        memory.agent_id,
        memory.session,
        memory.type,
        memory.actor,
        memory.tier,
        memory.step_number,
        memory.timestamp,
        memory.metadata.creation_time,
        memory.importance,
        memory.metadata.compression_level,
        None if memory.position is None else _json(memory.position),
        memory.place,
        _json(memory.tags) if memory.tags else None,
        memory.text,
        _json(contents) if contents else None,
        None if vector is None else vector.astype("<f4", copy=False).tobytes(),
        born,
        *derived_values(derived),
    )


def derived_values(derived: Derived) -> tuple[int, int, str, bytes, bytes]:
    """The columns flags, specific, words, terms and marks."""
    return (
        derived.manner.flags,
        derived.manner.specific,
        "\n".join(derived.terms.words),
        _pack_terms(derived.terms),
        derived.marks.astype("<u8", copy=False).tobytes(),
    )


def to_memory(row: tuple[Any, ...]) -> Memory:
    """A memory from what READ selects."""
    (
        _, memory_id, agent, session, kind, actor, tier, step, time, created, importance, level,
        position, place, tags, text, contents, vector, accessed, count,
    ) = row  # fmt: skip
    body = json.loads(contents) if contents else {}
    if "text" not in body:
        body = {"text": text, **body}
    elif body["text"] is None:
        del body["text"]
    return Memory(
        memory_id=memory_id,
        agent_id=agent,
        step_number=step,
        timestamp=time,
        contents=body,
        metadata=Metadata(
            creation_time=created,
            last_access_time=accessed if accessed is not None else created,
            compression_level=level,
            importance_score=importance,
            retrieval_count=count or 0,
            memory_type=kind,
        ),
        embeddings=Embeddings(full_vector=None if vector is None else np.frombuffer(vector, "<f4")),
        text=text,
        session=session,
        actor=actor,
        tags=json.loads(tags) if tags else {},
        tier=tier,
        position=tuple(json.loads(position)) if position else None,
        place=place,
    )


def to_index_row(row: tuple[Any, ...]) -> IndexRow:
    """What the index needs, from what READ_INDEX selects."""
    (
        seq, born, agent, session, kind, actor, tier, step, time, importance, position, flags,
        specific, words, terms, marks, vector,
    ) = row  # fmt: skip
    if len(terms) % 10 or len(marks) % 8 or (words.count("\n") + 1 if words else 0) != len(terms) // 10:
        raise StoreCorruptError(f"row {seq} holds damaged terms; `rmem doctor --repair` derives them again")
    return IndexRow(
        seq=seq,
        born=born,
        agent=agent,
        session=session,
        kind=kind,
        actor=actor,
        tier=tier,
        time=time,
        step=step,
        importance=importance,
        position=tuple(json.loads(position)) if position else None,
        manner=Manner(flags, specific),
        terms=unpack_terms(terms, words),
        marks=np.frombuffer(marks, "<u8"),
        vector=None if vector is None else np.frombuffer(vector, "<f4"),
    )


def _pack_terms(terms: Terms) -> bytes:
    return terms.hashes.astype("<u8", copy=False).tobytes() + terms.counts.astype("<u2", copy=False).tobytes()


def unpack_terms(packed: bytes, words: str) -> Terms:
    size = len(packed) // 10
    return Terms(
        np.frombuffer(packed, "<u8", size),
        np.frombuffer(packed, "<u2", size, offset=8 * size),
        tuple(words.split("\n")) if words else (),
    )
