"""Tables on a PostgreSQL that goes away: what is repeated, what is not, and what the caller is told."""

from __future__ import annotations

import os
import socket
import threading
from urllib.parse import quote

import psycopg
import pytest

from rmem.errors import ConfigError, StoreClosedError, StoreUnreachableError
from rmem.tables.catalog import Column, Kind, Table, Type
from rmem.tables.engines import postgres_link
from rmem.tables.engines.base import StatementPlan
from rmem.tables.engines.postgres import PostgresEngine
from rmem.tables.sql.bind import Binder
from rmem.tables.sql.parse import parse
from rmem.tables.sql.statements import bind_statement
from rmem.testing.postgres import PostgresServer

NOTES = Table("notes", (Column("text", Type(Kind.TEXT)),))


def plan(sql, *parameters):
    tree = parse(sql).tree
    bind_statement(Binder({"notes": NOTES}, "default", parameters), tree)
    return StatementPlan(tree, parameters)


def add(engine, text):
    return engine.run(plan("INSERT INTO notes (text) VALUES ($1)", text)).row_count


def texts(engine):
    return [row[0] for row in engine.run(plan("SELECT notes.text FROM notes ORDER BY notes.text")).rows]


@pytest.fixture(scope="module")
def server():
    """A server of its own, which may be killed."""
    with PostgresServer() as server:
        yield server


def test_reads_and_writes_go_on_after_a_crash_of_the_server(server, monkeypatch):
    monkeypatch.setattr(postgres_link, "PATIENCE", 120)  # a machine may be slow to start a server
    engine = PostgresEngine(server.url(), tenant="crash")
    engine.create_table(NOTES)
    threads = [threading.Thread(target=add, args=(engine, f"before {number}")) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    server.kill()
    restarted = threading.Timer(0.5, server.start)
    restarted.start()
    assert texts(engine) == [f"before {number}" for number in range(4)]  # it waited for the server
    restarted.join()
    server.kill()
    server.start()
    assert add(engine, "after") == 1  # on a connection that was lost before anything was sent
    assert texts(engine) == ["after", *(f"before {number}" for number in range(4))]
    engine.close()


def test_a_server_that_stays_away_is_said_to_be_unreachable(server, monkeypatch):
    engine = PostgresEngine(server.url(), tenant="away")
    engine.create_table(NOTES)
    url = server.url()
    server.kill()
    monkeypatch.setattr(postgres_link, "PATIENCE", 0.3)
    with pytest.raises(StoreUnreachableError):
        texts(engine)
    with pytest.raises(StoreUnreachableError):
        add(engine, "lost")
    with pytest.raises(StoreUnreachableError):
        list(engine.stream(plan("SELECT notes.text FROM notes"), 10))
    with pytest.raises(StoreUnreachableError):
        PostgresEngine(url, tenant="away")
    server.start()
    monkeypatch.setattr(postgres_link, "PATIENCE", 120)
    assert texts(engine) == []
    engine.close()


def test_an_address_that_is_none_and_a_closed_engine_say_so(postgres_url):
    with pytest.raises(ConfigError):
        PostgresEngine("postgresql://?what=ever", tenant="t")
    engine = PostgresEngine(postgres_url, tenant="t")
    engine.close()
    engine.close()
    with pytest.raises(StoreClosedError):
        engine.tables()


class Cut:
    """Stands between an engine and the server, and once armed loses the next COMMIT: before the server gets it, which
    does not notice that nobody is there any more; or after the server has done it and before the engine hears of it."""

    def __init__(self, url: str, folder: str) -> None:
        self.real = psycopg.conninfo.conninfo_to_dict(url)["host"] + "/.s.PGSQL.5432"
        self.url = url.replace(quote(self.real.rpartition("/")[0], safe=""), quote(folder, safe=""))
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(f"{folder}/.s.PGSQL.5432")
        self.listener.listen(32)
        self.armed = ""
        self.cuts = self.lost = 0
        self.answered = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(self.real)
            threading.Thread(target=self._forth, args=(near, far), daemon=True).start()
            threading.Thread(target=self._back, args=(near, far), daemon=True).start()

    def _forth(self, near: socket.socket, far: socket.socket) -> None:
        while data := _received(near):
            if self.armed and b"COMMIT" in data:
                how, self.armed = self.armed, ""
                self.cuts += 1
                self.answered.clear()
                if how == "after":
                    far.sendall(data)
                    assert self.answered.wait(10)
                else:
                    self.lost += 1
                near.shutdown(socket.SHUT_RDWR)
                return
            far.sendall(data)
        far.close()

    def _back(self, near: socket.socket, far: socket.socket) -> None:
        while data := _received(far):
            if b"COMMIT" in data and self.cuts > self.lost:
                self.lost += 1
                self.answered.set()
                continue
            try:
                near.sendall(data)
            except OSError:
                return
        near.close()


def _received(line: socket.socket) -> bytes:
    try:
        return line.recv(65536)
    except OSError:
        return b""


@pytest.fixture
def cut(postgres_url, tmp_path_factory):
    folder = tmp_path_factory.mktemp("s")
    if len(os.fsencode(folder)) > 80:
        pytest.fail("the folder of temporary files is too long for a socket")
    cut = Cut(postgres_url, str(folder))
    yield cut
    cut.listener.close()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_write_whose_commit_was_not_answered_is_written_once(cut, postgres_url, when):
    engine = PostgresEngine(cut.url, tenant="t")
    engine.create_table(NOTES)
    cut.armed = when
    assert add(engine, "once") == 1
    assert cut.cuts == 1
    assert texts(engine) == ["once"]
    cut.armed = when
    assert engine.insert(NOTES, ["text"], [["twice"], ["thrice"]]) == 2
    assert cut.cuts == 2
    assert texts(engine) == ["once", "thrice", "twice"]
    engine.close()


def test_transactions_in_each_others_way_are_repeated(postgres_url):
    """Two that take the same rows in opposite order: the server ends one of them, which is then run again."""
    engine = PostgresEngine(postgres_url, tenant="t")
    engine.create_table(NOTES)
    add(engine, "a")
    add(engine, "b")
    place = engine._words.place("notes")
    together = threading.Barrier(2, timeout=20)
    tries = []

    def take(first, second):
        def work(connection):
            tries.append(first)
            connection.execute(f"UPDATE {place} SET text = text WHERE text = %s", [first])
            if len(tries) <= 2:
                together.wait()
            connection.execute(f"UPDATE {place} SET text = text || '!' WHERE text = %s", [second])

        engine._link.write(postgres_link.Frame(), work)

    threads = [threading.Thread(target=take, args=pair) for pair in (("a", "b"), ("b", "a"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tries) == 3
    engine.close()
