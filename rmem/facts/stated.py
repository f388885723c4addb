"""Facts that were stated as facts, not in prose. Each is a memory of the type `fact`, so that it is kept,
encrypted, exported, shared, audited and forgotten as memories are; this module is the layout of its contents.

What is said *about* facts is a fact with a relation of `RESERVED`: that two names mean one entity, that a relation has
one value at a time, that another fact is over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .model import STATED, FoundFact
from .relations import canonical, has_one

if TYPE_CHECKING:
    from ..models import Memory

TYPE = "fact"
SAME_AS, VALUES, ENDS = "rmem:same as", "rmem:values", "rmem:ends"
RESERVED = (SAME_AS, VALUES, ENDS)
ONE, MANY = "one", "many"


def stated_contents(
    subject: str,
    relation: str,
    object: str,
    *,
    is_value: bool = False,
    since: float | None = None,
    until: float | None = None,
    negated: bool = False,
    confidence: float = STATED,
) -> dict[str, Any]:
    """Build the contents of a memory that states a fact; `since` and `until` in Unix seconds."""
    fact = {"subject": subject, "relation": relation, "object": object}
    details = {"value": is_value or None, "since": since, "until": until, "not": negated or None}
    if confidence != STATED:
        details["confidence"] = confidence
    return {"fact": fact | {key: value for key, value in details.items() if value is not None}}


def sentence(subject: str, relation: str, object: str, *, negated: bool = False) -> str:
    """Write a fact as a sentence: the text of the memory that states it, for word search."""
    if relation == SAME_AS:
        return f"{subject} is another name of {object}."
    if relation == VALUES:
        return f"“{subject}” has {object} value{'' if object == ONE else 's'} at a time."
    if relation == ENDS:
        return f"No longer true: {subject}."
    return f"{'Not true: ' if negated else ''}{subject} {relation} {object}."


def stated_facts(memory: Memory) -> tuple[FoundFact, ...] | None:
    """Return the fact that a memory states, as a tuple of one; None if the memory is not of the type `fact`."""
    if memory.type != TYPE:
        return None
    fields = memory.contents.get("fact")
    if not isinstance(fields, Mapping):
        return None
    parts = [fields.get(key) for key in ("subject", "relation", "object")]
    if not all(isinstance(part, str) and part for part in parts):
        return None
    since, until, confidence = fields.get("since"), fields.get("until"), fields.get("confidence", STATED)
    subject, relation, object_ = parts
    return (
        FoundFact(
            str(subject),
            str(relation),
            str(object_),
            is_value=fields.get("value") is True,
            confidence=float(confidence) if isinstance(confidence, int | float) else STATED,
            end=len(memory.text),
            valid_from=float(since) if isinstance(since, int | float) else None,
            valid_until=float(until) if isinstance(until, int | float) else None,
            negated=fields.get("not") is True,
            single=has_one(canonical(str(relation))),
        ),
    )
