"""Misspell the questions of recall sets as people do, by the dictionary of codespell (`pip install codespell`).

    python benchmarks/misspelt.py FOLDER SET.json.gz…
    rmem eval recall FOLDER

Every word of five letters and more that the dictionary knows a misspelling of gets one, drawn at random; questions
without such a word are left out."""

from __future__ import annotations

import gzip
import json
import random
import re
import sys
from collections import defaultdict
from importlib.resources import files
from pathlib import Path

_SHORTEST = 5


def main(folder: str, *paths: str) -> None:
    slips = _slips()
    for path in paths:
        given = json.loads(gzip.decompress(Path(path).read_bytes()))
        drawn = random.Random(0)
        for store in given["stores"]:
            spoilt = [
                question | {"question": _misspell(question["question"], slips, drawn)}
                for question in store["questions"]
            ]
            store["questions"] = [
                after for before, after in zip(store["questions"], spoilt, strict=True) if before != after
            ]
        given["name"] += "-misspelt"
        target = Path(folder) / f"{given['name']}.json.gz"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(gzip.compress(json.dumps(given).encode(), 9, mtime=0))
        print(f"{target}: {sum(len(store['questions']) for store in given['stores'])} questions")


def _slips() -> dict[str, list[str]]:
    """Return the known misspellings of each word."""
    found = defaultdict(list)
    for line in (files("codespell_lib") / "data" / "dictionary.txt").read_text(encoding="utf-8").splitlines():
        wrong, _, right = line.partition("->")
        if right.isalpha() and wrong.isalpha():
            found[right].append(wrong)
    return found


def _misspell(text: str, slips: dict[str, list[str]], drawn: random.Random) -> str:
    def slip(match: re.Match[str]) -> str:
        known = slips.get(match[0].lower())
        return drawn.choice(known) if known and len(match[0]) >= _SHORTEST else match[0]

    return re.sub(r"[A-Za-z]+", slip, text)


if __name__ == "__main__":
    main(*sys.argv[1:])
