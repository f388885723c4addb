"""Evaluate recall on sets of memories and questions, each in its own stores, beside plain BM25 and reciprocal rank
fusion in the same run.

A set is a JSON file, perhaps gzipped:

    {"name": …, "unit": "memory" | "session", "stores": [{
        "memories": [{"text": …, "actor": …, "session": …, "when": …}, …],
        "questions": [{"question": …, "kind": …, "now": …, "session": …, "relevant": [place of a memory, …]}, …]}]}

`unit` is what a hit counts by; a question's `session` restricts it to one."""

from __future__ import annotations

import gzip
import json
import math
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import checks
from ..errors import InputError
from .offline import Progress, Setting, compare

if TYPE_CHECKING:
    from ..brain import Brain
    from ..models import Hits

MEASURES = ("r@1", "r@5", "r@10", "mrr", "any@5", "all@5")
_HITS = 100  # per question
_K1, _B, _RRF = 1.2, 0.75, 60
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_CJK}]|(?:(?![{_CJK}])\w)+")  # a Chinese, Japanese or Korean character, or a word
_FIELDS = ("text", "actor", "session", "when")

Ranking = list[int]  # places of memories, best first


@dataclass(frozen=True, slots=True)
class RecallSet:
    """A set of stores with memories and questions; `by_session`: sessions are searched for, not memories."""

    name: str
    by_session: bool
    stores: list[dict[str, Any]]

    @property
    def questions(self) -> int:
        return sum(len(store["questions"]) for store in self.stores)


def files_in(paths: Sequence[str | Path]) -> list[Path]:
    """Return the given files, and the files of sets in the given folders."""
    found: list[Path] = []
    for path in map(Path, paths):
        inside = sorted([*path.glob("*.json"), *path.glob("*.json.gz")]) if path.is_dir() else [path]
        if not inside:
            raise InputError(f"{path} must hold sets of questions, as *.json or *.json.gz", field="FILE")
        found += inside
    return found


def read(path: Path) -> RecallSet:
    """Read a set and check the fields that are used."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", field="FILE") from None
    try:
        given = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    except (OSError, EOFError, zlib.error, ValueError, RecursionError) as error:
        raise InputError(f"{path} must be a set of questions in JSON: {error}", field="FILE") from None
    try:
        name = checks.name("name", given.get("name", path.name.partition(".")[0]))
        unit = checks.one_of("unit", given.get("unit", "memory"), ("memory", "session"))
        stores = given["stores"]
        for at, store in enumerate(stores):
            _check(f"stores[{at}]", store)
    except (AttributeError, KeyError, TypeError) as error:
        raise InputError(f"{path} must hold stores with memories and questions: {error!r}", field="stores") from None
    except InputError as error:
        raise InputError(f"{path}: {error}", field=error.field) from None
    return RecallSet(name, unit == "session", stores)


def _check(where: str, store: dict[str, Any]) -> None:
    for at, memory in enumerate(store["memories"]):
        checks.text(f"{where}.memories[{at}].text", memory["text"])
    for at, question in enumerate(store["questions"]):
        checks.text(f"{where}.questions[{at}].question", question["question"])
        for place in question["relevant"]:
            checks.whole(f"{where}.questions[{at}].relevant", place, high=len(store["memories"]) - 1)


def evaluate(
    paths: Sequence[str | Path],
    *,
    settings: Setting | None = None,
    against: Setting | None = None,
    baselines: bool = True,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Return the measures of each set and their means, for one setting or two; compare two question by question."""
    chosen = [setting for setting in (settings or Setting("default"), against) if setting is not None]
    sets = [read(path) for path in files_in(paths)]
    total, done = sum(recall_set.questions for recall_set in sets), 0
    reports = []
    for recall_set in sets:
        measured: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for store in recall_set.stores:
            for row in _measure_store(recall_set, store, chosen, baselines):
                for system, values in row.items():
                    measured[system].append(values)
            done += len(store["questions"])
            if on_progress is not None:
                on_progress(done, total)
        reports.append(_build_report(recall_set, measured, chosen, seed))
    systems = list(reports[0]["systems"])
    means = {
        system: {name: _mean([report["systems"][system][name] for report in reports]) for name in MEASURES}
        for system in systems
    }
    return {"sets": reports, "mean": means}


def _build_report(
    recall_set: RecallSet, measured: dict[str, list[dict[str, Any]]], chosen: Sequence[Setting], seed: int
) -> dict[str, Any]:
    systems = {
        system: {name: _mean([row[name] for row in rows]) for name in MEASURES} for system, rows in measured.items()
    }
    report = {
        "name": recall_set.name,
        "unit": "session" if recall_set.by_session else "memory",
        "questions": recall_set.questions,
        "measured": len(next(iter(measured.values()), [])),
        "systems": systems,
        "by_question": dict(measured),
    }
    if len(chosen) == 2:
        first, second = (
            [{name: row[name] for name in MEASURES} for row in measured[setting.name]] for setting in chosen
        )
        report["comparison"] = compare(first, second, seed=seed)
    return report


def _measure_store(
    recall_set: RecallSet, store: dict[str, Any], chosen: Sequence[Setting], baselines: bool
) -> Iterator[dict[str, dict[str, Any]]]:
    """Yield the measures of each question that has an answer, by system."""
    from ..brain import Brain

    memories = memories_of(store)
    sessions = [memory.get("session") for memory in store["memories"]]
    words = PlainBM25([memory["text"] for memory in memories]) if baselines else None
    brains: dict[str | None, tuple[Brain, dict[str, int]]] = {}
    try:
        for setting in chosen:
            if setting.embedder not in brains:
                brain = Brain(":memory:", embedder=setting.embedder)
                kept = brain.remember_many(memories)
                brains[setting.embedder] = brain, {memory.memory_id: at for at, memory in enumerate(kept)}
        for question in store["questions"]:
            if not question["relevant"]:
                continue
            inside = [at for at, session in enumerate(sessions) if question.get("session") in (None, session)]
            rankings: dict[str, Ranking] = {}
            for setting in chosen:
                brain, places = brains[setting.embedder]
                rankings[setting.name] = [places[hit.id] for hit in recall_hits(brain, question, setting)]
            if words is not None:
                brain, places = brains[chosen[0].embedder]
                rankings["bm25"] = words.rank(question["question"], inside)
                nearest = recall_hits(brain, question, Setting("vectors", mode="vector"))
                rankings["rrf"] = fuse([rankings["bm25"], [places[hit.id] for hit in nearest]])
            yield {
                system: {"question": question["question"], "kind": question.get("kind"), **values}
                for system, ranking in rankings.items()
                if (values := measures(ranking, question["relevant"], sessions if recall_set.by_session else None))
            }
    finally:
        for brain, _ in brains.values():
            brain.close()


def memories_of(store: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the memories of a store as arguments of `remember_many`."""
    return [{key: memory[key] for key in _FIELDS if memory.get(key) is not None} for memory in store["memories"]]


def recall_hits(brain: Brain, question: dict[str, Any], setting: Setting) -> Hits:
    """Recall for a question without recording the access."""
    now = question.get("now")
    return brain.recall(
        question["question"],
        k=_HITS,
        where={"session": question["session"]} if question.get("session") is not None else None,
        mode=setting.mode,
        settings=setting.recall,
        now=None if now is None else datetime.fromtimestamp(checks.moment("now", now)),
        touch=False,
    )


def measures(ranking: Ranking, relevant: Sequence[int], sessions: Sequence[Any] | None) -> dict[str, float]:
    """Measure a ranking: r@1 and any@5 are 1 if a relevant item is there, r@5 and r@10 the share of them that is."""
    found: list[Any] = ranking
    wanted: set[Any] = set(relevant)
    if sessions is not None:
        found = list(dict.fromkeys(sessions[place] for place in ranking))
        wanted = {sessions[place] for place in relevant}
    ranks = [rank for rank, item in enumerate(found) if item in wanted]
    first = ranks[0] if ranks else math.inf

    def share(depth: int) -> float:
        return sum(rank < depth for rank in ranks) / len(wanted)

    return {
        "r@1": float(first < 1),
        "r@5": share(5),
        "r@10": share(10),
        "mrr": 1 / (first + 1),
        "any@5": float(first < 5),
        "all@5": float(share(5) == 1),
    }


class PlainBM25:
    """A plain BM25 baseline: lower-case words, no stemming, no stop words, k1 1.2 and b 0.75."""

    def __init__(self, texts: Sequence[str]) -> None:
        counts = [Counter(_words(text)) for text in texts]
        self._postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for at, count_by_word in enumerate(counts):
            for word, count in count_by_word.items():
                self._postings[word].append((at, count))
        lengths = np.array([count_by_word.total() for count_by_word in counts], float)
        self._norm = _K1 * (1 - _B + _B * lengths / max(float(lengths.mean()), 1e-9))

    def rank(self, question: str, inside: Sequence[int]) -> Ranking:
        scores = np.zeros(self._norm.size)
        for word in _words(question):
            postings = self._postings.get(word, [])
            idf = math.log(1 + (scores.size - len(postings) + 0.5) / (len(postings) + 0.5))
            for at, count in postings:
                scores[at] += idf * count * (_K1 + 1) / (count + self._norm[at])
        places = np.asarray(inside, np.int64)
        best: Ranking = places[np.argsort(-scores[places], kind="stable")[:_HITS]].tolist()
        return best


def fuse(rankings: Sequence[Ranking]) -> Ranking:
    """Merge rankings by reciprocal rank fusion."""
    scores: Counter[int] = Counter()
    for ranking in rankings:
        for rank, place in enumerate(ranking, 1):
            scores[place] += 1 / (_RRF + rank)  # type: ignore[assignment]
    return [place for place, _ in scores.most_common()]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def plot(report: dict[str, Any], measure: str = "mrr") -> str:
    """Draw one measure of all sets and systems as SVG."""
    colours = ("#2b6cb0", "#dd6b20", "#718096", "#38a169")
    systems = list(report["mean"])
    rows = [
        *((measured["name"], measured["systems"]) for measured in report["sets"]),
        ("mean", report["mean"]),
    ]
    high, parts, top = 14 * len(systems) + 14, [], 40
    for name, values in rows:
        parts.append(f'<text x="130" y="{top + high / 2 - 4:.0f}" text-anchor="end">{_escape(name)}</text>')
        for at, system in enumerate(systems):
            width, y = 420 * values[system][measure], top + 14 * at
            parts.append(f'<rect x="140" y="{y}" width="{width:.1f}" height="12" fill="{colours[at % 4]}"/>')
            parts.append(f'<text x="{146 + width:.1f}" y="{y + 10}">{100 * values[system][measure]:.1f}</text>')
        top += high
    for at, system in enumerate(systems):
        parts.append(f'<text x="{140 + 130 * at}" y="20" fill="{colours[at % 4]}">{_escape(system)} ({measure})</text>')
    body = "".join(parts)
    style = "font: 12px system-ui, sans-serif"
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="640" height="{top}" style="{style}">{body}</svg>\n'


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")
