"""`rmem migrate`: everything of a file arrives in PostgreSQL, also after a kill, and nowhere else."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rmem import Brain
from rmem.crypto.encryption import Encryption, new_master_key
from rmem.errors import ConfigError, StoreError
from rmem.postgres_migration import migrate

KILLED = """
import os, sys
from rmem import postgres_migration
postgres_migration._BATCH = 20
kill = lambda done, total: done >= 60 and os.kill(os.getpid(), 9)
postgres_migration.migrate(sys.argv[1], sys.argv[2], on_progress=kill)
"""

KEY = new_master_key()


@pytest.fixture
def file(tmp_path):
    """A file with all that a file can hold."""
    path = tmp_path / "old.db"
    with Brain(path, encryption=False) as brain:
        made = brain.remember_many(
            [
                {"text": f"memory {n} of the river", "session": f"s{n // 5}", "actor": "ann", "tags": {"n": str(n)}}
                for n in range(120)
            ]
        )
        ids = [memory.memory_id for memory in made]
        brain.store.move(ids[:10], "im")
        brain.store.move(ids[10:15], "ltm")
        brain.pin(ids[20])
        brain.forget(ids[30])
        brain.store.set_aside([ids[31]], until=4e9, who="test", reason="test")
        hits = brain.recall("river 7", k=3)
        brain.feedback(hits[0], useful=True)
        brain.store.set_meta("colour", "blue")
    with Brain(path, encryption=Encryption(master=KEY)) as brain:
        brain.remember("a secret of the river", id="secret")
    return path


def told(brain):
    store = brain.store
    return {
        "memories": [m.to_dict() for m in store.select(order="oldest") if m.memory_id != "secret"],
        "aside": [(one.memory.to_dict(), one.until) for one in store.aside()],
        "audit": store.audit(),
        "feedback": store.feedback(),
        "notes": [store.get_meta(key) for key in ("colour", "embedder", "dimension", "embedder_spec")],
        "hits": [(h.memory.memory_id, round(h.score, 3)) for h in brain.recall("memory of the river 7", touch=False)],
        "broken": store.broken_audit(),
    }


def test_everything_arrives_also_after_a_kill(file, empty_postgres_url):
    assert migrate(file, empty_postgres_url, dry_run=True)["memories"] == 119
    done = subprocess.run([sys.executable, "-c", KILLED, str(file), empty_postgres_url], capture_output=True)
    assert done.returncode == -9
    with pytest.raises(ConfigError, match="not empty"):
        migrate(_other(file), empty_postgres_url)
    result = migrate(f"sqlite:///{file}", empty_postgres_url)
    assert result["resumed"]
    assert 0 < result["copied"] < 119
    with Brain(file, encryption=False) as old, Brain(empty_postgres_url, encryption=False) as new:
        assert told(old) == told(new)
        assert new.store.unreadable() == old.store.unreadable() == 1
    with Brain(empty_postgres_url, encryption=Encryption(master=KEY)) as new:
        assert new.remember("written afterwards").memory_id in new.store
    with pytest.raises(ConfigError, match="not empty"):
        migrate(file, empty_postgres_url)


def _other(file):
    path = file.with_name("other.db")
    with Brain(path) as brain:
        brain.remember("somebody else's")
    return path


def test_what_cannot_be_migrated_is_told(tmp_path, empty_postgres_url):
    with pytest.raises(StoreError, match="no store file"):
        migrate(tmp_path / "missing.db", empty_postgres_url)
    with pytest.raises(ConfigError, match="target"):
        migrate(tmp_path / "missing.db", "elsewhere.db")
    with pytest.raises(ConfigError, match="source"):
        migrate(empty_postgres_url, empty_postgres_url)


def test_the_command_says_what_it_did(file, empty_postgres_url):
    command = [sys.executable, "-m", "rmem", "migrate", str(file), empty_postgres_url]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Copied 119 of 119 memories; both sides are the same\n"
