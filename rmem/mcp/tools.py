"""The twelve tools, each a few lines over TeamMemory or Graph. Every agent reads their descriptions in every session:
all definitions together stay below 2,500 tokens (tests/mcp)."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from functools import partial, wraps
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

from .. import checks
from ..errors import InputError, NotFoundError, RemanenceError
from ..facts.stated import TYPE as FACT
from ..graph import Fact, Graph, Scope
from ..team.identity import Repository
from ..team.notes import CURRENT, KINDS, Experience, Note, audience
from ..timewords import time_ago
from .answers import fact_of, memory_of, page_of
from .calls import CallRunner, Place, check_stale, visible_memory
from .host import McpCaller

_MAX_PATHS = 3  # in an answer of `connect`
_MIN_RELEVANCE = 0.07  # lower than for hooks: an agent that searches wants more than one that did not ask
READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
REMOVES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)

KindName = Literal["codebase", "preference", "task", "error_fix", "tool_output", "decision"]
Kinds = Annotated[list[KindName] | None, Field(description="Only these kinds; default: all.")]
Repo = Annotated[str | None, Field(description='Another than yours: "github.com/acme/etl".')]
Id = Annotated[str, Field(min_length=1, max_length=400, description='"team-3f2a…"')]
Offset = Annotated[int, Field(ge=0, le=10_000, description="The next_offset of the page before.")]
Text = Annotated[str, Field(min_length=1, max_length=20_000)]
Answer = dict[str, Any]
RunCall = Callable[[Callable[[], Any]], Awaitable[Any]]
Register = Callable[[str], Callable[[Any], Any]]


def tools(server: MCPServer[Any], calls: CallRunner) -> None:
    _add_search_tools(_registrar(server, calls.run_read, READS), calls)
    _add_lookup_tools(_registrar(server, calls.run_read, READS), calls)
    _add_fact_tools(_registrar(server, calls.run_read, READS), calls)
    _add_write_tools(_registrar(server, calls.run_write, ADDS), calls)
    _add_state_fact(_registrar(server, calls.run_write, ADDS), calls)
    _add_forget(_registrar(server, calls.run_write, REMOVES), calls)


def _registrar(server: MCPServer[Any], run_call: RunCall, hints: ToolAnnotations) -> Register:
    """Return a decorator that registers a function as a tool and runs it in a thread. Answers have no published schema:
    it would cost an agent more tokens than all other definitions, and the answers explain themselves."""

    def with_title(title: str) -> Callable[[Any], Any]:
        def register(call: Callable[..., Answer]) -> Callable[..., Answer]:
            @wraps(call)
            async def answer(**arguments: Any) -> CallToolResult:
                result = await run_call(partial(call, **arguments))
                text = json.dumps(result, ensure_ascii=False, separators=(",", ":"))
                return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=result)

            description = " ".join((inspect.getdoc(call) or "").split())
            server.add_tool(answer, title=title, description=description, annotations=hints, structured_output=False)
            return call

        return register

    return with_title


def _add_search_tools(tool: Register, calls: CallRunner) -> None:
    @tool("Recall what the team knows")
    def recall(
        query: Annotated[Text, Field(description="A task, a question or an error message.")],
        limit: Annotated[int, Field(ge=1, le=50)] = 5,
        offset: Annotated[Offset, Field(le=500)] = 0,
        kinds: Kinds = None,
        as_of: Annotated[
            str | None, Field(max_length=100, description='What held then: "two weeks ago", "2026-05-01".')
        ] = None,
        weak: Annotated[bool, Field(description="Also what is hardly relevant.")] = False,
        repository: Repo = None,
    ) -> Answer:
        """Search what the team's coding agents learned about this codebase: errors and their fixes, decisions,
        conventions, how things work, earlier tasks. Use it before a task, when a command or test fails (paste the
        error), and before you ask the user how something is done here. Hits are one line each, best first, with a
        relevance between 0 and 1; `get_memory` returns the rest. One with `stale` may be out of date: check it against
        the code."""
        with calls.reader() as caller:
            place, chosen, when = caller.place(repository), tuple(kinds or KINDS), _time_of(as_of)

            def search(bar: float) -> list[Experience]:
                return caller.team.recall(
                    query, repository=place, k=offset + limit + 1, kinds=chosen, as_of=when, bar=bar
                )[offset:]

            found = search(0.0 if weak else _MIN_RELEVANCE)
            page = found[:limit]
            caller.team.audit("recall", [hit.id for hit in page], agent=caller.agent)
            rest = [] if found or weak else search(0.0)
            hint = "nothing is relevant enough; weak=true shows the rest" if rest else None
            recall_id = next((hit.recall_id for hit in (*page, *rest)), None)
            return page_of(page, _next_offset(found, limit, offset), recall_id=recall_id, hint=hint)

    @tool("Who knows about a topic")
    def who_knows(
        topic: Annotated[Text, Field(description="A part of the code, a technology or a problem.")],
        limit: Annotated[int, Field(ge=1, le=20)] = 5,
        repository: Repo = None,
    ) -> Answer:
        """The people whose agents learned most about a topic, with the ids of the memories that show it: whom to ask,
        or who should review a change."""
        with calls.reader() as caller:
            found = caller.team.who_knows(topic, repository=caller.place(repository), k=limit, bar=_MIN_RELEVANCE)
            ids = list(dict.fromkeys(id for hit in found for id in hit["memories"]))
            caller.team.audit("recall", ids, agent=caller.agent)
            return {"experts": found}


def _add_lookup_tools(tool: Register, calls: CallRunner) -> None:
    @tool("Get one memory")
    def get_memory(id: Id, repository: Repo = None) -> Answer:
        """One memory in full: its words, error and fix, files, author, agent, time, commit, how often it was learned,
        and whether it may be out of date or was superseded."""
        with calls.reader() as caller:
            experience = visible_memory(caller, id, caller.place(repository))
            caller.team.audit("read", [id], agent=caller.agent)
            return memory_of(experience)

    @tool("List recent memories")
    def list_recent(
        limit: Annotated[int, Field(ge=1, le=100)] = 20,
        offset: Offset = 0,
        kinds: Kinds = None,
        repository: Repo = None,
    ) -> Answer:
        """The newest of what the team knows of this repository, one line each: what happened lately. To find
        something, use `recall`."""
        with calls.reader() as caller:
            place = caller.place(repository)
            found = caller.team.recent(repository=place, kinds=tuple(kinds or KINDS), limit=limit + 1, offset=offset)
            return _page(caller, place, found, limit, offset)

    @tool("History of a file")
    def file_history(
        path: Annotated[
            str, Field(min_length=1, max_length=4096, description='A path or a part of one: "pool.py", "src/db/".')
        ],
        limit: Annotated[int, Field(ge=1, le=100)] = 20,
        offset: Offset = 0,
        repository: Repo = None,
    ) -> Answer:
        """What the team learned about a file and still holds, the newest first, one line each: bugs that were fixed
        there, decisions, what to watch out for. Use it before you change a file that you do not know."""
        with calls.reader() as caller:
            place = caller.place(repository)
            name = place.relative(path) if isinstance(place, Repository) else path.removeprefix("./")
            if path.endswith("/") and not name.endswith("/"):
                name += "/"
            found = caller.team.file_history(name, repository=place, limit=offset + limit + 1)[offset:]
            return _page(caller, place, found, limit, offset)

    @tool("What a session was doing")
    def session_state(
        session_id: Annotated[
            str | None, Field(max_length=400, description="Default: the latest session in this repository.")
        ] = None,
    ) -> Answer:
        """The task, plan, open files, edits, last outputs and failures of a session on this machine, as the hooks saw
        them. Read it when your context was compacted or you go on with work that was interrupted."""
        with calls.reader() as caller:
            where = caller.repository.id if isinstance(caller.repository, Repository) else caller.repository
            if session_id is not None:
                state = caller.sessions.find(session_id)
            else:
                state = None if where is None else caller.sessions.last_in(where)
            if state is None:
                return {"found": False, "hint": "use `recall` with kinds ['task'] for what earlier sessions did"}
            return {"found": True, "state": state.to_dict()}


def _add_fact_tools(tool: Register, calls: CallRunner) -> None:
    @tool("Facts about a thing")
    def facts(
        about: Annotated[str, Field(description='A service, host, file, library, person: "staging".')],
        relation: Annotated[str | None, Field(description='Only this: "runs on".')] = None,
        at: Annotated[str | None, Field(description='What was true then: "2026-05-01".')] = None,
        history: Annotated[bool, Field(description="Also what is over.")] = False,
        limit: Annotated[int, Field(ge=1, le=100)] = 20,
        offset: Offset = 0,
        repository: Repo = None,
    ) -> Answer:
        """What is true of a thing now: what runs where, who owns what, what depends on what. What an
        id has before its # is the memory that says it."""
        with calls.reader() as caller:
            graph, more = _graph(caller, caller.place(repository)), offset + limit + 1
            checks.name("about", about)
            found = graph.facts(about, relation, at=at, history=history, limit=more)
            if len(found) < more:
                found += graph.facts(None, relation, about, at=at, history=history, limit=more)
            found = list({fact.id: fact for fact in found}.values())[offset:]
            page = found[:limit]
            _audit_read(caller, page)
            answer: Answer = {"facts": [fact_of(fact) for fact in page]}
            return answer | ({"next_offset": offset + limit} if len(found) > limit else {})

    @tool("How two things are connected")
    def connect(
        start: Annotated[str, Field(description="A thing.")],
        goal: Annotated[str, Field(description="Another.")],
        max_hops: Annotated[int, Field(ge=1, le=6, description="Facts on the way.")] = 3,
        repository: Repo = None,
    ) -> Answer:
        """The shortest ways from one thing to another by what is true now: why a change here matters there."""
        with calls.reader() as caller:
            found = _graph(caller, caller.place(repository)).paths(start, goal, max_hops, k=_MAX_PATHS)
            _audit_read(caller, [fact for path in found for fact in path.facts])
            return {"paths": [{"path": str(path), "facts": [fact.id for fact in path.facts]} for path in found]}


def _add_state_fact(tool: Register, calls: CallRunner) -> None:
    @tool("State, end or correct a fact")
    def state_fact(
        subject: Annotated[str | None, Field(description='"staging"')] = None,
        relation: Annotated[str | None, Field(description='"runs on"')] = None,
        object: Annotated[str | None, Field(description='"port 5433"')] = None,
        since: Annotated[str | None, Field(description="When it became true. Default: now.")] = None,
        ends: Annotated[str | None, Field(description="The id of a fact that is no longer true.")] = None,
        repository: Repo = None,
    ) -> Answer:
        """State what is true as one fact, end one that is over (`ends` alone), or correct one (both). What was true
        stays known as history. For what takes a sentence, use `remember`."""
        with calls.writer() as caller:
            place = caller.place(repository)
            graph, names = _graph(caller, place), (subject, relation, object)
            given = [caller.clean(name) for name in names if name is not None]
            if len(given) != 3 and (given or ends is None):
                raise ToolError("subject, relation and object must be given together, or `ends` alone")
            ended = None if ends is None else _end_fact(graph, ends, since)
            answer: Answer = {} if ended is None else {"ended": ends}
            try:
                stated = _state_fact(graph, caller, place, given, since) if given else None
            except RemanenceError:
                if ended is not None:
                    graph.undo(ended)
                raise
            new = [fact.memory_id for fact in (ended, stated) if fact is not None]
            caller.team.audit("remember", new, agent=caller.agent, kind=FACT)
            return answer if stated is None else answer | fact_of(stated)


def _graph(caller: McpCaller, place: Place) -> Graph:
    """Return the graph of the facts that the caller may see: those of its team in a repository, and those of no
    place."""
    seen = caller.team.visible(place)
    fields = {"actor": caller.team.author, "agent": caller.agent}
    return Graph(caller.team.brain, None, Scope(lambda scope: scope is None or scope in seen, fields))


def _end_fact(graph: Graph, ends: str, since: str | None) -> Fact | None:
    """End a fact; None if it is already over."""
    try:
        fact = graph.get(ends)
    except (InputError, NotFoundError):
        raise ToolError(f"ends: there is no fact {ends!r} here; `facts` lists ids, such as team-3f2a…#0") from None
    return graph.end(fact, since) if fact.valid_until is None else None


def _state_fact(graph: Graph, caller: McpCaller, place: Place, names: list[str], since: str | None) -> Fact:
    """State a fact; return the known one if it is already stated."""
    subject, relation, object = names
    start = None if since is None else checks.moment("since", since)
    for known in graph.facts(subject, relation, object):
        if known.trust == "stated" and start in (None, known.valid_from):
            return known
    repository = place.id if isinstance(place, Repository) else place
    scope = "personal" if repository is None else caller.scope
    tags = {"state": CURRENT, "scope": scope} | ({} if repository is None else {"repository": repository})
    audience_ = audience(caller.scope, repository, caller.team.author)
    return graph.add(subject, relation, object, since=start, tags=tags, place=audience_)


def _audit_read(caller: McpCaller, facts: Sequence[Fact]) -> None:
    caller.team.audit("read", list(dict.fromkeys(fact.memory_id for fact in facts)), agent=caller.agent)


def _add_write_tools(tool: Register, calls: CallRunner) -> None:
    @tool("Remember for the team")
    def remember(
        text: Annotated[Text, Field(description="What was learned, so that a stranger understands it.")],
        kind: Annotated[
            KindName,
            Field(
                description="codebase: how something works. preference: a rule. decision: what was chosen and why. "
                "error_fix: an error and its fix."
            ),
        ] = "codebase",
        files: Annotated[list[str] | None, Field(max_length=100, description="Files it is about.")] = None,
        scope: Annotated[
            Literal["personal", "repository"] | None,
            Field(description="personal: only this user sees it. Default: whoever works in this repository."),
        ] = None,
        error: Annotated[str, Field(max_length=20_000, description="The error as it was printed.")] = "",
        fix: Annotated[str, Field(max_length=20_000, description="What fixed it.")] = "",
        supersedes: Annotated[
            str | None, Field(max_length=400, description="The id of a memory that no longer holds.")
        ] = None,
        repository: Repo = None,
    ) -> Answer:
        """Keep something for every agent of the team: an error and its fix, how a part of the code works, a decision
        with its reason, a rule. One fact in one memory, in full sentences, with names of files and commands. Use it
        when something took effort to find out and will hold tomorrow; not for what the code says at a glance. Secrets
        are masked. What is known already is counted, not kept twice."""
        with calls.writer() as caller:
            place = caller.place(repository)
            if supersedes is not None:
                visible_memory(caller, supersedes, place, field="supersedes")
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
            answer = {"id": memory.memory_id, "count": count, "scope": note.effective_scope}
            return answer if note.repository is None else {**answer, "repository": note.repository}

    @tool("Say whether a memory helped")
    def feedback(
        recall_id: Annotated[str, Field(min_length=1, max_length=200, description="Of an answer of `recall`.")],
        id: Annotated[
            str | None, Field(max_length=400, description="The memory; leave it out with useful=false if none helped.")
        ] = None,
        useful: Annotated[bool, Field(description="Whether it helped.")] = True,
    ) -> Answer:
        """Say whether a recalled memory helped, once you know: true for one that led to the solution, false for one
        that was wrong or beside the point. The team measures recall by it (`rmem eval online`)."""
        with calls.writer() as caller:
            try:
                caller.team.brain.feedback(recall_id, memory_id=id, useful=useful)
            except InputError as error:
                raise ToolError(_feedback_error(error, recall_id, id)) from error
            store, team = caller.team.brain.store, caller.team
            store.record(team.author, "feedback", [id], origin=team.origin, agent=caller.agent, useful=useful)
            return {"done": True}


def _add_forget(tool: Register, calls: CallRunner) -> None:
    @tool("Forget a memory")
    def forget(id: Id, repository: Repo = None) -> Answer:
        """Remove a memory for good, for everybody: a wrong one, or one that should never have been kept. Over HTTP
        only your own, unless you are an administrator. For what merely changed, `remember` with `supersedes`."""
        with calls.writer() as caller:
            experience = visible_memory(caller, id, caller.place(repository))
            if not caller.may_forget_all and experience.author != caller.team.author:
                raise ToolError("id: only its author or an administrator may forget this memory")
            # The audit entry of the removal itself does not name the agent and the origin.
            caller.team.audit("ask to forget", [id], agent=caller.agent)
            done = {"done": caller.team.forget(id)}
            if not experience.is_foreign:
                return done
            return {**done, "hint": f"a memory of {experience.author}, and back with the next sync unless this user "
                                    "is an administrator; `remember` with `supersedes` replaces it"}  # fmt: skip


def _page(caller: McpCaller, place: Place, found: list[Experience], limit: int, offset: int) -> Answer:
    page = [check_stale(caller, experience, place) for experience in found[:limit]]
    caller.team.audit("read", [experience.id for experience in page], agent=caller.agent)
    return page_of(page, _next_offset(found, limit, offset))


def _next_offset(found: list[Experience], limit: int, offset: int) -> int | None:
    return offset + limit if len(found) > limit else None


def _feedback_error(error: InputError, recall_id: str, memory_id: str | None) -> str:
    """Rewrite an error about feedback in terms of the tool's arguments."""
    if error.field == "recalled":
        return f"recall_id: the recall {recall_id!r} is no longer known; use the recall_id of a new recall"
    if memory_id is None:
        return "id: name the memory that was useful, or say useful=false if nothing helped"
    return f"id: {memory_id!r} is not among the memories that this recall found"


def _time_of(words: str | None) -> float | None:
    if words is None:
        return None
    ago = time_ago(words, datetime.now())
    return ago.timestamp() if ago is not None else checks.moment("as_of", words, end_of_day=True)
