"""`python -m rmem.server.recaller`: a process that recalls for a server, one question after another.

It opens the same stores and finds every write that was acknowledged before it was asked. Questions that wait already
share one look at what is new in their workspace: none of them was asked later. What there is to note of a
recall, that hits were accessed and can be judged, goes back with the answer and is noted by the server. It ends with
the pipe on which it is asked."""

from __future__ import annotations

import json
import os
import select
import signal
import struct
import sys
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InputError
from ..judgements import Recall
from .recalling import TOGETHER, Recalled, answers
from .settings import ServerSettings
from .spaces import Space

HEAD = struct.Struct("!II")
_OPEN = 16  # workspaces at once
_NICE = 5  # the server itself comes first, so that it answers what needs no recall


def framed(note: dict[str, Any], body: bytes = b"") -> bytes:
    """A note and a body for the pipe."""
    head = json.dumps(note).encode()
    return HEAD.pack(len(head), len(body)) + head + body


class Question(NamedTuple):
    note: dict[str, Any]
    body: bytes


class Inbox:
    """What is asked through a pipe."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._held = b""
        self._ended = False

    def waiting(self, most: int) -> list[Question]:
        """The questions that are there now, at least one and at most so many; none when the pipe has ended."""
        found: list[Question] = []
        while len(found) < most:
            question = self._next()
            if question is not None:
                found.append(question)
            elif self._ended or (found and not self._more()):
                break
            else:
                read = os.read(self._pipe, 1 << 20)
                self._held, self._ended = self._held + read, not read
        return found

    def _next(self) -> Question | None:
        """The first one that is whole."""
        if len(self._held) < HEAD.size:
            return None
        note, body = HEAD.unpack_from(self._held)
        middle, end = HEAD.size + note, HEAD.size + note + body
        if len(self._held) < end:
            return None
        question = Question(json.loads(self._held[HEAD.size : middle]), self._held[middle:end])
        self._held = self._held[end:]
        return question

    def _more(self) -> bool:
        try:
            return bool(select.select([self._pipe], [], [], 0)[0])
        except OSError:  # where only sockets can be asked
            return False


class _Spaces:
    """The workspaces that were asked for last."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._open: OrderedDict[str, Space] = OrderedDict()

    def take(self, org: str, id: str, name: str) -> Space:
        space = self._open.get(id)
        if space is None:
            self._close_deleted()
            space = self._open[id] = Space(org, id, name, self._settings)
        self._open.move_to_end(id)
        if len(self._open) > _OPEN:
            self._open.popitem(last=False)[1].close()
        return space

    def _close_deleted(self) -> None:
        for id, space in list(self._open.items()):
            if self._settings.store is None and not space.path.exists():
                self._open.pop(id).close()

    def close(self) -> None:
        for space in self._open.values():
            space.close()


def _answers(spaces: _Spaces, questions: Sequence[Question]) -> list[bytes]:
    """The answers to the first of some questions in one workspace, one at least."""
    try:
        found = answers(spaces.take(**questions[0].note).brain, [one.body for one in questions], touch=False)
    except Exception as error:
        found = [error]
    return [_failed(one) if isinstance(one, Exception) else _told(one) for one in found]


def _told(found: Recalled) -> bytes:
    return framed({"status": 200, **noted(found)}, found.body)


def _failed(error: Exception) -> bytes:
    """For the server, which tries again what was not asked wrongly, and tells and logs what is wrong."""
    if isinstance(error, InputError):
        return framed({"status": 400, "error": str(error)})
    return framed({"status": 500, "error": f"{type(error).__name__}: {error}"})


def noted(found: Recalled) -> dict[str, Any]:
    """What a server needs to know of a recall that it did not make."""
    recall = found.hits.recall
    return {
        "recall": {"question": recall.question, "agent": recall.agent, "type": recall.type, "id": recall.id},
        "hits": recall.hits,
        "touched": [hit.memory.memory_id for hit in found.hits] if found.touch else [],
    }


def recall_of(note: dict[str, Any]) -> Recall:
    """The reverse of `noted`."""
    return Recall(**note["recall"]).having(note["hits"])


def settings_note(settings: ServerSettings) -> dict[str, Any]:
    """What a recaller is told first: where the stores are."""
    told = asdict(settings)
    return {"data": str(told["data"]), "store": told["store"], "embedder": told["embedder"]}


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which then closes the pipe
    if hasattr(os, "nice"):
        os.nice(_NICE)
    inbox, sink = Inbox(sys.stdin.fileno()), sys.stdout.buffer
    sys.stdout = sys.stderr  # nothing else may get between the answers
    first = inbox.waiting(1)
    if not first:
        return
    told = first[0].note
    spaces = _Spaces(ServerSettings(**{**told, "data": Path(told["data"])}))
    try:
        sink.write(framed({"status": 0}))
        sink.flush()
        while waiting := inbox.waiting(TOGETHER):
            for _, of_one in groupby(waiting, lambda question: question.note["id"]):
                left = list(of_one)
                while left:
                    found = _answers(spaces, left)
                    left = left[len(found) :]
                    sink.write(b"".join(found))
                    sink.flush()
    except BrokenPipeError:
        pass
    finally:
        spaces.close()


if __name__ == "__main__":
    main()
