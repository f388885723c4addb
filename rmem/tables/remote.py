"""A workspace on a server: the methods of `Workspace` over HTTP. The token is never part of an error, a log line or a
repr."""

from __future__ import annotations

import base64
import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any
from urllib.parse import quote, urlencode

from .. import __version__
from ..errors import ConfigError, NoSuchTableError, RemoteError, SqlUnsupportedError, TableExistsError
from ..http_link import HttpAnswer, Link
from .builder import quote_name
from .catalog import Column, Index, Kind, Table, Type
from .ingest import NormalizedColumns, to_body
from .results import Result
from .wire_values import from_json, kind_of_type, parameters_to_json

Params = Sequence[Any] | Mapping[str, Any] | None
JSON = "application/json"
NDJSON = "application/x-ndjson"
_WHOLE = 1_000_000_000
_READS = re.compile(r"\s*(?:select|values|explain)\b", re.IGNORECASE)
_ROWS = re.compile(r"\s*(?:select|values|with|table)\b", re.IGNORECASE)


class RemoteWorkspace:
    """The tables of one workspace of a server."""

    def __init__(self, api_url: str, token: str | None, name: str, *, org_id: str | None = None, timeout: float = 30):
        self.name = name
        if token is not None and not (token.isascii() and token.isprintable() and token.strip()):
            raise ConfigError("the token holds characters that no token has (not shown); copy it again")
        self._token = token
        self._org = org_id or organisation_of(self._token)
        self._timeout = timeout
        self._link = Link(api_url, timeout)
        self._base = f"/workspaces/{quote(name, safe='')}/tables"

    def __repr__(self) -> str:
        return f"RemoteWorkspace({self._link.url!r}, {self.name!r})"

    # Statements

    def query(self, sql: str, params: Params = None, *, timeout: float | None = None) -> Result:
        """Run a statement. Rows are requested as a stream, which has no row limit."""
        if isinstance(sql, str) and _ROWS.match(sql):
            return next(self.stream(sql, params, batch_size=_WHOLE, timeout=timeout))
        return result_of(
            self._json("POST", "/query", _statement(sql, params, timeout), write=_writes(sql), patience=timeout)
        )

    def stream(
        self, sql: str, params: Params = None, *, batch_size: int = 1000, timeout: float | None = None
    ) -> Iterator[Result]:
        """Parse a stream: a line of columns, a line per row, and a final count that reveals a broken answer."""
        body = _statement(sql, params, timeout)
        headers = self._headers(NDJSON, body, _writes(sql))
        with self._link.open("POST", f"{self._base}/query", _encode(body), headers, timeout) as answer:
            head = _line(answer)
            columns, types = tuple(head.get("columns", ())), _types(head)
            batch: list[tuple[Any, ...]] = []
            total = 0
            while isinstance(line := _line(answer), list):
                batch.append(_row(line, types))
                total += 1
                if len(batch) == batch_size:
                    yield Result(columns, types, batch, len(batch))
                    batch = []
            if "error" in line or (total and line.get("row_count") != total):
                raise RemoteError(str(line.get("error", "the answer of the server broke off")), status=502)
            answer.finish()
            if batch or not total:
                yield Result(columns, types, batch, total or int(line.get("row_count", 0)))

    def transaction(self) -> AbstractContextManager[None]:
        raise SqlUnsupportedError(
            "a server offers no transactions over several requests; each statement and each ingest is one: put the "
            "writes into one INSERT … SELECT, UPDATE … FROM or ON CONFLICT, or use a client with path="
        )

    # Tables

    def tables(self) -> list[Table]:
        found: list[Table] = []
        cursor: str | None = None
        while True:
            page = self._json("GET", f"?{urlencode({'cursor': cursor})}" if cursor else "", None)
            found += [_table(entry) for entry in page.get("tables", ())]
            cursor = page.get("next_cursor")
            if cursor is None:
                return found

    def table(self, name: str) -> Table:
        return _table(self._json("GET", f"/{quote(name, safe='')}", None))

    def create_table(self, name: str, columns: Mapping[str, str], *, exists_ok: bool = False) -> Table:
        try:
            return _table(self._json("POST", "", {"table_name": name, "table_schema": dict(columns)}, write=True))
        except TableExistsError:
            if not exists_ok:
                raise
        return self.table(name)

    def drop_table(self, name: str, *, missing_ok: bool = False) -> bool:
        return _drop(lambda: self._json("DELETE", f"/{quote(name, safe='')}", None, write=True), missing_ok)

    def drop_index(self, name: str, *, missing_ok: bool = False) -> bool:
        return _drop(lambda: self.query(f"DROP INDEX {quote_name(name)}"), missing_ok)

    def ingest(self, table: str, ready: NormalizedColumns, index: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Write rows in one request, all or none."""
        body = to_body(ready) | ({"index": dict(index)} if index else {})
        answer: dict[str, Any] = self._json("POST", f"/{quote(table, safe='')}/ingest", body, write=True)
        return answer

    def close(self) -> None:
        self._link.close()

    # HTTP

    def _json(
        self, method: str, path: str, body: Any, *, write: bool = False, patience: float | None = None
    ) -> dict[str, Any]:
        raw = self._link.request(method, self._base + path, _encode(body), self._headers(JSON, body, write), patience)
        try:
            answer = json.loads(raw) if raw else {}
        except ValueError:
            raise RemoteError(f"{self._link.url} did not answer with JSON: {raw[:100]!r}", status=502) from None
        return answer if isinstance(answer, dict) else {}

    def _headers(self, accept: str, body: Any, write: bool) -> dict[str, str]:
        headers = {"Accept": accept, "User-Agent": f"rmem/{__version__}"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if self._org:
            headers["X-Activeloop-Org-Id"] = self._org
        if write:
            headers["Idempotency-Key"] = uuid.uuid4().hex
        if body is not None:
            headers["Content-Type"] = JSON
        return headers


# Statements and answers


def _drop(drop: Callable[[], object], missing_ok: bool) -> bool:
    """Return whether there was something to drop."""
    try:
        drop()
    except NoSuchTableError:
        if not missing_ok:
            raise
        return False
    return True


def _statement(sql: str, params: Params, timeout: float | None) -> dict[str, Any]:
    body = {"query": sql} | parameters_to_json(params)
    return body if timeout is None else body | {"timeout_ms": max(1, round(timeout * 1000))}


def _encode(body: Any) -> bytes | None:
    if body is None:
        return None
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "surrogatepass")


def _writes(sql: str) -> bool:
    """Return whether a statement may write, and so needs an idempotency key."""
    return not (isinstance(sql, str) and _READS.match(sql))


def _line(answer: HttpAnswer) -> Any:
    try:
        return json.loads(answer.readline())
    except ValueError:
        raise RemoteError("the answer of the server broke off", status=502) from None


def result_of(answer: Mapping[str, Any]) -> Result:
    types = _types(answer)
    rows = [_row(row, types) for row in answer.get("rows", ())]
    return Result(tuple(answer.get("columns", ())), types, rows, int(answer.get("row_count", len(rows))))


def _types(answer: Mapping[str, Any]) -> tuple[Type | None, ...]:
    names = answer.get("types") or [None] * len(answer.get("columns", ()))
    return tuple(type_from(name) for name in names)


def _row(values: Sequence[Any], types: Sequence[Type | None]) -> tuple[Any, ...]:
    return tuple(from_json(value, type) for value, type in zip(values, types, strict=True))


def type_from(name: str | None) -> Type | None:
    """Parse a type name written by `wire_values.type_name`."""
    kind = kind_of_type(name)
    if kind is None or name is None:
        return None
    limits = [int(number) for number in re.findall(r"\d+", name.partition("(")[2])]
    named = _LIMITS.get(kind, ()) if limits else ()
    return Type(kind, **dict(zip(named, [*limits, 0], strict=False)))


_LIMITS = {Kind.VECTOR: ("dimension",), Kind.TEXT: ("length",), Kind.NUMERIC: ("precision", "scale")}


def _table(entry: Mapping[str, Any]) -> Table:
    name = str(entry["table_name"])
    columns = tuple(
        Column(
            part["name"],
            type_from(part["type"]) or Type(Kind.TEXT),
            nullable=part.get("nullable", True),
            default=part.get("default"),
            serial=part.get("serial", False),
        )
        for part in entry.get("columns", ())
    )
    indexes = tuple(
        Index(
            part["name"],
            name,
            tuple(part["columns"]),
            method=part.get("method", "btree"),
            unique=part.get("unique", False),
            options=dict(part.get("options") or {}),
        )
        for part in entry.get("indexes", ())
    )
    return Table(name, columns, tuple(entry.get("primary_key", ())), indexes, view=entry.get("view"))


# Addresses and tokens


def organisation_of(token: str | None) -> str | None:
    """Return the OrgID claim of a token; the server verifies the token."""
    try:
        middle = (token or "").split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(middle + "=" * (-len(middle) % 4)))
        found = claims.get("OrgID")
    except (IndexError, ValueError, AttributeError):
        return None
    return found if isinstance(found, str) and found else None
