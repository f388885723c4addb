"""The state of a thread's open transaction: whether it wrote, and whether it failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from threading import local
from typing import Any, TypeVar, cast

from ..errors import SqlError, SqlUnsupportedError

F = TypeVar("F", bound=Callable[..., Any])


class Transaction(local):
    """The transaction of the current thread."""

    is_open = False
    wrote = False
    failed = False

    @contextmanager
    def begin(self) -> Iterator[None]:
        self.is_open, self.wrote, self.failed = True, False, False
        try:
            yield
            if self.failed:
                raise SqlError("a statement of this transaction failed, so nothing of it was written")
        finally:
            self.is_open = False

    @contextmanager
    def statement(self) -> Iterator[None]:
        """Run one statement. After a failed one no other can follow, as in PostgreSQL."""
        if not self.is_open:
            yield
            return
        if self.failed:
            raise SqlError("an earlier statement of this transaction failed; leave the transaction and begin again")
        try:
            yield
        except BaseException:
            self.failed = True
            raise

    def check_search(self) -> None:
        """Refuse a search after a write: search indexes see only committed rows."""
        if self.wrote:
            raise SqlUnsupportedError(
                "a search would not find what this transaction wrote; search before its first write, or after its end"
            )


def counts_as_write(method: F) -> F:
    """Decorate a workspace method that counts as a writing statement."""

    @wraps(method)
    def run(self: Any, *given: Any, **options: Any) -> Any:
        with self._transaction.statement():
            result = method(self, *given, **options)
            self._transaction.wrote = True
            return result

    return cast("F", run)
