"""Precision and recall on a labelled file: `python -m remanence.privacy.evaluate FILE`, or `rmem privacy evaluate`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

from .findings import KINDS
from .samples import Labelled, read_labelled
from .scanner import scan

PARTS = ("all", "tuning", "held-out")


def evaluate(path: str | Path, *, part: str = "all", seed: int = 0) -> dict[str, Any]:
    """How well the detectors find what a file marks. A finding counts if kind, start and end are all right.

    `part` is "tuning" or "held-out" for two thirds or the last third of the lines; `wrong` tells what was missed and
    what was found too much, by line and rule, without the values.
    """
    lines = [line for line in read_labelled(path, seed) if part == "all" or line.held_out == (part == "held-out")]
    right: Counter[str] = Counter()
    extra: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    wrong = []
    for line in lines:
        found = {(one.start, one.end, one.kind): one.rule for one in scan(line.text)}
        marked = set(line.spans)
        right.update(kind for _, _, kind in marked & found.keys())
        missed.update(kind for _, _, kind in marked - found.keys())
        extra.update(kind for _, _, kind in found.keys() - marked)
        wrong += [_told(line, span, "missed", "") for span in sorted(marked - found.keys())]
        wrong += [_told(line, span, "extra", found[span]) for span in sorted(found.keys() - marked)]
    kinds = {kind: _rates(right[kind], extra[kind], missed[kind]) for kind in KINDS}
    return {
        "file": str(path),
        "part": part,
        "lines": len(lines),
        "clean_lines": sum(not line.spans for line in lines),
        "overall": _rates(right.total(), extra.total(), missed.total()),
        "by_kind": kinds,
        "wrong": wrong,
    }


def _rates(right: int, extra: int, missed: int) -> dict[str, Any]:
    return {
        "precision": right / (right + extra) if right + extra else None,
        "recall": right / (right + missed) if right + missed else None,
        "right": right,
        "extra": extra,
        "missed": missed,
    }


def _told(line: Labelled, span: tuple[int, int, str], what: str, rule: str) -> dict[str, Any]:
    return {"line": line.number, "source": line.source, "what": what, "kind": span[2], "rule": rule, "at": span[:2]}


def main(arguments: Collection[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m remanence.privacy.evaluate FILE", file=sys.stderr)
        return 2
    print(json.dumps(evaluate(next(iter(arguments))), indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
