"""Move a workspace from one database server to another while it is in use: memories by `stores.sql.postgres_move`,
tables by `tables.move`, then the placement in the control data. Writers wait only for the last step."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import psycopg

from ..errors import InputError, StoreBusyError, StoreUnreachableError
from ..stores.sql.postgres import HELD_UP_TO
from ..stores.sql.postgres_link import Address, connect
from ..stores.sql.postgres_move import TenantMove
from ..tables.engines import postgres_catalog as catalog
from ..tables.engines.postgres import PostgresEngine
from ..tables.move import TableMove
from .control import Control, Organization, Placement
from .settings import ServerSettings

Progress = Callable[[int, int], None]

_PASSES = 5  # before writers have to wait, as long as much is left to copy
_FEW_CHUNKS = 8  # chunks that are left for the last step
_LOCK = 0x524D454D  # with the number of a workspace: an advisory lock of the first database


def move_workspace(
    settings: ServerSettings,
    control: Control,
    org: Organization,
    workspace: str,
    to: str,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Move a workspace to the server `to`, or continue an interrupted move; return how long writers had to wait."""
    found = control.workspace(org.id, workspace)
    if found is None:
        raise InputError(f"there is no workspace {workspace!r} in {org.name}", field="workspace")
    settings.place(to)
    tenant = f"{org.id}/{found.id}"
    with _move_lock(settings, found.id):
        placed = control.placement(found.id)
        if placed.moving_to not in (None, to):
            raise StoreBusyError(
                f"it is being moved to {placed.moving_to}; finish that first, with --to {placed.moving_to}"
            )
        if placed.left is not None:
            placed = _finish(settings, control, org.id, found.id, placed)
        result: dict[str, Any] = {"workspace": f"{org.name}/{workspace}", "server": to, "from": placed.server}
        if placed.server == to:
            return {**result, "moved": False, "locked_seconds": 0.0}
        move = TenantMove(settings.place(placed.server), settings.place(to), tenant)
        seconds = 0.0
        if move.left_for is None:
            control.place(org.id, found.id, replace(placed, moving_to=to))
            seconds = _copy(settings, move, tenant, placed.server, to, on_progress)
        move.arrive()
        placed = Placement(to, placed.moves + 1, None, placed.server)
        control.place(org.id, found.id, placed)
        _finish(settings, control, org.id, found.id, placed)
    return {**result, "moved": True, "locked_seconds": seconds}


def _copy(
    settings: ServerSettings, move: TenantMove, tenant: str, source: str, to: str, on_progress: Progress | None
) -> float:
    """Copy everything, the last part while writers are blocked; return the seconds that they waited."""
    move.begin()
    for _ in range(_PASSES):
        if move.copy(on_progress) <= _FEW_CHUNKS:
            break
    move.build_index(HELD_UP_TO)
    with _tables(settings, source, to, tenant) as copy_tables:
        copy_tables()
        begun = time.monotonic()
        with move.locked() as raw:
            own = catalog.lock(cast(Any, raw), tenant)
            move.copy()
            copy_tables()
            if own is not None:
                catalog.leave(cast(Any, raw), own)
            move.leave(raw, to)
        return time.monotonic() - begun


@contextmanager
def _tables(settings: ServerSettings, source: str, to: str, tenant: str) -> Iterator[Callable[[], None]]:
    """Yield a function that copies the tables of the source to the target."""
    with connect(Address.of(settings.place(source))) as raw:
        if not catalog.is_known(raw, tenant):
            yield lambda: None
            return
    with connect(Address.of(settings.place(to))) as raw, raw.transaction():
        catalog.erase_moved(raw, tenant)
    old, new = (PostgresEngine(settings.place(name), tenant=tenant, connections=4) for name in (source, to))

    def copy() -> None:
        TableMove(old, new, replace=True).copy(lambda _: None)
        with connect(Address.of(settings.place(source))) as raw:
            kept = catalog.receipts_of(raw, tenant)
        with connect(Address.of(settings.place(to))) as raw, raw.transaction():
            catalog.adopt_receipts(raw, tenant, kept)

    try:
        yield copy
    finally:
        old.close()
        new.close()


def _finish(settings: ServerSettings, control: Control, org: str, workspace: str, placed: Placement) -> Placement:
    """Remove the rows of the last move from the old server."""
    assert placed.left is not None
    tenant = f"{org}/{workspace}"
    TenantMove(settings.place(placed.left), settings.place(placed.server), tenant).erase_source()
    with connect(Address.of(settings.place(placed.left))) as raw, raw.transaction():
        if catalog.is_known(raw, tenant):
            catalog.erase_left(raw, tenant)
    placed = replace(placed, left=None)
    control.place(org, workspace, placed)
    return placed


@contextmanager
def _move_lock(settings: ServerSettings, workspace: str) -> Iterator[None]:
    """Hold the lock against concurrent moves of the same workspace."""
    assert settings.store is not None
    try:
        with connect(Address.of(settings.store)) as raw:
            row = raw.execute("SELECT pg_try_advisory_lock(%s, hashtext(%s))", [_LOCK, workspace]).fetchone()
            if row != (True,):
                raise StoreBusyError("another process is moving this workspace; wait until it is done")
            yield
    except psycopg.OperationalError as error:
        raise StoreUnreachableError(f"a server went away during the move; run it again: {error}") from error
