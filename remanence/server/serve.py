"""Running a server: uvicorn with our own logs, until it is told to stop."""

from __future__ import annotations

import ctypes
import logging
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

import uvicorn

from .app import create_app
from .gate import JsonLines
from .settings import ServerSettings

_ARENA_MAX = -8  # of malloc.h


def serve(settings: ServerSettings, *, on_first_token: Callable[[str], None] | None = None) -> None:
    """Serve until SIGTERM or Ctrl-C; requests that run then are finished, and stores are flushed."""
    log_as_json()
    share_one_heap()
    app = create_app(settings, on_first_token=on_first_token)
    options = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_graceful_shutdown=max(1, int(settings.shutdown_seconds)),
        timeout_keep_alive=30,
        h11_max_incomplete_event_size=64 * 1024,
        proxy_headers=settings.behind_proxy,
    )
    signal.signal(signal.SIGTERM, lambda *_: None)  # uvicorn raises it again when all is done: an end like any other
    uvicorn.Server(options).run()


def share_one_heap() -> None:
    """Let all threads take memory from one place. glibc gives each its own, where what one has freed stays idle, and a
    server of many threads takes twice the memory; under Python's lock they hardly ever meet there anyway."""
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)


def log_as_json() -> None:
    """Logs of this process go to standard error, one JSON object to a line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
