"""The PostgreSQL store passes the suite of all stores: with its rows held in memory, seen by another process, and
searched by the database itself."""

from __future__ import annotations

import uuid

import pytest

from rmem.stores.sql.postgres import PostgresRecordStore
from rmem.testing import RecordStoreContract


@pytest.fixture(scope="module")
def database(postgres):
    """One database for all these tests, each of which is a tenant of its own."""
    url = postgres.new_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture
def tenant():
    return uuid.uuid4().hex


class TestPostgresStore(RecordStoreContract):
    @pytest.fixture
    def store(self, database, tenant):
        with PostgresRecordStore(database, tenant=tenant) as store:
            yield store

    @pytest.fixture
    def reopen(self, database, tenant):
        return lambda: PostgresRecordStore(database, tenant=tenant)


class TestPostgresStoreSeenByAnother(RecordStoreContract):
    """Every read goes through a second store, as another process would read it."""

    @pytest.fixture
    def store(self, database, tenant):
        with _Pair(database, tenant=tenant) as store:
            yield store


class TestPostgresStoreThatHoldsNothing(RecordStoreContract):
    """Every tenant counts as a large one."""

    @pytest.fixture
    def store(self, database, tenant):
        with PostgresRecordStore(database, tenant=tenant, held_up_to=0) as store:
            yield store


class _Pair(PostgresRecordStore):
    def __init__(self, address, **options):
        super().__init__(address, **options)
        self._other = PostgresRecordStore(address, **options)

    def filtered_rows(self, where):
        return self._other.filtered_rows(where)

    def get_many(self, keys):
        self.flush()
        return self._other.get_many(keys)

    def close(self):
        self._other.close()
        super().close()
