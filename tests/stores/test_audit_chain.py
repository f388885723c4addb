"""The audit log: who changes it, cuts its end or writes it anew is found out, as long as the key is not theirs."""

from __future__ import annotations

import json
import sqlite3
import time
from hashlib import blake2b

import pytest
from click.testing import CliRunner

from rmem import Brain
from rmem.admin import backup
from rmem.cli.app import rmem


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memories.db"


def log_of(path, number=4):
    with Brain(path, embedder="none") as brain:
        for n in range(number):
            brain.store.record("ann", "remember", [f"m{n}"])
        assert brain.store.broken_audit() == []


def tamper(path, *statements):
    file = sqlite3.connect(path)
    with file:
        for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            file.execute(f'DROP TRIGGER "{name}"')
        for one in statements:
            file.execute(*one) if isinstance(one, tuple) else file.execute(one)
    file.close()


def broken(path):
    with Brain(path, embedder="none") as brain:
        return brain.store.broken_audit()


def forged(path, count):
    """A log of `count` entries that is written anew without the key, as every reader of our code can."""
    seal, rows = "0" * 32, []
    for number in range(1, count + 1):
        parts = (number, time.time(), "eve", "remember", "x", "{}")
        seal = blake2b(json.dumps([seal, *parts], ensure_ascii=False).encode(), digest_size=16).hexdigest()
        rows.append((*parts, seal))
    return [("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?)", row) for row in rows]


def test_an_end_that_was_cut_off_shows_although_the_sequence_was_reset(path):
    log_of(path)
    tamper(path, "DELETE FROM audit WHERE n > 2", "UPDATE sqlite_sequence SET seq = 2 WHERE name = 'audit'")
    assert broken(path) == [3]


def test_a_log_that_was_emptied_shows(path):
    log_of(path)
    tamper(path, "DELETE FROM audit", "DELETE FROM sqlite_sequence WHERE name = 'audit'")
    assert broken(path) == [1]


@pytest.mark.parametrize("count", [4, 9])
def test_a_log_that_was_written_anew_shows(path, count):
    log_of(path)
    tamper(path, "DELETE FROM audit", *forged(path, count))
    assert broken(path)


def test_entries_behind_the_head_cannot_be_added_without_the_key(path):
    log_of(path)
    tamper(path, ("INSERT INTO audit VALUES (5, 1.0, 'eve', 'remember', 'x', '{}', ?)", ("0" * 32,)))
    assert broken(path) == [5]


def test_a_log_without_its_file_is_not_taken_for_whole(path):
    log_of(path)
    path.with_name("memories.db.audit").unlink()
    assert broken(path)


def test_logs_of_before_there_were_keys_stay_valid_and_go_on(path):
    with Brain(path, embedder="none"):
        pass
    tamper(path, *forged(path, 3))
    assert broken(path) == []
    with Brain(path, embedder="none") as brain:
        brain.store.record("ann", "remember", ["m"])
        assert brain.store.broken_audit() == []
    tamper(path, "UPDATE audit SET who = 'nobody' WHERE n = 2")
    assert broken(path) == [2]


def test_the_file_beside_the_store_is_its_owners(path):
    log_of(path)
    assert path.with_name("memories.db.audit").stat().st_mode & 0o077 == 0


def test_a_key_of_the_environment_lies_nowhere_near_the_store(path, monkeypatch):
    monkeypatch.setenv("RMEM_AUDIT_KEY", "a key that only the service knows, and its head")
    log_of(path)
    tamper(path, "UPDATE audit SET who = 'nobody' WHERE n = 4")
    assert broken(path) == [4]
    tamper(path, "DELETE FROM audit WHERE n > 2", "UPDATE sqlite_sequence SET seq = 2 WHERE name = 'audit'")
    assert broken(path) == [3]
    first, _ = path.with_name("memories.db.audit").read_text().splitlines()
    assert first.strip() == ""


def test_a_backup_can_be_verified_and_a_restored_one_accepted(path, tmp_path):
    log_of(path)
    backup(path, tmp_path / "copy.db")
    log_of(path, 2)
    assert broken(tmp_path / "copy.db") == []
    path.write_bytes((tmp_path / "copy.db").read_bytes())  # the file alone, below a newer head
    for ending in ("-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    shown = CliRunner().invoke(rmem, ["--store", str(path), "audit", "verify"])
    assert (shown.exit_code, "entry 5 and perhaps later ones are missing" in shown.output) == (6, True)
    assert CliRunner().invoke(rmem, ["--store", str(path), "audit", "accept"]).exit_code == 0
    assert CliRunner().invoke(rmem, ["--store", str(path), "audit", "verify"]).exit_code == 0


def test_threads_and_removals_leave_a_log_that_is_whole(path):
    from concurrent.futures import ThreadPoolExecutor

    with Brain(path, embedder="none") as brain:
        kept = [brain.remember(f"note {n}").memory_id for n in range(20)]
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(brain.forget, kept))
        assert brain.store.broken_audit() == []
        assert brain.store.audit_chain.head().n == 20
    assert broken(path) == []


def test_postgres_seals_with_the_key_of_the_environment(postgres_url, monkeypatch):
    monkeypatch.setenv("RMEM_AUDIT_KEY", "a key that only the service knows, and its head")
    with Brain(postgres_url, embedder="none") as brain:
        for n in range(3):
            brain.store.record("ann", "remember", [f"m{n}"])
        assert brain.store.broken_audit() == []
        monkeypatch.setenv("RMEM_AUDIT_KEY", "another key, which is not that of the service")
        assert brain.store.broken_audit() == [1, 2, 3]
