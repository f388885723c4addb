"""A recall from its arguments to its hits: `parse_request` checks what is asked for, `search` ranks the rows inside the
filter, `load_hits` reads the best of them. How rows are ranked is decided in `engine`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import checks
from ..filters import Filter
from ..index.analyser import plain
from ..index.bits import unit_vector
from ..index.filtered_rows import FilteredRows
from ..models import Hit
from .budget import take_fitting
from .engine import MODES, rank
from .fact_paths import FactSource, cached_similarity
from .facts import DEPTH, FactRanking, rank_by_facts
from .feedback import MAX_MOVED, LearnedFeedback, rank_by_feedback
from .question import Question, parse_question
from .ranked import Ranked
from .settings import RecallSettings, with_dense

if TYPE_CHECKING:
    from ..embed.base import Embedder
    from ..facts.model import StoredFact
    from ..index.candidate_source import CandidateSource
    from ..stores.base import RecordStore

Vector = npt.NDArray[np.float32]

_DENSE = 0.4  # weight of given vectors in a store without an embedder


class RecallRequest(NamedTuple):
    """A checked question with all arguments of a recall."""

    text: str
    question: Question
    where: Filter
    k: int
    mode: str
    token_budget: int | None
    explain: bool
    vector: Vector | None
    settings: RecallSettings
    touch: bool
    min_relevance: float = 0.0

    @property
    def needs_embedder(self) -> bool:
        return self.vector is None and self.mode != "lexical"


class RankedRows(NamedTuple):
    """The rows that answer a request, best first."""

    request: RecallRequest
    rows: Sequence[Ranked]


def parse_request(
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
    min_relevance: object = None,
    vector: object = None,
    now: object = None,
    touch: object = True,
) -> RecallRequest:
    """Check the arguments of Brain.recall and read the question."""
    text = checks.text("question", question)
    count = checks.whole("k", k, low=1)
    checked_mode = checks.one_of("mode", mode, MODES)
    explained = checks.flag("explain", explain)
    touched = checks.flag("touch", touch)
    budget = None if token_budget is None else checks.whole("token_budget", token_budget, low=1)
    least = 0.0 if min_relevance is None else checks.share("min_relevance", min_relevance)
    used = RecallSettings.of(settings)
    if now is not None and not isinstance(now, datetime):
        raise checks.refuse("now", "a datetime", now)
    filtered = Filter.of(where, since=since, until=until)
    local = datetime.now() if now is None else now.astimezone().replace(tzinfo=None) if now.tzinfo else now
    read = parse_question(text, local, _phrases("must", must), _phrases("must_not", must_not))
    if read.span is not None and used.time_words == "filter" and filtered.since is filtered.until is None:
        filtered = Filter.of(filtered, since=read.span.start, until=read.span.end)
    given = None if vector is None else unit_vector("vector", vector)
    if given is not None:
        read = replace(read, parts=())  # the vector is that of the whole question
    return RecallRequest(text, read, filtered, count, checked_mode, budget, explained, given, used, touched, least)


def _phrases(field: str, given: object) -> Sequence[str]:
    """Check a word or phrase, or a list of them."""
    if given is None or (isinstance(given, list | tuple) and not given):
        return ()
    phrases = checks.names(field, given)
    for phrase in phrases:
        if not plain(phrase):
            raise checks.refuse(field, "words or phrases", phrase)
    return phrases


def search(
    store: RecordStore,
    rows: FilteredRows | CandidateSource,
    request: RecallRequest,
    embedder: Embedder | None,
    learned: LearnedFeedback,
    facts: FactSource | None,
) -> RankedRows:
    """Rank the rows inside the filter of a request; by facts too, if the store keeps any."""
    given = request.vector
    if request.mode == "vector":
        store.check_comparable("vectors")

    def query_vector(text: str, weigh: Callable[[str], float]) -> Vector | None:
        if given is not None:
            return checks.vector("vector", given, dimension=rows.dimension)
        if embedder is None:
            return None
        found = embedder.embed_query(text, weigh)
        return found if found.any() else None

    # With a token budget, rank more rows: later hits may replace those that are too long.
    count = request.k if request.token_budget is None else 4 * request.k
    by_facts = None if facts is None else _fact_ranking(facts, store, rows, request)
    most = request.settings.feedback if request.mode == "hybrid" else 0.0
    evidence = learned.evidence(store, request.text) if most else {}
    deeper = max(count, MAX_MOVED if evidence else 0, DEPTH if by_facts is not None else 0)
    ranked: Sequence[Ranked] = rank(
        rows,
        request.question,
        query_vector,
        with_dense(request.settings, _DENSE if embedder is None else embedder.dense),
        mode=request.mode,
        count=deeper,
        explain=request.explain,
    )
    if evidence:
        ranked = rank_by_feedback(store, ranked, evidence, most)
    if by_facts is not None and ranked:
        ranked = rank_by_facts(list(ranked), request.question.text, count, by_facts)
    ranked = ranked[:count]
    return RankedRows(request, ranked)


def _fact_ranking(
    source: FactSource, store: RecordStore, rows: FilteredRows | CandidateSource, request: RecallRequest
) -> FactRanking | None:
    """Return the inputs of ranking by facts; None if the request does not use them."""
    share = request.settings.facts
    if request.mode != "hybrid" or not share:
        return None

    def texts(seqs: Sequence[int]) -> dict[int, str]:
        return {seq: memory.text for seq, memory in store.memories_at(list(seqs))}

    def inside(facts: Sequence[StoredFact]) -> list[StoredFact]:
        if not request.where or not facts:
            return list(facts)
        seqs = {fact.seq for fact in facts}
        if isinstance(rows, FilteredRows):
            shown = rows.contained_seqs(seqs)
        else:
            shown = {seq for seq, memory in store.memories_at(list(seqs)) if request.where.matches(memory)}
        return [fact for fact in facts if fact.seq in shown]

    similarity = cached_similarity(source.word_vectors)
    only_ranked = bool(request.question.must or request.question.must_not)
    span = request.question.span
    until = None if span is None else span.end.timestamp()
    return FactRanking(source, similarity, inside, texts, share, only_ranked, until)


def load_hits(store: RecordStore, found: RankedRows) -> list[Hit]:
    """Read the memories of ranked rows, up to k of the request; skip rows that were removed."""
    request = found.request
    ranked = [row for row in found.rows if row.relevance >= request.min_relevance]
    memories = dict(store.memories_at([row.seq for row in ranked]))
    hits = [
        Hit(memories[row.seq], row.score, row.explanation, relevance=row.relevance)
        for row in ranked
        if row.seq in memories
    ]
    if request.token_budget is not None:
        hits = take_fitting(hits, lambda hit: hit.text, request.token_budget)[: request.k]
    return hits
