"""The graph of facts over HTTP: the queries of `Brain.graph`, and stating, ending and removing facts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from ... import checks, config
from ...graph import Change, Fact, FactExplanation, Graph, Neighbour, Scope
from ...graph.model import iso
from ...graph.questions import memory_of
from .. import documents, forms, graph_documents
from ..access import Access, Role, allowed
from ..bodies import Document, cursor_of, parts_of
from ..exchange import body_schema, json_body, json_response
from ..ownership import check_change, check_new, is_visible
from .answers import RUNNING
from .memories import moment_of, record_new, where_of

router = APIRouter(prefix="/workspaces/{workspace}/graph", tags=["graph"], responses=RUNNING)

Reader = Annotated[Access, Depends(allowed(Role.READ))]
Writer = Annotated[Access, Depends(allowed(Role.WRITE))]
Name = Annotated[str, Field(min_length=1, max_length=512)]
_LATER = 1_000_000  # entries that pages may pass over


def graph_of(access: Access, where: str | None = None) -> Graph:
    """Return the graph that the caller may see; facts that they state carry their name."""
    scope = Scope(partial(is_visible, access), {"actor": access.member})
    return Graph(access.brain, None if where is None else where_of(where), scope)


# Parameters


class GraphParameters(BaseModel):
    model_config = ConfigDict(extra="forbid")

    where: Annotated[str | None, Field(description="A filter of the memories that say the facts, as JSON.")] = None


class TimedParameters(GraphParameters):
    at: Annotated[str | None, Field(description="Facts that were true at this time; default: now.")] = None
    believed: Annotated[str | None, Field(description="Only what was known at this time.")] = None

    def times(self) -> dict[str, Any]:
        return {"at": moment_of(self.at), "believed": moment_of(self.believed)}


class PagedParameters(BaseModel):
    limit: Annotated[int, Field(ge=1, le=1000)] = 100
    cursor: Annotated[str | None, Field(description="The next_cursor of the answer before.")] = None

    @property
    def offset(self) -> int:
        if self.cursor is None:
            return 0
        passed = parts_of(self.cursor, 1)[0]
        if not isinstance(passed, int) or not 0 < passed <= _LATER:
            raise checks.refuse("cursor", "the next_cursor of an answer", self.cursor)
        return passed

    def page(self, key: str, found: Sequence[Any], to_document: Callable[[Any], Any]) -> Document:
        """A page of a list: `found` is one more than `limit` where there is another page."""
        after = cursor_of(self.offset + self.limit) if len(found) > self.limit else None
        return {key: [to_document(item) for item in found[: self.limit]], "next_cursor": after}

    def slice(self, key: str, whole: Sequence[Any], to_document: Callable[[Any], Any]) -> Document:
        return self.page(key, whole[self.offset : self.offset + self.limit + 1], to_document)


class FactsParameters(PagedParameters, TimedParameters):
    subject: Name | None = None
    relation: list[Name] = []
    object: Name | None = None
    history: Annotated[bool, Field(description="Also what is over.")] = False
    likely: Annotated[bool, Field(description="Also what was read by rules that are often right.")] = False

    @property
    def is_all(self) -> bool:
        return not (self.subject or self.relation or self.object)

    @property
    def place(self) -> tuple[int, int] | None:
        """The last fact of the page before, of pages of all facts."""
        if self.cursor is None:
            return None
        seq, number = (checks.whole("cursor", part) for part in parts_of(self.cursor, 2))
        return seq, number


class NeighboursParameters(PagedParameters, TimedParameters):
    entity: Name
    relation: list[Name] = []
    direction: Literal["out", "in", "both"] = "both"
    likely: bool = False


class PathsParameters(TimedParameters):
    start: Name
    goal: Name
    max_hops: Annotated[int, Field(ge=1, le=8)] = 3
    k: Annotated[int, Field(ge=1, le=1000)] = 1
    relation: list[Name] = []
    likely: bool = False


class TimelineParameters(PagedParameters, GraphParameters):
    entity: Name
    believed: str | None = None


class BetweenParameters(PagedParameters, GraphParameters):
    start: str
    end: str
    entity: Name | None = None
    believed: str | None = None


class ListParameters(PagedParameters, GraphParameters):
    pass


class ContradictionsParameters(ListParameters):
    entity: Annotated[Name | None, Field(description="Only those in which it occurs, and their rivals.")] = None


class QueryParameters(PagedParameters, TimedParameters):
    pattern: Annotated[str, Field(min_length=1, description="?who owns ?service, ?service depends on redis")]


class ClosureParameters(PagedParameters, GraphParameters):
    entity: Name
    relation: Name
    direction: Literal["out", "in"] = "out"
    depth: Annotated[int, Field(ge=1, le=10_000)] = 64


class EntitiesParameters(PagedParameters, GraphParameters):
    like: Annotated[Name | None, Field(description="A part of the name.")] = None


class ImportantParameters(GraphParameters):
    limit: Annotated[int, Field(ge=1, le=1000)] = 20


class CommunitiesParameters(GraphParameters):
    smallest: Annotated[int, Field(ge=1, le=1_000_000)] = 3
    limit: Annotated[int, Field(ge=1, le=1000)] = 20


# Questions


async def _answer(access: Access, parameters: GraphParameters, question: Callable[[Graph], Document]) -> Response:
    def answer() -> Document:
        return question(graph_of(access, parameters.where))

    return json_response(await access.read(answer))


@router.get("", response_model=graph_documents.GraphAnswer, summary="How many facts there are")
async def size(access: Reader, parameters: Annotated[GraphParameters, Query()]) -> Response:
    return await _answer(access, parameters, lambda graph: {"facts": len(graph)})


@router.get("/facts", response_model=graph_documents.FactsAnswer, summary="What is true, or was")
async def facts(access: Reader, parameters: Annotated[FactsParameters, Query()]) -> Response:
    """Returns facts true now or at the time `at`, as known at the time `believed`; with `history` also ended ones."""
    named = {"history": parameters.history, "likely": parameters.likely, **parameters.times()}

    def question(graph: Graph) -> Document:
        if parameters.is_all:
            page, following = graph.facts_after(parameters.place, parameters.limit, **named)
            after = None if following is None else cursor_of(*following)
            return {"facts": _to_documents(page), "next_cursor": after}
        found = graph.facts(
            parameters.subject,
            parameters.relation or None,
            parameters.object,
            limit=parameters.limit + 1,
            offset=parameters.offset,
            **named,
        )
        return parameters.page("facts", found, Fact.to_dict)

    return await _answer(access, parameters, question)


@router.get(
    "/facts/{fact_id:path}/explain",
    response_model=graph_documents.FactExplanationAnswer,
    summary="The sentence that states a fact, and other facts of its subject and relation",
)
async def explain(access: Reader, fact_id: str, parameters: Annotated[GraphParameters, Query()]) -> Response:
    return await _answer(access, parameters, lambda graph: _explanation(graph.explain(fact_id)))


@router.get("/facts/{fact_id:path}", response_model=graph_documents.FactAnswer, summary="One fact")
async def fact(access: Reader, fact_id: str, parameters: Annotated[GraphParameters, Query()]) -> Response:
    """The id of a fact contains a `#`, which is `%23` in a path."""
    return await _answer(access, parameters, lambda graph: graph.get(fact_id).to_dict())


@router.get(
    "/memories/{memory_id:path}",
    response_model=graph_documents.FactsOfMemoryAnswer,
    summary="The facts that a memory states",
)
async def of_memory(access: Reader, memory_id: str, parameters: Annotated[GraphParameters, Query()]) -> Response:
    return await _answer(access, parameters, lambda graph: {"facts": _to_documents(graph.of_memory(memory_id))})


@router.get("/neighbours", response_model=graph_documents.NeighboursAnswer, summary="What is connected with an entity")
async def neighbours(access: Reader, parameters: Annotated[NeighboursParameters, Query()]) -> Response:
    named = {"direction": parameters.direction, "likely": parameters.likely, **parameters.times()}

    def question(graph: Graph) -> Document:
        found = graph.neighbours(
            parameters.entity,
            relations=parameters.relation or None,
            limit=parameters.limit + 1,
            offset=parameters.offset,
            **named,
        )
        return parameters.page("neighbours", found, _neighbour)

    return await _answer(access, parameters, question)


@router.get(
    "/paths", response_model=graph_documents.PathsAnswer, summary="The shortest ways from one entity to another"
)
async def paths(access: Reader, parameters: Annotated[PathsParameters, Query()]) -> Response:
    def question(graph: Graph) -> Document:
        found = graph.paths(
            parameters.start,
            parameters.goal,
            parameters.max_hops,
            k=parameters.k,
            relations=parameters.relation or None,
            likely=parameters.likely,
            **parameters.times(),
        )
        return {"paths": [{"names": list(item.names), "facts": _to_documents(item.facts)} for item in found]}

    return await _answer(access, parameters, question)


@router.get(
    "/timeline",
    response_model=graph_documents.FactChangesAnswer,
    summary="All that began and ended about an entity, in order",
)
async def timeline(access: Reader, parameters: Annotated[TimelineParameters, Query()]) -> Response:
    def question(graph: Graph) -> Document:
        found = graph.timeline(
            parameters.entity,
            believed=moment_of(parameters.believed),
            limit=parameters.limit + 1,
            offset=parameters.offset,
        )
        return parameters.page("changes", found, _change)

    return await _answer(access, parameters, question)


@router.get("/between", response_model=graph_documents.FactChangesAnswer, summary="What changed between two times")
async def between(access: Reader, parameters: Annotated[BetweenParameters, Query()]) -> Response:
    def question(graph: Graph) -> Document:
        start, end = moment_of(parameters.start), moment_of(parameters.end)
        assert start is not None
        assert end is not None
        found = graph.between(
            start,
            end,
            parameters.entity,
            believed=moment_of(parameters.believed),
            limit=parameters.limit + 1,
            offset=parameters.offset,
        )
        return parameters.page("changes", found, _change)

    return await _answer(access, parameters, question)


@router.get(
    "/contradictions",
    response_model=graph_documents.ContradictionsAnswer,
    summary="Pairs of facts that cannot both be true at one time",
)
async def contradictions(access: Reader, parameters: Annotated[ContradictionsParameters, Query()]) -> Response:
    def question(graph: Graph) -> Document:
        found = graph.contradictions(parameters.entity, limit=parameters.limit + 1, offset=parameters.offset)
        return parameters.page(
            "contradictions", found, lambda pair: {"first": pair.first.to_dict(), "second": pair.second.to_dict()}
        )

    return await _answer(access, parameters, question)


@router.get("/query", response_model=graph_documents.MatchesAnswer, summary="The values of the variables of a pattern")
async def query(access: Reader, parameters: Annotated[QueryParameters, Query()]) -> Response:
    """`?who owns ?service, ?service depends on redis`; names of several words may stand in quotes."""

    def question(graph: Graph) -> Document:
        found = graph.query(parameters.pattern, limit=parameters.offset + parameters.limit + 1, **parameters.times())
        return parameters.slice("matches", found, dict)

    return await _answer(access, parameters, question)


@router.get(
    "/closure", response_model=graph_documents.ClosureAnswer, summary="All that is reached by one relation alone"
)
async def closure(access: Reader, parameters: Annotated[ClosureParameters, Query()]) -> Response:
    def question(graph: Graph) -> Document:
        found = graph.closure(
            parameters.entity,
            parameters.relation,
            direction=parameters.direction,
            depth=parameters.depth,
            limit=parameters.limit + 1,
            offset=parameters.offset,
        )
        return parameters.page("reached", found, lambda item: {"name": item[0], "steps": item[1]})

    return await _answer(access, parameters, question)


@router.get("/entities", response_model=graph_documents.EntitiesAnswer, summary="Entities, those of most facts first")
async def entities(access: Reader, parameters: Annotated[EntitiesParameters, Query()]) -> Response:
    def question(graph: Graph) -> Document:
        return parameters.slice(
            "entities", graph.entities(parameters.like, limit=parameters.offset + parameters.limit + 1), _count_document
        )

    return await _answer(access, parameters, question)


@router.get(
    "/relations", response_model=graph_documents.RelationsAnswer, summary="Relations, those of most facts first"
)
async def relations(access: Reader, parameters: Annotated[GraphParameters, Query()]) -> Response:
    return await _answer(
        access, parameters, lambda graph: {"relations": [_count_document(item) for item in graph.relations()]}
    )


@router.get("/important", response_model=graph_documents.ImportantAnswer, summary="Entities by PageRank")
async def important(access: Reader, parameters: Annotated[ImportantParameters, Query()]) -> Response:
    def question(graph: Graph) -> Document:
        return {"entities": [{"name": name, "share": share} for name, share in graph.important(parameters.limit)]}

    return await _answer(access, parameters, question)


@router.get(
    "/communities",
    response_model=graph_documents.CommunitiesAnswer,
    summary="Groups of entities with many facts among them, the largest first",
)
async def communities(access: Reader, parameters: Annotated[CommunitiesParameters, Query()]) -> Response:
    def question(graph: Graph) -> Document:
        return {"communities": graph.communities(smallest=parameters.smallest, limit=parameters.limit)}

    return await _answer(access, parameters, question)


# Writing


@router.post(
    "/facts",
    status_code=201,
    response_model=graph_documents.FactAnswer,
    openapi_extra=body_schema(forms.FactForm),
    summary="State a fact",
)
async def add(access: Writer, form: Annotated[Document, Depends(json_body(forms.FactForm, "a fact"))]) -> Response:
    """Stored as a memory of the type `fact`."""
    check_new(access, {"place": form.get("place")})
    return await _state(access, lambda graph: graph.add(**form))


@router.post(
    "/facts/{fact_id:path}/end",
    status_code=201,
    response_model=graph_documents.FactAnswer,
    openapi_extra=body_schema(forms.EndForm),
    summary="Say that a fact is no longer true",
)
async def end(
    access: Writer, fact_id: str, form: Annotated[Document, Depends(json_body(forms.EndForm, "the end of a fact"))]
) -> Response:
    """The answer is the statement that it ended; deleting that takes it back."""
    return await _state(access, lambda graph: graph.end(fact_id, form.get("when")))


@router.post(
    "/aliases",
    status_code=201,
    response_model=graph_documents.FactAnswer,
    openapi_extra=body_schema(forms.AliasForm),
    summary="Say that two names mean one entity",
)
async def alias(access: Writer, form: Annotated[Document, Depends(json_body(forms.AliasForm, "an alias"))]) -> Response:
    return await _state(access, lambda graph: graph.alias(form["name"], form["other"]))


@router.post(
    "/relations",
    status_code=201,
    response_model=graph_documents.FactAnswer,
    openapi_extra=body_schema(forms.DeclareForm),
    summary="Say whether a relation has one value at a time or many",
)
async def declare(
    access: Writer, form: Annotated[Document, Depends(json_body(forms.DeclareForm, "a declaration"))]
) -> Response:
    return await _state(access, lambda graph: graph.declare(form["relation"], single=form["single"]))


async def _state(access: Access, state: Callable[[Graph], Fact]) -> Response:
    def write() -> Document:
        access.need_room()
        with access.once():
            stated = state(graph_of(access))
            memory = access.brain.get(stated.memory_id)
            record_new(access, [] if memory is None else [memory])
            return stated.to_dict()

    return json_response(await access.write(write), 201)


@router.delete(
    "/facts/{fact_id:path}",
    response_model=documents.IdsAnswer,
    summary="Take back what was stated: a fact, an end, an alias or a declaration",
)
async def undo(access: Writer, fact_id: str) -> Response:
    """What was read from a memory goes with that memory."""
    return json_response({"ids": [await access.write(_undo, access, fact_id)]})


def _undo(access: Access, fact_id: str) -> str:
    memory_id = memory_of(fact_id)
    memory = access.brain.get(memory_id)
    if memory is not None and is_visible(access, memory.place):
        check_change(access, memory)
    with config.acting(access.member, access.token_id), access.once():
        graph_of(access).undo(fact_id)
    return memory_id


# What is told


def _to_documents(found: Sequence[Fact]) -> list[Document]:
    return [item.to_dict() for item in found]


def _neighbour(item: Neighbour) -> Document:
    return {"name": item.name, "outgoing": item.outgoing, "fact": item.fact.to_dict()}


def _change(item: Change) -> Document:
    return {"time": iso(item.time), "began": item.began, "fact": item.fact.to_dict()}


def _count_document(item: tuple[str, int]) -> Document:
    return {"name": item[0], "facts": item[1]}


def _explanation(item: FactExplanation) -> Document:
    document = {"fact": item.fact.to_dict(), "sentence": item.sentence, "text": item.text}
    return {**document, "same": _to_documents(item.same), "others": _to_documents(item.others)}
