"""A real server with a data folder of its own for each test that asks for one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from running_server import Running

from remanence.server.settings import Limits, ServerSettings


@pytest.fixture
def server_with(tmp_path: Path) -> Iterator:
    """A function that starts a server with settings and limits of your own."""
    running: list[Running] = []

    def start(limits: Limits | None = None, **settings: object) -> Running:
        settings.setdefault("data", tmp_path / f"data-{len(running)}")
        running.append(Running(ServerSettings(limits=limits or Limits(), **settings)).start())
        return running[-1]

    yield start
    for one in running:
        one.stop()


@pytest.fixture
def server(server_with) -> Running:
    """A server that has only been started: organisation and workspace "default", and one admin."""
    return server_with()


@pytest.fixture
def admin(server: Running) -> httpx.Client:
    """The admin of the organisation "default"."""
    return server.client(server.first_token)


@pytest.fixture(scope="module")
def lasting(tmp_path_factory) -> Iterator[httpx.Client]:
    """The admin of a server that all tests of a module share: for requests that are refused."""
    server = Running(ServerSettings(data=tmp_path_factory.mktemp("lasting"))).start()
    client = server.client(server.first_token)
    schema = {"id": "BIGSERIAL PRIMARY KEY", "body": "TEXT", "n": "BIGINT"}
    table = {"table_name": "notes", "table_schema": schema}
    client.post("/workspaces/default/tables", json=table).raise_for_status()
    yield client
    server.stop()


@pytest.fixture
def client_for(server: Running):
    """`client_for("default", "default", "READ")`: a client of somebody with that role; org and workspace made as
    needed, and workspace None for a role in the whole organisation."""
    return server.client_for
