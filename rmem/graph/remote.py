"""RemoteGraph: `Brain("https://…").graph`. The questions of Graph over HTTP, with the same answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote, urlencode

from .. import checks
from ..annotations import Moment, Names, Where
from ..errors import ServerError
from ..facts.by_model import FactReaderModel
from ..facts.model import STATED
from ..filters import Filter
from ..stores.base import Progress
from .graph import Graph
from .model import Change, Contradiction, Fact, FactExplanation, Neighbour, Path, seconds
from .questions import DIRECTIONS, Direction

if TYPE_CHECKING:
    from ..brain import Brain

_PAGE = 1000  # entries of one response; the limit of the server
Ask = Callable[..., Any]


class RemoteGraph(Graph):
    """The facts of a server's workspace that the token may see."""

    def __init__(self, brain: Brain, ask: Ask, where: Where | None = None) -> None:
        self.brain = brain
        self._ask = ask
        self._where = None if where is None else Filter.of(where).to_dict()

    def where(self, where: Where) -> RemoteGraph:
        return RemoteGraph(self.brain, self._ask, where)

    # Writing

    def add(
        self,
        subject: str,
        relation: str,
        object: str | float,
        *,
        since: Moment | None = None,
        until: Moment | None = None,
        negated: bool = False,
        confidence: float = STATED,
        agent: str = "default",
        tags: Mapping[str, Any] | None = None,
        when: Moment | None = None,
        is_value: bool = False,
        place: str | None = None,
    ) -> Fact:
        body = {
            "subject": checks.name("subject", subject),
            "relation": checks.name("relation", relation),
            "object": object if isinstance(object, str) else checks.number("object", object),
            "since": _time("since", since),
            "until": _time("until", until, end_of_day=True),
            "negated": checks.flag("negated", negated),
            "confidence": checks.share("confidence", confidence),
            "agent": agent,
            "tags": None if tags is None else checks.labels("tags", tags),
            "when": _time("when", when),
            "is_value": checks.flag("is_value", is_value) or None,
            "place": place,
        }
        return self._state("/facts", body)

    def read_with(
        self,
        model: str | FactReaderModel,
        where: Where | None = None,
        *,
        again: bool = False,
        on_progress: Progress | None = None,
    ) -> int:
        """Not offered: a server sends nobody's memories to a model."""
        raise ServerError("graph.read_with is not offered by a server; use it where the store is", status=501)

    def end(self, fact: Fact | str, when: Moment | None = None) -> Fact:
        return self._state(f"{_path(fact)}/end", {"when": _time("when", when)})

    def alias(self, name: str, other: str) -> Fact:
        return self._state("/aliases", {"name": checks.name("name", name), "other": checks.name("other", other)})

    def declare(self, relation: str, *, single: bool) -> Fact:
        body = {"relation": checks.name("relation", relation), "single": checks.flag("single", single)}
        return self._state("/relations", body)

    def undo(self, fact: Fact | str) -> bool:
        self._ask("DELETE", f"/graph{_path(fact)}")
        return True

    def _state(self, path: str, body: Mapping[str, Any]) -> Fact:  # type: ignore[override]
        given = {name: value for name, value in body.items() if value is not None}
        return Fact.from_dict(self._ask("POST", f"/graph{path}", given))

    # Reading

    def get(self, fact: Fact | str) -> Fact:
        return Fact.from_dict(self._get(_path(fact)))

    def of_memory(self, memory_id: str) -> list[Fact]:
        key = quote(checks.memory_id("memory_id", memory_id), safe="")
        return _facts(self._get(f"/memories/{key}")["facts"])

    def facts(
        self,
        subject: str | None = None,
        relation: Names | None = None,
        object: str | None = None,
        *,
        at: Moment | None = None,
        believed: Moment | None = None,
        history: bool = False,
        likely: bool = False,
        limit: int = 100,
        offset: int = 0,
    ) -> list[Fact]:
        parameters = {"subject": subject, "relation": _names(relation), "object": object, **_times(at, believed)}
        parameters |= {"history": checks.flag("history", history), "likely": checks.flag("likely", likely)}
        return _facts(self._pages("/facts", "facts", limit, offset, **parameters))

    def neighbours(
        self,
        entity: str,
        *,
        relations: Names | None = None,
        direction: Direction = "both",
        at: Moment | None = None,
        believed: Moment | None = None,
        likely: bool = False,
        limit: int = 100,
        offset: int = 0,
    ) -> list[Neighbour]:
        checks.one_of("direction", direction, DIRECTIONS)
        parameters = {
            "entity": checks.name("entity", entity),
            "relation": _names(relations),
            "direction": direction,
            "likely": checks.flag("likely", likely),
            **_times(at, believed),
        }
        found = self._pages("/neighbours", "neighbours", limit, offset, **parameters)
        return [Neighbour(one["name"], Fact.from_dict(one["fact"]), one["outgoing"]) for one in found]

    def timeline(
        self, entity: str, *, believed: Moment | None = None, limit: int = 1000, offset: int = 0
    ) -> list[Change]:
        parameters = {"entity": checks.name("entity", entity), **_times(None, believed)}
        return _changes(self._pages("/timeline", "changes", limit, offset, **parameters))

    def between(
        self,
        start: Moment,
        end: Moment,
        entity: str | None = None,
        *,
        believed: Moment | None = None,
        limit: int = 1000,
        offset: int = 0,
    ) -> list[Change]:
        parameters = {"start": _time("start", start), "end": _time("end", end, end_of_day=True), "entity": entity}
        return _changes(self._pages("/between", "changes", limit, offset, **parameters, **_times(None, believed)))

    def contradictions(self, entity: str | None = None, *, limit: int = 100, offset: int = 0) -> list[Contradiction]:
        found = self._pages("/contradictions", "contradictions", limit, offset, entity=entity)
        return [Contradiction(Fact.from_dict(one["first"]), Fact.from_dict(one["second"])) for one in found]

    def closure(
        self,
        entity: str,
        relation: str,
        *,
        direction: Literal["out", "in"] = "out",
        depth: int = 64,
        limit: int = 1000,
        offset: int = 0,
    ) -> list[tuple[str, int]]:
        checks.one_of("direction", direction, ("out", "in"))
        parameters = {"entity": checks.name("entity", entity), "relation": checks.name("relation", relation)}
        parameters |= {"direction": direction, "depth": str(checks.whole("depth", depth, low=1))}
        return [(one["name"], one["steps"]) for one in self._pages("/closure", "reached", limit, offset, **parameters)]

    def paths(
        self,
        start: str,
        goal: str,
        max_hops: int = 3,
        *,
        k: int = 1,
        relations: Names | None = None,
        at: Moment | None = None,
        believed: Moment | None = None,
        likely: bool = False,
    ) -> list[Path]:
        parameters = {
            "start": checks.name("start", start),
            "goal": checks.name("goal", goal),
            "max_hops": checks.whole("max_hops", max_hops, low=1, high=8),
            "k": checks.whole("k", k, low=1, high=1000),
            "relation": _names(relations),
            "likely": checks.flag("likely", likely),
        }
        found = self._get("/paths", **parameters, **_times(at, believed))["paths"]
        return [Path(tuple(one["names"]), tuple(_facts(one["facts"]))) for one in found]

    def query(
        self, pattern: str, *, at: Moment | None = None, believed: Moment | None = None, limit: int = 100
    ) -> list[dict[str, str]]:
        parameters = {"pattern": checks.text("pattern", pattern), **_times(at, believed)}
        return self._pages("/query", "matches", limit, 0, **parameters)

    def important(self, limit: int = 20) -> list[tuple[str, float]]:
        found = self._get("/important", limit=checks.whole("limit", limit, low=1))["entities"]
        return [(one["name"], one["share"]) for one in found]

    def communities(self, *, smallest: int = 3, limit: int = 20) -> list[list[str]]:
        parameters = {
            "smallest": checks.whole("smallest", smallest, low=1),
            "limit": checks.whole("limit", limit, low=1),
        }
        found: list[list[str]] = self._get("/communities", **parameters)["communities"]
        return found

    def explain(self, fact: Fact | str) -> FactExplanation:
        answer = self._get(f"{_path(fact)}/explain")
        shown, same, others = Fact.from_dict(answer["fact"]), _facts(answer["same"]), _facts(answer["others"])
        return FactExplanation(shown, answer["sentence"], answer["text"], same, others)

    def entities(self, like: str | None = None, *, limit: int = 100) -> list[tuple[str, int]]:
        return [(one["name"], one["facts"]) for one in self._pages("/entities", "entities", limit, 0, like=like)]

    def relations(self) -> list[tuple[str, int]]:
        return [(one["name"], one["facts"]) for one in self._get("/relations")["relations"]]

    def all_facts(self, *, history: bool = False, likely: bool = False) -> Iterator[Fact]:
        parameters = {"history": checks.flag("history", history), "likely": checks.flag("likely", likely)}
        for page in self._each_page("/facts", parameters):
            yield from _facts(page["facts"])

    def __len__(self) -> int:
        count: int = self._get("")["facts"]
        return count

    def _pages(self, path: str, key: str, limit: int | None, offset: int, **parameters: Any) -> list[Any]:
        """Fetch the entries of a list after `offset`: `limit` of them, or all if None."""
        passed = checks.whole("offset", offset)
        wanted = None if limit is None else passed + checks.whole("limit", limit, low=1)
        found: list[Any] = []
        for page in self._each_page(path, parameters, wanted):
            found += page[key]
        return found[passed:wanted]

    def _each_page(self, path: str, parameters: Mapping[str, Any], wanted: int | None = None) -> Iterator[Any]:
        fetched, cursor = 0, None
        while wanted is None or fetched < wanted:
            limit = _PAGE if wanted is None else min(_PAGE, wanted - fetched)
            page = self._get(path, **parameters, limit=limit, cursor=cursor)
            yield page
            fetched, cursor = fetched + limit, page["next_cursor"]
            if cursor is None:
                return

    def _get(self, path: str, **parameters: Any) -> Any:
        where = None if self._where is None else json.dumps(self._where)
        given = {
            name: _query_value(value) for name, value in {**parameters, "where": where}.items() if value is not None
        }
        return self._ask("GET", f"/graph{path}?{urlencode(given, doseq=True)}")


def _path(fact: Fact | str) -> str:
    key = fact.id if isinstance(fact, Fact) else checks.name("fact", fact, maximum=checks.MAX_NAME + 100)
    return f"/facts/{quote(key, safe='')}"


def _facts(items: Sequence[Mapping[str, Any]]) -> list[Fact]:
    return [Fact.from_dict(one) for one in items]


def _changes(items: Sequence[Mapping[str, Any]]) -> list[Change]:
    return [Change(seconds(one["time"]), one["began"], Fact.from_dict(one["fact"])) for one in items]


def _names(given: Names | None) -> list[str] | None:
    return None if given is None else list(checks.names("relations", given))


def _times(at: Moment | None, believed: Moment | None) -> dict[str, float | None]:
    return {"at": _time("at", at, end_of_day=True), "believed": _time("believed", believed, end_of_day=True)}


def _time(field: str, given: Moment | None, *, end_of_day: bool = False) -> float | None:
    return None if given is None else checks.moment(field, given, end_of_day=end_of_day)


def _query_value(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value
