"""A key-value store in one SQLite file, whose schema is migrated when it is opened."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from .. import checks
from ..crypto.encryption import Encryption
from ..errors import ConfigError
from ..privacy.choice import PrivacySpec, policy_of
from ..stores.sql.sqlite import SqliteRecordStore
from .base import MAX_NAMESPACE
from .records import RecordValues


class SqliteStore(RecordValues):
    """`SqliteStore("notes.db")` or `SqliteStore("sqlite:///notes.db")`. What was added is on disk and every process
    finds it. Stores with different namespaces share a file and see nothing of each other."""

    def __init__(
        self,
        path_or_url: str | Path,
        *,
        namespace: str = "default",
        durability: str = "full",
        busy_timeout: float = 30.0,
        privacy: PrivacySpec = None,
        encryption: Encryption | Literal[False] | None = None,
    ) -> None:
        self.privacy = policy_of(privacy)
        path = sqlite_path(path_or_url)
        checks.name("namespace", namespace, maximum=MAX_NAMESPACE)
        records = SqliteRecordStore(path, durability=durability, busy_timeout=busy_timeout, encryption=encryption)
        super().__init__(records, namespace)
        self.path = path

    def __repr__(self) -> str:
        return f"SqliteStore({str(self.path)!r}, namespace={self.namespace!r})"


def sqlite_path(path_or_url: object) -> Path:
    """Return the file of a path or sqlite:/// URL; ConfigError for other databases."""
    if not isinstance(path_or_url, str | Path):
        raise checks.refuse("path_or_url", "a path or sqlite:///path", path_or_url)
    written = checks.text("path_or_url", str(path_or_url))
    scheme, separator, rest = written.partition("://")
    if written == ":memory:" or (separator and rest in ("", "/", "/:memory:")):
        raise ConfigError("path_or_url must name a file; for values that end with the process use InMemoryStore()")
    if not separator:
        return Path(written).expanduser()
    kind = scheme.partition("+")[0]
    if kind in ("postgresql", "postgres"):
        raise ConfigError("path_or_url must name an SQLite file; for PostgreSQL use PostgresStore(address)")
    if kind != "sqlite":
        raise ConfigError(f"path_or_url must be a path or sqlite:///path, got an address that begins {scheme}://")
    return Path(rest.removeprefix("/")).expanduser()
