"""A key-value store on PostgreSQL, for many processes and machines."""

from __future__ import annotations

from typing import Literal

from .. import checks
from ..crypto.encryption import Encryption
from ..extras import require
from ..privacy.choice import PrivacySpec, policy_of
from .base import MAX_NAMESPACE
from .records import RecordValues


class PostgresStore(RecordValues):
    """`PostgresStore("postgresql://user@host/database")`. What was added is durable and every process finds it. Stores
    of other tenants or with other namespaces share the database and see nothing of each other."""

    def __init__(
        self,
        address: str,
        *,
        namespace: str = "default",
        tenant: str | None = None,
        durability: str = "full",
        privacy: PrivacySpec = None,
        encryption: Encryption | Literal[False] | None = None,
    ) -> None:
        require("postgres", "PostgreSQL")
        from ..stores.sql.postgres import PostgresRecordStore

        self.privacy = policy_of(privacy)
        checks.name("namespace", namespace, maximum=MAX_NAMESPACE)
        records = PostgresRecordStore(address, tenant=tenant, durability=durability, encryption=encryption)
        super().__init__(records, namespace)
        self._shown = records.address.shown

    def __repr__(self) -> str:
        return f"PostgresStore({self._shown!r}, namespace={self.namespace!r})"
