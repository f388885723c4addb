"""What a request may do and with which workspace; routes get it as a dependency.

@router.post("/workspaces/{workspace}/memories")
def remember(body: NewMemory, access: Writer) -> …:
    access.brain.remember(…)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from fastapi import Depends, HTTPException, Path, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.security import HTTPBearer

from .. import receipts
from .control import Role
from .service import Service
from .settings import MAIN
from .shares import look_up_once
from .spaces import Space, Spaces
from .tokens import Caller, WorkspaceRole

if TYPE_CHECKING:
    from ..agents import AgentMemoryAPI
    from ..brain import Brain
    from ..tables.workspace import Workspace

_LONG_PATIENCE = 600.0  # seconds to wait for the end of another read of a whole store

__all__ = ["Access", "Admin", "OrganizationAdmin", "Reader", "RequestContext", "Role", "Writer", "anybody"]

Result = TypeVar("Result")
BEARER = HTTPBearer(auto_error=False, description="A token of `rmem token create`.")


@dataclass(slots=True)
class RequestContext:
    """One request; `auth` stores it in the ASGI scope under "context"."""

    id: str
    service: Service
    caller: Caller | None = None
    spaces: list[Space] = field(default_factory=list)
    status: int = 0
    request: receipts.Request | None = None
    """The receipts of its writes, if it has an Idempotency-Key."""
    workspace_role: WorkspaceRole | None = None
    """The role of the caller in the workspace, after it was looked up."""
    on_limit: Callable[[float], None] | None = None
    """Called with the time limit of a statement, by the thread that runs it."""

    def note_write(self, mark: int) -> None:
        """Let recalls see what a worker has written for this request."""
        if mark and self.workspace_role is not None:
            self.service.spaces.note_write(self.workspace_role.workspace_id, mark)

    def leave(self) -> None:
        while self.spaces:
            self.service.spaces.leave(self.spaces.pop())


@dataclass(frozen=True, slots=True)
class Access:
    """The caller, the workspace and the role there. Use it in the thread of the request only.

    `workspace` is empty on routes of the organisation.
    """

    org: str
    workspace: str
    member: str
    role: Role
    token_id: str
    spaces: Spaces
    context: RequestContext
    workspace_id: str = ""
    server: str = MAIN
    moves: int = 0

    @property
    def brain(self) -> Brain:
        return self._space().brain

    @property
    def open_brain(self) -> Brain | None:
        """The Brain if it is open already, for calls from the event loop that do not block."""
        return self._space().open_brain

    @property
    def write_mark(self) -> int:
        """The position up to which recalls must see writes."""
        return self._space().write_mark

    def note_write(self, mark: int) -> None:
        """Let recalls see what another process of this server has written."""
        self._space().note_write(mark)

    @property
    def tables(self) -> Workspace:
        return self._space().tables

    @property
    def agents(self) -> AgentMemoryAPI:
        return self._space().agents

    @property
    def address(self) -> str:
        """The address of the store of the workspace; not to be shown to members."""
        return self._space().address

    @property
    def service(self) -> Service:
        return self.context.service

    @property
    def caller(self) -> Caller:
        assert self.context.caller is not None
        return self.context.caller

    def once(self) -> AbstractContextManager[None]:
        """Run the writes inside once, however often a request with an Idempotency-Key is sent. They must be the same
        each time; what is read before may differ."""
        return receipts.request(self.context.request)

    def need(self, role: Role) -> None:
        """Refuse what needs a higher role than the route itself."""
        if self.role < role:
            raise _too_low(role, self.role)

    async def read(self, call: Callable[..., Result], *args: Any) -> Result:
        """Run a read in a thread, in the organisation's turn."""
        async with self.service.read_shares.place(self.org):
            return await run_in_threadpool(call, *args)

    async def read_whole(self, call: Callable[..., Result], *args: Any) -> Result:
        """Run a read of the whole store in a thread, one at a time for an organisation: it takes no place of others."""
        async with self.service.long_shares.place(self.org, _LONG_PATIENCE):
            return await run_in_threadpool(call, *args)

    async def write(self, call: Callable[..., Result], *args: Any) -> Result:
        """Run a write in a thread, in the organisation's turn."""
        async with self.service.write_shares.place(self.org):
            return await run_in_threadpool(call, *args)

    def hold(self) -> None:
        """Keep the workspace from being deleted while the request runs."""
        self._space()

    def need_room(self) -> None:
        """Refuse to add data if the organisation has used up its disk space."""
        self.service.disk.check(self.org)

    def _space(self) -> Space:
        if not self.context.spaces:
            self.context.spaces.append(self.use_space())
        return self.context.spaces[0]

    def use_space(self) -> Space:
        """Return the workspace, which stays open until it is released to `spaces`."""
        return self.spaces.use(self.org, self.workspace_id, self.workspace, self.server, self.moves)


WorkspaceName = Annotated[str, Path(description="The name of a workspace.", max_length=63)]


def allowed(role: Role) -> Callable[..., Awaitable[Access]]:
    """Make a dependency for routes under /workspaces/{workspace}/… that requires at least this role."""

    async def look(
        request: Request, workspace: WorkspaceName, _bearer: Annotated[Any, Depends(BEARER)] = None
    ) -> Access:
        return await admitted(request.scope["context"], workspace, role)

    look.role = role  # type: ignore[attr-defined]
    return look


async def admitted(context: RequestContext, workspace: str, role: Role) -> Access:
    """Return the caller's access to a workspace; raise if its role is lower."""
    service, caller = context.service, _caller(context)
    if context.workspace_role is None:
        context.workspace_role = await workspace_role_of(service, caller, workspace)
    found = context.workspace_role
    if found is None:
        raise HTTPException(404, f"there is no workspace {workspace!r}")
    if found.role < role:
        raise _too_low(role, found.role)
    place = (found.workspace_id, found.server, found.moves)
    return Access(caller.org, workspace, caller.member, found.role, caller.token_id, service.spaces, context, *place)


def allowed_in_organization(role: Role) -> Callable[..., Awaitable[Access]]:
    """Make a dependency for routes of the whole organisation that requires at least this role."""

    async def look(request: Request, _bearer: Annotated[Any, Depends(BEARER)] = None) -> Access:
        context: RequestContext = request.scope["context"]
        caller = _caller(context)
        found = await run_in_threadpool(context.service.tokens.role_in_organization, caller)
        if found is None or found < role:
            raise _too_low(role, found)
        return Access(caller.org, "", caller.member, found, caller.token_id, context.service.spaces, context)

    look.role = role  # type: ignore[attr-defined]
    return look


Reader = Annotated[Access, Depends(allowed(Role.READ))]
Writer = Annotated[Access, Depends(allowed(Role.WRITE))]
Admin = Annotated[Access, Depends(allowed(Role.ADMIN))]
OrganizationAdmin = Annotated[Access, Depends(allowed_in_organization(Role.ADMIN))]
"""The access of a route that requires at least this role."""


async def anybody(request: Request, _bearer: Annotated[Any, Depends(BEARER)] = None) -> Access:
    """Dependency for routes that accept every valid token."""
    context: RequestContext = request.scope["context"]
    caller = _caller(context)
    return Access(caller.org, "", caller.member, caller.role, caller.token_id, context.service.spaces, context)


async def workspace_role_of(service: Service, caller: Caller, workspace: str) -> WorkspaceRole | None:
    known, found = service.tokens.known_workspace_role(caller, workspace)
    if known:
        return found
    return await look_up_once(
        (service.control.version, caller, workspace), service.tokens.workspace_role, caller, workspace
    )


def _caller(context: RequestContext) -> Caller:
    if context.caller is None:
        raise HTTPException(401, "a token is needed: Authorization: Bearer …")
    return context.caller


def _too_low(needed: Role, given: Role | None) -> HTTPException:
    has = "a role in this organisation is missing" if given is None else f"your role is {given.name}"
    return HTTPException(403, f"this needs the role {needed.name}; {has}")
