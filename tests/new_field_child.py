"""Run with a copy of the package whose memories have a `mood`: uses a store that the unchanged package made, and prints
what it read."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from rmem import Brain, transfer
from rmem.models import Memory
from rmem.stores.redis import RedisRecordStore
from rmem.testing.contract import example


def mood(memory: Memory | None) -> str | None:
    assert memory is not None
    return memory.mood


def with_brain(address: str) -> dict[str, str | None]:
    told: dict[str, str | None] = {}
    with Brain(address) as brain, tempfile.TemporaryDirectory() as folder:
        old = brain.get("old")
        assert old is not None
        assert (old.place, old.position) == ("forest", (1.0, 2.0))
        told["old"] = mood(old)
        brain.remember_many([{"text": "written with a mood", "id": "new", "mood": "calm"}])
        told["new"] = mood(brain.get("new"))
        for ending in ("jsonl", "parquet"):
            file = Path(folder) / f"memories.{ending}"
            transfer.export(brain, file)
            with Brain(":memory:") as other:
                transfer.import_(other, file)
                told[ending] = mood(other.get("new"))
        told["updated"] = mood(brain.update("new", mood="glad"))
        told["emptied"] = mood(brain.update("new", mood=None))
        assert brain.recall("written with a mood")[0].memory.memory_id == "new"
    return told


def with_redis(connection: dict[str, object]) -> dict[str, str | None]:
    with RedisRecordStore(**connection) as store:
        told = {"old": mood(store.get("old"))}
        store.put([example("written with a mood", memory_id="new", place="harbour", mood="calm")])
        told["new"] = mood(store.get("new"))
        store.move(["new"], "im")
        told["moved"] = mood(store.get("new"))
    return told


kind, where = sys.argv[1:]
print(json.dumps(with_brain(where) if kind == "brain" else with_redis(json.loads(where))))
