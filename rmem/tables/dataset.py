"""Datasets: a table opened by an address, to which columns and rows are added as one goes.

    memory = rmem.open("rmem://my-org/coding-agent-memory")
    memory.add_column("content", types.Text())
    memory.append({"content": "Builds run with make -j4"})
    memory.query("SELECT content FROM coding_agent_memory")

The first part of an address is a workspace, the second becomes the name of a table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np

from .. import checks
from ..closing import Closing
from ..errors import ConfigError, InputError, NoSuchTableError
from .builder import quote_name
from .catalog import Kind
from .client import Client, Params
from .streams import QueryRows
from .types import FILE, agrees, sql_of, type_of
from .wire_values import kind_of_type

KEY = "_id"
"""Numbers the rows of a dataset in the order in which they came. SQL can name it; a dataset does not show it."""

_ADDRESS = re.compile(r"(?:rmem|al)://(?P<workspace>[^/?#\s]+)/(?P<dataset>[^/?#\s]+)/?")


def open(
    address: str,
    *,
    token: str | None = None,
    api_url: str | None = None,
    path: str | Path | None = None,
    org_id: str | None = None,
) -> Dataset:
    """The dataset at `rmem://workspace/dataset`, which need not exist yet. `al://` means the same.

    Where it is kept is what `Client` would choose: the local file, or a server when one is given or set."""
    workspace, table = place_of(address)
    client = Client(token=token, workspace_id=workspace, api_url=api_url, path=path, org_id=org_id)
    return Dataset(client, table)


def place_of(address: str) -> tuple[str, str]:
    """Parse an address into workspace and table: `al://my-org/agent-memory` is agent_memory in my-org."""
    match = _ADDRESS.fullmatch(address.strip()) if isinstance(address, str) else None
    if match is None:
        raise ConfigError(f"address must be rmem://workspace/dataset, got {checks.shown(address)}")
    table = re.sub(r"\W", "_", match["dataset"].lower())
    return match["workspace"], f"_{table}" if table[0].isdecimal() else table


class Dataset(Closing):
    """A table that grows: `add_column`, `append`, `query`, `len(ds)`, `ds[0]`, `ds[10:20]`, `ds["content"]`."""

    def __init__(self, client: Client, table: str) -> None:
        self.client = client
        self.name = table

    def __repr__(self) -> str:
        return f"Dataset({self.name!r} in {self.client!r})"

    # Columns

    @property
    def schema(self) -> dict[str, str]:
        """Return the columns with their SQL types; empty until a column is added."""
        return {name: column["type"] for name, column in self._describe().items() if name != KEY}

    @property
    def columns(self) -> list[str]:
        return list(self.schema)

    def add_column(self, name: str, type: object) -> None:
        """Add a column, NULL in existing rows. Adding it again changes nothing."""
        if checks.name("name", name) == KEY:
            raise InputError(f"{KEY} is the number of a row; name the column otherwise", field="name")
        sql = sql_of("type", type)
        if sql.upper() == FILE:
            raise InputError("a dataset has no FILE columns; ingest files with Client.ingest", field="type")
        wanted = type_of(sql)
        if not self._describe():
            self.client.create_table(self.name, {KEY: "BIGSERIAL PRIMARY KEY", name: sql}, if_not_exists=True)
        known = self.schema
        if name not in known:
            self.client.query(f"ALTER TABLE {quote_name(self.name)} ADD COLUMN IF NOT EXISTS {quote_name(name)} {sql}")
            known = self.schema
        if not agrees(wanted, type_of(known[name])):
            raise InputError(f"column {name!r} is there already and holds {known[name]}, not {sql}", field="type")

    # Rows

    def append(self, data: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> int:
        """Append one row `{column: value}`, rows as columns `{column: [values]}`, or a list of rows.

        Rows are durable and found as soon as this returns. Columns that are left out are NULL. Returns the number of
        rows."""
        schema = self.schema
        if not schema:
            raise InputError(f"dataset {self.name!r} has no columns yet; add_column first", field="data")
        return int(self.client.ingest(self.name, as_columns(data, schema))["row_count"])

    def query(self, sql: str, params: Params = None) -> QueryRows:
        """Run a statement that names the dataset as a table: `SELECT … FROM coding_agent_memory`."""
        return self.client.query(sql, params)

    def commit(self, message: str | None = None) -> str:
        """Return the current `version`. Writes are durable without it; messages are not stored."""
        if message is not None:
            checks.text("message", message)
        return self.version

    @property
    def version(self) -> str:
        """Return a version that changes with every append and delete: the last row number and the row count."""
        known = self._describe()
        if not known:
            return "0-0"
        last = f"COALESCE(max({KEY}), 0)" if KEY in known else "0"
        found = self.client.query(f"SELECT {last} AS last, count(*) AS rows FROM {quote_name(self.name)}")[0]
        return f"{found['last']}-{found['rows']}"

    def __len__(self) -> int:
        if not self._describe():
            return 0
        return int(self.client.query(f"SELECT count(*) AS rows FROM {quote_name(self.name)}")[0]["rows"])

    def __iter__(self) -> Iterator[dict[str, Any]]:
        known = self._describe()
        if known:
            for batch in self.client.stream(self._statement(known)):
                yield from batch

    @overload
    def __getitem__(self, key: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: slice) -> list[dict[str, Any]]: ...
    @overload
    def __getitem__(self, key: str) -> list[Any]: ...
    def __getitem__(self, key: int | slice | str) -> Any:
        """A row, a list of rows, or the values of a column, in the order in which rows were appended."""
        known = self._describe()
        if isinstance(key, str):
            if key not in known:
                raise NoSuchTableError(f"dataset {self.name!r} has no column {key!r}")
            return [row[key] for batch in self.client.stream(self._statement(known, key)) for row in batch]
        if isinstance(key, slice):
            wanted = range(*key.indices(len(self)))
            return self._rows(known, wanted) if wanted else []
        at = checks.whole("index", key, low=-(2**62))
        at += len(self) if at < 0 else 0
        found = self._rows(known, range(at, at + 1)) if known and at >= 0 else []
        if not found:
            raise IndexError(f"dataset {self.name!r} has no row {key}; it has {len(self)} rows")
        return found[0]

    def close(self) -> None:
        self.client.close()

    # The table behind it

    def _describe(self) -> dict[str, dict[str, Any]]:
        try:
            return self.client.describe_table(self.name)
        except NoSuchTableError:
            return {}

    def _statement(self, known: Mapping[str, Mapping[str, Any]], *columns: str) -> str:
        """Build a SELECT of all rows, ordered by the primary key if there is one."""
        names = ", ".join(quote_name(name) for name in columns or [name for name in known if name != KEY])
        order = ", ".join(quote_name(name) for name, column in known.items() if column["primary_key"])
        return f"SELECT {names} FROM {quote_name(self.name)}" + (f" ORDER BY {order}" if order else "")

    def _rows(self, known: Mapping[str, Mapping[str, Any]], wanted: range) -> list[dict[str, Any]]:
        first, last = min(wanted[0], wanted[-1]), max(wanted[0], wanted[-1])
        rows = list(self.client.query(f"{self._statement(known)} LIMIT {last - first + 1} OFFSET {first}"))
        return [rows[at - first] for at in wanted if at - first < len(rows)]


# What is appended


def as_columns(data: object, schema: Mapping[str, str]) -> dict[str, Any]:
    """Convert rows or columns to columns."""
    if isinstance(data, Mapping):
        if not data:
            raise checks.refuse("data", "a row, columns of values or a list of rows", data)
        checks.known_fields("the dataset", data, schema)
        return dict(data) if _are_columns(data, schema) else {name: [value] for name, value in data.items()}
    if isinstance(data, Sequence) and not isinstance(data, str) and all(isinstance(row, Mapping) for row in data):
        for row in data:
            checks.known_fields("the dataset", row, schema)
        names = [name for name in schema if any(name in row for row in data)]
        if names:
            return {name: [row.get(name) for row in data] for name in names}
    raise checks.refuse("data", "a row, columns of values or a list of rows", data)


def _are_columns(data: Mapping[str, Any], schema: Mapping[str, str]) -> bool:
    """Return whether each value is a list for several rows. A vector is one value, a list of vectors several; for
    ambiguous JSON the other columns decide."""
    surplus = {name: _surplus(value, kind_of_type(schema[name])) for name, value in data.items()}
    known = {name: deeper for name, deeper in surplus.items() if deeper is not None}
    if not known:
        return all(isinstance(value, list | tuple | np.ndarray) for value in data.values())
    several = {deeper > 0 for deeper in known.values()}
    if len(several) > 1:
        scalar = next(name for name, deeper in known.items() if deeper <= 0)
        many = next(name for name, deeper in known.items() if deeper > 0)
        raise InputError(
            f"{scalar!r} is one value but {many!r} is a list of values; give one row or columns", field=scalar
        )
    return several.pop()


def _surplus(value: Any, kind: Kind | None) -> int | None:
    """Return how many list levels a value has beyond its column type; None if that is unknown."""
    depth = 0
    while isinstance(value, list | tuple | np.ndarray):
        if len(value) == 0:
            return None
        depth, value = depth + 1, value[0]
    if value is None and depth == 0:
        return None
    if kind is Kind.JSONB:
        return None if depth else 0
    return depth - _DEPTHS.get(kind, 0) if kind is not None else None


_DEPTHS = {Kind.VECTOR: 1, Kind.TEXTS: 1, Kind.INTEGERS: 1, Kind.VECTORS: 2}
