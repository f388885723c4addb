"""Recalls from the bodies of requests to the bodies of their answers, in whichever process they are done."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import checks
from ..models import Hits
from .bodies import Document, encoded, fields_of, json_of, told

if TYPE_CHECKING:
    from ..brain import Brain, Sought

MOST_HITS = 1000
NAMES = (
    "query", "k", "where", "since", "until", "mode", "token_budget", "explain", "vector", "settings", "as_of", "touch",
)  # fmt: skip
_SCORES = {"hybrid": "fused", "lexical": "bm25", "vector": "cosine"}


class Recalled(NamedTuple):
    hits: Hits
    touch: bool
    """Whether the hits count as accessed."""
    body: bytes


class Asked(NamedTuple):
    """A request and what was found for it."""

    sought: Sought
    touch: bool
    mode: str


def asked(brain: Brain, body: bytes, *, touch: bool = True) -> Asked:
    """What a request asks for, and which memories answer it; without `touch`, accesses are left to the caller."""
    options: dict[str, Any] = fields_of(json_of(body), "a recall", NAMES, ("query",))
    question = checks.text("query", options.pop("query"))
    if (as_of := options.pop("as_of", None)) is not None:
        options["now"] = datetime.fromtimestamp(checks.moment("as_of", as_of))
    if checks.whole("k", options.get("k", 5), low=1) > MOST_HITS:
        raise checks.refuse("k", f"a whole number from 1 to {MOST_HITS}", options["k"])
    wanted = checks.flag("touch", options.pop("touch", True))
    return Asked(brain.seek(question, **options, touch=wanted and touch), wanted, options.get("mode", "hybrid"))


def answered(brain: Brain, requests: Sequence[Asked]) -> list[Recalled]:
    """The answers to some requests."""
    return [
        Recalled(hits, one.touch, encoded(_told(hits, one.mode)))
        for one, hits in zip(requests, brain.tell([one.sought for one in requests]), strict=True)
    ]


def _told(hits: Hits, mode: str) -> Document:
    found = []
    for hit in hits:
        document: Document = {"rank": hit.rank, "score": hit.score, "memory": told(hit.memory)}
        if hit.explanation is not None:
            document["explanation"] = hit.explanation.to_dict()
        found.append(document)
    return {"recall_id": hits.recall_id, "score_kind": _SCORES[mode], "hits": found}
