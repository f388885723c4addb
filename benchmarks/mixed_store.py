"""Put the memories of several recall sets into one store, and ask some questions of each set there.

    python benchmarks/mixed_store.py FOLDER FILE [FIRST LAST]

FOLDER holds sets as `rmem eval recall` reads them (`benchmarks/unseen_kinds.py` makes some). FILE becomes one set of
one store, with the questions FIRST to LAST (0 to 100) of each set, which are shuffled before; the name of the set is
the kind of the question. Questions that are asked inside one session are left out."""

from __future__ import annotations

import gzip
import json
import random
import sys
from pathlib import Path
from typing import Any

from rmem.evaluate.recall_sets import files_in, read


def main(folder: str, file: str, first: int, last: int) -> None:
    memories: list[dict[str, Any]] = []
    questions: list[dict[str, Any]] = []
    for path in files_in([folder]):
        recall_set = read(path)
        asked = []
        for number, store in enumerate(recall_set.stores):
            start = len(memories)
            for memory in store["memories"]:
                session = memory.get("session")
                named = {} if session is None else {"session": f"{recall_set.name} {number} {session}"}
                memories.append({**memory, **named})
            asked += [
                {**question, "kind": recall_set.name, "relevant": [start + at for at in question["relevant"]]}
                for question in store["questions"]
                if question["relevant"] and question.get("session") is None
            ]
        random.Random(3).shuffle(asked)
        questions += asked[first:last]
    recall_set = {"name": "mixed", "unit": "memory", "stores": [{"memories": memories, "questions": questions}]}
    Path(file).write_bytes(gzip.compress(json.dumps(recall_set).encode(), mtime=0))
    print(f"{len(memories)} memories, {len(questions)} questions")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *(map(int, sys.argv[3:]) if sys.argv[3:] else (0, 100)))
