"""A real server in a thread, with as many empty workspaces as tests ask for."""

from __future__ import annotations

import uuid
from pathlib import Path

from running_server import Running

from rmem.server.settings import ServerSettings


class TableServer:
    """`url` and `token` are what a Client needs; `new_workspace()` makes one of its own."""

    def __init__(self, folder: Path) -> None:
        self._running = Running(ServerSettings(data=folder)).start()
        self.url, self.token = self._running.url, self._running.first_token

    def new_workspace(self) -> str:
        name = f"w{uuid.uuid4().hex}"
        control = self._running.service.control
        control.create_workspace(control.organization("default").id, name)
        return name

    def close(self) -> None:
        self._running.stop()
