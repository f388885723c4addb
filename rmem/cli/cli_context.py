"""The context of a command line: which store to open, and whether to print JSON, ids or text."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import config
from ..errors import StoreError
from .exit_codes import is_forced

if TYPE_CHECKING:
    from ..brain import Brain
    from ..models import Memory


@dataclass(slots=True)
class CliContext:
    """The address of the store (None for the default) and the form of the output."""

    store: str | None = None
    json: bool = False
    quiet: bool = False
    """Print ids instead of sentences and columns, and no notes."""

    @property
    def address(self) -> str:
        return self.store if self.store is not None else str(config.default_store())

    @property
    def is_remote(self) -> bool:
        """Whether the store is a server, which keeps its own audit log."""
        return self.address.startswith(("http://", "https://"))

    @property
    def is_terminal(self) -> bool:
        """Whether the output goes to a terminal: tables and colours then, plain text otherwise."""
        return not self.json and not self.quiet and (sys.stdout.isatty() or is_forced())

    def brain(self) -> Brain:
        """Open the store; create it if there is none."""
        from ..brain import Brain

        return Brain(self.address)

    def existing_brain(self) -> Brain:
        """Open the store; StoreError if there is none."""
        path = store_file(self.address)
        if path is not None and not path.exists():
            raise StoreError(f"there is no store at {path}")
        return self.brain()

    def brain_or_empty(self) -> Brain:
        """Open the store for a command that only reads; if there is none, return an empty one without creating a
        file."""
        path = store_file(self.address)
        if path is None or path.exists():
            return self.brain()
        from ..brain import Brain

        self.note(f"there is no store at {path} yet; `rmem remember` makes it")
        brain = Brain(":memory:")
        brain.address = self.address
        return brain

    def document(self, value: Any) -> None:
        """Print a value as JSON."""
        unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
        click.echo(json.dumps(value, ensure_ascii=not unicode, indent=2 if sys.stdout.isatty() else None))

    def answer(self, document: Any, text: str) -> None:
        """Print a document as JSON where that is wanted, else a text."""
        if self.json:
            self.document(document)
        else:
            click.echo(text)

    def result(self, document: Any, remark: str) -> None:
        """Print a document as JSON where that is wanted, else a remark about what was done."""
        if self.json:
            self.document(document)
        self.note(remark)

    def table(
        self, columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = (), names: bool = True
    ) -> None:
        """Print a table on a terminal, else aligned columns, with their `names` first. Columns `right` hold numbers."""
        from . import output

        if self.is_terminal:
            output.table(columns, rows, right=right)
        else:
            output.align([columns, *rows] if names else rows, right=right)

    def note(self, text: str) -> None:
        """Print a remark to standard error, unless the output is JSON or quiet."""
        if not self.json and not self.quiet:
            click.echo(text, err=True)


def store_file(address: str) -> Path | None:
    """Return the file of an address; None if it names no file."""
    scheme, separator, rest = address.partition("://")
    if address == ":memory:" or (separator and scheme != "sqlite"):
        return None
    return Path(rest.removeprefix("/") if separator else address).expanduser()


def note_foreign(cli: CliContext, memories: Sequence[Memory], what: str) -> None:
    """Say that a change of other members' memories holds only until the next sync."""
    from ..team.notes import Experience

    if others := sorted({found.author for memory in memories if (found := Experience(memory)).is_foreign}):
        cli.note(
            f"A memory of {', '.join(others)}: unless you are an administrator, {what} back with the next sync. Let an "
            "agent remember what holds now in its place (supersedes)."
        )


def memory_document(memory: Memory, *, vectors: bool = False) -> dict[str, Any]:
    """Convert a memory for JSON, without its vectors unless `vectors`."""
    document = memory.to_dict()
    if not vectors:
        del document["embeddings"]
    return document
