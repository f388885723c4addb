"""The resources that a client reads without a tool: the briefing, and memories."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError
from mcp.types import Resource

from ..team.briefing import Briefing
from ..team.events import Event, EventKind
from ..team.identity import Repository
from .answers import memory_of
from .calls import CallRunner, visible_memory

_MAX_LISTED = 20
_TITLE = 100  # characters


def resources(server: MCPServer[Any], calls: CallRunner) -> None:
    reading = calls.run_read

    @server.resource(
        "remanence://briefing",
        title="Briefing",
        description="What a new session should know of this repository: rules of the team, where work stopped, "
        "decisions, what fails, hot files.",
    )
    async def briefing() -> str:
        return await reading(lambda: _briefing(calls, None))

    @server.resource(
        "remanence://briefing/{+repository}",
        title="Briefing of a repository",
        description="The briefing of another repository, e.g. remanence://briefing/github.com/acme/etl.",
    )
    async def briefing_of(repository: str) -> str:
        return await reading(lambda: _briefing(calls, repository))

    @server.resource(
        "remanence://memories/{id}",
        title="A memory",
        description="One memory in full, as JSON.",
        mime_type="application/json",
    )
    async def memory(id: str) -> str:
        return await reading(lambda: _memory(calls, id))


def recent(calls: CallRunner) -> list[Resource]:
    """List the newest memories as resources."""
    with calls.any_caller() as caller:
        if caller.no_reading:
            return []
        found = caller.team.recent(repository=caller.repository, limit=_MAX_LISTED)
        caller.team.audit("list", [experience.id for experience in found], agent=caller.agent)
        return [
            Resource(
                uri=f"remanence://memories/{quote(experience.id, safe='')}",
                name=experience.id,
                title=" ".join(experience.text.split())[:_TITLE],
                description=f"{experience.kind.replace('_', ' ')}, by {experience.said_by or 'unknown'}",
                mime_type="application/json",
            )
            for experience in found
        ]


def _briefing(calls: CallRunner, named: str | None) -> str:
    try:
        with calls.reader() as caller:
            place = caller.place(named)
            where = str(place.root) if isinstance(place, Repository) else ""
            event = Event("briefing", caller.agent, EventKind.SESSION_START, "briefing", where, 0.0)
            text = Briefing(caller.team.brain, caller.sessions).text_for(event, caller.team, place)
            return text or "The team memory knows nothing of this repository yet."
    except ToolError as error:
        raise ResourceError(str(error)) from error


def _memory(calls: CallRunner, id: str) -> str:
    try:
        with calls.reader() as caller:
            experience = visible_memory(caller, id, caller.repository)
            caller.team.audit("read", [id], agent=caller.agent)
            return json.dumps(memory_of(experience), ensure_ascii=False)
    except ToolError as error:
        raise ResourceNotFoundError(str(error)) from error
