"""The functions `remember` and `recall`, for frameworks that turn functions into tools of a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..brain import Brain
from .turns import Turn, Turns

NOTE = "agent_note"
"""The type of memories that a model stores by calling `remember`."""

Tool = Callable[[str], str]


def memory_functions(
    brain: Brain | str | Path | None = None, *, user: str = "default", agent: str = "agent", k: int = 5
) -> tuple[Tool, Tool]:
    """Make `remember` and `recall` for one user; the model sees their docstrings."""
    turns = Turns(brain, NOTE, agent=agent, k=k)

    def remember(text: str) -> str:
        """Keep a fact for later conversations. Call this when the user states something worth knowing next time.

        Args:
            text: One fact in one sentence that makes sense on its own.
        """
        turns.add([Turn("assistant", text, None)], None, user=user)
        return "kept"

    def recall(question: str) -> str:
        """Find what was kept in earlier conversations. Call this before answering from general knowledge.

        Args:
            question: What to look for, in plain words.
        """
        hits = turns.recall(question, user=user)
        return "\n".join(f"- {hit.text}" for hit in hits) or "nothing is known about that"

    return remember, recall
