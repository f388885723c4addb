"""What all tests share: a home folder of their own, and how much hypothesis may spend."""

from __future__ import annotations

import gc
import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import psutil
import pytest
from hypothesis import HealthCheck, settings

from rmem import Filter
from rmem.testing.postgres import PostgresServer

if TYPE_CHECKING:
    from running_server import Running

settings.register_profile(
    "rmem",
    deadline=None,
    max_examples=10,  # cheap tests take a multiple; `make test-slow` tries fifteen times as many
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("thorough", parent=settings.get_profile("rmem"), max_examples=150)
settings.load_profile("rmem")


_MEMORY = Path("/dev/shm")
_free = min(psutil.virtual_memory().available, shutil.disk_usage(_MEMORY).free) if _MEMORY.is_dir() else 0
if "TMPDIR" not in os.environ and _free >= 8 << 30:  # far more than the tests leave behind
    os.environ["TMPDIR"] = str(_MEMORY)  # thousands of new stores would wait for the disk, longer than they work
    tempfile.tempdir = None  # so that it is looked up again

_homes = itertools.count()
gc.disable()  # while tests are collected: all that is made stays


def pytest_collection_finish() -> None:
    """Spare the garbage collector thousands of tests that stay: it takes a tenth of the time otherwise."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _home_of_its_own(tmp_path_factory, monkeypatch):
    """No test reads or writes the memories of whoever runs it."""
    home = tmp_path_factory.getbasetemp() / "homes" / str(next(_homes))
    home.mkdir(parents=True)
    monkeypatch.setenv("RMEM_HOME", str(home))
    for name in os.environ:
        if name.startswith(("RMEM_API", "RMEM_WORKSPACE", "RMEM_EMBEDDER", "DEEPLAKE_")):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def own_wheel(tmp_path_factory) -> Path:
    """Our wheel, built once for all workers of a run."""
    from environments import wheel

    from rmem.filelocks import lock

    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    with open(shared / "own-wheel.lock", "w") as file:
        lock(file.fileno(), wait=True)
        if found := list((shared / "own-wheel" / "wheels").glob("*.whl")):
            return found[0]
        return wheel(shared / "own-wheel")


@pytest.fixture(scope="session")
def postgres():
    """A real PostgreSQL server with pgvector."""
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_with_schema(postgres, tmp_path_factory):
    """The address of a database in which the tables of memories and of servers were made, and nothing else."""
    import psycopg

    from rmem.server.control import Control
    from rmem.server.settings import ServerSettings
    from rmem.stores.sql.postgres import PostgresRecordStore

    url = postgres.new_database()
    PostgresRecordStore(url, tenant="nobody").close()
    Control(ServerSettings(data=tmp_path_factory.mktemp("control"), store=url)).close()
    with psycopg.connect(url) as connection:
        connection.execute("DELETE FROM remanence.heads")
    return url


@pytest.fixture
def postgres_url(postgres, postgres_with_schema):
    """The address of a database without any rows. Its tables are copied: making them takes five times as long."""
    url = postgres.new_database(like=postgres_with_schema)
    yield url
    postgres.drop_database(url)


@pytest.fixture
def empty_postgres_url(postgres):
    """The address of a database in which nothing was made."""
    url = postgres.new_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture
def server_with(tmp_path) -> Iterator:
    """A function that starts a real server, with a data folder, settings and limits of your own."""
    from running_server import Running

    from rmem.server.settings import Limits, ServerSettings

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
def neighbours():
    """A function: {id: (id before, id after)} in the sessions of a store, inside a filter."""

    def look(store, **where):
        survey = store.filtered_rows(Filter(**where))
        ids = [memory.memory_id for _, memory in store.memories_at(survey.seq.tolist())]
        at = np.arange(survey.size)
        pairs = zip(survey.before(at).tolist(), survey.after(at).tolist(), strict=True)
        named = [*ids, None]  # position -1 is nobody
        return {key: (named[before], named[after]) for key, (before, after) in zip(ids, pairs, strict=True)}

    return look
