"""The server that this user shares with: address and workspace in one file, the token in another that only its owner
can read."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from ..errors import ConfigError
from . import paths
from .atomic_files import replace_file


@dataclass(frozen=True, slots=True)
class Login:
    """A workspace of a server."""

    url: str
    workspace: str
    org: str = ""
    member: str = ""


def token_file() -> Path:
    return paths.folder() / "token"


def login() -> tuple[Login, str] | None:
    try:
        saved = json.loads(paths.login().read_text(encoding="utf-8"))
        token = token_file().read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ConfigError(f"the login cannot be read: {error}; run `rmem login` again") from None
    try:
        return Login(**saved), token
    except TypeError:
        raise ConfigError("the login was written by another version; run `rmem login` again") from None


def keep(given: Login, token: str) -> None:
    """Store a login. The token is written first, so that there is never a login without one."""
    replace_file(token_file(), token.encode())
    replace_file(paths.login(), json.dumps(asdict(given)).encode())


def drop() -> bool:
    """Delete the login; return whether there was one."""
    known = paths.login().exists()
    for path in (paths.login(), token_file()):
        path.unlink(missing_ok=True)
    return known
