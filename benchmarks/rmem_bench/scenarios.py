"""What is measured inside one process, through Brain as any user would: writing, recalling, exactness."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rmem import Brain, Hit
from rmem.embed import embedder_for
from rmem.testing.synthetic import clustered_vectors, synthetic_memories

from .baselines import BareInsert, BruteForce, FullText
from .material import Material
from .measure import Samples, interleaved, ratios

K = 10
_CHUNK = 10_000  # memories handed to remember_many at a time, so that a million need not be held
_WARM_UP = 10
_DIMENSION = 256  # of vectors that users bring along

Advance = Callable[[str, int, int], None]
"""Called with what is going on, how much of it is done, and how much there is."""


class Ground:
    """A store of `size` memories, and the same data in the baselines."""

    def __init__(self, folder: Path, material: Material, size: int, seed: int, embedder: str, advance: Advance) -> None:
        self.folder, self.material, self.size, self.seed, self.advance = folder, material, size, seed, advance
        self.home = folder / "home"
        self.path = self.home / "memories.db"
        self.embedder = embedder
        self.brain = Brain(self.path, embedder=embedder)
        self.texts = FullText(folder / "fts5.db")
        self.vectors = BruteForce(folder / "vectors.f32", size)
        self.agents: list[str] = []

    def fill(self) -> dict[str, Any]:
        """Remember everything; only the time inside `remember_many` counts."""
        samples = Samples()
        for chunk in _chunks(self.material.memories(self.size, self.seed)):
            kept = samples.time(lambda chunk=chunk: self.brain.remember_many(chunk))  # type: ignore[misc]
            self.texts.add([memory.text for memory in kept])
            self.vectors.add(_matrix([memory.embeddings.full_vector for memory in kept]))
            self.agents += [memory.agent_id for memory in kept]
            self.advance("remember in bulk", len(self.agents), self.size)
        self.texts.optimise()
        wall, cpu = sum(samples.wall), sum(samples.cpu)
        return {
            "rows": self.size,
            "wall_s": round(wall, 3),
            "cpu_s": round(cpu, 3),
            "rows_per_wall_s": round(self.size / wall, 1),
            "rows_per_cpu_s": round(self.size / cpu, 1),
        }

    def one_agent(self) -> str:
        """An agent that owns as near to one memory in a hundred as any."""
        return _typical(self.agents)

    def close(self) -> None:
        self.brain.close()
        self.texts.close()


def recalls(ground: Ground, calls: int) -> dict[str, Any]:
    """Recall in every mode, the question's embedding included."""
    brain, agent = ground.brain, ground.one_agent()
    names = ("hybrid", "lexical", "vector", "filtered")
    asked = ground.material.questions(len(names) * calls + _WARM_UP, ground.seed, ground.size)
    questions = {name: asked[at * calls : (at + 1) * calls] for at, name in enumerate(names)}
    for question in asked[-_WARM_UP:]:
        brain.recall(question, K)
        brain.recall(question, K, where={"agent": agent})
    embedder = embedder_for(ground.embedder)
    queries = [embedder.embed_query(question) for question in questions["vector"]]
    tasks: dict[str, Callable[[int], object]] = {
        "hybrid": lambda at: brain.recall(questions["hybrid"][at], K),
        "lexical": lambda at: brain.recall(questions["lexical"][at], K, mode="lexical"),
        "vector": lambda at: brain.recall(questions["vector"][at], K, mode="vector"),
        "filtered": lambda at: brain.recall(questions["filtered"][at], K, where={"agent": agent}),
        "fts5_or": lambda at: ground.texts.search(questions["lexical"][at], K, drop_function_words=False),
        "fts5_or_without_function_words": lambda at: ground.texts.search(
            questions["lexical"][at], K, drop_function_words=True
        ),
        "numpy_brute_force": lambda at: ground.vectors.nearest(queries[at], K),
    }
    done = 0

    def count() -> None:
        nonlocal done
        done += 1
        ground.advance("recall", done, calls * len(tasks))

    timings = {name: taken.summary() for name, taken in interleaved(tasks, calls, on_call=count).items()}
    result: dict[str, Any] = {name: timings.pop(name) for name in names}
    result["filtered_share"] = round(ground.agents.count(agent) / ground.size, 4)
    result["baselines"] = timings
    result["ratios"] = {
        "lexical_to_fts5_or": ratios(result["lexical"], timings["fts5_or"]),
        "lexical_to_fts5_or_without_function_words": ratios(
            result["lexical"], timings["fts5_or_without_function_words"]
        ),
        "vector_to_numpy_brute_force": ratios(result["vector"], timings["numpy_brute_force"]),
    }
    found = [_steps(brain.recall("anything", K, mode="vector", vector=query)) for query in queries[:100]]
    result["vector_recall_at_10"] = _shared(found, (ground.vectors.nearest(query, K) for query in queries))
    return result


def remembers(ground: Ground, calls: int) -> dict[str, Any]:
    """One durable memory at a time, each beside a bare insert of the same row; then recalls of what is new."""
    brain, bare = ground.brain, BareInsert(ground.path, ground.folder / "bare.db")
    fresh = ground.material.memories(2 * calls + _WARM_UP, ground.seed + 1)
    ours, plain, after, again = Samples(), Samples(), Samples(), Samples()
    few = min(calls, 50)
    questions = ground.material.questions(2 * few, ground.seed + 1, ground.size)
    for at in range(calls + _WARM_UP):
        memory = _fresh(fresh)
        taken = Samples() if at < _WARM_UP else ours
        kept = taken.time(lambda memory=memory: brain.remember(**memory))  # type: ignore[misc]
        row = bare.row(kept.memory_id)
        (Samples() if at < _WARM_UP else plain).time(lambda row=row: bare.insert(row))  # type: ignore[misc]
        ground.advance("remember one by one", at, calls + _WARM_UP)
    bare.close()
    for at in range(few):
        brain.remember(**_fresh(fresh))
        after.time(lambda at=at: brain.recall(questions[at], K))  # type: ignore[misc]
        again.time(lambda at=at: brain.recall(questions[few + at], K))  # type: ignore[misc]
    subject, baseline = ours.summary(), plain.summary()
    recalled, unchanged = after.summary(), again.summary()
    return {
        "remember": subject,
        "baselines": {"bare_sqlite_insert": baseline, "hybrid_recall_without_a_remember": unchanged},
        "ratios": {
            "remember_to_bare_sqlite_insert": ratios(subject, baseline),
            "recall_after_a_remember_to_recall": ratios(recalled, unchanged),
        },
        "hybrid_recall_after_a_remember": recalled,
    }


def exactness(folder: Path, size: int, seed: int, calls: int, advance: Advance) -> dict[str, Any]:
    """How many of the ten nearest of clustered vectors, found by brute force, recall finds too."""
    brute = BruteForce(folder / "given.f32", size)
    agents: list[str] = []
    samples = {"all": Samples(), "filtered": Samples()}
    with Brain(folder / "given.db", embedder="none") as brain:
        for chunk in _chunks(synthetic_memories(size, seed, dimension=_DIMENSION)):
            brute.add(_matrix([memory["vector"] for memory in chunk]))
            agents += [memory["agent"] for memory in chunk]
            brain.remember_many(chunk)
            advance("remember given vectors", len(agents), size)
        agent = _typical(agents)
        inside = np.flatnonzero(np.array(agents) == agent)
        queries = clustered_vectors(calls, _DIMENSION, seed, part=1 << 30)
        brain.recall("warm up", K, mode="vector", vector=queries[0])
        found: dict[str, list[list[int]]] = {"all": [], "filtered": []}
        for at, query in enumerate(queries):
            for name, where in (("all", None), ("filtered", {"agent": agent})):
                hits = samples[name].time(
                    lambda where=where, query=query: brain.recall(  # type: ignore[misc]
                        "anything", K, where=where, mode="vector", vector=query
                    )
                )
                found[name].append(_steps(hits))
            advance("compare with brute force", at + 1, calls)
        return {
            "dimension": _DIMENSION,
            "queries": calls,
            "recall_at_10": _shared(found["all"], (brute.nearest(query, K) for query in queries)),
            "recall_at_10_filtered": _shared(found["filtered"], (brute.nearest(query, K, inside) for query in queries)),
            "recall": samples["all"].summary(),
            "recall_filtered": samples["filtered"].summary(),
        }


def file_size(path: Path, size: int) -> dict[str, Any]:
    """The closed store on disk, and how much of it is the recall index's cache."""
    total = sum(part.stat().st_size for part in path.parent.iterdir() if part.name.startswith(path.name))
    with sqlite3.connect(path) as connection:
        (cached,) = connection.execute("SELECT coalesce(sum(length(data)), 0) FROM segment_arrays").fetchone()
    connection.close()
    return {"bytes": total, "bytes_per_memory": round(total / size, 1), "index_cache_bytes": cached}


def _chunks(memories: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    while chunk := list(islice(memories, _CHUNK)):
        yield chunk


def _fresh(memories: Iterator[dict[str, Any]]) -> dict[str, Any]:
    """The next memory, without a step: most callers leave it to the store."""
    memory = next(memories)
    del memory["step"]
    return memory


def _matrix(vectors: list[npt.NDArray[np.float32] | None]) -> npt.NDArray[np.float32]:
    width = next((vector.size for vector in vectors if vector is not None), _DIMENSION)
    none = np.zeros(width, np.float32)
    return np.stack([none if vector is None else vector for vector in vectors])


def _typical(agents: list[str]) -> str:
    counts = Counter(agents)
    return min(counts, key=lambda agent: (abs(counts[agent] - len(agents) / 100), agent))


def _steps(hits: list[Hit]) -> list[int]:
    """Which of the memories were found."""
    return [hit.memory.step_number for hit in hits]


def _shared(found: list[list[int]], truth: Iterator[list[int]]) -> float:
    """The share of the true rows that was found."""
    hits = total = 0
    for ours, exact in zip(found, truth, strict=False):
        hits += len(set(ours) & set(exact))
        total += len(exact)
    return round(hits / total, 5) if total else 1.0
