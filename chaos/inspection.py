"""Inspect a store from a fresh process: list everything it holds, and check indexes, vectors, counts and tiers."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterable, Sequence

import numpy as np

from rmem import Brain, Filter
from rmem.doctor import examine
from rmem.models import Memory
from rmem.stores.base import RecordStore

from .clients import AgentClient, BrainClient, Setting, names, pairs
from .model import StoredMemory

_SAMPLE = 200
_MAX_LOSS = 0.01  # of cosines on average: candidates are chosen by estimates
_LOG_ROWS = 20_000  # allowed in the change log, plus 20 for each live memory

Problem = tuple[str, str]  # kind and message of a violation


def inspect_store(setting: Setting, gone: Sequence[str], seed: int) -> tuple[list[StoredMemory], list[Problem]]:
    """Return all memories, and the problems found. `gone` are words of forgotten memories, which must find nothing."""
    client = setting.open()
    try:
        brain = client.brain if isinstance(client, BrainClient) else client.api._system.brain
        memories = brain.memories(limit=None, order="oldest")
        rng = random.Random(seed)
        problems = [*_words(brain.store, memories, gone, rng), *_counts(brain, memories)]
        problems += _vectors(brain.store, memories, rng, exact=setting.kind != "postgres")
        if isinstance(client, AgentClient):
            problems += _tiers(client, memories)
    finally:
        client.close()
    if setting.kind != "postgres":
        problems += [("doctor", detail) for detail in doctor_problems(setting.address)]
        problems += _change_log(setting.address, len(memories))
    return [to_stored(memory) for memory in memories], problems


def to_stored(memory: Memory) -> StoredMemory:
    word, revision = names(memory.contents)
    return StoredMemory(memory.memory_id, memory.agent_id, word, revision, memory.tags, memory.tier, memory.actor)


def doctor_problems(address: str) -> list[str]:
    """Return the problems that `rmem doctor` finds."""
    return [f"{finding.name}: {finding.detail}" for finding in examine(address) if not finding.ok]


def read_copy(address: str) -> tuple[list[str], list[str]]:
    """Return everything in a copy of a store, as "word/revision", and the problems that `rmem doctor` finds."""
    with Brain(address) as brain:
        found = pairs(memory.contents for memory in brain.memories(limit=None))
    return found, doctor_problems(address)


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
        if scores.size < enough or float(np.mean(right[:enough] - scores[:enough])) > _MAX_LOSS:
            got, expected = np.round(scores, 3).tolist(), np.round(right, 3).tolist()
            found.append(("vector", f"the nearest of {near[at].memory_id} have cosines {got}, not {expected}"))
    return found


def _tiers(client: AgentClient, memories: Sequence[Memory]) -> list[Problem]:
    """Compare what the tiers return for each agent with the archive."""
    found: list[Problem] = []
    for agent in sorted({memory.agent_id for memory in memories}):
        archived = sorted("/".join(names(memory.contents)) for memory in memories if memory.agent_id == agent)
        if (listed := sorted(client.list(agent))) != archived:
            extra, missing = sorted(set(listed) - set(archived)), sorted(set(archived) - set(listed))
            found.append(("tiers", f"the tiers of {agent} show {extra} too much and lack {missing}"))
    return found


def _change_log(address: str, live: int) -> list[Problem]:
    link = sqlite3.connect(f"file:{address}?mode=ro", uri=True)
    try:
        (rows,) = link.execute("SELECT count(*) FROM changes").fetchone()
    finally:
        link.close()
    bound = _LOG_ROWS + 20 * live
    return [("growth", f"the change log has {rows:,} rows for {live:,} memories")] if rows > bound else []
