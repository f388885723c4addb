"""Brain as a user meets it: remember, recall, get, update, forget; the default file; whose vectors these are."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest

from rmem import Brain, Filter, Hit, Memory, RecallSettings
from rmem.errors import ConfigError, EmbedderError, EmbedderMismatchError, InputError, StoreError
from rmem.recall.budget import estimate_tokens
from rmem.stores.memory import InMemoryRecordStore
from rmem.stores.sql.sqlite import SqliteRecordStore


@pytest.fixture(params=["file", "memory", "server"])
def brain(request, tmp_path):
    if request.param == "server":
        server = request.getfixturevalue("server")
        with Brain(server.url, token=server.first_token) as brain:
            yield brain
        return
    with Brain(tmp_path / "memories.db" if request.param == "file" else ":memory:") as brain:
        yield brain


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memories.db"


def _ids(hits):
    return [hit.memory.memory_id for hit in hits]


def in_another_process(path, code):
    """What `code` prints in a process of its own that has a `brain` on the same file."""
    script = f"from rmem import Brain\nbrain = Brain({str(path)!r})\n{code}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# Remembering


def test_what_is_remembered_is_recalled_at_once(brain):
    memory = brain.remember(
        "Fixed OOM: switched to pyarrow.dataset",
        agent="swe-01",
        type="error_fix",
        session="s-12",
        actor="swe-01",
        tags={"repo": "data-pipeline"},
        importance=0.8,
        when=datetime(2026, 5, 1, 12, 0),
        metadata={"file": "etl/transform.py", "lines": [10, 20]},
    )
    assert isinstance(memory, Memory)
    [hit] = brain.recall("ETL job killed by OOM", k=5)
    assert isinstance(hit, Hit)
    assert hit.memory == brain.get(memory.memory_id) or hit.memory.bookkeeping.retrieval_count == 0
    assert hit.text == "Fixed OOM: switched to pyarrow.dataset"
    assert hit.explanation is None
    assert (memory.agent_id, memory.type, memory.session, memory.actor) == ("swe-01", "error_fix", "s-12", "swe-01")
    assert memory.importance == 0.8
    assert memory.tags == {"repo": "data-pipeline"}
    assert memory.timestamp == datetime(2026, 5, 1, 12, 0).timestamp()
    assert memory.contents == {
        "text": "Fixed OOM: switched to pyarrow.dataset",
        "file": "etl/transform.py",
        "lines": [10, 20],
    }
    assert memory.embeddings.full_vector.shape == (256,)
    assert memory.memory_id == f"swe-01-0-{int(memory.timestamp)}"


def test_every_write_is_found_by_every_mode_right_after_it_returned(brain):
    for number in range(30):
        word = "q" + "".join("bcdfghjklm"[int(digit)] for digit in f"{number:02}")
        memory = brain.remember(f"the {word} arrived", session="s")
        assert _ids(brain.recall(word, k=1, mode="lexical")) == [memory.memory_id]
        assert memory.memory_id in _ids(brain.recall(f"the {word} arrived", k=3))
        assert memory.memory_id in _ids(brain.recall(f"the {word} arrived", k=30, mode="vector"))
        assert len(brain.memories()) == number + 1


def test_a_list_is_remembered_in_order_with_progress(brain):
    told = []
    kept = brain.remember_many(
        [{"text": f"item {number}", "agent": "a"} for number in range(25)],
        chunk=10,
        on_progress=lambda done, total: told.append((done, total)),
    )
    assert [memory.text for memory in kept] == [f"item {number}" for number in range(25)]
    assert [memory.step_number for memory in kept] == list(range(25))
    assert told == [(10, 25), (20, 25), (25, 25)]
    told.clear()
    brain.remember_many(({"text": f"more {n}"} for n in range(3)), chunk=2, on_progress=lambda *seen: told.append(seen))
    assert told == [(2, None), (3, None)]
    assert brain.remember_many([]) == []
    assert brain.remember_many(iter(())) == []


def test_garbage_is_collected_rarely_during_a_bulk_and_as_before_afterwards(path):
    usual, during = gc.get_threshold(), []

    def items(last):
        for number in range(3):
            during.append(gc.get_threshold()[0])
            yield {"text": f"note {number}"}
        yield last

    with Brain(path) as brain:
        brain.remember_many(items({"text": "the last one"}))
        assert gc.get_threshold() == usual
        with pytest.raises(InputError, match="text"):
            brain.remember_many(items({"text": 5}))
    assert gc.get_threshold() == usual
    assert len(during) == 6
    assert min(during) > usual[0]


def test_a_memory_with_the_same_id_is_replaced(brain):
    brain.remember("first version", id="note", tags={"v": 1})
    brain.remember("second version", id="note")
    assert len(brain.memories()) == 1
    assert brain.get("note").text == "second version"
    assert brain.get("note").tags == {}
    assert brain.recall("first", mode="lexical") == []


def test_times_may_be_given_in_many_ways(brain):
    moment = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
    for when in (
        moment,
        moment.timestamp(),
        int(moment.timestamp()),
        np.float64(moment.timestamp()),
        "2026-05-01T12:00:00+00:00",
        "2026-05-01 12:00:00Z",
        moment.astimezone(timezone(timedelta(hours=5))),
        moment.astimezone().replace(tzinfo=None),
    ):
        assert brain.remember("tick", when=when).timestamp == moment.timestamp()
    assert brain.remember("tick", when=date(2026, 5, 1)).timestamp == datetime(2026, 5, 1).timestamp()
    now = datetime.now().timestamp()
    assert abs(brain.remember("tick", when="two days ago").timestamp - (now - 2 * 86_400)) < 3700
    assert abs(brain.remember("tick").timestamp - now) < 60


def test_what_comes_back_may_be_changed_without_changing_the_store(brain):
    memory = brain.remember("original", metadata={"list": [1]})
    memory.contents["list"].append(2)
    memory.text = "changed"
    hit = brain.recall("original")[0]
    hit.memory.contents["list"].append(3)
    assert brain.get(memory.memory_id).contents == {"text": "original", "list": [1]}


def test_what_was_given_may_be_changed_afterwards(brain):
    given = {"list": [1]}
    vector = np.ones(256, np.float32)
    memory = brain.remember("original", metadata=given, vector=vector)
    given["list"].append(2)
    vector[:] = -1
    assert brain.get(memory.memory_id).contents["list"] == [1]
    assert brain.recall("x", mode="vector", vector=np.ones(256))[0].score == pytest.approx(1, abs=1e-5)


# One file, many users


def test_another_brain_and_another_process_see_every_write_at_once(path):
    with Brain(path) as one, Brain(path) as two:
        first = one.remember("the red lantern")
        assert _ids(two.recall("lantern", mode="lexical")) == [first.memory_id]
        second = two.remember("the blue lantern")
        assert set(_ids(one.recall("lantern", mode="lexical"))) == {first.memory_id, second.memory_id}
        seen = in_another_process(path, "print(len(brain.recall('lantern')), brain.remember('green lantern').id)")
        assert seen.startswith("2 ")
        assert one.get(seen.split()[1]).text == "green lantern"
        assert len(one.recall("lantern", mode="lexical")) == len(two.recall("lantern", mode="lexical")) == 3
        one.update(first.memory_id, text="the white candle")
        assert len(two.recall("lantern", mode="lexical")) == 2
        assert two.forget(second.memory_id)
        assert one.get(second.memory_id) is None
        assert one.forget(second.memory_id) is False


def test_the_default_file_is_in_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("RMEM_HOME", str(tmp_path / "deep" / "home"))
    with Brain() as brain:
        brain.remember("kept at home")
        assert Path(brain.address) == tmp_path / "deep" / "home" / "memories.db"
    assert (tmp_path / "deep" / "home" / "memories.db").is_file()
    with Brain() as brain:
        assert [memory.text for memory in brain.memories()] == ["kept at home"]
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("RMEM_HOME", str(tmp_path / "file"))
    with pytest.raises(ConfigError, match="RMEM_HOME"):
        Brain()


def test_addresses_name_the_same_file_in_all_their_forms(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    with Brain("plain.db") as brain:
        brain.remember("one file")
    for address in (
        "plain.db",
        Path("plain.db"),
        "./plain.db",
        tmp_path / "plain.db",
        "sqlite:///plain.db",
        f"sqlite:///{tmp_path}/plain.db",
        f"sqlite:////{str(tmp_path).lstrip('/')}/plain.db",
        "~/plain.db",
    ):
        with Brain(address) as brain:
            assert [memory.text for memory in brain.memories()] == ["one file"], address


@pytest.mark.parametrize("name", ["with space.db", "ünï 北京.db", "100%.db", "a?b#c.db", "no-extension", "quote'\".db"])
def test_files_may_have_any_name(tmp_path, name):
    with Brain(tmp_path / name) as brain:
        brain.remember("any name")
    assert (tmp_path / name).is_file()
    with Brain(tmp_path / name) as brain:
        assert len(brain.memories()) == 1
    assert sorted(one.name for one in tmp_path.iterdir()) == [name]


def test_brains_in_memory_share_nothing():
    with Brain(":memory:") as one, Brain(":memory:") as two:
        one.remember("mine")
        assert two.memories() == []


def test_a_brain_may_be_given_a_store(tmp_path):
    for store in (InMemoryRecordStore(), SqliteRecordStore(tmp_path / "mine.db", durability="normal")):
        with Brain(store) as brain:
            memory = brain.remember("kept in a store of my own")
            assert store.get(memory.memory_id).text == memory.text
            assert _ids(brain.recall("store of my own")) == [memory.memory_id]
            assert brain.stats()["memories"] == 1


def test_a_file_that_is_closed_is_one_file(path):
    with Brain(path) as brain:
        brain.remember("whole")
        assert repr(brain) == f"Brain({str(path)!r})"
    assert [one.name for one in path.parent.iterdir()] == ["memories.db"]


def test_an_error_inside_with_still_closes_the_store(path):
    def fail(brain):
        brain.remember("written")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), Brain(path) as brain:
        fail(brain)
    with pytest.raises(StoreError):
        brain.memories()
    with Brain(path) as again:
        assert len(again.memories()) == 1


# Changing and forgetting


def test_an_update_keeps_the_id_and_the_place_in_the_session(brain, neighbours):
    ids = [brain.remember(f"part {n}", session="s", when=1_700_000_000 + n).memory_id for n in range(4)]
    changed = brain.update(ids[1], text="a new middle", importance=0.9, tags={"edited": True}, type="decision")
    assert changed.memory_id == ids[1]
    assert (changed.text, changed.importance, changed.tags, changed.type) == (
        "a new middle",
        0.9,
        {"edited": "true"},
        "decision",
    )
    assert [memory.text for memory in brain.memories(order="oldest")] == ["part 0", "a new middle", "part 2", "part 3"]
    if not brain.address.startswith("http"):
        assert neighbours(brain.store, session="s")[ids[1]] == (ids[0], ids[2])
    assert _ids(brain.recall("new middle", k=1)) == [ids[1]]
    assert "part 1" not in [hit.text for hit in brain.recall("part", k=10)]


def test_an_update_changes_what_it_names_and_nothing_else(brain):
    before = brain.remember(
        "text", agent="a", type="t", session="s", actor="x", tags={"k": "v"}, importance=0.3, when=1_700_000_000,
        metadata={"m": 1}, step=7, position=(1, 2), place="forest", tier="im",
    )  # fmt: skip
    changes = {
        "text": "other",
        "type": "u",
        "session": "t",
        "actor": "y",
        "tags": {"l": "w"},
        "importance": 0.4,
        "when": 1_700_000_500,
        "metadata": {"n": 2},
        "step": 8,
        "position": (3, 4),
        "place": "harbour",
        "tier": "ltm",
    }
    read = {
        "type": lambda m: m.type,
        "importance": lambda m: m.importance,
        "when": lambda m: m.timestamp,
        "step": lambda m: m.step_number,
        "position": lambda m: tuple(m.position),
    }
    for name, value in changes.items():
        old, new = brain.get(before.memory_id), brain.update(before.memory_id, **{name: value})
        assert brain.get(before.memory_id) == new
        for other in changes:
            look = read.get(other, lambda m, other=other: getattr(m, other))
            assert look(new) == (value if other == name else look(old)), (name, other)
        if name != "text":
            assert np.array_equal(new.embeddings.full_vector, old.embeddings.full_vector), name
    assert new.agent_id == "a"
    assert (new.text, new.metadata) == ("other", {"n": 2})
    assert new.bookkeeping.creation_time == before.bookkeeping.creation_time


def test_a_changed_text_gets_its_own_vector(brain):
    memory = brain.remember("a tulip in spring")
    expected = brain.remember("an engine on fire").embeddings.full_vector
    changed = brain.update(memory.memory_id, text="an engine on fire")
    assert np.allclose(changed.embeddings.full_vector, expected)


def test_fields_can_be_emptied(brain):
    memory = brain.remember("x", session="s", actor="a", place="p", position=(1, 2), tags={"a": "b"}, metadata={"c": 1})
    for name in ("session", "actor", "place", "position"):
        assert getattr(brain.update(memory.memory_id, **{name: None}), name) is None
    assert brain.update(memory.memory_id, tags={}).tags == {}
    assert brain.update(memory.memory_id, metadata={}).contents == {"text": "x"}


def test_what_is_forgotten_is_gone_everywhere(brain):
    memory = brain.remember("a secret about the harbour")
    brain.remember("the harbour at night")
    assert brain.forget(memory.memory_id) is True
    assert brain.forget(memory.memory_id) is False
    assert brain.get(memory.memory_id) is None
    assert memory.memory_id not in _ids(brain.recall("secret harbour", k=10))
    assert len(brain.memories()) == 1
    assert brain.stats()["memories"] == 1


def test_a_forgotten_text_is_not_left_in_the_file(path):
    with Brain(path) as brain:
        memory = brain.remember("the password is xyzzy-plugh-4711")
        brain.forget(memory.memory_id)
    assert b"xyzzy-plugh" not in path.read_bytes()


# Recalling


def test_the_modes_look_at_what_they_say(brain):
    brain.remember("the automobile would not start", id="car")
    brain.remember("the parquet file would not load", id="parquet")
    brain.remember("tulips in the garden", id="tulips")
    assert _ids(brain.recall("parquet", mode="lexical")) == ["parquet"]
    assert _ids(brain.recall("car engine trouble", mode="lexical")) == []
    assert _ids(brain.recall("car engine trouble", k=1, mode="vector")) == ["car"]
    assert _ids(brain.recall("car engine trouble", k=1)) == ["car"]
    assert _ids(brain.recall("parquet", k=1)) == ["parquet"]
    assert len(brain.recall("parquet", mode="vector")) == 3


def test_a_rare_word_surfaces_although_its_vector_says_nothing(brain):
    """Candidates come from both sides."""
    brain.remember_many([{"text": f"we talked about the weather on day {n}"} for n in range(300)])
    memory = brain.remember("XKQ-4471")
    assert _ids(brain.recall("what about XKQ-4471", k=1)) == [memory.memory_id]


def test_filters_narrow_a_recall(brain):
    brain.remember("fix for the parser", agent="a", type="error_fix", tags={"repo": "x"}, metadata={"n": 1}, id="1")
    brain.remember("fix for the lexer", agent="b", type="error_fix", tags={"repo": "y"}, metadata={"n": 2}, id="2")
    brain.remember("note on the parser", agent="b", type="note", importance=0.9, place="lab", id="3")
    for where, expected in (
        ({"agent": "b"}, {"2", "3"}),
        ({"agent": ["a", "b"], "type": "error_fix"}, {"1", "2"}),
        ({"tags": {"repo": "x"}}, {"1"}),
        ({"attributes": {"n": 2}}, {"2"}),
        (Filter(min_importance=0.8), {"3"}),
        (Filter(place="lab"), {"3"}),
        ({}, {"1", "2", "3"}),
        (None, {"1", "2", "3"}),
    ):
        for mode in ("hybrid", "vector"):
            assert set(_ids(brain.recall("parser", where=where, mode=mode))) == expected
        assert {memory.memory_id for memory in brain.memories(where)} == expected


def test_a_token_budget_takes_shorter_hits_when_long_ones_do_not_fit(brain):
    brain.remember("parser bug: " + "very long explanation of the parser " * 60, id="long")
    brain.remember("parser bug fixed", id="short")
    brain.remember("parser bug seen again", id="other")
    assert len(brain.recall("parser bug", k=3)) == 3
    hits = brain.recall("parser bug", k=3, token_budget=20)
    assert set(_ids(hits)) == {"short", "other"}
    assert sum(estimate_tokens(hit.text) for hit in hits) <= 20
    assert brain.recall("parser bug", token_budget=1) == []


def test_an_explanation_tells_why(brain):
    for n in range(6):
        brain.remember(f"something else {n}", session="s")
    brain.remember("pyarrow ran out of memory", actor="Ann", session="s", importance=0.9)
    brain.remember("what did you try?", session="s")
    [hit, *_] = brain.recall("did Ann fix the memory of pyarrow", k=3, explain=True)
    explanation = hit.explanation
    assert hit.text == "pyarrow ran out of memory"
    assert explanation.mode == "hybrid"
    assert explanation.bm25 > 0
    assert -1 <= explanation.cosine <= 1
    assert {"words", "vectors", "neighbours", "session", "actor"} <= set(explanation.components)
    assert {match.word for match in explanation.words} >= {"memory", "pyarrow"}
    assert any("Ann" in note for note in explanation.notes)
    assert sum(explanation.components.values()) == pytest.approx(hit.score, abs=1e-3)
    told = json.loads(json.dumps(hit.to_dict()))
    assert told["score"] == hit.score
    assert told["explanation"]["components"].keys() == explanation.components.keys()
    assert "embeddings" not in told["memory"]
    assert str(explanation)


def test_neighbours_in_the_session_lend_score(brain):
    for n in range(20):
        brain.remember(f"unrelated chatter number {n}", session="other")
    brain.remember("tell me about the zeppelin", session="s", id="asked")
    brain.remember("it was built in 1900", session="s", id="answered")
    brain.remember("it was built in 1901", session="far away", id="elsewhere")
    ranked = _ids(brain.recall("zeppelin", k=30))
    assert ranked.index("answered") < ranked.index("elsewhere")
    alone = _ids(brain.recall("zeppelin", k=30, settings={"context": 0}))
    assert set(alone) == set(ranked)


def test_settings_change_the_ranking_for_a_brain_or_for_one_question(tmp_path):
    path = tmp_path / "memories.db"
    with Brain(path) as brain:
        brain.remember("my motorbike, truck and van broke down", id="near in meaning", importance=0.0)
        brain.remember("the automobile museum of modern art", id="same word", importance=1.0)
        brain.remember("tulips in the garden", id="neither")
        for settings, best in (
            ({"dense": 0, "similar": 0, "importance": 0}, "same word"),
            (RecallSettings(dense=1, similar=0, importance=0), "near in meaning"),
        ):
            question = "engine failure of an automobile on the road"
            assert _ids(brain.recall(question, settings=settings))[0] == best
    with Brain(path, settings={"importance": 100}) as brain:
        assert _ids(brain.recall("motorbike broke down"))[0] == "same word"
        assert _ids(brain.recall("motorbike broke down", settings={}))[0] == "near in meaning"


def test_recalling_counts_as_access(brain):
    memory = brain.remember("visited often")
    assert memory.bookkeeping.retrieval_count == 0
    for _ in range(3):
        brain.recall("visited often")
    found = brain.get(memory.memory_id)
    assert found.bookkeeping.retrieval_count == 3
    assert found.bookkeeping.last_access_time >= found.bookkeeping.creation_time
    assert found.importance == 0.5, "reading must not make a memory more important"


def test_an_empty_store_answers_every_question(brain):
    for mode in ("hybrid", "lexical", "vector"):
        assert brain.recall("anything at all", mode=mode) == []
    assert brain.memories() == []
    assert brain.get("nothing") is None
    assert brain.forget("nothing") is False
    assert brain.stats()["memories"] == 0


def test_a_store_emptied_by_forgetting_is_empty(brain):
    for n in range(5):
        brain.remember(f"thing {n}", id=str(n))
    for n in range(5):
        assert brain.forget(str(n))
    for mode in ("hybrid", "lexical", "vector"):
        assert brain.recall("thing", mode=mode) == []
    assert brain.stats()["memories"] == 0
    brain.remember("thing anew")
    assert len(brain.recall("thing")) == 1


def test_statistics_say_what_is_where(path):
    with Brain(path) as brain:
        brain.remember("one", agent="a", type="note", when=1_700_000_000)
        brain.remember("two", agent="b", session="s", when=1_800_000_000)
        stats = brain.stats()
        assert stats["address"] == str(path)
        assert stats["embedder"] == brain.embedder
        assert stats["memories"] == stats["vectors"] == 2
        assert stats["by_agent"] == {"a": 1, "b": 1}
        assert stats["by_type"] == {"note": 1, "memory": 1}
        assert stats["dimension"] == 256
        assert (stats["oldest"], stats["newest"]) == (1_700_000_000, 1_800_000_000)
        assert stats["sessions"] == 1
        assert stats["bytes"] > 0
        json.dumps(stats)


def test_memories_are_listed_in_order_and_in_pages(brain):
    for n in range(10):
        brain.remember(f"entry {n}", when=1_700_000_000 + n, importance=n / 10, step=20 - n)
    assert [memory.text[-1] for memory in brain.memories()] == list("9876543210")
    assert [memory.text[-1] for memory in brain.memories(order="oldest", limit=3, offset=2)] == list("234")
    assert [memory.text[-1] for memory in brain.memories(order="importance", limit=2)] == list("98")
    assert [memory.text[-1] for memory in brain.memories(order="step", limit=2)] == list("98")
    assert brain.memories(limit=0) == []
    assert len(brain.memories(limit=None)) == 10


# Embedders


def letters(texts):
    """A toy embedder: how often each of sixteen letters occurs."""
    return [[text.count(letter) + 0.01 for letter in "aeioutnsrhldcmpb"] for text in texts]


def other_letters(texts):
    return [[text.count(letter) + 0.01 for letter in "zyxwvutsrqponmlk"] for text in texts]


def test_a_function_is_an_embedder(path):
    with Brain(path, embedder=letters) as brain:
        brain.remember("aaaa", id="a")
        brain.remember("oooo", id="o")
        assert _ids(brain.recall("a a a", k=1, mode="vector")) == ["a"]
        assert brain.stats()["dimension"] == 16
        assert "letters" in brain.embedder
    with Brain(path, embedder=letters) as brain:
        assert _ids(brain.recall("o o", k=1, mode="vector")) == ["o"]


def test_a_store_does_not_take_vectors_of_another_embedder(path):
    with Brain(path, embedder=letters) as brain:
        brain.remember("x")
    for embedder in (other_letters, "static", "none"):
        with pytest.raises(EmbedderMismatchError, match="letters") as refused:
            Brain(path, embedder=embedder)
        assert "reindex" in str(refused.value)
    with pytest.raises(EmbedderError, match="letters"), Brain(path) as brain:
        brain.remember("a store cannot load a function by its name")
    with Brain(path) as brain:
        assert brain.get("default-0-" + str(int(brain.memories()[0].timestamp))).text == "x"
        assert _ids(brain.recall("x", mode="lexical")), "words need no embedder"


def test_two_embedders_that_meet_on_an_empty_store_do_not_both_write(path):
    with Brain(path, embedder=letters) as one, Brain(path, embedder=other_letters) as two:
        one.remember("first come, first served")
        with pytest.raises(EmbedderMismatchError, match="letters"):
            two.remember("too late")
        with pytest.raises(EmbedderMismatchError):
            two.recall("first", mode="vector")
        assert len(one.memories()) == 1


def test_a_store_remembers_its_embedder(path):
    with Brain(path, embedder="static") as brain:
        brain.remember("x")
        name = brain.embedder
    with Brain(path) as brain:
        assert brain.embedder == name
        assert brain.recall("x", mode="vector")


def test_vectors_may_be_supplied_without_an_embedder(path):
    rng = np.random.default_rng(1)
    vectors = rng.standard_normal((50, 12)).astype(np.float32)
    with Brain(path, embedder="none") as brain:
        for n, vector in enumerate(vectors):
            brain.remember(f"thing {n}", id=str(n), vector=(vector * (n + 1)).tolist())
        brain.remember("a thing without a vector", id="bare")
        assert brain.embedder == "none"
        hits = brain.recall("thing", k=5, mode="vector", vector=vectors[7])
        assert hits[0].memory.memory_id == "7"
        assert hits[0].score == pytest.approx(1, abs=1e-5)
        assert "bare" not in _ids(brain.recall("thing", k=100, mode="vector", vector=vectors[7]))
        assert brain.recall("thing", mode="vector") == [], "there is nothing to compare with"
        assert len(brain.recall("thing", k=100)) == 51
        assert "7" in _ids(brain.recall("thing", k=3, vector=vectors[7]))
    with Brain(path) as brain:
        assert brain.embedder == "none"
        assert _ids(brain.recall("x", k=1, mode="vector", vector=vectors[9])) == ["9"]


def test_an_embedder_that_fails_writes_nothing(path):
    def moody(texts):
        if any("bad" in text for text in texts):
            raise RuntimeError("out of luck")
        return letters(texts)

    with Brain(path, embedder=moody) as brain:
        brain.remember("good")
        with pytest.raises(EmbedderError, match="out of luck"):
            brain.remember("bad")
        with pytest.raises(EmbedderError):
            brain.remember_many([{"text": "good too"}, {"text": "bad"}])
        with pytest.raises(EmbedderError):
            brain.update(brain.memories()[0].memory_id, text="bad")
        with pytest.raises(EmbedderError):
            brain.recall("bad")
        assert [memory.text for memory in brain.memories()] == ["good"]
        assert len(brain.recall("bad luck good", mode="lexical")) == 1


def test_a_memory_of_symbols_only_has_no_vector_and_is_still_kept(brain):
    memory = brain.remember("!!! ??? …")
    assert brain.get(memory.memory_id).text == "!!! ??? …"
    brain.remember("words beside it")
    assert len(brain.recall("words", k=5)) == 2


def test_a_misspelt_text_of_many_is_named():
    with Brain(":memory:") as brain:
        with pytest.raises(InputError, match=r"item 1: a memory to remember has no field 'txt'; did you mean 'text'\?"):
            brain.remember_many([{"text": "one"}, {"txt": "two"}])
        assert brain.count() == 0
