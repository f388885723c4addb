"""When a sentence says that its fact holds: "since 2021-05-01", "as of May 2026", "until 2019"."""

from __future__ import annotations

import re
from datetime import datetime

from ..patterns import lazy_pattern

_MONTHS = {name: at for at, name in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), 1)}
_DATE = (
    r"(?:(\d{4})-(\d\d)(?:-(\d\d))?"
    r"|(?:(\d{1,2}) )?((?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*)\.?"
    r"(?: (\d{1,2})(?:st|nd|rd|th)?,?)? (\d{4})"
    r"|((?:19|20)\d\d))"
)
_YEAR = lazy_pattern(r"\d\d\d\d")  # faster to search for than \d{4}
_SINCE = lazy_pattern(rf",? (?:since|as of|starting(?: in| on)?|effective|from) {_DATE}(?![\w-])")
_UNTIL = lazy_pattern(rf",? (?:until|till|up to|to) {_DATE}(?![\w-])")


def validity(sentence: str) -> tuple[float | None, float | None, str]:
    """Return the start and end of validity (Unix seconds or None), and the sentence without these dates."""
    if _YEAR.search(sentence) is None:
        return None, None, sentence
    start = end = None
    since = _SINCE.search(sentence)
    if since is not None:
        start = _timestamp(since)
        sentence = sentence[: since.start()] + sentence[since.end() :]
    until = _UNTIL.search(sentence) if since is not None or " until " in sentence or " till " in sentence else None
    if until is not None:
        end = _timestamp(until)
        sentence = sentence[: until.start()] + sentence[until.end() :]
    return start, end, sentence


def _timestamp(match: re.Match[str]) -> float | None:
    year, month, day, day_before, month_name, day_after, month_year, lone_year = match.groups()
    try:
        if year:
            when = datetime(int(year), int(month), int(day or 1))
        elif month_name:
            when = datetime(int(month_year), _MONTHS[month_name[:3].lower()], int(day_before or day_after or 1))
        else:
            when = datetime(int(lone_year), 1, 1)
        return when.timestamp()
    except (ValueError, OverflowError, OSError):
        return None
