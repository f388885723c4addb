"""The bodies of requests to the memory routes, as the OpenAPI document describes them.

These models validate nothing: what a value must be is decided by the engine, and a test holds the two together."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

Name = Annotated[str, Field(min_length=1, max_length=512)]
Id = Annotated[str, Field(min_length=1, max_length=576)]
Share = Annotated[float, Field(ge=0, le=1)]
Step = Annotated[int, Field(ge=0, le=2**62)]
Tier = Literal["stm", "im", "ltm"]
Kind = Literal["state", "action", "interaction"]
Point = Annotated[list[float], Field(min_length=2, max_length=3)]
Vector = Annotated[list[float], Field(min_length=8, max_length=4096)]
Object = Annotated[dict[str, Any], WithJsonSchema({"type": "object"})]
Names = Annotated[
    Any,
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "minLength": 1, "maxLength": 512},
                {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 512}, "minItems": 1},
            ]
        }
    ),
]
Moment = Annotated[
    Any,
    WithJsonSchema(
        {
            "anyOf": [{"type": "number"}, {"type": "string"}],
            "description": "Seconds since the epoch, an ISO date or time, or words such as “two weeks ago”.",
        }
    ),
]


_ABSENT: Any = None  # no default of its own: what is not given does not count


def _plain(schema: dict[str, Any]) -> None:
    """Leave out titles, which only repeat the names, and defaults that mean "not given"."""
    schema.pop("title", None)
    for field in schema.get("properties", {}).values():
        field.pop("title", None)
        if field.get("default", ...) is None:
            del field["default"]


class Form(BaseModel):
    """The body of a request; `kind` is what errors call it."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=_plain)
    kind: ClassVar[str]

    def __init_subclass__(cls, kind: str = "", **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.kind = kind


class FilterForm(Form):
    """Which memories count: every field given must hold; a list of names means any of them."""

    agent: Names = _ABSENT
    type: Names = _ABSENT
    session: Names = _ABSENT
    actor: Names = _ABSENT
    place: Names = _ABSENT
    tier: Names = _ABSENT
    tags: Object = _ABSENT
    attributes: Object = _ABSENT
    min_step: Step = _ABSENT
    max_step: Step = _ABSENT
    since: Moment = _ABSENT
    until: Moment = _ABSENT
    min_importance: Share = _ABSENT
    max_importance: Share = _ABSENT
    box: Annotated[list[Point], Field(min_length=2, max_length=2)] = _ABSENT
    near: Point = _ABSENT
    radius: Annotated[float, Field(ge=0)] = _ABSENT


Where = Annotated[Any, WithJsonSchema(FilterForm.model_json_schema())]


# Requests


class RememberForm(Form):
    """A memory to keep; the fields of `Brain.remember`."""

    text: Annotated[str, Field(min_length=1)]
    agent: Name = "default"
    type: Name = "memory"
    session: Name | None = None
    actor: Name | None = None
    tags: Object = {}
    importance: Share = 0.5
    when: Moment = None
    metadata: Object = {}
    step: Step | None = None
    position: Point | None = None
    place: Name | None = None
    vector: Vector | None = None
    id: Id | None = None
    tier: Tier = "stm"


class UpdateForm(Form, kind="an update"):
    """The fields of a memory to change; the others stay as they are. null empties a field."""

    text: Annotated[str, Field(min_length=1)] = _ABSENT
    type: Name = _ABSENT
    session: Name | None = _ABSENT
    actor: Name | None = _ABSENT
    tags: Object = _ABSENT
    importance: Share = _ABSENT
    when: Moment = _ABSENT
    metadata: Object = _ABSENT
    step: Step = _ABSENT
    position: Point | None = _ABSENT
    place: Name | None = _ABSENT
    vector: Vector = _ABSENT
    tier: Tier = _ABSENT


class RecallForm(Form):
    """A question; the arguments of `Brain.recall`."""

    query: Annotated[str, Field(min_length=1)]
    k: Annotated[int, Field(ge=1, le=1000)] = 5
    where: Where = None
    since: Moment = None
    until: Moment = None
    mode: Literal["hybrid", "lexical", "vector"] = "hybrid"
    token_budget: Annotated[int, Field(ge=1)] | None = None
    explain: bool = False
    must: list[Name] = []
    """Words or phrases that a memory has to hold, word for word."""
    must_not: list[Name] = []
    """Words or phrases that it must not hold."""
    min_relevance: Annotated[float, Field(ge=0, le=1)] | None = None
    """Leave out hits that are less likely to answer."""
    vector: Vector | None = None
    settings: Object | None = None
    as_of: Moment = None
    """What “yesterday” is counted from, instead of now."""
    touch: bool = True


class ForgetForm(Form, kind="what is to be forgotten"):
    """Memories to remove for good: those of a filter with at least one field, or all that concerns a subject."""

    where: Where = None
    subject: Name = _ABSENT
    dry_run: bool = False


class RestoreForm(Form, kind="what is to be restored"):
    ids: Annotated[list[Id], Field(min_length=1, max_length=1000)]


class FeedbackForm(Form, kind="feedback"):
    """Whether a hit of a recall was useful; without a memory_id, that nothing in the whole answer was."""

    recall_id: Name
    memory_id: Id | None = None
    useful: bool = True


class EvaluationForm(Form, kind="an evaluation"):
    """How to recall; as it is without `settings`."""

    settings: Object | None = None


class RankingForm(Form, kind="a ranking"):
    """A question, and the embedder to rank its first hits by."""

    query: Annotated[str, Field(min_length=1)]
    embedder: Literal["static", "minilm"]
    where: Where = None


class FactForm(Form, kind="a fact"):
    """A fact to state; the arguments of `Graph.add`."""

    subject: Name
    relation: Name
    object: Annotated[
        Any, WithJsonSchema({"anyOf": [{"type": "string", "minLength": 1, "maxLength": 512}, {"type": "number"}]})
    ]
    since: Moment = None
    until: Moment = None
    negated: bool = False
    confidence: Share = 1.0
    agent: Name = "default"
    tags: Object = {}
    when: Moment = None
    is_value: bool = False
    place: Name | None = None


class EndForm(Form, kind="the end of a fact"):
    """The time from which a fact is no longer true; default: now."""

    when: Moment = None


class AliasForm(Form, kind="an alias"):
    """Two names of one entity."""

    name: Name
    other: Name


class DeclareForm(Form, kind="a declaration"):
    """Whether a relation has one value at a time, so that a newer one ends the older one."""

    relation: Name
    single: bool


class SyncForm(Form, kind="changes"):
    """What another memory of the team knows: memories that changed there, and those that went, with the version
    that went: `{"id": …, "version": …}`."""

    memories: list[dict[str, Any]] = []
    gone: list[dict[str, Any]] = []


class RepositoriesForm(Form, kind="repositories"):
    """Which repositories a workspace shares, null for all, and which of them members receive who have them not."""

    shared: list[Name] | None = _ABSENT
    given: Object = {}


class InjectionForm(Form, kind="a prompt"):
    """A prompt, or a command that fails and its output, in a repository."""

    repository: Name | None = None
    prompt: str | None = None
    command: str | None = None
    output: str | None = None


class ReviewForm(Form, kind="a decision"):
    """What is decided on a memory of the review inbox."""

    action: Literal["accept", "supersede", "restore", "dismiss"]
    memory_id: Id
    other: Id | None = None
    why: str | None = None


class PolicyForm(Form):
    """What is pruned, and how fast memories fade; see ForgettingPolicy."""

    below: Share | None = None
    max_count: Annotated[int, Field(ge=0)] | None = None
    max_bytes: Annotated[int, Field(ge=0)] | None = None
    min_age_days: Annotated[float, Field(ge=0)] = 1.0
    steps_per_day: Annotated[float, Field(gt=0)] | None = None
    grace_days: Annotated[float, Field(ge=0)] = 30.0
    stability: Annotated[float, Field(gt=0)] = 7.0
    importance_weight: Annotated[float, Field(ge=0)] = 4.0
    growth: Annotated[float, Field(ge=1)] = 1.6


class MaintenanceForm(Form, kind="maintenance"):
    """Move memories between the tiers, of one agent or of all; with `prune`, remove faded ones."""

    agent: Name | None = None
    prune: Annotated[Any, WithJsonSchema(PolicyForm.model_json_schema())] = None
    dry_run: bool = False
    """Only return what would be pruned and how many would move."""
    limit: Annotated[int, Field(ge=0)] | None = None
    """List at most so many of the pruned memories."""


class RetentionForm(Form, kind="a forgetting policy"):
    """A forgetting policy to apply; at most `limit` of the most faded memories are returned."""

    policy: Annotated[Any, WithJsonSchema(PolicyForm.model_json_schema())] = None
    limit: Annotated[int, Field(ge=0, le=200)] = 20


# Requests of agents


class StateForm(Form, kind="a state"):
    state_data: Object
    step_number: Step
    priority: Share = 1.0


class ActionForm(Form, kind="an action"):
    action_data: Object
    step_number: Step
    priority: Share = 1.0


class InteractionForm(Form, kind="an interaction"):
    interaction_data: Object
    step_number: Step
    priority: Share = 1.0


class SeveralForm(Form, kind="several memories"):
    """Many states, actions or interactions, one for each step from the first on."""

    memory_type: Kind
    items: Annotated[list[Object], Field(min_length=1, max_length=1000)]
    first_step: Step
    priority: Share = 1.0


Tiers = Annotated[list[Tier], Field(min_length=1)] | None
Many = Annotated[int, Field(ge=1, le=10_000)]


class _RetrievalForm(Form):
    memory_type: Name | None = None
    memory_tiers: Tiers = None


class _PlaceForm(_RetrievalForm):
    position: Point | None = None
    radius: Annotated[float, Field(ge=0)] | None = None
    box: Annotated[list[Point], Field(min_length=2, max_length=2)] | None = None
    place: Name | None = None


class RecentForm(_RetrievalForm, kind="the retrieval 'recent'"):
    count: Many = 5


class TimeRangeForm(_RetrievalForm, kind="the retrieval 'time-range'"):
    start_step: Step
    end_step: Step


class TimeForm(_RetrievalForm, kind="the retrieval 'times'"):
    since: Moment = None
    until: Moment = None


class AttributesForm(_RetrievalForm, kind="the retrieval 'attributes'"):
    attributes: Annotated[dict[str, Any], WithJsonSchema({"type": "object", "minProperties": 1})]


class LocationForm(_PlaceForm, kind="the retrieval 'locations'"):
    k: Many | None = None


class ImportanceForm(_RetrievalForm, kind="the retrieval 'importance'"):
    min_importance: Share = 0.0
    max_importance: Share = 1.0
    k: Many | None = None


class SimilarForm(_RetrievalForm, kind="the retrieval 'similar-states'"):
    query_state: Annotated[dict[str, Any], WithJsonSchema({"type": "object", "minProperties": 1})]
    k: Many = 5
    where: Where = None


class EmbeddingForm(_RetrievalForm, kind="the retrieval 'embedding'"):
    query_embedding: Vector
    k: Many = 5


class ContentForm(_RetrievalForm, kind="the retrieval 'content'"):
    content_query: Annotated[
        Any, WithJsonSchema({"anyOf": [{"type": "string", "minLength": 1}, {"type": "object", "minProperties": 1}]})
    ]
    k: Many = 5


class QueryForm(_PlaceForm, kind="the retrieval 'query'"):
    """Everything in one call: all that is given must hold."""

    text: Annotated[str, Field(min_length=1)] | None = None
    similar_to: Object | None = None
    k: Many | None = None
    start_step: Step | None = None
    end_step: Step | None = None
    since: Moment = None
    until: Moment = None
    min_importance: Share | None = None
    attributes: Object | None = None


class EmbedForm(Form, kind="what to embed"):
    state_or_text: Annotated[
        Any, WithJsonSchema({"anyOf": [{"type": "string", "minLength": 1}, {"type": "object", "minProperties": 1}]})
    ]


class HistoryForm(Form, kind="a history"):
    path: Name
    start_step: Step | None = None
    end_step: Step | None = None
    memory_type: Name = "state"


class ChangesForm(Form, kind="two steps"):
    first_step: Step
    second_step: Step


class CacheForm(Form, kind="the cache"):
    ttl: Annotated[float, Field(ge=0)]


class PriorityForm(Form, kind="an update"):
    importance: Share
