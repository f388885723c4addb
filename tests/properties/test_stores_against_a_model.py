"""Every store against the plainest model there is: a dictionary. Whatever is done to both, both say the same."""

from __future__ import annotations

import copy
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from strategies import VECTORS, WORDS, filters, ids, memories, texts

from rmem import Filter
from rmem.errors import VectorError
from rmem.stores.indexed import date_words
from rmem.stores.memory import InMemoryRecordStore
from rmem.stores.sql import cache
from rmem.stores.sql.sqlite import SqliteRecordStore
from rmem.testing.contract import plain_bm25


@pytest.fixture(scope="module", autouse=True)
def _empty_file(tmp_path_factory):
    """One empty store, copied for every run: making the tables takes longer than everything else here."""
    SqliteAgainstModel.empty = tmp_path_factory.mktemp("model") / "empty.db"
    SqliteRecordStore(SqliteAgainstModel.empty).close()


class StoreAgainstModel(RuleBasedStateMachine):
    """What all stores have in common; subclasses say how to open one."""

    def __init__(self):
        super().__init__()
        self.model = {}  # id → memory
        self.original_seq = {}  # id → its place in the order of arrival
        self.arrived = 0
        self.touched = Counter()

    def open(self):
        raise NotImplementedError

    @initialize()
    def start(self):
        self.store = self.open()

    def teardown(self):
        if hasattr(self, "store"):
            self.store.close()

    def readers(self):
        return [self.store]

    # Writing

    @rule(batch=st.lists(st.one_of(memories(), memories(id_from=ids)), max_size=5))
    def put(self, batch):
        before = dict(self.model)
        kept = self.store.put(copy.deepcopy(batch))
        assert len(kept) == len(batch)
        for given, memory in zip(batch, kept, strict=True):
            assert given.memory_id in ("", memory.memory_id)
            if not given.memory_id:
                assert memory.memory_id not in self.model, "the id of another memory was handed out"
                assert memory.memory_id.startswith(f"{memory.agent_id}-{memory.step_number}-{int(memory.timestamp)}")
            if given.step_number < 0:
                taken = [m.step_number for m in self.model.values() if m.agent_id == memory.agent_id]
                assert memory.step_number > max(taken, default=-1)
            else:
                assert memory.step_number == given.step_number
            if memory.memory_id not in self.original_seq:
                self.arrived += 1
                self.original_seq[memory.memory_id] = self.arrived
            self.model[memory.memory_id] = memory
        for key in before.keys() - {memory.memory_id for memory in kept}:
            assert self.store.get(key) is not None

    @rule(batch=st.lists(memories(), max_size=3), at=st.integers(0, 3), wrong=st.sampled_from([8, 15, 17]))
    def put_with_one_wrong_vector(self, batch, at, wrong):
        if not any(memory.embeddings.full_vector is not None for memory in self.model.values()):
            return
        bad = copy.deepcopy(batch[0]) if batch else None
        if bad is None:
            return
        bad.embeddings.full_vector = np.ones(wrong, np.float32)
        batch = [*batch[:at], bad, *batch[at:]]
        with pytest.raises(VectorError):
            self.store.put(copy.deepcopy(batch))
        assert len(self.store) == len(self.model)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), text=texts, session=st.sampled_from(["s1", "s2", None]))
    def change(self, data, text, session):
        key = data.draw(st.sampled_from(sorted(self.model)))

        def edit(memory):
            memory.text = text
            memory.contents = {**memory.contents, "text": text}
            memory.session = session
            memory.embeddings.full_vector = VECTORS[len(text) % len(VECTORS)]
            return memory

        changed = self.store.change(key, edit)
        assert changed is not None
        assert (changed.memory_id, changed.text, changed.session) == (key, text, session)
        self.model[key] = changed

    @rule(key=ids)
    def change_nothing(self, key):
        if key not in self.model:
            assert self.store.change(key, lambda memory: memory) is None

    @rule(key=ids)
    def forget(self, key):
        self._gone([key])
        assert self.store.forget(key) == (self.model.pop(key, None) is not None)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def forget_many(self, data):
        keys = data.draw(st.lists(st.sampled_from(sorted(self.model)), min_size=1, max_size=4, unique=True))
        assert self.store.forget_many([*keys, "never there"]) == len(keys)
        self._gone(keys)
        for key in keys:
            del self.model[key]

    def _gone(self, keys):
        for key in keys:
            self.original_seq.pop(key, None)
            self.touched.pop(key, None)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def touch(self, data):
        keys = data.draw(st.lists(st.sampled_from(sorted(self.model)), min_size=1, max_size=3, unique=True))
        self.store.touch([*keys, "never there"], 2_000_000_000.0)
        self.touched.update(keys)
        assert [memory.bookkeeping.retrieval_count for memory in self.store.get_many(keys)] == [
            self.touched[key] for key in keys
        ]

    # Reading

    @rule(where=filters(), order=st.sampled_from(["oldest", "newest", "importance", "step"]))
    def select(self, where, order):
        wanted = Filter.of(where)
        expected = [memory for memory in self.model.values() if wanted.matches(memory)]
        for store in self.readers():
            found = store.select(wanted, order=order)
            assert sorted(memory.memory_id for memory in found) == sorted(memory.memory_id for memory in expected)
            value = {
                "oldest": lambda memory: memory.timestamp,
                "newest": lambda memory: -memory.timestamp,
                "importance": lambda memory: -memory.importance,
                "step": lambda memory: memory.step_number,
            }[order]
            assert [value(memory) for memory in found] == sorted(map(value, expected))
            assert store.count(wanted) == len(expected)
            assert store.select(wanted, order=order, limit=2, offset=1) == found[1:3]

    @rule(where=filters(), words=st.lists(st.sampled_from([*WORDS, "absent", "the"]), min_size=1, max_size=4))
    def match(self, where, words):
        wanted, query = Filter.of(where), " ".join(words)
        held = {
            key: (memory.text, date_words(memory.timestamp))
            for key, memory in self.model.items()
            if wanted.matches(memory)
        }
        expected = plain_bm25(held, query) if held else {}
        for store in self.readers():
            found = store.match(query, wanted, k=1000)
            assert {memory.memory_id: score for memory, score in found} == pytest.approx(expected, rel=1e-4)
            scores = [score for _, score in found]
            assert scores == sorted(scores, reverse=True)

    @rule(where=filters(), at=st.integers(0, len(VECTORS) - 1), k=st.integers(1, 6))
    def nearest(self, where, at, k):
        wanted, query = Filter.of(where), VECTORS[at]
        exact = {
            key: float(memory.embeddings.full_vector @ query)
            for key, memory in self.model.items()
            if memory.embeddings.full_vector is not None and wanted.matches(memory)
        }
        for store in self.readers():
            found = store.nearest(query, wanted, k=k)
            assert [score for _, score in found] == pytest.approx(sorted(exact.values(), reverse=True)[:k], abs=1e-5)
            for memory, score in found:
                assert score == pytest.approx(exact[memory.memory_id], abs=1e-5)

    @rule()
    def neighbours(self):
        """Those of one session of one agent follow one another in the order in which they first arrived."""
        for store in self.readers():
            survey = store.filtered_rows(Filter())
            names = [memory.memory_id for _, memory in store.memories_at(survey.seq.tolist())] + [None]
            everyone = np.arange(survey.size)
            following = dict(zip(names, [names[at] for at in survey.after(everyone).tolist()], strict=False))
            before = dict(zip(names, [names[at] for at in survey.before(everyone).tolist()], strict=False))
            for key, memory in self.model.items():
                if memory.session is None:
                    assert following[key] is before[key] is None
                    continue
                row = sorted(
                    (
                        other
                        for other, one in self.model.items()
                        if (one.agent_id, one.session) == (memory.agent_id, memory.session)
                    ),
                    key=self.original_seq.__getitem__,
                )
                at = row.index(key)
                assert before[key] == (row[at - 1] if at else None)
                assert following[key] == (row[at + 1] if at + 1 < len(row) else None)

    @rule()
    def statistics(self):
        held = self.model.values()
        for store in self.readers():
            stats = store.stats()
            assert stats.memories == len(self.model)
            assert stats.by_agent == Counter(memory.agent_id for memory in held)
            assert stats.by_type == Counter(memory.type for memory in held)
            assert stats.by_tier == Counter(memory.tier for memory in held)
            assert stats.vectors == sum(memory.embeddings.full_vector is not None for memory in held)
            assert stats.sessions == len({(m.agent_id, m.session) for m in held if m.session is not None})
            assert stats.oldest == min((memory.timestamp for memory in held), default=None)
            assert stats.newest == max((memory.timestamp for memory in held), default=None)

    @invariant()
    def the_same_memories_are_there(self):
        if not hasattr(self, "store"):
            return
        for store in self.readers():
            assert len(store) == len(self.model)
            for key, memory in self.model.items():
                found = store.get(key)
                assert found is not None
                found.bookkeeping.retrieval_count = memory.bookkeeping.retrieval_count
                found.bookkeeping.last_access_time = memory.bookkeeping.last_access_time
                assert found == memory


class InMemoryAgainstModel(StoreAgainstModel):
    def open(self):
        return InMemoryRecordStore()


class SqliteAgainstModel(StoreAgainstModel):
    """With a second handle that reads along, segments made and merged early, and the file opened anew."""

    empty: Path

    def __init__(self):
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(cache, "SEGMENT_FROM", 6)
        self.patch.setattr(cache, "SEGMENT_BULK", 6)
        self.folder = Path(tempfile.mkdtemp(prefix="rmem-model-"))
        self.path = Path(shutil.copy(self.empty, self.folder / "memories.db"))
        self.other = None

    def open(self):
        return SqliteRecordStore(self.path, durability="normal")

    def readers(self):
        return [self.store] if self.other is None else [self.store, self.other]

    @rule()
    def open_a_second_handle(self):
        if self.other is None:
            self.other = self.open()

    @precondition(lambda self: self.other is not None)
    @rule()
    def write_through_the_other_handle(self):
        self.store.flush()
        self.store, self.other = self.other, self.store

    @rule()
    def reopen(self):
        self.store.close()
        self.store = self.open()

    @rule()
    def settle(self):
        self.store.write_segment(1)

    @rule()
    def rebuild(self):
        self.store.rebuild()

    @rule()
    def lose_all_segments(self):
        self.store.write(cache.clear)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def touch(self, data):
        """Counts that wait are seen by their own handle; by others when they are written."""
        keys = data.draw(st.lists(st.sampled_from(sorted(self.model)), min_size=1, max_size=3, unique=True))
        self.store.touch(keys, 2_000_000_000.0)
        self.touched.update(keys)
        self.store.flush()
        for store in self.readers():
            assert [memory.bookkeeping.retrieval_count for memory in store.get_many(keys)] == [
                self.touched[key] for key in keys
            ]

    def teardown(self):
        super().teardown()
        if self.other is not None:
            self.other.close()
        self.patch.undo()
        shutil.rmtree(self.folder)


TestInMemoryStoreAgainstModel = InMemoryAgainstModel.TestCase
TestInMemoryStoreAgainstModel.settings = settings(max_examples=settings.default.max_examples, stateful_step_count=30)
TestSqliteStoreAgainstModel = SqliteAgainstModel.TestCase
TestSqliteStoreAgainstModel.settings = settings(max_examples=settings.default.max_examples, stateful_step_count=30)
