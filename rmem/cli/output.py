"""Format answers for people: tables and colours on a terminal, plain aligned text in a pipe or a file."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import click

from .exit_codes import in_colour

if TYPE_CHECKING:
    from rich.box import Box
    from rich.console import Console

_MIN_LAST_COLUMN = 20  # characters that the last column of a table needs
_LINE_BREAKS = {"\r\n": "\n", "\r": "\n", "\x0b": "\n", "\x0c": "\n", "\x85": "\n", "\u2028": "\n", "\u2029": "\n"}


def visible(text: str) -> str:
    """A text that cannot steer the terminal: tabs become spaces, control characters become \\x1b and the like."""
    for other, newline in _LINE_BREAKS.items():
        text = text.replace(other, newline)
    text = text.expandtabs(4)
    if text.isprintable():
        return text
    return "".join(
        character if character == "\n" or not _is_control(character) else _escape(character) for character in text
    )


def _is_control(character: str) -> bool:
    # Cc: escapes and bells; Cs cannot be encoded; bidirectional overrides change the order of reading.
    return (
        unicodedata.category(character) in ("Cc", "Cs")
        or character in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    )


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii") if ord(character) < 0xD800 else f"\\u{ord(character):04x}"


def one_line(text: str) -> str:
    return " ".join(visible(text).split())


def moment(seconds: float | None) -> str:
    """Format a time as local time to the minute."""
    return "–" if seconds is None else datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")


def size(count: float) -> str:
    """Format a number of bytes with a suitable unit."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"


def indent(text: str, by: str) -> str:
    return text.replace("\n", f"\n{by}")


def align(rows: Iterable[Sequence[str]], *, right: Sequence[int] = ()) -> None:
    """Align columns two spaces apart, for a pipe; the last one is not padded or cut."""
    lines = [list(row) for row in rows]
    if not lines:
        return
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]) - 1)]
    for line in lines:
        cells = [
            cell.rjust(width) if at in right else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=False))
        ]
        click.echo("  ".join([*cells, line[-1]]).rstrip())


def console() -> Console:
    from rich.console import Console

    return Console(markup=False, highlight=False, emoji=False)  # honours NO_COLOR, FORCE_COLOR and COLUMNS


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[int] = ()) -> None:
    """Print a table on the terminal. The last column is wrapped if space is short, the others never; if they leave it
    no space, it is printed below them."""
    from rich.cells import cell_len
    from rich.table import Table

    from ..models import shorten

    lines = [list(row) for row in rows]
    kept = sum(max(cell_len(line[at]) for line in [columns, *lines]) + 2 for at in range(len(columns) - 1))
    if console().width < kept + _MIN_LAST_COLUMN:
        for line in lines:
            click.echo(click.style("  ".join(line[:-1]), bold=True), color=in_colour(sys.stdout))
            click.echo(f"  {shorten(line[-1], max(_MIN_LAST_COLUMN, console().width - 2))}")
        return
    shown = Table(box=_box(), header_style="bold", show_edge=False, padding=(0, 1, 0, 0))
    last = len(columns) - 1
    for at, column in enumerate(columns):
        shown.add_column(
            column,
            justify="right" if at in right else "left",
            no_wrap=True,
            overflow="ellipsis",
            min_width=None if at == last else max(cell_len(line[at]) for line in [columns, *lines]),
        )
    for line in lines:
        shown.add_row(*line)
    console().print(shown)


def _box() -> Box:
    from rich import box

    return box.SIMPLE_HEAD


def facts(pairs: Iterable[tuple[str, str]], *, terminal: bool) -> None:
    """Print names and values, one pair per line."""
    given = list(pairs)
    if not terminal:
        width = max((len(name) for name, _ in given), default=0)
        for name, value in given:
            click.echo(f"{name.ljust(width)}  {indent(value, ' ' * (width + 2))}")
        return
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in given:
        grid.add_row(name, value)
    console().print(grid)
