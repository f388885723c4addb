"""A real server on a free port, in a thread of this process, and clients with tokens of any role."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx
import uvicorn

from rmem.server.app import create_app
from rmem.server.control import Role
from rmem.server.service import Service
from rmem.server.settings import ServerSettings

TLS = ssl.create_default_context()
"""One for all clients: each would read the certificates of the machine anew, which takes longer than a request."""


def eventually(found: Callable[[], object], seconds: float = 20) -> object:
    """What is found, as soon as it is: an answer arrives before its line in the log."""
    until = time.monotonic() + seconds
    while not (result := found()):
        assert time.monotonic() < until, "it did not come about"
        time.sleep(0.01)
    return result


@dataclass
class Running:
    """A server in a thread, on a free port unless one is given. `service` is its inside, for members and tokens."""

    settings: ServerSettings
    port: int = 0
    first_token: str = ""
    clients: list[httpx.Client] = field(default_factory=list)

    def start(self) -> Running:
        app = create_app(self.settings, on_first_token=self._keep)
        self.app = app
        self.service: Service = app.state.service
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", self.port))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._uvicorn = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="on"))
        self._thread = threading.Thread(target=self._uvicorn.run, kwargs={"sockets": [self._socket]})
        self._thread.start()
        while not self._uvicorn.started:
            if not self._thread.is_alive():
                raise RuntimeError("the server did not start")
            self._thread.join(0.005)
        return self

    def _keep(self, token: str) -> None:
        self.first_token = token

    def stop(self) -> None:
        for client in self.clients:
            client.close()
        self._uvicorn.should_exit = True
        self._thread.join()
        self._socket.close()

    def client(self, token: str | None = None, **headers: str) -> httpx.Client:
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        made = httpx.Client(base_url=self.url, headers=headers, timeout=30, verify=TLS)
        self.clients.append(made)
        return made

    def token_for(
        self, org: str, workspace: str | None, role: Role | str, *, member: str | None = None, days: float = 1
    ) -> str:
        """A token of somebody with this role in a workspace, or in the whole organisation; all made as needed."""
        role = role if isinstance(role, Role) else Role[role]
        control = self.service.control
        home = control.organization(org) or control.create_organization(org)
        place = None
        if workspace is not None:
            place = control.workspace(home.id, workspace) or control.create_workspace(home.id, workspace)
        who = member or f"{role.name.lower()}-of-{workspace or 'all'}"
        control.set_member(home.id, who, role, None if place is None else place.id)
        return self.service.tokens.issue(home.id, who, days=days)[0]

    def client_for(self, org: str, workspace: str | None, role: Role | str) -> httpx.Client:
        return self.client(self.token_for(org, workspace, role))
