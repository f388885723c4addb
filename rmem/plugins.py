"""Plugins: stores, embedders and commands that other distributions provide as entry points. Finding them reads metadata
only; a plugin is imported when its name is used, so that a broken one affects nobody else."""

from __future__ import annotations

import re
from importlib.metadata import Distribution, EntryPoint, distributions
from typing import Any, NamedTuple

from .errors import ConfigError

GROUPS = {"store": "rmem.stores", "embedder": "rmem.embedders", "command": "rmem.commands"}
BUILT_IN = {
    "store": frozenset({"sqlite", "memory", "file", "redis", "rediss", "postgres", "postgresql"}),
    "embedder": frozenset(
        {"static", "minilm", "onnx", "http", "https", "ollama", "sentence-transformers", "none", "function"}
    ),
    "command": frozenset[str](),  # the command line looks for its own first
}
_NAME = re.compile(r"[a-z][a-z0-9+.-]*")


class Plugin(NamedTuple):
    """One entry point. `problem` says why it cannot be used, if that is known without loading it."""

    kind: str
    name: str
    target: str
    distribution: str
    version: str
    problem: str | None
    entry: EntryPoint | None

    @property
    def summary(self) -> str:
        """Return the summary line of its distribution."""
        found = None if self.entry is None or self.entry.dist is None else self.entry.dist.metadata["Summary"]
        return found or f"From {self.origin}."

    @property
    def origin(self) -> str:
        return f"{self.distribution} {self.version}".strip()

    def load(self) -> Any:
        """Import the object of the entry point; a ConfigError says why it cannot be used."""
        if self.problem is not None or self.entry is None:
            raise ConfigError(f"the {self.kind} plugin {self.name!r} of {self.origin} cannot be used: {self.problem}")
        try:
            found = self.entry.load()
        except (Exception, SystemExit) as error:  # a failing plugin must not end the program
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
    """Describe an error of a plugin in one line, its class first."""
    return f"{type(error).__name__}: {error}".rstrip(": ").replace("\n", " ")


def installed(kind: str) -> list[Plugin]:
    """Return all plugins of a kind (a key of GROUPS) by name, without loading them."""
    found = [plugin for source in distributions() for plugin in _plugins_of(source, kind)]
    # The first distribution of a name on the path hides later ones, as for modules.
    homes = {(plugin.name, plugin.distribution): plugin for plugin in reversed(found)}
    owners: dict[str, set[str]] = {}
    for name, distribution in homes:
        owners.setdefault(name, set()).add(distribution)
    return sorted(
        (_with_problem(plugin, owners[plugin.name] - {plugin.distribution}) for plugin in homes.values()),
        key=lambda plugin: (plugin.name, plugin.distribution),
    )


def _plugins_of(source: Distribution, kind: str) -> list[Plugin]:
    """Return the plugins of a distribution. Unreadable metadata is reported only if it mentions our groups."""
    group = GROUPS[kind]
    try:
        if group not in (source.read_text("entry_points.txt") or ""):
            return []
    except (OSError, ValueError):
        return []
    try:
        name, version = source.metadata["Name"] or "unknown", source.version or ""
    except Exception:  # damaged metadata can raise anything
        name, version = "unknown", ""
    try:
        entries = [entry for entry in source.entry_points if entry.group == group]
    except Exception as error:
        problem = f"its entry_points.txt cannot be read: {reason(error)}"
        return [Plugin(kind, "?", "", name, version, problem, None)]
    return [Plugin(kind, entry.name, entry.value, name, version, None, entry) for entry in entries]


def _with_problem(plugin: Plugin, others: set[str]) -> Plugin:
    problem = plugin.problem
    if plugin.name in BUILT_IN[plugin.kind]:
        problem = f"{plugin.name!r} is built in, and nothing can take its place"
    elif problem is None and not _NAME.fullmatch(plugin.name):
        problem = "a name must be a small letter, then small letters, digits, '+', '.' and '-'"
    elif problem is None and others:
        named = ", ".join(sorted(others))
        problem = f"{named} brings a {plugin.kind} of that name too; uninstall one of them"
    return plugin._replace(problem=problem)


def plugin(kind: str, name: str) -> Plugin | None:
    return next((found for found in installed(kind) if found.name == name), None)
