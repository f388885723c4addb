"""A recall over HTTP: from the body of its request to the body of its answer, in whichever process it runs."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import checks
from ..feedback import Recall
from ..models import Hit
from .bodies import Document, fields_of, memory_document, parse_json, to_json
from .ownership import is_visible

if TYPE_CHECKING:
    from .access import Access

MOST_HITS = 1000
NAMES = (
    "query", "k", "where", "since", "until", "mode", "token_budget", "explain", "must", "must_not",
    "min_relevance", "vector", "settings", "as_of", "touch",
)  # fmt: skip
_SCORE_KINDS = {"hybrid": "fused", "lexical": "bm25", "vector": "cosine"}
_BESIDE = 100  # further hits to ask for where some of the first are others' personal memories


class RecallResult(NamedTuple):
    """The body of an answer, and what `Brain.record_remote_recall` needs."""

    body: bytes
    recall: Recall
    touched: list[str]


def answer_recall(access: Access, body: bytes) -> RecallResult:
    """Run the recall of a body, without others' personal memories. Accesses are not counted yet."""
    options: dict[str, Any] = fields_of(parse_json(body), "a recall", NAMES, ("query",))
    question = checks.text("query", options.pop("query"))
    if (as_of := options.pop("as_of", None)) is not None:
        options["now"] = datetime.fromtimestamp(checks.moment("as_of", as_of))
    k = checks.whole("k", options.pop("k", 5), low=1)
    if k > MOST_HITS:
        raise checks.refuse("k", f"a whole number from 1 to {MOST_HITS}", k)
    touch = checks.flag("touch", options.pop("touch", True))
    brain = access.brain
    found = brain.recall(question, k, **options, touch=False)
    hits = [hit for hit in found if is_visible(access, hit.memory.place)]
    if len(hits) < len(found):
        found = brain.recall(question, min(k + _BESIDE, MOST_HITS), **options, touch=False)
        hits = [hit for hit in found if is_visible(access, hit.memory.place)][:k]
    answer = to_json(
        {
            "recall_id": found.recall_id,
            "score_kind": _SCORE_KINDS[options.get("mode", "hybrid")],
            "hits": [_hit(rank, hit) for rank, hit in enumerate(hits, 1)],
        }
    )
    return RecallResult(answer, found.recall, [hit.memory.memory_id for hit in hits] if touch else [])


def local_recall(access: Access, body: bytes) -> bytes:
    """Recall in this process, and count the accesses."""
    answer = answer_recall(access, body)
    if answer.touched:
        access.brain.store.touch(answer.touched, time.time())
    return answer.body


def _hit(rank: int, hit: Hit) -> Document:
    memory = memory_document(hit.memory, attachments=False)
    document: Document = {"rank": rank, "score": hit.score, "relevance": hit.relevance, "memory": memory}
    if hit.explanation is not None:
        document["explanation"] = hit.explanation.to_dict()
    return document
