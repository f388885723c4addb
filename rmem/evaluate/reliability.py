"""Measure whether `hit.relevance` is calibrated: of the first hits with a relevance of 0.7, are seven of ten right?

Each store gets its own questions and, as questions without an answer, as many of the other stores of its set;
questions whose `relevant` is empty have no answer either."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .offline import Progress, Setting
from .recall_sets import RecallSet, files_in, memories_of, read, recall_hits

BINS = 10
FEWEST = 10  # hits in a bin, at least, for a point in the diagram


class FirstHit(NamedTuple):
    """The relevance of a first hit, and whether the hit is right."""

    relevance: float
    right: bool


def evaluate(
    paths: Sequence[str | Path],
    *,
    setting: Setting | None = None,
    most: int = 400,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Return for each set how well relevance separates right from wrong first hits (auc), its mean error, and its bins,
    from `most` questions of the set and as many without an answer."""
    sets = [read(path) for path in files_in(paths)]
    stores, done = sum(len(recall_set.stores) for recall_set in sets), 0
    reports = []
    for recall_set in sets:
        hits: list[FirstHit] = []
        rng = random.Random(seed)
        for at in range(len(recall_set.stores)):
            hits += _first_hits(recall_set, at, setting or Setting("default"), -(-most // len(recall_set.stores)), rng)
            done += 1
            if on_progress is not None:
                on_progress(done, stores)
        reports.append({"name": recall_set.name, **measure_reliability(hits)})
    return reports


def measure_reliability(first_hits: Sequence[tuple[float, bool]]) -> dict[str, Any]:
    """Return the figures of first hits, each given as its relevance and whether it is right."""
    hits = [FirstHit(*hit) for hit in first_hits]
    return {"hits": len(hits), "auc": auc(hits), "error": error(hits), "bins": bins(hits)}


def _first_hits(recall_set: RecallSet, at: int, setting: Setting, most: int, rng: random.Random) -> list[FirstHit]:
    from ..brain import Brain

    store = recall_set.stores[at]
    sessions = [memory.get("session") for memory in store["memories"]]
    others = [question for other in recall_set.stores if other is not store for question in other["questions"]]
    answerable = rng.sample(store["questions"], min(most, len(store["questions"])))
    unanswerable = [{**question, "relevant": []} for question in rng.sample(others, min(len(answerable), len(others)))]
    first_hits: list[FirstHit] = []
    with Brain(":memory:", embedder=setting.embedder) as brain:
        places = {memory.memory_id: place for place, memory in enumerate(brain.remember_many(memories_of(store)))}
        for question in (*answerable, *unanswerable):
            if question.get("session") is not None and question["session"] not in sessions:
                question = {**question, "session": rng.choice(sessions)}
            hits = recall_hits(brain, question, setting)
            if hits:
                place = places[hits[0].id]
                right = place in question["relevant"]
                if recall_set.by_session:
                    right = sessions[place] in {sessions[other] for other in question["relevant"]}
                first_hits.append(FirstHit(hits[0].relevance or 0.0, right))
    return first_hits


def bins(hits: Sequence[FirstHit]) -> list[dict[str, float]]:
    """Return mean relevance and share of right hits, by tenths of relevance."""
    parts: list[list[FirstHit]] = [[] for _ in range(BINS)]
    for hit in hits:
        parts[min(int(hit.relevance * BINS), BINS - 1)].append(hit)
    return [
        {
            "hits": len(part),
            "said": sum(hit.relevance for hit in part) / len(part),
            "right": sum(hit.right for hit in part) / len(part),
        }
        for part in parts
        if part
    ]


def error(hits: Sequence[FirstHit]) -> float:
    """Return the mean difference between relevance and share of right hits, over all bins (ECE)."""
    off = sum(part["hits"] * abs(part["said"] - part["right"]) for part in bins(hits))
    return off / len(hits) if hits else 0.0


def auc(hits: Sequence[FirstHit]) -> float | None:
    """Return how often a right hit has a higher relevance than a wrong one; None without both."""
    right, wrong = ([hit.relevance for hit in hits if hit.right is is_right] for is_right in (True, False))
    if not right or not wrong:
        return None
    wins = sum((of_right > of_wrong) + 0.5 * (of_right == of_wrong) for of_right in right for of_wrong in wrong)
    return wins / (len(right) * len(wrong))


def plot(reports: Sequence[dict[str, Any]]) -> str:
    """Draw a reliability diagram as SVG: relevance (x), share of right hits (y), a line per set."""
    colours = ("#2b6cb0", "#dd6b20", "#38a169", "#805ad5", "#d53f8c", "#718096", "#b7791f", "#319795")
    parts = [
        '<rect x="50" y="10" width="300" height="300" fill="none" stroke="#a0aec0"/>',
        '<line x1="50" y1="310" x2="350" y2="10" stroke="#a0aec0" stroke-dasharray="4 4"/>',
        '<text x="200" y="345" text-anchor="middle">relevance that was said</text>',
        '<text x="14" y="160" text-anchor="middle" transform="rotate(-90 14 160)">share that was right</text>',
    ]
    for tick in (0, 0.5, 1):
        parts.append(f'<text x="{50 + 300 * tick:.0f}" y="326" text-anchor="middle">{tick:g}</text>')
        parts.append(f'<text x="44" y="{314 - 300 * tick:.0f}" text-anchor="end">{tick:g}</text>')
    for at, report in enumerate(reports):
        colour = colours[at % len(colours)]
        places = [
            (50 + 300 * part["said"], 310 - 300 * part["right"]) for part in report["bins"] if part["hits"] >= FEWEST
        ]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        shown = report["name"].replace("&", "&amp;").replace("<", "&lt;")
        parts.append(f'<text x="370" y="{30 + 20 * at}" fill="{colour}">{shown} (off by {report["error"]:.2f})</text>')
    style = "font: 12px system-ui, sans-serif"
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="600" height="360" style="{style}">{"".join(parts)}</svg>\n'
