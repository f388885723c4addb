"""Writes of a request that is sent again: done once, told the same way, by whichever process."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from rmem import Brain, receipts
from rmem.errors import InputError
from rmem.models import Memory
from rmem.stores.base import Edited
from rmem.stores.sql import receipts as in_store


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request, tmp_path):
    """A function that opens the same store again."""
    address = str(tmp_path / "m.db") if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    brains: list[Brain] = []

    def another() -> Brain:
        brains.append(Brain(address))
        return brains[-1]

    yield another
    for brain in brains:
        brain.close()


def everything(brain: Brain, number: str) -> tuple[list[object], bool]:
    """Each kind of write, and what it gives."""
    request = receipts.Request(number)
    with receipts.request(request):
        one = brain.remember("one", agent="a")
        many = brain.remember_many([{"text": "two"}, {"text": "three", "id": "3"}])
        changed = brain.update(one.memory_id, importance=0.9)
        brain.store.record("me", "change", [one.memory_id])
        told = [
            (one.memory_id, one.step_number),
            [(memory.memory_id, memory.step_number) for memory in many],
            (changed.memory_id, changed.importance),
            brain.forget("3"),
            [memory.memory_id for memory in brain.restore("pruned")],
        ]
    return told, request.replayed


def test_each_kind_of_write_happens_once_and_tells_the_same(opened):
    brain = opened()
    brain.remember("kept for later", id="pruned")
    brain.store.set_aside(["pruned"], until=time.time() + 1000, who="me", reason="faded")
    number = receipts.new_number()
    told, replayed = everything(brain, number)
    assert not replayed
    held, log = sorted(brain.store), len(brain.store.audit())
    assert len(held) == 3
    for one in (brain, opened()):
        assert everything(one, number) == (told, True)
        assert (sorted(one.store), len(one.store.audit())) == (held, log)
    again, replayed = everything(brain, receipts.new_number())
    assert (again[0] == told[0], replayed) == (False, False)


def test_a_write_that_failed_leaves_no_receipt(opened):
    brain = opened()
    key = brain.remember("one").memory_id
    request = receipts.Request(receipts.new_number())

    def refuse(_: object) -> None:
        raise InputError("no", field="x")

    with receipts.request(request):
        with pytest.raises(InputError):
            brain.update(key, only_if=refuse, importance=0.9)
        assert brain.update(key, importance=0.7).importance == 0.7
    with receipts.request(receipts.Request(request.number)):
        assert brain.update(key, importance=0.7).importance == 0.7
    assert list(request.done.values()) == [1]


def test_an_edit_with_an_entry_in_the_audit_log_is_done_once(opened):
    brain = opened()
    key = brain.remember("one", importance=0.5).memory_id
    other = brain.remember("two").memory_id

    def halve(memory: Memory | None) -> Edited | None:
        assert memory is not None
        memory.bookkeeping.importance_score /= 2
        return Edited(memory, "me", "halve")

    number = receipts.new_number()
    for _ in range(2):
        with receipts.request(receipts.Request(number)):
            edited = brain.edit(key, halve)
            assert edited is not None
            assert edited.importance == 0.25
    with receipts.request(receipts.Request(number)):  # the same request, whose first edit now is that of another memory
        edited = brain.edit(other, halve)
        assert edited is not None
        assert (edited.memory_id, edited.importance) == (other, 0.25)
    assert [entry.memory for entry in brain.store.audit() if entry.action == "halve"] == [other, key]


def test_requests_that_share_a_transaction_keep_receipts_of_their_own(opened):
    brain = opened()
    brain.remember("first")
    numbers = [receipts.new_number() for _ in range(12)]

    def ask(number: str) -> str:
        with receipts.request(receipts.Request(number)):
            return brain.remember(f"note {number}").memory_id

    with ThreadPoolExecutor(24) as pool:
        with brain.store._writer._turn:
            found = [pool.submit(ask, number) for number in (*numbers, *numbers)]
            while len(brain.store._writer._queue) < 24:
                time.sleep(0.01)
        told = [one.result() for one in found]
    assert told[:12] == told[12:]
    assert len(set(told)) == 12
    assert len(brain.store) == 13


def test_stores_that_write_for_the_same_request_at_once_write_once(opened):
    brains = [opened() for _ in range(4)]
    numbers = [receipts.new_number() for _ in range(10)]

    def ask(brain: Brain) -> list[str]:
        told = []
        for number in numbers:
            with receipts.request(receipts.Request(number)):
                told.append(brain.remember(f"note {number}").memory_id)
        return told

    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(ask, brains))
    assert told == [told[0]] * 4
    assert sorted(brains[0].store) == sorted(told[0])


def test_receipts_hold_no_contents_and_go_after_a_day(opened, monkeypatch):
    brain = opened()
    number = receipts.new_number()
    with receipts.request(receipts.Request(number)):
        key = brain.remember("swordfish", metadata={"word": "swordfish"}).memory_id
        brain.update(key, text="swordfish again")
        brain.forget(subject="nobody")

    def kept() -> list[tuple[str, str]]:
        sql = "SELECT key, value FROM notes WHERE key LIKE 'receipt/%'"
        return brain.store.read(lambda connection: connection.execute(sql).fetchall())

    assert len(kept()) == 2
    assert "swordfish" not in str(kept())
    brain.store.write(in_store.clean)
    assert len(kept()) == 2
    others = brain.store.get_meta("embedder"), brain.store.get_meta("analyser")
    monkeypatch.setattr(receipts, "KEPT_SECONDS", -10.0)
    brain.store.write(in_store.clean)
    assert kept() == []
    assert (brain.store.get_meta("embedder"), brain.store.get_meta("analyser")) == others
