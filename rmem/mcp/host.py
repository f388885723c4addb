"""A Host decides whose memory a call uses, in which threads it runs, and how much of an error is shown."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeVar

from anyio import to_thread

from .. import checks
from ..errors import RemanenceError
from ..team.events import AGENTS
from ..team.identity import Repository, repository_id
from ..team.memory import TeamMemory
from ..team.sessions import NOBODYS, Sessions

Result = TypeVar("Result")
_LONGEST = 64  # characters of a client's name


@dataclass(frozen=True, slots=True)
class Asked:
    """What came with a call beside its arguments: what the client calls itself, and the HTTP request if there is
    one."""

    client: str | None = None
    request: Any = None


@dataclass(slots=True)
class Caller:
    """Whose memory a call is about, from where, and what they may do. `no_reading` and `no_writing` say why
    something may not be done, and are empty where it may."""

    team: TeamMemory
    repository: Repository | str | None
    agent: str
    scope: str = "repository"
    no_reading: str = ""
    no_writing: str = ""
    may_forget_all: bool = True
    sessions: Sessions = NOBODYS
    clean: Callable[[str], str] = str
    """Takes secrets out of a text, where the store does not do so itself."""

    def place(self, named: str | None) -> Repository | str | None:
        """The repository that a call is about: the one it names, else the caller's."""
        if named is None:
            return self.repository
        id = repository_id(checks.name("repository", named))
        return self.repository if isinstance(self.repository, Repository) and self.repository.id == id else id


class Host(ABC):
    """Where the tools run."""

    @abstractmethod
    def caller(self, asked: Asked) -> AbstractContextManager[Caller]:
        """Whose memory a call is about, for as long as it takes."""

    async def reading(self, call: Callable[[], Result], asked: Asked) -> Result:
        """Do what only looks, in a thread."""
        return await to_thread.run_sync(call)

    async def writing(self, call: Callable[[], Result], asked: Asked) -> Result:
        """Do what changes something, in a thread."""
        return await to_thread.run_sync(call)

    def told(self, error: RemanenceError, asked: Asked) -> str:
        """What a client may know of an error."""
        return str(error)


def agent_of(client: str | None) -> str:
    """The coding agent behind what a client calls itself: "codex-mcp-client" is codex."""
    told = "".join(letter for letter in client or "" if letter.isprintable()).strip().lower()[:_LONGEST]
    return next((agent for agent in AGENTS if agent in told.replace(" ", "-")), told or "mcp")
