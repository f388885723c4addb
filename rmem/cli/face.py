"""What every subcommand gets: the store that was asked for, and the functions that print answers."""

from __future__ import annotations

import json
import sys
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
class Face:
    """The store's address (None for the default) and whether the answer is JSON."""

    store: str | None = None
    json: bool = False
    quiet: bool = False
    """Ids instead of sentences and columns, and no notes."""

    @property
    def address(self) -> str:
        return self.store if self.store is not None else str(config.default_store())

    @property
    def remote(self) -> bool:
        """Whether the store is a server, which keeps its own audit log."""
        return self.address.startswith(("http://", "https://"))

    @property
    def terminal(self) -> bool:
        """Whether a person is looking: tables and colours then, plain text otherwise."""
        return not self.json and not self.quiet and (sys.stdout.isatty() or is_forced())

    def brain(self) -> Brain:
        """The store, made if there is none yet."""
        from ..brain import Brain

        return Brain(self.address)

    def present(self) -> Brain:
        """The store, which must be there."""
        path = store_file(self.address)
        if path is not None and not path.exists():
            raise StoreError(f"there is no store at {path}")
        return self.brain()

    def looking(self) -> Brain:
        """The store for a command that only looks: one that is not there counts as empty and is not made."""
        path = store_file(self.address)
        if path is None or path.exists():
            return self.brain()
        from ..brain import Brain

        self.note(f"there is no store at {path} yet; `rmem remember` makes it")
        brain = Brain(":memory:")
        brain.address = self.address
        return brain

    def document(self, value: Any) -> None:
        """The answer as JSON."""
        unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
        click.echo(json.dumps(value, ensure_ascii=not unicode, indent=2 if sys.stdout.isatty() else None))

    def note(self, text: str) -> None:
        """Something worth knowing that is not the answer."""
        if not self.json and not self.quiet:
            click.echo(text, err=True)


def store_file(address: str) -> Path | None:
    """The file behind an address; None where there is no file to look for."""
    scheme, separator, rest = address.partition("://")
    if address == ":memory:" or (separator and scheme != "sqlite"):
        return None
    return Path(rest.removeprefix("/") if separator else address).expanduser()


def memory_document(memory: Memory, *, vectors: bool = False) -> dict[str, Any]:
    """A memory for JSON; its vectors only where they were asked for."""
    document = memory.to_dict()
    if not vectors:
        del document["embeddings"]
    return document
