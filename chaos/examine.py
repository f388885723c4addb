"""Looking at a store from a fresh process: everything it holds, and whether what is derived from it agrees."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterable, Sequence

import numpy as np

from rmem import Brain, Filter
from rmem.doctor import examine
from rmem.models import Memory
from rmem.stores.base import RecordStore

from .faces import AgentFace, BrainFace, Setting, names, pairs
from .model import Seen

_SAMPLE = 200
_WORSE = 0.01  # how much lower cosines may be on average: the first choice is by estimates
_LOG_ROWS = 20_000  # of the change log, beside 20 for each live memory, that are still no growth without bound

Problem = tuple[str, str]  # kind and message of a violation


def look(setting: Setting, gone: Sequence[str], seed: int) -> tuple[list[Seen], list[Problem]]:
    """What the store holds, and what does not agree with it. `gone` are words that nothing may be found by."""
    face = setting.open()
    try:
        brain = face.brain if isinstance(face, BrainFace) else face.api._system.brain
        memories = brain.memories(limit=None, order="oldest")
        rng = random.Random(seed)
        problems = [*_words(brain.store, memories, gone, rng), *_counts(brain, memories)]
        problems += _vectors(brain.store, memories, rng, exact=setting.kind != "postgres")
        if isinstance(face, AgentFace):
            problems += _tiers(face, memories)
    finally:
        face.close()
    if setting.kind != "postgres":
        problems += [("doctor", detail) for detail in unsound(setting.address)]
        problems += _log(setting.address, len(memories))
    return [seen(memory) for memory in memories], problems


def seen(memory: Memory) -> Seen:
    word, revision = names(memory.contents)
    return Seen(memory.memory_id, memory.agent_id, word, revision, memory.tags, memory.tier, memory.actor)


def unsound(address: str) -> list[str]:
    """What `rmem doctor` finds."""
    return [f"{finding.name}: {finding.detail}" for finding in examine(address) if not finding.ok]


def read_copy(address: str) -> tuple[list[str], list[str]]:
    """Everything in a copy of a store, as "word/revision", and what is unsound about it."""
    with Brain(address) as brain:
        found = pairs(memory.contents for memory in brain.memories(limit=None))
    return found, unsound(address)


def _words(store: RecordStore, memories: Sequence[Memory], gone: Sequence[str], rng: random.Random) -> list[Problem]:
    found: list[Problem] = []
    for memory in memories:
        word = names(memory.contents)[0]
        ids = [match.memory_id for match, _ in store.match(word)]
        if ids != [memory.memory_id]:
            found.append(("unfindable", f"{word} finds {ids}, not {memory.memory_id} alone"))
    for word in rng.sample(gone, min(_SAMPLE, len(gone))):
        if ids := [match.memory_id for match, _ in store.match(word)]:
            found.append(("resurrected", f"the forgotten {word} finds {ids}"))
    return found


def _counts(brain: Brain, memories: Sequence[Memory]) -> list[Problem]:
    counts = {"memories()": len(memories), "len(store)": len(brain.store), "stats()": brain.stats()["memories"]}
    return [] if len(set(counts.values())) == 1 else [("count", f"counts differ: {counts}")]


def _vectors(store: RecordStore, memories: Iterable[Memory], rng: random.Random, *, exact: bool) -> list[Problem]:
    """Compare the nearest neighbours of a sample with those by brute force, in the tier that keeps whole vectors."""
    near = [memory for memory in memories if memory.tier == "stm"]
    bare = [memory.memory_id for memory in near if memory.embeddings.full_vector is None]
    if bare:
        return [("vector", f"{len(bare)} memories in stm without a vector, for example {bare[0]}")]
    if len(sizes := {memory.embeddings.full_vector.size for memory in near}) > 1:  # type: ignore[union-attr]
        return [("vector", f"vectors of different sizes: {sorted(sizes)}")]
    matrix = np.array([memory.embeddings.full_vector for memory in near])
    found: list[Problem] = []
    for at in rng.sample(range(len(near)), min(10, len(near))):
        right = np.sort(matrix @ matrix[at])[::-1][:10]
        scores = np.array([score for _, score in store.nearest(matrix[at], Filter(tier=("stm",)), k=10)])
        enough = len(right) if exact else 1  # an HNSW index may leave some out
        if scores.size < enough or float(np.mean(right[:enough] - scores[:enough])) > _WORSE:
            told = f"{np.round(scores, 3).tolist()}, not {np.round(right, 3).tolist()}"
            found.append(("vector", f"the nearest of {near[at].memory_id} have cosines {told}"))
    return found


def _tiers(face: AgentFace, memories: Sequence[Memory]) -> list[Problem]:
    """Compare what the tiers tell of each agent with the archive."""
    found: list[Problem] = []
    for agent in sorted({memory.agent_id for memory in memories}):
        archived = sorted("/".join(names(memory.contents)) for memory in memories if memory.agent_id == agent)
        if (told := sorted(face.list(agent))) != archived:
            extra, missing = sorted(set(told) - set(archived)), sorted(set(archived) - set(told))
            found.append(("tiers", f"the tiers of {agent} show {extra} too much and lack {missing}"))
    return found


def _log(address: str, live: int) -> list[Problem]:
    link = sqlite3.connect(f"file:{address}?mode=ro", uri=True)
    try:
        (rows,) = link.execute("SELECT count(*) FROM changes").fetchone()
    finally:
        link.close()
    bound = _LOG_ROWS + 20 * live
    return [("growth", f"the change log has {rows:,} rows for {live:,} memories")] if rows > bound else []
