"""`rmem ui`: a server for the local user on their own store. Organisations, tokens and sessions are in a temporary
folder."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

from .. import config
from .app import FIRST, create_app
from .control import Role
from .serve import server_of, share_one_heap
from .service import Service
from .settings import ServerSettings

HOST = "127.0.0.1"
SESSION_SECONDS = 8 * 3600.0


def own_settings(address: str, folder: Path) -> ServerSettings:
    """Return the settings of a server on one's own store; `folder` is empty and for its owner alone."""
    return ServerSettings(data=folder, own_store=address, host=HOST, port=0, workers=0, session_seconds=SESSION_SECONDS)


def invite_owner(service: Service, code: str | None = None) -> str:
    """Make the user of this process the administrator of the one workspace; return a one-time code: `code`, or a new
    one."""
    control, member = service.control, config.user()
    home = control.organization(FIRST)
    if home is None:
        home = control.create_organization(FIRST)
        control.set_member(home.id, member, Role.ADMIN, control.create_workspace(home.id, FIRST).id)
    token, _ = service.tokens.issue(home.id, member, days=30, label="rmem ui")
    return service.sessions.invite(token, code)


def serve_own(settings: ServerSettings, listening: socket.socket, code: str) -> None:
    """Serve on a socket that listens already until Ctrl-C or SIGTERM; `code` logs in once."""
    share_one_heap()
    chosen = replace(settings, port=listening.getsockname()[1], shutdown_seconds=1)
    app = create_app(chosen)
    server = server_of(app, chosen)
    invite_owner(app.state.service, code)
    server.run(sockets=[listening])
