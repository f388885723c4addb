"""A Host decides whose memory a call uses, in which threads it runs, and how much of an error is shown."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeVar

from anyio import to_thread

from .. import checks
from ..errors import RemanenceError
from ..team.identity import Repository, repository_id
from ..team.memory import TeamMemory
from ..team.sessions import NO_SESSIONS, Sessions

Result = TypeVar("Result")
_MAX_CLIENT_NAME = 64  # characters


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """The context of a call: the name that the client gives itself, and the HTTP request if there is one."""

    client: str | None = None
    request: Any = None


@dataclass(slots=True)
class McpCaller:
    """Who calls: the memory and repository to use, the agent, and its rights. `no_reading` and `no_writing` are the
    reason for a refusal, or empty if it is allowed."""

    team: TeamMemory
    repository: Repository | str | None
    agent: str
    scope: str = "repository"
    no_reading: str = ""
    no_writing: str = ""
    may_forget_all: bool = True
    sessions: Sessions = NO_SESSIONS
    clean: Callable[[str], str] = str
    """Removes secrets from a text, for a store that does not."""

    def place(self, named: str | None) -> Repository | str | None:
        """Return the repository of a call: the one it names, or the caller's."""
        if named is None:
            return self.repository
        id = repository_id(checks.name("repository", named))
        return self.repository if isinstance(self.repository, Repository) and self.repository.id == id else id


class Host(ABC):
    """Decides whose memory a call uses and where it runs."""

    @abstractmethod
    def caller(self, request: RequestInfo) -> AbstractContextManager[McpCaller]:
        """Identify the caller; hold its store open while the context lasts."""

    async def run_read(self, call: Callable[[], Result], request: RequestInfo) -> Result:
        """Run a call that only reads, in a thread."""
        return await to_thread.run_sync(call)

    async def run_write(self, call: Callable[[], Result], request: RequestInfo) -> Result:
        """Run a call that writes, in a thread."""
        return await to_thread.run_sync(call)

    def error_text(self, error: RemanenceError, request: RequestInfo) -> str:
        """Return the message of an error as far as the client may see it."""
        return str(error)


def agent_of(client: str | None) -> str:
    """Return the coding agent for the name of a client: "codex-mcp-client" is codex, "Kiro CLI" is kiro."""
    from ..team.install import AGENTS

    name = "".join(letter for letter in client or "" if letter.isprintable()).strip().lower()[:_MAX_CLIENT_NAME]
    words = re.sub(r"[\W_]+", "-", f" {name} ")
    return next((agent for agent in AGENTS if f"-{agent}-" in words), name or "mcp")
