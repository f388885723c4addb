"""The agent memory API over HTTP: store states, actions and interactions of agents, and search them.

Each search of a MemorySpace is a route of its own, `POST …/agents/{agent}/retrievals/NAME`, whose body has the method's
arguments; `RETRIEVALS` is the table of them."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from fastapi import Path, Query, Response

from ... import checks, config
from ...agents.entries import MemoryEntries, MemoryEntry
from ...agents.records import place_of
from ...agents.space import MemorySpace
from ...agents.types import MemoryStatistics
from ...errors import InputError, NotFoundError
from ...models import Memory
from .. import documents, forms
from ..access import Access, Admin, Reader, Writer
from ..bodies import MOST_AT_ONCE, Document
from ..json_router import JsonRouter
from ..ownership import check_change, check_place, is_known, is_visible, known_entries, visible_stats
from .answers import RUNNING

router = JsonRouter(prefix="/workspaces/{workspace}", tags=["agents"], responses=RUNNING)

_LONGEST = 86_400.0  # seconds that answers may be kept
_AGENT = "/agents/{agent:path}"
_MEMORY = f"{_AGENT}/memories/{{memory_id:path}}"
Agent = Annotated[str, Path(description="The name of an agent.")]
Limit = Annotated[int, Query(ge=1, le=10_000, description="At most so many of what was found.")]
Offset = Annotated[int, Query(ge=0, description="How many to pass over first.")]
Vectors = Annotated[bool, Query(description="With the vectors of each memory.")]


class Retrieval(NamedTuple):
    method: str
    form: type[forms.Form]
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


@router.json(
    "POST", f"{_AGENT}/states", documents.StoredAnswer, "Store an agent's state", form=forms.StateForm, status=201
)
def store_state(access: Writer, agent: Agent, form: Document) -> Document:
    return _store(access, agent, "state", form)


@router.json(
    "POST", f"{_AGENT}/actions", documents.StoredAnswer, "Store what an agent did", form=forms.ActionForm, status=201
)
def store_action(access: Writer, agent: Agent, form: Document) -> Document:
    return _store(access, agent, "action", form)


@router.json(
    "POST",
    f"{_AGENT}/interactions",
    documents.StoredAnswer,
    "Store an interaction with somebody",
    form=forms.InteractionForm,
    status=201,
)
def store_interaction(access: Writer, agent: Agent, form: Document) -> Document:
    return _store(access, agent, "interaction", form)


def _store(access: Access, agent: str, kind: str, form: Document) -> Document:
    store = getattr(access.agents, f"store_agent_{kind}")
    _check_places(access, [form[f"{kind}_data"]])
    access.need_room()
    with access.once():
        return {"memory_id": store(agent, **form)}


@router.json(
    "POST",
    f"{_AGENT}/several",
    documents.IdsAnswer,
    "Store many states, actions or interactions, one for each step",
    form=forms.SeveralForm,
    status=201,
)
def store_several(access: Writer, agent: Agent, form: Document) -> Document:
    items = form["items"]
    if not isinstance(items, list) or not 0 < len(items) <= MOST_AT_ONCE:
        raise checks.refuse("items", f"a list of 1 to {MOST_AT_ONCE} objects", items)
    _check_places(access, items)
    access.need_room()
    with access.once():
        kept = _space(access, agent).store_many(
            form["memory_type"], items, first_step=form["first_step"], priority=form.get("priority", 1.0)
        )
    return {"ids": kept}


def _check_places(access: Access, items: list[Any]) -> None:
    """Refuse memories in a colleague's personal place."""
    for item in items:
        if isinstance(item, dict) and (place := place_of(item)) is not None:
            check_place(access, place)


# Retrieving


def _add_retrieval(name: str, retrieval: Retrieval) -> None:
    @router.json(
        "POST",
        f"{_AGENT}/retrievals/{name}",
        documents.EntriesAnswer,
        retrieval.summary,
        form=retrieval.form,
        operation_id=f"retrieve_{name.replace('-', '_')}",
    )
    def retrieve(
        access: Reader, agent: Agent, form: Document, limit: Limit = 1000, offset: Offset = 0, vectors: Vectors = False
    ) -> Document:
        answered: MemoryEntries = getattr(_space(access, agent), retrieval.method)(**form)
        found = known_entries(access, answered)
        return {
            "memories": [_entry(entry, vectors) for entry in found[offset : offset + limit]],
            "total": len(found),
            "missing_tiers": list(answered.missing_tiers),
        }


for _name, _asked in RETRIEVALS.items():
    _add_retrieval(_name, _asked)


@router.json("POST", f"{_AGENT}/embed", documents.VectorAnswer, "The vector of a state or a text", form=forms.EmbedForm)
def embed(access: Reader, agent: Agent, form: Document) -> Document:
    return {"vector": _space(access, agent).embed(form["state_or_text"])}


# How a state changed


@router.json(
    "POST",
    f"{_AGENT}/history",
    documents.HistoryAnswer,
    "The values of one attribute over the steps",
    form=forms.HistoryForm,
)
def history(access: Reader, agent: Agent, form: Document) -> Document:
    values = _space(access, agent).attribute_history(**form)
    return {"history": [value for value in values if is_known(access, value["memory_id"])]}


@router.json(
    "POST",
    f"{_AGENT}/changes",
    documents.ChangesAnswer,
    "What differs between the states at two steps",
    form=forms.ChangesForm,
)
def changes(access: Reader, agent: Agent, form: Document) -> Document:
    def known(memory: Memory) -> bool:
        return is_visible(access, memory.place)

    return {"changes": _space(access, agent).changes_between(form["first_step"], form["second_step"], known=known)}


# One memory


@router.json(
    "POST", f"{_MEMORY}/focus", documents.EntryAnswer, "Give attention to a memory; often enough, it moves up a tier"
)
def focus(access: Writer, agent: Agent, memory_id: str, vectors: Vectors = False) -> Document:
    _check(access, memory_id)
    return _entry(_space(access, agent).focus(memory_id), vectors)


@router.json(
    "POST", f"{_MEMORY}/decompress", documents.EntryAnswer, "Bring a memory back from long-term to intermediate memory"
)
def decompress(access: Writer, agent: Agent, memory_id: str, vectors: Vectors = False) -> Document:
    _check(access, memory_id)
    return _entry(_space(access, agent).decompress(memory_id), vectors)


@router.json("GET", _MEMORY, documents.EntryAnswer, "One memory of an agent")
def entry(access: Reader, agent: Agent, memory_id: str, vectors: Vectors = False) -> Document:
    return _entry(_get(access, agent, memory_id), vectors)


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


@router.json("PATCH", _MEMORY, documents.EntryAnswer, "Change how important a memory is", form=forms.PriorityForm)
def prioritise(access: Writer, agent: Agent, memory_id: str, form: Document, vectors: Vectors = False) -> Document:
    _get(access, agent, memory_id)
    _check(access, memory_id)
    with access.once():
        access.brain.update(memory_id, importance=form["importance"])
    _space(access, agent).clear_cache()
    return _entry(_get(access, agent, memory_id), vectors)


@router.json("DELETE", _MEMORY, documents.IdsAnswer, "Forget a memory of an agent for good")
def forget(access: Writer, agent: Agent, memory_id: str) -> Document:
    _check(access, memory_id)
    with config.acting(access.member, access.token_id), access.once():
        gone = _space(access, agent).forget(memory_id)
    if not gone:
        raise NotFoundError(memory_id)
    return {"ids": [memory_id]}


# Looking after them


@router.json("GET", "/agents", documents.AgentsAnswer, "The agents that remember something, and how much")
def agents(access: Reader) -> Document:
    return {"agents": visible_stats(access).by_agent}


@router.json("GET", f"{_AGENT}/statistics", dict[str, Any], "What an agent remembers, in figures")
def statistics(access: Reader, agent: Agent) -> MemoryStatistics:
    return access.agents.get_memory_statistics(agent)


@router.json(
    "POST", f"{_AGENT}/cache/clear", None, "Drop kept answers of an agent", status=204, response_class=Response
)
def clear_cache(access: Writer, agent: Agent) -> Response:
    _space(access, agent).clear_cache()
    return Response(status_code=204)


@router.json(
    "PUT",
    "/agents/cache",
    None,
    "How long answers are kept for the same question; 0 turns that off",
    form=forms.CacheForm,
    status=204,
    response_class=Response,
)
def keep_answers(access: Admin, form: Document) -> Response:
    ttl = form["ttl"]
    if checks.number("ttl", ttl, low=0) > _LONGEST:
        raise InputError(f"ttl must be at most {_LONGEST:,} seconds, got {ttl}", field="ttl")
    access.agents.set_cache_ttl(ttl)
    return Response(status_code=204)
