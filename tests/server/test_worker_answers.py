"""What a worker has answered reaches the caller whole or not at all, wherever the worker ends."""

from __future__ import annotations

import asyncio
import socket
import subprocess
from types import SimpleNamespace

import pytest

from rmem.server.settings import Limits, ServerSettings
from rmem.server.worker import encode_message
from rmem.server.workers import WorkerFailedError, _ForwardedAnswer, _Worker

START = encode_message({"type": "start", "status": 200, "headers": [["x-test", "1"]], "route": None})
PART = encode_message({"type": "body", "more": True}, b"part ")
LAST = encode_message({"type": "body", "more": False}, b"last")


@pytest.fixture
def process():
    started = subprocess.Popen(["sleep", "60"])
    yield started
    started.kill()
    started.wait()


def answered(tmp_path, process, frames: bytes, *, ends: bool) -> list[tuple[object, bytes]]:
    """What the caller is sent when a worker writes these frames, and then ends or hangs."""
    sent = []

    async def send(message):
        sent.append((message.get("status"), message.get("body", b"")))

    async def receive():
        await asyncio.Event().wait()

    async def run():
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=ours)
        settings = ServerSettings(data=tmp_path, limits=Limits(statement_seconds=0.2))
        context = SimpleNamespace(id="r", request=None, note_write=lambda mark: None)
        scope = {"type": "http", "path": "/query", "method": "POST", "headers": []}
        answer = _ForwardedAnswer(_Worker(reader, writer, process.pid), scope, send, context, settings)
        answer._worker.send_request = lambda *given: asyncio.sleep(0)
        theirs.sendall(frames)
        if ends:
            theirs.close()
        try:
            await answer.run(b"", receive)
        finally:
            writer.close()
            theirs.close()

    asyncio.run(run())
    return sent


@pytest.mark.parametrize("ends", [True, False])
def test_a_whole_answer_is_told_although_its_worker_is_not_done(tmp_path, process, ends):
    assert answered(tmp_path, process, START + LAST, ends=ends) == [(200, b""), (None, b"last")]


@pytest.mark.parametrize(("ends", "status"), [(True, 503), (False, 408)])
def test_a_worker_that_ends_after_its_headers_has_not_answered(tmp_path, process, ends, status):
    first, *_ = answered(tmp_path, process, START, ends=ends)
    assert first[0] == status


@pytest.mark.parametrize("ends", [True, False])
def test_a_stream_that_breaks_off_is_an_error(tmp_path, process, ends):
    with pytest.raises(WorkerFailedError):
        answered(tmp_path, process, START + PART, ends=ends)
