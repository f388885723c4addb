"""Precision and recall by kind over corpora that others wrote, and how often real text raises an alarm."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from rmem.errors import InputError
from rmem.privacy.findings import KINDS, SECRETS, Finding
from rmem.privacy.scanner import scan

from .corpora import PARTS, SECRETS_ONLY, Mark, Sample, part_of

_BEYOND = 24
"""Characters that a finding may cover beside marks: a corpus may mark a URL's password, and we take the user too."""
_NAMES = {
    "phone": re.compile(
        r"\+|phone|\btel|mobil|m[oó]vil|\bcell|\bcall|\bfax|office|contact|handy|anruf|ruf |ll[aá]ma|celular|tel[eé]f|"
        r"téléph|电话|手机|電話|携帯|전화|телеф|sms|whatsapp",
        re.IGNORECASE,
    ),
    "national_id": re.compile(
        r"\bssn|social|\bitin|\bnhs|\bni[fe]\b|\bdni|hetu|henkil|codice|fiscal|aadha|pesel|\btfn|\btax|\bsin\b|\brrn|주민|"
        r"personn|\bpnr|kimlik|\bid\b|steuer|identi|\bcpf|\bbsn|secu|sécu|rodn|マイナンバー|身份",
        re.IGNORECASE,
    ),
}
"""Words for these kinds, anywhere in a text. A number of which nothing says what it is is not claimed to be found."""
_ROWS = (
    "secret assigned",
    "secret bare",
    "secret in a line",
    "look-alike of a secret",
    *KINDS,
    "phone, unnamed",
    "national_id, unnamed",
)
_SETTINGS = {"assigned": _ROWS[0], "bare": _ROWS[1], "line": _ROWS[2]}
SHOWN = 100
"""Findings in real text that are listed, drawn by chance, for a person to look at."""


def evaluate(
    samples: Iterable[Sample], *, part: str = "test", progress: Callable[[int, int | None], None] | None = None
) -> dict[str, Any]:
    """Count what is found, missed and found too much.

    A marked value is found if findings of its kind cover all of it; the kinds of secrets count as one. A finding is
    extra if it touches no mark, or covers more than a few characters beside marks. `part` is "development" (what rules
    were tuned on), "test" or "all"; real text has no parts. `wrong` and `alarms` say where, without the values.
    """
    if part not in PARTS:
        raise InputError(f"part must be one of {', '.join(PARTS)}, got {part!r}", field="part")
    rows: Counter[tuple[str, str, str]] = Counter()
    corpora: Counter[str] = Counter()
    size: Counter[str] = Counter()
    alarms: list[dict[str, Any]] = []
    wrong: list[dict[str, Any]] = []
    for done, sample in enumerate(samples):
        if progress and done % 50 == 0:
            progress(done, None)
        if sample.marks is None:
            size[sample.corpus] += len(sample.text.encode())
            alarms += (_alarm(sample, one) for one in scan(sample.text))
        elif part in ("all", part_of(sample)):
            corpora[sample.corpus] += 1
            for row, what, at, rule in _judged(sample, sample.marks):
                rows[sample.corpus, row, what] += 1
                if what != "found":
                    wrong.append(_place(sample, row, what, at, rule))
    totals: Counter[tuple[str, str]] = Counter()
    for (_, row, what), count in rows.items():
        totals[row, what] += count
    return {
        "part": part,
        "samples": dict(corpora),
        "by_kind": {row: _rates(totals, row) for row in _ROWS if any(totals[row, what] for what in _WHATS)},
        "by_corpus": {
            corpus: {
                row: _rates(Counter({what: rows[corpus, row, what] for what in _WHATS}), None)
                for row in _ROWS
                if any(rows[corpus, row, what] for what in _WHATS)
            }
            for corpus in corpora
        },
        "real_text": {
            corpus: {
                "megabytes": round(count / 1e6, 1),
                "findings": dict(Counter(one["kind"] for one in alarms if one["corpus"] == corpus).most_common()),
            }
            for corpus, count in size.items()
        },
        "alarms": _drawn(alarms),
        "wrong": wrong,
    }


_WHATS = ("found", "missed", "extra")


def _judged(sample: Sample, marks: tuple[Mark, ...]) -> Iterable[tuple[str, str, tuple[int, int], str]]:
    """Row, what happened, where, and by which rule."""
    kinds = SECRETS if sample.corpus in SECRETS_ONLY else KINDS
    found = scan(sample.text, kinds)
    for start, end, kind in marks:
        same = [one for one in found if _group(one.kind) == _group(kind)]
        if sample.setting == "line":
            whole = bool(same)
        else:
            whole = not set(range(start, end)).difference(*(range(one.start, one.end) for one in same))
        yield _row(sample, kind), "found" if whole else "missed", (start, end), ""
    told = sample.corpus in SECRETS_ONLY and marks  # beside the one that it is about, a sample may hold others
    for one in found:
        outside = set(range(one.start, one.end)).difference(*(range(start, end) for start, end, _ in marks))
        apart = len(outside) == one.end - one.start
        if (apart and not told) or (not apart and len(outside) > _BEYOND and one.kind != "private_key"):
            yield _row(sample, one.kind), "extra", (one.start, one.end), one.rule


def _group(kind: str) -> str:
    return "secret" if kind in SECRETS else kind


def _row(sample: Sample, kind: str) -> str:
    if kind in _NAMES and not _NAMES[kind].search(sample.text):
        return f"{kind}, unnamed"
    if not sample.marks and (kind == "secret" or (kind in SECRETS and sample.corpus in SECRETS_ONLY)):
        return "look-alike of a secret"
    return _SETTINGS.get(sample.setting, kind) if kind == "secret" else kind


def _rates(counts: Counter[Any], row: str | None) -> dict[str, Any]:
    found, missed, extra = (counts[what if row is None else (row, what)] for what in _WHATS)
    return {
        "recall": found / (found + missed) if found + missed else None,
        "precision": found / (found + extra) if found else None,
        "found": found,
        "missed": missed,
        "extra": extra,
    }


def _place(sample: Sample, row: str, what: str, at: tuple[int, int], rule: str) -> dict[str, Any]:
    return {"corpus": sample.corpus, "source": sample.source, "what": what, "row": row, "rule": rule, "at": at}


def _alarm(sample: Sample, one: Finding) -> dict[str, Any]:
    source, _, line = sample.source.rpartition(":")
    place = f"{source}:{int(line) + sample.text.count(chr(10), 0, one.start)}"
    return {"corpus": sample.corpus, "source": place, "kind": one.kind, "rule": one.rule}


def _drawn(alarms: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Some secrets first, then others: a wrong secret is the worst alarm."""
    secrets = [one for one in alarms if one["kind"] in SECRETS]
    others = [one for one in alarms if one["kind"] not in SECRETS]
    random = Random(0)
    return [one for some in (secrets, others) for one in random.sample(some, min(SHOWN, len(some)))]
