"""A real server in a thread, with as many empty workspaces as tests ask for."""

from __future__ import annotations

import socket
import threading
import uuid
from pathlib import Path

import uvicorn

from remanence.server.app import create_app
from remanence.server.settings import ServerSettings


class TableServer:
    """`url` and `token` are what a Client needs; `new_workspace()` makes one of its own."""

    def __init__(self, folder: Path) -> None:
        self.token = ""
        app = create_app(ServerSettings(data=folder), on_first_token=self._keep)
        self._service = app.state.service
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._uvicorn = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="on"))
        self._thread = threading.Thread(target=self._uvicorn.run, kwargs={"sockets": [self._socket]})
        self._thread.start()
        while not self._uvicorn.started:
            assert self._thread.is_alive(), "the server did not start"
            self._thread.join(0.005)

    def _keep(self, token: str) -> None:
        self.token = token

    def new_workspace(self) -> str:
        name = f"w{uuid.uuid4().hex}"
        organisation = self._service.control.organization("default")
        self._service.control.create_workspace(organisation.id, name)
        return name

    def close(self) -> None:
        self._uvicorn.should_exit = True
        self._thread.join()
        self._socket.close()
