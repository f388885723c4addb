"""Evaluate recall on LoCoMo: long conversations, and questions that name the turns which answer them.

Every turn becomes a memory through `remember_many` and every question goes through `recall`; the result is
the share of the evidence among the first k hits. Nothing here ranks, and no model writes or judges an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import checks
from ..errors import InputError
from ..recall.sessions import by_session

if TYPE_CHECKING:
    from ..brain import Brain
    from ..embed import EmbedderSpec

Progress = Callable[[int, int], None]
Turn = tuple[int, int]
"""Number of the session and of the turn in it, as in `D3:14`."""

DEPTHS = (1, 5, 10, 20, 50)
GRANULARITIES = ("turn", "session")
_HITS = {"turn": 50, "session": 1000}  # hits to read; a session is ranked by all of its turns
GROUPS = {"1-4": (1, 2, 3, 4), "5": (5,), "all": (1, 2, 3, 4, 5), "1": (1,), "2": (2,), "3": (3,), "4": (4,)}
"""Categories reported together; 5 are the adversarial questions, which have no answer."""

_SESSION = re.compile(r"session_(\d+)")
_TURN = re.compile(r"D:?(\d+):(\d+)")
_DATE = re.compile(r"(\d{1,2}):(\d\d)\s*([ap])m on (\d{1,2}) (\w+),? (\d{4})", re.IGNORECASE)
_MONTHS = "january february march april may june july august september october november december".split()


@dataclass(frozen=True, slots=True)
class LocomoQuestion:
    """A question, its category, and the turns that answer it."""

    text: str
    category: int
    evidence: frozenset[Turn]


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation with its questions."""

    name: str
    turns: dict[Turn, dict[str, Any]]
    """The arguments of `remember` for each turn, in the order spoken."""
    questions: tuple[LocomoQuestion, ...]


def evaluate(
    path: str | Path,
    *,
    embedder: EmbedderSpec = None,
    granularity: str = "turn",
    limit_conversations: int | None = None,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Return recall in percent by group of categories and depth, with the setting and the number of questions.

    >>> evaluate("locomo.json")["recall"]["1-4"]["10"]  # doctest: +SKIP
    80.9
    """
    from ..brain import Brain

    checks.one_of("granularity", granularity, GRANULARITIES)
    if limit_conversations is not None:
        checks.whole("limit_conversations", limit_conversations, low=1)
    conversations = read(path)[:limit_conversations]
    total = sum(len(conversation.questions) for conversation in conversations)
    done = skipped = 0
    shares: list[tuple[int, dict[int, float]]] = []
    with Brain(":memory:", embedder=embedder) as brain:
        known = {conversation.name: _remember_turns(brain, conversation) for conversation in conversations}
        for conversation in conversations:
            for question in conversation.questions:
                done += 1
                if question.evidence:
                    ranking = _rank(brain, question, conversation.name, known[conversation.name], granularity)
                    shares.append((question.category, _evidence_found(question.evidence, ranking, granularity)))
                else:
                    skipped += 1
                if on_progress is not None:
                    on_progress(done, total)
        name = brain.embedder
    return {
        "embedder": name,
        "granularity": granularity,
        "recall": {group: _means(shares, categories) for group, categories in GROUPS.items()},
        "questions": len(shares),
        "skipped": skipped,
    }


def _remember_turns(brain: Brain, conversation: Conversation) -> dict[str, Turn]:
    kept = brain.remember_many(list(conversation.turns.values()))
    return {memory.memory_id: turn for memory, turn in zip(kept, conversation.turns, strict=True)}


def _rank(brain: Brain, question: LocomoQuestion, name: str, turn_of: dict[str, Turn], granularity: str) -> list[Any]:
    """Rank turns, or numbers of sessions, best first."""
    hits = brain.recall(question.text, k=_HITS[granularity], where={"agent": name})
    if granularity == "session":
        return [turn_of[session.hits[0].memory.memory_id][0] for session in by_session(hits)]
    return [turn_of[hit.memory.memory_id] for hit in hits]


def _evidence_found(evidence: Iterable[Turn], ranked: Sequence[Any], granularity: str) -> dict[int, float]:
    """Return the share of the evidence (turns, or their sessions) among the first k, by k."""
    wanted: set[Any] = set(evidence)
    if granularity == "session":
        wanted = {session for session, _ in wanted}
    return {k: len(wanted.intersection(ranked[:k])) / len(wanted) for k in DEPTHS}


def _means(shares: Sequence[tuple[int, dict[int, float]]], categories: tuple[int, ...]) -> dict[str, float | None]:
    chosen = [share for category, share in shares if category in categories]
    if not chosen:
        return {str(k): None for k in DEPTHS}
    return {str(k): round(100 * sum(share[k] for share in chosen) / len(chosen), 2) for k in DEPTHS}


# Reading the file


def read(path: str | Path) -> list[Conversation]:
    """Read the conversations of a LoCoMo file; an InputError says where it differs from that format."""
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}", field="file") from None
    except ValueError as error:  # also text that is not UTF-8
        raise InputError(f"{path} is not a JSON file: {error}", field="file") from None
    if not isinstance(data, list) or not data:
        raise _format_error(path, "it must be a list of conversations")
    try:
        conversations = [_conversation(at, sample) for at, sample in enumerate(data)]
        names = [conversation.name for conversation in conversations]
        if len(set(names)) < len(names):
            raise InputError("sample_id must be different for each conversation")
    except InputError as error:
        raise _format_error(path, str(error)) from None
    return conversations


def _format_error(path: str | Path, why: str) -> InputError:
    return InputError(f"{path} is not in the LoCoMo format: {why}", field="file")


def _conversation(at: int, sample: object) -> Conversation:
    if not isinstance(sample, dict):
        raise checks.refuse(f"conversation {at}", "an object", sample)
    for key, kind in (("sample_id", str), ("conversation", dict), ("qa", list)):
        if not isinstance(sample.get(key), kind):
            raise checks.refuse(f"{key} of conversation {at}", f"a {kind.__name__}", sample.get(key))
    name = checks.name("sample_id", sample["sample_id"])
    spoken = sample["conversation"]
    sessions = sorted((int(found[1]), key) for key in spoken if (found := _SESSION.fullmatch(key)))
    turns: dict[Turn, dict[str, Any]] = {}
    for number, key in sessions:
        when = _moment(f"{key}_date_time of {name}", spoken.get(f"{key}_date_time"))
        for turn in spoken[key] or ():
            turns.update(_turn(name, number, when, turn))
    if not turns:
        raise InputError(f"{name} has no turns")
    return Conversation(name, turns, tuple(_question(name, item, turns) for item in sample["qa"]))


def _turn(name: str, session: int, when: datetime, turn: object) -> dict[Turn, dict[str, Any]]:
    if not isinstance(turn, dict):
        raise checks.refuse(f"a turn of session_{session} of {name}", "an object", turn)
    place = f"of session_{session} of {name}"
    found = _TURN.fullmatch(str(turn.get("dia_id")))
    if found is None:
        raise checks.refuse(f"dia_id {place}", "such as 'D1:3'", turn.get("dia_id"))
    text = turn.get("text") or ""
    caption = turn.get("blip_caption")
    text = checks.text(f"text {place}", f"{text} [image: {caption}]" if caption else text)
    return {
        (int(found[1]), int(found[2])): {
            "text": text,
            "agent": name,
            "actor": checks.name(f"speaker {place}", turn.get("speaker")),
            "session": f"session_{session}",
            "when": when,
        }
    }


def _question(name: str, item: object, turns: dict[Turn, dict[str, Any]]) -> LocomoQuestion:
    if not isinstance(item, dict):
        raise checks.refuse(f"a question of {name}", "an object", item)
    category = item.get("category")
    if category not in (1, 2, 3, 4, 5):
        raise checks.refuse(f"category of a question of {name}", "1 to 5", category)
    # Evidence is written as ['D1:3'], ['D8:6; D9:17'] or ['D:11:26']; ignore what names no turn.
    written = " ".join(map(str, item.get("evidence") or ()))
    named = {(int(session), int(turn)) for session, turn in _TURN.findall(written)}
    text = checks.text(f"question of {name}", item.get("question"))
    return LocomoQuestion(text, category, frozenset(named & turns.keys()))


def _moment(field: str, value: object) -> datetime:
    found = _DATE.fullmatch(str(value).strip())
    try:
        if found is None:
            raise ValueError
        hour = int(found[1]) % 12 + (12 if found[3].lower() == "p" else 0)
        return datetime(int(found[6]), _MONTHS.index(found[5].lower()) + 1, int(found[4]), hour, int(found[2]))
    except ValueError:
        raise checks.refuse(field, "a time such as '1:56 pm on 8 May, 2023'", value) from None
