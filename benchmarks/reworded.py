"""Reword the questions of recall sets as people type them: misspelt, or with abbreviations.

    python benchmarks/reworded.py misspelt FOLDER SET.json.gz…                   # by codespell: pip install codespell
    python benchmarks/reworded.py abbreviated=CLONE FOLDER SET.json.gz…   # by a clone of abbrcode/abbreviations-in-code
    rmem eval recall FOLDER

Every word that the list knows gets another form, drawn at random; questions without such a word are left out."""

from __future__ import annotations

import gzip
import json
import random
import re
import sys
from collections import defaultdict
from importlib.resources import files
from pathlib import Path

_SHORTEST = 5  # letters of a word that is misspelt

Forms = dict[str, list[str]]


def main(how: str, folder: str, *paths: str) -> None:
    kind, _, clone = how.partition("=")
    forms = _abbreviations(Path(clone)) if kind == "abbreviated" else _misspellings()
    for path in paths:
        given = json.loads(gzip.decompress(Path(path).read_bytes()))
        drawn = random.Random(0)
        for store in given["stores"]:
            reworded = [one | {"question": _reword(one["question"], forms, drawn)} for one in store["questions"]]
            store["questions"] = [
                after for before, after in zip(store["questions"], reworded, strict=True) if before != after
            ]
        given["name"] += f"-{kind}"
        target = Path(folder) / f"{given['name']}.json.gz"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(gzip.compress(json.dumps(given).encode(), 9, mtime=0))
        print(f"{target}: {sum(len(store['questions']) for store in given['stores'])} questions")


def _misspellings() -> Forms:
    found = defaultdict(list)
    for line in (files("codespell_lib") / "data" / "dictionary.txt").read_text(encoding="utf-8").splitlines():
        wrong, _, right = line.partition("->")
        if right.isalpha() and wrong.isalpha() and len(right) >= _SHORTEST:
            found[right].append(wrong)
    return found


def _abbreviations(clone: Path) -> Forms:
    found = {}
    for line in (clone / "README.md").read_text(encoding="utf-8").splitlines():
        if entry := re.match(r"- ([a-z]+) • (.*)", line):
            short = re.findall(r"[🟢🟡🔴] ([a-z0-9]+)", entry[2])
            found[entry[1]] = short
            found[f"{entry[1]}s"] = [f"{one}s" for one in short]
    return found


def _reword(text: str, forms: Forms, drawn: random.Random) -> str:
    def reword(match: re.Match[str]) -> str:
        known = forms.get(match[0].lower())
        return drawn.choice(known) if known else match[0]

    return re.sub(r"[A-Za-z]+", reword, text)


if __name__ == "__main__":
    main(*sys.argv[1:])
