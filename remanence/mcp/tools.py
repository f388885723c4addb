"""The nine tools. Each is a few lines over TeamMemory; what they say of themselves is all that an agent knows."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial, wraps
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from .. import checks
from ..errors import InputError
from ..team.identity import Repository
from ..team.notes import KINDS, Experience, Note
from ..timewords import time_ago
from .answers import Done, Expert, Experts, Found, Kept, Known, Page, State
from .calls import Calls, Place, checked, visible
from .host import Caller

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
REMOVES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)

KindName = Literal["codebase", "preference", "task", "error_fix", "tool_output", "decision"]
Kinds = Annotated[
    list[KindName] | None,
    Field(
        description="Only these kinds: codebase (how things work), preference (rules of the team), task (what was "
        "done), error_fix, tool_output (builds, tests, lint), decision. Default: all."
    ),
]
Repo = Annotated[
    str | None,
    Field(
        max_length=300,
        description='Another repository than the one you work in: "github.com/acme/etl" or the address it is cloned '
        "from. Leave it out unless you need it.",
    ),
]
Id = Annotated[str, Field(min_length=1, max_length=400, description='The id of a memory, e.g. "team-3f2a…".')]
Offset = Annotated[int, Field(ge=0, le=10_000, description="Leave out so many: the next_offset of the page before.")]
Text = Annotated[str, Field(min_length=1, max_length=20_000)]
Turn = Callable[[Callable[[], Any]], Awaitable[Any]]
Offer = Callable[[str], Callable[[Any], Any]]


def tools(server: MCPServer[Any], calls: Calls) -> None:
    """Offer all of them."""
    _searching(_offering(server, calls.host.reading, READS), calls)
    _looking_up(_offering(server, calls.host.reading, READS), calls)
    _adding(_offering(server, calls.host.writing, ADDS), calls)
    _removing(_offering(server, calls.host.writing, REMOVES), calls)


def _offering(server: MCPServer[Any], turn: Turn, hints: ToolAnnotations) -> Offer:
    """A decorator that offers a function as a tool which is answered in a thread."""

    def titled(title: str) -> Callable[[Any], Any]:
        def offered(call: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(call)
            async def answered(**given: Any) -> Any:
                return await turn(partial(call, **given))

            server.add_tool(answered, title=title, description=inspect.getdoc(call), annotations=hints)
            return call

        return offered

    return titled


def _searching(tool: Offer, calls: Calls) -> None:
    @tool("Recall what the team knows")
    def recall(
        query: Annotated[Text, Field(description="A task, a question or an error message, in plain words.")],
        limit: Annotated[int, Field(ge=1, le=50, description="At most so many.")] = 5,
        offset: Annotated[Offset, Field(le=500)] = 0,
        kinds: Kinds = None,
        as_of: Annotated[
            str | None, Field(max_length=100, description='What held then: "two weeks ago" or "2026-05-01".')
        ] = None,
        repository: Repo = None,
    ) -> Found:
        """Search what the team's coding agents learned about this codebase: errors and what fixed them, decisions,
        conventions, how things work, what was tried before. Finds by meaning and by exact words.

        Use it before you start a task, when a command or a test fails (paste the error), and before you ask the user
        how something is done here. The best come first; below a relevance of about 0.4 they rarely help. Memories can
        be out of date (see `stale`): check them against the code. Afterwards say with `feedback` what helped."""
        with calls.reader() as caller:
            place = caller.place(repository)
            found = caller.team.recall(
                query, repository=place, k=offset + limit + 1, kinds=tuple(kinds or KINDS), as_of=_moment(as_of)
            )[offset:]
            caller.team.audit("recall", [one.id for one in found[:limit]], agent=caller.agent)
            return Found(
                memories=[Known.of(one) for one in found[:limit]],
                recall_id=found[0].recall_id if found else None,
                next_offset=offset + limit if len(found) > limit else None,
            )

    @tool("Who knows about a topic")
    def who_knows(
        topic: Annotated[Text, Field(description="A part of the code, a technology or a problem.")],
        limit: Annotated[int, Field(ge=1, le=20, description="At most so many people.")] = 5,
        repository: Repo = None,
    ) -> Experts:
        """The people whose agents learned most about a topic, with the memories that show it. Use it to tell the user
        whom to ask, or who should review a change."""
        with calls.reader() as caller:
            found = caller.team.who_knows(topic, repository=caller.place(repository), k=limit)
            ids = list(dict.fromkeys(id for one in found for id in one["memories"]))
            caller.team.audit("recall", ids, agent=caller.agent)
            return Experts(experts=[Expert(**one) for one in found])


def _looking_up(tool: Offer, calls: Calls) -> None:
    @tool("Get one memory")
    def get_memory(id: Id, repository: Repo = None) -> Known:
        """One memory in full, by its id: one that a briefing, another memory or the user mentions."""
        with calls.reader() as caller:
            one = visible(caller, id, caller.place(repository))
            caller.team.audit("read", [id], agent=caller.agent)
            return Known.of(one)

    @tool("List recent memories")
    def list_recent(
        limit: Annotated[int, Field(ge=1, le=100, description="At most so many.")] = 20,
        offset: Offset = 0,
        kinds: Kinds = None,
        repository: Repo = None,
    ) -> Page:
        """The newest of what the team knows of this repository, page by page. Use it to see what happened lately; to
        find something, use `recall`."""
        with calls.reader() as caller:
            place = caller.place(repository)
            found = caller.team.recent(repository=place, kinds=tuple(kinds or KINDS), limit=limit + 1, offset=offset)
            return _page(caller, place, found, limit, offset)

    @tool("History of a file")
    def file_history(
        path: Annotated[str, Field(min_length=1, max_length=4096, description="From the repository's root.")],
        limit: Annotated[int, Field(ge=1, le=100, description="At most so many.")] = 20,
        offset: Offset = 0,
        repository: Repo = None,
    ) -> Page:
        """What the team learned about one file: bugs that were fixed there, decisions, what to watch out for. The
        newest first. Use it before you change a file that you do not know."""
        with calls.reader() as caller:
            place = caller.place(repository)
            name = place.relative(path) if isinstance(place, Repository) else path.removeprefix("./")
            found = caller.team.file_history(name, repository=place, limit=offset + limit + 1)[offset:]
            return _page(caller, place, found, limit, offset)

    @tool("What a session was doing")
    def session_state(
        session_id: Annotated[
            str | None,
            Field(max_length=400, description="The id of a session. Default: the latest in this repository."),
        ] = None,
    ) -> State:
        """The task, plan, open files, edits, last outputs and failures of a session of yours. Use it when your context
        was compacted or you go on with work that was interrupted."""
        with calls.reader() as caller:
            where = caller.repository.id if isinstance(caller.repository, Repository) else caller.repository
            if session_id is not None:
                state = caller.sessions.find(session_id)
            else:
                state = None if where is None else caller.sessions.last_in(where)
            if state is None:
                return State(found=False, hint="use `recall` with kinds ['task'] for what earlier sessions did")
            return State(found=True, state=state.to_dict())


def _adding(tool: Offer, calls: Calls) -> None:
    @tool("Remember for the team")
    def remember(
        text: Annotated[
            Text, Field(description="What was learned, complete and concrete, so that a stranger understands it.")
        ],
        kind: Annotated[
            KindName,
            Field(
                description="codebase: how something works here. preference: a rule of the team or the user. decision: "
                "what was decided and why. error_fix: an error and what fixed it. task: what was done. tool_output: "
                "what a command printed."
            ),
        ] = "codebase",
        files: Annotated[
            list[str] | None, Field(max_length=100, description="Files it is about, from the repository's root.")
        ] = None,
        scope: Annotated[
            Literal["personal", "repository"] | None,
            Field(
                description="Who sees it: personal (only this user) or repository (who works in it; the default). "
                "Outside a repository it is personal."
            ),
        ] = None,
        error: Annotated[str, Field(max_length=20_000, description="For error_fix: the error as it was printed.")] = "",
        fix: Annotated[str, Field(max_length=20_000, description="For error_fix: what fixed it.")] = "",
        supersedes: Annotated[
            str | None, Field(max_length=400, description="The id of a memory that no longer holds because of this.")
        ] = None,
        repository: Repo = None,
    ) -> Kept:
        """Keep something for every agent of the team: an error and its fix, how a part of the code works, a decision
        with its reason, a rule. One fact in one memory, in full sentences, with names of files, commands and versions.

        Use it when something took effort to find out and will hold tomorrow. Not for what the code says at a glance,
        and never for secrets. What the team knows already is counted, not kept twice. For a fact that changed, name the
        old memory in `supersedes`."""
        with calls.writer() as caller:
            place = caller.place(repository)
            if supersedes is not None:
                visible(caller, supersedes, place, field="supersedes")
            note = Note(
                caller.clean(text),
                kind,
                author=caller.team.author,
                agent=caller.agent,
                scope=scope or caller.scope,
                files=[caller.clean(path) for path in files or ()],
                error=caller.clean(error),
                fix=caller.clean(fix),
                supersedes=supersedes,
                importance=0.7,
            )
            if isinstance(place, Repository):
                note.at(place)
            else:
                note.repository = place
            memory = caller.team.remember(note)
            count = int(memory.contents.get("count", 1))
            return Kept(id=memory.memory_id, count=count, scope=note.reach, repository=note.repository)

    @tool("Say whether a memory helped")
    def feedback(
        recall_id: Annotated[
            str, Field(min_length=1, max_length=200, description="The recall_id of an answer of `recall`.")
        ],
        id: Annotated[
            str | None,
            Field(max_length=400, description="The memory. Leave it out with useful=false if nothing helped."),
        ] = None,
        useful: Annotated[bool, Field(description="Whether it helped.")] = True,
    ) -> Done:
        """Tell whether a recalled memory helped, so that recall can be judged and tuned. Use it once you know: true
        for one that led to the solution, false for one that was wrong or beside the point."""
        with calls.writer() as caller:
            try:
                caller.team.brain.feedback(recall_id, memory_id=id, useful=useful)
            except InputError as error:
                raise ToolError(_judging(error, recall_id, id)) from error
            store, team = caller.team.brain.store, caller.team
            store.record(team.author, "feedback", [id], origin=team.origin, agent=caller.agent, useful=useful)
            return Done(done=True)


def _removing(tool: Offer, calls: Calls) -> None:
    @tool("Forget a memory")
    def forget(id: Id, repository: Repo = None) -> Done:
        """Remove a memory for good, for everybody: a wrong one, or one that should never have been kept. Only your
        own, unless you are an administrator. For what merely changed, use `remember` with `supersedes` instead."""
        with calls.writer() as caller:
            one = visible(caller, id, caller.place(repository))
            if not caller.may_forget_all and one.author != caller.team.author:
                raise ToolError("id: only its author or an administrator may forget this memory")
            # The log's own entry of what was forgotten does not say by which agent and from where.
            caller.team.audit("ask to forget", [id], agent=caller.agent)
            return Done(done=caller.team.forget(id))


def _page(caller: Caller, place: Place, found: list[Experience], limit: int, offset: int) -> Page:
    page = [checked(caller, one, place) for one in found[:limit]]
    caller.team.audit("read", [one.id for one in page], agent=caller.agent)
    return Page(memories=[Known.of(one) for one in page], next_offset=offset + limit if len(found) > limit else None)


def _judging(error: InputError, recall_id: str, memory_id: str | None) -> str:
    """What is wrong with a feedback, in the words of the tool."""
    if error.field == "recalled":
        return f"recall_id: there is no recall {recall_id!r} any more that could be judged; use the one of a new recall"
    if memory_id is None:
        return "id: name the memory that was useful, or say useful=false if nothing helped"
    return f"id: {memory_id!r} is none of the memories that this recall found"


def _moment(words: str | None) -> float | None:
    if words is None:
        return None
    ago = time_ago(words, datetime.now())
    return ago.timestamp() if ago is not None else checks.moment("as_of", words, end_of_day=True)
