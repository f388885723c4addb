"""The tests that every store must pass, ours and yours. Subclass a contract, provide the `store` fixture, run pytest:

    from rmem.testing import RecordStoreContract

    class TestMyStore(RecordStoreContract):
        @pytest.fixture
        def store(self, tmp_path):
            with MyStore(tmp_path / "file") as store:
                yield store

        @pytest.fixture
        def reopen(self, tmp_path):  # where a store outlives its process
            return lambda: MyStore(tmp_path / "file")

MemoryStoreContract (`values.py`) tests the four methods only; override `value` and `text_of` if the store does not
store texts. RecordStoreContract tests everything that recall needs, and the capabilities that the store offers
(`capabilities.py`); `pytest -rs` names those that were not tested.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ..errors import InputError, VectorError
from ..feedback import Feedback
from ..filters import Filter
from ..index.analyser import analyse, question_words
from ..index.bm25 import B, saturation
from ..models import Bookkeeping, Embeddings, Memory
from ..stores.base import Edit, Edited, RecordStore
from ..stores.indexed import date_words
from .capabilities import CapabilityContract
from .values import MemoryStoreContract as MemoryStoreContract


def example(text: str, **fields: Any) -> Memory:
    """Build a memory for tests. Metadata fields and `vector` may be given by name."""
    metadata = {key: fields.pop(key) for key in ("importance_score", "memory_type") if key in fields}
    vector = fields.pop("vector", None)
    contents = {"text": text, **fields.pop("contents", {})}
    return Memory(
        memory_id=fields.pop("memory_id", ""),
        agent_id=fields.pop("agent_id", "agent-1"),
        step_number=fields.pop("step_number", -1),
        timestamp=fields.pop("timestamp", 1_700_000_000.0),
        contents=contents,
        bookkeeping=Bookkeeping(creation_time=1_700_000_000.0, last_access_time=1_700_000_000.0, **metadata),
        embeddings=Embeddings(full_vector=vector),
        text=text,
        **fields,
    )


def clustered_vectors(count: int, dimension: int, seed: int = 0) -> npt.NDArray[np.float32]:
    """Draw unit vectors in clusters, like embeddings of real texts."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((max(1, count // 50), dimension))
    vectors = centres[rng.integers(0, len(centres), count)] + 0.6 * rng.standard_normal((count, dimension))
    unit: npt.NDArray[np.float32] = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit


def plain_bm25(texts: Mapping[str, tuple[str, tuple[str, ...]]], query: str) -> dict[str, float]:
    """Compute BM25 as in a textbook, over {id: (text, date words)}: the reference for `match`."""
    documents = {}
    for key, (text, dated) in texts.items():
        found = analyse(text, dated)
        documents[key] = dict(zip(found.hashes.tolist(), found.counts.tolist(), strict=True))
    lengths = {key: sum(terms.values()) for key, terms in documents.items()}
    average = sum(lengths.values()) / len(lengths)
    k1 = saturation(average)
    holding = Counter(term for terms in documents.values() for term in terms)
    scores: dict[str, float] = {}
    for key, terms in documents.items():
        total = 0.0
        for word in question_words(query):
            best = 0.0
            for term in word.hashes:
                count = terms.get(term, 0)
                if count:
                    idf = math.log(1 + (len(documents) - holding[term] + 0.5) / (holding[term] + 0.5))
                    best = max(best, idf * count * (k1 + 1) / (count + k1 * (1 - B + B * lengths[key] / average)))
            total += best
        if total > 0:
            scores[key] = total
    return scores


WORDS = "river stone forest wolf lantern bridge winter copper signal engine harbour violet".split()


def _library(count: int = 120) -> list[Memory]:
    """Build memories that differ in every field that can be filtered by."""
    rng = np.random.default_rng(7)
    vectors = clustered_vectors(count, 16, seed=3)
    made = []
    for number in range(count):
        words = " ".join(rng.choice(WORDS, size=int(rng.integers(2, 9))))
        made.append(
            example(
                f"{words} item{number}",
                agent_id=f"agent-{number % 3}",
                session=None if number % 5 == 0 else f"s-{number % 4}",
                actor=(None, "alice", "bob")[number % 3],
                tags={"repo": f"r{number % 4}", "kind": "odd" if number % 2 else "even"},
                contents={"count": number % 6, "deep": {"flag": number % 2 == 0}, "list": [number % 3, "x"]},
                step_number=number,
                timestamp=1_700_000_000.0 + 3600 * number,
                importance_score=(number % 11) / 10,
                memory_type=("state", "action", "interaction")[number % 3],
                tier=("stm", "im", "ltm")[number % 3],
                position=None if number % 4 == 3 else (float(number % 10), float(number // 10), 1.5)[: 2 + number % 2],
                place=("forest", "harbour", None)[number % 3],
                vector=None if number % 17 == 16 else vectors[number],
            )
        )
    return made


FILTERS = (
    {"agent": "agent-1"},
    {"agent": ["agent-0", "agent-2"]},
    {"type": "action"},
    {"session": "s-1"},
    {"session": ["s-1", "s-2"], "agent": "agent-2"},
    {"actor": "alice"},
    {"tags": {"repo": "r1"}},
    {"tags": {"repo": "r1", "kind": "odd"}},
    {"tags": {"repo": ["r1", "r2", "r99"], "kind": "odd"}},
    {"attributes": {"count": 3}},
    {"attributes": {"count": 3.0}},
    {"attributes": {"deep.flag": True}},
    {"attributes": {"deep.flag": 1}},
    {"attributes": {"list": 2}},
    {"attributes": {"list": "x", "count": 0}},
    {"min_step": 20, "max_step": 40},
    {"since": 1_700_000_000 + 3600 * 30, "until": 1_700_000_000 + 3600 * 50},
    {"min_importance": 0.7},
    {"min_importance": 0.3, "max_importance": 0.7},
    {"tier": ["im", "ltm"]},
    {"place": "forest"},
    {"place": ["forest", "harbour"]},
    {"box": ((2, 2), (6, 7))},
    {"box": ((2, 2, 1), (6, 7, 2))},
    {"near": (5, 5), "radius": 2.5},
    {"agent": "agent-1", "type": "action", "tags": {"kind": "odd"}, "min_step": 10, "place": "harbour"},
    {"agent": "nobody"},
    {"tags": {"repo": "r99"}},
)


class RecordStoreContract(MemoryStoreContract, CapabilityContract):
    """Tests of everything that recall needs of a store."""

    def value(self, text: str) -> Any:
        return example(text)

    def text_of(self, value: Any) -> str:
        return str(value.text)

    @pytest.fixture
    def library(self, store: RecordStore) -> list[Memory]:
        return store.put(_library())

    def test_every_kind_of_write_is_there_when_it_is_opened_again(
        self, store: RecordStore, reopen: Callable[[], RecordStore]
    ) -> None:
        vector = np.eye(16, dtype=np.float32)[3]
        kept = example("a stone in the river", memory_id="kept", tags={"k": "v"}, place="valley", vector=vector)
        store.put([kept, *(example(f"a wolf of the {name}", memory_id=name) for name in ("edited", "moved", "gone"))])
        store.edit("edited", lambda memory: Edited(example("a lantern on the bridge", memory_id="edited")))
        store.move(["moved"], "ltm")
        store.touch(["kept"], 1_800_000_000.0)
        store.set_meta("note", "noted")
        store.forget_many(["gone"])
        ids = ["kept", "edited", "moved", "gone"]
        before = [None if memory is None else memory.to_dict() for memory in store.get_many(ids)]
        store.close()
        with reopen() as again:
            assert [None if memory is None else memory.to_dict() for memory in again.get_many(ids)] == before
            assert before[0] is not None
            assert before[0]["metadata"]["retrieval_count"] == 1
            assert again.get_meta("note") == "noted"
            assert [memory.memory_id for memory, _ in again.match("lantern")] == ["edited"]
            assert [memory.memory_id for memory in again.select(Filter(tier=("ltm",)))] == ["moved"]
            assert [memory.memory_id for memory, _ in again.nearest(vector, k=1)] == ["kept"]
            assert again.put([example("a later one")])[0].memory_id not in ids

    def test_keeps_every_field(self, store: RecordStore) -> None:
        memory = example(
            "all fields ünïcödé 😀",
            memory_id="my-id",
            agent_id="a",
            step_number=7,
            timestamp=1_700_000_123.25,
            contents={"nested": {"list": [1, 2.5, None, True, "x"]}, "empty": {}},
            importance_score=0.85,
            memory_type="decision",
            session="s",
            actor="me",
            tags={"k": "v", "ключ": "значение"},
            tier="im",
            position=(1.5, -2.0, 3.25),
            place="forest",
            vector=clustered_vectors(1, 24)[0],
        )
        kept = store.put([memory])[0]
        assert kept == store.get("my-id")
        found = store.get("my-id")
        assert found is not None
        assert found.to_dict() == memory.to_dict()

    def test_contents_need_not_hold_the_text(self, store: RecordStore) -> None:
        state = example("health 0.5", memory_id="m")
        state.contents = {"health": 0.5}
        store.put([state])
        found = store.get("m")
        assert found is not None
        assert found.contents == {"health": 0.5}
        assert found.text == "health 0.5"

    def test_ids_follow_the_document_and_are_unique(self, store: RecordStore) -> None:
        kept = store.put(
            [example("one", step_number=5), example("two", step_number=5), example("three", step_number=5)]
        )
        assert kept[0].memory_id == "agent-1-5-1700000000"
        assert len({memory.memory_id for memory in kept}) == 3
        again = store.put([example("four", step_number=5)])
        assert len({memory.memory_id for memory in [*kept, *again]}) == 4
        store.forget(kept[1].memory_id)
        more = store.put([example("five", step_number=5)])
        assert more[0].memory_id not in {memory.memory_id for memory in [kept[0], kept[2], *again]}

    def test_steps_count_up_for_each_agent(self, store: RecordStore) -> None:
        kept = store.put([example("a", agent_id="x"), example("b", agent_id="x"), example("c", agent_id="y")])
        assert [memory.step_number for memory in kept] == [0, 1, 0]
        store.put([example("d", agent_id="x", step_number=41)])
        assert store.put([example("e", agent_id="x")])[0].step_number == 42

    def test_what_is_handed_out_is_a_copy(self, store: RecordStore) -> None:
        kept = store.put([example("original", memory_id="m", contents={"list": [1]})])[0]
        kept.contents["list"].append(2)
        found = store.get("m")
        assert found is not None
        found.contents["list"].append(3)
        again = store.get("m")
        assert again is not None
        assert again.contents["list"] == [1]

    def test_counts_iterates_and_contains(self, store: RecordStore, library: list[Memory]) -> None:
        assert len(store) == len(library) == store.count()
        assert list(store) == [memory.memory_id for memory in library]
        assert library[3].memory_id in store
        assert "nothing" not in store

    def test_filters_mean_what_they_say(self, store: RecordStore, library: list[Memory]) -> None:
        for where in FILTERS:
            wanted = Filter.of(where)
            expected = [memory.memory_id for memory in library if wanted.matches(memory)]
            assert [memory.memory_id for memory in store.select(wanted)] == expected, where
            assert store.count(wanted) == len(expected), where

    def test_of_several_who_erase_a_memory_at_once_one_is_told_it_was_there(
        self, store: RecordStore, library: list[Memory]
    ) -> None:
        keys = [memory.memory_id for memory in library]
        erased: Counter[str] = Counter()

        def erase(_: int) -> list[str]:
            return [key for key in keys if store.erase([key], who="test", reason="test")]

        with ThreadPoolExecutor(4) as threads:
            for gone in threads.map(erase, range(4)):
                erased.update(gone)
        assert erased == Counter(keys)

    def test_filters_hold_after_forgetting(self, store: RecordStore, library: list[Memory]) -> None:
        gone = {memory.memory_id for memory in library[::3]}
        assert store.forget_many([*gone, "never-there"]) == len(gone)
        for where in FILTERS:
            wanted = Filter.of(where)
            expected = [m.memory_id for m in library if m.memory_id not in gone and wanted.matches(m)]
            assert [memory.memory_id for memory in store.select(wanted)] == expected

    def test_orders_and_pages(self, store: RecordStore, library: list[Memory]) -> None:
        ids = [memory.memory_id for memory in library]
        assert [m.memory_id for m in store.select(order="newest", limit=5)] == ids[:-6:-1]
        assert [m.memory_id for m in store.select(order="oldest", limit=5, offset=10)] == ids[10:15]
        importance = [m.importance for m in store.select(order="importance", limit=30)]
        assert importance == sorted((m.importance for m in library), reverse=True)[:30]
        assert [m.step_number for m in store.select(order="step")] == list(range(len(library)))
        assert store.select(offset=10_000) == []
        assert store.select(limit=0) == []

    def test_bm25_is_the_textbook_one(self, store: RecordStore, library: list[Memory]) -> None:
        for where in ({}, {"agent": "agent-1"}, {"tags": {"kind": "odd"}}):
            wanted = Filter.of(where)
            texts = {m.memory_id: (m.text, date_words(m.timestamp)) for m in library if wanted.matches(m)}
            for query in ("wolf", "copper bridge", "the river and winter signal", "item17 lantern lantern", "November"):
                expected = plain_bm25(texts, query)
                found = store.match(query, wanted, k=1000)
                assert {m.memory_id for m, _ in found} == set(expected)
                for memory, score in found:
                    assert score == pytest.approx(expected[memory.memory_id], rel=1e-4)

    def test_nearest_is_the_exact_order(self, store: RecordStore, library: list[Memory]) -> None:
        query = clustered_vectors(1, 16, seed=9)[0]
        for where in ({}, {"agent": "agent-1"}, {"tags": {"kind": "odd"}}):
            wanted = Filter.of(where)
            exact = {
                m.memory_id: float(m.embeddings.full_vector @ query)
                for m in library
                if m.embeddings.full_vector is not None and wanted.matches(m)
            }
            best = sorted(exact, key=lambda key: -exact[key])[:10]
            found = store.nearest(query, wanted, k=10)
            assert [m.memory_id for m, _ in found] == best
            assert [score for _, score in found] == pytest.approx([exact[key] for key in best], abs=1e-5)

    def test_refuses_vectors_that_do_not_fit_and_writes_nothing(self, store: RecordStore) -> None:
        store.put([example("first", vector=clustered_vectors(1, 16)[0])])
        bad = clustered_vectors(1, 32)[0]
        with pytest.raises(VectorError, match="16 numbers"):
            store.put([example("fine", vector=clustered_vectors(1, 16)[0]), example("bad", vector=bad)])
        nan = clustered_vectors(1, 16)[0].copy()
        nan[3] = np.nan
        with pytest.raises(VectorError, match="finite"):
            store.put([example("nan", vector=nan)])
        with pytest.raises(VectorError):
            store.nearest(bad)
        assert len(store) == 1

    def test_a_replaced_memory_keeps_its_place(self, store: RecordStore) -> None:
        for number in range(4):
            store.put(
                [example(f"part {number}", memory_id=f"m{number}", session="s", timestamp=1_700_000_000.0 + number)]
            )
        store.put([example("part one again", memory_id="m1", session="s", timestamp=1_700_000_001.0)])
        assert [m.text for m in store.select()] == ["part 0", "part one again", "part 2", "part 3"]
        found_rows = store.filtered_rows(Filter.of({"session": "s"}))
        texts = {int(seq): memory.text for seq, memory in store.memories_at(found_rows.seq.tolist())}
        at = next(place for place, seq in enumerate(found_rows.seq.tolist()) if texts[seq] == "part one again")
        assert texts[int(found_rows.seq[found_rows.before(np.array([at]))[0]])] == "part 0"
        assert texts[int(found_rows.seq[found_rows.after(np.array([at]))[0]])] == "part 2"

    def test_changes_in_one_transaction(self, store: RecordStore) -> None:
        store.put([example("tulip", memory_id="m")])

        def edit(memory: Memory) -> Memory:
            memory.text = "orchid"
            memory.contents = {"text": "orchid"}
            return memory

        changed = store.change("m", edit)
        assert changed is not None
        assert changed.text == "orchid"
        assert [m.text for m, _ in store.match("orchid")] == ["orchid"]
        assert store.match("tulip") == []
        assert store.change("missing", edit) is None

        def fail(memory: Memory) -> Memory:
            raise InputError("refused")

        with pytest.raises(InputError, match="refused"):
            store.change("m", fail)
        found = store.get("m")
        assert found is not None
        assert found.text == "orchid"

    def test_edits_create_replace_leave_and_remove(self, store: RecordStore) -> None:
        def edit(text: str | None, seen: str | None) -> Edit:
            def make(memory: Memory | None) -> Edited | None:
                assert (None if memory is None else memory.text) == seen
                return Edited(None if text is None else example(text), "me", "edit")

            return make

        made = store.edit("m", edit("tulip", None))
        assert made is not None
        assert (made.memory_id, made.text) == ("m", "tulip")
        assert store.edit("m", edit("orchid", "tulip")) == store.get("m")
        left = store.edit("m", lambda memory: None)
        assert left is not None
        assert left.text == "orchid"
        assert store.edit("m", edit(None, "orchid")) is None
        assert store.get("m") is None
        assert store.edit("m", lambda memory: None) is None
        assert len(store) == 0

    def test_edits_refuse_vectors_that_do_not_fit(self, store: RecordStore) -> None:
        fits, bad = clustered_vectors(1, 16)[0], clustered_vectors(1, 32)[0]
        store.put([example("first", memory_id="m", vector=fits)])
        with pytest.raises(VectorError, match="16 numbers"):
            store.edit("m", lambda memory: Edited(example("second", vector=bad)))
        with pytest.raises(VectorError, match="16 numbers"):
            store.edit("new", lambda memory: Edited(example("second", vector=bad)))
        assert [memory.text for memory in store.select()] == ["first"]

    def test_moving_to_another_tier_loses_nothing(self, store: RecordStore) -> None:
        vectors = clustered_vectors(12, 32)
        before = store.put(
            [
                example(
                    f"berries by the river {n}", contents={"wood": n, "at": [n, 2.5]}, vector=vectors[n], session="s"
                )
                for n in range(12)
            ]
        )
        keys = [memory.memory_id for memory in before]
        for tier, level in (("im", 1), ("ltm", 2)):
            assert store.move([*keys[:6], "nobody"], tier) == 6
            assert store.count(Filter(tier=(tier,))) == 6
            for old, now in zip(before, store.get_many(keys), strict=True):
                assert now is not None
                assert (now.text, now.contents, now.timestamp) == (old.text, old.contents, old.timestamp)
            moved = store.get(keys[3])
            assert moved is not None
            assert (moved.tier, moved.bookkeeping.compression_level) == (tier, level)
            short = moved.embeddings.compressed_vector if level == 1 else moved.embeddings.abstract_vector
            assert short is not None
            assert short.size == (32 if level == 1 else 8)
            assert moved.embeddings.full_vector is None
            assert [memory.memory_id for memory, _ in store.match("river 3", k=1)] == [keys[3]]
            assert keys[3] in [memory.memory_id for memory, _ in store.nearest(vectors[3], k=6)]
            assert [memory.memory_id for memory in store.select(Filter(attributes={"wood": 3}))] == [keys[3]]
        store.move([keys[3]], "stm", {keys[3]: vectors[3]})
        back = store.get(keys[3])
        assert back is not None
        assert (back.tier, back.bookkeeping.compression_level) == ("stm", 0)
        assert np.allclose(back.embeddings.full_vector, before[3].embeddings.full_vector, atol=1e-6)  # type: ignore[arg-type]

    def test_touching_counts_and_never_moves_back(self, store: RecordStore) -> None:
        store.put([example("often read", memory_id="m")])
        store.touch(["m", "missing"], 1_800_000_000.0)
        store.touch(["m"], 1_750_000_000.0)
        found = store.get("m")
        assert found is not None
        assert found.bookkeeping.retrieval_count == 2
        assert found.bookkeeping.last_access_time == 1_800_000_000.0
        assert found.importance == 0.5

    def test_a_replaced_memory_keeps_its_access_counts(self, store: RecordStore) -> None:
        store.put([example("old", memory_id="a")])
        store.touch(["a"], 2_000_000_000.0)
        store.put([example("new", memory_id="a")])
        store.touch(["a"], 2_000_000_001.0)
        found = store.get("a")
        assert found is not None
        assert (found.text, found.bookkeeping.retrieval_count) == ("new", 2)

    def test_statistics_are_exact(self, store: RecordStore, library: list[Memory]) -> None:
        store.forget(library[0].memory_id)
        left = library[1:]
        stats = store.stats()
        assert stats.memories == len(left)
        assert stats.by_agent == Counter(m.agent_id for m in left)
        assert stats.by_type == Counter(m.type for m in left)
        assert stats.by_tier == Counter(m.tier for m in left)
        assert stats.vectors == sum(m.embeddings.full_vector is not None for m in left)
        assert stats.dimension == 16
        assert (stats.oldest, stats.newest) == (left[0].timestamp, left[-1].timestamp)

    def test_notes_stay(self, store: RecordStore) -> None:
        assert store.get_meta("colour") is None
        store.set_meta("colour", "blue")
        store.set_meta("colour", "green")
        assert store.get_meta("colour") == "green"

    def test_traces_count_from_the_time_that_a_memory_is_about(self, store: RecordStore) -> None:
        when = 1_600_000_000.0  # long before it is kept
        store.put(
            [example("old", memory_id=name, timestamp=when, step_number=step) for name, step in (("a", 3), ("b", 9))]
        )
        store.put([example("other", memory_id="c", agent_id="other", step_number=2)])
        store.touch(["b"], 1_800_000_000.0)
        assert store.get("b") is not None  # a touch may wait until somebody reads
        traces = {trace.memory_id: trace for trace in store.traces()}
        assert {key: trace.steps_behind for key, trace in traces.items()} == {"a": 6, "b": 0, "c": 0}
        assert (traces["a"].when, traces["a"].last_used, traces["a"].recalls) == (when, when, 0)
        assert (traces["b"].when, traces["b"].last_used, traces["b"].recalls) == (when, 1_800_000_000.0, 1)

    def test_feedback_stays_the_latest_of_each_hit(self, store: RecordStore) -> None:
        first = Feedback("r1", "m1", "why ☂?", "a", "fact", 1, 0.5, True, 1_700_000_000.0)
        second = Feedback("r1", "m2", None, "a", "fact", 2, -0.25, False, 1_700_000_001.0)
        whole = Feedback("r2", "", "nothing?", "", "", 0, 0.0, False, 1_700_000_002.0)
        assert store.feedback() == []
        store.add_feedback([first, second])
        store.add_feedback([whole])
        assert store.feedback() == [first, second, whole]
        assert store.feedback(since=1_700_000_001.0) == [second, whole]
        better = replace(second, useful=True, time=1_700_000_003.0)
        store.add_feedback([better])
        assert store.feedback() == [first, whole, better]
        store.remove_feedback([whole, better])
        assert store.feedback() == [first]

    def test_an_empty_store_answers_everything(self, store: RecordStore) -> None:
        assert store.select() == []
        assert store.match("anything") == []
        assert store.nearest(clustered_vectors(1, 16)[0]) == []
        assert len(store) == 0
        assert store.stats().memories == 0
        assert store.put([]) == []
        assert store.forget_many([]) == 0

    def test_bad_arguments_are_refused_by_name(self, store: RecordStore) -> None:
        with pytest.raises(InputError, match="k must be a whole number ≥ 1, got 0"):
            store.match("x", k=0)
        with pytest.raises(InputError, match="limit"):
            store.select(limit=-1)
        with pytest.raises(InputError, match="order"):
            store.select(order="sideways")  # type: ignore[arg-type]
