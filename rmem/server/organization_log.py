"""The audit log of each organisation: who made, changed and removed its members, tokens and workspaces.

It is the sealed log of an ordinary store that holds no memories, so that `rmem audit`, its verification and its backup
are those of every other store: a file beside the control data, or a tenant of the same PostgreSQL database."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any
from urllib.parse import quote

from .. import config
from ..forks import new_lock
from ..stores import open_store
from ..stores.capabilities import AuditEntry, AuditLog
from .settings import ServerSettings

_OPEN = 8  # logs that stay open, for organisations that change often


def log_address(settings: ServerSettings, org: str) -> str:
    """Return where the log of an organisation is kept."""
    if settings.store is None:
        return str(settings.data / f"organization-{org}.db")
    return tenant_address(settings.store, f"{org}/organization")


def tenant_address(store: str, tenant: str) -> str:
    """Return the address of one tenant of a PostgreSQL database."""
    return f"{store}{'&' if '?' in store else '?'}tenant={quote(tenant, safe='')}"


class OrganizationLogs:
    """The logs of all organisations of a server. Safe to use from many threads."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._open: OrderedDict[str, AuditLog] = OrderedDict()
        self._lock = new_lock()

    def record(self, org: str, action: str, **detail: Any) -> None:
        """Append an entry in the name of the acting user (`config.acting`); durable when this returns."""
        given = {key: value for key, value in detail.items() if value is not None}
        if token := config.token():
            given["token"] = token
        with self._lock:
            self._log(org).record(config.user(), action, **given)

    def entries(self, org: str, **which: Any) -> list[AuditEntry]:
        """Return the newest entries, newest first, as `AuditLog.audit` gives them."""
        with self._open_log(org) as log:  # not the one for writing: a long read must not block changes
            return log.audit(**which)

    def broken(self, org: str) -> list[int]:
        """Return the numbers of entries that are not as they were written."""
        with self._open_log(org) as log:
            return log.broken_audit()

    def _log(self, org: str) -> AuditLog:
        log = self._open.get(org)
        if log is None:
            log = self._open[org] = self._open_log(org)
            if len(self._open) > _OPEN:
                self._open.popitem(last=False)[1].close()
        self._open.move_to_end(org)
        return log

    def _open_log(self, org: str) -> AuditLog:
        opened = open_store(log_address(self._settings, org), encryption=False)
        assert isinstance(opened, AuditLog)
        return opened

    def close(self) -> None:
        with self._lock:
            while self._open:
                self._open.popitem()[1].close()
