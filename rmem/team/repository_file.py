"""`.rmem.toml`, the settings of a repository: its id, the workspace and scope of what is remembered there, and an
opt-out. It cannot opt anybody in and must not contain a token: everybody who clones the repository gets it."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..old_names import REPOSITORY_FILES
from .identity import root_of

KEYS = ("repository", "workspace", "scope", "capture", "recall")
SCOPES = ("personal", "repository", "organisation")
_SECRET = re.compile(r"token|secret|passw|passphrase|credential|api_?key|private_?key|bearer")
_TOKEN = re.compile(r"^eyJ[\w-]+\.[\w-]+\.[\w-]*$")
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")
_ADDRESS = re.compile(r"^[A-Za-z0-9](?:[\w.:@/~+-]{0,254}\w)?$")
_LONGEST = 64 << 10


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one repository. `capture` and `recall` are False if it opts out; True changes nothing. `ignored`
    lists keys that this version does not know."""

    path: Path
    repository: str | None = None
    workspace: str | None = None
    scope: str | None = None
    capture: bool = True
    recall: bool = True
    ignored: tuple[str, ...] = ()


def find(path: str | Path) -> Path | None:
    """Return the nearest settings file between a folder and the root of its repository, or None. Links that leave the
    repository are not followed."""
    start = Path(path).absolute()
    top = root_of(start)
    if top is None:
        return None
    root = top.resolve()
    for folder in (start, *start.parents):
        for candidate in (folder / name for name in REPOSITORY_FILES):
            if candidate.is_file() and candidate.resolve().is_relative_to(root):
                return candidate
        if folder == top:
            break
    return None


def settings_of(path: str | Path) -> Settings | None:
    found = find(path)
    return None if found is None else read_settings(found)


def read_settings(path: Path) -> Settings:
    """Read and check a settings file. ConfigError names the bad key and never repeats a secret."""
    table = _parse(path)
    for name, value in _walk(table):
        if _SECRET.search(name.lower().replace("-", "_")) or (isinstance(value, str) and _TOKEN.match(value)):
            raise ConfigError(
                f"{path}: {name!r} looks like a secret. The file is shared with everybody who has the repository and "
                "may not hold one: take it out, revoke it, and use `rmem login`"
            )
    unknown = [key for key in table if key not in KEYS]
    for key in unknown:
        near = difflib.get_close_matches(key, KEYS, n=1, cutoff=0.7)
        if near:
            raise ConfigError(f"{path}: there is no key {key!r}; did you mean {near[0]!r}?")
    return Settings(
        path,
        repository=_text(path, table, "repository"),
        workspace=_text(path, table, "workspace"),
        scope=_text(path, table, "scope"),
        capture=_switch(path, table, "capture"),
        recall=_switch(path, table, "recall"),
        ignored=tuple(unknown),
    )


def _parse(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(_LONGEST + 1)
        if len(data) > _LONGEST:
            raise ConfigError(f"{path} is larger than {_LONGEST >> 10} KB")
        return tomllib.loads(data.decode("utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text: byte {error.start} is not") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None


def _walk(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value with its key."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key, inner
            yield from _walk(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield name, inner
            yield from _walk(inner, name)


def _text(path: Path, table: dict[str, Any], key: str) -> str | None:
    value = table.get(key)
    if value is None:
        return None
    if key == "scope" and value not in SCOPES:
        raise ConfigError(f"{path}: scope must be one of {', '.join(SCOPES)}, got {value!r}")
    if key == "repository":
        if not isinstance(value, str) or not _ADDRESS.match(value):
            raise ConfigError(f"{path}: repository must be an address like github.com/acme/etl, got {value!r}")
        return value
    if not isinstance(value, str) or not _NAME.match(value):
        raise ConfigError(f"{path}: {key} must be a name of letters, digits, '.', '_' and '-', got {value!r}")
    return value


def _switch(path: Path, table: dict[str, Any], key: str) -> bool:
    value = table.get(key, True)
    if not isinstance(value, bool):
        raise ConfigError(f"{path}: {key} must be true or false, got {value!r}")
    return value
