"""Fair shares of places between organisations."""

from __future__ import annotations

import asyncio

import pytest
from fastapi import HTTPException

from rmem.server.shares import FairShares


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
