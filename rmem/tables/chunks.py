"""Split texts into chunks of some hundred characters at paragraphs, sentences or words. Nothing here reads files."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from ..checks import whole
from ..errors import InputError

CHUNK_SIZE = 1000
CHUNK_OVERLAP = 200

_PARAGRAPH = re.compile(r"\n[ \t]*\n\s*")
_LINE = re.compile(r"\n\s*")
_SENTENCE = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])")
_WORD = re.compile(r"\s+")
_LEVELS = (_PARAGRAPH, _LINE, _SENTENCE, _WORD)

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*")
_FRONT = re.compile(r"---[ \t]*\n.*?\n(?:---|\.\.\.)[ \t]*(?:\n|$)", re.DOTALL)


def check_sizes(chunk_size: object, chunk_overlap: object) -> tuple[int, int]:
    size = whole("chunk_size", chunk_size, low=1)
    overlap = whole("chunk_overlap", chunk_overlap)
    if overlap >= size:
        raise InputError(
            f"chunk_overlap must be smaller than chunk_size ({size}), got {overlap}", field="chunk_overlap"
        )
    return size, overlap


def chunks(text: str, size: int = CHUNK_SIZE, overlap: int = CHUNK_OVERLAP) -> Iterator[str]:
    """Split a text into chunks of at most `size` characters, each repeating about the last `overlap` characters of the
    one before. A chunk ends at the last paragraph end in its second half; failing that, at a line, a sentence or a
    word."""
    borders = [sorted({match.end() for match in level.finditer(text)}) for level in _LEVELS]
    start, covered = 0, 0  # `covered` is how far the chunks so far reach
    while start < len(text):
        end = len(text) if len(text) - start <= size else _end(borders, start + size // 2, start + size, covered)
        piece = text[start:end].strip()
        if piece:
            yield piece
        if end >= len(text):
            return
        covered = end
        start = _start(borders, end - overlap, start, end) if overlap else end


def _end(borders: list[list[int]], earliest: int, latest: int, covered: int) -> int:
    """Return the end of a chunk, beyond what is already covered, so that each chunk adds something."""
    for level in borders:
        at = bisect_right(level, latest) - 1
        if at >= 0 and level[at] > max(earliest, covered):
            return level[at]
    return latest


def _start(borders: list[list[int]], wanted: int, before: int, end: int) -> int:
    """Return the start of the next chunk: the first sentence or word after `wanted`, else `wanted`."""
    for level in borders[2:]:
        at = bisect_right(level, max(wanted, before + 1) - 1)
        if at < len(level) and level[at] < end:
            return level[at]
    return max(wanted, before + 1)


class Section(NamedTuple):
    """A section of a Markdown text with its headings, outermost first."""

    headings: tuple[str, ...]
    text: str


def sections(markdown: str) -> list[Section]:
    """Split a Markdown text at its headings; ignore lines that look like headings in code blocks."""
    found: list[Section] = []
    path: dict[int, str] = {}
    lines: list[str] = []
    fence = ""

    def close() -> None:
        text = "\n".join(lines).strip()
        if text:
            found.append(Section(tuple(path[level] for level in sorted(path)), text))
        lines.clear()

    def enter(level: int, title: str) -> None:
        for deeper in [known for known in path if known >= level]:
            del path[deeper]
        path[level] = title

    front = _FRONT.match(markdown)
    if front:  # settings before the text, whose last line would look like an underlined heading
        lines.append(front[0])
        close()
    for line in markdown[front.end() if front else 0 :].splitlines():
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
            lines.append(line)
            continue
        if mark:
            fence = mark[1]
            lines.append(line)
            continue
        heading, underline = _HEADING.fullmatch(line), _UNDERLINE.fullmatch(line)
        if heading:
            close()
            enter(len(heading[1]), (heading[2] or "").strip())
        elif underline and lines and lines[-1].strip() and not _HEADING.fullmatch(lines[-1]):
            title = lines.pop()
            close()
            enter(1 if underline[1][0] == "=" else 2, title.strip())
            lines.append(title)
        lines.append(line)
    close()
    return found
