"""The application: creates the parts of a server and registers its routes."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import AsyncIterator, Callable

import anyio.to_thread
from fastapi import APIRouter, FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from .. import __version__
from ..errors import StoreReadOnlyError
from ..private_files import make_folder
from . import mcp as of_mcp
from . import problems
from .auth import AuthMiddleware
from .control import Control, Role
from .dispatcher import Dispatcher
from .docs_page import docs_page
from .recall_workers import RecallWorkers
from .routes import activity as of_activity
from .routes import agents as of_agents
from .routes import audit as of_audit
from .routes import coding as of_coding
from .routes import connections as of_connections
from .routes import datasets as of_datasets
from .routes import export as of_export
from .routes import feedback as of_feedback
from .routes import graph as of_graph
from .routes import histogram as of_histogram
from .routes import maintenance as of_maintenance
from .routes import memories as of_memories
from .routes import service as of_service
from .routes import sync as of_sync
from .routes import tables as of_tables
from .routes import tokens as of_tokens
from .routes import ui as of_ui
from .routes import workspaces as of_workspaces
from .service import Service
from .settings import ServerSettings
from .spaces import Spaces
from .tokens import Caller, Tokens, secret_file, signing_secret
from .workers import Workers
from .workers import host as worker_host

FIRST = "default"
"""The name of the organisation and the workspace that the first start creates."""
_ADMIN = "admin"
_FIRST_DAYS = 365.0

ROUTERS: tuple[APIRouter, ...] = (
    of_memories.router,  # routes are tried in order: the most used first
    of_agents.router,
    of_graph.router,
    of_service.router,
    of_workspaces.router,
    of_tokens.router,
    of_tables.router,
    of_maintenance.router,
    of_histogram.router,
    of_connections.router,
    of_activity.router,
    of_feedback.router,
    of_audit.router,
    of_export.router,
    of_sync.router,
    of_coding.router,
    of_mcp.router,
    of_datasets.router,
    of_ui.router,
)


def create_app(settings: ServerSettings, *, on_first_token: Callable[[str], None] | None = None) -> FastAPI:
    """Make a server as an ASGI application. `on_first_token` is called with the admin's token if the data folder is
    new."""
    service = open_service(settings, on_first_token=on_first_token)
    workers, recall_workers = Workers(settings), RecallWorkers(settings)

    @contextlib.asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = settings.threads
        if settings.workers or settings.recall_workers:
            worker_host.start()  # it loads while the server starts
        gc.freeze()  # imported objects stay: collecting them again and again delays requests
        try:
            yield
        finally:
            await app.state.mcp.close()
            workers.close()
            recall_workers.close()
            await anyio.to_thread.run_sync(close, service)

    app = FastAPI(
        title="Remanence",
        version=__version__,
        summary="Memories and tables with hybrid search, for agents.",
        lifespan=lifespan,
        docs_url=None,  # FastAPI's own pages load scripts from other hosts
        redoc_url=None,
    )
    app.state.service = service
    app.state.workers, app.state.recall_workers = workers, recall_workers
    app.state.mcp = of_mcp.McpApp(service)
    if settings.root_path:
        app.add_middleware(_Prefix, root_path=settings.root_path)
    app.add_middleware(Dispatcher, workers=workers, recall_workers=recall_workers)
    app.add_middleware(AuthMiddleware, service=service)  # the outer one
    problems.install(app)
    app.add_api_route("/docs", lambda: docs_page(app), include_in_schema=False)
    for router in ROUTERS:
        app.router.routes.extend(router.routes)  # include_router would rebuild every route at the first request
    return app


class _Prefix:
    """Gives the router the path before a reverse proxy removed its prefix, so that links and redirects lead back
    through it. Outer middleware sees the path without the prefix."""

    def __init__(self, app: ASGIApp, root_path: str) -> None:
        self._app, self._root_path = app, root_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["root_path"], scope["path"] = self._root_path, self._root_path + scope["path"]
        await self._app(scope, receive, send)


def open_service(settings: ServerSettings, *, on_first_token: Callable[[str], None] | None = None) -> Service:
    """Open the parts of a server on its data folder; create an organisation, a workspace and an admin in a new one."""
    try:
        make_folder(settings.data)
    except OSError as error:
        raise StoreReadOnlyError(f"the folder {settings.data} cannot be made: {error.strerror or error}") from error
    control = Control(settings)
    tokens = Tokens(control, signing_secret(settings.data))
    first = control.organization(FIRST)
    if settings.own_store is None and not control.organizations():
        first = control.create_organization(FIRST)
        control.create_workspace(first.id, FIRST)
        control.set_member(first.id, _ADMIN, Role.ADMIN)
        if settings.auth:
            token, _ = tokens.issue(first.id, _ADMIN, days=_FIRST_DAYS, label="first start")
            if on_first_token is not None:
                on_first_token(token)
    everybody = None
    if not settings.auth and first is not None:
        everybody = Caller(first.id, first.name, _ADMIN, "none", Role.ADMIN, None, float("inf"))
    return Service(settings, control, tokens, Spaces(settings), secret_file(settings.data / "metrics.token"), everybody)


def close(service: Service) -> None:
    """Flush and close all that the server has open."""
    service.datasets.close()
    service.spaces.close()
    service.control.close()
