"""A recall worker: a process that recalls for a server, one request after another, so that recalls use more than one
core. It has indexes of its own and finds all that was written before it was asked. What a recall leaves behind, that
memories were accessed and can be judged, goes back with the answer and is kept by the server (`recall_workers`)."""

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
from .worker import HEAD, Frame, framed, log_as_json_lines, settings_of

_NICE = 5  # the server itself comes first: it answers what needs no recall
_IDLE = 30.0  # seconds without a request after which workspaces that were deleted are closed


def request_note(access: Access) -> dict[str, Any]:
    """Who asks, and where."""
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
    """Answer what is asked through a link until it ends."""
    os.nice(_NICE)
    log_as_json_lines()
    frames = _Frames(link)
    told = frames.next()
    if told is None:
        return
    settings = settings_of(told.note)
    spaces = Spaces(settings)
    service = cast(Service, SimpleNamespace(settings=settings, spaces=spaces))  # as much of it as a recall needs
    link.sendall(framed({"pid": os.getpid()}))
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


class _Frames:
    """The messages that arrive on a socket."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._held = bytearray()

    def next(self) -> Frame | None:
        """Return the next one; None at the end. What has arrived of it is kept when the socket's timeout passes."""
        while True:
            if len(self._held) >= HEAD.size:
                note, body = HEAD.unpack_from(self._held)
                middle, end = HEAD.size + note, HEAD.size + note + body
                if len(self._held) >= end:
                    frame = Frame(json.loads(self._held[HEAD.size : middle]), bytes(self._held[middle:end]))
                    del self._held[:end]
                    return frame
            part = self._link.recv(1 << 16)
            if not part:
                return None
            self._held += part


def _answer(frame: Frame, service: Service) -> bytes:
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
        return framed({"status": response.status_code, "headers": dict(response.headers)}, bytes(response.body))
    except Exception as error:
        return framed({"failed": "".join(traceback.format_exception(error))})
    finally:
        context.leave()
    recall = answer.recall
    told = {"question": recall.question, "agent": recall.agent, "type": recall.type, "id": recall.id}
    return framed({"status": 200, "recall": told, "hits": recall.hits, "touched": answer.touched}, answer.body)
