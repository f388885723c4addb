"""Read question sets: a JSON Lines file, checked line by line. An error names the line and the field.

{"memories": ["Parquet it is, CSV is dropped", {"id": "m2", "text": "The ETL job runs at six", "agent": "swe-01"}]}
{"question": "csv or parquet?", "relevant": ["Parquet it is, CSV is dropped"]}
{"question": "when does the job run?", "relevant": {"m2": 2}, "where": {"agent": "swe-01"}, "now": "2026-05-01"}
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from .. import checks
from ..errors import InputError
from ..filters import Filter

FIELDS = ("question", "relevant", "where", "now", "memories")


@dataclass(frozen=True, slots=True)
class GradedQuestion:
    """A question, and its relevant memories by id or whole text, with their grades."""

    line: int
    text: str
    relevant: dict[str, float]
    where: Filter
    now: datetime | None


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """The questions and memories of a file; without memories, an existing store is evaluated."""

    questions: list[GradedQuestion]
    memories: list[dict[str, Any]]
    """Arguments of `remember`."""
    lines: list[int]
    """The line of each memory."""


def read(path: str | Path) -> QuestionSet:
    found = QuestionSet([], [], [])
    for number, line in _lines(path):
        try:
            _read_line(number, line, found)
        except InputError as error:
            raise InputError(f"{path}, line {number}: {error}", field=error.field) from None
    if not found.questions:
        raise InputError(f"{path} must hold at least one question", field="question")
    return found


def _lines(path: str | Path) -> Iterator[tuple[int, str]]:
    try:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, line
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}", field="file") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} must be UTF-8 text; byte {error.start} is not", field="file") from None


def _read_line(number: int, line: str, found: QuestionSet) -> None:
    try:
        item = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}", field="line") from None
    if not isinstance(item, dict):
        raise checks.refuse("a line", "an object", item)
    checks.known_fields("a line of a question set", item, FIELDS)
    memories = item.get("memories")
    if memories is None and "question" not in item:
        raise InputError("a line must have a question or memories", field="question")
    if memories is not None:
        found.memories.extend(_memories(memories))
        found.lines.extend([number] * (len(found.memories) - len(found.lines)))
    if "question" in item:
        found.questions.append(_question(number, item))
        return
    for key in ("relevant", "where", "now"):
        if key in item:
            raise InputError(f"{key} needs a question on the same line", field=key)


def _memories(value: object) -> Iterator[dict[str, Any]]:
    if not isinstance(value, list):
        raise checks.refuse("memories", "a list of texts or of remember's arguments", value)
    for at, memory in enumerate(value):
        if isinstance(memory, str):
            yield {"text": checks.text(f"memories[{at}]", memory)}
        elif isinstance(memory, dict):
            checks.text(f"memories[{at}].text", memory.get("text"))
            yield memory
        else:
            raise checks.refuse(f"memories[{at}]", "a text or an object", memory)


def _question(number: int, item: Mapping[str, Any]) -> GradedQuestion:
    now = None if item.get("now") is None else datetime.fromtimestamp(checks.moment("now", item["now"]))
    where = item.get("where")
    if where is not None and not isinstance(where, dict):
        raise checks.refuse("where", "an object of filter fields", where)
    try:
        filtered = Filter.of(where)
    except InputError as error:
        raise type(error)(f"where: {error}", field=f"where.{error.field}") from None
    text = checks.text("question", item["question"])
    return GradedQuestion(number, text, _relevant(item.get("relevant")), filtered, now)


def _relevant(value: object) -> dict[str, float]:
    expected = "a list of ids or texts of memories, or an object of them with their worth"
    if isinstance(value, list) and value:
        return {checks.text(f"relevant[{at}]", name): 1.0 for at, name in enumerate(value)}
    if isinstance(value, dict) and value:
        return {key: checks.number(f"relevant[{key!r}]", worth, low=1e-6, high=1e6) for key, worth in value.items()}
    raise checks.refuse("relevant", expected, value)
