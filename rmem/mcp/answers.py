"""Format the answers of the tools: a hit is one line, a memory is shown in full only on request. Unknown fields are
left out, because an agent pays for every word."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from ..graph.model import Fact, iso
from ..team.notes import Experience

_MAX_LINE = 240  # characters


def hit_of(experience: Experience) -> dict[str, Any]:
    """Format a memory for a list: id, one line, day and, in answers of `recall`, its relevance."""
    fields = {
        "id": experience.id,
        "line": line_of(experience),
        "date": _datetime_of(experience).date().isoformat(),
        "relevance": round(experience.relevance, 2) if experience.recall_id else None,
        "stale": experience.stale,
    }
    return _without_empty(fields)


def line_of(experience: Experience) -> str:
    """Write a memory as one line; a fix as the first line of the error and the fix."""
    text, fix = experience.text, experience.memory.contents.get("fix")
    if fix:
        first = next((line for line in text.splitlines() if line.strip()), "")
        text = first if fix in first else f"{first[: _MAX_LINE // 2]} Fix: {fix}"
    words = " ".join(text.split())
    kind = experience.kind.replace("_", " ")
    return f"[{kind}] {words if len(words) <= _MAX_LINE else words[: _MAX_LINE - 1] + '…'}"


def memory_of(experience: Experience) -> dict[str, Any]:
    """Format a memory with all its fields."""
    body = experience.memory.contents
    fields = {
        "id": experience.id,
        "kind": experience.kind,
        "text": experience.text,
        "author": experience.said_by,
        "agent": experience.memory.agent_id,
        "when": _datetime_of(experience).isoformat(timespec="seconds"),
        "scope": experience.scope,
        "repository": experience.repository,
        "branch": body.get("branch"),
        "commit": experience.commit,
        "files": experience.files,
        "error": body.get("error"),
        "fix": body.get("fix"),
        "count": experience.count,
        "stale": experience.stale,
        "superseded_by": body.get("superseded_by"),
    }
    return _without_empty(fields)


def page_of(found: Sequence[Experience], next_offset: int | None, **more: Any) -> dict[str, Any]:
    """Format a page of hits, with the offset of the next page if there is one."""
    return {
        "memories": [hit_of(experience) for experience in found],
        **_without_empty({**more, "next_offset": next_offset}),
    }


def fact_of(fact: Fact) -> dict[str, Any]:
    """Format a fact for a list; the part of its id before `#` is the id of its memory."""
    fields = {
        "id": fact.id,
        "fact": f"{'not: ' if fact.negated else ''}{fact.subject} – {fact.relation} – {fact.object}",
        "since": iso(fact.valid_from)[:10],
        "until": None if fact.valid_until is None else iso(fact.valid_until)[:10],
    }
    return _without_empty(fields)


def _datetime_of(experience: Experience) -> datetime:
    return datetime.fromtimestamp(experience.memory.timestamp, UTC)


def _without_empty(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, [], "")}
