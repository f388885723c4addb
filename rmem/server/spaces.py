"""The open workspaces of a server: memories, tables and agents of each, opened at first use and closed when idle."""

from __future__ import annotations

import logging
import math
import time
from collections import OrderedDict
from pathlib import Path
from threading import Condition, Lock
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from ..brain import Brain
from ..errors import ConstraintError, RemanenceError, StoreClosedError, StoreError
from ..private_files import make_folder
from ..stores.sql.audit_chain import ENDING
from .organization_log import tenant_address
from .settings import MAIN, ServerSettings

if TYPE_CHECKING:
    from ..agents import AgentMemoryAPI
    from ..tables.workspace import Workspace

log = logging.getLogger(__name__)


class Space:
    """One workspace. Its parts are opened on first use and shared by all requests."""

    def __init__(
        self, org: str, id: str, name: str, settings: ServerSettings, server: str = MAIN, moves: int = 0
    ) -> None:
        self.org, self.id, self.name, self.server, self.moves = org, id, name, server, moves
        self.users = 0
        self._settings = settings
        self._written = 0
        self._lock = Lock()
        self._brain: Brain | None = None
        self._tables: Workspace | None = None
        self._agents: AgentMemoryAPI | None = None

    @property
    def path(self) -> Path:
        """The file of this workspace where the server keeps files."""
        return self._settings.data / self.org / f"{self.id}.db"

    @property
    def tenant(self) -> str | None:
        """The tenant where several workspaces share a database; None for a store of its own."""
        return f"{self.org}/{self.id}" if self._settings.own_store is None else None

    @property
    def brain(self) -> Brain:
        with self._lock:
            return self._open_brain()

    @property
    def open_brain(self) -> Brain | None:
        """The Brain if it is open already, without waiting for a thread that opens it."""
        return self._brain

    def _open_brain(self) -> Brain:
        if self._brain is None:
            self._brain = Brain(self.address, embedder=self._settings.embedder)
            self._brain.store.write_mark = self._written
        return self._brain

    @property
    def write_mark(self) -> int:
        """The position of the last write to its memories through this server, which recalls must see."""
        brain = self._brain
        return self._written if brain is None else max(self._written, brain.store.write_mark)

    def note_write(self, mark: int) -> None:
        """Let recalls see what another process of this server has written."""
        self._written = max(self._written, mark)
        if (brain := self._brain) is not None:
            brain.store.write_mark = mark

    @property
    def tables(self) -> Workspace:
        with self._lock:
            if self._tables is None:
                from ..tables.workspace import Workspace

                self._tables = Workspace(self._address(), name=self.name, tenant=self.tenant)
            return self._tables

    @property
    def agents(self) -> AgentMemoryAPI:
        with self._lock:
            if self._agents is None:
                from ..agents import AgentMemoryAPI

                self._agents = AgentMemoryAPI(brain=self._open_brain())
            return self._agents

    @property
    def address(self) -> str:
        """The store of the memories."""
        address = self._address()
        if self._settings.store is None or self.tenant is None:
            return address
        address, settings = tenant_address(address, self.tenant), self._settings
        if self.server != MAIN or not settings.replicas:
            return address
        options = [("replica", replica) for replica in settings.replicas] + [
            ("staleness", str(settings.replica_staleness))
        ]
        return f"{address}&{urlencode(options)}"

    def _address(self) -> str:
        if self._settings.own_store is not None:
            return self._settings.own_store
        if self._settings.store is not None:
            return self._settings.place(self.server)
        make_folder(self.path.parent)
        return str(self.path)

    def erase(self) -> None:
        """Delete all data of the workspace."""
        if self._settings.store is None:
            self.close()
            for ending in ("", "-wal", "-shm", ENDING):
                self.path.with_name(self.path.name + ending).unlink(missing_ok=True)
            return
        try:
            _drop_all(self.tables)
            store = self.brain.store
            store.forget_many([trace.memory_id for trace in store.traces()])
            store.empty_trash(math.inf, who="server")
            store.remove_feedback(store.feedback())
        finally:
            self.close()

    def close(self) -> None:
        with self._lock:
            for part in (self._agents, self._tables, self._brain):
                try:
                    if part is not None:
                        part.close()
                except RemanenceError as error:
                    log.warning("a workspace was not closed as it should be: %s", error)
            self._agents = self._tables = self._brain = None


def _drop_all(tables: Workspace) -> None:
    """Drop every table, those that others refer to after the others."""
    views = [table.name for table in tables.tables() if table.view is not None]
    if views:
        tables.drop_views(views)
    left = [table.name for table in tables.tables()]
    while left:
        refused = []
        for name in left:
            try:
                tables.drop_table(name, missing_ok=True)
            except ConstraintError:
                refused.append(name)
        if len(refused) == len(left):
            raise StoreError(f"tables that refer to each other cannot be dropped: {', '.join(refused)}")
        left = refused


class Spaces:
    """All open workspaces of a server."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._open: OrderedDict[str, Space] = OrderedDict()
        self._removed: set[str] = set()
        self._written: dict[str, int] = {}
        """The marks of writes to workspaces that are not open, where replicas answer recalls."""
        self._change = Condition()

    def __len__(self) -> int:
        return len(self._open)

    def use(self, org: str, id: str, name: str, server: str = MAIN, moves: int = 0) -> Space:
        """Return a workspace that stays open until `leave`. If it was moved to another server since it was opened, open
        it there; others still using the old one finish with that."""
        with self._change:
            if id in self._removed:
                raise StoreClosedError("this workspace was deleted")
            space = self._open.get(id)
            left = None
            if space is not None and space.moves < moves:
                left, space = self._open.pop(id), None
                self._written.pop(id, None)  # positions of another server mean nothing here
            if space is None:
                space = self._open[id] = Space(org, id, name, self._settings, server, moves)
                space.note_write(self._written.pop(id, 0))
            space.users += 1
            self._open.move_to_end(id)
            idle = self._idle()
            if left is not None and not left.users:
                idle.append(left)
        for unused in idle:
            unused.close()
        return space

    def replicas_left_out(self) -> int:
        """Return how many replicas are not used at the moment, as far as an open workspace knows."""
        with self._change:
            brains = [space.open_brain for space in self._open.values()]
        states = next((brain.store.replica_states() for brain in brains if brain is not None), ())
        return sum(state.problem is not None for state in states)

    def leave(self, space: Space) -> None:
        with self._change:
            space.users -= 1
            is_left = not space.users and space.moves < getattr(self._open.get(space.id), "moves", 0)
            self._change.notify_all()
        if is_left:
            space.close()

    def _idle(self) -> list[Space]:
        """Remove the longest unused workspaces while there are too many; return them."""
        chosen = []
        for id, space in list(self._open.items()):
            if len(self._open) <= self._settings.open_workspaces:
                break
            if not space.users:
                chosen.append(self._open.pop(id))
                self._save_mark(id, space.write_mark)
        return chosen

    def note_write(self, id: str, mark: int) -> None:
        """Let recalls see what another process of this server has written to a workspace."""
        with self._change:
            space = self._open.get(id)
            if space is None:
                self._save_mark(id, mark)
            else:
                space.note_write(mark)

    def _save_mark(self, id: str, mark: int) -> None:
        if mark:
            self._written[id] = max(mark, self._written.get(id, 0))

    def close_deleted(self) -> None:
        """Close workspaces that another process has deleted."""
        if self._settings.store is not None or self._settings.own_store is not None:
            return
        with self._change:
            gone = [id for id, space in self._open.items() if not space.users and not space.path.exists()]
            closed = [self._open.pop(id) for id in gone]
        for space in closed:
            space.close()

    def remove(self, org: str, id: str, name: str, server: str = MAIN, *, patience: float = 10.0) -> None:
        """Delete all data of a workspace, after the requests that use it have ended."""
        with self._change:
            self._removed.add(id)
            space = self._open.pop(id, None) or Space(org, id, name, self._settings, server)
            until = time.monotonic() + patience
            while space.users and (left := until - time.monotonic()) > 0:
                self._change.wait(left)
        space.erase()

    def close(self) -> None:
        with self._change:
            spaces = list(self._open.values())
            self._open.clear()
        for space in spaces:
            space.close()
