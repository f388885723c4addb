"""Tests of a MemoryStore: its four methods, and counting, iterating, adding many and closing, which are skipped if a
store does not offer them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ..stores.base import MemoryStore

ODD_TEXTS = (
    '"', "'", "a OR b AND (c", "NOT", "*", "a:b^2", "%_%", "'; DROP TABLE memories; --", "😀 👩‍👩‍👧", "北京大学",
    "ﬀ ligature", "-", "--", '"unclosed', "a" * 10_000, "\t\n", "ünïcödé", "{}[]<>|\\/", "0", "مرحبا بالعالم",
    "", "\x00", "half \ud83d of a pair",
)  # fmt: skip


def require_methods(store: object, *methods: str) -> Any:
    """Return the store if it has these methods; skip the test otherwise."""
    for method in methods:
        if not hasattr(type(store), method):
            pytest.skip(f"{type(store).__name__} has no {method}")
    return store


def _close(store: Any) -> None:
    if hasattr(type(store), "close"):
        store.close()


class MemoryStoreContract:
    """Provide the `store` fixture, and `reopen` if the store outlives its process; override `value` and `text_of` if it
    does not store texts."""

    by_meaning = False
    """Set for a store whose search returns the nearest values, however far they are."""

    def value(self, text: str) -> Any:
        return text

    def text_of(self, value: Any) -> str:
        return str(value)

    @pytest.fixture
    def reopen(self) -> Callable[[], MemoryStore[Any]]:
        """Override for a store that outlives its process: a function that opens the same store again."""
        pytest.skip("no fixture `reopen`: what is there when the store is opened again was not tested")

    def test_what_was_added_is_there_when_it_is_opened_again(
        self, store: MemoryStore[Any], reopen: Callable[[], MemoryStore[Any]]
    ) -> None:
        store.add("k1", self.value("an apple a day"))
        store.add("k2", self.value("a plum at noon"))
        store.add("k1", self.value("a pear at night"))
        store.forget("k2")
        _close(store)
        again = reopen()
        found = again.get("k1")
        assert found is not None
        assert self.text_of(found) == "a pear at night"
        assert again.get("k2") is None
        assert [key for key, _, _ in again.search("a pear at night")] == ["k1"]
        _close(again)

    def test_gives_back_what_was_added(self, store: MemoryStore[Any]) -> None:
        store.add("k1", self.value("the first value"))
        found = store.get("k1")
        assert found is not None
        assert self.text_of(found) == "the first value"

    def test_knows_nothing_of_a_key_never_added(self, store: MemoryStore[Any]) -> None:
        assert store.get("missing") is None

    def test_replaces_the_value_of_a_known_key(self, store: MemoryStore[Any]) -> None:
        store.add("k1", self.value("an apple a day"))
        store.add("k1", self.value("a pear at night"))
        found = store.get("k1")
        assert found is not None
        assert self.text_of(found) == "a pear at night"
        assert [(key, self.text_of(value)) for key, value, _ in store.search("pear")] == [("k1", "a pear at night")]
        if self.by_meaning:
            store.add("k2", self.value("an apple a day"))
            assert store.search("an apple a day")[0][0] == "k2"
        else:
            assert "k1" not in [key for key, _, _ in store.search("apple")]

    def test_forgets_and_says_whether_there_was_anything(self, store: MemoryStore[Any]) -> None:
        store.add("k1", self.value("to be forgotten"))
        assert store.forget("k1") is True
        assert store.forget("k1") is False
        assert store.get("k1") is None
        assert store.search("forgotten") == []

    def test_a_forgotten_key_can_be_used_again(self, store: MemoryStore[Any]) -> None:
        store.add("k1", self.value("the old harbour"))
        store.forget("k1")
        store.add("k1", self.value("the new harbour"))
        assert [(key, self.text_of(value)) for key, value, _ in store.search("harbour")] == [("k1", "the new harbour")]

    def test_finds_a_value_right_after_it_was_added(self, store: MemoryStore[Any]) -> None:
        store.add("k1", self.value("zebra crossing"))
        store.add("k2", self.value("railway crossing"))
        hits = store.search("zebra")
        assert hits
        key, value, score = hits[0]
        assert key == "k1"
        assert self.text_of(value) == "zebra crossing"
        assert isinstance(score, float)

    def test_returns_no_more_than_top_k_best_first(self, store: MemoryStore[Any]) -> None:
        for number in range(12):
            store.add(f"k{number}", self.value("lantern " * (number % 3 + 1) + f"in room {number}"))
        hits = store.search("lantern", top_k=5)
        assert len(hits) == 5
        scores = [score for _, _, score in hits]
        assert scores == sorted(scores, reverse=True)

    def test_any_text_is_a_safe_query(self, store: MemoryStore[Any]) -> None:
        store.add("k1", self.value("an ordinary value"))
        for text in ODD_TEXTS:
            assert isinstance(store.search(text), list), text

    def test_counts_and_contains(self, store: MemoryStore[Any]) -> None:
        counted = require_methods(store, "__len__", "__contains__")
        assert len(counted) == 0
        for key in ("a", "b", "a", "c"):
            counted.add(key, self.value(f"value of {key}"))
        assert len(counted) == 3
        assert "b" in counted
        counted.forget("b")
        assert len(counted) == 2
        assert "b" not in counted
        assert "missing" not in counted

    def test_iterates_over_the_keys(self, store: MemoryStore[Any]) -> None:
        iterated = require_methods(store, "__iter__")
        assert list(iterated) == []
        for key in ("c", "a", "b"):
            iterated.add(key, self.value(f"value of {key}"))
        assert list(iterated) == ["c", "a", "b"]  # oldest first
        iterated.add("a", self.value("another value of a"))
        assert sorted(iterated) == ["a", "b", "c"]
        iterated.forget("a")
        assert list(iterated) == ["c", "b"]
        for key in iterated:  # removing while iterating is safe
            iterated.forget(key)
        assert list(iterated) == []

    def test_adds_many_at_once(self, store: MemoryStore[Any]) -> None:
        bulk = require_methods(store, "add_many")
        bulk.add("k3", self.value("an old violin"))
        assert bulk.add_many((f"k{number}", self.value(f"copper kettle {number}")) for number in range(50)) == 50
        assert self.text_of(bulk.get("k3")) == "copper kettle 3"
        assert len(bulk.search("kettle", top_k=100)) == 50
        assert bulk.add_many([]) == 0
        assert bulk.add_many({"k1": self.value("one silver spoon")}) == 1
        assert bulk.search("one silver spoon", top_k=1)[0][0] == "k1"

    def test_many_threads_may_use_it_at_once(self, store: MemoryStore[Any]) -> None:
        def work(worker: int) -> list[bool]:
            done = []
            for number in range(8):
                key = f"w{worker}-{number}"
                store.add(key, self.value(f"signal {worker} {number}"))
                done.append(store.get(key) is not None and isinstance(store.search("signal"), list))
                done.append(store.forget(key) if number % 2 else True)
            return done

        with ThreadPoolExecutor(4) as pool:
            assert all(ok for done in pool.map(work, range(4)) for ok in done)
        assert {key for key, _, _ in store.search("signal", top_k=100)} == {
            f"w{worker}-{number}" for worker in range(4) for number in range(0, 8, 2)
        }

    def test_closing_is_part_of_leaving(self, store: MemoryStore[Any]) -> None:
        closed = require_methods(store, "__enter__", "close")
        with closed as entered:
            assert entered is store
            entered.add("k1", self.value("inside"))
        closed.close()
