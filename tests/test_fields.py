"""The field table: a copy of the package gets one more field of a memory, by one line and the migrations for its
column, and every store, file and way in knows it. Stores from before open."""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rmem
from rmem import Brain
from rmem.memory_builder import WRITABLE
from rmem.models import BOOKKEEPING, FIELDS
from rmem.stores import migrations
from rmem.stores.redis import RedisRecordStore
from rmem.testing.contract import example
from rmem.testing.redis import RedisServer

CHILD = Path(__file__).with_name("new_field_child.py")
NEW = """\
    mood: str | None = field(default=None, metadata=stored(checks.name, argument="mood", column="mood", slot=13))
"""
MIGRATION = """    "{new}": "ALTER TABLE memories ADD COLUMN mood TEXT",
}}
REVISIONS = """
STEP = """def add_mood(raw: Raw) -> None:
    _run(raw, "ALTER TABLE memories ADD COLUMN mood text")


STEPS = ("""


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, (path, old)
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture(scope="module")
def changed(tmp_path_factory) -> Path:
    """Where a copy of the package lies whose memories have a mood."""
    home = tmp_path_factory.mktemp("changed")
    package = home / "rmem"
    shutil.copytree(Path(rmem.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    models = package / "models.py"
    last_line = re.search(r"    place: str \| None = field\(.*?\)\)?\n", models.read_text(encoding="utf-8"))
    assert last_line is not None
    replace(models, last_line[0], last_line[0] + NEW)

    last, stores = migrations.HEAD, package / "stores"
    new = f"m{int(last[1:]) + 1:03d}"
    replace(stores / "migrations.py", "}\nREVISIONS = ", MIGRATION.format(new=new))
    schema = stores / "sql" / "postgres_schema.py"
    replace(schema, "STEPS = (", STEP)
    replace(schema, ")  # only ever appended to", "    add_mood,\n)")
    return home


def told_by(home: Path, *arguments: str) -> dict[str, object]:
    """What the child says about a store that it opens with the changed package."""
    environment = {**os.environ, "PYTHONPATH": str(home)}
    done = subprocess.run(
        [sys.executable, str(CHILD), *arguments], capture_output=True, text=True, env=environment, cwd=home
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


EXPECTED = {"old": None, "new": "calm", "updated": "glad", "emptied": None, "jsonl": "calm", "parquet": "calm"}


def test_a_new_field_is_known_to_files_and_sqlite(changed, tmp_path):
    path = tmp_path / "old.db"
    with Brain(path) as brain:
        brain.remember("written before", id="old", place="forest", position=(1, 2))
    assert told_by(changed, "brain", str(path)) == EXPECTED


def test_a_new_field_is_known_to_postgres(changed, postgres_url):
    with Brain(postgres_url) as brain:
        brain.remember("written before", id="old", place="forest", position=(1, 2))
    assert told_by(changed, "brain", postgres_url) == EXPECTED


def test_a_new_field_is_known_to_redis(changed):
    with RedisServer() as server:
        connection = server.connection()
        with RedisRecordStore(**connection) as store:
            store.put([example("written before", memory_id="old", place="forest", position=(1.0, 2.0))])
        told = told_by(changed, "redis", json.dumps(connection))
        with RedisRecordStore(**connection) as store:  # a process with the old package reads what the new one wrote
            assert [memory.place for memory in store.get_many(["old", "new"])] == ["forest", "harbour"]
    assert told == {"old": None, "new": "calm", "moved": "calm"}


def test_columns_slots_and_arguments_are_given_once():
    declared = [one.stored for one in (*FIELDS, *BOOKKEEPING)]
    for facts in ("column", "slot", "argument"):
        given = [getattr(one, facts) for one in declared if getattr(one, facts) is not None]
        assert len(given) == len(set(given)), facts
    slots = sorted(one.slot for one in declared if one.slot is not None)
    assert slots == [*range(12), *range(13, len(slots) + 1)]  # 12 is that of the words


def test_remember_has_an_argument_for_every_field_that_it_may_take():
    assert set(inspect.signature(Brain.remember).parameters) - {"self"} == set(WRITABLE)


KNOWING = {
    "models.py": "the declarations",
    "filters.py": "what can be asked for",
    "index/columns.py": "the format of the index",
    "stores/indexed.py": "from a memory to a row of the index",
    "agents/types.py": "the documented structure, for type checkers",
    "server/documents.py": "the documented structure, for OpenAPI",
    "team/exchange.py": "what a team's server is sent",
    "display.py": "the columns of tables",
    "foreign_files.py": "what the columns of others' files may be called",
    "cli/show.py": "what `rmem show` shows, in words",
    "testing/contract.py": "memories of the suite",
}
"""The modules that name every field of a memory or of its metadata, and why."""


def test_no_other_module_lists_the_fields_of_a_memory():
    package = Path(rmem.__file__).parent
    metadata = [rf"\b{one.name}\b" for one in BOOKKEEPING]
    own = [rf"[\"'.]{name}\b" for name in ("session", "actor", "place", "position", "tier", "importance")]
    found = set()
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if path.name != "migrations.py" and any(
            all(re.search(one, text) for one in names) for names in (metadata, own)
        ):
            found.add(path.relative_to(package).as_posix())
    assert found <= set(KNOWING)
