"""Brain on a server: the methods of Brain over HTTP. `Brain("https://host", token=…)` makes one.

What the server decides (embedder, encryption, privacy, durability) or does not offer raises a ServerError that names
it. The token is never part of an error or a repr."""

from __future__ import annotations

import json
import os
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn, Unpack, cast
from urllib.parse import quote, urlencode

from . import __version__, checks
from .annotations import Changes, MemoryOrId, Mode, Moment, Names, NewMemory, Stats, VectorLike, Where
from .brain import Brain
from .errors import (
    ConfigError,
    InputError,
    NotFoundError,
    RemanenceError,
    ServerError,
    StoreBusyError,
    StoreFullError,
    StoreUnreachableError,
)
from .feedback import Feedback, Recalls
from .filters import Filter
from .http_link import Link, Remedy
from .index.bits import unit_vector
from .memory_builder import build_changes, build_memory_of
from .models import Hit, Hits, Memories, Memory, id_of
from .recall.explain import Explanation, WordMatch
from .recall.settings import RecallSettings
from .stores.base import Order, Progress

if TYPE_CHECKING:
    from .graph import Graph

_PAGE = 1000  # memories in one request; the limit of the server
_MAX_CONFLICTS = 20  # changes of a memory by others during one update, before it fails
_THREADS = 8  # parallel requests that each read one memory
_REMEDY = Remedy(
    address="address",
    token="give it as token=… or in RMEM_API_KEY",
    refused="Check the token (token=… or RMEM_API_KEY) and the workspace",
)
_SERVER_DECIDES = {"embedder": None, "durability": "full", "privacy": None, "encryption": None, "vectors": None}
"""Arguments of Brain that the server decides, and their defaults."""


class RemoteBrain(Brain):
    """A workspace of a server. `get` and `remember` return vectors; lists and hits do not."""

    def __init__(
        self,
        address: Any = None,
        *,
        settings: RecallSettings | Mapping[str, Any] | None = None,
        token: str | None = None,
        workspace: str | None = None,
        timeout: float = 30.0,
        **decided: Any,
    ) -> None:
        for name, value in decided.items():
            if name not in _SERVER_DECIDES or value != _SERVER_DECIDES[name]:
                raise ConfigError(f"{name} cannot be given to a Brain on a server: the server decides it")
        token = token or os.environ.get("RMEM_API_KEY")
        if token is not None and not (token.isascii() and token.isprintable() and token.strip()):
            raise ConfigError("the token holds characters that no token has (not shown); copy it again")
        self.settings = RecallSettings.of(settings)
        self.privacy = None
        self._wished = None if settings is None else asdict(self.settings)
        self._token = token
        self._link = Link(address, timeout, remedy=_REMEDY, error_of=_error_of)
        self.address = self._link.url
        self.workspace = checks.name("workspace", workspace or os.environ.get("RMEM_WORKSPACE") or "default")
        self._recalls = Recalls()

    # Writing

    def remember(self, text: str, **fields: Any) -> Memory:
        """Store one memory on the server; see Brain.remember."""
        return self._read_written(self._request("POST", "/memories", _body_of({"text": text, **fields}))["ids"])[0]

    def remember_many(
        self,
        items: Iterable[NewMemory | Mapping[str, Any]],
        *,
        chunk: int = _PAGE,
        on_progress: Progress | None = None,
    ) -> list[Memory]:
        """Store many memories; one request per chunk of at most a thousand, each stored completely or not at all."""
        checks.whole("chunk", chunk, low=1)
        if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
            raise checks.refuse("items", "a list of mappings of remember's arguments", items)
        total = len(items) if isinstance(items, Sequence) else None
        bodies: Iterable[dict[str, Any]] = (_new(at, item) for at, item in enumerate(items))
        given = iter(
            bodies if total is None else list(bodies)
        )  # a list is checked completely before anything is written
        kept: list[Memory] = []
        while batch := list(islice(given, min(chunk, _PAGE))):
            ids = self._request("POST", "/memories", batch)["ids"]
            newest = self._newest(Counter(body.get("agent", "default") for body in batch))
            kept += [newest.get(key) or self._read_written([key])[0] for key in ids]
            if on_progress is not None:
                on_progress(len(kept), total)
        return kept

    def _newest(self, counts: Mapping[str, int]) -> dict[str, Memory]:
        """Return the newest memories of each agent by id, `counts` of each: mostly those just written."""
        found = {}
        for agent, count in counts.items():
            query = {"where": json.dumps({"agent": agent}), "order": "last step", "limit": count, "vectors": "true"}
            for document in self._request("GET", f"/memories?{urlencode(query)}")["memories"]:
                found[document["memory_id"]] = Memory.from_dict(document)
        return found

    def _read_written(self, ids: Sequence[str]) -> list[Memory]:
        """Read memories that were just written; NotFoundError if one was removed meanwhile."""
        found = self.get_many(ids)
        for key, memory in zip(ids, found, strict=True):
            if memory is None:
                raise NotFoundError(key)
        return cast("list[Memory]", found)

    def update(
        self,
        memory_id: MemoryOrId,
        *,
        only_if: Callable[[Memory], None] | None = None,
        keep_earlier: bool = True,
        **changes: Unpack[Changes],
    ) -> Memory:
        key = id_of(memory_id)
        body = _canonical(changes, build_changes(changes))
        query = "" if checks.flag("keep_earlier", keep_earlier) else "?keep_earlier=false"
        if only_if is None:
            self._request("PATCH", f"{_path(key)}{query}", body)
        else:
            self._change_if(key, query, body, only_if)
        return self._read_written([key])[0]

    def _change_if(self, key: str, query: str, body: object, only_if: Callable[[Memory], None]) -> None:
        """Update a memory after `only_if` accepted it; repeat if others change it meanwhile."""
        for _ in range(_MAX_CONFLICTS):
            with self._link.open("GET", self._route(_path(key)), None, self._headers("GET"), None) as answer:
                tag, memory = answer.header("ETag"), Memory.from_dict(json.loads(answer.readline()))
                answer.finish()
            only_if(memory)
            try:
                self._request("PATCH", f"{_path(key)}{query}", body, only_if=tag)
                return
            except ServerError as error:
                if error.status != 412:
                    raise
        raise StoreBusyError(f"{key} was changed by others {_MAX_CONFLICTS} times meanwhile; try again")

    def forget(  # type: ignore[override]  # the overloads are Brain's
        self,
        memory_id: MemoryOrId | None = None,
        *,
        where: Where | None = None,
        subject: str | None = None,
        dry_run: bool = False,
        on_progress: Progress | None = None,
    ) -> bool | list[str]:
        if sum(given is not None for given in (memory_id, where, subject)) != 1:
            raise InputError("exactly one of memory_id, where and subject must be given", field="memory_id")
        if memory_id is not None:
            if dry_run:
                raise InputError("dry_run goes with where and subject", field="dry_run")
            try:
                self._request("DELETE", _path(id_of(memory_id)))
            except NotFoundError:
                return False
            return True
        body: dict[str, Any] = {"dry_run": checks.flag("dry_run", dry_run)}
        if where is not None:
            chosen = Filter.of(where)
            if not chosen:
                raise InputError("where must name at least one field, or everything would be forgotten", field="where")
            body["where"] = chosen.to_dict()
        else:
            body["subject"] = checks.name("subject", subject)
        ids: list[str] = self._request("POST", "/forget", body)["ids"]
        return ids

    def restore(self, *memory_ids: str) -> list[Memory]:
        body = {"ids": [checks.memory_id("memory_id", key) for key in memory_ids]}
        return self._read_written(self._request("POST", "/restore", body)["restored"])

    def pin(self, memory_id: MemoryOrId, pinned: bool = True) -> Memory:
        key = id_of(memory_id)
        self._request("POST", f"{_path(key)}/{'pin' if checks.flag('pinned', pinned) else 'unpin'}")
        return self._read_written([key])[0]

    # Reading

    def get(self, memory_id: str) -> Memory | None:
        try:
            return Memory.from_dict(self._request("GET", f"{_path(id_of(memory_id))}?vectors=true"))
        except NotFoundError:
            return None

    def get_many(self, memory_ids: Iterable[str]) -> list[Memory | None]:
        if isinstance(memory_ids, str | bytes) or not isinstance(memory_ids, Iterable):
            raise checks.refuse("memory_ids", "a list of ids", memory_ids)
        keys = [checks.memory_id("memory_ids", key) for key in memory_ids]
        if len(keys) < 2:
            return [self.get(key) for key in keys]
        with ThreadPoolExecutor(_THREADS) as threads:
            return list(threads.map(self.get, keys))

    def memories(
        self,
        where: Where | None = None,
        *,
        agent: Names | None = None,
        type: Names | None = None,
        order: Order = "newest",
        limit: int | None = 100,
        offset: int = 0,
    ) -> Memories:
        passed = checks.whole("offset", offset)
        wanted = None if limit is None else passed + checks.whole("limit", limit)
        query = {"where": json.dumps(Filter.of(where, agent=agent, type=type).to_dict()), "order": order}
        found: list[Any] = []
        cursor: str | None = ""
        while cursor is not None and (wanted is None or len(found) < wanted):
            left = _PAGE if wanted is None else min(_PAGE, wanted - len(found))
            page = self._request(
                "GET", f"/memories?{urlencode({**query, 'limit': left, **({'cursor': cursor} if cursor else {})})}"
            )
            found += page["memories"]
            cursor = page["next_cursor"]
        return Memories(Memory.from_dict(document) for document in found[passed:])

    def count(self, where: Where | None = None) -> int:
        query = urlencode({"where": json.dumps(Filter.of(where).to_dict()), "limit": 1})
        total: int = self._request("GET", f"/memories?{query}")["total"]
        return total

    def recall(
        self,
        question: str,
        k: int = 5,
        where: Where | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        mode: Mode = "hybrid",
        token_budget: int | None = None,
        explain: bool = False,
        *,
        agent: Names | None = None,
        type: Names | None = None,
        must: Names = (),
        must_not: Names = (),
        min_relevance: float | None = None,
        vector: VectorLike | None = None,
        settings: RecallSettings | Mapping[str, Any] | None = None,
        now: datetime | None = None,
        touch: bool = True,
    ) -> Hits:
        """Return the memories of the server that best answer a question; see Brain.recall. At most a thousand."""
        chosen = Filter.of(where, agent=agent, type=type, since=since, until=until)
        if now is not None and not isinstance(now, datetime):
            raise checks.refuse("now", "a datetime", now)
        body = {
            "query": checks.text("question", question),
            "k": checks.whole("k", k, low=1),
            "where": chosen.to_dict(),
            "mode": mode,
            "token_budget": token_budget,
            "explain": checks.flag("explain", explain),
            "must": [must] if isinstance(must, str) else list(must),
            "must_not": [must_not] if isinstance(must_not, str) else list(must_not),
            "min_relevance": min_relevance,
            "vector": None if vector is None else unit_vector("vector", vector).tolist(),
            "settings": self._wished if settings is None else asdict(RecallSettings.of(settings)),
            "as_of": None if now is None else now.timestamp(),
            "touch": checks.flag("touch", touch),
        }
        answer = self._request("POST", "/recall", {name: value for name, value in body.items() if value is not None})
        recall = self._recalls.new(question, chosen, self._keep_feedback, answer["recall_id"])
        return Hits([_hit(hit) for hit in answer["hits"]], recall)

    def feedback(self, recalled: Hit | Hits | str, *, memory_id: str | None = None, useful: bool = True) -> Feedback:
        try:
            feedback = self._recalls.feedback_on(recalled, memory_id, useful)[:1]
        except InputError as error:
            if error.field != "recalled" or not isinstance(recalled, str):
                raise
            # a recall of another process
            body = {"recall_id": recalled, "memory_id": memory_id, "useful": checks.flag("useful", useful)}
            answer = self._request("POST", "/feedback", body)
            return Feedback(recalled, memory_id or "", None, "", "", answer["rank"], 0.0, useful, answer["time"])
        self._keep_feedback(feedback)
        return feedback[0]

    def _keep_feedback(self, feedback: Sequence[Feedback]) -> None:
        given = feedback[0]  # the server derives the rest
        body = {"recall_id": given.recall_id, "useful": given.useful, "memory_id": given.memory_id or None}
        self._request("POST", "/feedback", body)

    @property
    def graph(self) -> Graph:
        from .graph.remote import RemoteGraph

        return RemoteGraph(self, self._request)

    def stats(self) -> Stats:
        return cast("Stats", {"address": self.address, **self._request("GET", "/stats")})

    @property
    def embedder(self) -> str:
        return self.stats()["embedder"] or "none"

    def close(self) -> None:
        self._link.close()

    # Not supported by a server

    def __getattr__(self, name: str) -> Any:
        if name == "store":
            _refuse("Brain.store")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _request(self, method: str, path: str, body: object = None, *, only_if: str | None = None) -> Any:
        """Send a request and return the JSON of the answer; with `only_if`, only if the memory still has this ETag."""
        headers = self._headers(method)
        if only_if is not None:
            headers["If-Match"] = only_if
        sent = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        found = self._link.request(method, self._route(path), sent, headers, None)
        return json.loads(found) if found else None

    def _route(self, path: str) -> str:
        return f"/workspaces/{quote(self.workspace, safe='')}{path}"

    def _headers(self, method: str) -> dict[str, str]:
        """Return the headers; a write has an idempotency key, so that it is done once even if it is sent again."""
        headers = {"User-Agent": f"rmem/{__version__}", "Accept": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        if method != "GET":
            headers |= {"Idempotency-Key": uuid.uuid4().hex, "Content-Type": "application/json"}
        return headers


def _refuse(what: str) -> NoReturn:
    raise ServerError(f"{what} is not offered by a server; use it where the store is", status=501)


def _unsupported_method(name: str) -> Callable[..., NoReturn]:
    def method(self: RemoteBrain, *args: Any, **options: Any) -> NoReturn:
        _refuse(f"Brain.{name}")

    method.__name__ = name
    return method


for _name in (
    "cleaned", "decay_importance", "edit", "keep", "last_recalls", "new_recall", "prune", "put",
    "record_remote_recall", "vector_of",
):  # fmt: skip
    setattr(RemoteBrain, _name, _unsupported_method(_name))


# Bodies of requests and answers


def _path(key: str) -> str:
    return f"/memories/{quote(key, safe='')}"


def _new(at: int, item: NewMemory | Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(item, Mapping):
        raise checks.refuse(f"item {at}", "a mapping of remember's arguments", item)
    try:
        return _body_of(item)
    except InputError as error:
        raise type(error)(f"item {at}: {error}", field=error.field) from None


def _body_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Check the arguments of `remember` as Brain does, so that errors name the field, and build the body."""
    given = {name: value for name, value in fields.items() if value is not None}
    return _canonical(given, build_memory_of(given))


def _canonical(given: Mapping[str, Any], drafted: Memory) -> dict[str, Any]:
    """Convert the given arguments to JSON, with the values of the checked memory."""
    body: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            body[name] = None
        elif name == "when":
            body[name] = drafted.timestamp
        elif name in ("vector", "position"):
            body[name] = [float(number) for number in getattr(drafted, name)]
        else:
            body[name] = getattr(drafted, name)
    return body


def _hit(document: Mapping[str, Any]) -> Hit:
    explained = document.get("explanation")
    if explained is not None:
        fields = {name: value for name, value in explained.items() if name != "score"}
        explained = Explanation(**{**fields, "words": [WordMatch(**match) for match in fields["words"]]})
    return Hit(Memory.from_dict(document["memory"]), document["score"], explained, relevance=document.get("relevance"))


def _error_of(status: int, message: str, remedy: Remedy) -> RemanenceError:
    """Return the error that a Brain on a file would raise, by the HTTP status."""
    if status == 404 and (missing := re.fullmatch(r"no (memory|fact) with id '(.*)'", message, re.DOTALL)):
        return NotFoundError(missing[2], missing[1])
    if status in (400, 422):
        field = re.match(r"(\w+) must\b", message)
        return InputError(message, field=None if field is None else field[1])
    if status in (401, 403):
        return ServerError(f"{message}. {remedy.refused}", status=status)
    if status == 503:
        return StoreUnreachableError(message)
    if status == 429:
        return StoreBusyError(message)
    return StoreFullError(message) if status == 507 else ServerError(message, status=status)
