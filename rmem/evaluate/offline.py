"""Evaluate recall on a question set: every question goes through `Brain.recall`, with one setting or two, and is
measured. Two settings answer the same questions, so they are compared question by question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import checks
from ..annotations import Mode
from ..errors import InputError
from ..recall.engine import MODES
from ..recall.settings import RecallSettings
from . import question_sets
from .measures import gains, measure
from .significance import LEVEL, paired_interval, paired_p

if TYPE_CHECKING:
    from ..brain import Brain
    from .question_sets import GradedQuestion, QuestionSet

Progress = Callable[[int, int], None]
DEPTHS = (5, 10)
_EXTRA = ("mode", "embedder")


@dataclass(frozen=True, slots=True)
class Setting:
    """How to recall: the fields of RecallSettings, `mode`, and `embedder` if the file contains memories."""

    name: str
    recall: RecallSettings = field(default_factory=RecallSettings)
    mode: Mode = "hybrid"
    embedder: str | None = None

    @classmethod
    def of(cls, name: str, given: Mapping[str, Any]) -> Setting:
        if not isinstance(given, Mapping):
            raise checks.refuse(name, "an object of settings", given)
        checks.known_fields(f"the settings {name}", given, [*(f.name for f in fields(RecallSettings)), *_EXTRA])
        mode = checks.one_of("mode", given.get("mode", "hybrid"), MODES)
        embedder = given.get("embedder")
        if embedder is not None:
            checks.text("embedder", embedder)
        rest = {key: value for key, value in given.items() if key not in _EXTRA}
        return cls(name, RecallSettings.of(rest), mode, embedder)


def evaluate(
    path: str | Path,
    *,
    brain: Brain | None = None,
    depths: Sequence[int] = DEPTHS,
    settings: Setting | None = None,
    against: Setting | None = None,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Return recall@k, nDCG@k and MRR on a question set, and the comparison of two settings.

    A file with memories is evaluated in a temporary store; any other needs a `brain`, which is only read.

    >>> evaluate("questions.jsonl")["settings"][0]["measures"]["recall@10"]  # doctest: +SKIP
    0.91
    """
    return evaluate_set(
        question_sets.read(path), name=str(path), brain=brain, depths=depths, settings=settings, against=against,
        seed=seed, on_progress=on_progress,
    )  # fmt: skip


def evaluate_set(
    questions: QuestionSet,
    *,
    name: str,
    brain: Brain | None = None,
    depths: Sequence[int] = DEPTHS,
    settings: Setting | None = None,
    against: Setting | None = None,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Evaluate questions that are already read; the report names `name` as their file."""
    from . import reliability

    depths = sorted({checks.whole("k", k, low=1, high=1000) for k in depths})
    if not depths:
        raise InputError("k must hold at least one depth", field="k")
    chosen = [setting for setting in (settings or Setting("default"), against) if setting is not None]
    if not questions.memories and brain is None:
        raise InputError(f"{name} contains no memories; name the store to evaluate", field="memories")
    total = len(chosen) * len(questions.questions)
    runs = []
    for number, setting in enumerate(chosen):
        done = number * len(questions.questions)
        report_done = partial(_report_progress, on_progress, done, total)
        runs.append(_run(questions, setting, brain, depths, report_done))
    report: dict[str, Any] = {
        "file": name,
        "questions": len(questions.questions),
        "measured": len(runs[0].scores),
        "skipped": len(questions.questions) - len(runs[0].scores),
        "missing": runs[0].missing,
        "settings": [
            {
                "name": run.setting.name,
                "embedder": run.embedder,
                "measures": _means(run.scores),
                "reliability": reliability.measure_reliability(run.first_hits),
            }
            for run in runs
        ],
    }
    if len(runs) == 2 and runs[0].scores:
        report["comparison"] = compare(*(list(run.scores.values()) for run in runs), seed=seed)
    return report


def _report_progress(on_progress: Progress | None, before: int, total: int, done: int) -> None:
    if on_progress is not None:
        on_progress(before + done, total)


@dataclass(slots=True)
class _SettingRun:
    """The measures of every question that has something relevant, by line."""

    setting: Setting
    embedder: str
    scores: dict[int, dict[str, float]]
    missing: int
    first_hits: list[tuple[float, bool]] = field(default_factory=list)
    """The relevance of each first hit, and whether it is right."""


def _run(
    questions: QuestionSet, setting: Setting, brain: Brain | None, depths: Sequence[int], report: Callable[[int], None]
) -> _SettingRun:
    from ..brain import Brain

    if questions.memories:
        with Brain(":memory:", embedder=setting.embedder) as temporary:
            _remember(temporary, questions)
            return _ask(temporary, questions, setting, depths, report, strict=True)
    assert brain is not None
    if setting.embedder is not None:
        raise InputError("embedder must be left out: the store has its own", field="embedder")
    return _ask(brain, questions, setting, depths, report, strict=False)


def _remember(brain: Brain, questions: QuestionSet) -> None:
    try:
        brain.remember_many(questions.memories)
    except InputError:
        for line, memory in zip(questions.lines, questions.memories, strict=True):  # find the line of the wrong one
            try:
                brain.remember_many([memory])
            except InputError as error:
                message = str(error).removeprefix("item 0: ")
                raise type(error)(f"line {line}: memories: {message}", field=error.field) from None
        raise


def _ask(
    brain: Brain,
    questions: QuestionSet,
    setting: Setting,
    depths: Sequence[int],
    report: Callable[[int], None],
    *,
    strict: bool,
) -> _SettingRun:
    run = _SettingRun(setting, brain.embedder, {}, 0)
    for number, question in enumerate(questions.questions, 1):
        wanted, grades, missing = _resolve_relevant(brain, question)
        if missing and strict:
            raise InputError(
                f"line {question.line}: relevant names {missing[0]!r}, which no memory of the file has as id or text",
                field="relevant",
            )
        run.missing += len(missing)
        if grades:
            hits = brain.recall(
                question.text,
                k=depths[-1],
                where=question.where,
                mode=setting.mode,
                settings=setting.recall,
                now=question.now,
                touch=False,
            )
            found = gains([hit.memory.memory_id for hit in hits], wanted, grades)
            run.scores[question.line] = measure(found, grades, depths)
            if hits:
                run.first_hits.append((hits[0].relevance or 0.0, hits[0].memory.memory_id in wanted))
        report(number)
    return run


def _resolve_relevant(brain: Brain, question: GradedQuestion) -> tuple[dict[str, int], list[float], list[str]]:
    """Return the wanted item of each memory, the grade of each item, and the names that match no memory."""
    wanted: dict[str, int] = {}
    grades: list[float] = []
    missing = []
    for name, worth in question.relevant.items():
        ids = _ids_named(brain, name)
        if not ids:
            missing.append(name)
            continue
        for key in ids:
            wanted.setdefault(key, len(grades))
        grades.append(worth)
    return wanted, grades, missing


def _ids_named(brain: Brain, name: str) -> list[str]:
    """Return the id of the memory with that id, or those of all with that text."""
    if name in brain.store:
        return [name]
    return [memory.memory_id for memory, _ in brain.store.match(name, k=100) if memory.text.strip() == name.strip()]


def _means(scores: Mapping[int, Mapping[str, float]]) -> dict[str, float | None]:
    rows = list(scores.values())
    return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]} if rows else {}


def compare(
    first: Sequence[Mapping[str, float]], second: Sequence[Mapping[str, float]], *, seed: int = 0
) -> dict[str, Any]:
    """Return for each measure the mean difference (first - second), its 95 % interval, p, and which is better."""
    result = {}
    for name in first[0]:
        differences = [left[name] - right[name] for left, right in zip(first, second, strict=True)]
        mean = sum(differences) / len(differences)
        p = paired_p(differences, seed=seed)
        low, high = paired_interval(differences, seed=seed)
        result[name] = {
            "difference": mean,
            "low": low,
            "high": high,
            "p": p,
            "changed": sum(abs(difference) > 1e-12 for difference in differences),
            "better": None if p >= LEVEL else "first" if mean > 0 else "second",
        }
    return result
