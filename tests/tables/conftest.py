"""What the tests of tables share: a workspace on each engine."""

from __future__ import annotations

import uuid

import psycopg
import pytest


@pytest.fixture(scope="session")
def tables_url(postgres):
    """The address of one database for all tests of tables; each test is a tenant of its own in it.

    Its words are ordered by code point and its case is Unicode's wherever the tests run, as on SQLite."""
    name = f"tables{uuid.uuid4().hex}"
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(
            f"CREATE DATABASE {name} TEMPLATE template0 LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8' "
            "LOCALE 'C' ENCODING 'UTF8'"
        )
        connection.execute(f"ALTER DATABASE {name} SET timezone TO 'UTC'")
    return postgres.url(name)


@pytest.fixture(params=["sqlite", "postgres"])
def open_workspace(request, tmp_path):
    """A function that opens the same workspace again: `open_workspace()` sees what another one wrote."""
    from rmem.tables.workspace import Workspace

    opened = []
    if request.param == "sqlite":
        address, tenant = tmp_path / "tables.db", None
    else:
        address, tenant = request.getfixturevalue("tables_url"), uuid.uuid4().hex

    def opening(**settings):
        opened.append(Workspace(address, tenant=tenant, **settings))
        return opened[-1]

    yield opening
    for workspace in opened:
        workspace.close()


@pytest.fixture
def workspace(open_workspace):
    """An empty workspace, once on SQLite and once on PostgreSQL."""
    return open_workspace()


@pytest.fixture(scope="session")
def table_server(tmp_path_factory):
    """A real server for all tests of clients; each has a workspace of its own in it."""
    from client_server import TableServer

    server = TableServer(tmp_path_factory.mktemp("server"))
    yield server
    server.close()


@pytest.fixture(params=["embedded", "postgres", "server"])
def connect(request, tmp_path):
    """A function that opens a client on one workspace, empty at first: in a file, in a database, or on a server."""
    from rmem import Client

    if request.param == "embedded":
        settings = {"path": tmp_path / "client.db"}
    elif request.param == "postgres":
        settings = {"path": request.getfixturevalue("tables_url"), "workspace_id": f"w{uuid.uuid4().hex[:20]}"}
    else:
        server = request.getfixturevalue("table_server")
        settings = {"api_url": server.url, "token": server.token, "workspace_id": server.new_workspace()}
    opened = []

    def opening():
        opened.append(Client(**settings))
        return opened[-1]

    yield opening
    for client in opened:
        client.close()
