"""Format the answers of the tools: a hit is one line, a memory is shown in full only on request. Unknown fields are
left out, because an agent pays for every word."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from ..graph.model import Fact, iso
from ..team.notes import Experience

_LINE = 240  # characters


def hit_of(one: Experience) -> dict[str, Any]:
    """A memory in a list: its id, one line, the day it was learned and, in answers of `recall`, its relevance."""
    told = {
        "id": one.id,
        "line": line_of(one),
        "date": _moment(one).date().isoformat(),
        "relevance": round(one.relevance, 2) if one.recall_id else None,
        "stale": one.stale,
    }
    return _known(told)


def line_of(one: Experience) -> str:
    """What a memory says, in one line: of a fix, the error's first line and the fix."""
    text, fix = one.text, one.memory.contents.get("fix")
    if fix:
        first = next((line for line in text.splitlines() if line.strip()), "")
        text = first if fix in first else f"{first[: _LINE // 2]} Fix: {fix}"
    words = " ".join(text.split())
    kind = one.kind.replace("_", " ")
    return f"[{kind}] {words if len(words) <= _LINE else words[: _LINE - 1] + '…'}"


def memory_of(one: Experience) -> dict[str, Any]:
    """A memory in full."""
    body = one.memory.contents
    told = {
        "id": one.id,
        "kind": one.kind,
        "text": one.text,
        "author": one.author,
        "agent": one.memory.agent_id,
        "when": _moment(one).isoformat(timespec="seconds"),
        "scope": one.scope,
        "repository": one.repository,
        "branch": body.get("branch"),
        "commit": one.commit,
        "files": one.files,
        "error": body.get("error"),
        "fix": body.get("fix"),
        "count": one.count,
        "stale": one.stale,
        "superseded_by": body.get("superseded_by"),
    }
    return _known(told)


def page_of(found: Sequence[Experience], next_offset: int | None, **more: Any) -> dict[str, Any]:
    """Hits, and where the next page begins if there is one."""
    return {"memories": [hit_of(one) for one in found], **_known({**more, "next_offset": next_offset})}


def fact_of(fact: Fact) -> dict[str, Any]:
    """A fact in a list; the memory that says it is the part of its id before the `#`."""
    told = {
        "id": fact.id,
        "fact": f"{'not: ' if fact.negated else ''}{fact.subject} – {fact.relation} – {fact.object}",
        "since": iso(fact.valid_from)[:10],
        "until": None if fact.valid_until is None else iso(fact.valid_until)[:10],
    }
    return _known(told)


def _moment(one: Experience) -> datetime:
    return datetime.fromtimestamp(one.memory.timestamp, UTC)


def _known(told: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if value not in (None, [], "")}
