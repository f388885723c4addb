"""A plugin of pytest: BrainStore in the place of LangGraph's own stores, with the constructors of those."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import langgraph.store.memory
import langgraph.store.sqlite
import langgraph.store.sqlite.aio

from rmem.integrations.langgraph import BrainStore


def _address(connection: str) -> str:
    path = Path(connection)
    if path.is_file() and not path.stat().st_size:
        path.unlink()  # the tests make an empty file
    return connection


def _index(index: Any) -> Any:
    return None if index is None else {**index, "fields": index.get("text_fields") or index.get("fields")}


class InMemoryStore(BrainStore):
    def __init__(self, *, index: Any = None) -> None:
        super().__init__(":memory:", index=index)


class SqliteStore(BrainStore):
    @classmethod
    @contextmanager
    def from_conn_string(cls, connection: str, *, index: Any = None, ttl: Any = None) -> Iterator[SqliteStore]:
        with cls(_address(connection), index=_index(index), ttl=ttl) as store:
            yield store

    def setup(self) -> None: ...

    def start_ttl_sweeper(self) -> None: ...  # BrainStore needs none: what is expired is not returned

    def stop_ttl_sweeper(self) -> None: ...


class AsyncSqliteStore(BrainStore):
    @classmethod
    @asynccontextmanager
    async def from_conn_string(cls, connection: str, *, index: Any = None, ttl: Any = None) -> AsyncIterator[Any]:
        with cls(_address(connection), index=_index(index), ttl=ttl) as store:
            yield store

    async def setup(self) -> None: ...

    async def start_ttl_sweeper(self) -> None: ...

    async def stop_ttl_sweeper(self) -> None: ...

    async def sweep_ttl(self) -> int:  # type: ignore[override]
        return super().sweep_ttl()


langgraph.store.memory.InMemoryStore = InMemoryStore  # type: ignore[misc]
langgraph.store.sqlite.SqliteStore = SqliteStore  # type: ignore[misc]
langgraph.store.sqlite.AsyncSqliteStore = AsyncSqliteStore  # type: ignore[misc]
langgraph.store.sqlite.aio.AsyncSqliteStore = AsyncSqliteStore  # type: ignore[misc]
