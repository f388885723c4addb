"""The control data: organisations, workspaces, members with roles, and tokens, in one small SQLite file or in tables of
the same PostgreSQL database. Secrets are stored only as hashes."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import IntEnum
from pathlib import Path
from threading import local
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError, OperationalError

from .. import checks, receipts
from ..errors import (
    InputError,
    StoreBusyError,
    StoreForkedError,
    StoreUnreachableError,
    StoreVersionError,
    TableExistsError,
)
from ..extras import require
from ..forks import Forking, new_lock, watch
from ..private_files import make_file
from .control_tables import (
    ABOUT,
    ANSWERS,
    MEMBERLESS,
    MEMBERS,
    META,
    ORGANIZATIONS,
    PLACEMENTS,
    TOKENS,
    TOKENS_NOW,
    WORKSPACES,
    WORKSPACES_NOW,
    revoke,
)
from .organization_log import OrganizationLogs
from .settings import MAIN, ServerSettings

VERSION = 1
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}\Z")
_SEVERAL = 1000
_FORK_PATIENCE = 5.0  # seconds that a fork waits for threads to let go of their connections


class Role(IntEnum):
    """A role; each includes those before it."""

    READ = 1
    WRITE = 2
    ADMIN = 3


@dataclass(frozen=True, slots=True)
class Organization:
    id: str
    name: str
    created: float


@dataclass(frozen=True, slots=True)
class WorkspaceRecord:
    id: str
    org: str
    name: str
    created: float
    server: str = MAIN
    """The database that it is in."""
    moves: int = 0
    """How often it was moved there from another one."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The server of a workspace, the one it is being moved to, and the one with old rows to be removed."""

    server: str = MAIN
    moves: int = 0
    moving_to: str | None = None
    left: str | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """A role in one workspace, or in all of an organisation's where `workspace` is None."""

    member: str
    role: Role
    workspace: str | None
    created: float


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """A token without its secret. `role` and `workspace` restrict what its member may do."""

    id: str
    org: str
    member: str
    label: str
    role: Role
    workspace: str | None
    created: float
    expires: float
    revoked: float | None
    member_role: Role | None = None
    """The member's role now, where the token may be used; None for somebody who was removed."""

    @property
    def state(self) -> str:
        """valid, expired, revoked, or that its member was removed."""
        if self.member_role is None:
            return "member removed"
        return "revoked" if self.revoked is not None else "expired" if self.expires <= time.time() else "valid"

    @property
    def effective_role(self) -> Role | None:
        """The present role of the token: the lower of its own and its member's."""
        return None if self.member_role is None else min(self.role, self.member_role)


class _Once(local):
    """The transaction of `Control.once` in which a thread is at the moment."""

    link: sa.Connection | None = None


class Control(Forking):
    """The control data of a server. Safe to use from many threads, and from forked children: each has connections of
    its own. Every change is an entry in the log of its organisation, written before the change is committed: there is
    no change without an entry.

    `version` counts the changes made through this object, so that what was derived from them can be dropped.
    """

    def __init__(self, settings: ServerSettings) -> None:
        address = settings.control_address
        self.log = OrganizationLogs(settings)
        self._servers = tuple(settings.servers)
        self.version = 0
        self._once = _Once()
        self._entrance = new_lock()
        self._inside: set[object] = set()
        self._forked: str | None = None
        self._inherited: list[sa.Pool] = []
        self._engine = _engine(address)
        self._reading = _engine(address, isolation_level="AUTOCOMMIT")
        watch(self)
        try:
            with self.writing() as link:
                META.create_all(link)
                known = link.execute(sa.select(ABOUT.c.value).where(ABOUT.c.name == "version")).scalar()
                if known is None:
                    link.execute(ABOUT.insert().values(name="version", value=str(VERSION)))
                elif int(known) > VERSION:
                    raise StoreVersionError("the control data was written by a newer version of Remanence")
        except BaseException:
            self.close()
            raise

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        with self._in_use(), _translate_errors(), self._reading.connect() as link:
            yield link

    @contextmanager
    def writing(self, *, counted: bool = True) -> Iterator[sa.Connection]:
        """Run one write transaction, or join that of `once`. `counted=False` for changes that affect no rights."""
        if self._once.link is not None:
            yield self._once.link
            return
        with self._in_use(), _translate_errors(), self._engine.begin() as link:
            yield link
        if counted:
            self.version += 1

    def scrub(self) -> None:
        """Erase removed rows from the file."""
        on_sqlite = self._reading.dialect.name == "sqlite"
        commands = ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)") if on_sqlite else (f"VACUUM FULL {ANSWERS.name}",)
        with self.reading() as link:
            for command in commands:
                link.exec_driver_sql(command)

    def once(self, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Run `work` in one transaction; for a request with an idempotency key (`rmem.receipts`) only once."""
        request = receipts.current()
        if request is None:
            return work()
        key = request.key("control")
        try:
            with self.writing() as link:
                kept = link.execute(sa.select(ABOUT.c.value).where(ABOUT.c.name == key)).scalar()
                if kept is not None:
                    request.replayed = True
                    return dict(json.loads(kept))
                self._once.link = link
                try:
                    result = work()
                finally:
                    self._once.link = None
                link.execute(ABOUT.insert().values(name=key, value=json.dumps(result)))
        except IntegrityError:
            raise StoreBusyError("another server is doing the same request") from None
        request.done["control"] += 1
        return result

    def clean_receipts(self, link: sa.Connection) -> None:
        """Delete expired receipts."""
        name = ABOUT.c.name
        link.execute(ABOUT.delete().where(name > receipts.PREFIX, name < receipts.oldest_kept()))

    # Forks

    @contextmanager
    def _in_use(self) -> Iterator[None]:
        """Use a connection, and make forks wait for it."""
        mark = object()
        with self._entrance:
            if self._forked is not None:
                raise StoreForkedError(self._forked)
            self._inside.add(mark)
        try:
            yield
        finally:
            self._inside.discard(mark)

    def before_fork(self) -> None:
        """Close idle connections: SQLite's locks belong to a process, so a child must not inherit connections."""
        self._entrance.acquire()
        if self._engine.dialect.name == "sqlite":
            until = time.monotonic() + _FORK_PATIENCE
            while self._inside and time.monotonic() < until:
                time.sleep(0.001)
            self._dispose()

    def after_fork_in_parent(self) -> None:
        self._entrance.release()

    def after_fork_in_child(self) -> None:
        if self._engine.dialect.name == "sqlite" and self._inside:
            self._forked = "this process was forked while a thread used the control data; fork before, or start it anew"
        self._inside = set()
        for engine in (self._engine, self._reading):
            self._inherited.append(engine.pool)  # the collector must not close what is the parent's
            engine.dispose(close=False)

    def check(self) -> None:
        """Raise unless the database answers."""
        with self.reading() as link:
            link.execute(sa.select(ABOUT.c.value))

    # Organisations

    def organizations(self) -> list[Organization]:
        with self.reading() as link:
            return [Organization(*row) for row in link.execute(sa.select(ORGANIZATIONS).order_by("name"))]

    def organization(self, named: str) -> Organization | None:
        """Find an organisation by id or name."""
        either = sa.or_(ORGANIZATIONS.c.id == named, ORGANIZATIONS.c.name == named)
        with self.reading() as link:
            row = link.execute(sa.select(ORGANIZATIONS).where(either)).first()
        return None if row is None else Organization(*row)

    def create_organization(self, name: str) -> Organization:
        made = Organization(str(uuid.uuid4()), known_name("name", name), time.time())
        with self._unique(f"the organisation {name!r} already exists"), self.writing() as link:
            link.execute(ORGANIZATIONS.insert().values(id=made.id, name=made.name, created=made.created))
            self.log.record(made.id, "create organisation", name=made.name)
        return made

    # Workspaces

    def workspaces(self, org: str, *, after: str = "", limit: int = _SEVERAL) -> list[WorkspaceRecord]:
        statement = WORKSPACES_NOW.where(WORKSPACES.c.org == org, WORKSPACES.c.name > after)
        with self.reading() as link:
            return [WorkspaceRecord(*row) for row in link.execute(statement.order_by("name").limit(limit))]

    def workspace(self, org: str, name: str) -> WorkspaceRecord | None:
        statement = WORKSPACES_NOW.where(WORKSPACES.c.org == org, WORKSPACES.c.name == name)
        with self.reading() as link:
            row = link.execute(statement).first()
        return None if row is None else WorkspaceRecord(*row)

    def create_workspace(self, org: str, name: str) -> WorkspaceRecord:
        """Create a workspace on the server that has the fewest."""
        id, now = str(uuid.uuid4()), time.time()
        with self._unique(f"the workspace {name!r} already exists"), self.writing() as link:
            made = WorkspaceRecord(id, org, known_name("name", name), now, self._least_used(link))
            link.execute(WORKSPACES.insert().values(id=made.id, org=org, name=made.name, created=made.created))
            if made.server != MAIN:
                link.execute(PLACEMENTS.insert().values(workspace=made.id, server=made.server, moves=0))
            self.log.record(org, "create workspace", workspace=made.id, name=made.name)
        return made

    def _least_used(self, link: sa.Connection) -> str:
        if not self._servers:
            return MAIN
        counted = sa.select(PLACEMENTS.c.server, sa.func.count()).group_by(PLACEMENTS.c.server)
        used: dict[str, int] = dict(link.execute(counted).all())
        total = link.execute(sa.select(sa.func.count()).select_from(WORKSPACES)).scalar_one()
        used[MAIN] = total - sum(count for server, count in used.items() if server != MAIN)
        return min((MAIN, *self._servers), key=lambda server: used.get(server, 0))

    def placement(self, workspace: str) -> Placement:
        columns = (PLACEMENTS.c.server, PLACEMENTS.c.moves, PLACEMENTS.c.moving_to, PLACEMENTS.c.left)
        with self.reading() as link:
            row = link.execute(sa.select(*columns).where(PLACEMENTS.c.workspace == workspace)).first()
        return Placement() if row is None else Placement(*row)

    def place(self, org: str, workspace: str, placed: Placement) -> None:
        values = asdict(placed)
        with self.writing() as link:
            before = link.execute(sa.select(PLACEMENTS.c.moves).filter_by(workspace=workspace)).scalar()
            if before is None:
                link.execute(PLACEMENTS.insert().values(workspace=workspace, **values))
            else:
                link.execute(PLACEMENTS.update().where(PLACEMENTS.c.workspace == workspace).values(**values))
            if placed.moves > (before or 0):
                self.log.record(org, "move workspace", workspace=workspace, server=placed.server)

    def delete_workspace(self, org: str, name: str) -> WorkspaceRecord | None:
        """Remove a workspace and its memberships; the caller removes its data."""
        with self.writing() as link:
            statement = WORKSPACES_NOW.where(WORKSPACES.c.org == org, WORKSPACES.c.name == name)
            row = link.execute(statement).first()
            if row is None:
                return None
            gone = WorkspaceRecord(*row)
            if link.execute(sa.select(PLACEMENTS.c.moving_to).filter_by(workspace=gone.id)).scalar() is not None:
                raise StoreBusyError("the workspace is being moved to another server; delete it when that is done")
            link.execute(PLACEMENTS.delete().where(PLACEMENTS.c.workspace == gone.id))
            link.execute(MEMBERS.delete().where(MEMBERS.c.org == org, MEMBERS.c.workspace == gone.id))
            link.execute(TOKENS.delete().where(TOKENS.c.org == org, TOKENS.c.workspace == gone.id))
            link.execute(ANSWERS.delete().where(ANSWERS.c.scope.startswith(f"{org}/{gone.id}/", autoescape=True)))
            link.execute(WORKSPACES.delete().where(WORKSPACES.c.id == gone.id))
            self.log.record(org, "delete workspace", workspace=gone.id, name=name)
        return gone

    # Members

    def members(
        self, org: str, workspace: str | None = None, *, after: str = "", limit: int = _SEVERAL
    ) -> list[Member]:
        """Return those of one workspace (by its id), or those of the whole organisation."""
        statement = sa.select(MEMBERS.c.member, MEMBERS.c.role, MEMBERS.c.created).where(
            MEMBERS.c.org == org, MEMBERS.c.workspace == (workspace or ""), MEMBERS.c.member > after
        )
        with self.reading() as link:
            rows = link.execute(statement.order_by("member").limit(limit)).all()
        return [Member(row.member, Role(row.role), workspace, row.created) for row in rows]

    def all_members(self, org: str, workspace: str) -> list[str]:
        """The names of all who have a role in a workspace (by its id) or in its organisation."""
        asked = sa.select(MEMBERS.c.member).where(MEMBERS.c.org == org, MEMBERS.c.workspace.in_(("", workspace)))
        with self.reading() as link:
            return list(link.execute(asked.distinct()).scalars())

    def set_member(self, org: str, member: str, role: Role, workspace: str | None = None) -> Member:
        """Set the role of a member. A new member starts without tokens."""
        kept = Member(checks.name("member", member, maximum=200), Role(role), workspace, time.time())
        own = {"org": org, "workspace": workspace or "", "member": kept.member}
        with self.writing() as link:
            was = link.execute(sa.select(MEMBERS.c.role).filter_by(**own)).scalar()
            if was is None:
                revoke(link, TOKENS.c.org == org, TOKENS.c.member == kept.member, MEMBERLESS)
            link.execute(MEMBERS.delete().filter_by(**own))
            link.execute(MEMBERS.insert().values(**own, role=int(role), created=kept.created))
            about = {"member": kept.member, "role": kept.role.name, "workspace": workspace}
            if was is None:
                self.log.record(org, "add member", **about)
            elif was != role:
                self.log.record(org, "change role", **about, before=Role(was).name)
        return kept

    def remove_member(self, org: str, member: str, workspace: str | None = None) -> bool:
        """Remove a role, with the tokens for that workspace alone; with the last role remove all tokens."""
        own = {"org": org, "workspace": workspace or "", "member": member}
        with self.writing() as link:
            if not link.execute(MEMBERS.delete().filter_by(**own)).rowcount:
                return False
            revoked = revoke(link, TOKENS.c.org == org, TOKENS.c.member == member, MEMBERLESS)
            self.log.record(org, "remove member", member=member, workspace=workspace, revoked=revoked or None)
        return True

    def role_of(self, org: str, member: str, workspace: str | None) -> Role | None:
        """Return the higher of somebody's roles in the organisation and in a workspace (by its id)."""
        statement = sa.select(sa.func.max(MEMBERS.c.role)).where(
            MEMBERS.c.org == org, MEMBERS.c.member == member, MEMBERS.c.workspace.in_(("", workspace or ""))
        )
        with self.reading() as link:
            found = link.execute(statement).scalar()
        return None if found is None else Role(found)

    def is_member(self, org: str, member: str) -> bool:
        statement = sa.select(sa.func.count()).where(MEMBERS.c.org == org, MEMBERS.c.member == member)
        with self.reading() as link:
            return bool(link.execute(statement).scalar())

    # Tokens

    def keep_token(self, hashed: str, record: TokenRecord) -> None:
        """Store a token of a member; InputError if the member does not exist."""
        own = {"org": record.org, "member": record.member}
        with self.writing() as link:
            # Locked, so that whoever removes the member at the same time ends this token too.
            if link.execute(sa.select(MEMBERS.c.role).filter_by(**own).with_for_update()).first() is None:
                raise InputError(f"member {record.member!r} does not exist; add it first", field="member")
            values = {column.name: getattr(record, column.name) for column in TOKENS.c if column.name != "hash"}
            link.execute(TOKENS.insert().values(hash=hashed, **{**values, "role": int(record.role)}))
            about = {"member": record.member, "role": record.role.name, "workspace": record.workspace}
            self.log.record(record.org, "create token", id=record.id, **about, expires=record.expires)

    def token(self, hashed: str) -> TokenRecord | None:
        with self.reading() as link:
            row = link.execute(TOKENS_NOW.where(TOKENS.c.hash == hashed)).first()
        return None if row is None else _token(row)

    def tokens(self, org: str, *, after: str = "", limit: int = _SEVERAL) -> list[TokenRecord]:
        statement = TOKENS_NOW.where(TOKENS.c.org == org, TOKENS.c.id > after).order_by(TOKENS.c.id).limit(limit)
        with self.reading() as link:
            return [_token(row) for row in link.execute(statement)]

    def revoke_token(self, org: str, id: str) -> bool:
        """Revoke a token; return whether it exists. Revoking twice is harmless."""
        own = sa.and_(TOKENS.c.org == org, TOKENS.c.id == id)
        with self.writing() as link:
            member = link.execute(sa.select(TOKENS.c.member).where(own)).scalar()
            if member is not None and revoke(link, own):
                self.log.record(org, "revoke token", id=id, member=member)
        return member is not None

    @contextmanager
    def _unique(self, message: str) -> Iterator[None]:
        try:
            yield
        except IntegrityError:
            raise TableExistsError(message) from None

    def _dispose(self) -> None:
        self._engine.dispose()
        self._reading.dispose()

    def close(self) -> None:
        self._dispose()
        self.log.close()


def known_name(field: str, value: object) -> str:
    """Return the name of an organisation or a workspace."""
    if not isinstance(value, str) or not _NAME.match(value):
        raise checks.refuse(field, "1 to 63 letters, digits, '.', '_' or '-', the first a letter or digit", value)
    return value


def role_named(field: str, value: object) -> Role:
    """Parse READ, WRITE or ADMIN, in any case."""
    if isinstance(value, str) and value.upper() in Role.__members__:
        return Role[value.upper()]
    raise InputError(f"{field} must be READ, WRITE or ADMIN, got {checks.shown(value)}", field=field)


def _token(row: Any) -> TokenRecord:
    values = {name: getattr(row, name) for name in TokenRecord.__slots__}
    role = None if row.member_role is None else Role(row.member_role)
    return TokenRecord(**{**values, "role": Role(row.role), "member_role": role})


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except OperationalError as error:
        raise StoreUnreachableError(f"the control data cannot be reached: {error.orig}") from error


def _engine(address: str, **options: Any) -> sa.Engine:
    if address.startswith(("postgresql://", "postgres://")):
        require("postgres", "PostgreSQL")
        from ..stores.sql.postgres_pool import hide_from_children

        url = "postgresql+psycopg://" + address.partition("://")[2]
        made = sa.create_engine(url, pool_pre_ping=True, pool_size=5, max_overflow=15, **options)
        sa.event.listen(made, "connect", lambda link, _record: hide_from_children(link))
        return made
    path = Path(address)
    make_file(path)
    place = sa.URL.create("sqlite", database=str(path))
    engine = sa.create_engine(place, connect_args={"timeout": 30.0}, pool_size=5, max_overflow=40, **options)

    @sa.event.listens_for(engine, "connect")
    def prepare(link: Any, _record: object) -> None:
        link.isolation_level = None  # transactions are begun below
        link.execute("PRAGMA journal_mode = WAL")
        link.execute("PRAGMA synchronous = FULL")
        link.execute("PRAGMA foreign_keys = ON")
        link.execute("PRAGMA secure_delete = ON")  # what is removed is overwritten

    if not options:

        @sa.event.listens_for(engine, "begin")
        def begin(link: sa.Connection) -> None:
            link.exec_driver_sql("BEGIN IMMEDIATE")

    return engine
