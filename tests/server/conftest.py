"""Clients of real servers."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from browser import OPTIONS, find_browser
from running_server import Running

from rmem.server.settings import ServerSettings


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


@pytest.fixture(scope="module")
def chrome():
    """A real browser. Of a module: what drives it keeps a loop running in this thread, which tests of others must not
    find there."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find_browser(), args=list(OPTIONS[1:]))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def shared_window(chrome, team):
    """A window of the admin of a module's own `team`: logging in takes as long as a test."""
    from dashboard import Window  # skips where there is no playwright

    opened = Window(chrome, team, team.first_token)
    yield opened
    opened.context.close()


@pytest.fixture
def window(shared_window):
    yield shared_window
    shared_window.check()
