"""Client: tables with SQL and hybrid search, in the local file or on a server, with the same methods and answers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from .. import checks, config
from ..closing import Closing
from ..errors import ConfigError
from ..extras import require
from .builder import Select
from .catalog import Index, Table
from .chunks import CHUNK_OVERLAP, CHUNK_SIZE
from .ingest import (
    Frame,
    Indexes,
    Progress,
    Schema,
    index_kinds,
    index_name,
    index_statement,
    normalize_columns,
    write_table,
)
from .remote import RemoteWorkspace
from .streams import BATCH, QueryRows, arrow_reader, csv_texts, write_parquet
from .types import sql_of
from .wire_values import type_name

if TYPE_CHECKING:
    from ..brain import Brain
    from ..graph import Graph
    from .workspace import Workspace

Params = Sequence[Any] | Mapping[str, Any] | None
DEFAULT_WORKSPACE = "default"
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")
_KEYS = ("RMEM_API_KEY", "DEEPLAKE_API_KEY")
_URLS = ("RMEM_API_URL", "DEEPLAKE_API_URL")
_WORKSPACES = ("RMEM_WORKSPACE", "DEEPLAKE_WORKSPACE")
_ORGANISATIONS = ("RMEM_ORG_ID", "DEEPLAKE_ORG_ID")


class Client(Closing):
    """Tables of one workspace.

        client = Client()                                        # in RMEM_HOME, beside the memories
        client = Client(path="team.db")                          # another file, or postgresql://…
        client = Client(token="…", api_url="http://host:8080")   # a server

    A server is used when an address is given or set (`RMEM_API_URL`), and only then; `path` overrides that. The
    token, workspace and organisation come from `RMEM_API_KEY`, `RMEM_WORKSPACE` and `RMEM_ORG_ID`
    where they are not given; the same names with `DEEPLAKE_` do as well. What was written is found at once. Safe to
    use from many threads.
    """

    def __init__(
        self,
        token: str | None = None,
        workspace_id: str | None = None,
        api_url: str | None = None,
        *,
        path: str | Path | None = None,
        org_id: str | None = None,
        timeout: float = 30.0,
    ) -> None:
        """`timeout` is how many seconds a server may take to answer."""
        if path is not None and (api_url is not None or token is not None):
            raise ConfigError("give a path, or a token and api_url, not both")
        named = workspace_id or _set(_WORKSPACES) or DEFAULT_WORKSPACE
        self.workspace = checks.name("workspace_id", named, maximum=40)
        url = None if path is not None else api_url or _set(_URLS)
        key = None if path is not None else token or _set(_KEYS)
        if key and not url:
            where = "token" if token else next(name for name in _KEYS if os.environ.get(name, "").strip())
            raise ConfigError(
                f"{where} is a token for a server, but there is no address of one: pass api_url or set {_URLS[0]} "
                f"(such as http://127.0.0.1:8080, where rmem serve runs); for the local file leave {where} out, or "
                "pass path"
            )
        self._tables: Workspace | RemoteWorkspace
        self._brain: Brain | None = None
        if url:
            patience = checks.number("timeout", timeout, low=0.001)
            org = org_id or _set(_ORGANISATIONS)
            self._tables = RemoteWorkspace(url, key, self.workspace, org_id=org, timeout=patience)
        else:
            require("tables", "a Client without a server")
            from .workspace import Workspace

            file = local_file(self.workspace) if path is None else path
            known = None if "://" in str(file) else partial(self._graph, file)
            self._tables = Workspace(file, name=self.workspace, graph=known)

    def _graph(self, file: str | Path) -> Graph:
        from ..brain import Brain

        if self._brain is None:
            self._brain = Brain(file)
        return self._brain.graph

    def __repr__(self) -> str:
        return f"Client({self._tables!r})"

    # Writing

    def ingest(
        self,
        table: str,
        data: Mapping[str, Any] | Frame,
        schema: Schema | None = None,
        index: Indexes | None = None,
        on_progress: Progress | None = None,
        chunk_size: int = CHUNK_SIZE,
        chunk_overlap: int = CHUNK_OVERLAP,
    ) -> dict[str, Any]:
        """Create a table from columns of values, or append to it: `ingest("t", {"task": ["…"], "embedding": [[…]]})`.
        A data frame of pandas or polars and an Arrow table are columns too (`rmem[parquet]`).

        Types are inferred from the values unless `schema` names them; a new table also gets `id BIGSERIAL PRIMARY KEY`
        unless the data has an `id`. `schema={"path": "FILE"}` reads the files of that column: see docs/tables.md.
        `index` names columns to be found by search. All rows are written or none. Returns `table_name`, `row_count`
        and whether it was `created`."""
        ready = normalize_columns(
            data, schema, chunk_size=chunk_size, chunk_overlap=chunk_overlap, on_progress=on_progress
        )
        if not isinstance(self._tables, RemoteWorkspace):
            return write_table(self._tables, table, ready, index=index, on_progress=on_progress)
        answer = self._tables.ingest(checks.name("table", table), ready, index_kinds(index, ready))
        if on_progress is not None:
            on_progress(ready.rows, ready.rows)
        return answer

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """Make one transaction of what this thread does with the client: all of it is written, or nothing.

            with client.transaction():
                client.query("UPDATE accounts SET balance = balance - 5 WHERE id = 1")
                client.query("UPDATE accounts SET balance = balance + 5 WHERE id = 2")

        An exception undoes it. After a statement that failed no other is taken, as in PostgreSQL. Others who write
        wait for its end, so keep it short. Not offered on a server."""
        with self._tables.transaction():
            yield self

    # Reading

    def query(self, sql: str, params: Params = None, *, timeout: float | None = None) -> QueryRows:
        """Run one statement with values for `$1`, `$2`, … (a list) or `:name` (a mapping); the rows are dicts."""
        return QueryRows(self._tables.query(sql, params, timeout=timeout))

    def table(self, name: str) -> Select:
        """Build a SELECT: `table("t").select("task").where("id > $1", 5).order_by("id").limit(3)()`."""
        return Select(self.query, checks.name("table", name))

    def stream(self, sql: str, batch_size: int = 1000, params: Params = None) -> Iterator[list[dict[str, Any]]]:
        """Yield the rows of a SELECT in batches, from one snapshot."""
        for result in self._tables.stream(sql, params, batch_size=checks.whole("batch_size", batch_size, low=1)):
            if result.rows:
                yield result.dicts()

    def to_arrow(self, sql: str, params: Params = None, *, stream: bool = False, batch_size: int = BATCH) -> Any:
        """Return the result as a pyarrow Table; with `stream`, a RecordBatchReader that holds one batch at a time."""
        size = checks.whole("batch_size", batch_size, low=1)
        reader = arrow_reader(self._tables.stream(sql, params, batch_size=size))
        return reader if stream else reader.read_all()

    def to_parquet(
        self, sql: str, path: str | os.PathLike[str], params: Params = None, *, batch_size: int = BATCH
    ) -> int:
        """Write the answer to a Parquet file, batch by batch, and return the number of rows.

        The file appears under its name when it is complete."""
        return write_parquet(self.to_arrow(sql, params, stream=True, batch_size=batch_size), path)

    def csv(self, sql: str, params: Params = None, *, delimiter: str = ",", batch_size: int = BATCH) -> Iterator[str]:
        """Yield the result as CSV, some lines at a time: `"".join(client.csv("SELECT …"))` is all of it."""
        size = checks.whole("batch_size", batch_size, low=1)
        return csv_texts(self._tables.stream(sql, params, batch_size=size), delimiter)

    # Tables

    def create_table(self, name: str, columns: Mapping[str, object], *, if_not_exists: bool = False) -> None:
        """`create_table("t", {"id": "BIGSERIAL PRIMARY KEY", "text": "TEXT", "embedding": types.Embedding(256)})`"""
        if not isinstance(columns, Mapping) or not columns:
            raise checks.refuse("columns", "a mapping of column names to types", columns)
        types = {checks.name("column", column): sql_of(f"columns[{column!r}]", columns[column]) for column in columns}
        self._tables.create_table(checks.name("table", name), types, exists_ok=if_not_exists)

    def list_tables(self) -> list[str]:
        return sorted(table.name for table in self._tables.tables() if table.view is None)

    def list_views(self) -> list[str]:
        return sorted(table.name for table in self._tables.tables() if table.view is not None)

    def describe_table(self, name: str) -> dict[str, dict[str, Any]]:
        """Return `type`, `nullable`, `default`, `primary_key` and kind of `index` for each column."""
        return describe(self._tables.table(checks.name("table", name)))

    def drop_table(self, name: str, *, if_exists: bool = False) -> bool:
        """Drop a table with its rows; return whether it existed."""
        return self._tables.drop_table(checks.name("table", name), missing_ok=if_exists)

    def create_index(
        self, table: str, columns: str | Sequence[str], index_type: str | None = None, *, name: str | None = None
    ) -> str:
        """Index one or several columns and return the index's name; one that is there already is left alone.

        `index_type` is "bm25" for texts, "vector" for embeddings, "btree" or "unique" for values; without it the
        column's type decides."""
        kind = checks.name("index_type", index_type or "search")
        chosen = name or index_name(checks.name("table", table), columns, kind)
        self._tables.query(index_statement(table, columns, kind, chosen))
        return chosen

    def drop_index(self, name: str, *, if_exists: bool = False) -> bool:
        return self._tables.drop_index(checks.name("index", name), missing_ok=if_exists)

    # Closing

    def close(self) -> None:
        if self._brain is not None:
            self._brain.close()
        self._tables.close()


def local_file(workspace: str) -> Path:
    """Return the file of a workspace: the default one beside the memories, others in files of their own."""
    if workspace == DEFAULT_WORKSPACE:
        return config.default_store()
    # Only characters that all file systems distinguish; capitals are written as numbers too.
    named = "".join(char if char in _PLAIN else f"%{ord(char):x}" for char in workspace)
    return config.home() / "workspaces" / f"{named}.db"


def describe(table: Table) -> dict[str, dict[str, Any]]:
    return {
        column.name: {
            "type": type_name(column.type),
            "nullable": column.nullable,
            "default": column.default,
            "primary_key": column.name in table.primary_key,
            "index": next((kind_of(index) for index in table.indexes if column.name in index.columns), None),
        }
        for column in table.columns
    }


def kind_of(index: Index) -> str:
    """Return `create_index`'s name for this kind of index."""
    return index.options.get("index_type") or ("unique" if index.unique else index.method)


def _set(names: Sequence[str]) -> str | None:
    """Return the first of these environment variables that is set."""
    return next((value for name in names if (value := os.environ.get(name, "").strip())), None)
