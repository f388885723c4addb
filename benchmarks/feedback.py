"""What feedback does to later rankings, on sets of `rmem eval recall` whose stores have several questions.

    python benchmarks/feedback.py locomo.json.gz history.json.gz

Every other question is asked, and the right ones among its first ten hits are marked useful. Then are asked: the same
questions again; the same in other words (the words that carry meaning, without every fourth, in reverse order); and the
questions that nobody judged. The figures are before and after, in percent; with `--wrong 0.3`, three verdicts of ten
mark another hit of the first ten than the right one."""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

from rmem import Brain, RecallSettings
from rmem.evaluate.offline import Setting
from rmem.evaluate.recall_sets import RecallSet, files_in, measures, memories_of, read, recall_hits
from rmem.index.analyser import question_words

GROUPS = ("asked again", "in other words", "not judged")
SHOWN = ("r@1", "mrr", "r@10")
Figures = dict[tuple[str, str, int], list[float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", type=Path, nargs="+")
    parser.add_argument("--wrong", type=float, nargs="*", default=[0.0, 0.3], help="shares of verdicts that are wrong")
    parser.add_argument("--feedback", type=float, default=RecallSettings().feedback, help="the knob of recall")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    setting = Setting("default", RecallSettings(feedback=given.feedback))
    for one in map(read, files_in(given.sets)):
        for wrong in given.wrong:
            figures = measured(one, setting, wrong, random.Random(given.seed))
            for group in GROUPS:
                means = {key: 100 * sum(numbers) / len(numbers) for key, numbers in figures.items()}
                told = (f"{name} {means[group, name, 0]:.1f} → {means[group, name, 1]:.1f}" for name in SHOWN)
                number = len(figures[group, "r@1", 0])
                print(f"{one.name} {wrong:.0%} wrong, {group}, {number} questions:", *told, sep="  ", flush=True)


def measured(one: RecallSet, setting: Setting, wrong: float, rng: random.Random) -> Figures:
    """The measures of each group of questions before (0) and after (1) feedback."""
    figures: Figures = defaultdict(list)
    for store in one.stores:
        judged, others = store["questions"][::2], store["questions"][1::2]
        groups = dict(zip(GROUPS, (judged, [in_other_words(question) for question in judged], others), strict=True))
        sessions = [memory.get("session") for memory in store["memories"]] if one.by_session else None
        with Brain(":memory:", embedder=setting.embedder) as brain:
            places = {memory.memory_id: at for at, memory in enumerate(brain.remember_many(memories_of(store)))}
            for time in (0, 1):
                for group, questions in groups.items():
                    for question in questions:
                        ranking = [places[hit.id] for hit in recall_hits(brain, question, setting)]
                        for name, value in measures(ranking, question["relevant"], sessions).items():
                            figures[group, name, time].append(value)
                if time == 0:
                    for question in judged:
                        judge(brain, places, question, setting, wrong, rng)
    return figures


def judge(
    brain: Brain, places: dict[str, int], question: dict[str, Any], setting: Setting, wrong: float, rng: random.Random
) -> None:
    """Mark the right hits among the first ten, or, by mistake, others."""
    hits = recall_hits(brain, question, setting)[:10]
    right = [hit for hit in hits if places[hit.id] in question["relevant"]]
    others = [hit for hit in hits if hit not in right]
    for hit in right:
        (rng.choice(others) if others and rng.random() < wrong else hit).useful()


def in_other_words(question: dict[str, Any]) -> dict[str, Any]:
    words = [word.text for word in question_words(question["question"]) if not word.stop]
    kept = [word for at, word in enumerate(words, 1) if at % 4] if len(words) > 3 else words
    return {**question, "question": " ".join(reversed(kept)) or question["question"]}


if __name__ == "__main__":
    main()
