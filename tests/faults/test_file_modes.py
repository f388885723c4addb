"""Every file that is made is its owner's alone, whatever the umask."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no modes of files")

WORK = """
import json, os, sys
from pathlib import Path
from rmem import Brain
from rmem.agents import AgentMemoryAPI, MemoryConfig
from rmem.kv import SqliteStore
from rmem.tables.client import Client
from rmem.server.app import create_app
from rmem.server.settings import ServerSettings
from rmem.admin import backup
from rmem import transfer


def work(folder):
    with Brain(folder / "deep" / "down" / "memories.db") as brain:
        memory = brain.remember("only for its owner")
        brain.forget(memory.memory_id)
        brain.remember("and this")
        transfer.export(brain, folder / "all.jsonl")
        backup(folder / "deep" / "down" / "memories.db", folder / "copies" / "copy.db")
        SqliteStore(folder / "values" / "values.db").add("k", "v")
        Client(path=folder / "tables" / "tables.db").ingest("t", {"a": [1]})
        create_app(ServerSettings(data=folder / "server"), on_first_token=lambda token: None)
        brain.remember("while it is open there are more files")
        modes = {str(path): path.stat().st_mode for path in folder.rglob("*")}
    return modes

told = {}
for umask in (0o000, 0o022, 0o077):
    os.umask(umask)
    told[oct(umask)] = work(Path(sys.argv[1]) / oct(umask))
print(json.dumps(told))
"""


def test_files_are_0600_and_folders_0700(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WORK, str(tmp_path)], capture_output=True, text=True, check=True, timeout=240
    )
    told = json.loads(done.stdout)
    assert len(told) == 3
    for umask, modes in told.items():
        assert {Path(name).suffix for name in modes} >= {".db", ".db-wal", ".jsonl", ".audit", ".key"}
        for name, mode in modes.items():
            assert stat.S_IMODE(mode) == (0o700 if stat.S_ISDIR(mode) else 0o600), (umask, name)
