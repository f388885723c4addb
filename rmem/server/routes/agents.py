"""The agent memory API over HTTP: store states, actions and interactions of agents, and search them.

Each search of a MemorySpace is a route of its own, `POST …/agents/{agent}/retrievals/NAME`, whose body has the method's
arguments; `RETRIEVALS` is the table of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import BaseModel

from ... import checks, config
from ...agents.entries import MemoryEntries, MemoryEntry
from ...agents.records import place_of
from ...agents.space import MemorySpace
from ...agents.types import MemoryChangeRecord, MemoryStatistics
from ...errors import InputError, NotFoundError
from ...models import Memory
from .. import documents, forms
from ..access import Access, Role, allowed
from ..bodies import MOST_AT_ONCE, Document
from ..exchange import body_schema, json_body, json_response
from ..ownership import check_change, check_place, is_known, is_visible, known_entries, visible_stats
from .answers import RUNNING

router = APIRouter(prefix="/workspaces/{workspace}", tags=["agents"], responses=RUNNING)

Reader = Annotated[Access, Depends(allowed(Role.READ))]
Writer = Annotated[Access, Depends(allowed(Role.WRITE))]
Admin = Annotated[Access, Depends(allowed(Role.ADMIN))]
Agent = Annotated[str, Path(description="The name of an agent.")]
Limit = Annotated[int, Query(ge=1, le=10_000, description="At most so many of what was found.")]
Offset = Annotated[int, Query(ge=0, description="How many to pass over first.")]
Vectors = Annotated[bool, Query(description="With the vectors of each memory.")]


class Retrieval(NamedTuple):
    method: str
    form: type[BaseModel]
    summary: str


RETRIEVALS = {
    "recent": Retrieval("retrieve_recent_states", forms.RecentForm, "The newest memories, newest first"),
    "similar-states": Retrieval("retrieve_similar_states", forms.SimilarForm, "The memories most like a state"),
    "time-range": Retrieval("retrieve_by_time_range", forms.TimeRangeForm, "All memories from one step to another"),
    "times": Retrieval("retrieve_by_time", forms.TimeForm, "All memories between two moments"),
    "attributes": Retrieval("retrieve_by_attributes", forms.AttributesForm, "All memories with these values"),
    "locations": Retrieval("retrieve_by_location", forms.LocationForm, "Memories near a position, in a box or place"),
    "importance": Retrieval("retrieve_by_importance", forms.ImportanceForm, "The most important memories first"),
    "embedding": Retrieval("search_by_embedding", forms.EmbeddingForm, "The memories nearest to a vector"),
    "content": Retrieval("search_by_content", forms.ContentForm, "The memories that say something like this"),
    "query": Retrieval("query", forms.QueryForm, "All of this in one call"),
}


def _space(access: Access, agent: str) -> MemorySpace:
    return access.agents.get_memory_space(agent)


def _entry(entry: MemoryEntry, vectors: bool) -> Document:
    document = dict(entry)
    if not vectors:
        del document["embeddings"]
    return {**document, "tier": entry.tier, "score": entry.score}


# Storing


@router.post(
    "/agents/{agent:path}/states",
    status_code=201,
    response_model=documents.StoredAnswer,
    openapi_extra=body_schema(forms.StateForm),
    summary="Store an agent's state",
)
async def store_state(
    access: Writer, agent: Agent, form: Annotated[Document, Depends(json_body(forms.StateForm, "a state"))]
) -> Response:
    return json_response({"memory_id": await access.write(_store, access, agent, "state", form)}, 201)


@router.post(
    "/agents/{agent:path}/actions",
    status_code=201,
    response_model=documents.StoredAnswer,
    openapi_extra=body_schema(forms.ActionForm),
    summary="Store what an agent did",
)
async def store_action(
    access: Writer, agent: Agent, form: Annotated[Document, Depends(json_body(forms.ActionForm, "an action"))]
) -> Response:
    return json_response({"memory_id": await access.write(_store, access, agent, "action", form)}, 201)


@router.post(
    "/agents/{agent:path}/interactions",
    status_code=201,
    response_model=documents.StoredAnswer,
    openapi_extra=body_schema(forms.InteractionForm),
    summary="Store an interaction with somebody",
)
async def store_interaction(
    access: Writer, agent: Agent, form: Annotated[Document, Depends(json_body(forms.InteractionForm, "an interaction"))]
) -> Response:
    return json_response({"memory_id": await access.write(_store, access, agent, "interaction", form)}, 201)


def _store(access: Access, agent: str, kind: str, form: Document) -> str:
    store = getattr(access.agents, f"store_agent_{kind}")
    _check_places(access, [form[f"{kind}_data"]])
    access.need_room()
    with access.once():
        return str(store(agent, **form))


@router.post(
    "/agents/{agent:path}/several",
    status_code=201,
    response_model=documents.IdsAnswer,
    openapi_extra=body_schema(forms.SeveralForm),
    summary="Store many states, actions or interactions, one for each step",
)
async def store_several(
    access: Writer, agent: Agent, form: Annotated[Document, Depends(json_body(forms.SeveralForm, "several memories"))]
) -> Response:
    items = form["items"]
    if not isinstance(items, list) or not 0 < len(items) <= MOST_AT_ONCE:
        raise checks.refuse("items", f"a list of 1 to {MOST_AT_ONCE} objects", items)
    return json_response({"ids": await access.write(_store_several, access, agent, form)}, 201)


def _store_several(access: Access, agent: str, form: Document) -> list[str]:
    _check_places(access, form["items"])
    access.need_room()
    with access.once():
        return _space(access, agent).store_many(
            form["memory_type"], form["items"], first_step=form["first_step"], priority=form.get("priority", 1.0)
        )


def _check_places(access: Access, items: list[Any]) -> None:
    """Refuse memories in a colleague's personal place."""
    for item in items:
        if isinstance(item, dict) and (place := place_of(item)) is not None:
            check_place(access, place)


# Retrieving


def _retrieval_route(name: str, retrieval: Retrieval) -> Callable[..., Awaitable[Response]]:
    read: Any = Depends(json_body(retrieval.form, f"the retrieval {name!r}"))

    async def retrieve(
        access: Reader,
        agent: Agent,
        form: Document = read,
        limit: Limit = 1000,
        offset: Offset = 0,
        vectors: Vectors = False,
    ) -> Response:
        return await access.read(_retrieve, access, agent, retrieval.method, form, limit, offset, vectors)

    return retrieve


def _retrieve(
    access: Access, agent: str, method: str, form: Document, limit: int, offset: int, vectors: bool
) -> Response:
    answered: MemoryEntries = getattr(_space(access, agent), method)(**form)
    found = known_entries(access, answered)
    page = found[offset : offset + limit]
    return json_response(
        {
            "memories": [_entry(entry, vectors) for entry in page],
            "total": len(found),
            "missing_tiers": list(answered.missing_tiers),
        }
    )


for _name, _asked in RETRIEVALS.items():
    router.add_api_route(
        f"/agents/{{agent:path}}/retrievals/{_name}",
        _retrieval_route(_name, _asked),
        methods=["POST"],
        response_model=documents.EntriesAnswer,
        openapi_extra=body_schema(_asked.form),
        summary=_asked.summary,
        operation_id=f"retrieve_{_name.replace('-', '_')}",
    )


@router.post(
    "/agents/{agent:path}/embed",
    response_model=documents.VectorAnswer,
    openapi_extra=body_schema(forms.EmbedForm),
    summary="The vector of a state or a text",
)
async def embed(
    access: Reader, agent: Agent, form: Annotated[Document, Depends(json_body(forms.EmbedForm, "what to embed"))]
) -> Response:
    return json_response({"vector": await access.read(_embed, access, agent, form["state_or_text"])})


def _embed(access: Access, agent: str, value: Any) -> list[float]:
    return _space(access, agent).embed(value)


# How a state changed


@router.post(
    "/agents/{agent:path}/history",
    response_model=documents.HistoryAnswer,
    openapi_extra=body_schema(forms.HistoryForm),
    summary="The values of one attribute over the steps",
)
async def history(
    access: Reader, agent: Agent, form: Annotated[Document, Depends(json_body(forms.HistoryForm, "a history"))]
) -> Response:
    return json_response({"history": await access.read(_history, access, agent, form)})


def _history(access: Access, agent: str, form: Document) -> list[MemoryChangeRecord]:
    return [value for value in _space(access, agent).attribute_history(**form) if is_known(access, value["memory_id"])]


@router.post(
    "/agents/{agent:path}/changes",
    response_model=documents.ChangesAnswer,
    openapi_extra=body_schema(forms.ChangesForm),
    summary="What differs between the states at two steps",
)
async def changes(
    access: Reader, agent: Agent, form: Annotated[Document, Depends(json_body(forms.ChangesForm, "two steps"))]
) -> Response:
    return json_response({"changes": await access.read(_changes, access, agent, form)})


def _changes(access: Access, agent: str, form: Document) -> Document:
    def known(memory: Memory) -> bool:
        return is_visible(access, memory.place)

    return dict(_space(access, agent).changes_between(form["first_step"], form["second_step"], known=known))


# One memory


@router.post(
    "/agents/{agent:path}/memories/{memory_id:path}/focus",
    response_model=documents.EntryAnswer,
    summary="Give attention to a memory; often enough, it moves up a tier",
)
async def focus(access: Writer, agent: Agent, memory_id: str, vectors: Vectors = False) -> Response:
    return json_response(_entry(await access.write(_focus, access, agent, memory_id), vectors))


def _focus(access: Access, agent: str, memory_id: str) -> MemoryEntry:
    _check(access, memory_id)
    return _space(access, agent).focus(memory_id)


@router.post(
    "/agents/{agent:path}/memories/{memory_id:path}/decompress",
    response_model=documents.EntryAnswer,
    summary="Bring a memory back from long-term to intermediate memory",
)
async def decompress(access: Writer, agent: Agent, memory_id: str, vectors: Vectors = False) -> Response:
    return json_response(_entry(await access.write(_decompress, access, agent, memory_id), vectors))


def _decompress(access: Access, agent: str, memory_id: str) -> MemoryEntry:
    _check(access, memory_id)
    return _space(access, agent).decompress(memory_id)


@router.get(
    "/agents/{agent:path}/memories/{memory_id:path}",
    response_model=documents.EntryAnswer,
    summary="One memory of an agent",
)
async def entry(access: Reader, agent: Agent, memory_id: str, vectors: Vectors = False) -> Response:
    return json_response(_entry(await access.read(_get, access, agent, memory_id), vectors))


def _get(access: Access, agent: str, memory_id: str) -> MemoryEntry:
    found = _space(access, agent).get(memory_id)
    if found is None or not known_entries(access, [found]):
        raise NotFoundError(memory_id)
    return found


def _check(access: Access, memory_id: str) -> None:
    """Refuse to change another member's memory."""
    known = access.brain.get(memory_id)
    if known is not None:
        check_change(access, known)


@router.patch(
    "/agents/{agent:path}/memories/{memory_id:path}",
    response_model=documents.EntryAnswer,
    openapi_extra=body_schema(forms.PriorityForm),
    summary="Change how important a memory is",
)
async def prioritise(
    access: Writer,
    agent: Agent,
    memory_id: str,
    form: Annotated[Document, Depends(json_body(forms.PriorityForm, "an update"))],
    vectors: Vectors = False,
) -> Response:
    return json_response(
        _entry(await access.write(_set_importance, access, agent, memory_id, form["importance"]), vectors)
    )


def _set_importance(access: Access, agent: str, memory_id: str, importance: Any) -> MemoryEntry:
    _get(access, agent, memory_id)
    _check(access, memory_id)
    with access.once():
        access.brain.update(memory_id, importance=importance)
    _space(access, agent).clear_cache()
    return _get(access, agent, memory_id)


@router.delete(
    "/agents/{agent:path}/memories/{memory_id:path}",
    response_model=documents.IdsAnswer,
    summary="Forget a memory of an agent for good",
)
async def forget(access: Writer, agent: Agent, memory_id: str) -> Response:
    if not await access.write(_forget, access, agent, memory_id):
        raise NotFoundError(memory_id)
    return json_response({"ids": [memory_id]})


def _forget(access: Access, agent: str, memory_id: str) -> bool:
    _check(access, memory_id)
    with config.acting(access.member, access.token_id), access.once():
        return _space(access, agent).forget(memory_id)


# Looking after them


@router.get(
    "/agents", response_model=documents.AgentsAnswer, summary="The agents that remember something, and how much"
)
async def agents(access: Reader) -> Response:
    return json_response({"agents": await access.read(_agents, access)})


def _agents(access: Access) -> dict[str, int]:
    return visible_stats(access).by_agent


@router.get(
    "/agents/{agent:path}/statistics", response_model=dict[str, Any], summary="What an agent remembers, in figures"
)
async def statistics(access: Reader, agent: Agent) -> Response:
    return json_response(await access.read(_statistics, access, agent))


def _statistics(access: Access, agent: str) -> MemoryStatistics:
    return access.agents.get_memory_statistics(agent)


@router.post(
    "/agents/{agent:path}/cache/clear",
    status_code=204,
    response_class=Response,
    summary="Drop kept answers of an agent",
)
async def clear_cache(access: Writer, agent: Agent) -> Response:
    await access.read(_clear, access, agent)
    return Response(status_code=204)


def _clear(access: Access, agent: str) -> None:
    _space(access, agent).clear_cache()


@router.put(
    "/agents/cache",
    status_code=204,
    response_class=Response,
    openapi_extra=body_schema(forms.CacheForm),
    summary="How long answers are kept for the same question; 0 turns that off",
)
async def keep_answers(
    access: Admin, form: Annotated[Document, Depends(json_body(forms.CacheForm, "the cache"))]
) -> Response:
    await access.read(_set_cache_ttl, access, form["ttl"])
    return Response(status_code=204)


def _set_cache_ttl(access: Access, ttl: Any) -> None:
    if checks.number("ttl", ttl, low=0) > _LONGEST:
        raise InputError(f"ttl must be at most {_LONGEST:,} seconds, got {ttl}", field="ttl")
    access.agents.set_cache_ttl(ttl)


_LONGEST = 86_400.0
