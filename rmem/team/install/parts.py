"""The parts put into a tool's files: hooks, an MCP server, whole files of ours. Each part can render a file with it and
without it, and report how much of it is present. A part never touches what it does not recognise as ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ...errors import ConfigError
from .commands import SERVER, Command, parse_hook, serves
from .jsonc import Document, Step, path_text

Made = list[tuple[str, ...]]


@dataclass(slots=True)
class PartState:
    """How much of a part is installed: what is wired, missing, or ours but outdated."""

    wired: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    outdated: list[str] = field(default_factory=list)
    note: str = ""


class Part(Protocol):
    """Something that is installed into one file."""

    @property
    def path(self) -> Path: ...

    @property
    def role(self) -> str: ...

    def add(self, text: str | None) -> tuple[str, Made]:
        """Return the text with this part, and the paths that had to be created in it."""

    def remove(self, text: str, made: Made | None) -> str | None:
        """Return the text without this part; None if the file is ours alone. Remove empty containers only if they are
        in `made` (None: all of them)."""

    def state(self, text: str | None) -> PartState: ...


@dataclass(frozen=True, slots=True)
class Hooks:
    """Hooks in a JSON file: hooks → event → list of handlers, which some tools put into groups with a matcher.

    `handlers` has what is written for each event, `keys` says under which of its keys a handler has its command, and
    `beside` what else such a file must say.
    """

    path: Path
    agent: str
    handlers: Mapping[str, Mapping[str, Any]]
    matchers: Mapping[str, str] = field(default_factory=dict)
    grouped: bool = True
    keys: tuple[str, ...] = ("command",)
    beside: Mapping[str, Any] = field(default_factory=dict)
    role: str = "hooks"

    def add(self, text: str | None) -> tuple[str, Made]:
        document = Document(text or "")
        self._check(document)
        made: Made = []
        for key, value in self.beside.items():
            if not document.has((key,)):
                document.set((key,), value)
                made.append((key,))
        if not document.has(("hooks",)):
            made.append(("hooks",))
        for event in self.handlers:
            if not document.has(("hooks", event)):
                made.append(("hooks", event))
        for event in [name for name in document.get(("hooks",)) or {} if name not in self.handlers]:
            self._drop(document, list(self._ours(document, event)))
        for event, handler in self.handlers.items():
            places = list(self._ours(document, event))
            self._drop(document, places[1:])
            if not places:
                matcher = {"matcher": self.matchers[event]} if event in self.matchers else {}
                entry = {**matcher, "hooks": [dict(handler)]} if self.grouped else dict(handler)
                document.append(("hooks", event), entry)
            for place in places[:1]:
                for key in self.keys:
                    if document.get((*place, key)) != handler[key]:
                        document.set((*place, key), handler[key])
        return document.text, made

    def remove(self, text: str, made: Made | None) -> str | None:
        document = Document(text)
        if not isinstance(document.value, dict):
            return text
        hooks = document.get(("hooks",))
        for event in list(hooks) if isinstance(hooks, dict) else []:
            self._drop(document, list(self._ours(document, event)))
            if document.get(("hooks", event)) == [] and (made is None or ("hooks", event) in made):
                document.remove(("hooks", event))
        if document.get(("hooks",)) == {} and (made is None or ("hooks",) in made):
            document.remove(("hooks",))
        if set(document.value) == set(self.beside):
            for key in self.beside:
                if made is None or (key,) in made:
                    document.remove((key,))
        return document.text

    def state(self, text: str | None) -> PartState:
        document = Document(text or "")
        found = PartState()
        for event, handler in self.handlers.items():
            place = next(self._ours(document, event), None)
            if place is None:
                found.missing.append(event)
            elif any(document.get((*place, key)) != handler[key] for key in self.keys):
                found.outdated.append(event)
            else:
                found.wired.append(event)
        return found

    def command(self, text: str, event: str) -> str | None:
        """The command that a file's text runs at an event; None if it runs none of ours."""
        document = Document(text)
        place = next(self._ours(document, event), None)
        return None if place is None else str(document.get((*place, self.keys[0])))

    def _check(self, document: Document) -> None:
        _object(document, ())
        _object(document, ("hooks",))
        for event in self.handlers:
            if not isinstance(document.get(("hooks", event)) or [], list):
                raise ConfigError(f"{path_text(('hooks', event))} must be an array")

    def _ours(self, document: Document, event: str) -> Iterator[tuple[Step, ...]]:
        """Where handlers of ours are under an event."""
        listed = document.get(("hooks", event))
        for at, entry in enumerate(listed if isinstance(listed, list) else []):
            if not isinstance(entry, dict):
                continue
            if not self.grouped:
                if self._is_ours(entry):
                    yield ("hooks", event, at)
                continue
            inside = entry.get("hooks")
            for position, handler in enumerate(inside if isinstance(inside, list) else []):
                if isinstance(handler, dict) and self._is_ours(handler):
                    yield ("hooks", event, at, "hooks", position)

    def _is_ours(self, handler: Mapping[str, Any]) -> bool:
        return any((parse_hook(handler.get(key)) or ("",))[0] == self.agent for key in self.keys)

    def _drop(self, document: Document, places: Sequence[tuple[Step, ...]]) -> None:
        for place in reversed(places):
            document.remove(place)
            if self.grouped and document.get(place[:-1]) == []:
                document.remove(place[:-2])


@dataclass(frozen=True, slots=True)
class McpServerPart:
    """Our entry among the MCP servers of a JSON file."""

    path: Path
    value: Mapping[str, Any]
    under: str = "mcpServers"
    role: str = "mcp"

    @property
    def _at(self) -> tuple[str, str]:
        return (self.under, SERVER)

    def add(self, text: str | None) -> tuple[str, Made]:
        document = Document(text or "")
        _object(document, ())
        _object(document, (self.under,))
        made: Made = [] if document.has((self.under,)) else [(self.under,)]
        there = document.get(self._at)
        if there is None:
            document.set(self._at, dict(self.value))
        elif serves(words_of(there)):
            for key in ("command", "args"):
                if key in self.value and there.get(key) != self.value[key]:
                    document.set((*self._at, key), self.value[key])
        return document.text, made

    def remove(self, text: str, made: Made | None) -> str | None:
        document = Document(text)
        if serves(words_of(document.get(self._at))):
            document.remove(self._at)
            if document.get((self.under,)) == {} and (made is None or (self.under,) in made):
                document.remove((self.under,))
        return document.text

    def state(self, text: str | None) -> PartState:
        return server_state(Document(text or "").get(self._at), self.value)


@dataclass(frozen=True, slots=True)
class Whole:
    """A file that is ours alone. A file of that name which `ours` does not recognise belongs to somebody else."""

    path: Path
    content: str
    ours: Callable[[str], bool]
    role: str
    events: tuple[str, ...] = ()
    command_in: Callable[[str, str], str | None] = lambda text, event: None
    """The command that a text of this form runs at an event."""

    def add(self, text: str | None) -> tuple[str, Made]:
        if text is not None and text.strip() and not self.ours(text):
            raise ConfigError("it is not from us; move it away first")
        return self.content, []

    def remove(self, text: str, made: Made | None) -> str | None:
        return None if self.ours(text) else text

    def state(self, text: str | None) -> PartState:
        names = list(self.events) or [self.role]
        if text is None or not self.ours(text):
            return PartState(missing=names)
        return PartState(wired=names) if text == self.content else PartState(outdated=names)

    def command(self, text: str, event: str) -> str | None:
        return self.command_in(text, event) if self.ours(text) else None


def server_of(command: Command) -> dict[str, Any]:
    """Return an MCP server entry in the format most tools use."""
    return {"command": command.program, "args": command.arguments}


def server_state(there: Any, wanted: Mapping[str, Any]) -> PartState:
    """Compare an MCP server entry with ours."""
    if there is None:
        return PartState(missing=[SERVER])
    if not serves(words_of(there)):
        return PartState(wired=[SERVER], note="an entry of your own, which is left alone")
    same = all(there.get(key) == wanted[key] for key in ("command", "args") if key in wanted)
    return PartState(wired=[SERVER]) if same else PartState(outdated=[SERVER])


def words_of(server: Any) -> list[Any] | None:
    """Return command and arguments of an MCP server; one tool has them in one list."""
    if not isinstance(server, Mapping):
        return None
    command, arguments = server.get("command"), server.get("args", [])
    if isinstance(command, list):
        return list(command)
    return [command, *arguments] if isinstance(command, str) and isinstance(arguments, list) else None


def _object(document: Document, path: tuple[str, ...]) -> None:
    if not isinstance(document.get(path) if document.has(path) else {}, dict):
        raise ConfigError(f"{path_text(path)} must be an object")
