"""Trains the weights of rmem/recall/relevance.py, and shows how far they hold on sets that they were not trained on.

    python benchmarks/multilingual.py xquad JGLUE --out sets
    python training/relevance.py --train history.json.gz longmemeval.json.gz sets/*-dev.json.gz --check locomo.json.gz

Each set is asked its own questions and, as questions without an answer, as many of its other stores (where it has one
store, of its other half). The first hits count most. Sets whose licence allows no training are only checked."""

from __future__ import annotations

import argparse
import gzip
import json
import math
import random
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rmem import Brain
from rmem.recall.relevance import FEATURES, OF_ANOTHER, features

Floats = npt.NDArray[np.float64]
LATER = 0.3  # what a hit behind the first counts
RIDGE = 1e-3
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, nargs="+", required=True)
    parser.add_argument("--check", type=Path, nargs="*", default=[])
    parser.add_argument("--embedder", default="static")
    parser.add_argument("--most", type=int, default=400, help="questions of a set, and as many without an answer")
    given = parser.parse_args()
    for name in MODES:
        train = {path.name.partition(".")[0]: shown(path, name, given.embedder, given.most) for path in given.train}
        check = {path.name.partition(".")[0]: shown(path, name, given.embedder, given.most) for path in given.check}
        weights = fitted(train)
        print(f'    "{name}": ({", ".join(f"{value:.2f}" for value in weights)}),')
        for set_name, one in train.items():
            others = fitted({key: other for key, other in train.items() if key != set_name})
            print("      trained without it:", judged(set_name, one, others))
        for set_name, one in check.items():
            print("      never trained on:  ", judged(set_name, one, weights))


def shown(path: Path, name: str, embedder: str, most: int) -> Shown:
    """Ask a set its own questions and those of others."""
    mode, settings = MODES[name], {"dense": 0.0} if name == "no vectors" else {}
    given = json.loads(gzip.decompress(path.read_bytes()))
    stores, rng = given["stores"], random.Random(0)
    elsewhere = _twin(path) if len(stores) == 1 else []
    every = [(store, question) for store in stores for question in store["questions"]]
    chosen = rng.sample(every, min(most, len(every)))
    rows: list[Floats] = []
    right: list[float] = []
    first: list[bool] = []
    of_another: list[bool] = []
    for store in stores:
        own = [question for where, question in chosen if where is store]
        others = elsewhere or [question for where, question in every if where is not store]
        strange = rng.sample(others, min(len(others), max(len(own), most // len(stores))))
        if not own and not strange:
            continue
        with Brain(":memory:", embedder=embedder) as brain:
            kept = brain.remember_many([_fields(memory) for memory in store["memories"]])
            place = {memory.memory_id: at for at, memory in enumerate(kept)}
            for question, known in [*((one, True) for one in own), *((one, False) for one in strange)]:
                hits = _asked(brain, store, question, known, mode=mode, settings=settings)
                if not hits:
                    continue
                told = [hit.explanation for hit in hits]
                asked = told[0].asked or {}
                total = sum(asked.values()) or 1.0
                words = np.array([one.bm25 / total if asked else one.bm25 for one in told], np.float32)
                scores = np.array([hit.score for hit in hits], np.float32)
                cosines = np.array([one.cosine or 0.0 for one in told], np.float32)
                if mode == "lexical":
                    scores = words
                rows.append(features(words, cosines, scores, len(asked) if mode == "hybrid" else 0))
                wanted = _wanted(given, store, question) if known else set()
                right += [_unit(given, store, place[hit.memory.memory_id]) in wanted for hit in hits]
                first += [at == 0 for at in range(len(hits))]
                named = any(note.startswith("the question names") for note in told[0].notes)
                of_another += [
                    named and hit.memory.actor is not None and not one.components.get("actor")
                    for hit, one in zip(hits, told, strict=True)
                ]
    return Shown(np.concatenate(rows), np.array(right, float), np.array(first), np.array(of_another))


def fitted(kinds: dict[str, Shown]) -> Floats:
    """A constant and the weights, by Newton's method. Each kind of memories counts the same, in however many languages:
    the part of a set's name before the first dash is its kind."""
    sets = list(kinds.values())
    kind = [name.partition("-")[0] for name in kinds]
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
    result = np.zeros(len(FEATURES) + 1)
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
