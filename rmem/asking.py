"""Questions from their arguments to their hits: `ask` checks what is asked for, `seek` finds out which memories answer
it, `tell` reads them. Brain.recall is the three in a row; whoever has several questions seeks for each and lets them
be told at once. How memories are ranked is not decided here but in recall/."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import checks
from .drafting import given_vector
from .filters import Filter
from .index.analyser import plain
from .index.bits import unit
from .models import Hit, Hits
from .recall.budget import fitting
from .recall.engine import MODES, Ranked, rank
from .recall.question import Question, read_question
from .recall.settings import RecallSettings

if TYPE_CHECKING:
    from .embed.base import Embedder
    from .judgements import Judgement, Recalls
    from .stores.base import RecordStore

Vector = npt.NDArray[np.float32]


class Asked(NamedTuple):
    """A question with all that is asked for beside it. Made by `ask`, which checks it."""

    text: str
    read: Question
    where: Filter
    k: int
    mode: str
    token_budget: int | None
    explain: bool
    vector: Vector | None
    settings: RecallSettings
    touch: bool


class Sought(NamedTuple):
    """A question, and which memories answer it."""

    asked: Asked
    ranked: Sequence[Ranked]


def ask(
    question: object,
    k: object = 5,
    where: Filter | Mapping[str, Any] | None = None,
    since: object = None,
    until: object = None,
    mode: object = "hybrid",
    token_budget: object = None,
    explain: object = False,
    *,
    settings: RecallSettings | Mapping[str, Any],
    must: object = (),
    must_not: object = (),
    vector: object = None,
    now: object = None,
    touch: object = True,
) -> Asked:
    """A checked question. The arguments are those of Brain.recall; `settings` are the Brain's if none are given."""
    text = checks.text("question", question)
    count = checks.whole("k", k, low=1)
    way = checks.one_of("mode", mode, MODES)
    explained = checks.flag("explain", explain)
    touched = checks.flag("touch", touch)
    budget = None if token_budget is None else checks.whole("token_budget", token_budget, low=1)
    used = RecallSettings.of(settings)
    if now is not None and not isinstance(now, datetime):
        raise checks.refuse("now", "a datetime", now)
    filtered = Filter.of(where, since=since, until=until)
    local = datetime.now() if now is None else now.astimezone().replace(tzinfo=None) if now.tzinfo else now
    read = read_question(text, local, _phrases("must", must), _phrases("must_not", must_not))
    if read.span is not None and used.time_words == "filter" and filtered.since is filtered.until is None:
        filtered = Filter.of(filtered, since=read.span.start, until=read.span.end)
    given = None if vector is None else unit(given_vector("vector", vector)[None, :])[0]
    return Asked(text, read, filtered, count, way, budget, explained, given, used, touched)


def _phrases(field: str, given: object) -> Sequence[str]:
    """Words or phrases; one may be given by itself."""
    if given is None or (isinstance(given, list | tuple) and not given):
        return ()
    phrases = checks.names(field, given)
    for phrase in phrases:
        if not plain(phrase):
            raise checks.refuse(field, "words or phrases", phrase)
    return phrases


def seek(store: RecordStore, asked: Asked, embedder_of_store: Callable[[], Embedder | None]) -> Sought:
    """Find out which memories answer a question."""
    given = asked.vector
    rows = store.prospect(asked.where)  # first: the snapshot may be a newer one after it
    if asked.mode == "vector":
        store.check_comparable("vectors")
    embedder = embedder_of_store() if given is None and asked.mode != "lexical" else None

    def query_vector(text: str, weigh: Callable[[str], float]) -> Vector | None:
        if given is not None:
            return checks.vector("vector", given, dimension=rows.dimension)
        if embedder is None:
            return None
        found = embedder.embed_query(text, weigh)
        return found if found.any() else None

    # With a budget, further hits may take the place of those that are too long.
    count = asked.k if asked.token_budget is None else 4 * asked.k
    ranked = rank(rows, asked.read, query_vector, asked.settings, mode=asked.mode, count=count, explain=asked.explain)
    return Sought(asked, ranked)


def tell(
    store: RecordStore, sought: Sequence[Sought], recalls: Recalls, judge: Callable[[Judgement], None]
) -> list[Hits]:
    """Read the memories that were found for some questions, all at once, and note that they were accessed. Each answer
    is one of the `recalls`, and `judge` is told what is said of it."""
    wanted = dict.fromkeys(found.seq for one in sought for found in one.ranked)
    held = dict(store.memories_at(list(wanted)))
    told = []
    for asked, ranked in sought:
        hits = [Hit(held[found.seq], found.score, found.explanation) for found in ranked if found.seq in held]
        if asked.token_budget is not None:
            hits = fitting(hits, lambda hit: hit.text, asked.token_budget)[: asked.k]
        if asked.touch:
            store.touch([hit.memory.memory_id for hit in hits], time.time())
        told.append(Hits(hits, recalls.new(asked.text, asked.where, judge)))
    return told
