"""Files that are not ours, damaged or from the future: refused by name, and left exactly as they were."""

from __future__ import annotations

import os
import sqlite3

import pytest

from rmem import Brain
from rmem.doctor import examine
from rmem.errors import StoreBusyError, StoreCorruptError, StoreError, StoreVersionError
from rmem.stores.sql.file import APPLICATION_ID
from rmem.stores.sql.sqlite import SqliteRecordStore
from rmem.testing.contract import example


@pytest.fixture
def store_file(tmp_path):
    """A file with 300 memories, closed."""
    path = tmp_path / "memories.db"
    with SqliteRecordStore(path) as store:
        store.put([example(f"memory {n} " + "lorem ipsum " * 20, memory_id=f"m{n}") for n in range(300)])
    return path


def _refused(path, error, words):
    before = path.read_bytes()
    with pytest.raises(error, match=words) as refused:
        Brain(path)
    assert path.name in str(refused.value)
    assert path.read_bytes() == before
    (first, *_), second = examine(path), examine(path)[-1]
    assert first.ok
    assert not second.ok
    assert path.read_bytes() == before
    assert sorted(one.name for one in path.parent.iterdir()) == [path.name]


@pytest.mark.parametrize("size", [2, 100, 4096, 100_000])
def test_a_file_of_random_bytes_is_refused(tmp_path, size):
    path = tmp_path / "noise.db"
    path.write_bytes(os.urandom(size))
    _refused(path, StoreCorruptError, "damaged or not a Remanence store")


def test_a_text_file_is_refused(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("Dear diary,\n" * 500)
    _refused(path, StoreCorruptError, "damaged or not a Remanence store")


def test_a_database_of_another_program_is_refused(tmp_path):
    path = tmp_path / "places.sqlite"
    with sqlite3.connect(path) as plain:
        plain.execute("CREATE TABLE bookmarks (url TEXT)")
        plain.execute("INSERT INTO bookmarks VALUES ('https://example.org')")
    plain.close()
    _refused(path, StoreCorruptError, "another program")


def test_another_programs_database_under_alembic_is_refused(tmp_path):
    path = tmp_path / "app.db"
    with sqlite3.connect(path) as plain:
        plain.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
        plain.execute("INSERT INTO alembic_version VALUES ('m001')")
        plain.execute("CREATE TABLE memories (id TEXT)")
    plain.close()
    _refused(path, StoreCorruptError, "another program")


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(StoreCorruptError, match="is a folder"):
        Brain(tmp_path)


def test_a_file_of_no_bytes_counts_as_new(tmp_path):
    path = tmp_path / "memories.db"
    path.touch()
    with Brain(path) as brain:
        brain.remember("written into an empty file")
    with Brain(path) as brain:
        assert [memory.text for memory in brain.memories()] == ["written into an empty file"]


def test_a_file_from_a_newer_version_is_refused_and_left_alone(store_file):
    with sqlite3.connect(store_file) as plain:
        plain.execute("UPDATE alembic_version SET version_num = 'm999'")
    plain.close()
    _refused(store_file, StoreVersionError, "newer version of Remanence.*m999.*upgrade")


@pytest.mark.parametrize("share", [0.05, 0.3, 0.6, 0.95, 0.999])
def test_a_truncated_file_is_refused_and_never_answers_in_part(store_file, share):
    whole = store_file.read_bytes()
    store_file.write_bytes(whole[: int(len(whole) * share)])
    cut = store_file.read_bytes()
    with pytest.raises(StoreCorruptError, match=r"backup|repair"), SqliteRecordStore(store_file) as store:
        store.select()
    assert [finding for finding in examine(store_file) if not finding.ok], "the doctor saw nothing"
    assert store_file.read_bytes() == cut


def test_a_page_of_zeros_in_the_middle_is_reported(store_file):
    raw = bytearray(store_file.read_bytes())
    with sqlite3.connect(store_file) as plain:
        (page_size,) = plain.execute("PRAGMA page_size").fetchone()
        (root,) = plain.execute("SELECT rootpage FROM sqlite_master WHERE name = 'memories'").fetchone()
    plain.close()
    raw[(root - 1) * page_size : root * page_size] = bytes(page_size)
    store_file.write_bytes(raw)
    with pytest.raises(StoreCorruptError, match="damaged"), SqliteRecordStore(store_file) as store:
        store.select()
    assert [finding for finding in examine(store_file) if not finding.ok]


def test_a_write_ahead_log_of_random_bytes_is_ignored(store_file):
    """SQLite checks every frame of the log, so a foreign log changes nothing."""
    (store_file.parent / "memories.db-wal").write_bytes(os.urandom(50_000))
    with SqliteRecordStore(store_file) as store:
        assert len(store) == 300


def test_our_mark_without_our_tables_is_not_taken_for_a_store(tmp_path):
    path = tmp_path / "odd.db"
    with sqlite3.connect(path) as plain:
        plain.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        plain.execute("CREATE TABLE something (x)")
    plain.close()
    _refused(path, StoreCorruptError, "another program")


def test_a_half_made_schema_is_refused_by_name(tmp_path):
    """Tables of ours without a revision: nobody knows what they hold."""
    path = tmp_path / "half.db"
    with sqlite3.connect(path) as plain:
        plain.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        plain.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
        plain.execute("CREATE TABLE memories (seq INTEGER PRIMARY KEY)")
    plain.close()
    with pytest.raises(StoreError, match=r"half\.db"):
        Brain(path)


def test_a_file_that_another_process_is_setting_up_for_too_long_says_so(tmp_path):
    path = tmp_path / "new.db"
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        other.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusyError, match=r"new\.db"):
            SqliteRecordStore(path, busy_timeout=0.2)
        other.execute("ROLLBACK")
    other.close()
    with SqliteRecordStore(path, busy_timeout=0.2) as store:
        assert len(store) == 0
