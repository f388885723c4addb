"""`rmem ui`: a server for the local user on their own store. Organisations, tokens and sessions are in a temporary
folder."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from dataclasses import replace
from html import escape
from pathlib import Path

import uvicorn

from .. import config
from ..private_files import make_file
from .app import FIRST, create_app
from .connections import BoundedProtocol
from .control import Role
from .serve import Ending, share_one_heap
from .service import Service
from .settings import ServerSettings

HOST = "127.0.0.1"
SESSION_SECONDS = 8 * 3600.0
_REDIRECT = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={}"><title>rmem</title>'


def own_settings(address: str, folder: Path) -> ServerSettings:
    """Return the settings of a server on one's own store; `folder` is empty and for its owner alone."""
    return ServerSettings(data=folder, own_store=address, host=HOST, port=0, workers=0, session_seconds=SESSION_SECONDS)


def invite_owner(service: Service) -> str:
    """Make the user of this process the administrator of the one workspace; return a one-time code."""
    control, member = service.control, config.user()
    home = control.organization(FIRST)
    if home is None:
        home = control.create_organization(FIRST)
        control.set_member(home.id, member, Role.ADMIN, control.create_workspace(home.id, FIRST).id)
    token, _ = service.tokens.issue(home.id, member, days=30, label="rmem ui")
    return service.sessions.invite(token)


def serve_own(settings: ServerSettings, on_ready: Callable[[str], None]) -> None:
    """Serve until Ctrl-C or SIGTERM. `on_ready` is called with the one-time link when the server is ready."""
    share_one_heap()
    with socket.create_server((HOST, settings.port)) as listening:
        port = listening.getsockname()[1]
        app = create_app(replace(settings, port=port))
        options = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="on",
            ws="none",
            timeout_graceful_shutdown=1,
            http=BoundedProtocol.with_settings(settings),
        )
        server = Ending(options)
        signal.signal(signal.SIGTERM, lambda *_: setattr(server, "should_exit", True))
        on_ready(f"http://{HOST}:{port}/ui/#login={invite_owner(app.state.service)}")
        server.run(sockets=[listening])


def redirecting_file(folder: Path, link: str) -> Path:
    """Write a page readable only by the user that redirects to a link: arguments of a command are visible to all
    users."""
    path = folder / "open.html"
    make_file(path)
    path.write_text(_REDIRECT.format(escape(link)), encoding="utf-8")
    return path
