"""Tables as Deep Lake datasets, for the public `deeplake` package, which reads and writes dataset files in object
storage instead of sending rows to a server.

Opening a table makes a copy of it as a dataset in a folder. Rows that a commit appends there are appended to the table
before the commit is acknowledged. Columns cannot be changed, nor rows removed, in this way."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from fastapi import HTTPException

from ..errors import ConfigError, InputError
from ..extras import require
from ..private_files import make_folder
from ..tables.builder import quote_name
from ..tables.catalog import Kind, Table
from ..tables.ingest import from_body, write_table
from ..tables.wire_values import to_json
from .settings import ServerSettings

if TYPE_CHECKING:
    from .access import Access

FOLDER = "datasets"
_COMMIT = re.compile(r"_deeplake_log/[0-9a-f]{32}/\d+m\d+\.jsonl(\.lz4)?\Z")
_KEY = re.compile(r"[A-Za-z0-9_.=-]+(/[A-Za-z0-9_.=-]+)*\Z")
_MAX_COPIES = 32
_IDLE_SECONDS = 3600.0
_OWN_JSON = (Kind.VECTOR, Kind.VECTORS, Kind.BIGINT, Kind.TEXT)


@dataclass
class Copy:
    """An open copy of a table as a dataset."""

    id: str
    workspace: str
    workspace_id: str
    table: str
    columns: dict[str, tuple[str, int | None]]
    folder: Path
    writable: bool
    known: int = 0
    used: float = field(default_factory=time.monotonic)
    lock: Lock = field(default_factory=Lock)

    def path(self, key: str) -> Path:
        if not _KEY.match(key) or ".." in key.split("/"):
            raise HTTPException(400, "the name of an object must be a plain path")
        return self.folder / key


class Datasets:
    """The copies that are open, of each organisation at most 32; idle ones are removed after an hour."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._lock = Lock()
        self._copies: dict[str, dict[str, Copy]] = {}
        for left in settings.data.glob(f"*/{FOLDER}"):  # of a server that was killed
            shutil.rmtree(left, ignore_errors=True)

    def open(self, access: Access, name: str, *, writable: bool) -> Copy:
        """Return a new copy of a table."""
        try:
            require("deeplake", "the server")
        except ConfigError as error:
            raise HTTPException(501, str(error)) from None
        table = access.tables.table(name)
        columns = {
            column.name: (column.type.kind.value, column.type.dimension)
            for column in table.columns
            if not column.serial  # the table numbers its rows
        }
        if not columns:
            raise InputError(f"table {name!r} has no columns that a dataset could hold", field="table")
        access.need_room()
        id = secrets.token_hex(16)
        folder = self._settings.data / access.org / FOLDER / id
        make_folder(folder.parent.parent)
        make_folder(folder.parent)
        copy = Copy(id, access.workspace, access.workspace_id, name, columns, folder, writable)
        try:
            rows = _rows(access, table, list(columns))
            copy.known = _call({"do": "make", "folder": str(folder), "columns": columns, "rows": rows}, self._seconds)[
                "rows"
            ]
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self._keep(access.org, copy)
        return copy

    @property
    def _seconds(self) -> float:
        return self._settings.limits.stream_seconds

    def _keep(self, org: str, copy: Copy) -> None:
        with self._lock:
            own = self._copies.setdefault(org, {})
            late = time.monotonic() - _IDLE_SECONDS
            several = sorted(own.values(), key=lambda held: held.used)
            gone = [old for at, old in enumerate(several) if old.used < late or at <= len(several) - _MAX_COPIES]
            for old in gone:
                del own[old.id]
            own[copy.id] = copy
        for old in gone:
            shutil.rmtree(old.folder, ignore_errors=True)

    def find(self, access: Access, id: str) -> Copy:
        """Return an open copy of the caller's organisation and workspace."""
        with self._lock:
            copy = self._copies.get(access.org, {}).get(id)
        if copy is None or copy.workspace_id != access.workspace_id:
            raise HTTPException(404, "there is no such open dataset; open the table again")
        copy.used = time.monotonic()
        return copy

    def workspace_of(self, org: str, id: str) -> str | None:
        """Return the name of the workspace that a copy is of."""
        with self._lock:
            copy = self._copies.get(org, {}).get(id)
        return None if copy is None else copy.workspace

    def put(self, access: Access, copy: Copy, key: str, body: bytes) -> None:
        """Store an object; for a commit, after its rows are in the table."""
        path = copy.path(key)
        access.need_room()
        with copy.lock:
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}.draft")
            draft.write_bytes(body)
            os.replace(draft, path)
            if _COMMIT.match(key):
                try:
                    self._load(access, copy)
                except BaseException:
                    path.unlink(missing_ok=True)
                    raise

    def _load(self, access: Access, copy: Copy) -> None:
        """Append the rows of a commit to the table."""
        task = {"do": "read", "folder": str(copy.folder), "columns": copy.columns, "known": copy.known}
        rows = _call(task, self._seconds)["rows"]
        count = len(next(iter(rows.values())))
        if count:
            types = {name: kind for name, (kind, _) in copy.columns.items() if Kind(kind) not in _OWN_JSON}
            for name in [name for name, kind in types.items() if kind == Kind.JSONB.value]:
                rows[name] = [_json(name, value) for value in rows[name]]
            write_table(access.tables, copy.table, from_body({"columns": rows, "types": types}))
            copy.known += count

    def close(self) -> None:
        with self._lock:
            copies = [copy for own in self._copies.values() for copy in own.values()]
            self._copies.clear()
        for copy in copies:
            shutil.rmtree(copy.folder, ignore_errors=True)


def _rows(access: Access, table: Table, names: list[str]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {name: [] for name in names}
    kinds = {column.name: column.type.kind for column in table.columns}
    statement = f"SELECT {', '.join(map(quote_name, names))} FROM {quote_name(table.name)}"
    for batch in access.tables.stream(
        statement, batch_size=1000, timeout=access.service.settings.limits.stream_seconds
    ):
        for row in batch.rows:
            for name, value in zip(names, row, strict=True):
                encoded = to_json(value)
                as_text = kinds[name] in (Kind.JSONB, Kind.TEXTS, Kind.INTEGERS) and value is not None
                columns[name].append(json.dumps(encoded) if as_text else encoded)
    return columns


def _json(name: str, value: Any) -> Any:
    try:
        return None if value is None else json.loads(value)
    except ValueError:
        raise InputError(f"{name} must hold JSON, got {value!r:.80}", field=name) from None


def _call(task: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Run a task in the child, with a minimal environment; return its result."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "SYSTEMROOT", "LANG") if name in os.environ}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "rmem.server.dataset_child"],
            input=json.dumps(task).encode(),
            capture_output=True,
            timeout=seconds,
            env={**kept, "HOME": str(Path(task["folder"]).parent)},
        )
    except subprocess.TimeoutExpired:
        raise HTTPException(408, f"the dataset could not be made or read within {seconds:g} seconds") from None
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["it was killed"]
        raise InputError(f"the dataset cannot be made or read: {last[0][:300]}", field="dataset")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if "error" in result:
        raise InputError(result["error"], field="dataset")
    return result
