"""Make a recall set from CLARK-News: sentences of newspapers about facts that changed (who plays for which team, who
holds which office), each with its month, and questions that only the latest of them answer.

    python benchmarks/changed_facts.py changed.json.gz CLONE_OF_belindal/ERASE
    rmem eval recall changed.json.gz --against newer=0

People chose the sentences from articles (arXiv 2406.11830). For evaluation only: the text is that of newspapers."""

from __future__ import annotations

import csv
import gzip
import json
import sys
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any

_DATES = ("%m/%d/%Y", "%m/%Y")
_YES_OR_NO = ("Is ", "Does ")


def main(target: str, clone: str) -> None:
    csv.field_size_limit(1 << 30)
    folder = Path(clone) / "CLARK_news" / "full"
    asked = defaultdict(set)
    for row in _rows(folder / "questions.csv"):
        if not row["Question"].startswith(_YES_OR_NO):
            asked[row["Question type"]].add(row["Question"])
    told = defaultdict(list)
    for row in _rows(folder / "property_to_results.csv"):
        when, text = _date(row["source_date"]), " ".join(row["span"].split())
        if when is not None and text:
            told[row["subjectLabel"], row["propertyLabel"]].append((when, row["objectLabel"], text))
    memories: dict[tuple[str, str], int] = {}
    questions = []
    for (subject, kind), found in sorted(told.items()):
        found.sort(key=lambda one: one[0])
        places = [(value, memories.setdefault((text, when), len(memories))) for when, value, text in found]
        current = {place for value, place in places if value == places[-1][0]}
        before = {place for value, place in places if value != places[-1][0]} - current
        question = min((text for text in asked[kind] if subject in text), default=None)
        newest = found[-1][0]
        if question is not None and before and all(when < newest for when, value, _ in found if value != found[-1][1]):
            questions.append({"question": question, "kind": kind, "now": None, "relevant": sorted(current)})
    store = {"memories": [{"text": text, "when": when} for text, when in memories], "questions": questions}
    recall_set = {"name": "changed-facts", "source": "CLARK-News", "unit": "memory", "stores": [store]}
    Path(target).write_bytes(gzip.compress(json.dumps(recall_set).encode(), 9, mtime=0))
    print(f"{len(memories)} memories, {len(questions)} questions")


def _rows(path: Path) -> list[dict[str, Any]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _date(text: str) -> str | None:
    for form in _DATES:
        try:
            return datetime.strptime(text, form).isoformat()
        except ValueError:
            continue
    return None


if __name__ == "__main__":
    main(*sys.argv[1:])
