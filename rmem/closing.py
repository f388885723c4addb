"""Closing, the base of what a `with` block closes at its end."""

from __future__ import annotations

from types import TracebackType
from typing import Self


class Closing:
    """Calls `close` at the end of a `with` block."""

    def close(self) -> None:
        """Release what it holds. Closing twice is harmless."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
