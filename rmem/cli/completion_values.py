"""The values that a shell offers for an id, an agent or a type: those of the store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from .. import config
from .cli_context import store_file

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from ..brain import Brain

_SEARCHED = 2000  # newest memories whose ids are completed
_MAX_OFFERED = 100
_TEXT = 60


def ids(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete ids of memories, newest first, with the start of their texts."""
    from click.shell_completion import CompletionItem

    with _brain(context) as brain:
        memories = [] if brain is None else brain.memories(limit=_SEARCHED)
    found = [memory for memory in memories if memory.id.startswith(incomplete)]
    return [CompletionItem(memory.id, help=" ".join(memory.text[:_TEXT].split())) for memory in found[:_MAX_OFFERED]]


def agents(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    with _brain(context) as brain:
        return [] if brain is None else _matching_names(brain.stats()["by_agent"], incomplete)


def types(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    with _brain(context) as brain:
        return [] if brain is None else _matching_names(brain.stats()["by_type"], incomplete)


def _matching_names(counts: dict[str, int], incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(name) for name in list(counts) if name.startswith(incomplete)][:_MAX_OFFERED]


@contextmanager
def _brain(context: click.Context) -> Iterator[Brain | None]:
    """Open the store that the command line names so far, if it exists; after an error, complete nothing."""
    from ..errors import RemanenceError

    own, root = context.params.get("store"), context.find_root().params.get("store")
    address = str(own or root or config.default_store())
    path = store_file(address)
    if path is not None and not path.exists():
        yield None
        return
    from ..brain import Brain

    try:
        brain = Brain(address)
    except RemanenceError:
        yield None
        return
    with brain:
        yield brain
