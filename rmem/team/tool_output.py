"""Extract the useful lines of a tool's output: errors, the end of a traceback, what a test expected, the final summary.
Colours, progress, repetitions and listings are dropped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")
_TELLING = re.compile(
    r"\b(?:error|exception|failed|failure|fatal|panic(?:ked)?|traceback|assert(?:ion)?|denied|refused|undefined|"
    r"unresolved|not found|no such|cannot|can't|could not|unable to|timed? ?out|killed|segfault|segmentation fault|"
    r"out of memory|conflict|mismatch|expected|unexpected|invalid|missing|deprecated|warning|"
    r"exit (?:code|status) [1-9])",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"\b[A-Z]\w*(?:Error|Exception|Warning|Failure|Fault)\b|\bE\d{3,5}\b|\b[A-Z]{2,5}\d{3,5}\b|^E\s{2,}\S"
)
_SUMMARY = re.compile(
    r"^=+ .* =+$|\b\d+ (?:passed|failed|errors?|warnings?|tests?)\b|^(?:FAILED|ERROR|PASSED|ok|FAIL)\b"
)
_SETTING = re.compile(
    r"0x[0-9a-fA-F]{6,}|\b[0-9a-f]{12,64}\b|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*|\b\d+(?:\.\d+)?(?:ms|s|sec|seconds)\b"
    r"|/tmp/\S+|\bpid[ =:]\d+"
)
_FRAME = re.compile(r'^\s*(?:File "|at |in )')
WIDTH = 400  # characters of a line


def plain(output: str) -> str:
    """Remove colours and progress lines that were overwritten."""
    text = _COLOUR.sub("", output).replace("\r\n", "\n")
    return "\n".join(line.rpartition("\r")[2].rstrip() for line in text.split("\n"))


def excerpt(output: str, limit: int = 1500) -> str:
    """Return the lines that say what went wrong, in order, at most `limit` characters."""
    lines = fold_repeats(line for line in plain(output).splitlines() if line.strip())
    if sum(len(line) + 1 for line in lines) <= limit:
        return "\n".join(lines)
    weights = [_weight(line, at, len(lines)) for at, line in enumerate(lines)]
    chosen: set[int] = set()
    size = 0
    for at in sorted(range(len(lines)), key=lambda at: (-weights[at], -at)):
        cost = min(len(lines[at]), WIDTH) + 1
        if weights[at] <= 0 or size + cost > limit:
            continue
        chosen.add(at)
        size += cost
    return "\n".join(_join_lines(lines, sorted(chosen)))


def signature(error: str) -> str:
    """Return an error without what differs between runs: addresses, hashes, times, line numbers."""
    return re.sub(r"\bline \d+|:\d+(?::\d+)?\b|\d+", "#", _SETTING.sub("#", error)).casefold().strip()


def fold_repeats(lines: Iterable[str]) -> list[str]:
    """Replace repeated lines, or lines that differ only in numbers, by one with a count."""
    kept: list[str] = []
    last, times = "", 0
    for line in lines:
        same = signature(line)
        if same == last and kept:
            times += 1
            continue
        if times:
            kept[-1] += f" (and {times} more like it)"
        kept.append(line[:WIDTH])
        last, times = same, 0
    if times and kept:
        kept[-1] += f" (and {times} more like it)"
    return kept


def _weight(line: str, at: int, count: int) -> float:
    weight = 0.0
    if _NAMED.search(line):
        weight += 3
    if _SUMMARY.search(line):
        weight += 2.5
    if _TELLING.search(line):
        weight += 2
    if _FRAME.match(line):
        weight += 0.5 + at / count  # the innermost frames come last
    if at >= count - 3:
        weight += 1
    return weight


def _join_lines(lines: Sequence[str], chosen: Sequence[int]) -> list[str]:
    result: list[str] = []
    before = -1
    for at in chosen:
        if at > before + 1 and result:
            result.append("…")
        result.append(lines[at])
        before = at
    return result
