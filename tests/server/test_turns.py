"""Lookups that several requests want at the same time."""

from __future__ import annotations

import asyncio
import threading

import pytest

from rmem.server.turns import looked_up


def test_what_many_look_up_at_once_is_looked_up_once_for_all():
    looks, free = [], threading.Event()

    def look(name: str) -> str:
        looks.append(name)
        free.wait(10)
        if name == "bad":
            raise LookupError(name)
        return name.upper()

    async def all_at_once() -> list[object]:
        waiting = [asyncio.ensure_future(looked_up(name, look, name)) for name in ("a", "a", "b", "bad", "bad", "a")]
        gone = asyncio.ensure_future(looked_up("a", look, "a"))
        await asyncio.sleep(0.05)
        gone.cancel()  # which is nothing to the others
        free.set()
        return await asyncio.gather(*waiting, return_exceptions=True)

    async def run() -> tuple[list[object], str]:
        return await all_at_once(), await looked_up("a", look, "a")

    found, later = asyncio.run(run())
    assert found[:3] + found[5:] == ["A", "A", "B", "A"]
    assert [type(error) for error in found[3:5]] == [LookupError, LookupError]
    assert sorted(looks) == ["a", "a", "b", "bad"], "the last one came later and looked again"
    assert later == "A"


def test_who_looks_alone_is_told_what_went_wrong():
    def look() -> None:
        raise LookupError("no")

    with pytest.raises(LookupError, match="no"):
        asyncio.run(looked_up("key", look))
