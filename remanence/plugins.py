"""Plugins: stores and embedders that other distributions bring along as entry points. Finding them reads metadata
only; a plugin is imported when its name is used, so that a broken one harms nobody who does not ask for it."""

from __future__ import annotations

import re
from collections import Counter
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple

from .errors import ConfigError

GROUPS = {"store": "remanence.stores", "embedder": "remanence.embedders"}
BUILT_IN = {
    "store": frozenset({"sqlite", "memory", "file", "redis", "rediss", "postgres", "postgresql"}),
    "embedder": frozenset({"static", "minilm", "onnx", "http", "https", "none", "function"}),
}
_NAME = re.compile(r"[a-z][a-z0-9+.-]*")


class Plugin(NamedTuple):
    """One entry point. `problem` says why it cannot be used, as far as that shows without loading it."""

    kind: str
    name: str
    target: str
    distribution: str
    version: str
    problem: str | None
    entry: EntryPoint

    @property
    def origin(self) -> str:
        return f"{self.distribution} {self.version}".strip()

    def load(self) -> Any:
        """The object behind the entry point; a ConfigError says why it cannot be had."""
        if self.problem is not None:
            raise ConfigError(f"the {self.kind} plugin {self.name!r} of {self.origin} cannot be used: {self.problem}")
        try:
            found = self.entry.load()
        except (Exception, SystemExit) as error:  # a plugin may fail in any way, and not take us along
            raise ConfigError(
                f"the {self.kind} plugin {self.name!r} of {self.origin} did not load: {reason(error)}"
            ) from error
        if not callable(found):
            raise ConfigError(
                f"the {self.kind} plugin {self.name!r} of {self.origin} must be a class or a function, "
                f"but {self.target} is a {type(found).__name__}"
            )
        return found


def reason(error: BaseException) -> str:
    """An error of a plugin in one line, its kind first."""
    return f"{type(error).__name__}: {error}".rstrip(": ").replace("\n", " ")


def installed(kind: str) -> list[Plugin]:
    """All plugins of a kind, "store" or "embedder", by name; none of them is loaded."""
    entries = entry_points(group=GROUPS[kind])
    taken = Counter(entry.name for entry in entries)
    found = []
    for entry in entries:
        source = entry.dist
        problem = None
        if entry.name in BUILT_IN[kind]:
            problem = f"{entry.name!r} is built in, and nothing can take its place"
        elif not _NAME.fullmatch(entry.name):
            problem = "a name must be a small letter, then small letters, digits, '+', '.' and '-'"
        elif taken[entry.name] > 1:
            others = {other.dist.name for other in entries if other.name == entry.name and other.dist is not None}
            named = ", ".join(sorted(others - {"" if source is None else source.name}))
            problem = f"{named or 'the same distribution'} brings a {kind} of that name too; uninstall one of them"
        found.append(
            Plugin(
                kind,
                entry.name,
                entry.value,
                "unknown" if source is None else source.name,
                "" if source is None else source.version,
                problem,
                entry,
            )
        )
    return sorted(found, key=lambda plugin: (plugin.name, plugin.distribution))


def plugin(kind: str, name: str) -> Plugin | None:
    """The plugin of that name; None if nobody brings one."""
    return next((one for one in installed(kind) if one.name == name), None)
