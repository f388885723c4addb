"""The circuit breaker, with a clock of the test's own and with a real server that dies."""

from __future__ import annotations

import threading
import time

import pytest

from rmem.errors import InputError, StoreUnreachableError
from rmem.stores.breaker import CircuitBreaker
from rmem.stores.redis import RedisRecordStore
from rmem.testing.contract import example
from rmem.testing.redis import RedisServer


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def breaker(clock):
    return CircuitBreaker("Redis", jitter=0.0, clock=clock)


def fail():
    raise StoreUnreachableError("no answer")


def test_lets_all_through_while_all_is_well(breaker):
    assert breaker.call(lambda: 42) == 42
    assert breaker.state == "closed"
    assert breaker.wait == 0.0


def test_turns_callers_away_at_once_after_a_failure(breaker):
    with pytest.raises(StoreUnreachableError, match="no answer"):
        breaker.call(fail)
    assert breaker.state == "open"
    with pytest.raises(StoreUnreachableError, match=r"Redis does not answer; next try in 0\.5 s"):
        breaker.call(lambda: pytest.fail("this must not be tried"))


def test_waits_twice_as_long_after_each_failure_up_to_the_longest(breaker, clock):
    waits = []
    for _ in range(9):
        with pytest.raises(StoreUnreachableError, match="no answer"):
            breaker.call(fail)
        waits.append(breaker.wait)
        clock.now += breaker.wait
        assert breaker.state == "half-open"
    assert waits == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert breaker.call(lambda: "back") == "back"
    with pytest.raises(StoreUnreachableError):
        breaker.call(fail)
    assert breaker.wait == 0.5, "after a success it starts from the beginning"


def test_pauses_differ_so_that_processes_do_not_come_back_together(clock):
    waits = set()
    for _ in range(20):
        breaker = CircuitBreaker("Redis", clock=clock)
        with pytest.raises(StoreUnreachableError):
            breaker.call(fail)
        waits.add(breaker.wait)
    assert len(waits) > 10
    assert all(0.4 <= wait <= 0.6 for wait in waits)


def test_one_caller_tries_while_the_others_are_turned_away(breaker, clock):
    with pytest.raises(StoreUnreachableError):
        breaker.call(fail)
    clock.now += 0.5
    inside, finish = threading.Event(), threading.Event()

    def slowly():
        inside.set()
        assert finish.wait(10)
        return "back"

    results = []
    trier = threading.Thread(target=lambda: results.append(breaker.call(slowly)))
    trier.start()
    assert inside.wait(10)
    assert breaker.state == "half-open"
    with pytest.raises(StoreUnreachableError, match="somebody is trying"):
        breaker.call(lambda: pytest.fail("this must not be tried"))
    finish.set()
    trier.join()
    assert results == ["back"]
    assert breaker.state == "closed"


def test_a_late_failure_of_an_early_call_is_no_news(breaker):
    with pytest.raises(StoreUnreachableError), breaker, breaker:  # two set out together
        fail()
    assert breaker.wait == 0.5


def test_an_early_call_that_succeeds_late_does_not_close_the_circuit(breaker):
    def another():
        with pytest.raises(StoreUnreachableError):
            breaker.call(fail)

    with breaker:
        thread = threading.Thread(target=another)
        thread.start()
        thread.join()
    assert breaker.state == "open"


def test_other_errors_show_that_the_other_side_answers(breaker, clock):
    with pytest.raises(StoreUnreachableError):
        breaker.call(fail)
    clock.now += 0.5
    with pytest.raises(InputError, match="wrong"), breaker:
        raise InputError("wrong")
    assert breaker.state == "closed"


def test_an_interrupted_try_leaves_the_next_one_to_another(breaker, clock):
    with pytest.raises(StoreUnreachableError):
        breaker.call(fail)
    clock.now += 0.5
    with pytest.raises(KeyboardInterrupt), breaker:
        raise KeyboardInterrupt
    assert breaker.state == "half-open"
    assert breaker.call(lambda: "back") == "back"


def test_tells_once_that_the_other_side_came_back(breaker, clock):
    told = []
    breaker.on_return.append(lambda: told.append(breaker.state))
    breaker.call(lambda: None)
    assert told == []
    with pytest.raises(StoreUnreachableError):
        breaker.call(fail)
    clock.now += 0.5
    breaker.call(lambda: None)
    breaker.call(lambda: None)
    assert told == ["closed"]


def test_guards_a_server_that_dies_and_comes_back(clock):
    breaker = CircuitBreaker("Redis", jitter=0.0, clock=clock)
    returned = []
    breaker.on_return.append(lambda: returned.append(True))
    with RedisServer() as server, RedisRecordStore(**server.connection()) as store:
        breaker.call(lambda: store.put([example("before")]))
        server.kill()
        with pytest.raises(StoreUnreachableError, match="cannot be reached"):
            breaker.call(store.count)
        start = time.perf_counter()
        for _ in range(1000):
            with pytest.raises(StoreUnreachableError, match="next try"):
                breaker.call(store.count)
        assert time.perf_counter() - start < 1.0, "callers are turned away without waiting"
        clock.now += 0.5
        with pytest.raises(StoreUnreachableError, match="cannot be reached"):
            breaker.call(store.count)
        server.start()
        clock.now += 1.0
        assert breaker.call(store.count) == 0
        assert returned == [True]
        breaker.call(lambda: store.put([example("after")]))
        assert breaker.call(store.count) == 1
