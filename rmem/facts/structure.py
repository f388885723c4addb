"""Facts in the fields of a memory: what records of agents, notes of a team and commits hold beside words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..models import Memory
from ..patterns import lazy_pattern
from .model import SURE, FoundFact

_MAX_ITEMS = 8  # files of one commit, or changes of one action
_MAX_VALUE = 200
_PARTNER_FIELDS = ("target", "other_agent", "target_agent", "with", "partner", "recipient", "to")
_STATE_FIELDS = ("status", "goal", "task", "role", "mood", "job", "current_task", "inventory")
_MANY_COMMITS = lazy_pattern(r"Of the \d+ commits that changed ")
"""The beginning of a note that `rmem import git` counted from many commits. The commit in its fields is the last one
that was counted, not one that changed these files."""


def facts_in_fields(memory: Memory) -> Iterator[FoundFact]:
    """Yield facts from the contents, place and type of a record of an agent, a team note or a commit."""
    contents = memory.contents
    if memory.type in ("state", "action", "interaction"):
        yield from _facts_of_agent(memory, contents)
    elif "repository" in contents or "commit" in contents or "files" in contents:
        yield from _facts_of_team(memory, contents)


def _facts_of_agent(memory: Memory, contents: Mapping[str, Any]) -> Iterator[FoundFact]:
    agent = memory.agent_id
    if memory.place is not None:
        yield _fact(agent, "located in", memory.place, single=True)
    if memory.type == "state":
        for name in _STATE_FIELDS:
            value = contents.get(name)
            if isinstance(value, str) and _is_short(value):
                yield _fact(agent, name.replace("_", " "), value, single=True, is_value=True)
        return
    if memory.type == "interaction":
        other = next((contents[name] for name in _PARTNER_FIELDS if isinstance(contents.get(name), str)), None)
        if other and _is_short(other):
            kind = contents.get("interaction_type") or contents.get("type")
            yield _fact(agent, str(kind) if isinstance(kind, str) and _is_short(kind) else "interacted with", other)
        return
    action = contents.get("action_type") or contents.get("action") or contents.get("type")
    if not isinstance(action, str) or not _is_short(action):
        return
    yield _fact(agent, "did", action)
    for name, relation in (("tool", "uses"), ("target", "acted on"), ("outcome", "result"), ("error", "failed with")):
        value = contents.get(name)
        if isinstance(value, str) and _is_short(value):
            of_action = name in ("outcome", "error")
            yield _fact(action if of_action else agent, relation, value, is_value=of_action)
    changes = contents.get("state_difference")
    if isinstance(changes, Mapping):
        for path, change in list(changes.items())[:_MAX_ITEMS]:
            after = change[-1] if isinstance(change, list | tuple) and change else change
            if isinstance(after, str) and _is_short(after):
                yield _fact(agent, str(path).replace("_", " "), after, single=True, is_value=True)


def _facts_of_team(memory: Memory, contents: Mapping[str, Any]) -> Iterator[FoundFact]:
    repository, commit = contents.get("repository"), contents.get("commit")
    error, fix = contents.get("error"), contents.get("fix") or contents.get("command")
    files = contents.get("files")
    paths = [one for one in files if isinstance(one, str)] if isinstance(files, Sequence) else []
    if memory.agent_id == "git" and _MANY_COMMITS.match(memory.text):
        for other in paths[1:_MAX_ITEMS]:
            yield _fact(paths[0], "changes with", other)
        return
    if isinstance(commit, str) and commit and memory.agent_id == "git":
        about = commit[:12]
        if memory.actor:
            yield _fact(about, "author", memory.actor, single=True)
        if isinstance(repository, str):
            yield _fact(about, "in repository", repository, single=True)
        for name in paths[:_MAX_ITEMS]:
            yield _fact(about, "changes", name)
        if isinstance(error, str) and error.strip():  # the title of the commit: not what fails, nor where
            yield _fact(error.strip().splitlines()[-1][:_MAX_VALUE], "fixed by", about)
        return
    if memory.actor and isinstance(repository, str) and repository:
        yield _fact(memory.actor, "works on", repository)
    if isinstance(error, str) and isinstance(fix, str) and error and fix:
        what = error.strip().splitlines()[-1][:_MAX_VALUE]
        yield _fact(what, "fixed by", fix.strip()[:_MAX_VALUE], is_value=True)
        for name in paths[:_MAX_ITEMS]:
            yield _fact(what, "occurs in", name)


def _is_short(value: str) -> bool:
    return 0 < len(value) <= _MAX_VALUE and "\n" not in value


def _fact(subject: str, relation: str, what: str, *, single: bool = False, is_value: bool = False) -> FoundFact:
    return FoundFact(subject, relation, what, is_value=is_value, confidence=SURE, single=single)
