"""What waits in the pipe of a recaller."""

from __future__ import annotations

import os

import pytest

from rmem.server.recaller import Inbox, framed


@pytest.fixture
def pipe():
    reading, writing = os.pipe()
    ends = {writing}
    yield Inbox(reading), writing, ends
    os.close(reading)
    for end in ends:
        os.close(end)


def bodies(questions):
    return [question.body for question in questions]


def test_all_that_wait_are_taken_together_up_to_a_number(pipe):
    inbox, writing, _ = pipe
    os.write(writing, b"".join(framed({"id": "w"}, b"%d" % number) for number in range(5)))
    assert bodies(inbox.waiting(3)) == [b"0", b"1", b"2"]
    os.write(writing, framed({"id": "w"}, b"5"))
    assert bodies(inbox.waiting(12)) == [b"3", b"4", b"5"]


def test_a_question_that_is_not_whole_yet_holds_up_no_other(pipe):
    inbox, writing, ends = pipe
    second = framed({"id": "other"}, b"later")
    os.write(writing, framed({"id": "w"}, b"now") + second[:7])
    os.write(writing, second[7:])
    found = inbox.waiting(12)
    assert bodies(found) == [b"now", b"later"]
    assert found[1].note == {"id": "other"}
    os.close(writing)
    ends.clear()
    assert inbox.waiting(12) == []
