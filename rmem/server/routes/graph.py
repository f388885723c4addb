"""The graph of facts over HTTP: the queries of `Brain.graph`, and stating, ending and removing facts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

from ... import checks, config
from ...graph import Fact, Graph, Scope
from ...graph.model import document_of
from ...graph.questions import memory_of
from .. import documents, forms, graph_documents
from ..access import Access, Reader, Writer
from ..bodies import Document, cursor_of, parts_of
from ..json_router import JsonRouter
from ..ownership import check_change, check_new, is_visible
from .answers import RUNNING
from .memories import moment_of, record_new, where_of

router = JsonRouter(prefix="/workspaces/{workspace}/graph", tags=["graph"], responses=RUNNING)

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

    def span(self) -> dict[str, int]:
        """Which part of a list to read: one entry more than the page shows, if there is one."""
        return {"limit": self.limit + 1, "offset": self.offset}

    def page(self, key: str, found: Sequence[Any], to_document: Callable[[Any], Any] = document_of) -> Document:
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


@router.json("GET", "", graph_documents.GraphAnswer, "How many facts there are")
def size(access: Reader, asked: Annotated[GraphParameters, Query()]) -> Document:
    return {"facts": len(graph_of(access, asked.where))}


@router.json("GET", "/facts", graph_documents.FactsAnswer, "What is true, or was")
def facts(access: Reader, asked: Annotated[FactsParameters, Query()]) -> Document:
    """Returns facts true now or at the time `at`, as known at the time `believed`; with `history` also ended ones."""
    graph = graph_of(access, asked.where)
    named = {"history": asked.history, "likely": asked.likely, **asked.times()}
    if asked.is_all:
        page, following = graph.facts_after(asked.place, asked.limit, **named)
        return {"facts": document_of(page), "next_cursor": None if following is None else cursor_of(*following)}
    found = graph.facts(
        asked.subject,
        asked.relation or None,
        asked.object,
        limit=asked.limit + 1,
        offset=asked.offset,
        **named,
    )
    return asked.page("facts", found)


@router.json(
    "GET",
    "/facts/{fact_id:path}/explain",
    graph_documents.FactExplanationAnswer,
    "The sentence that states a fact, and other facts of its subject and relation",
)
def explain(access: Reader, fact_id: str, asked: Annotated[GraphParameters, Query()]) -> Document:
    answer: Document = document_of(graph_of(access, asked.where).explain(fact_id))
    return answer


@router.json("GET", "/facts/{fact_id:path}", graph_documents.FactAnswer, "One fact")
def fact(access: Reader, fact_id: str, asked: Annotated[GraphParameters, Query()]) -> Document:
    """The id of a fact contains a `#`, which is `%23` in a path."""
    return graph_of(access, asked.where).get(fact_id).to_dict()


@router.json("GET", "/memories/{memory_id:path}", graph_documents.FactsOfMemoryAnswer, "The facts that a memory states")
def of_memory(access: Reader, memory_id: str, asked: Annotated[GraphParameters, Query()]) -> Document:
    return {"facts": document_of(graph_of(access, asked.where).of_memory(memory_id))}


@router.json("GET", "/neighbours", graph_documents.NeighboursAnswer, "What is connected with an entity")
def neighbours(access: Reader, asked: Annotated[NeighboursParameters, Query()]) -> Document:
    found = graph_of(access, asked.where).neighbours(
        asked.entity,
        relations=asked.relation or None,
        direction=asked.direction,
        likely=asked.likely,
        **asked.times(),
        **asked.span(),
    )
    return asked.page("neighbours", found)


@router.json("GET", "/paths", graph_documents.PathsAnswer, "The shortest ways from one entity to another")
def paths(access: Reader, asked: Annotated[PathsParameters, Query()]) -> Document:
    found = graph_of(access, asked.where).paths(
        asked.start,
        asked.goal,
        asked.max_hops,
        k=asked.k,
        relations=asked.relation or None,
        likely=asked.likely,
        **asked.times(),
    )
    return {"paths": document_of(found)}


@router.json(
    "GET", "/timeline", graph_documents.FactChangesAnswer, "All that began and ended about an entity, in order"
)
def timeline(access: Reader, asked: Annotated[TimelineParameters, Query()]) -> Document:
    graph = graph_of(access, asked.where)
    found = graph.timeline(asked.entity, believed=moment_of(asked.believed), **asked.span())
    return asked.page("changes", found)


@router.json("GET", "/between", graph_documents.FactChangesAnswer, "What changed between two times")
def between(access: Reader, asked: Annotated[BetweenParameters, Query()]) -> Document:
    start, end = moment_of(asked.start), moment_of(asked.end)
    assert start is not None
    assert end is not None
    graph = graph_of(access, asked.where)
    found = graph.between(start, end, asked.entity, believed=moment_of(asked.believed), **asked.span())
    return asked.page("changes", found)


@router.json(
    "GET",
    "/contradictions",
    graph_documents.ContradictionsAnswer,
    "Pairs of facts that cannot both be true at one time",
)
def contradictions(access: Reader, asked: Annotated[ContradictionsParameters, Query()]) -> Document:
    found = graph_of(access, asked.where).contradictions(asked.entity, **asked.span())
    return asked.page("contradictions", found)


@router.json("GET", "/query", graph_documents.MatchesAnswer, "The values of the variables of a pattern")
def query(access: Reader, asked: Annotated[QueryParameters, Query()]) -> Document:
    """`?who owns ?service, ?service depends on redis`; names of several words may stand in quotes."""
    graph = graph_of(access, asked.where)
    return asked.slice(
        "matches", graph.query(asked.pattern, limit=asked.offset + asked.limit + 1, **asked.times()), dict
    )


@router.json("GET", "/closure", graph_documents.ClosureAnswer, "All that is reached by one relation alone")
def closure(access: Reader, asked: Annotated[ClosureParameters, Query()]) -> Document:
    graph = graph_of(access, asked.where)
    found = graph.closure(asked.entity, asked.relation, direction=asked.direction, depth=asked.depth, **asked.span())
    return asked.page("reached", found, lambda item: {"name": item[0], "steps": item[1]})


@router.json("GET", "/entities", graph_documents.EntitiesAnswer, "Entities, those of most facts first")
def entities(access: Reader, asked: Annotated[EntitiesParameters, Query()]) -> Document:
    found = graph_of(access, asked.where).entities(asked.like, limit=asked.offset + asked.limit + 1)
    return asked.slice("entities", found, _count_document)


@router.json("GET", "/relations", graph_documents.RelationsAnswer, "Relations, those of most facts first")
def relations(access: Reader, asked: Annotated[GraphParameters, Query()]) -> Document:
    return {"relations": [_count_document(item) for item in graph_of(access, asked.where).relations()]}


@router.json("GET", "/important", graph_documents.ImportantAnswer, "Entities by PageRank")
def important(access: Reader, asked: Annotated[ImportantParameters, Query()]) -> Document:
    found = graph_of(access, asked.where).important(asked.limit)
    return {"entities": [{"name": name, "share": share} for name, share in found]}


@router.json(
    "GET",
    "/communities",
    graph_documents.CommunitiesAnswer,
    "Groups of entities with many facts among them, the largest first",
)
def communities(access: Reader, asked: Annotated[CommunitiesParameters, Query()]) -> Document:
    found = graph_of(access, asked.where).communities(smallest=asked.smallest, limit=asked.limit)
    return {"communities": found}


# Writing


@router.json("POST", "/facts", graph_documents.FactAnswer, "State a fact", form=forms.FactForm, status=201)
def add(access: Writer, form: Document) -> Document:
    """Stored as a memory of the type `fact`."""
    check_new(access, {"place": form.get("place")})
    return _state(access, lambda graph: graph.add(**form))


@router.json(
    "POST",
    "/facts/{fact_id:path}/end",
    graph_documents.FactAnswer,
    "Say that a fact is no longer true",
    form=forms.EndForm,
    status=201,
)
def end(access: Writer, fact_id: str, form: Document) -> Document:
    """The answer is the statement that it ended; deleting that takes it back."""
    return _state(access, lambda graph: graph.end(fact_id, form.get("when")))


@router.json(
    "POST",
    "/aliases",
    graph_documents.FactAnswer,
    "Say that two names mean one entity",
    form=forms.AliasForm,
    status=201,
)
def alias(access: Writer, form: Document) -> Document:
    return _state(access, lambda graph: graph.alias(form["name"], form["other"]))


@router.json(
    "POST",
    "/relations",
    graph_documents.FactAnswer,
    "Say whether a relation has one value at a time or many",
    form=forms.DeclareForm,
    status=201,
)
def declare(access: Writer, form: Document) -> Document:
    return _state(access, lambda graph: graph.declare(form["relation"], single=form["single"]))


def _state(access: Access, state: Callable[[Graph], Fact]) -> Document:
    access.need_room()
    with access.once():
        stated = state(graph_of(access))
        memory = access.brain.get(stated.memory_id)
        record_new(access, [] if memory is None else [memory])
        return stated.to_dict()


@router.json(
    "DELETE",
    "/facts/{fact_id:path}",
    documents.IdsAnswer,
    "Take back what was stated: a fact, an end, an alias or a declaration",
)
def undo(access: Writer, fact_id: str) -> Document:
    """What was read from a memory goes with that memory."""
    memory_id = memory_of(fact_id)
    memory = access.brain.get(memory_id)
    if memory is not None and is_visible(access, memory.place):
        check_change(access, memory)
    with config.acting(access.member, access.token_id), access.once():
        graph_of(access).undo(fact_id)
    return {"ids": [memory_id]}


def _count_document(item: tuple[str, int]) -> Document:
    return {"name": item[0], "facts": item[1]}
