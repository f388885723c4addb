"""Several writes as one: all of them or none, also when the process is killed, and once for a request that is sent
again."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from rmem import receipts
from rmem.errors import ConstraintError, NoSuchTableError, SqlError, TableExistsError
from rmem.tables.ingest import normalize_columns, write_table


def names(workspace) -> list[str]:
    return [table.name for table in workspace.tables()]


def rows(workspace, table: str) -> list[tuple]:
    return workspace.query(f"SELECT * FROM {table} ORDER BY 1").rows


def test_what_fails_undoes_what_was_done_before_it(workspace, open_workspace):
    workspace.query("CREATE TABLE notes (id BIGSERIAL PRIMARY KEY, body TEXT)")

    def work() -> None:
        workspace.create_table("other", {"x": "INT"})
        workspace.insert("other", {"x": [1, 2]})
        workspace.query("INSERT INTO notes (body) VALUES ('one')")
        assert names(workspace) == ["notes", "other"]
        workspace.query("INSERT INTO notes (id, body) VALUES (1, 'again')")

    with pytest.raises(ConstraintError):
        workspace.run_in_transaction(work)
    for one in (workspace, open_workspace()):
        assert names(one) == ["notes"]
        assert rows(one, "notes") == []
    workspace.query("INSERT INTO notes (body) VALUES ('two')")
    assert [text for _, text in rows(workspace, "notes")] == ["two"]


def test_an_error_that_is_caught_inside_undoes_nothing(workspace):
    def work() -> None:
        workspace.create_table("notes", {"x": "INT"})
        with pytest.raises(TableExistsError):
            workspace.create_table("notes", {"x": "INT"})
        with pytest.raises(NoSuchTableError):
            workspace.drop_table("missing")
        workspace.insert("notes", {"x": [1]})

    workspace.run_in_transaction(work)
    assert rows(workspace, "notes") == [(1,)]


def test_others_see_all_of_it_or_nothing(workspace, open_workspace):
    workspace.query("CREATE TABLE notes (x INT)")
    other = open_workspace()
    seen: list[int] = []

    def work() -> None:
        for number in range(5):
            workspace.query("INSERT INTO notes VALUES ($1)", [number])
            seen.append(len(rows(other, "notes")))
        workspace.create_table("more", {"x": "INT"})
        assert names(other) == ["notes"]

    workspace.run_in_transaction(work)
    assert seen[:5] == [0] * 5
    assert len(rows(other, "notes")) == 5
    assert names(other) == ["more", "notes"]


def test_threads_that_write_several_things_do_not_mix_them(workspace):
    workspace.query("CREATE TABLE notes (x INT)")

    def work(number: int) -> None:
        def both() -> None:
            workspace.query("INSERT INTO notes VALUES ($1)", [number])
            workspace.query("INSERT INTO notes VALUES ($1)", [number])
            if number % 2:
                raise RuntimeError("no")

        if number % 2:
            with pytest.raises(RuntimeError):
                workspace.run_in_transaction(both)
        else:
            workspace.run_in_transaction(both)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(16)))
    assert rows(workspace, "notes") == [(number,) for number in range(0, 16, 2) for _ in range(2)]


def test_a_request_is_done_once_and_told_again(workspace, open_workspace):
    workspace.query("CREATE TABLE notes (id BIGSERIAL PRIMARY KEY, body TEXT)")
    number = receipts.new_number()

    def ask(one) -> tuple[object, bool]:
        request = receipts.Request(number)
        with receipts.request(request):
            told = one.once(lambda: one.query("INSERT INTO notes (body) VALUES ('x') RETURNING id").rows[0][0])
            made = write_table(one, "made", normalize_columns({"y": [1, 2]}), index={"y": "btree"})
        return (told, made), request.replayed

    first = ask(workspace)
    assert first == ((1, {"table_name": "made", "row_count": 2, "created": True}), False)
    assert ask(workspace) == (first[0], True)
    assert ask(open_workspace()) == (first[0], True)
    assert rows(workspace, "notes") == [(1, "x")]
    assert len(rows(workspace, "made")) == 2


def test_what_failed_leaves_no_receipt(workspace):
    workspace.query("CREATE TABLE notes (x INT PRIMARY KEY)")
    workspace.query("INSERT INTO notes VALUES (1)")
    number = receipts.new_number()

    def ask() -> int:
        with receipts.request(receipts.Request(number)):
            return workspace.once(lambda: workspace.query("INSERT INTO notes VALUES (1)").row_count)

    with pytest.raises(ConstraintError):
        ask()
    workspace.query("DELETE FROM notes")
    assert ask() == 1
    assert ask() == 1


def test_statements_on_several_tables_are_whole(workspace):
    workspace.query("CREATE TABLE one (x INT)")
    workspace.query("CREATE TABLE two (x INT PRIMARY KEY)")
    workspace.query("CREATE TABLE three (x INT REFERENCES two (x))")
    workspace.query("INSERT INTO one VALUES (1)")
    workspace.query("INSERT INTO two VALUES (1)")
    workspace.query("INSERT INTO three VALUES (1)")
    with pytest.raises(ConstraintError):
        workspace.query("TRUNCATE one, two")
    assert rows(workspace, "one") == [(1,)]
    with pytest.raises(ConstraintError):
        workspace.query("DROP TABLE one, two")
    assert names(workspace) == ["one", "three", "two"]
    with pytest.raises(SqlError):
        workspace.query("CREATE TABLE copy AS SELECT 1 / (x - 1) AS y FROM one")
    assert names(workspace) == ["one", "three", "two"]
    workspace.query("DROP TABLE one, two, three")
    assert names(workspace) == []


KILLED = """
import os, signal, sys
from rmem.tables.ingest import normalize_columns, write_table
from rmem.tables.workspace import Workspace

def die(*_):
    print("made", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

workspace = Workspace(sys.argv[1], tenant="killed")
type(workspace._engine).insert = type(workspace._engine).run = die
if sys.argv[2] == "ingest":
    write_table(workspace, "made", normalize_columns({"x": [1, 2]}), index=["x"])
else:
    workspace.query("CREATE TABLE made AS SELECT x FROM source")
"""


@pytest.mark.parametrize("what", ["ingest", "create as"])
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_table_and_its_rows_come_together_though_the_process_is_killed(request, tmp_path, engine, what):
    from rmem.tables.workspace import Workspace

    address = str(tmp_path / "tables.db") if engine == "sqlite" else request.getfixturevalue("postgres_url")
    with Workspace(address, tenant="killed") as workspace:
        workspace.query("CREATE TABLE source (x INT)")
        workspace.query("INSERT INTO source VALUES (1), (2)")
        child = subprocess.run(
            [sys.executable, "-c", KILLED, address, what], capture_output=True, text=True, timeout=120
        )
        assert (child.returncode, child.stdout) == (-signal.SIGKILL, "made\n"), child.stderr
        until = time.monotonic() + 10
        while names(workspace) != ["source"]:
            assert time.monotonic() < until
            time.sleep(0.05)
        write_table(workspace, "made", normalize_columns({"x": [3]}))
        assert workspace.query("SELECT x FROM made").rows == [(3,)]
