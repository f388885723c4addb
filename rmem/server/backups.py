"""Back up a whole server while it runs, and restore it: the control data, the audit logs of organisations, every
workspace with its memories and tables, secrets and settings; of a server on PostgreSQL a dump of its database.

The control data is copied first, so that no stored answer in it refers to a write that a workspace's copy lacks. The
backup lists its files with their checksums, and appears under its name when it is complete."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from glob import glob
from hashlib import file_digest
from pathlib import Path
from typing import Any

from .. import __version__, admin, doctor
from ..errors import ConfigError, InputError, StoreError
from ..private_files import make_file, make_folder, opener
from ..stores.base import Progress
from .organization_log import tenant_address
from .settings import ServerSettings

LIST, DUMP = "backup.json", "database.dump"
_CONTROL = "control.db"
_PLAIN = ("secret.key", "metrics.token", "server.toml")


def backup(settings: ServerSettings, target: str | Path, on_progress: Progress | None = None) -> dict[str, Any]:
    """Copy a server's data to a new folder while it is in use. Everything acknowledged before the start is in it."""
    if not settings.data.is_dir():
        raise StoreError(f"there is no server's data in {settings.data}; `rmem serve` makes it")
    with _new_folder("target", Path(target)) as folder:
        roles: list[str] = []
        if settings.servers:
            raise ConfigError("this copies the first database only; copy each server by pg_dump, the first one last")
        if settings.store is not None:
            roles = _dump(settings.store, folder / DUMP)
        else:
            _copy_files(settings.data, folder, on_progress)
        for name in _PLAIN:
            if (settings.data / name).exists():
                _copy(settings.data / name, folder / name)
        files = {str(path.relative_to(folder)): _checksum(path) for path in _files(folder)}
        about = {"remanence": __version__, "created": time.time(), "roles": roles, "files": files}
        with open(folder / LIST, "w", encoding="utf-8", opener=opener) as file:
            json.dump(about, file, indent=1)
        size = sum(path.stat().st_size for path in _files(folder))
    return {"target": str(target), "files": len(files), "bytes": size, "secret": "secret.key" in files}


def restore(settings: ServerSettings, source: str | Path) -> dict[str, Any]:
    """Restore a backup into a new or empty data folder and an empty database. It is checked before the folder
    appears."""
    copy = Path(source)
    about = _list_of(copy)
    for name, checksum in about["files"].items():
        if not (copy / name).is_file() or _checksum(copy / name) != checksum:
            raise StoreError(f"{copy / name} is missing or not as it was written; nothing was restored")
    if (DUMP in about["files"]) != (settings.store is not None):
        kind = "--store postgresql://…" if settings.store is None else "no --store"
        raise ConfigError(f"{copy} is the copy of a server of another kind; restore it with {kind}")
    with _new_folder("data", settings.data) as folder:
        for name in about["files"]:
            if name != DUMP:
                make_folder((folder / name).parent)
                _copy(copy / name, folder / name)
        examined = [path for path in _files(folder) if path.suffix == ".db" and path.name != _CONTROL]
        for path in examined:
            bad = [f"{finding.name}: {finding.detail}" for finding in doctor.examine(path) if not finding.ok]
            if bad:
                raise StoreError(f"{path.relative_to(folder)} in the copy is damaged ({'; '.join(bad)})")
            with closing(sqlite3.connect(path)) as link:
                link.execute("PRAGMA journal_mode = WAL")  # a copy has none; with it readers do not wait for writers
        if settings.store is not None:
            _load(settings.store, copy / DUMP, about["roles"])
        else:
            _check_control(folder / _CONTROL)
    return {"data": str(settings.data), "files": len(about["files"]), "examined": len(examined)}


@contextmanager
def _new_folder(field: str, path: Path) -> Iterator[Path]:
    """Yield a temporary folder that gets its name when all is done, and is removed if something fails."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise InputError(f"{field} must be a folder that does not exist or is empty, but {path} is not", field=field)
    draft = path.with_name(f"{path.name}.partial")
    shutil.rmtree(draft, ignore_errors=True)
    make_folder(draft)
    try:
        yield draft
        os.replace(draft, path)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _copy_files(data: Path, folder: Path, on_progress: Progress | None) -> None:
    """Copy every SQLite file of a server, each as one snapshot."""
    if not (data / _CONTROL).exists():
        raise StoreError(f"there is no server's data in {data}; `rmem serve` makes it")
    _copy_control(data / _CONTROL, folder / _CONTROL)
    stores = [*data.glob("organization-*.db"), *data.glob("*/*.db")]
    for number, path in enumerate(stores, 1):
        target = folder / path.relative_to(data)
        make_folder(target.parent)
        try:
            admin.backup(path, target)
        except StoreError:
            if path.exists():
                raise
        if on_progress is not None:  # a workspace that was deleted meanwhile is passed over
            on_progress(number, len(stores))


def _copy_control(source: Path, target: Path) -> None:
    make_file(target)
    with closing(sqlite3.connect(source)) as link, closing(sqlite3.connect(target)) as copy:
        link.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
    _check_control(target)


def _check_control(path: Path) -> None:
    with closing(sqlite3.connect(path)) as link:
        (sound,) = link.execute("PRAGMA integrity_check(1)").fetchone()
    if sound != "ok":
        raise StoreError(f"the copy of the control data did not pass SQLite's check: {sound}")


def _copy(source: Path, target: Path) -> None:
    with source.open("rb") as given, open(target, "xb", opener=opener) as made:
        shutil.copyfileobj(given, made)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(("-wal", "-shm")))


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _list_of(copy: Path) -> dict[str, Any]:
    try:
        return dict(json.loads((copy / LIST).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        raise InputError(f"{copy} is no copy made by `rmem serve backup`: it has no {LIST}", field="source") from None


# PostgreSQL

_ROLES = (  # those that own something in this database, or may use it
    "SELECT DISTINCT r.rolname FROM pg_shdepend d JOIN pg_roles r ON r.oid = d.refobjid JOIN pg_database b ON "
    "b.oid = d.dbid WHERE d.refclassid = 'pg_authid'::regclass AND b.datname = current_database() ORDER BY 1"
)


def _dump(store: str, target: Path) -> list[str]:
    """Dump the database; return the roles that it refers to, which a dump does not contain."""
    make_file(target)
    _run("pg_dump", store, "--format=custom", f"--file={target}")
    return [name for (name,) in _query(store, _ROLES)]


def _load(store: str, dump: Path, roles: list[str]) -> None:
    """Load a dump into an empty database, all or nothing, and check every tenant's memories."""
    if _query(store, "SELECT to_regclass('control_about')") != [(None,)]:
        raise InputError("store must be an empty database, but it holds a server's data", field="store")
    known = {name for (name,) in _query(store, "SELECT rolname FROM pg_roles")}
    for name in roles:
        if name not in known:
            _query(store, 'CREATE ROLE "{}" NOLOGIN'.format(name.replace('"', '""')))
    _run("pg_restore", store, "--exit-on-error", "--single-transaction", str(dump))
    for (tenant,) in _query(store, "SELECT name FROM remanence.heads ORDER BY name"):
        bad = [
            f"{finding.name}: {finding.detail}"
            for finding in doctor.examine(tenant_address(store, tenant))
            if not finding.ok
        ]
        if bad:
            raise StoreError(f"the tenant {tenant!r} in the copy is damaged ({'; '.join(bad)})")


def _query(store: str, sql: str) -> list[tuple[Any, ...]]:
    import psycopg

    try:
        with psycopg.connect(store) as link:
            cursor = link.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []
    except psycopg.Error as error:
        raise StoreError(f"the database refused: {error}") from error


def _run(program: str, store: str, *arguments: str) -> None:
    """Run one of PostgreSQL's programs on a database, without the password on its command line."""
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    found = _find(program, store, arguments)
    parts: dict[str, Any] = conninfo_to_dict(store)
    password = parts.pop("password", None)
    environment = {**os.environ, **({} if password is None else {"PGPASSWORD": str(password)})}
    command = [found, *arguments, f"--dbname={make_conninfo(**parts)}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise StoreError(f"{program} failed: {done.stderr.strip()}")


_USUAL = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin")
"""Where systems install PostgreSQL's programs of several versions side by side."""


def _find(program: str, store: str, arguments: tuple[str, ...]) -> str:
    """Return the first program that is not older than the server, which would refuse it."""
    ((number,),) = _query(store, "SELECT current_setting('server_version_num')::int / 10000")
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    folders += [Path(folder) for pattern in _USUAL for folder in sorted(glob(pattern))]
    versions = set()
    for folder in folders:
        found = shutil.which(program, path=str(folder))
        version = _version(found) if found else None
        if found and version is not None:
            if version >= number:
                return found
            versions.add(str(version))
    if versions:
        raise ConfigError(
            f"{program} {', '.join(sorted(versions))} is older than the server, which is {number}; install "
            f"PostgreSQL's client programs of version {number} and put their folder on the PATH"
        )
    example = f"{program} {' '.join(arguments)} --dbname=ADDRESS"
    raise ConfigError(f"{program} is not on the PATH; install PostgreSQL's client programs, or run: {example}")


def _version(program: str) -> int | None:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"\) ([0-9]+)", done.stdout)
    return int(found[1]) if found else None
