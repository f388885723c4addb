"""`python -m remanence.server.recaller`: a process that recalls for a server, one question at a time.

It opens the same stores and finds every write that was acknowledged before it was asked. What there is to note of a
recall, that hits were accessed and can be judged, goes back with the answer and is noted by the server. It ends with
the pipe on which it is asked."""

from __future__ import annotations

import json
import signal
import struct
import sys
from collections import OrderedDict
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from ..errors import InputError
from ..judgements import Recall
from .recalling import Recalled, recalled
from .settings import ServerSettings
from .spaces import Space

HEAD = struct.Struct("!II")
_OPEN = 16  # workspaces at once


def framed(note: dict[str, Any], body: bytes = b"") -> bytes:
    """A note and a body for the pipe."""
    head = json.dumps(note).encode()
    return HEAD.pack(len(head), len(body)) + head + body


def _read(source: IO[bytes]) -> tuple[dict[str, Any], bytes] | None:
    head = source.read(HEAD.size)
    if len(head) < HEAD.size:
        return None
    note, body = HEAD.unpack(head)
    told: dict[str, Any] = json.loads(source.read(note))
    return told, source.read(body)


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


def _answered(spaces: _Spaces, note: dict[str, Any], body: bytes) -> bytes:
    try:
        found = recalled(spaces.take(**note).brain, body, touch=False)
    except InputError as error:
        return framed({"status": 400, "error": str(error)})
    except Exception as error:  # the server tries it again, and tells and logs what is wrong
        return framed({"status": 500, "error": f"{type(error).__name__}: {error}"})
    return framed({"status": 200, **noted(found)}, found.body)


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
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # nothing else may get between the answers
    first = _read(source)
    if first is None:
        return
    spaces = _Spaces(ServerSettings(**{**first[0], "data": Path(first[0]["data"])}))
    try:
        sink.write(framed({"status": 0}))
        sink.flush()
        while (asked := _read(source)) is not None:
            sink.write(_answered(spaces, *asked))
            sink.flush()
    except BrokenPipeError:
        pass
    finally:
        spaces.close()


if __name__ == "__main__":
    main()
