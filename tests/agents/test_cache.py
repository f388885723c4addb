"""Keeping answers: for how long, how many, for whom, and that nobody can spoil another's copy."""

from __future__ import annotations

import asyncio
import gc
import inspect
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pytest

from rmem.agents.cache import QueryCache, cacheable, key_of
from rmem.errors import InputError


class Clock:
    """A clock that moves when told."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def counted(**options):
    """A cacheable function that counts its calls."""
    calls = []

    @cacheable(**options)
    def function(*args, **named):
        calls.append((args, named))
        return {"args": list(args), "named": named}

    return function, calls


# Keys


def test_a_second_equal_call_is_not_computed():
    function, calls = counted(ttl=60)
    assert function("agent-1", "find wood") == function("agent-1", "find wood")
    assert len(calls) == 1
    function("agent-1", "find stone")
    assert len(calls) == 2


@dataclass
class Query:
    words: list[str]
    k: int = 5


class Tag:
    pass


EQUAL = [
    lambda: {"position": [12, 22], "deep": {"a": {1, 2}, "b": (1, "x")}},
    lambda: [1, [2, {"c": None}]],
    lambda: {1, 2, 3},
    lambda: np.arange(6.0).reshape(2, 3),
    lambda: np.array(["a", {"b": 1}], dtype=object),
    lambda: np.float32(0.5),
    lambda: Query(["wood"], 3),
    lambda: float("nan"),
    lambda: b"bytes",
    lambda: ...,
]


@pytest.mark.parametrize("make", EQUAL)
def test_equal_arguments_have_one_key(make):
    assert key_of(make()) is not None
    assert key_of(make()) == key_of(make())
    assert hash(key_of(make())) == hash(key_of(make()))


def test_the_order_of_a_mapping_does_not_matter():
    assert key_of({"a": 1, "b": 2}) == key_of({"b": 2, "a": 1})


DIFFERENT = [
    (1, True),
    (1, 1.0),
    (0, False),
    (0.0, -0.0),
    ("1", 1),
    ("a", b"a"),
    ([1], (1,)),
    ([1, 2], [2, 1]),
    ({1}, frozenset({1})),
    ({"a": 1}, {"a": True}),
    ({"a": 1}, [("a", 1)]),
    ([1, [2]], [1, 2]),
    ([], {}),
    (None, 0),
    (np.zeros(4), np.zeros((2, 2))),
    (np.zeros(4), np.zeros(4, dtype=np.float32)),
    (np.zeros(4), [0.0] * 4),
    (np.zeros(2, dtype=np.int64), np.zeros(2)),
    (np.float32(1), np.float64(1)),
    (Query(["wood"]), Query(["stone"])),
    (Tag(), Tag()),
    (lambda: 1, lambda: 1),
    (float, int),
    (complex(0, 0), complex(0, -0.0)),
    (Decimal("1.0"), Decimal("1.00")),
    (datetime(2026, 1, 1, 12, tzinfo=UTC), datetime(2026, 1, 1, 13, tzinfo=timezone(timedelta(hours=1)))),
    (np.ma.array([1, 2], mask=[False, True]), np.ma.array([1, 999_999])),
]


@pytest.mark.parametrize(("left", "right"), DIFFERENT)
def test_different_arguments_have_different_keys(left, right):
    assert key_of(left) != key_of(right)
    function, calls = counted(ttl=60)
    function(left)
    function(right)
    assert len(calls) == 2


def test_one_call_written_in_two_ways_is_one_call():
    calls = []

    @cacheable(ttl=60)
    def search(agent_id, query, k=5):
        calls.append(query)
        return query

    search("a", "wood")
    search("a", query="wood")
    search(query="wood", agent_id="a", k=5)
    assert calls == ["wood"]


def test_what_has_no_key_is_computed_each_time():
    class Unhashable:
        __hash__ = None

    loop = []
    loop.append(loop)
    function, calls = counted(ttl=60)
    for odd in (Unhashable(), loop):
        assert key_of(odd) is None
        function(odd)
        function(odd)
    assert len(calls) == 4


def test_an_argument_that_refuses_to_be_a_key_does_not_stop_the_call():
    @dataclass
    class Unfinished:
        size: int = field(init=False)

    class Refusing:
        def __hash__(self):
            raise ValueError("no")

    function, calls = counted(ttl=60)
    for odd in (Unfinished(), Refusing()):
        assert key_of(odd) is None
        function(odd)
    assert len(calls) == 2


def test_a_function_without_a_signature_can_be_kept():
    largest = cacheable(ttl=60)(max)
    assert (largest(1, 2), largest(1, 2), largest([3], default=0)) == (2, 2, 3)
    assert largest.cache.statistics()["hits"] == 1


def test_two_functions_of_one_name_never_share():
    def make(answer):
        @cacheable(ttl=60)
        def function(x):
            return answer

        return function

    first, second = make("first"), make("second")
    assert (first(1), second(1), first(1)) == ("first", "second", "first")
    both = cacheable(ttl=60)
    double, square = both(lambda x: x * 2), both(lambda x: x * x)
    assert (double(5), square(5)) == (10, 25)
    assert key_of(double, 1) != key_of(square, 1)


def test_wrong_arguments_are_the_functions_own_error():
    @cacheable(ttl=60)
    def function(x):
        return x

    with pytest.raises(TypeError, match=r"function\(\) missing 1 required positional argument"):
        function()


# Methods


def test_each_instance_has_its_own_entries_and_may_die():
    class Agent:
        def __init__(self, name):
            self.name, self.calls = name, 0

        @cacheable(ttl=60)
        def greet(self, other):
            self.calls += 1
            return f"{self.name} greets {other}"

    ann, bob = Agent("ann"), Agent("bob")
    assert [ann.greet("you"), bob.greet("you"), ann.greet("you")] == [
        "ann greets you",
        "bob greets you",
        "ann greets you",
    ]
    assert (ann.calls, bob.calls) == (1, 1)
    alive = weakref.ref(ann)
    del ann
    gc.collect()
    assert alive() is None
    assert Agent("carol").greet("you") == "carol greets you"


def test_instances_that_are_equal_or_have_slots_do_not_share():
    @dataclass
    class Equal:
        name: str

        @cacheable(ttl=60)
        def me(self):
            return id(self)

    one, two = Equal("x"), Equal("x")
    assert (one.me(), two.me(), one.me()) == (id(one), id(two), id(one))

    class Slotted:
        __slots__ = ("name",)

        @cacheable(ttl=60)
        def me(self):
            return id(self)

    one, two = Slotted(), Slotted()
    assert (one.me(), two.me()) == (id(one), id(two))


def test_class_and_static_methods():
    class Base:
        @classmethod
        @cacheable(ttl=60)
        def name(cls):
            return cls.__name__

        @staticmethod
        @cacheable(ttl=60)
        def double(x):
            return [x] * 2

    class Derived(Base):
        pass

    assert (Base.name(), Derived.name(), Base.name()) == ("Base", "Derived", "Base")
    assert Base.double(2) == Derived().double(2) == [2, 2]
    with pytest.raises(InputError, match="below @classmethod"):
        cacheable(ttl=60)(classmethod(lambda cls: 1))


# Copies


def test_results_are_safe_to_change():
    function, calls = counted(ttl=60)
    first = function("a")
    first["args"].append("spoilt")
    second = function("a")
    assert second["args"] == ["a"]
    second["named"]["x"] = 1
    assert function("a") == {"args": ["a"], "named": {}}
    assert len(calls) == 1


def test_what_cannot_be_pickled_is_copied_and_what_cannot_be_copied_is_computed():
    class Local:
        def __init__(self):
            self.items = []

    made = []

    @cacheable(ttl=60)
    def local():
        made.append(1)
        return Local()

    local().items.append(1)
    assert local().items == []
    assert len(made) == 1

    @cacheable(ttl=60)
    def stream(n):
        made.append(2)
        yield from range(n)

    assert list(stream(3)) == list(stream(3)) == [0, 1, 2]

    @cacheable(ttl=60)
    def lock():
        return threading.Lock()

    assert lock() is not lock()


class Failure(Exception):
    """Can be pickled, but not unpickled."""

    def __init__(self, code, reason):
        super().__init__(f"{code} {reason}")


def test_what_cannot_be_unpickled_is_computed():
    calls = []

    @cacheable(ttl=60)
    def failures():
        calls.append(1)
        return [Failure(1, "x")]

    @cacheable(ttl=60)
    async def failures_async():
        calls.append(2)
        return [Failure(1, "x")]

    assert [str(failures()[0]) for _ in range(3)] == ["1 x"] * 3
    assert [str(asyncio.run(failures_async())[0]) for _ in range(2)] == ["1 x"] * 2
    assert calls == [1, 1, 1, 2, 2]


def test_none_is_a_result_like_any_other():
    calls = []

    @cacheable(ttl=60)
    def nothing():
        calls.append(1)

    assert nothing() is None
    assert nothing() is None
    assert calls == [1]


def test_exceptions_are_not_kept():
    calls = []

    @cacheable(ttl=60)
    def fails_once():
        calls.append(1)
        if len(calls) == 1:
            raise KeyError("first")
        return "fine"

    with pytest.raises(KeyError):
        fails_once()
    assert (fails_once(), fails_once()) == ("fine", "fine")
    assert len(calls) == 2


# Bounds


def test_an_entry_ends_with_its_time():
    clock = Clock()
    cache = QueryCache(10, 5, timer=clock)
    assert cache.fetch("k", lambda: 1) == 1
    clock.now = 9.9
    assert cache.fetch("k", lambda: 2) == 1
    clock.now = 10.1
    assert cache.fetch("k", lambda: 3) == 3


def test_the_least_recently_used_goes_first():
    cache = QueryCache(60, 2)
    cache.fetch("a", lambda: 1)
    cache.fetch("b", lambda: 1)
    cache.fetch("a", lambda: 2)
    cache.fetch("c", lambda: 1)
    assert cache.fetch("a", lambda: 9) == 1
    assert cache.fetch("b", lambda: 9) == 9
    assert cache.statistics()["size"] == 2


def test_a_ttl_of_zero_turns_it_off_and_back_on():
    function, calls = counted(ttl=0)
    function(1)
    function(1)
    assert len(calls) == 2
    function.cache.set_ttl(60)
    function(1)
    function(1)
    assert len(calls) == 3
    function.cache.set_ttl(0)
    function(1)
    assert len(calls) == 4
    assert function.cache.statistics()["size"] == 0


@pytest.mark.parametrize("ttl", [-1, True, float("nan"), float("inf"), "60", None])
def test_a_ttl_must_be_a_number_of_seconds(ttl):
    for make in (cacheable, QueryCache, QueryCache().set_ttl):
        with pytest.raises(InputError, match="ttl must be"):
            make(ttl)


@pytest.mark.parametrize("size", [0, -1, True, 1.5, None])
def test_a_size_must_be_a_whole_number(size):
    for make in (cacheable, QueryCache):
        with pytest.raises(InputError, match="size must be"):
            make(60, size=size)


# Groups and statistics


def test_a_group_is_forgotten_without_the_others():
    cache = QueryCache(60)
    for group in ("a", "b"):
        for key in range(3):
            cache.fetch(key, lambda: "old", group=group)
    cache.invalidate("a")
    cache.invalidate("nobody")
    assert cache.statistics()["size"] == 3
    assert [cache.fetch(key, lambda: "new", group="a") for key in range(3)] == ["new"] * 3
    assert [cache.fetch(key, lambda: "new", group="b") for key in range(3)] == ["old"] * 3
    cache.clear()
    assert cache.fetch(0, lambda: "newest", group="b") == "newest"


def test_an_answer_from_before_a_write_is_not_kept_after_it():
    cache = QueryCache(60)
    for forget in (lambda: cache.invalidate("a"), cache.clear, lambda: cache.set_ttl(30)):

        def slow(forget=forget):
            forget()
            return "old"

        assert cache.fetch("k", slow, group="a") == "old"
        assert cache.fetch("k", lambda: "new", group="a") == "new"
        cache.clear()


def test_groups_that_are_no_longer_asked_about_cost_nothing():
    cache = QueryCache(60, 2)
    for agent in range(100):
        cache.fetch("k", lambda: 1, group=agent)
        cache.invalidate(f"never asked {agent}")
    gc.collect()
    assert len(cache._generations) == 2


def test_statistics_count_what_was_kept_and_what_was_not():
    cache = QueryCache(60, 7)
    assert cache.statistics() == {"hits": 0, "misses": 0, "hit_ratio": 0.0, "size": 0, "max_size": 7, "ttl": 60}
    for _ in range(4):
        cache.fetch("k", lambda: 1)
    assert cache.statistics() == {"hits": 3, "misses": 1, "hit_ratio": 0.75, "size": 1, "max_size": 7, "ttl": 60}


# At the same time


def test_equal_calls_at_the_same_time_are_computed_once():
    calls, started = [], threading.Barrier(8)

    @cacheable(ttl=60)
    def slow(x):
        calls.append(x)
        time.sleep(0.1)
        return [x]

    def ask(_):
        started.wait()
        return slow(1)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(8)))
    assert answers == [[1]] * 8
    assert len({id(answer) for answer in answers}) == 8
    assert calls == [1]


def test_those_who_wait_for_a_failure_try_themselves():
    calls, started = [], threading.Barrier(4)

    @cacheable(ttl=60)
    def fails_first():
        calls.append(1)
        mine = len(calls)
        time.sleep(0.05)
        if mine == 1:
            raise RuntimeError("first")
        return "fine"

    def ask(_):
        started.wait()
        try:
            return fails_first()
        except RuntimeError:
            return "failed"

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(ask, range(4))) == ["failed", "fine", "fine", "fine"]
    assert len(calls) == 2


def test_those_who_ask_after_a_write_do_not_get_the_answer_from_before():
    cache = QueryCache(60)
    computing, go_on = threading.Event(), threading.Event()

    def old():
        computing.set()
        go_on.wait(5)
        return "old"

    with ThreadPoolExecutor(1) as pool:
        before = pool.submit(cache.fetch, "k", old, group="a")
        computing.wait(5)
        cache.invalidate("a")
        assert cache.fetch("k", lambda: "new", group="a") == "new"
        go_on.set()
        assert before.result(5) == "old"
    assert cache.fetch("k", lambda: "newer", group="a") == "new"


def test_a_function_that_calls_itself_does_not_wait_for_itself():
    @cacheable(ttl=60)
    def fibonacci(n):
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    assert fibonacci(80) == 23416728348467685
    depth = []

    @cacheable(ttl=60)
    def again():
        depth.append(1)
        return "end" if len(depth) > 3 else again()

    assert again() == "end"


def test_many_threads_and_many_keys():
    cache = QueryCache(60, 50)

    def work(seed):
        for n in range(500):
            key = (n * seed) % 70
            assert cache.fetch(key, lambda key=key: [key], group=key % 7) == [key]
            if n % 50 == 0:
                cache.invalidate(n % 7)
            if n % 211 == 0:
                cache.clear()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(1, 9)))
    assert cache.statistics()["size"] <= 50
    assert not cache._running


# Coroutines


def test_coroutine_functions_are_kept_and_computed_once():
    calls = []

    @cacheable(ttl=60)
    async def slow(x):
        calls.append(x)
        await asyncio.sleep(0.05)
        return [x]

    assert inspect.iscoroutinefunction(slow)

    async def both():
        return await asyncio.gather(*(slow(1) for _ in range(5)), slow(2))

    assert asyncio.run(both()) == [[1]] * 5 + [[2]]
    assert asyncio.run(slow(1)) == [1]
    assert sorted(calls) == [1, 2]


def test_coroutines_in_different_loops_wait_for_one_another():
    calls, started = [], threading.Barrier(3)

    @cacheable(ttl=60)
    async def slow():
        calls.append(1)
        await asyncio.sleep(0.1)
        return "done"

    def ask(_):
        started.wait()
        return asyncio.run(slow())

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(ask, range(3))) == ["done"] * 3
    assert calls == [1]


def test_a_cancelled_computation_is_taken_over_and_a_cancelled_wait_harms_no_one():
    calls = []

    async def computing(times):
        while len(calls) < times:
            await asyncio.sleep(0.001)

    async def play():
        finish = asyncio.Event()

        @cacheable(ttl=60)
        async def slow():
            calls.append(1)
            await finish.wait()
            return "done"

        first, impatient, last = (asyncio.create_task(slow()) for _ in range(3))
        await computing(1)
        impatient.cancel()
        await asyncio.wait([impatient])
        first.cancel()
        await asyncio.wait_for(computing(2), 60)
        finish.set()
        assert await last == "done"
        gathered = await asyncio.gather(first, impatient, return_exceptions=True)
        assert all(isinstance(outcome, asyncio.CancelledError) for outcome in gathered)

    asyncio.run(play())
    assert len(calls) == 2


def test_a_cached_function_looks_like_itself():
    @cacheable(ttl=60)
    def documented(agent_id: str, k: int = 5) -> list[str]:
        """What it says."""
        return []

    assert documented.__name__ == "documented"
    assert documented.__doc__ == "What it says."
    assert list(inspect.signature(documented).parameters) == ["agent_id", "k"]
