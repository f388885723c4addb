"""Group hits by session: which conversation, task or run a question is about."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..models import Hit


@dataclass(slots=True)
class SessionHits:
    """A session, its score, and its hits, best first."""

    agent: str
    session: str | None
    score: float = -math.inf
    hits: list[Hit] = field(default_factory=list)


def by_session(hits: Sequence[Hit]) -> list[SessionHits]:
    """Return the sessions of some hits, best first. A session scores by a soft maximum of its hits, ½ ln Σ exp(2 ·
    score): the best one decides, several good ones help.

        for session in by_session(brain.recall("the flaky upload test", k=100)):
            print(session.session, len(session.hits))
    """
    sessions: dict[tuple[str, str | None], SessionHits] = {}
    for hit in hits:
        key = (hit.memory.agent_id, hit.memory.session)
        session = sessions.setdefault(key, SessionHits(*key))
        session.hits.append(hit)
    for session in sessions.values():
        best = max(hit.score for hit in session.hits)
        session.score = best + 0.5 * math.log(sum(math.exp(2 * (hit.score - best)) for hit in session.hits))
    return sorted(sessions.values(), key=lambda session: -session.score)
