"""No room, no permission: a clear error, an intact file, and everything that was kept before."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from fault_children import HERE, run, start

from rmem import Brain
from rmem.doctor import examine
from rmem.errors import StoreFullError, StoreReadOnlyError
from rmem.stores.sql.sqlite import SqliteRecordStore
from rmem.testing.contract import clustered_vectors, example


def _sound(path):
    return [finding for finding in examine(path) if not finding.ok] == []


def _limit(store, extra):
    """SQLite itself refuses pages beyond a number, with the error it has for a full disk."""
    (pages,) = store._file.writer.execute("PRAGMA page_count").fetchone()
    store._file.writer.execute(f"PRAGMA max_page_count = {pages + extra}")


@pytest.mark.parametrize("listed", [False, True], ids=["one by one", "as a list"])
def test_a_full_disk_is_reported_and_loses_nothing(tmp_path, listed):
    path = tmp_path / "memories.db"
    with SqliteRecordStore(path) as store:
        early = [memory.memory_id for memory in store.put([example(f"early lantern {n}") for n in range(20)])]
        _limit(store, 20)
        kept = list(early)

        def fill():
            for number in range(1000):
                batch = [example(f"late {number} " + "lorem ipsum " * 300) for _ in range(7 if listed else 1)]
                kept.extend(memory.memory_id for memory in store.put(batch))

        with pytest.raises(StoreFullError, match=r"no space left for .*memories\.db"):
            fill()
        assert len(kept) > len(early), "nothing fitted at all: this tested less than it should"
        assert [memory.memory_id for memory in store.select()] == kept, "a list was kept in part, or something is gone"
        assert len(store.match("lantern", k=50)) == 20
        with pytest.raises(StoreFullError):
            store.put([example("still full " + "lorem ipsum " * 3000)])
        _limit(store, 10_000)
        kept += [store.put([example("room again")])[0].memory_id]
        assert [memory.text for memory, _ in store.match("room again", k=1)] == ["room again"]
    with SqliteRecordStore(path) as again:
        assert [memory.memory_id for memory in again.select()] == kept
    assert _sound(path)


def test_a_disk_that_fills_up_while_a_segment_is_made_keeps_the_memory(tmp_path, monkeypatch):
    """The memory is durable before its segment is written: `put` must not fail, or must not have kept it."""
    from rmem.stores.sql import cache

    monkeypatch.setattr(cache, "SETTLE_FROM", 64)
    path = tmp_path / "memories.db"
    vectors = clustered_vectors(200, 256)
    with SqliteRecordStore(path) as store:
        store.put([example(f"early {n}", vector=vectors[n]) for n in range(60)])
        kept = [memory.memory_id for memory in store.select()]
        _limit(store, 3)
        failed = 0
        for number in range(60, 80):
            try:
                kept.append(store.put([example(f"late {number}", vector=vectors[number])])[0].memory_id)
            except StoreFullError:
                failed += 1
        assert failed, "the disk never was full: this tested nothing"
        assert [memory.memory_id for memory in store.select()] == kept
    assert _sound(path)


def test_threads_that_meet_a_full_disk_together_are_all_told(tmp_path):
    import threading

    outcomes: list[object] = []
    with SqliteRecordStore(tmp_path / "memories.db") as store:
        store.put([example("early")])
        _limit(store, 12)

        def work(thread: int) -> None:
            for number in range(30):
                try:
                    outcomes.append(store.put([example(f"{number} " + "x" * 3000, agent_id=f"a{thread}")])[0].memory_id)
                except StoreFullError as error:
                    outcomes.append(error)
                except BaseException as error:
                    outcomes.append(repr(error))

        workers = [threading.Thread(target=work, args=(thread,)) for thread in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        kept = {outcome for outcome in outcomes if isinstance(outcome, str)}
        assert len(outcomes) == 120
        assert any(isinstance(outcome, StoreFullError) for outcome in outcomes)
        assert {memory.memory_id for memory in store.select()} == kept | {"agent-1-0-1700000000"}


def test_a_process_at_its_file_size_limit_gets_an_error_and_can_go_on(tmp_path):
    path = tmp_path / "memories.db"
    [(kind, message, kept, all_there, works_again)] = run("write_under_a_file_limit", path, 600_000)
    assert kind in ("StoreFullError", "StoreError")
    assert "memories.db" in message
    assert len(kept) > 5
    assert all_there
    assert works_again
    with Brain(path) as brain:
        assert None not in brain.store.get_many(kept)
        assert len(brain.store) == len(kept) + 1
    assert _sound(path)


def test_a_store_that_finds_no_space_when_it_is_opened_says_so(tmp_path):
    path = tmp_path / "memories.db"
    Brain(path).close()
    [(kind, message)] = run("open_under_a_file_limit", path, 10_000)
    assert (kind, message.startswith(f"no space left for {path}")) == ("StoreFullError", True)
    assert _sound(path)


def test_a_file_system_without_space_gives_an_error_and_an_intact_store(tmp_path):
    """A real one of three megabytes, where this machine lets us make it."""
    mount = f"mount -t tmpfs -o size=3m tmpfs {tmp_path}"
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-m", "sh", "-c", mount], capture_output=True).returncode:
        pytest.skip("needs the right to mount a small file system")
    command = f"{mount} && exec {sys.executable} {HERE} fill_the_disk {tmp_path / 'memories.db'}"
    child = subprocess.run([unshare, "-m", "sh", "-c", command], capture_output=True, text=True, timeout=120)
    assert child.returncode == 0, child.stderr
    kind, message, kept, all_there, hits, unsound = json.loads(child.stdout)
    assert kind == "StoreFullError"
    assert "no space left" in message
    assert len(kept) > 5
    assert all_there
    assert hits == 5
    assert unsound == []


@pytest.fixture
def shelf():
    """A folder that any user of this machine may enter."""
    folder = Path(tempfile.mkdtemp(prefix="rmem-read-only-"))
    folder.chmod(0o755)
    yield folder
    for one in [folder, *folder.rglob("*")]:
        one.chmod(0o755 if one.is_dir() else 0o644)
    shutil.rmtree(folder)


def _as_someone_else(shelf, path):
    warm = Path(tempfile.mkdtemp()) / "warm.db"
    try:
        answers = run("use_without_permission", path, warm)
    finally:
        shutil.rmtree(warm.parent)
    return {act: outcome for act, *outcome in answers}


@pytest.mark.parametrize("in_use", [False, True], ids=["closed", "open elsewhere"])
@pytest.mark.parametrize("locked", ["file", "folder", "both"])
def test_a_store_that_may_only_be_read_is_read_refuses_writes_clearly_and_stays_as_it_is(shelf, locked, in_use):
    folder = shelf / "store"
    folder.mkdir()
    path = folder / "memories.db"
    brain = Brain(path)
    brain.remember("the lighthouse keeper waved", id="m1")
    if not in_use:
        brain.close()
    for one in folder.iterdir():
        one.chmod(0o444 if locked in ("file", "both") else 0o666)
    folder.chmod(0o555 if locked in ("folder", "both") else 0o777)
    before = path.read_bytes()
    try:
        outcome = _as_someone_else(shelf, path)
        assert outcome["open"] == ["done"], outcome
        for act in ("remember", "forget"):
            assert outcome[act][0] == "StoreReadOnlyError", outcome
            assert "memories.db" in outcome[act][1]
        assert outcome["recall"] == ["done", ["the lighthouse keeper waved"]], outcome
        assert outcome["close"] == ["done"]
        assert path.read_bytes() == before
    finally:
        brain.close()


def test_reading_a_write_protected_file_works_while_its_folder_can_be_written(shelf):
    path = shelf / "memories.db"
    with Brain(path) as brain:
        brain.remember("the lighthouse keeper waved", id="m1")
    shelf.chmod(0o777)
    path.chmod(0o444)
    outcome = _as_someone_else(shelf, path)
    assert outcome["recall"] == ["done", ["the lighthouse keeper waved"]]
    assert outcome["remember"][0] == "StoreReadOnlyError"


def test_a_new_store_in_a_folder_that_cannot_be_written_is_refused(shelf):
    folder = shelf / "locked"
    folder.mkdir(mode=0o555)
    for path in (folder / "memories.db", folder / "deeper" / "memories.db"):
        outcome = _as_someone_else(shelf, path)
        assert outcome["open"][0] == "StoreReadOnlyError"
        assert str(folder) in outcome["open"][1]
    assert list(folder.iterdir()) == []
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o555


def test_a_path_below_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StoreReadOnlyError, match="file"):
        Brain(tmp_path / "file" / "memories.db")


def test_a_child_told_to_stop_politely_ends_its_file_in_order(tmp_path):
    path = tmp_path / "memories.db"
    child = start("write_until_told", path)
    first = json.loads(child.stdout.readline())[0]
    child.stdin.close()
    kept = first + [key for line in child.stdout for key in json.loads(line)[0]]
    assert child.wait(30) == 0
    assert not Path(f"{path}-wal").exists()
    with Brain(path) as brain:
        assert len(brain.store) == len(kept)
