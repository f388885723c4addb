"""Rotating keys while the store is in use: at once, half-way, killed half-way."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from rmem import Brain, Encryption
from rmem.admin import data_keys, rotate_keys
from rmem.crypto.encryption import new_master_key
from rmem.doctor import examine
from rmem.errors import KeyMissingError, KeyWrongError
from rmem.stores.sql import cache, keys
from rmem.stores.sql.sqlite import SqliteRecordStore
from rmem.testing.contract import example

CHILD = Path(__file__).with_name("rotation_child.py")


def filled(path, encryption, count=200):
    with SqliteRecordStore(path, encryption=encryption) as store:
        store.put([secret(n) for n in range(count)])
        store.write_segment(1)
        store.put([secret(count)])


def secret(n):
    return example(f"lighthouse number{n} word{n % 7}", memory_id=f"m{n}", tags={"part": str(n % 3)}, session="s")


def versions(path):
    with sqlite3.connect(path) as plain:
        found = dict(plain.execute("SELECT key_version, count(*) FROM memories GROUP BY 1"))
    plain.close()
    return found


def answers(store):
    """What a few questions find, with their scores."""
    return [
        [(memory.memory_id, round(score, 5)) for memory, score in store.match(question, k=1000)]
        for question in ("lighthouse", "word3", "number17 word5")
    ]


def ids(answered):
    return [sorted(memory_id for memory_id, _ in one) for one in answered]


def test_a_new_master_key_opens_everything_and_the_old_one_nothing(path, key, monkeypatch):
    filled(path, Encryption(master=key))
    with sqlite3.connect(path) as plain:
        before = plain.execute("SELECT sealed FROM memories").fetchall()
    fresh = Encryption(master=new_master_key())
    with pytest.raises(KeyMissingError, match="present master key"):
        rotate_keys(path, fresh)
    monkeypatch.setenv("RMEM_MASTER_KEY", new_master_key())
    with pytest.raises(KeyWrongError, match="nothing was rotated"):
        rotate_keys(path, fresh)
    monkeypatch.setenv("RMEM_MASTER_KEY", key)
    with Brain(path) as running:  # its keys stay open
        assert running.get("m0")
        assert rotate_keys(path, fresh) == {"rewrapped": 4}
        assert running.get("m1").text == "lighthouse number1 word1"
        running.remember("lighthouse written meanwhile", id="late")
    assert plain.execute("SELECT sealed FROM memories WHERE id LIKE 'm%'").fetchall() == before
    plain.close()
    assert rotate_keys(path, fresh) == {"rewrapped": 4}, "done twice it changes nothing"
    with Brain(path) as brain, pytest.raises(KeyWrongError):
        brain.get("m1")
    with Brain(path, encryption=fresh) as brain:
        assert brain.get("late").text == "lighthouse written meanwhile"
        assert len(brain.recall("lighthouse", k=1000, mode="lexical")) == 202


def test_new_data_keys_change_every_value_and_no_answer(path, key, monkeypatch):
    encryption = Encryption(master=key)
    filled(path, encryption)
    monkeypatch.setenv("RMEM_MASTER_KEY", key)
    with sqlite3.connect(path) as plain:
        before = dict(plain.execute("SELECT id, sealed FROM memories"))
        terms = {term for (term,) in plain.execute("SELECT terms FROM memories")}
    with SqliteRecordStore(path, encryption=encryption) as store:
        expected = answers(store)
        store.set_aside(["m5"], until=9e9, who="t", reason="t")
        store.move(["m7", "m8"], "ltm")
        store.change("m9", lambda memory: memory)
        seen = []
        done = keys.rotate(store, lambda now, total: seen.append((now, total)))
        assert (done["version"], done["memories"], done["resumed"], done["unreadable"]) == (2, 200, False, 0)
        assert seen[0] == (0, 200)
        assert seen[-1] == (200, 200)
        assert store.match("number7")
        store.put_back(["m5"], who="t")
        found = answers(store)
        assert [sorted(one) for one in found] == [sorted(one) for one in expected]
    assert versions(path) == {2: 201}
    after = dict(plain.execute("SELECT id, sealed FROM memories"))
    assert not terms & {term for (term,) in plain.execute("SELECT terms FROM memories")}
    plain.close()
    assert after.keys() == before.keys()
    assert all(after[one] != before[one] for one in after)
    assert {one["version"] for one in data_keys(path)} == {2}
    assert all(one["opens"] for one in data_keys(path))
    assert [one.detail for one in examine(path) if not one.ok] == []


def test_another_process_reads_writes_and_finds_through_a_whole_rotation(path, key):
    encryption = Encryption(master=key)
    filled(path, encryption, 300)
    with SqliteRecordStore(path, encryption=encryption) as other, SqliteRecordStore(path, encryption=encryption) as own:
        expected = answers(other)
        wrong, stop, rounds = [], threading.Event(), []

        def use():
            while not stop.is_set() or not rounds:
                if answers(other) != expected:
                    wrong.append("answers")
                if other.get("m250").text != "lighthouse number250 word5":
                    wrong.append("get")
                if len(other.select()) < 301:
                    wrong.append("select")
                other.put([example("something else", memory_id=f"late{len(rounds)}", agent_id="late")])
                other.forget(f"late{len(rounds)}")
                rounds.append(1)

        user = threading.Thread(target=use)
        user.start()
        done = keys.rotate(own)
        stop.set()
        user.join()
        assert wrong == []
        assert done["unreadable"] == 0
        assert answers(other) == answers(own) == expected
        other.put([example("after it", memory_id="after")])
        assert versions(path) == {2: 302}


def test_a_rotation_that_is_killed_goes_on_where_it_stopped(path, key, tmp_path):
    encryption = Encryption(master=key)
    filled(path, encryption, 1500)
    with SqliteRecordStore(path, encryption=encryption) as store:
        expected = answers(store)
    environment = os.environ | {"RMEM_MASTER_KEY": key}
    done = 0
    for attempt in range(3):
        child = subprocess.Popen(
            [sys.executable, str(CHILD), str(path)], env=environment, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4):
            line = child.stdout.readline()
        child.kill()
        child.communicate()
        assert line.split()[0].isdigit(), "it was not killed half-way"
        held = versions(path)
        assert set(held) == {1, 2}, "both versions are in use"
        assert held[2] > done, "an earlier run's work was thrown away"
        done = held[2]
        with SqliteRecordStore(path, encryption=encryption) as store:
            assert ids(answers(store)) == ids(expected)
            store.put([example("between the runs", memory_id=f"late{attempt}")])
        assert [one.detail for one in examine(path) if not one.ok] == []
    with SqliteRecordStore(path, encryption=encryption) as store:
        finished = keys.rotate(store)
        assert finished["resumed"]
        assert finished["memories"] <= 1501 - done + 3
        assert ids(answers(store)) == ids(expected)
    assert versions(path) == {2: 1504}


def test_a_stale_segment_of_another_process_is_not_written_after_a_rotation(path, key, monkeypatch):
    encryption = Encryption(master=key)
    filled(path, encryption, 50)
    with SqliteRecordStore(path, encryption=encryption) as other:
        other.refresh()
        other.write(cache.clear)
        original = cache.next_span

        def late(*arguments):
            segment = original(*arguments)
            with SqliteRecordStore(path, encryption=encryption) as own:
                keys.rotate(own)
            return segment

        monkeypatch.setattr(cache, "next_span", late)
        other.write_segment(1)
        monkeypatch.undo()
    with SqliteRecordStore(path, encryption=encryption) as store:
        assert len(store.match("lighthouse", k=100)) == 51


def test_a_running_process_follows_a_key_file(path, tmp_path, key, monkeypatch):
    file = tmp_path / "master.key"
    file.write_text(key)
    filled(path, Encryption(master=file), 20)
    with Brain(path, encryption=Encryption(master=file)) as running:
        assert running.get("m1")
        fresh = new_master_key()
        (tmp_path / "new.key").write_text(fresh)
        monkeypatch.setenv("RMEM_MASTER_KEY", key)
        done = rotate_keys(path, Encryption(master=tmp_path / "new.key"), data=True)
        assert (done["rewrapped"], done["memories"]) == (4, 21)
        with pytest.raises(KeyWrongError):
            running.remember("not yet")
        with pytest.raises(KeyWrongError):
            running.recall("lighthouse")
        file.write_text(fresh)
        assert len(running.recall("lighthouse", k=100, mode="lexical")) == 21
        running.remember("lighthouse again", id="again")
        assert running.get("m1").text == "lighthouse number1 word1"
        assert len(running.recall("lighthouse", k=100, mode="lexical")) == 22


def test_rows_that_do_not_open_keep_their_keys(path, key):
    encryption = Encryption(master=key)
    filled(path, encryption, 10)
    with sqlite3.connect(path) as plain:
        plain.execute("UPDATE memories SET sealed = zeroblob(100) WHERE id = 'm3'")
    plain.close()
    with SqliteRecordStore(path, encryption=encryption) as store:
        done = keys.rotate(store)
        assert (done["memories"], done["unreadable"]) == (10, 1)
        assert len(store.match("lighthouse", k=100)) == 10
        assert store.vault.versions == (1, 2)
    assert versions(path) == {1: 1, 2: 10}


def test_a_store_without_keys_has_nothing_to_rotate(path, key, monkeypatch):
    with Brain(path) as brain:
        brain.remember("plain")
    monkeypatch.setenv("RMEM_MASTER_KEY", key)
    for arguments in ({"master": Encryption(master=new_master_key())}, {"data": True}):
        with pytest.raises(KeyMissingError, match="nothing in it is encrypted"):
            rotate_keys(path, **arguments)
    assert data_keys(path) == []
