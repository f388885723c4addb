"""Recalls from the bodies of requests to the bodies of their answers, in whichever process they are done."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import checks
from ..asking import Sought, ask
from ..models import Hits
from .bodies import Document, encoded, fields_of, json_of, told

if TYPE_CHECKING:
    from ..brain import Brain

MOST_HITS = 1000
TOGETHER = 12  # requests that share a look, and are answered together
_MOMENT = 0.1  # seconds after which those that are left look again
NAMES = (
    "query", "k", "where", "since", "until", "mode", "token_budget", "explain", "must", "must_not", "vector",
    "settings", "as_of", "touch",
)  # fmt: skip
_SCORES = {"hybrid": "fused", "lexical": "bm25", "vector": "cosine"}


class Recalled(NamedTuple):
    hits: Hits
    touch: bool
    """Whether the hits count as accessed."""
    body: bytes


class _Found(NamedTuple):
    """Which memories answer a request."""

    sought: Sought
    touch: bool


def _find(brain: Brain, body: bytes, touch: bool) -> _Found:
    """What answers a request; without `touch`, accesses are left to the caller."""
    options: dict[str, Any] = fields_of(json_of(body), "a recall", NAMES, ("query",))
    question = checks.text("query", options.pop("query"))
    if (as_of := options.pop("as_of", None)) is not None:
        options["now"] = datetime.fromtimestamp(checks.moment("as_of", as_of))
    if checks.whole("k", options.get("k", 5), low=1) > MOST_HITS:
        raise checks.refuse("k", f"a whole number from 1 to {MOST_HITS}", options["k"])
    if options.get("settings") is None:
        options["settings"] = brain.settings
    wanted = checks.flag("touch", options.pop("touch", True))
    return _Found(brain.seek(ask(question, **options, touch=wanted and touch)), wanted)


def answers(brain: Brain, bodies: Sequence[bytes], *, touch: bool = True) -> list[Recalled | Exception]:
    """The answers to the first of some requests, with the store as it is now: as many as take no longer than a moment,
    one at least. What is wrong with one is told in its place."""
    return brain.store.together(lambda: _answers(brain, bodies, touch))


def _answers(brain: Brain, bodies: Sequence[bytes], touch: bool) -> list[Recalled | Exception]:
    until = time.monotonic() + _MOMENT
    found: list[_Found | Exception] = []
    for body in bodies:
        try:
            found.append(_find(brain, body, touch))
        except Exception as error:
            found.append(error)
        if time.monotonic() > until:
            break
    hits = iter(brain.tell([one.sought for one in found if isinstance(one, _Found)]))
    return [one if isinstance(one, Exception) else _recalled(one, next(hits)) for one in found]


def _recalled(found: _Found, hits: Hits) -> Recalled:
    return Recalled(hits, found.touch, encoded(_told(hits, found.sought.asked.mode)))


def _told(hits: Hits, mode: str) -> Document:
    found = []
    for hit in hits:
        document: Document = {"rank": hit.rank, "score": hit.score, "memory": told(hit.memory, attachments=False)}
        if hit.explanation is not None:
            document["explanation"] = hit.explanation.to_dict()
        found.append(document)
    return {"recall_id": hits.recall_id, "score_kind": _SCORES[mode], "hits": found}
