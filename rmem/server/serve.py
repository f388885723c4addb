"""Run a server: uvicorn with JSON logs, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import ctypes
import errno
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

import uvicorn
from fastapi import FastAPI

from ..errors import ConfigError
from .app import create_app
from .auth import JsonLines
from .connections import BoundedProtocol
from .settings import ServerSettings

log = logging.getLogger(__name__)
CLOSING_SECONDS = 5
"""To close the stores after `shutdown_seconds`."""
_OWN_FILES = 2048
_ARENA_MAX = -8  # of malloc.h
_SWITCH = 0.001  # seconds that a thread computes before the event loop gets its turn


def check_address(host: str, port: int) -> None:
    """Refuse an address where nothing can listen, before a first start makes a folder and shows its token."""
    failed: list[OSError] = []
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in found:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                try:
                    probe.bind(address)
                except OSError as error:
                    failed.append(error)
        if len(failed) == len(found) or any(error.errno == errno.EADDRINUSE for error in failed):
            raise failed[0]
    except OSError as error:
        raise ConfigError(
            f"nothing can listen at {host}:{port}: {error.strerror}; choose another address with --host and --port"
        ) from None


def serve(settings: ServerSettings, *, on_first_token: Callable[[str], None] | None = None) -> None:
    """Serve until SIGTERM or Ctrl-C; requests that run then are finished, and stores are flushed."""
    if not hasattr(os, "fork") or not hasattr(socket, "send_fds"):
        raise ConfigError("rmem serve forks processes for SQL, which this system cannot; use Linux, macOS or WSL")
    log_as_json()
    share_one_heap()
    sys.setswitchinterval(_SWITCH)
    app = create_app(settings, on_first_token=on_first_token)
    allow_connections(settings.connections)
    server_of(app, settings).run()


def server_of(app: FastAPI, settings: ServerSettings) -> uvicorn.Server:
    """Make a server that ends by SIGTERM."""
    options = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        ws="none",
        timeout_graceful_shutdown=max(1, int(settings.shutdown_seconds)),
        timeout_keep_alive=30,
        http=BoundedProtocol.with_settings(settings),
        proxy_headers=settings.behind_proxy,
    )
    server = _Server(options)
    # Before uvicorn takes it over, and when it raises it again after all is done: an end like any other.
    signal.signal(signal.SIGTERM, lambda *_: setattr(server, "should_exit", True))
    return server


class _Server(uvicorn.Server):
    """Stops on request, whatever still runs: acknowledged writes are on disk."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        assert self.config.timeout_graceful_shutdown is not None
        end = threading.Timer(self.config.timeout_graceful_shutdown + CLOSING_SECONDS, self._end)
        end.daemon = True
        end.start()
        await super().shutdown(sockets)

    def _end(self) -> None:
        log.warning("requests were still running at the end of the time to shut down; they were cut off")
        os._exit(0)


def allow_connections(most: int) -> None:
    """Raise the limit of open files for connections and stores, as far as the system permits."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most + _OWN_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(
                resource.RLIMIT_NOFILE, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard)
            )


def share_one_heap() -> None:
    """Use one malloc arena for all threads. With an arena for each, freed memory stays unused and a server takes twice
    the memory; under Python's lock threads hardly compete for it."""
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)


def log_as_json() -> None:
    """Log to standard error, one JSON object to a line."""
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False  # told nowhere, looked up each time
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
