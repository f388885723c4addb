"""Every argument with every kind of wrong value: which error, which field, what it says, and nothing written."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from rmem import Brain, Filter, Memory, RecallSettings, transfer
from rmem.agents import AgentMemoryAPI
from rmem.checks import MAX_NAME, MAX_TEXT
from rmem.errors import ConfigError, InputError, NotFoundError, RemanenceError, UnknownFieldError, VectorError

NAN, INF = float("nan"), float("inf")
HUGE = 10**400
LOOP: list[object] = []
LOOP.append(LOOP)
DEEP: dict[str, object] = {}
for _ in range(100):
    DEEP = {"deeper": DEEP}


class Unprintable:
    def __repr__(self):
        raise RuntimeError("no repr")


# (value, what the message says about it; None: the value itself, as repr shows it)
NOT_TEXTS = [(5, None), (True, None), (b"bytes", None), (["a list"], None), ({"a": 1}, None), (1.5, None)]
NOT_TEXTS += [("", "''"), ("  \n\t\u00a0", r"\n\t"), ("nul \x00 inside", "NUL"), ("lone \ud800", "surrogate")]
NOT_TEXTS += [(Unprintable(), "Unprintable")]
TEXTS = [*NOT_TEXTS, (None, None), ("x" * (MAX_TEXT + 1), f"{MAX_TEXT + 1:,}"), ("word " * 2_000_000, "10,000,000")]
NAMES = [*NOT_TEXTS, ("a\nb", None), ("tab\there", None), ("delete \x7f", None), ("next line \x85", None)]
NAMES += [("line \u2028 separator", None), ("x" * (MAX_NAME + 1), str(MAX_NAME + 1))]
ELSEWHERE = ["../x", "../../x", "a/../b", "..", ".", "./x", "/etc/passwd", "\\x", "..\\x", "a/.."]
PATHS = [(path, None) for path in ELSEWHERE]
LONG_ID = ("x" * (MAX_NAME + 65), str(MAX_NAME + 65))  # an id holds a name and more
IDS = [*NAMES[:-1], LONG_ID]
NUMBERS = [(True, None), (False, None), ("0.5", None), ([0.5], None), (NAN, "nan"), (INF, "inf"), (-INF, "inf")]
NUMBERS += [(HUGE, "1000000"), (1j, None), (Decimal("0.5"), None), (np.True_, "True"), (np.array([1.0, 2.0]), "array")]
SHARES = [*NUMBERS, (-0.1, None), (1.1, None), (2, None)]
WHOLES = [
    (True, None),
    (1.0, None),
    ("1", None),
    (NAN, "nan"),
    ([1], None),
    (-1, None),
    (HUGE, "1000000"),
    (2**63, None),
]
TIMES = [(True, None), (NAN, "nan"), (INF, "inf"), (1e20, None), (HUGE, "1000000"), ([], None), (b"now", None)]
TIMES += [("", "''"), ("no time at all", None), ("2026-02-31", None), ("x" * 300, "300"), (timedelta(days=1), None)]
TIMES += [
    (datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-23))), "9999"),
    (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=23))), "1, 1, 1"),
]
FAR_TIMES = [("9999-06-01", "9998"), (253_370_764_800.0, None), ("0001-06-01", "year 2"), (-62_130_000_000.0, "year 2")]
OBJECTS = [(5, None), ("text", None), ([], None), ([("a", 1)], None), (True, None), (0, None), ("", "''")]
OBJECTS += [({1: 2}, "1"), ({"a": object()}, "object"), ({"a": NAN}, "nan"), ({"a": {"b": [INF]}}, "inf")]
OBJECTS += [({"a": {1, 2}}, "{1, 2}"), ({"a": b"x"}, "b'x'"), ({"a": "\ud800"}, "surrogate"), ({"a\x00": 1}, "NUL")]
OBJECTS += [({"a": 10**5000}, "bits"), ({"a": LOOP}, "64 levels"), (DEEP, "64 levels"), ({"a": 1j}, "1j")]
METADATA = [*OBJECTS, ({"text": "mine"}, "'text'")]
TAGS = [(5, None), ("text", None), ([], None), (True, None), (0, None), ({1: "a"}, "1"), ({"": "a"}, "''")]
TAGS += [({"a": None}, "None"), ({"a": []}, "[]"), ({"a": ""}, "''"), ({"a": NAN}, "nan"), ({"a": "x" * 600}, "600")]
TAGS += [({"a": 10**5000}, "bits"), ({"a": "\x00"}, "NUL"), ({"a\n": "b"}, "a")]
POINTS = [(5, None), ("ab", None), ((1,), None), ((1, 2, 3, 4), None), ((NAN, 1), "nan"), (("a", 1), "'a'")]
POINTS += [((True, 1), "True"), ((1, None), "None"), ({1, 2}, None), ((HUGE, 1), "1000000")]
VECTORS = [("abc", None), (5, "shape"), ([], "0"), ([1.0] * 7, "7"), ([1.0] * 4097, "4097"), ([NAN] * 8, "NaN")]
VECTORS += [([INF, *[1.0] * 7], "infinity"), ([0.0] * 8, "zeros"), (["1"] * 8, None), ([True] * 8, None)]
VECTORS += [([[1.0] * 8], "shape"), ([None] * 8, None), ([1e39] * 8, "infinity"), ({"a": 1}, None), ([1j] * 8, None)]
VECTORS += [([1.0, [2.0]], "list of numbers"), (b"12345678", None)]
TIERS = [("hot", None), ("", "''"), (None, None), (5, None), (["stm"], None), ("STM", None)]

ARGUMENTS = {
    "text": TEXTS,
    "agent": [*NAMES, *PATHS, (None, None)],
    "type": [*NAMES, (None, None)],
    "session": NAMES,
    "actor": NAMES,
    "place": NAMES,
    "id": [*IDS, *PATHS],
    "tags": TAGS,
    "importance": [*SHARES, (None, None)],
    "when": [*TIMES, *FAR_TIMES],
    "metadata": METADATA,
    "step": WHOLES,
    "position": POINTS,
    "vector": VECTORS,
    "tier": TIERS,
}


def cases(table):
    """Every row of a table as (argument, value, says)."""
    return [
        pytest.param(name, value, says, id=f"{name}-{type(value).__name__}-{number}")
        for name, rows in table.items()
        for number, (value, says) in enumerate(rows)
    ]


def _shown(value, says):
    return repr(value)[:70] if says is None else says


def _check(refused, field, value, says):
    """The error is ours, names the field, and shows what came."""
    error = refused.value
    assert isinstance(error, ValueError)
    assert error.field is not None
    assert error.field.startswith(field), error
    assert field in str(error)
    assert _shown(value, says) in str(error), str(error)
    assert len(str(error)) < 900


@pytest.fixture
def brain(tmp_path):
    with Brain(tmp_path / "memories.db", embedder="none", durability="normal") as brain:
        brain.remember("already there", id="m1", vector=[1.0] * 8, session="s", tags={"k": "v"})
        brain.before = [memory.to_dict() for memory in brain.memories(limit=None)]
        yield brain
        assert [memory.to_dict() for memory in brain.memories(limit=None)] == brain.before, "something was written"


@pytest.fixture(scope="module")
def shared():
    """For calls that only read, or must not write; checked at the end."""
    with Brain(":memory:", embedder="none") as brain:
        brain.remember("already there", id="m1", vector=[1.0] * 8, session="s", tags={"k": "v"})
        before = brain.memories()[0].to_dict()
        yield brain
        after = [memory.to_dict() for memory in brain.memories()]
        before["metadata"] = after[0]["metadata"]
        assert after == [before], "something was written"


@pytest.mark.parametrize(("name", "value", "says"), cases(ARGUMENTS))
def test_remember_refuses(shared, name, value, says):
    expected = VectorError if name == "vector" else InputError
    with pytest.raises(expected) as refused:
        shared.remember(**{"text": "fine", name: value})
    _check(refused, name, value, says)
    assert len(shared.store) == 1


@pytest.mark.parametrize(
    ("name", "value", "says"),
    cases({name: rows for name, rows in ARGUMENTS.items() if name not in ("id", "agent")}),
)
def test_update_refuses(shared, name, value, says):
    with pytest.raises(InputError) as refused:
        shared.update("m1", **{name: value})
    _check(refused, name, value, says)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_one_bad_item_at_the_end_of_a_list_keeps_the_whole_list_out(brain, name):
    good = [{"text": f"fine {number}", "vector": [1.0] * 8} for number in range(5)]
    for value, says in ARGUMENTS[name]:
        for chunk in (1, 2, 1000):
            with pytest.raises(InputError, match=r"^item 5: ") as refused:
                brain.remember_many([*good, {"text": "fine", name: value}], chunk=chunk)
            _check(refused, name, value, says)
    assert len(brain.store) == 1


@pytest.mark.parametrize("chunk", [1, 1000])
def test_a_vector_of_another_dimension_keeps_the_whole_list_out(brain, chunk):
    items = [{"text": "a", "vector": [1.0] * 8}, {"text": "b", "vector": [1.0] * 9}]
    with pytest.raises(VectorError, match="8 numbers, got 9"):
        brain.remember_many(items, chunk=chunk)
    with pytest.raises(VectorError, match="8 numbers, got 16"):
        brain.remember("c", vector=[1.0] * 16)
    with pytest.raises(VectorError, match="8 numbers, got 16"):
        brain.update("m1", vector=[1.0] * 16)
    with pytest.raises(VectorError, match="8 numbers, got 16"):
        brain.recall("c", vector=[1.0] * 16)


def test_vectors_that_do_not_fit_the_embedder_are_refused():
    with Brain(":memory:") as brain:
        with pytest.raises(VectorError, match="256 numbers, got 8"):
            brain.remember("a", vector=[1.0] * 8)
        with pytest.raises(VectorError, match="256 numbers, got 8"):
            brain.remember_many([{"text": "a"}, {"text": "b", "vector": [1.0] * 8}], chunk=1)
        assert len(brain.store) == 0


@pytest.mark.parametrize(
    ("item", "field"),
    [
        ({"text": "x", "colour": "red"}, "colour"),
        ({"text": "x", "Agent": "a"}, "Agent"),
        ({"text": "x", "agent_id": "a"}, "agent_id"),
        ({"text": "x", 5: "a"}, "5"),
        ({"text": "x", None: "a"}, "None"),
        ({"text": "x", "": "a"}, ""),
        ({"text": "x", "timestamp": 5}, "timestamp"),
    ],
)
def test_unknown_fields_are_refused_and_a_near_name_is_offered(brain, item, field):
    with pytest.raises(UnknownFieldError, match="has no field") as refused:
        brain.remember_many([{"text": "fine"}, item])
    assert refused.value.field == field
    assert "item 1" in str(refused.value)


def test_a_misspelt_field_gets_a_hint(brain):
    with pytest.raises(UnknownFieldError, match="did you mean 'importance'"):
        brain.remember_many([{"text": "x", "importence": 1}])
    with pytest.raises(UnknownFieldError, match="did you mean 'session'"):
        brain.recall("x", where={"sesion": "s"})
    with pytest.raises(UnknownFieldError, match="did you mean 'importance'"):
        brain.update("m1", importanc=0.3)
    with pytest.raises(UnknownFieldError, match="did you mean 'dense'"):
        brain.recall("x", settings={"dens": 0.3})


@pytest.mark.parametrize(
    "items", [None, 5, "text", b"bytes", {"text": "one mapping"}, [None], ["text"], [5], [["text"]]]
)
def test_a_list_of_memories_must_be_one(brain, items):
    with pytest.raises(InputError, match=r"items|item 0"):
        brain.remember_many(items)


def test_a_generator_that_goes_bad_keeps_the_chunks_before_and_says_where():
    with Brain(":memory:", embedder="none") as brain:
        items = ({"text": "fine" if number != 5 else " "} for number in range(10))
        with pytest.raises(InputError, match=r"^item 5: text must not be empty"):
            brain.remember_many(items, chunk=2)
        assert len(brain.store) == 4


@pytest.mark.parametrize(
    ("chunk", "on_progress"), [(0, None), (True, None), (1.5, None), ("2", None), (1, 5), (1, "x")]
)
def test_how_a_list_is_written_must_make_sense(brain, chunk, on_progress):
    with pytest.raises(InputError, match=r"chunk|on_progress"):
        brain.remember_many([{"text": "fine"}], chunk=chunk, on_progress=on_progress)


RECALL = {
    "question": [case for case in TEXTS if case[0] != "word " * 2_000_000],
    "k": [*WHOLES, (0, None), (None, None)],
    "where": [(5, None), ("agent", None), (["agent"], None), (True, None)],
    "since": TIMES,
    "until": TIMES,
    "mode": [("fuzzy", None), ("", "''"), (None, None), (5, None), (["hybrid"], None), (np.array(["a", "b"]), "array")],
    "token_budget": [*WHOLES, (0, None)],
    "explain": [(1, None), (0, None), ("yes", None), (None, None), ([], None)],
    "vector": VECTORS,
    "settings": [(5, None), ("dense", None), ([], None), (True, None)],
    "now": [(5, None), ("2026-05-01", None), (date(2026, 5, 1), None), (True, None)],
}


@pytest.mark.parametrize(
    ("name", "value", "says"),
    cases(RECALL),
)
def test_recall_refuses(shared, name, value, says):
    with pytest.raises(InputError) as refused:
        shared.recall(**{"question": "fine", name: value})
    _check(refused, name, value, says)


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "vector"])
def test_recall_refuses_in_every_mode_and_on_an_empty_store(mode):
    with Brain(":memory:") as brain:
        for bad in ({"k": 0}, {"explain": 1}, {"where": {"colour": 1}}, {"token_budget": True}, {"now": 5}):
            with pytest.raises(InputError):
                brain.recall("fine", mode=mode, **bad)
        assert brain.recall("fine", mode=mode) == []


def test_since_after_until_is_refused_wherever_it_is_said(shared):
    for call in (
        lambda: shared.recall("x", since="2026-05-02", until="2026-05-01"),
        lambda: shared.recall("x", where={"since": 10, "until": 5}),
        lambda: shared.recall("x", where={"since": 10}, until=5),
        lambda: shared.recall("x", where=Filter(since=10), until=5),
        lambda: shared.memories({"since": 10, "until": 5}),
        lambda: Filter(since=date(2026, 5, 2), until=date(2026, 5, 1)),
    ):
        with pytest.raises(InputError, match="since must not be after until") as refused:
            call()
        assert refused.value.field == "since"


def test_a_bound_given_twice_is_refused(shared):
    for where in ({"since": 5}, Filter(since=5)):
        with pytest.raises(InputError, match="since is given twice"):
            shared.recall("x", where=where, since=5)


ANY_OF_NAMES = [case for case in NAMES if not isinstance(case[0], list)]
FILTER = {
    "agent": [
        *ANY_OF_NAMES,
        ([], None),
        ((), None),
        ([5], "5"),
        (["a", ""], "''"),
        ({"a": 1}, None),
        (np.array(["a", "b"]), "array"),
    ],
    "type": [*ANY_OF_NAMES, ([], None)],
    "session": [*ANY_OF_NAMES, ([], None), ([None], "None")],
    "actor": [*ANY_OF_NAMES, ([], None), ([None], "None")],
    "place": [*ANY_OF_NAMES, ([], None)],
    "tier": [("hot", None), (["stm", "hot"], "'hot'"), (5, None), ([], None), (True, None)],
    "tags": TAGS,
    "attributes": [
        *OBJECTS[:7],
        ({"a": [1]}, "[1]"),
        ({"a": {"b": 1}}, "{'b': 1}"),
        ({"a": NAN}, "nan"),
        ({1: 1}, "1"),
    ],
    "min_step": WHOLES,
    "max_step": WHOLES,
    "since": TIMES,
    "until": [*TIMES, (date.max, "9999")],
    "min_importance": SHARES,
    "max_importance": SHARES,
    "box": [(5, None), ("ab", None), ((1, 2), "1"), (((0, 0),), None), (((0, 0), (1, 1), (2, 2)), None)],
    "near": POINTS,
    "radius": [*NUMBERS, (-1, None)],
}
WITH = {"near": {"radius": 1}, "radius": {"near": (0, 0)}}


@pytest.mark.parametrize(
    ("name", "value", "says"),
    cases(FILTER),
)
def test_filter_refuses(name, value, says):
    for make in (
        lambda: Filter(**{**WITH.get(name, {}), name: value}),
        lambda: Filter.of({**WITH.get(name, {}), name: value}),
    ):
        with pytest.raises(InputError) as refused:
            make()
        _check(refused, name, value, says)


@pytest.mark.parametrize(
    ("where", "field"),
    [
        ({"min_step": 5, "max_step": 4}, "min_step"),
        ({"min_importance": 0.5, "max_importance": 0.4}, "min_importance"),
        ({"near": (0, 0)}, "radius"),
        ({"near": np.array([0, 0])}, "radius"),
        ({"radius": 1}, "near"),
        ({"box": ((0, 0), (1, 1, 1))}, "box"),
        ({"box": ((2, 0), (1, 1))}, "box"),
        ({"box": ((0, NAN), (1, 1))}, "box"),
        ({"box": ((0, 0), "ab")}, "box"),
    ],
)
def test_filters_that_contradict_themselves_are_refused(where, field):
    with pytest.raises(InputError, match=field) as refused:
        Filter.of(where)
    assert refused.value.field.startswith(field)


@pytest.mark.parametrize(
    "where", [{"colour": "red"}, {"agents": "a"}, {"agent_id": "a"}, {5: "a"}, {"agent": "a", "x": 1}]
)
def test_a_filter_never_drops_a_field_it_does_not_know(shared, where):
    for call in (
        lambda: Filter.of(where),
        lambda: shared.recall("x", where=where),
        lambda: shared.memories(where),
    ):
        with pytest.raises(UnknownFieldError, match="has no field"):
            call()


@pytest.mark.parametrize("name", [name for name in FILTER if name not in ("near", "radius")])
def test_a_filter_by_nothing_is_not_a_filter_by_everything(shared, name):
    """`where={"agent": None}`, from a variable that was never set, must not show everybody's memories."""
    with pytest.raises(InputError, match=name) as refused:
        shared.recall("x", where={name: None})
    assert refused.value.field == name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[
            (name, value)
            for name in ("similar", "context", "substance", "time", "importance")
            for value in (-1, NAN, True, "1", None)
        ],
        *[("facts", value) for value in (-0.1, 1.1, NAN, True, "1", None)],
        *[("dense", value) for value in (-0.1, 1.1, NAN, True, "1")],
        *[("time_words", value) for value in ("on", "off", "", None, True, 5)],
    ],
)
def test_settings_refuse(shared, name, value):
    for call in (
        lambda: RecallSettings(**{name: value}),
        lambda: RecallSettings.of({name: value}),
        lambda: shared.recall("x", settings={name: value}),
        lambda: Brain(":memory:", settings={name: value}),
    ):
        with pytest.raises(InputError) as refused:
            call()
        _check(refused, name, value, None)


@pytest.mark.parametrize("memory_id", [*[value for value, _ in IDS], None])
def test_an_id_must_be_one(shared, memory_id):
    for call in (
        lambda: shared.get(memory_id),
        lambda: shared.forget(memory_id),
        lambda: shared.update(memory_id, text="x"),
    ):
        with pytest.raises(InputError, match="memory_id"):
            call()


def test_updates_that_change_nothing_or_nobody_are_refused(shared):
    with pytest.raises(InputError, match="at least one field"):
        shared.update("m1")
    with pytest.raises(NotFoundError, match="no memory with id 'nobody'") as refused:
        shared.update("nobody", text="x")
    assert isinstance(refused.value, KeyError)
    assert refused.value.memory_id == "nobody"
    for fixed in ("id", "agent", "memory_id", "colour"):
        with pytest.raises((UnknownFieldError, TypeError), match=fixed):
            shared.update("m1", **{fixed: "other"})


@pytest.mark.parametrize("address", [5, True, b"path", ["a"], 1.5, "", "  ", "nul\x00inside", "\ud800"])
def test_an_address_must_be_one(tmp_path, monkeypatch, address):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="address") as refused:
        Brain(address)
    assert refused.value.field == "address"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("address", ["mysql://host/db", "sqlite://", "sqlite:///", "ftp://example.org", "file:///x.db"])
def test_an_address_of_an_unknown_kind_is_refused(tmp_path, monkeypatch, address):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=re.escape(address.split("://")[0])):
        Brain(address)
    assert list(tmp_path.iterdir()) == []


def test_how_a_brain_is_opened_must_make_sense(tmp_path):
    with pytest.raises(InputError, match="durability") as refused:
        Brain(tmp_path / "m.db", durability="sometimes")
    assert refused.value.field == "durability"
    for embedder in (5, "", "unknown", ["static"], True, "onnx:", object()):
        with pytest.raises(RemanenceError, match="embedder"):
            Brain(tmp_path / "m.db", embedder=embedder)
    for settings in (5, "dense", {"unknown": 1}):
        with pytest.raises(InputError, match="settings"):
            Brain(tmp_path / "m.db", settings=settings)


@pytest.mark.parametrize("limit", [-1, True, 1.5, "10"])
def test_pages_must_make_sense(shared, limit):
    with pytest.raises(InputError, match="limit"):
        shared.memories(limit=limit)
    with pytest.raises(InputError, match="offset"):
        shared.memories(offset=limit)
    with pytest.raises(InputError, match="order"):
        shared.memories(order=limit)


RECORD = {
    "memory_id": "m",
    "agent_id": "a",
    "step_number": 0,
    "timestamp": 5.0,
    "contents": {"text": "x"},
}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"memory_id": ""}, "memory_id"),
        ({"agent_id": None}, "agent_id"),
        ({"step_number": True}, "step_number"),
        ({"step_number": -1}, "step_number"),
        ({"timestamp": NAN}, "timestamp"),
        ({"contents": []}, "contents"),
        ({"contents": {}}, "text"),
        ({"contents": {"text": 5}}, "text"),
        ({"text": " "}, "text"),
        ({"text": 5}, "text"),
        ({"metadata": {"importance_score": 2}}, "importance_score"),
        ({"metadata": {"colour": 2}}, "colour"),
        ({"metadata": {"retrieval_count": -1}}, "retrieval_count"),
        ({"metadata": {"retrieval_count": 2**60}}, "retrieval_count"),
        ({"metadata": 5}, "metadata"),
        ({"metadata": []}, "metadata"),
        ({"embeddings": {"full_vector": [1.0]}}, "embeddings.full_vector"),
        ({"embeddings": {"big_vector": [1.0] * 8}}, "big_vector"),
        ({"embeddings": 5}, "embeddings"),
        ({"tags": {"a": []}}, "tags"),
        ({"tags": 5}, "tags"),
        ({"tier": "hot"}, "tier"),
        ({"position": (1,)}, "position"),
        ({"session": ""}, "session"),
    ],
)
def test_a_record_read_from_outside_is_checked_field_by_field(change, field):
    with pytest.raises(InputError) as refused:
        Memory.from_dict({**RECORD, **change})
    assert refused.value.field.startswith(field)
    assert field in str(refused.value)


@pytest.mark.parametrize("field", RECORD)
def test_a_record_without_a_field_is_refused_by_its_name(field):
    with pytest.raises(InputError, match=field) as refused:
        Memory.from_dict({key: value for key, value in RECORD.items() if key != field})
    assert refused.value.field == field


def test_a_record_must_be_a_mapping():
    for data in (None, 5, "x", [], [("memory_id", "m")]):
        with pytest.raises(InputError, match="memory"):
            Memory.from_dict(data)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("memory_id", path) for path in ELSEWHERE),
        ("agent_id", "../../x"),
        ("agent_id", "next line \x85"),
        ("timestamp", 253_370_764_800.0),
        ("timestamp", -62_130_000_000.0),
        ("creation_time", 253_370_764_800.0),
    ],
)
def test_an_import_refuses_what_remember_refuses(brain, tmp_path, field, value):
    record = brain.memories()[0].to_dict()
    record |= {"memory_id": "m2"}
    (record["metadata"] if field == "creation_time" else record)[field] = value
    (tmp_path / "in.jsonl").write_text(json.dumps(record))
    with pytest.raises(InputError, match=rf"line 1: {field} must"):
        transfer.import_(brain, tmp_path / "in.jsonl")


@pytest.mark.parametrize("kind", ["state", "action", "interaction"])
@pytest.mark.parametrize("agent", ["../../x", "next line \x85"])
def test_an_agents_name_does_not_make_a_path_of_its_ids(kind, agent):
    with AgentMemoryAPI() as api:
        with pytest.raises(InputError, match="agent_id must be"):
            getattr(api, f"store_agent_{kind}")(agent, {"a": 1}, 1)
        assert api.list_agents() == []


def test_memories_of_earlier_versions_beyond_the_bounds_can_be_read_and_forgotten():
    with Brain(":memory:", embedder="none") as brain:
        old = brain.remember("of an earlier version")
        old.memory_id, old.timestamp = "../x", -62_130_000_000.0
        brain.put([old])
        assert brain.get("../x").text == "of an earlier version"
        assert brain.update("../x", text="changed").text == "changed"
        assert brain.forget("../x")


def test_what_is_allowed_at_the_edges_is_allowed():
    """The other side of every bound above, so that the checks are not simply too strict."""
    with Brain(":memory:", embedder="none") as brain:
        kept = brain.remember(
            "x" * 100_000,
            agent="a" * MAX_NAME,
            importance=1,
            when=datetime(1970, 1, 1, tzinfo=UTC),
            step=0,
            metadata={"n": np.float32(0.5), "t": datetime(2026, 1, 1), "list": (1, 2), "big": 2**70, "none": None},
            tags={"n": 5, "b": True, "f": 0.5},
            position=np.array([1.0, 2.0]),
            vector=np.arange(1, 4097),
        )
        assert kept.contents["n"] == 0.5
        assert kept.contents["list"] == [1, 2]
        assert kept.contents["big"] == 2**70
        assert kept.tags == {"n": "5", "b": "true", "f": "0.5"}
        assert kept.timestamp == 0.0
        assert kept.importance == 1.0
        assert brain.get(kept.memory_id) == kept
        assert brain.remember("importance", importance=np.float64(0)).importance == 0.0
        assert brain.remember("step", step=np.int64(7)).step_number == 7
        assert len(brain.recall("x", k=10**9)) == 3
    assert Brain(Path(":memory:")).address == ":memory:"
    assert Filter(since=5, until=5).since == 5
    assert Filter(agent={"a"}).agent == ("a",)


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1.0, 1e18, 1e30])
def test_vectors_of_any_length_point_where_they_point(scale):
    """Very small and very large numbers are scaled, not lost."""
    with Brain(":memory:", embedder="none") as brain:
        kept = brain.remember("x", vector=[scale, *[2 * scale] * 8])
        assert np.linalg.norm(kept.embeddings.full_vector) == pytest.approx(1, abs=1e-5)
        assert kept.embeddings.full_vector[1] == pytest.approx(2 / np.sqrt(33), abs=1e-5)
        [hit] = brain.recall("x", mode="vector", vector=[5 * scale, *[10 * scale] * 8])
        assert hit.score == pytest.approx(1, abs=1e-5)


def test_the_drawn_tree_of_errors_is_the_real_one():
    from rmem import errors

    drawn = re.findall(r"\b([A-Z]\w+Error)\b", errors.__doc__.split("\n\n")[1])
    real = [name for name in vars(errors) if name.endswith("Error")]
    assert sorted(set(drawn) - {"ValueError", "KeyError"}) == sorted(real)
    for name in real:
        assert issubclass(getattr(errors, name), RemanenceError)
        assert getattr(errors, name).__doc__
