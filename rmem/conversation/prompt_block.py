"""The text block that goes before a prompt: a summary, what was recalled and the newest messages, within a number of
tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..recall.budget import estimate_tokens, shorten

SUMMARY, RECALLED, RECENT = "Summary of what came before:", "Relevant memories:", "Recent messages:"
_FOR_SUMMARY, _FOR_RECENT = 0.25, 0.5  # shares of the budget; what they leave over goes to memories, then to messages


def block(
    summary: str,
    recalled: Sequence[str],
    recent: Sequence[str],
    budget: int,
    fit: Callable[[Sequence[str], int], str],
) -> str:
    """The parts that have something to say, each under its heading. `fit` makes the summary smaller if it has to be;
    `recalled` is best first, `recent` oldest first."""
    told = _summary(summary, int(_FOR_SUMMARY * budget), fit)
    left = budget - _cost(SUMMARY, [told] if told else [])
    shown = _newest(recent, min(left, int(_FOR_RECENT * budget)))
    found = [text for text in recalled if text not in shown and _content(text) not in told]
    memories = _fitting([f"- {_one_line(text)}" for text in found], left - _cost(RECENT, shown))
    left -= _cost(RECALLED, memories)
    shown = _newest(recent, left) if shown != list(recent) else shown
    parts = [(SUMMARY, [told] if told else []), (RECALLED, memories), (RECENT, shown)]
    return "\n\n".join("\n".join([heading, *lines]) for heading, lines in parts if lines)


def _summary(summary: str, budget: int, fit: Callable[[Sequence[str], int], str]) -> str:
    room = budget - estimate_tokens(SUMMARY)
    if not summary or room < 1:
        return ""
    return summary if estimate_tokens(summary) <= room else fit(summary.splitlines(), room)


def _newest(texts: Sequence[str], budget: int) -> list[str]:
    """The newest that fit, without a gap; if the newest of all does not fit, what fits of it."""
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


def _fitting(lines: Sequence[str], budget: int) -> list[str]:
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
    """What was said, without who said it; the summary may tell it under one name with other things."""
    return text.partition(": ")[2] or text


def _one_line(text: str) -> str:
    return " ".join(text.split())
