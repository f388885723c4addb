"""What `remember` was given is read under the same names, and answers print, show and convert well."""

from __future__ import annotations

import asyncio
import builtins
import json
import sys
from datetime import UTC, datetime

import numpy as np
import pytest

import rmem
from rmem import AsyncBrain, Brain, Memory
from rmem.errors import ConfigError, InputError, UnknownFieldError
from rmem.memory_builder import WRITABLE

GIVEN = {
    "text": "Fixed the OOM: switched to pyarrow.dataset",
    "agent": "swe-01",
    "type": "error_fix",
    "session": "pay-17",
    "actor": "ada",
    "tags": {"repo": "etl"},
    "importance": 0.8,
    "when": datetime(2026, 3, 2, 14, 30, tzinfo=UTC),
    "metadata": {"ticket": 4711, "files": ["transform.py"]},
    "step": 7,
    "position": (1.0, 2.0),
    "place": "mill",
    "id": "fix-1",
    "tier": "ltm",
}


@pytest.fixture(params=["file", "server"])
def brain(request, tmp_path):
    """A Brain on a file, and the same on a real server."""
    if request.param == "file":
        made = Brain(tmp_path / "memories.db")
    else:
        server = request.getfixturevalue("server")
        made = Brain(server.url, token=server.first_token)
    with made as brain:
        yield brain


@pytest.fixture
def many(brain):
    brain.remember_many(
        [{"text": f"note {n} about parquet " + "words " * 80, "agent": f"a{n % 2}", "type": "note"} for n in range(30)]
    )
    return brain


def test_every_argument_of_remember_is_an_attribute_of_the_memory(brain):
    vector = np.ones(256, np.float32) / 16
    given = {**GIVEN, "vector": vector}
    assert set(given) == set(WRITABLE)
    brain.remember(**given)
    memory = brain.get("fix-1")
    for name in GIVEN:
        assert getattr(memory, name) == given[name], name
    assert np.allclose(memory.vector, vector, atol=1e-3)
    hit = brain.recall("pyarrow", k=1)[0]
    assert (hit.id, hit.text, hit.memory.agent) == ("fix-1", GIVEN["text"], "swe-01")
    assert hit.memory.metadata == GIVEN["metadata"]


def test_metadata_is_the_callers_and_changing_it_changes_no_memory(brain):
    memory = brain.remember("text", metadata={"a": 1})
    memory.metadata["b"] = 2
    assert memory.metadata == {"a": 1}
    assert brain.update(memory, metadata={"c": 3}).metadata == {"c": 3}
    assert brain.remember("no data").metadata == {}
    document = memory.to_dict()
    assert document["metadata"]["memory_type"] == "memory"  # the documented structure
    assert Memory.from_dict(document).metadata == {"a": 1}


def test_recall_and_list_take_agent_and_type(many):
    many.remember("a fix about parquet", agent="a0", type="fix")
    assert {hit.memory.agent for hit in many.recall("parquet", k=40, agent="a1")} == {"a1"}
    assert [hit.memory.type for hit in many.recall("parquet", agent=["a0", "a1"], type="fix")] == ["fix"]
    assert {memory.agent for memory in many.memories(agent="a0", limit=None)} == {"a0"}
    assert many.memories({"agent": "a1"}, type="fix") == []
    with pytest.raises(InputError, match="agent is given twice"):
        many.recall("parquet", where={"agent": "a0"}, agent="a1")


def test_forget_takes_a_memory_a_hit_an_id_or_a_filter(many):
    first, second, *_ = many.memories(limit=2)
    assert many.forget(first) is True
    assert many.forget(first) is False
    assert many.forget(many.recall("parquet", k=1)[0]) is True
    would = many.forget(where={"agent": "a1"}, dry_run=True)
    assert would
    assert set(many.forget(where={"agent": "a1"})) == set(would)
    assert many.memories(agent="a1") == []
    assert many.forget(where={"agent": "a1"}) == []
    with pytest.raises(InputError, match="where must name at least one field"):
        many.forget(where={})
    with pytest.raises(UnknownFieldError, match="agnt"):
        many.forget(where={"agnt": "a0"})
    with pytest.raises(InputError, match="exactly one of memory_id, where and subject"):
        many.forget(second, where={"agent": "a0"})
    with pytest.raises(InputError, match="exactly one of"):
        many.forget()


def test_get_many_keeps_the_order_and_tells_what_is_missing(brain):
    brain.remember_many([{"text": "one", "id": "1"}, {"text": "two", "id": "2"}])
    found = brain.get_many(["2", "none", "1"])
    assert [memory and memory.text for memory in found] == ["two", None, "one"]
    assert brain.get_many([]) == []
    with pytest.raises(InputError, match="memory_ids must be a list of ids"):
        brain.get_many("1")


def test_the_async_face_does_the_same(tmp_path):
    async def story():
        async with AsyncBrain(tmp_path / "memories.db") as brain:
            memory = await brain.remember("one", agent="a", metadata={"x": 1})
            await brain.remember("two", agent="b")
            assert [hit.id for hit in await brain.recall("one", agent="a")] == [memory.id]
            assert [one.metadata for one in await brain.get_many([memory.id])] == [{"x": 1}]
            assert len(await brain.forget(where={"agent": "b"})) == 1
            assert await brain.forget(memory) is True

    asyncio.run(story())


def test_reprs_fit_a_screen(many):
    many.remember("a " * 10_000, id="long-" + "x" * 400, agent="y" * 400)
    memories, hits = many.memories(limit=None), many.recall("parquet a", k=31)
    for one in (memories[0], hits[0]):
        assert len(repr(one)) < 320
        assert "\n" not in repr(one)
    for rows in (memories, hits):
        lines = repr(rows).splitlines()
        assert len(lines) <= 11
        assert max(map(len, lines)) <= 140
        assert lines[-1] == "    … and 21 more"
    assert memories[0].id[:40] in repr(memories[0])
    assert repr(many.recall("parquet", agent="nobody")) == "[]"


def test_reprs_cannot_steer_a_terminal(brain):
    brain.remember("red \x1b[31m \u202eevil\nsecond line", id="one")
    for shown in (repr(brain.get("one")), repr(brain.memories()), repr(brain.recall("red"))):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert "second line" in shown


def test_notebooks_show_escaped_tables(many):
    many.remember("<script>alert('x')</script> & more", id="<b>", agent="<i>", metadata={"<u>": "<s>"})
    memory, hits = many.get("<b>"), many.recall("script alert", k=3)
    for shown in (memory._repr_html_(), hits._repr_html_(), hits[0]._repr_html_(), many.memories()._repr_html_()):
        assert shown.startswith("<table>")
        assert "&lt;script&gt;" in shown
        assert not any(tag in shown for tag in ("<script", "<b>", "<i>", "<u>", "<s>"))
    assert "parquet" in many.recall("parquet", k=20)._repr_html_()
    assert "no rows" in many.recall("parquet", agent="nobody")._repr_html_()
    assert len(many.memories()._repr_html_()) < 50_000


def test_hits_and_memories_become_arrow_tables(brain):
    brain.remember(**GIVEN)
    table = brain.recall("pyarrow").to_arrow()
    row = table.to_pylist()[0]
    assert row["rank"] == 1
    assert row["score"] > 0
    assert 0 < row["relevance"] <= 1
    for name in ("id", "text", "agent", "type", "session", "importance", "when", "step", "tier", "place"):
        assert row[name] == GIVEN[name]
    assert dict(row["tags"]) == GIVEN["tags"]
    assert json.loads(row["metadata"]) == GIVEN["metadata"]
    assert row["position"] == [1.0, 2.0]
    assert brain.memories().to_arrow().column_names == table.column_names[3:]
    nothing = brain.recall("pyarrow", agent="nobody").to_arrow()
    assert (nothing.num_rows, nothing.schema) == (0, table.schema)


def test_hits_and_memories_become_data_frames(brain):
    pytest.importorskip("pandas")
    brain.remember(**GIVEN)
    frame = brain.recall("pyarrow").to_pandas()
    assert frame.loc[0, "agent"] == "swe-01"
    assert frame.loc[0, "when"] == GIVEN["when"]
    assert frame.loc[0, "metadata"] == GIVEN["metadata"]
    assert list(brain.memories().to_pandas().columns) == list(frame.columns)[3:]
    nothing = brain.recall("pyarrow", agent="nobody").to_pandas()
    assert (len(nothing), list(nothing.columns)) == (0, list(frame.columns))


def test_a_missing_library_is_one_sentence_with_the_command(brain, monkeypatch):
    brain.remember("text")
    for library, call, extra in (("pandas", "to_pandas", "pandas"), ("pyarrow", "to_arrow", "parquet")):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(ConfigError, match=rf"^{call}\(\) needs {library}; .*pip install 'rmem\[{extra}\]'$"):
            getattr(brain.memories(), call)()


def test_a_star_import_replaces_no_builtin():
    names: dict[str, object] = {}
    exec("from rmem import *", names)
    del names["__builtins__"]
    assert not set(names) & set(dir(builtins))
    assert callable(rmem.open)
    assert "open" in dir(rmem)
