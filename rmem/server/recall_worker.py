"""A recall worker: a process that runs recalls for a server one after another, so that recalls use more than one core.
It has its own indexes and sees all earlier writes. Access counts and the recall for feedback are returned with the
answer and recorded by the server (`recall_workers`)."""

from __future__ import annotations

import json
import os
import socket
import traceback
from types import SimpleNamespace
from typing import Any, cast

from ..errors import RemanenceError
from ..feedback import Recall
from .access import Access, RequestContext
from .control import Role
from .problems import error_response
from .recalls import answer_recall
from .service import Service
from .spaces import Spaces
from .worker import HEAD, WorkerMessage, encode_message, log_as_json_lines, settings_of

_NICE = 5  # the server itself comes first: it answers what needs no recall
_IDLE = 30.0  # seconds without a request after which workspaces that were deleted are closed


def request_note(access: Access) -> dict[str, Any]:
    """Return the caller and the workspace of a request, for a worker."""
    return {
        "org": access.org,
        "workspace": access.workspace,
        "workspace_id": access.workspace_id,
        "server": access.server,
        "moves": access.moves,
        "member": access.member,
        "role": access.role,
        "id": access.context.id,
        "written": access.write_mark,
    }


def recall_of(note: dict[str, Any]) -> Recall:
    """Return the recall that an answer describes."""
    return Recall(**note["recall"]).with_hits(note["hits"])


def run(link: socket.socket) -> None:
    """Answer recalls from a link until it ends."""
    os.nice(_NICE)
    log_as_json_lines()
    frames = _MessageReader(link)
    first = frames.next()
    if first is None:
        return
    settings = settings_of(first.note)
    spaces = Spaces(settings)
    service = cast(Service, SimpleNamespace(settings=settings, spaces=spaces))  # as much of it as a recall needs
    link.sendall(encode_message({"pid": os.getpid()}))
    link.settimeout(_IDLE)
    while True:
        try:
            frame = frames.next()
        except TimeoutError:
            spaces.close_deleted()
            continue
        if frame is None:
            break
        link.sendall(_answer(frame, service))
    spaces.close()


class _MessageReader:
    """The messages that arrive on a socket."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._held = bytearray()

    def next(self) -> WorkerMessage | None:
        """Return the next one; None at the end. What has arrived of it is kept when the socket's timeout passes."""
        while True:
            if len(self._held) >= HEAD.size:
                note, body = HEAD.unpack_from(self._held)
                middle, end = HEAD.size + note, HEAD.size + note + body
                if len(self._held) >= end:
                    frame = WorkerMessage(json.loads(self._held[HEAD.size : middle]), bytes(self._held[middle:end]))
                    del self._held[:end]
                    return frame
            part = self._link.recv(1 << 16)
            if not part:
                return None
            self._held += part


def _answer(frame: WorkerMessage, service: Service) -> bytes:
    note = frame.note
    context = RequestContext(note["id"], service)
    access = Access(
        note["org"],
        note["workspace"],
        note["member"],
        Role(note["role"]),
        "",
        service.spaces,
        context,
        note["workspace_id"],
        note["server"],
        note["moves"],
    )
    try:
        access.note_write(note["written"])
        answer = answer_recall(access, frame.body)
    except (RemanenceError, UnicodeEncodeError) as error:
        response = error_response(error, context.id)
        return encode_message({"status": response.status_code, "headers": dict(response.headers)}, bytes(response.body))
    except Exception as error:
        return encode_message({"failed": "".join(traceback.format_exception(error))})
    finally:
        context.leave()
    recall = answer.recall
    recall_note = {"question": recall.question, "agent": recall.agent, "type": recall.type, "id": recall.id}
    return encode_message(
        {"status": 200, "recall": recall_note, "hits": recall.hits, "touched": answer.touched}, answer.body
    )
