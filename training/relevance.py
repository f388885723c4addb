"""Trains the weights of rmem/recall/relevance.py, and shows how far they hold on sets that they were not trained on.

    python benchmarks/multilingual.py xquad JGLUE --out sets
    python benchmarks/headings.py sets/docs.json.gz CLONE…
    python training/relevance.py --train history.json.gz longmemeval.json.gz sets/docs.json.gz sets/*-dev.json.gz \\
        --check locomo.json.gz beam.json.gz memdaily-zh.json.gz

Each set is asked its own questions and, as questions without an answer, as many of its other stores (where it has one
store, of its other half). Sets to train on are also cut down to stores of ten to twenty memories: a guess among few is
right oftener than among thousands. The first hits count most. Sets whose licence allows no training are only
checked."""

from __future__ import annotations

import argparse
import gzip
import json
import math
import random
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rmem import Brain
from rmem.recall.relevance import OF_ANOTHER, SIGNALS

Floats = npt.NDArray[np.float64]
LATER = 0.3  # what a hit behind the first counts
RIDGE = 1e-3
SMALL = 10  # memories of a store that was cut down, up to twice as many
MODES = {"hybrid": "hybrid", "no vectors": "hybrid", "lexical": "lexical", "vector": "vector"}


class Shown(NamedTuple):
    """What the hits of a set's questions show, whether each is right, whether it is the first, and whose it is."""

    found: Floats
    right: Floats
    first: npt.NDArray[np.bool_]
    of_another: npt.NDArray[np.bool_]

    @property
    def weight(self) -> Floats:
        weight = np.where(self.first, 1.0, LATER)
        return weight / weight.sum()


class StoreQuestions(NamedTuple):
    """A store, its questions, and questions that it cannot answer."""

    store: dict[str, Any]
    own: Sequence[dict[str, Any]]
    strange: Sequence[dict[str, Any]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, nargs="+", required=True)
    parser.add_argument("--check", type=Path, nargs="*", default=[])
    parser.add_argument("--embedder", default="static")
    parser.add_argument("--most", type=int, default=300, help="questions of a set, and as many without an answer")
    given = parser.parse_args()
    train: dict[str, dict[str, Shown]] = {}
    check: dict[str, dict[str, Shown]] = {}
    for path in given.train:
        for name, asked in (("", _whole(path, given.most)), (" in small stores", _small(path, given.most // 2))):
            train[path.name.partition(".")[0] + name] = shown(path, asked, given.embedder)
    for path in given.check:
        check[path.name.partition(".")[0]] = shown(path, _whole(path, given.most), given.embedder)
    for mode in MODES:
        every = {name: one[mode] for name, one in train.items()}
        weights = fitted(every)
        print(f'    "{mode}": ({", ".join(f"{value:.2f}" for value in weights)}),')
        for name, one in every.items():
            others = fitted({key: other for key, other in every.items() if _kind(key) != _kind(name)})
            print("      trained without its kind:", judged(name, one, others))
        for name, found in check.items():
            print("      never trained on:        ", judged(name, found[mode], weights))


def _kind(name: str) -> str:
    """The kind of a set: what stands before the first dash or space; all that was made from SQuAD is one kind."""
    return "squad" if "squad" in name else name.partition("-")[0].partition(" ")[0]


def _read(path: Path) -> tuple[list[dict[str, Any]], list[tuple[int, dict[str, Any]]], list[dict[str, Any]]]:
    """Return the stores of a set, their questions, and those of its other half if it has one store."""
    stores = json.loads(gzip.decompress(path.read_bytes()))["stores"]
    every = [(at, question) for at, store in enumerate(stores) for question in store["questions"]]
    return stores, every, _twin(path) if len(stores) == 1 else []


def _whole(path: Path, most: int) -> Iterator[StoreQuestions]:
    stores, every, elsewhere = _read(path)
    rng = random.Random(0)
    chosen = rng.sample(every, min(most, len(every)))
    for at, store in enumerate(stores):
        own = [question for where, question in chosen if where == at]
        others = elsewhere or [question for where, question in every if where != at]
        yield StoreQuestions(store, own, rng.sample(others, min(len(others), len(own))))


def _small(path: Path, most: int) -> Iterator[StoreQuestions]:
    """Cut stores down to a right memory and others, half of the time its neighbours."""
    stores, every, elsewhere = _read(path)
    rng = random.Random(0)
    for _ in range(most):
        at, question = rng.choice(every)
        memories = stores[at]["memories"]
        size, right = min(SMALL + rng.randrange(SMALL), len(memories)), rng.choice(question["relevant"])
        start = max(0, min(right - rng.randrange(size), len(memories) - size))
        near = rng.random() < 0.5
        kept = range(start, start + size) if near else sorted({right, *rng.sample(range(len(memories)), size)})
        place = {old: new for new, old in enumerate(kept)}
        own = {**question, "relevant": [place[old] for old in question["relevant"] if old in place]}
        others = elsewhere or [other for where, other in every if where != at]
        yield StoreQuestions({"memories": [memories[old] for old in kept]}, [own], [rng.choice(others)])


def shown(path: Path, stores: Iterator[StoreQuestions], embedder: str) -> dict[str, Shown]:
    """Ask stores in every mode."""
    given = json.loads(gzip.decompress(path.read_bytes()))
    found: dict[str, list[tuple[list[float], bool, bool, bool]]] = {mode: [] for mode in MODES}
    for store, own, strange in stores:
        if not own and not strange:
            continue
        with Brain(":memory:", embedder=embedder) as brain:
            kept = brain.remember_many([_fields(memory) for memory in store["memories"]])
            place = {memory.memory_id: at for at, memory in enumerate(kept)}
            for question, known in [*((one, True) for one in own), *((one, False) for one in strange)]:
                wanted = _wanted(given, store, question) if known else set()
                for mode, rows in found.items():
                    settings = {"dense": 0.0} if mode == "no vectors" else {}
                    hits = _asked(brain, store, question, known, mode=MODES[mode], settings=settings)
                    for at, hit in enumerate(hits):
                        why = hit.explanation
                        named = any(note.startswith("the question names") for note in why.notes)
                        another = named and hit.memory.actor is not None and not why.components.get("actor")
                        right = _unit(given, store, place[hit.memory.memory_id]) in wanted
                        if why.signals:
                            rows.append(([why.signals[name] for name in SIGNALS], right, at == 0, another))
    return {mode: _columns(rows) for mode, rows in found.items()}


def _columns(rows: Sequence[tuple[list[float], bool, bool, bool]]) -> Shown:
    found, right, first, of_another = zip(*rows, strict=True)
    return Shown(np.array(found), np.array(right, float), np.array(first), np.array(of_another))


def fitted(kinds: dict[str, Shown]) -> Floats:
    """A constant and the weights, by Newton's method. Each kind of memories counts the same, in however many languages
    and sizes."""
    sets = list(kinds.values())
    kind = [_kind(name) for name in kinds]
    found, right = np.concatenate([one.found for one in sets]), np.concatenate([one.right for one in sets])
    given = OF_ANOTHER * np.concatenate([one.of_another for one in sets])
    weight = np.concatenate([one.weight / kind.count(name) for one, name in zip(sets, kind, strict=True)])
    weight /= weight.sum()
    scale = found.std(axis=0)
    used = np.append(True, scale > 1e-9)
    rows = np.column_stack([np.ones(len(found)), found / np.where(scale > 1e-9, scale, 1)])[:, used]
    weights = np.zeros(rows.shape[1])
    ridge = RIDGE * np.diag(np.append(0.0, np.ones(rows.shape[1] - 1)))
    for _ in range(50):
        likely = 1 / (1 + np.exp(-(rows @ weights + given)))
        slope = rows.T @ (weight * (likely - right)) + ridge @ weights
        bend = (rows * (weight * likely * (1 - likely))[:, None]).T @ rows + ridge + 1e-9 * np.eye(rows.shape[1])
        weights = weights - np.linalg.solve(bend, slope)
    result = np.zeros(len(SIGNALS) + 1)
    result[used] = weights
    result[1:] /= np.where(scale > 1e-9, scale, 1)
    return result


def judged(name: str, one: Shown, weights: Floats) -> str:
    likely = 1 / (1 + np.exp(-(weights[0] + one.found @ weights[1:] + OF_ANOTHER * one.of_another)))
    first = one.first
    bins = []
    for low in np.arange(0, 1, 0.2):
        inside = (likely >= low) & (likely < low + 0.2)
        if inside.sum() >= 20:
            bins.append(f"{likely[inside].mean():.2f} is {one.right[inside].mean():.2f}")
    return f"{name}: AUC of first hits {auc(likely[first], one.right[first]):.3f}; {', '.join(bins)}"


def auc(likely: Floats, right: Floats) -> float:
    """How often a right hit is said to be likelier than a wrong one."""
    order = np.argsort(likely, kind="stable")
    ranks = np.empty(len(likely))
    ranks[order] = np.arange(1, len(likely) + 1)
    yes, no = right.sum(), len(right) - right.sum()
    return float((ranks[right > 0].sum() - yes * (yes + 1) / 2) / (yes * no)) if yes and no else math.nan


def _asked(brain: Brain, store: dict[str, Any], question: dict[str, Any], known: bool, **way: Any) -> list[Any]:
    where = None
    if question.get("session") is not None:
        sessions = sorted({memory["session"] for memory in store["memories"]})
        where = {"session": question["session"] if known else sessions[len(question["question"]) % len(sessions)]}
    now = question.get("now")
    moment = (
        None if now is None else datetime.fromisoformat(now) if isinstance(now, str) else datetime.fromtimestamp(now)
    )
    return brain.recall(question["question"], k=10, where=where, explain=True, now=moment, touch=False, **way)


def _twin(path: Path) -> list[dict[str, Any]]:
    """Questions of the other half of a set that has one store."""
    name = path.name
    other = path.with_name(name.replace("-dev.", "-test.") if "-dev." in name else name.replace("-test.", "-dev."))
    return [q for store in json.loads(gzip.decompress(other.read_bytes()))["stores"] for q in store["questions"]]


def _fields(memory: dict[str, Any]) -> dict[str, Any]:
    return {key: memory[key] for key in ("text", "actor", "session", "when") if memory.get(key) is not None}


def _unit(given: dict[str, Any], store: dict[str, Any], at: int) -> Any:
    return store["memories"][at]["session"] if given["unit"] == "session" else at


def _wanted(given: dict[str, Any], store: dict[str, Any], question: dict[str, Any]) -> set[Any]:
    """LoCoMo's fifth category asks for what somebody else did: it has no answer."""
    if given["name"].startswith("locomo") and str(question["kind"]) == "5":
        return set()
    return {_unit(given, store, at) for at in question["relevant"]}


if __name__ == "__main__":
    main()
