"""Recall on facts that later facts replace, and on questions that need several of them.

A file, or each file of a folder, is JSON, perhaps gzipped: [{"name": …, "facts": [sentence, in order of time],
"questions": [{"question": …, "answers": [text]}]}]. All sentences of a set are remembered in their order; each question
goes through `recall`."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .. import checks
from ..errors import InputError
from .offline import Progress, Setting
from .recall_sets import files_in

K = 10
MEASURES = ("first", "among ten")


def read(file: Path) -> list[dict[str, Any]]:
    """Read the sets of a file and check the fields that are used."""
    try:
        raw = file.read_bytes()
        sets = json.loads(gzip.decompress(raw) if file.suffix == ".gz" else raw)
    except (OSError, EOFError, zlib.error, ValueError, RecursionError) as error:
        raise InputError(f"{file} must be sets of facts and questions in JSON: {error}", field="FILE") from None
    try:
        for at, fact_set in enumerate(sets):
            checks.name(f"[{at}].name", fact_set["name"])
            for place, fact in enumerate(fact_set["facts"]):
                checks.text(f"[{at}].facts[{place}]", fact)
            for place, question in enumerate(fact_set["questions"]):
                checks.text(f"[{at}].questions[{place}].question", question["question"])
                checks.names(f"[{at}].questions[{place}].answers", question["answers"])
    except (AttributeError, KeyError, TypeError) as error:
        raise InputError(
            f"{file} must be a list of sets with name, facts and questions: {error!r}", field="FILE"
        ) from None
    except InputError as error:
        raise InputError(f"{file}: {error}", field=error.field) from None
    return list(sets)


def evaluate(
    paths: Sequence[str | Path], *, settings: Setting | None = None, on_progress: Progress | None = None
) -> dict[str, Any]:
    """Return the share of each set's questions whose answer is in the first hit, and in the first ten."""
    from ..brain import Brain

    sets = [one for file in files_in(paths) for one in read(file)]
    setting = settings or Setting("default")
    total, done = sum(len(fact_set["questions"]) for fact_set in sets), 0
    reports = []
    for fact_set in sets:
        rows = []
        with TemporaryDirectory() as folder, Brain(Path(folder) / "memories.db", embedder=setting.embedder) as brain:
            brain.remember_many([{"text": fact} for fact in fact_set["facts"]])
            for question in fact_set["questions"]:
                hits = brain.recall(question["question"], k=K, mode=setting.mode, settings=setting.recall, touch=False)
                found = [_answers(hit.text, question["answers"]) for hit in hits]
                rows.append(
                    {
                        "question": question["question"],
                        "first": float(bool(found) and found[0]),
                        "among ten": float(any(found)),
                    }
                )
                done += 1
                if on_progress is not None:
                    on_progress(done, total)
        measured = {name: sum(row[name] for row in rows) / max(len(rows), 1) for name in MEASURES}
        reports.append(
            {
                "name": fact_set["name"],
                "facts": len(fact_set["facts"]),
                "questions": len(rows),
                **measured,
                "by_question": rows,
            }
        )
    return {"sets": reports}


def _answers(text: str, answers: list[str]) -> bool:
    return any(answer.casefold() in text.casefold() for answer in answers)
