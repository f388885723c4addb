"""Fair shares of places between organisations, and lookups that several requests want at the same time."""

from __future__ import annotations

import asyncio
import threading

import pytest
from fastapi import HTTPException

from rmem.server.shares import FairShares, look_up_once


async def _hold(shares: FairShares, org: str, order: list[str], done: asyncio.Event) -> None:
    async with shares.place(org):
        order.append(org)
        await done.wait()


async def _settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_one_organisation_gets_half_and_leaves_room_for_the_next():
    async def scene() -> list[str]:
        shares, order, done = FairShares(8), [], asyncio.Event()
        tasks = [asyncio.create_task(_hold(shares, org, order, done)) for org in ["a"] * 9 + ["b"] * 9 + ["c"] * 9]
        await _settle()
        found = list(order)
        done.set()
        await asyncio.gather(*tasks)
        assert len(order) == 27
        return found

    assert asyncio.run(scene()) == ["a"] * 4 + ["b"] * 2 + ["c"]


def test_those_that_wait_are_served_in_turn():
    async def scene() -> list[str]:
        shares, order = FairShares(1), []
        done = {org: asyncio.Event() for org in "abc"}
        tasks = [asyncio.create_task(_hold(shares, org, order, done[org])) for org in "aaabbc"]
        for _ in range(6):
            await _settle()
            done[order[-1]].set()
            await _settle()
        await asyncio.gather(*tasks)
        return order

    order = asyncio.run(scene())
    assert (sorted(order[1:4]), sorted(order)) == (list("abc"), list("aaabbc"))


def test_who_waits_too_long_is_told_to_come_back():
    async def scene() -> None:
        shares, done = FairShares(1), asyncio.Event()
        task = asyncio.create_task(_hold(shares, "a", [], done))
        await _settle()
        with pytest.raises(HTTPException) as refused:
            async with shares.place("b", patience=0.01):
                pass
        assert (refused.value.status_code, refused.value.headers) == (503, {"Retry-After": "5"})
        done.set()
        await task
        async with shares.place("b", patience=0.01):
            pass

    asyncio.run(scene())


def test_who_gives_up_waiting_leaves_no_place_taken():
    async def scene() -> None:
        shares, done = FairShares(1), asyncio.Event()
        first = asyncio.create_task(_hold(shares, "a", [], done))
        await _settle()
        second = asyncio.create_task(_hold(shares, "b", [], done))
        await _settle()
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        done.set()
        await first
        async with shares.place("c", patience=0.01):
            pass

    asyncio.run(scene())


def test_what_many_look_up_at_once_is_looked_up_once_for_all():
    looks, free = [], threading.Event()

    def look(name: str) -> str:
        looks.append(name)
        free.wait(10)
        if name == "bad":
            raise LookupError(name)
        return name.upper()

    async def all_at_once() -> list[object]:
        waiting = [asyncio.ensure_future(look_up_once(name, look, name)) for name in ("a", "a", "b", "bad", "bad", "a")]
        gone = asyncio.ensure_future(look_up_once("a", look, "a"))
        await asyncio.sleep(0.05)
        gone.cancel()  # which is nothing to the others
        free.set()
        return await asyncio.gather(*waiting, return_exceptions=True)

    async def run() -> tuple[list[object], str]:
        return await all_at_once(), await look_up_once("a", look, "a")

    found, later = asyncio.run(run())
    assert found[:3] + found[5:] == ["A", "A", "B", "A"]
    assert [type(error) for error in found[3:5]] == [LookupError, LookupError]
    assert sorted(looks) == ["a", "a", "b", "bad"], "the last one came later and looked again"
    assert later == "A"


def test_who_looks_alone_is_told_what_went_wrong():
    def look() -> None:
        raise LookupError("no")

    with pytest.raises(LookupError, match="no"):
        asyncio.run(look_up_once("key", look))
