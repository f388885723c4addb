"""Tokens: HS256 JWTs that name an organisation (`OrgID`) and a member (`sub`), signed with a secret of this server.

A token proves who calls; rights are looked up in the control data, so that a removed role or token counts at once.
Lookups are cached for a second, after which changes by other processes are seen."""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import jwt
from cachetools import TTLCache

from .. import checks
from ..errors import ConfigError
from ..private_files import make_file, publish
from .control import Control, Role, TokenRecord
from .settings import MAIN

ALGORITHM = "HS256"
CLAIMS = ("OrgID", "sub", "jti", "iat", "exp")
KEPT_SECONDS = 1.0
MAX_DAYS = 3650
DAY = 86_400.0
_MAX_LENGTH = 4096
_LEEWAY = 5  # seconds that the clocks of two servers may differ


class Refused(Exception):
    """An invalid token; the message may be sent to the caller."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller. `role` and `workspace` (an id) are the most that the token allows."""

    org: str
    org_name: str
    member: str
    token_id: str
    role: Role
    workspace: str | None
    expires: float


@dataclass(frozen=True, slots=True)
class WorkspaceRole:
    """What a caller may do in one workspace."""

    workspace_id: str
    role: Role
    server: str = MAIN
    moves: int = 0
    """Where it is, and how often it was moved."""


class Tokens:
    """Issues tokens and identifies their callers. Safe to use from many threads."""

    def __init__(self, control: Control, secret: str) -> None:
        self._control = control
        self._secret = secret
        self._callers: TTLCache[str, Caller] = TTLCache(10_000, KEPT_SECONDS)
        self._workspace_roles: TTLCache[tuple[str, str], WorkspaceRole | None] = TTLCache(10_000, KEPT_SECONDS)
        self._version = control.version
        self._lock = Lock()  # of the two caches

    def issue(
        self,
        org: str,
        member: str,
        *,
        role: Role = Role.ADMIN,
        workspace: str | None = None,
        days: float = 90.0,
        label: str = "",
    ) -> tuple[str, TokenRecord]:
        """Issue a token; return it, which is not stored, and its record."""
        now = time.time()
        expires = now + checks.number("days", days, low=1 / 86_400, high=MAX_DAYS) * DAY
        name = secrets.token_hex(16)
        claims = {"OrgID": org, "sub": member, "jti": name, "iat": int(now), "exp": int(expires)}
        hashed = _hash(name)
        label = checks.name("label", label, maximum=200) if label else ""
        record = TokenRecord(hashed[:16], org, member, label, role, workspace, now, float(int(expires)), None)
        self._control.keep_token(hashed, record)
        record = self._control.token(hashed) or record
        return jwt.encode(claims, self._secret, algorithm=ALGORITHM), record

    def known(self, token: str) -> Caller | None:
        """Return the caller of a token if it was looked up within the last second."""
        with self._lock:
            self._drop_outdated()
            caller = self._callers.get(token)
        return caller if caller is not None and caller.expires > time.time() else None

    def caller(self, token: str) -> Caller:
        """Return the caller of a token; Refused if it is forged, expired or revoked."""
        version = self._control.version
        if len(token) > _MAX_LENGTH:
            raise Refused("the token is not valid")
        try:
            claims = jwt.decode(
                token, self._secret, algorithms=[ALGORITHM], options={"require": list(CLAIMS)}, leeway=_LEEWAY
            )
        except jwt.ExpiredSignatureError:
            raise Refused("the token has expired") from None
        except (jwt.PyJWTError, ValueError, RecursionError):
            raise Refused("the token is not valid") from None
        org, member, name = claims["OrgID"], claims["sub"], claims["jti"]
        record = self._control.token(_hash(name)) if isinstance(name, str) else None
        if record is None or (record.org, record.member) != (org, member):
            raise Refused("the token is not valid")
        if record.revoked is not None:
            raise Refused("the token was revoked")
        if record.expires <= time.time():
            raise Refused("the token has expired")
        home = self._control.organization(record.org)
        if home is None:
            raise Refused("the token is not valid")
        caller = Caller(record.org, home.name, record.member, record.id, record.role, record.workspace, record.expires)
        with self._lock:
            if version == self._control.version:
                self._callers[token] = caller
        return caller

    def known_workspace_role(self, caller: Caller, workspace: str) -> tuple[bool, WorkspaceRole | None]:
        """Return whether the role was looked up within the last second, and the result."""
        with self._lock:
            self._drop_outdated()
            try:
                return True, self._workspace_roles[caller.token_id, workspace]
            except KeyError:
                return False, None

    def workspace_role(self, caller: Caller, workspace: str) -> WorkspaceRole | None:
        """Return the caller's role in a workspace, by its name; None if it may not know of it.

        A missing workspace, one of another organisation and one without a role take the same two queries.
        """
        version = self._control.version
        record = self._control.workspace(caller.org, workspace)
        role = self._control.role_of(caller.org, caller.member, "-" if record is None else record.id)
        found = None
        if record is not None and role is not None and caller.workspace in (None, record.id):
            found = WorkspaceRole(record.id, min(role, caller.role), record.server, record.moves)
        with self._lock:
            if version == self._control.version:
                self._workspace_roles[caller.token_id, workspace] = found
        return found

    def role_in_organization(self, caller: Caller) -> Role | None:
        """Return the caller's role in the whole organisation; None if it has only workspaces."""
        if caller.workspace is not None:
            return None
        role = self._control.role_of(caller.org, caller.member, None)
        return None if role is None else min(role, caller.role)

    def _drop_outdated(self) -> None:
        if self._version != self._control.version:
            self._version = self._control.version
            self._callers.clear()
            self._workspace_roles.clear()


def signing_secret(data: Path) -> str:
    """Return the secret that signs tokens: $RMEM_SERVER_SECRET, or a file of the data folder that is made once."""
    given = os.environ.get("RMEM_SERVER_SECRET", "")
    if given:
        if len(given) < 32:
            raise ConfigError("RMEM_SERVER_SECRET must have at least 32 characters")
        return given
    return secret_file(data / "secret.key")


def secret_file(path: Path) -> str:
    """Return a secret in a file that only this user can read, made when there is none."""
    if not path.exists():
        fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
        make_file(fresh)
        with fresh.open("w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(48))
            file.flush()
            os.fsync(file.fileno())
        publish(fresh, path)
    secret = path.read_text(encoding="ascii").strip()
    if len(secret) < 32:
        raise ConfigError(f"{path} must hold a secret of at least 32 characters")
    return secret


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
