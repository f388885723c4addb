"""The host of `rmem mcp`: the user's own store, and the project folder as it is at each call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Self

from ..brain import Brain
from ..old_names import REPOSITORY_FILES
from ..team import consent, known_repositories
from ..team.identity import author, repository
from ..team.memory import TeamMemory
from ..team.repository_file import settings_of
from ..team.sessions import Sessions
from .host import Host, McpCaller, RequestInfo, agent_of

ORIGIN = "mcp stdio"


class LocalHost(Host):
    """Opens the store at the first call: listing the tools does not wait for it, and an error about a broken store
    reaches the agent as the answer of a tool."""

    def __init__(self, address: str | None, folder: Path, agent: str | None = None) -> None:
        self._address, self._folder, self._agent = address, folder, agent
        self._brain: Brain | None = None
        self._open_lock = Lock()

    @contextmanager
    def caller(self, request: RequestInfo) -> Iterator[McpCaller]:
        folder = str(self._folder)
        may_recall, may_capture = consent.may_recall(folder), consent.may_capture(folder)
        settings = settings_of(folder) if may_recall and may_capture else None
        workspace = None if settings is None else settings.workspace
        if workspace is not None:
            known_repositories.note(workspace)
        where = repository(folder)
        if where is not None and may_recall:
            known_repositories.note_repository(where.id)
        team = TeamMemory(self._open_brain(), author=author(folder), origin=ORIGIN, workspace=workspace)
        yield McpCaller(
            team,
            where,
            self._agent or agent_of(request.client),
            # Only `rmem share` shares with the whole organisation: a file that came with a clone must not.
            scope="personal" if settings is not None and settings.scope == "personal" else "repository",
            no_reading="" if may_recall else _refusal("recall"),
            no_writing="" if may_capture else _refusal("capture"),
            sessions=Sessions(),
        )

    def _open_brain(self) -> Brain:
        with self._open_lock:
            if self._brain is None:
                self._brain = Brain(self._address, privacy="default")
            return self._brain

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._brain is not None:
            self._brain.close()


def _refusal(what: str) -> str:
    return f"this repository opted out of the team memory: {what} = false in {REPOSITORY_FILES[0]}, or a mistake there"
