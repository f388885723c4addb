"""The team memory for coding agents by the Model Context Protocol: `rmem mcp` on standard input and output, and
/mcp of a server over HTTP. Every tool is a few lines over TeamMemory; `whose` says for each call whose memory it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field

from . import __version__
from .errors import RemanenceError
from .team.briefing import Briefing
from .team.events import Event, Kind
from .team.identity import Repository
from .team.memory import TeamMemory
from .team.notes import KINDS, Experience, Note
from .team.sessions import Sessions
from .timewords import time_ago

INSTRUCTIONS = """\
The shared memory of your team: what its coding agents learned about this codebase.
- Before you start a task, and whenever you see an error: `recall` it in your own words.
- After you fixed an error, found out how something works or decided something: `remember` it, with the files.
- If a memory helped, or was wrong: say so with `feedback`. If it is out of date: `remember` the new fact with
  `supersedes`.
- After your context was compacted: `session_state` tells what you were doing."""

KindName = Literal["codebase", "preference", "task", "error_fix", "tool_output", "decision"]
Scope = Literal["personal", "repository", "organisation"]
_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
_REMOVES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)


@dataclass(slots=True)
class Caller:
    """Whose memory a call is about, from where, and what they may do."""

    team: TeamMemory
    repository: Repository | str | None
    agent: str
    may_write: bool = True
    may_delete: bool = True
    sessions: Sessions | None = None


Whose = Callable[[], Caller]


class Known(BaseModel):
    """One memory of the team."""

    id: str
    kind: str
    text: str
    author: str
    agent: str
    when: float = Field(description="Seconds since 1970.")
    repository: str | None = None
    commit: str | None = None
    files: list[str] = []
    count: int = Field(1, description="How often it was learned.")
    relevance: float | None = Field(None, description="Between 0 and 1.")
    stale: str | None = Field(None, description="Why it may be out of date.")
    superseded_by: str | None = None


class Found(BaseModel):
    """Memories, best first; `recall_id` is what `feedback` wants."""

    memories: list[Known]
    recall_id: str | None = None
    next_offset: int | None = Field(None, description="Ask again with this offset for more; null at the end.")


class Kept(BaseModel):
    """What `remember` did."""

    id: str
    count: int = Field(description="1 for a new memory; more if the team knew it already.")


class Done(BaseModel):
    """Whether something was done."""

    done: bool


class Expert(BaseModel):
    """Somebody whose agents know about a topic."""

    author: str
    weight: float
    memories: list[str]


class Experts(BaseModel):
    """Those who know, the best first."""

    experts: list[Expert]


class State(BaseModel):
    """What a session was doing."""

    found: bool
    state: dict[str, Any] = {}


def build(whose: Whose) -> MCPServer[Any]:
    """The server with its tools and resources."""
    server: MCPServer[Any] = MCPServer(
        "remanence", title="Remanence team memory", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING"
    )
    _reading(server, whose)
    _writing(server, whose)
    _resources(server, whose)
    return server


def _reading(server: MCPServer[Any], whose: Whose) -> None:
    @server.tool(annotations=_READS, title="Recall what the team knows")
    def recall(
        query: Annotated[str, Field(description="A question, a task or an error message, in your own words.")],
        limit: Annotated[int, Field(ge=1, le=50)] = 5,
        kinds: Annotated[list[KindName] | None, Field(description="Only these kinds of memory.")] = None,
        as_of: Annotated[str | None, Field(description='What held then: "two weeks ago" or "2026-05-01".')] = None,
        offset: Annotated[int, Field(ge=0, le=500, description="Leave out the best so many.")] = 0,
    ) -> Found:
        """Search the team's memory by meaning and words: earlier errors and their fixes, decisions, conventions, how
        things work here. Use it before a task and whenever something fails."""
        with _told():
            caller = whose()
            found = caller.team.recall(
                query,
                repository=caller.repository,
                k=offset + limit + 1,
                kinds=tuple(kinds or KINDS),
                as_of=_moment(as_of),
            )
            caller.team.audit("recall", [one.id for one in found[offset : offset + limit]], agent=caller.agent)
            return _page(found[offset:], limit, offset)

    @server.tool(annotations=_READS, title="Get one memory")
    def get_memory(id: Annotated[str, Field(description="The id of a memory.")]) -> Known:
        """One memory in full, by its id."""
        with _told():
            caller = whose()
            one = _visible(caller, id)
            caller.team.audit("read", [id], agent=caller.agent)
            return _known(one)

    @server.tool(annotations=_READS, title="List recent memories")
    def list_recent(
        limit: Annotated[int, Field(ge=1, le=100)] = 20,
        offset: Annotated[int, Field(ge=0)] = 0,
        kinds: list[KindName] | None = None,
    ) -> Found:
        """The newest memories of this repository, page by page."""
        with _told():
            caller = whose()
            found = caller.team.recent(
                repository=caller.repository, kinds=tuple(kinds or KINDS), limit=limit + 1, offset=offset
            )
            caller.team.audit("read", [one.id for one in found[:limit]], agent=caller.agent)
            return _page(found, limit, offset)

    @server.tool(annotations=_READS, title="History of a file")
    def file_history(
        path: Annotated[str, Field(description="From the root of the repository.")],
        limit: Annotated[int, Field(ge=1, le=100)] = 20,
    ) -> Found:
        """What the team knows about a file: fixes, decisions, gotchas. The newest first."""
        with _told():
            caller = whose()
            name = caller.repository.relative(path) if isinstance(caller.repository, Repository) else path
            return _page(caller.team.file_history(name, repository=caller.repository, limit=limit + 1), limit, 0)

    @server.tool(annotations=_READS, title="Who knows about a topic")
    def who_knows(topic: str, limit: Annotated[int, Field(ge=1, le=20)] = 5) -> Experts:
        """The people whose agents learned most about a topic."""
        with _told():
            caller = whose()
            found = caller.team.who_knows(topic, repository=caller.repository, k=limit)
            return Experts(experts=[Expert(**one) for one in found])

    @server.tool(annotations=_READS, title="What a session was doing")
    def session_state(
        session_id: Annotated[str | None, Field(description="Default: the latest session in this repository.")] = None,
    ) -> State:
        """The task, plan, open files, edits and last outputs of a session, e.g. after your context was compacted."""
        with _told():
            caller = whose()
            if caller.sessions is None:
                return State(found=False)
            where = caller.repository.id if isinstance(caller.repository, Repository) else caller.repository
            state = (
                caller.sessions.find(session_id)
                if session_id is not None
                else caller.sessions.last_in(where)
                if where is not None
                else None
            )
            return State(found=False) if state is None else State(found=True, state=state.to_dict())


def _writing(server: MCPServer[Any], whose: Whose) -> None:
    @server.tool(annotations=_ADDS, title="Remember for the team")
    def remember(
        text: Annotated[str, Field(min_length=1, description="What was learned, so that a stranger understands it.")],
        kind: Annotated[KindName, Field(description="What it is.")] = "codebase",
        files: Annotated[list[str] | None, Field(description="Files it is about, from the repository's root.")] = None,
        scope: Annotated[Scope, Field(description="Who may see it.")] = "repository",
        error: Annotated[str, Field(description="For error_fix: the error as it was printed.")] = "",
        fix: Annotated[str, Field(description="For error_fix: what fixed it.")] = "",
        supersedes: Annotated[str | None, Field(description="The id of a memory that no longer holds.")] = None,
    ) -> Kept:
        """Keep something for every agent of the team. What is known already is counted, not kept twice."""
        with _told():
            caller = _writer(whose())
            note = Note(
                text,
                kind,
                author=caller.team.author,
                agent=caller.agent,
                scope=scope,
                files=files or [],
                error=error,
                fix=fix,
                supersedes=supersedes,
                importance=0.7,
            )
            if isinstance(caller.repository, Repository):
                note.at(caller.repository)
            else:
                note.repository = caller.repository
            memory = caller.team.remember(note)
            return Kept(id=memory.memory_id, count=int(memory.contents.get("count", 1)))

    @server.tool(annotations=_REMOVES, title="Forget a memory")
    def forget(id: Annotated[str, Field(description="The id of the memory.")]) -> Done:
        """Remove a memory for good. Prefer `remember` with `supersedes` for what merely changed."""
        with _told():
            caller = _writer(whose())
            one = _visible(caller, id)
            if not caller.may_delete and one.author != caller.team.author:
                raise ToolError("only its author or an administrator may forget this memory")
            return Done(done=caller.team.forget(id))

    @server.tool(annotations=_ADDS, title="Say whether a memory helped")
    def feedback(
        recall_id: Annotated[str, Field(description="From the answer of `recall`.")],
        id: Annotated[str | None, Field(description="The memory; without it: nothing in the answer helped.")] = None,
        useful: bool = True,
    ) -> Done:
        """Tell whether a recalled memory helped, so that recall can be judged."""
        with _told():
            caller = whose()
            caller.team.brain.feedback(recall_id, memory_id=id, useful=useful if id is not None else False)
            return Done(done=True)


def _resources(server: MCPServer[Any], whose: Whose) -> None:
    @server.resource("remanence://briefing", title="Briefing", mime_type="text/plain")
    def briefing() -> str:
        """What a new session should know: rules, where work stopped, decisions, what fails, hot files."""
        caller = whose()
        where = caller.repository.root if isinstance(caller.repository, Repository) else ""
        event = Event("briefing", caller.agent, Kind.SESSION_START, "briefing", str(where), 0.0)
        return Briefing(caller.team.brain, caller.sessions).told(event, caller.team, caller.repository)

    @server.resource("remanence://memories/{id}", title="A memory", mime_type="application/json")
    def memory(id: str) -> str:
        """One memory as JSON."""
        try:
            return _known(_visible(whose(), id)).model_dump_json()
        except ToolError as error:
            raise ResourceNotFoundError(str(error)) from None


@contextmanager
def _told() -> Iterator[None]:
    """Our errors are for the agent to read; all others are faults."""
    try:
        yield
    except RemanenceError as error:
        raise ToolError(str(error)) from error


def _moment(words: str | None) -> float | None:
    if words is None:
        return None
    from datetime import datetime

    from . import checks

    ago = time_ago(words, datetime.now())
    return ago.timestamp() if ago is not None else checks.moment("as_of", words, end_of_day=True)


def _writer(caller: Caller) -> Caller:
    if not caller.may_write:
        raise ToolError("your token may read this memory, but not write to it")
    return caller


def _visible(caller: Caller, memory_id: str) -> Experience:
    """A memory that the caller may see; one that exists for others only does not exist."""
    one = caller.team.get(memory_id)
    if one is None or one.memory.place not in caller.team.visible(caller.repository):
        raise ToolError(f"no memory with id {memory_id!r}")
    return one


def _page(found: list[Experience], limit: int, offset: int) -> Found:
    return Found(
        memories=[_known(one) for one in found[:limit]],
        recall_id=found[0].recall_id if found else None,
        next_offset=offset + limit if len(found) > limit else None,
    )


def _known(one: Experience) -> Known:
    return Known(
        id=one.id,
        kind=one.kind,
        text=one.text,
        author=one.author,
        agent=one.memory.agent_id,
        when=one.memory.timestamp,
        repository=one.repository,
        commit=one.commit,
        files=one.files,
        count=one.count,
        relevance=round(one.relevance, 3) if one.recall_id else None,
        stale=one.stale,
        superseded_by=one.memory.contents.get("superseded_by"),
    )
