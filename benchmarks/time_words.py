"""Measure how many times in questions `rmem.timewords` reads as others do.

    python benchmarks/time_words.py RECOGNIZERS [--language English] [--half tune|test] [--show]

RECOGNIZERS is a clone of microsoft/Recognizers-Text (MIT), whose `Specs/DateTime` hold sentences with the time that
each names, seen from a fixed day. Counted are those with one time that has begun on that day: memories are of the past.
A time is right if the two spans share most of what they cover together; for a day or less, a third of it, so that a
morning may begin at five or at eight. It is wide if it contains the right one: the day for an hour of it, the month for
its first week. Every second sentence is for tuning, the others are for testing.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from rmem.timewords import Span, time_span

_FILES = ("DateParser", "DatePeriodParser", "DateTimePeriodParser", "HolidayParser")
_DAY = timedelta(days=1)


class Case(NamedTuple):
    """A sentence, the day it is seen from, and the span it names; None where it is open, twice if it names none."""

    text: str
    now: datetime
    start: datetime | None
    end: datetime | None


def cases(path: Path, test: bool) -> Iterator[Case]:
    """Read every second sentence of a file."""
    for number, spec in enumerate(json.loads(path.read_text("utf-8-sig"))):
        if number % 2 != test:
            continue
        now = _moment(spec.get("Context", {}).get("ReferenceDateTime")) or datetime(2016, 11, 7)
        results = spec.get("Results", [])
        if not results:
            yield Case(spec["Input"], now, None, None)
        elif len(results) == 1:
            start, end = _bounds((results[0].get("Value") or {}).get("PastResolution") or {})
            if (begun := start or end) and begun.year >= 1900 and begun < now + _DAY:
                yield Case(spec["Input"], now, start, end)


def _bounds(resolution: dict[str, Any]) -> tuple[datetime | None, datetime | None]:
    if start := _moment(resolution.get("date")):
        return start, start + _DAY
    start = _moment(resolution.get("startDate") or resolution.get("startDateTime"))
    end = _moment(resolution.get("endDate") or resolution.get("endDateTime"))
    if start and end and "endDate" in resolution:
        end = max(end, start + _DAY)
    return start, end


def _moment(text: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(text[:19]) if text else None
    except ValueError:
        return None


def outcome(case: Case) -> str:
    """Return "right", "wide", "wrong" or "missed"; for a sentence without a time "false alarm" or "quiet"."""
    found = time_span(case.text, case.now)
    if case.start is case.end is None:
        return "false alarm" if found else "quiet"
    if found is None:
        return "missed"
    if _same(found, case):
        return "right"
    wide = case.start and case.end and found.start <= case.start and case.end <= found.end + _DAY
    return "wide" if wide else "wrong"


def _same(found: Span, case: Case) -> bool:
    if case.start is None or case.end is None:
        near = case.end is not None and abs(found.end - case.end) <= _DAY and found.start.year < 1980
        return near or (case.start is not None and abs(found.start - case.start) <= _DAY and found.end > case.now)
    shared = (min(found.end, case.end) - max(found.start, case.start)).total_seconds()
    covered = (max(found.end, case.end) - min(found.start, case.start)).total_seconds()
    return shared / covered >= (1 / 3 if case.end - case.start <= _DAY else 0.6)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recognizers", type=Path, help="a clone of microsoft/Recognizers-Text")
    parser.add_argument("--language", action="append", help="a folder of Specs/DateTime (default: English)")
    parser.add_argument("--half", choices=("tune", "test"), default="tune")
    parser.add_argument("--show", action="store_true", help="print each sentence of the tuning half that is not right")
    given = parser.parse_args()
    for language in given.language or ["English"]:
        counts: Counter[str] = Counter()
        for name in _FILES:
            path = given.recognizers / "Specs" / "DateTime" / language / f"{name}.json"
            for case in cases(path, given.half == "test") if path.is_file() else ():
                counts[result := outcome(case)] += 1
                if given.show and given.half == "tune" and result not in ("right", "quiet"):
                    print(result, case.text, case.now, case.start, case.end, time_span(case.text, case.now), sep=" | ")
        rest = counts["false alarm"] + counts["quiet"]
        shown = ", ".join(f"{counts[name]} {name}" for name in ("right", "wide", "wrong", "missed"))
        print(f"{language}: {counts.total() - rest} sentences: {shown}; {counts['false alarm']} of {rest} false alarms")


if __name__ == "__main__":
    main()
