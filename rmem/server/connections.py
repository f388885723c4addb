"""Limits of connections before a request has arrived: header bytes, seconds, bytes a second, and the number of
connections."""

from __future__ import annotations

import asyncio
import json
import time
from asyncio.events import TimerHandle
from functools import partial
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

if TYPE_CHECKING:
    from .settings import ServerSettings


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits: by itself it accepts headers of any length and waits without end."""

    def __init__(self, *args: Any, settings: ServerSettings, **options: Any) -> None:
        super().__init__(*args, **options)
        self._settings = settings
        self._timer: TimerHandle | None = None
        self._pending = 0
        self._unsent = 0
        self.idle_since = time.monotonic()
        self.request_arrived = False
        self._body_since = 0.0
        self._body_bytes = 0

    @classmethod
    def with_settings(cls, settings: ServerSettings) -> type[asyncio.Protocol]:
        """Return the protocol for uvicorn, which calls it like a class."""
        return partial(cls, settings=settings)  # type: ignore[return-value]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_head()
        if len(self.connections) > self._settings.connections:
            self._make_room()

    def _make_room(self) -> None:
        """Close the connection that has waited longest without a request; this one, if all others are busy."""
        waiting = [
            connection
            for connection in self.connections
            if isinstance(connection, BoundedProtocol) and not connection.request_arrived
        ]
        oldest = min(waiting, key=lambda connection: connection.idle_since)
        if oldest is self:
            self._refuse(503, f"the server has at most {self._settings.connections:,} connections; try again later")
        else:
            oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect_nothing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._pending += len(data)
        super().data_received(data)
        if self._pending > self._settings.head_bytes and not self.transport.is_closing():
            self._refuse_head()

    # Callbacks of the parser

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._expect_head()

    def on_headers_complete(self) -> None:
        if self.transport.is_closing():
            return  # refused already; what follows on this connection is not answered
        length = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if length > self._settings.head_bytes:
            self._refuse_head()
            return
        self._pending = 0
        self.request_arrived = True
        self._body_since, self._body_bytes = time.monotonic(), 0
        self._expect_body()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._pending = 0
        self._body_bytes += len(body)
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._pending = 0
        self._expect_nothing()
        if not self.transport.is_closing():
            super().on_message_complete()

    def on_response_complete(self) -> None:
        self.request_arrived, self.idle_since = False, time.monotonic()
        super().on_response_complete()

    # Time

    def _expect_head(self) -> None:
        seconds = self._settings.head_seconds
        message = f"the headers of a request must arrive within {seconds:g} seconds"
        self._expect_nothing()
        self._timer = self.loop.call_later(seconds, self._refuse, 408, message)

    def _expect_body(self) -> None:
        """Wait for the body as long as it may take by what has arrived of it; then give up."""
        settings, passed = self._settings, time.monotonic() - self._body_since
        allowed = settings.body_seconds
        if settings.body_rate and not self.flow.read_paused:  # a client cannot send what is not read
            allowed = min(allowed, settings.head_seconds + self._body_bytes / settings.body_rate)
        if passed < allowed:
            wait = min(allowed - passed, settings.head_seconds)
            self._expect_nothing()
            self._timer = self.loop.call_later(wait, self._expect_body)
        elif passed < settings.body_seconds:
            self._refuse(408, f"the body of a request must arrive at {settings.body_rate:,} bytes a second at least")
        else:
            self._refuse(408, f"the body of a request must arrive within {settings.body_seconds:g} seconds")

    def _expect_nothing(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, also one whose client does not read its last answer."""
        unsent = self.transport.get_write_buffer_size()
        if unsent and unsent != self._unsent:
            self._unsent = unsent
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )
        elif unsent:
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()

    # Refusing

    def _refuse_head(self) -> None:
        self._refuse(431, f"the headers of a request may have at most {self._settings.head_bytes:,} bytes")

    def _refuse(self, status: int, message: str) -> None:
        """Send an error, if no answer has begun, and close the connection."""
        if self.transport.is_closing():
            return
        begun = self.request_arrived and self.cycle is not None and self.cycle.response_started
        if begun:
            self.transport.abort()
            return
        body = json.dumps({"error": message}).encode()
        head = b"content-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
        self.transport.write(STATUS_LINE[status] + head + body)
        self.transport.close()
