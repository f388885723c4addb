"""`rmem migrate` and the tables of users: every value arrives as it was, also after a kill, and over nothing else."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from decimal import Decimal
from uuid import UUID

import pytest

from rmem import Brain
from rmem.errors import ConfigError, ConstraintError
from rmem.postgres_migration import migrate
from rmem.tables import move
from rmem.tables.workspace import Workspace

KILLED = """
import os, sys
from rmem import postgres_migration
from rmem.tables import move
move._BATCH = 10
kill = lambda done, total: done >= 150 and os.kill(os.getpid(), 9)
postgres_migration.migrate(sys.argv[1], sys.argv[2], on_progress=kill)
"""
EVERY = """
CREATE TABLE "Every thing" (
    id BIGSERIAL PRIMARY KEY, small SMALLINT, whole INTEGER, big BIGINT, single REAL, double DOUBLE PRECISION,
    exact NUMERIC, money NUMERIC(12, 2) DEFAULT 1.50, told TEXT NOT NULL DEFAULT 'un''said', short VARCHAR(9),
    yes BOOLEAN, data JSONB, at TIMESTAMPTZ DEFAULT now(), local TIMESTAMP, day DATE, hour TIME, span INTERVAL,
    key UUID UNIQUE, raw BYTEA, vector FLOAT4[], vectors FLOAT4[][], texts TEXT[], numbers BIGINT[],
    CHECK (whole < 1000)
)
"""
INSERT = """
INSERT INTO "Every thing" (small, whole, big, single, double, exact, money, told, short, yes, data, at, local, day,
    hour, span, key, raw, vector, vectors, texts, numbers)
VALUES ($1, $2, $3, $4, $5, $6::numeric, $7::numeric, $8, $9, $10, $11::jsonb, $12, $13, $14, $15, $16::interval, $17,
    $18, $19, $20, $21, $22)
"""
ROWS = [
    [
        -32768, 999, 2**63 - 1, 0.1, 0.1, "1.50000000000000000000000000000000001", "3.10",
        "tab\t, line\n, \\N, 'quote', naïve 😀", "", True,
        '{"b": 1.10, "a": [1e3, null, "x"], "long": 123456789012345678901234567890.5}',
        dt.datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=dt.UTC), dt.datetime(1, 1, 1), dt.date(9999, 12, 31),
        dt.time(23, 59, 59, 999999), "1 year 2 months -3 days 04:05:06.7",
        UUID("12345678-1234-5678-1234-567812345678"), b"\x00\xff\\", [0.1, -0.0, 3e38], [[1.0, 2.0], [3.0, 4.5]],
        ["a", None, '"{,}'], [1, -(2**63), None],
    ],
    [None, None, None, float("inf"), float("-inf"), "12345678901234567", None, "", None, False, "null", *[None] * 11],
    [0, 0, 0, -0.0, 5e-324, "-0.000", "0", " ", "x", None, '"text"', None, None, None, None, "0", None, b"", [], None,
     [], []],
]  # fmt: skip
READ = 'SELECT *, data::text AS d, span::text AS s FROM "Every thing" ORDER BY id'


@pytest.fixture
def file(tmp_path):
    """A file with memories, a table of every type, one that refers to another, and a long one."""
    path = tmp_path / "old.db"
    with Brain(path, encryption=False) as brain:
        brain.remember_many([{"text": f"memory {n}"} for n in range(40)])
    with Workspace(path) as tables:
        tables.query(EVERY)
        for row in ROWS:
            tables.query(INSERT, row)
        tables.query('CREATE INDEX found ON "Every thing" USING deeplake_index (vector, told)')
        tables.query('CREATE INDEX ordered ON "Every thing" (whole, big)')
        tables.query("CREATE TABLE people (id SERIAL PRIMARY KEY, name TEXT)")
        tables.query("CREATE TABLE a_notes (text TEXT, who INTEGER REFERENCES people (id) ON DELETE CASCADE)")
        tables.query("CREATE TABLE nothing (x TEXT)")
        tables.insert("people", {"name": [f"person {n}" for n in range(300)]})
        tables.query("DELETE FROM people WHERE id > 290")
        tables.insert("people", {"id": [1000], "name": ["given a number"]})
        tables.insert("a_notes", {"text": ["one", "two"], "who": [1, 1000]})
    return path


def contents(address):
    with Workspace(address) as tables:
        return tables.tables(), [
            repr(sorted(tables.query(READ if t.name == "Every thing" else f'SELECT * FROM "{t.name}"').rows, key=repr))
            for t in tables.tables()
        ]


def test_every_value_arrives_as_it_was(file, empty_postgres_url):
    seen = []
    rows = {"Every thing": 3, "people": 291, "a_notes": 2, "nothing": 0}
    before = contents(file)
    assert migrate(file, empty_postgres_url, dry_run=True)["tables"] == rows
    with Workspace(empty_postgres_url) as tables:
        assert tables.tables() == []
    done = migrate(file, empty_postgres_url, on_progress=lambda done, total: seen.append((done, total)))
    assert done["tables"] == rows
    assert {name: int(told.partition("-")[0]) for name, told in done["table_checksums"].items()} == rows
    assert seen == sorted(seen)
    assert seen[-1] == (40 + 296, 40 + 296)
    assert contents(empty_postgres_url) == before == contents(file)
    with Workspace(empty_postgres_url) as tables:
        (row,) = tables.query('SELECT exact, data::text, span::text, vector FROM "Every thing" WHERE id = 1').rows
        assert row[0] == Decimal("1.50000000000000000000000000000000001")
        assert '"b": 1.10' in row[1]
        assert "123456789012345678901234567890.5" in row[1]
        assert row[2] == "1 year 2 mons -3 days +04:05:06.7"
        assert str(row[3][1]) == "-0.0"
        # what was defined still holds, and numbers go on
        assert tables.query("INSERT INTO people (name) VALUES ('next') RETURNING id").rows == [(1001,)]
        assert tables.query('INSERT INTO "Every thing" (whole) VALUES (1) RETURNING id, money, told').rows == [
            (4, Decimal("1.50"), "un'said")
        ]
        with pytest.raises(ConstraintError):
            tables.query('INSERT INTO "Every thing" (whole) VALUES (1000)')
        with pytest.raises(ConstraintError):
            tables.query("INSERT INTO a_notes (who) VALUES (5000)")
        assert tables.query("SELECT id FROM \"Every thing\" ORDER BY told <#> 'naïve' DESC LIMIT 1").rows == [(1,)]


def test_numbers_of_deleted_rows_are_not_given_again(file, empty_postgres_url):
    with Workspace(file) as tables:
        tables.query("DELETE FROM people WHERE id = 1000")
    migrate(file, empty_postgres_url)
    with Workspace(empty_postgres_url) as tables:
        assert tables.query("INSERT INTO people (name) VALUES ('next') RETURNING id").rows == [(301,)]


def test_after_a_kill_a_whole_table_stays_and_a_half_one_begins_anew(file, empty_postgres_url, monkeypatch):
    done = subprocess.run([sys.executable, "-c", KILLED, str(file), empty_postgres_url], capture_output=True)
    assert done.returncode == -9, done.stderr
    with Workspace(empty_postgres_url) as tables:
        there = {table.name for table in tables.tables()}
    assert there == {"Every thing", "nothing"}
    copied = []
    whole = move.TableMove._copy_table
    monkeypatch.setattr(
        move.TableMove, "_copy_table", lambda self, table, tell: copied.append(table.name) or whole(self, table, tell)
    )
    assert migrate(file, empty_postgres_url)["resumed"]
    assert copied == ["people", "a_notes"]
    assert contents(empty_postgres_url) == contents(file)


@pytest.mark.parametrize(
    "there",
    [
        ["CREATE TABLE people (id SERIAL PRIMARY KEY, name TEXT)", "INSERT INTO people (name) VALUES ('theirs')"],
        ["CREATE TABLE people (other TEXT)"],
    ],
)
def test_a_table_with_other_contents_is_refused_and_stays(file, empty_postgres_url, there):
    with Workspace(empty_postgres_url) as tables:
        for sql in there:
            tables.query(sql)
    before = contents(empty_postgres_url)
    for dry_run in (True, False):
        with pytest.raises(ConfigError, match=r"table 'people' with other contents; nothing was written"):
            migrate(file, empty_postgres_url, dry_run=dry_run)
    assert contents(empty_postgres_url) == before
    with Brain(empty_postgres_url, encryption=False) as brain:
        assert brain.store.count() == 0
    migrate(file, f"{empty_postgres_url}{'&' if '?' in empty_postgres_url else '?'}tenant=new")


def test_tables_of_another_tenant_are_not_in_the_way(file, empty_postgres_url):
    with Workspace(empty_postgres_url, tenant="other") as tables:
        tables.query("CREATE TABLE people (other TEXT)")
    migrate(file, empty_postgres_url)
    assert contents(empty_postgres_url) == contents(file)


def test_the_command_lists_tables(file, empty_postgres_url):
    command = [sys.executable, "-m", "rmem", "migrate", str(file), empty_postgres_url]
    done = subprocess.run([*command, "--dry-run"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1:] == [
        "Would copy table Every thing: 3 rows",
        "Would copy table nothing: 0 rows",
        "Would copy table people: 291 rows",
        "Would copy table a_notes: 2 rows",
    ]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["tables"]["people"] == 291
