"""The text block that goes before a prompt: a summary, what was recalled and the newest messages, within a number of
tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..recall.budget import estimate_tokens, shorten

SUMMARY, RECALLED, RECENT = "Summary of what came before:", "Relevant memories:", "Recent messages:"
_FOR_SUMMARY, _FOR_RECENT = 0.25, 0.5  # shares of the budget; memories get the rest, and messages what is then left


def block(
    summary: str,
    recalled: Sequence[str],
    recent: Sequence[str],
    budget: int,
    fit: Callable[[Sequence[str], int], str],
) -> str:
    """Build the block: summary, memories and messages, each under its heading if not empty, in at most `budget` tokens.
    `fit(lines, tokens)` shortens the summary; `recalled` is best first, `recent` oldest first."""
    short_summary = _fit_summary(summary, int(_FOR_SUMMARY * budget), fit)
    left = budget - _cost(SUMMARY, [short_summary] if short_summary else [])
    messages = _newest_that_fit(recent, min(left, int(_FOR_RECENT * budget)))
    found = [text for text in recalled if text not in messages and _content(text) not in short_summary]
    memories = _lines_that_fit([f"- {_one_line(text)}" for text in found], left - _cost(RECENT, messages))
    left -= _cost(RECALLED, memories)
    messages = _newest_that_fit(recent, left) if messages != list(recent) else messages
    parts = [(SUMMARY, [short_summary] if short_summary else []), (RECALLED, memories), (RECENT, messages)]
    return "\n\n".join("\n".join([heading, *lines]) for heading, lines in parts if lines)


def _fit_summary(summary: str, budget: int, fit: Callable[[Sequence[str], int], str]) -> str:
    room = budget - estimate_tokens(SUMMARY)
    if not summary or room < 1:
        return ""
    return summary if estimate_tokens(summary) <= room else fit(summary.splitlines(), room)


def _newest_that_fit(texts: Sequence[str], budget: int) -> list[str]:
    """Return the newest texts that fit, without a gap; if even the newest does not fit, the start of it."""
    left = budget - estimate_tokens(RECENT)
    shown: list[str] = []
    for text in reversed(texts):
        cost = estimate_tokens(text)
        if cost > left:
            break
        shown.append(text)
        left -= cost
    if not shown and texts and left > 8:
        shown = [shorten(texts[-1], left)]
    return shown[::-1]


def _lines_that_fit(lines: Sequence[str], budget: int) -> list[str]:
    left = budget - estimate_tokens(RECALLED)
    chosen = []
    for line in lines:
        cost = estimate_tokens(line)
        if cost <= left:
            chosen.append(line)
            left -= cost
    return chosen


def _cost(heading: str, lines: Sequence[str]) -> int:
    return estimate_tokens(heading) + sum(map(estimate_tokens, lines)) if lines else 0


def _content(text: str) -> str:
    """Return a message without its role; a summary may join several messages of one role."""
    return text.partition(": ")[2] or text


def _one_line(text: str) -> str:
    return " ".join(text.split())
