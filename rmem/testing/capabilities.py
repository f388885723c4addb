"""Tests of the optional capabilities of stores. A test of a capability that a store lacks is skipped: `pytest -rs`
shows which were not tested."""

from __future__ import annotations

import time
from typing import NoReturn

import numpy as np
import pytest

from ..feedback import Feedback
from ..filters import Filter
from ..models import Memory
from ..stores.base import Edited, RecordStore
from ..stores.capabilities import CAPABILITIES, AuditLog, Counters, FeedbackTable, RowVectors, Trash, VectorFeed


def _memory(memory_id: str, text: str = "a lantern by the river") -> Memory:
    return Memory(memory_id, "agent-1", -1, 1_700_000_000.0, {"text": text}, text=text)


def _skip(store: RecordStore, capability: str) -> NoReturn:
    pytest.skip(f"{type(store).__name__} does not offer {capability!r} ({CAPABILITIES[capability].__name__})")


class CapabilityContract:
    """Tests of each capability in `rmem.stores.capabilities`."""

    def test_capabilities_are_known_by_name(self, store: RecordStore) -> None:
        offered = {name for name, kind in CAPABILITIES.items() if isinstance(store, kind)}
        assert store.capabilities == offered

    def test_audit_entries_stay_in_order_and_whole(self, store: RecordStore) -> None:
        if not isinstance(store, AuditLog):
            _skip(store, "audit")
        store.edit("m", lambda memory: Edited(_memory("m"), "ann", "made", {"why": "test"}))
        store.record("ben", "read", ["m", "n"], origin="suite")
        newest, middle, first = store.audit()[:3]
        assert [(entry.who, entry.action, entry.memory) for entry in (first, middle, newest)] == [
            ("ann", "made", "m"),
            ("ben", "read", "m"),
            ("ben", "read", "n"),
        ]
        assert (first.detail, newest.detail) == ({"why": "test"}, {"origin": "suite"})
        assert [entry.n for entry in store.audit(memory="m", limit=1)] == [middle.n]
        assert [entry.n for entry in store.audit(before=middle.n, limit=1)] == [first.n]
        assert [entry.n for entry in store.changed_after(first.n, ["read"], 1)] == [middle.n]
        assert store.broken_audit() == []

    def test_an_edit_that_fails_leaves_no_audit_entry(self, store: RecordStore) -> None:
        if not isinstance(store, AuditLog):
            _skip(store, "audit")

        def fail(memory: Memory | None) -> Edited:
            raise RuntimeError("refused")

        with pytest.raises(RuntimeError, match="refused"):
            store.edit("m", fail)
        assert store.audit() == []

    def test_trash_gives_back_what_was_set_aside(self, store: RecordStore) -> None:
        if not isinstance(store, Trash):
            _skip(store, "trash")
        before = store.put([_memory("a"), _memory("b"), _memory("c")])
        until = time.time() + 3600
        assert store.set_aside(["a", "b", "nobody"], until=until, who="ann", reason="test") == ["a", "b"]
        assert store.get("a") is None
        assert {(item.memory.memory_id, item.until) for item in store.aside()} == {("a", until), ("b", until)}
        assert store.put_back(["a", "nobody"], who="ann") == [before[0]]
        assert sorted(memory.memory_id for memory in store.select()) == ["a", "c"]
        assert store.empty_trash(until - 1, who="ann") == []
        assert store.empty_trash(until + 1, who="ann") == ["b"]
        assert store.put_back(["b"], who="ann") == []

    def test_feedback_is_kept_without_a_limit(self, store: RecordStore) -> None:
        if not isinstance(store, FeedbackTable):
            _skip(store, "feedback")
        given = [
            Feedback(f"r{n}", "m", None, "a", "fact", 1, 0.5, bool(n % 2), 1_700_000_000.0 + n) for n in range(1500)
        ]
        store.add_feedback(given)
        assert store.feedback() == given

    def test_counters_give_each_number_once(self, store: RecordStore) -> None:
        if not isinstance(store, Counters):
            _skip(store, "counters")
        store.put([_memory("exp_1")])
        assert [store.next_number("exp_") for _ in range(3)] == [0, 2, 3]
        store.forget_many(["exp_1"])
        assert store.next_number("exp_") == 4
        assert store.next_number("other_") == 0

    def test_row_vectors_are_those_that_were_given(self, store: RecordStore) -> None:
        if not isinstance(store, RowVectors):
            _skip(store, "vectors")
        vector = np.ones(16, np.float32) / np.float32(4)
        first, second = _memory("a"), _memory("b")
        first.embeddings.full_vector = vector
        store.put([first, second])
        seqs = np.array([seq for seq, _ in sorted(_seqs_and_ids(store), key=lambda pair: pair[1])], np.int64)
        assert np.allclose(store.vectors_at(seqs, 16), [vector, np.zeros(16)], atol=1e-6)

    def test_a_vector_feed_tells_what_came_and_went(self, store: RecordStore) -> None:
        if not isinstance(store, VectorFeed):
            _skip(store, "vector feed")
        before = store.vector_state()
        made = [_memory(key) for key in "abc"]
        for memory, vector in zip(made, np.eye(16, dtype=np.float32), strict=False):
            memory.embeddings.full_vector = vector
        store.put([*made, _memory("bare")])
        came = store.vectors_after(before.row, 10)
        assert [row.vector is None for row in came] == [False, False, False, True]
        assert np.allclose(np.stack([row.vector for row in came if row.vector is not None]), np.eye(16)[:3], atol=1e-6)
        assert (came[0].agent, came[0].session, came[0].time) == ("agent-1", None, 1_700_000_000.0)
        assert [row.seq for row in store.vectors_after(came[0].seq, 2)] == [row.seq for row in came[1:3]]
        after = store.vector_state()
        assert (after.row, after.generation) == (came[-1].seq, before.generation)
        assert store.removed_after(after.change) == ([], after.change)
        store.forget_many(["a"])
        store.put([made[1]])  # replaces b, under a higher seq
        removed = store.removed_after(after.change)
        assert removed is not None
        assert sorted(removed[0]) == [came[0].seq, came[1].seq]
        assert removed[1] == store.vector_state().change > after.change
        assert [row.seq > came[-1].seq for row in store.vectors_after(came[-1].seq, 10)] == [True]


def _seqs_and_ids(store: RecordStore) -> list[tuple[int, str]]:
    seqs = store.filtered_rows(Filter()).seq.tolist()
    return [(seq, memory.memory_id) for seq, memory in store.memories_at(seqs)]
