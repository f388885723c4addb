"""Memories of coding agents: injections as they would be now, a ledger of past ones, sessions, and the review inbox. On
the user's own store (`rmem ui`) sessions and clones on this machine are read too; a team's server has neither."""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from fastapi import Query

from ... import checks
from ...errors import InputError, NotFoundError
from ...filters import Filter
from ...models import Memory
from ...recall.budget import estimate_tokens
from ...stores.capabilities import AuditEntry, AuditLog
from ...team import known_repositories, review
from ...team.briefing import (
    BAR,
    BUDGET,
    HEADING,
    PROMPT_BUDGET,
    Briefing,
    BriefingSection,
    experience_section,
    fit_budget,
    format_experience,
    render_sections,
)
from ...team.events import Event, EventKind
from ...team.identity import Repository, author, repository, repository_id
from ...team.memory import TeamMemory
from ...team.notes import Experience
from ...team.sessions import NO_SESSIONS, Sessions, SessionState
from .. import coding_documents, forms
from ..access import Access, Reader, Role, Writer
from ..bodies import Document, cursor_of, memory_document, parts_of
from ..json_router import JsonRouter
from ..ownership import check_change, is_visible, visible
from .answers import RUNNING, Cursor

router = JsonRouter(prefix="/workspaces/{workspace}/coding", tags=["team"], responses=RUNNING)

Named = Annotated[
    str | None, Query(max_length=512, description="The id of a repository; all that is not of one without.")
]
_LISTED = 2000  # memories among which repositories are looked for
_COMPARED, _READ = 100, 1000  # memories that a page of the review compares with others, and reads to find them
_INBOX = 50  # of each kind
_LEDGER_DAYS, _LEDGER = 30, 20_000  # days, and entries of the audit log
_TOLD = 300  # characters of a memory in a line of a briefing


def _is_own(access: Access) -> bool:
    return access.service.settings.own_store is not None


def _team(access: Access) -> TeamMemory:
    who = author(Path.cwd()) if _is_own(access) else access.member
    return TeamMemory(access.brain, author=who, origin="rest", token=access.token_id)


def _sessions(access: Access) -> Sessions:
    return Sessions() if _is_own(access) else NO_SESSIONS


def _place(access: Access, named: str | None) -> Repository | str | None:
    """Return a repository; with its clone if this is the user's own store and the clone is known."""
    if not named:
        return None
    id = repository_id(checks.name("repository", named))
    if _is_own(access):
        last = _sessions(access).last_in(id)
        for folder in (str(Path.cwd()), "" if last is None else last.cwd):
            clone = repository(folder) if folder else None
            if clone is not None and clone.id == id:
                return clone
    return id


@router.json("GET", "/repositories", coding_documents.CodingRepositoriesAnswer, "Repositories with memories")
def repositories(access: Reader) -> Document:
    """Lists the repositories of the newest memories, with their counts. `here` is the one that `rmem ui` runs in."""
    counts: Counter[str] = Counter()
    for memory in access.brain.memories(Filter(tags={"scope": "repository"}), limit=_LISTED):
        if (memory.place or "").startswith("repo:"):
            counts[(memory.place or "").removeprefix("repo:")] += 1
    here = None
    if _is_own(access):
        counts.update(dict.fromkeys(known_repositories.repositories(), 0))
        clone = repository(Path.cwd())
        here = None if clone is None else clone.id
    return {"repositories": [{"id": id, "memories": count} for id, count in counts.most_common()], "here": here}


# What is told


@router.json("GET", "/briefing", coding_documents.InjectionAnswer, "What a new session would be shown now")
def briefing(access: Reader, repository: Named = None) -> Document:
    """Nothing is recorded as shown. `told` is false for lines that do not fit into the budget."""
    event = Event("preview", "preview", EventKind.SESSION_START, "preview", "", 0.0)
    sections = Briefing(access.brain, _sessions(access)).sections(event, _team(access), _place(access, repository))
    return _injection(sections, BUDGET - len(HEADING), HEADING)


@router.json(
    "POST",
    "/injection",
    coding_documents.InjectionAnswer,
    "What a prompt or a failed command would be shown now",
    form=forms.InjectionForm,
)
def injection(access: Reader, form: Document) -> Document:
    """Nothing is recorded as shown. `considered` has all memories found, also those below the `bar` of relevance."""
    briefing, team, place = (
        Briefing(access.brain, _sessions(access)),
        _team(access),
        _place(access, form.get("repository")),
    )
    if form.get("prompt"):
        prompt = checks.text("prompt", form["prompt"])
        found, relevant = briefing.candidates(prompt, team, place), briefing.relevant(prompt, team, place)
    elif form.get("output"):
        ran = checks.text("command", form.get("command") or "command"), checks.text("output", form["output"])
        found, relevant = (
            briefing.failure_candidates(*ran, team, place),
            briefing.relevant_to_failure(*ran, team, place),
        )
    else:
        raise InputError("prompt must be given, or output of a command that fails", field="prompt")
    answer = _injection([experience_section(relevant)], PROMPT_BUDGET)
    shown = {line["memory_id"] for section in answer["sections"] for line in section["lines"] if line["told"]}
    return {
        **answer,
        "bar": BAR,
        "considered": [
            {
                "relevance": candidate.relevance,
                "stale": candidate.stale,
                "told": candidate.id in shown,
                "memory": memory_document(candidate.memory),
            }
            for candidate in found
        ],
    }


def _injection(sections: list[BriefingSection], budget: int, heading: str = "") -> Document:
    kept = fit_budget(sections, budget)
    fits = {line for section in kept for line in section.lines}
    text = heading + render_sections(kept) if kept else ""
    return {
        "text": text,
        "tokens": estimate_tokens(text),
        "characters": len(text),
        "budget": budget + len(heading),
        "sections": [
            {
                "title": section.title,
                "lines": [
                    {
                        "text": line.text,
                        "memory_id": line.memory,
                        "tokens": estimate_tokens(line.text),
                        "told": line in fits,
                    }
                    for line in section.lines
                    if line.text
                ],
            }
            for section in sections
            if any(line.text for line in section.lines)
        ],
    }


@router.json("GET", "/ledger", coding_documents.LedgerAnswer, "What sessions were shown, in tokens")
def ledger(access: Reader, repository: Named = None) -> Document:
    """Groups the last 30 days by session, latest first. Administrators see all, others what was shown in their name.
    Tokens are estimated from the memories as they are now."""
    places = None if not repository else set(_team(access).visible(_place(access, repository)))
    costs: dict[str, tuple[int, str | None]] = {}
    sessions: dict[tuple[str, str], Document] = {}
    for entry in _injected(access, time.time() - _LEDGER_DAYS * 86_400.0):
        key = entry.memory or ""
        if key not in costs:
            memory = access.brain.get(key)
            costs[key] = (0, None) if memory is None else (_cost(memory), memory.place)
        cost, place = costs[key]
        if not is_visible(access, place) or (places is not None and place not in places):
            continue
        agent, session = str(entry.detail.get("agent") or ""), str(entry.detail.get("session") or "")
        row = sessions.setdefault(
            (agent, session),
            {"agent": agent, "session": session, "who": entry.who, "time": entry.time, "memories": 0, "tokens": 0},
        )
        row["memories"] += 1
        row["tokens"] += cost
    found = list(sessions.values())
    return {"days": _LEDGER_DAYS, "tokens": sum(entry["tokens"] for entry in found), "sessions": found[:200]}


def _cost(memory: Memory) -> int:
    return estimate_tokens(format_experience(Experience(memory), _TOLD))


def _injected(access: Access, since: float) -> list[AuditEntry]:
    """Return what was shown to agents, newest first, as far as the caller may see it."""
    store = access.brain.store
    if not isinstance(store, AuditLog):
        return []
    entries = [entry for entry in store.audit(since=since, limit=_LEDGER) if entry.action == "inject"]
    return [entry for entry in entries if access.role >= Role.ADMIN or entry.who == access.member]


# Sessions


@router.json("GET", "/replay", coding_documents.ReplayAnswer, "What happened in a session, in its order")
def replay(
    access: Reader, session: Annotated[str, Query(min_length=1, max_length=512)], agent: str | None = None
) -> Document:
    """Returns what a session remembered and was shown; on the user's own store also its prompts, edits and commands, as
    far as they are still stored."""
    where = Filter.of({"session": session, **({"agent": agent} if agent else {})})
    memories = visible(access, access.brain.memories(where, order="oldest", limit=1000))
    events = [_event(memory.timestamp, memory.type, memory.text, memory) for memory in memories]
    start = memories[0].timestamp - 86_400 if memories else time.time() - _LEDGER_DAYS * 86_400.0
    for entry in _injected(access, start):
        if entry.detail.get("session") == session and agent in (None, entry.detail.get("agent")):
            memory = access.brain.get(entry.memory or "")
            if memory is not None and is_visible(access, memory.place):
                events.append(_event(entry.time, "told", memory.text, memory))
    state = _sessions(access).find(session)
    events += [] if state is None else _local(state)
    return {
        "session": session,
        "task": "" if state is None else state.task,
        "plan": [] if state is None else state.plan,
        "prompts": [] if state is None else state.prompts,
        "events": sorted(events, key=lambda event: event["time"]),
    }


def _local(state: SessionState) -> list[Document]:
    edits = [
        _event(event.get("time", 0), "edit", f"{event['file']}\n{event.get('change', '')}") for event in state.edits
    ]
    ran = [
        _event(event.get("time", 0), "command", f"$ {event['command']}\n{event['output']}") for event in state.outputs
    ]
    return edits + ran


def _event(when: float, kind: str, text: str, memory: Memory | None = None) -> Document:
    return {"time": when, "kind": kind, "text": text, "memory_id": None if memory is None else memory.memory_id}


# The review inbox


@router.json("GET", "/review", coding_documents.ReviewAnswer, "Memories to review")
def inbox(access: Reader, repository: Named = None, cursor: Cursor = None) -> Document:
    """Pairs that contradict each other or say the same, memories about files that are gone or changed a lot (where the
    clone is on this machine), and statements of yours that may be rules. A page compares at most a hundred memories
    that people and agents wrote, the newest first, with all others; `compared` says how many. Further pages, by
    `cursor`, have only pairs."""
    team, place = _team(access), _place(access, repository)
    found: dict[bool, list[Document]] = {False: [], True: []}
    where = review.comparable(team, place)
    compared, following = _next_to_compare(access, where, cursor)
    for pair in review.pairs(access.brain, compared, where):
        if not review.is_dismissed(team, pair.older.id, pair.why, pair.newer.id):
            older, newer = memory_document(pair.older.memory), memory_document(pair.newer.memory)
            found[pair.is_same].append({"older": older, "newer": newer, "why": pair.why})
    is_first = cursor is None
    old = review.out_of_date(team, place, _INBOX) if is_first and isinstance(place, Repository) else []
    return {
        "contradictions": found[False],
        "duplicates": found[True],
        "out_of_date": [
            {"memory": memory_document(item.memory), "why": item.stale}
            for item in old
            if not review.is_dismissed(team, item.id, item.stale)
        ],
        "waiting": [memory_document(item.memory) for item in review.undecided(team, _INBOX)] if is_first else [],
        "compared": len(compared),
        "next_cursor": following,
    }


def _next_to_compare(access: Access, where: Filter, cursor: str | None) -> tuple[list[Memory], str | None]:
    """Return up to a page of memories that were not imported, newest first, and where the next page begins: a time, and
    how many memories of that time were read."""
    chosen: list[Memory] = []
    rest, edge, skipped = where, math.inf, 0
    if cursor is not None:
        edge, skipped = parts_of(cursor, 2)
        rest = replace(where, until=checks.moment("cursor", edge))
    read = access.brain.memories(rest, limit=_READ, offset=checks.whole("cursor", skipped))
    for memory in read:
        if len(chosen) == _COMPARED:
            break
        skipped = skipped + 1 if memory.timestamp == edge else 1
        edge = memory.timestamp
        if not Experience(memory).is_imported:
            chosen.append(memory)
    else:
        if len(read) < _READ:
            return chosen, None
    return chosen, cursor_of(edge, skipped)


@router.json("POST", "/review", coding_documents.ReviewedAnswer, "Decide on one of them", form=forms.ReviewForm)
def decide(access: Writer, form: Document) -> Document:
    """`accept` makes a pending statement a rule; `supersede` marks `memory_id` as replaced by `other`, `restore` undoes
    that; `dismiss` closes the entry as harmless, for the reason `why`. To remove a memory, forget it."""
    team, action = _team(access), checks.one_of("action", form["action"], ("accept", "supersede", "restore", "dismiss"))
    key = checks.memory_id("memory_id", form["memory_id"])
    other = None if form.get("other") is None else checks.memory_id("other", form["other"])
    memory = _changeable(access, key)
    if action in ("accept", "restore"):
        access.need_room()
        return {"memory_id": review.accept(team, key) if action == "accept" else review.restore(team, key)}
    if action == "dismiss":
        review.dismiss(team, key, checks.text("why", form.get("why")), other)
    elif other is None:
        raise InputError("other must name the memory that holds now", field="other")
    elif other == memory.memory_id:
        raise InputError("other must be another memory than memory_id", field="other")
    else:
        successor = access.brain.get(other)
        if successor is None or not is_visible(access, successor.place):
            raise NotFoundError(other)
        team.supersede(key, other, time.time())
    return {"memory_id": key}


def _changeable(access: Access, key: str) -> Memory:
    memory = access.brain.get(key)
    if memory is None:
        raise NotFoundError(key)
    check_change(access, memory)
    return memory
