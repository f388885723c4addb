"""Check that the contents of a memory are what the team's code expects. `check` refuses bad contents from elsewhere;
stored ones that fail are left out of answers (`sound`), listed by `rmem doctor` and repaired by `rmem doctor
--repair`."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .. import checks
from ..brain import Brain
from ..doctor import CheckResult
from ..errors import InputError
from ..filters import Filter
from ..models import Memory
from ..privacy.cleaner import PRINTS, is_prints
from ..stores.base import Edited
from .notes import ID, KINDS, SCOPES

log = logging.getLogger(__name__)
_TEXTS = ("repository", "branch", "commit", "error", "fix", "command", "supersedes", "superseded_by", "workspace")
TIMES = ("valid_from", "valid_until", "shared_at")
COUNTS = ("count", "version", "shared", "reworded")
_SOURCE_TEXTS = ("author", "for", "agent", "session", "branch", "commit")
_BATCH = 1000
_NAMED = 5  # damaged memories that a finding names
_logged: set[str] = set()


def check(contents: Mapping[str, Any], *, body: str = "contents") -> None:
    """Raise an InputError that names the field which is not what it must be."""
    for name in contents:
        _check_field(name, contents[name], body)
    if PRINTS in contents and not is_prints(contents[PRINTS]):
        raise checks.refuse(f"{body}.{PRINTS}", "hashes of lines, by file", contents[PRINTS])


def _check_field(name: str, value: Any, body: str = "contents") -> None:
    field = f"{body}.{name}"
    if name in _TEXTS and not isinstance(value, str):
        raise checks.refuse(field, "a text", value)
    if name in TIMES:
        checks.number(field, value, low=0)
    elif name in COUNTS:
        checks.whole(field, value, low=1, high=2**53)
    elif name == "scope":
        checks.one_of(field, value, SCOPES)
    elif name == "files" and not (isinstance(value, list) and all(isinstance(path, str) for path in value)):
        raise checks.refuse(field, "a list of texts", value)
    elif name == "sources":
        if not isinstance(value, list):
            raise checks.refuse(field, "a list of objects", value)
        for at, source in enumerate(value):
            _check_source(f"{field}[{at}]", source)


def _check_source(field: str, source: Any) -> None:
    if not isinstance(source, Mapping):
        raise checks.refuse(field, "an object with author, agent, session and when", source)
    for name in _SOURCE_TEXTS:
        if name in source and not isinstance(source[name], str):
            raise checks.refuse(f"{field}.{name}", "a text", source[name])
    if "when" in source:
        checks.number(f"{field}.when", source["when"], low=0)


def sound(memories: Iterable[Memory]) -> Iterator[Memory]:
    """Yield the undamaged memories; log each damaged one once. Damaged fingerprints do no harm."""
    for memory in memories:
        try:
            for name, value in memory.contents.items():
                _check_field(name, value)
        except InputError as error:
            if memory.memory_id not in _logged:
                _logged.add(memory.memory_id)
                log.warning("memory %s is left out: %s; see `rmem doctor`", memory.memory_id, error)
        else:
            yield memory


def findings(brain: Brain) -> list[CheckResult]:
    """Return damaged memories for `rmem doctor`; nothing without memories of a team."""
    damaged, number = [], 0
    for memory in _team_memories(brain):
        number += 1
        try:
            check(memory.contents)
        except InputError as error:
            damaged.append(f"{memory.memory_id}: {error}")
    if not number:
        return []
    detail = f"{len(damaged):,} of {number:,} are damaged: {'; '.join(damaged[:_NAMED])}"
    return [CheckResult("team memories", not damaged, detail if damaged else f"{number:,}, all as they should be")]


def repair(brain: Brain) -> int:
    """Remove what cannot be read from the team's memories, keeping their text; return how many were repaired."""
    mended = 0
    for memory in list(_team_memories(brain)):
        if repaired_contents(memory.contents) != memory.contents:
            mended += brain.edit(memory.memory_id, _repair) is not None
    return mended


def _repair(memory: Memory | None) -> Edited | None:
    if memory is None:
        return None
    memory.contents = repaired_contents(memory.contents)
    return Edited(memory, "doctor", "repair")


def repaired_contents(contents: Mapping[str, Any]) -> dict[str, Any]:
    """Return contents without what `check` refuses."""
    kept: dict[str, Any] = {}
    for name, value in contents.items():
        if name == PRINTS:
            value = _repaired_prints(value)
        elif name == "files" and isinstance(value, list):
            value = [path for path in value if isinstance(path, str)]
        elif name == "sources" and isinstance(value, list):
            value = [source for source in value if _is_source(source)]
        try:
            _check_field(name, value)
        except InputError:
            continue
        if name != PRINTS or value:
            kept[name] = value
    if "sources" in kept and "count" not in kept:
        kept["count"] = max(1, len(kept["sources"]))
    return kept


def _repaired_prints(value: Any) -> dict[str, list[int]]:
    """Return the intact fingerprints; masked ones cannot be compared."""
    return (
        {name: hashes for name, hashes in value.items() if is_prints({name: hashes})} if isinstance(value, dict) else {}
    )


def _is_source(source: Any) -> bool:
    try:
        _check_source("source", source)
    except InputError:
        return False
    return True


def _team_memories(brain: Brain) -> Iterator[Memory]:
    """Yield the notes of a team; other memories may have fields of the same names."""
    offset = 0
    while batch := brain.memories(Filter(type=KINDS), order="oldest", limit=_BATCH, offset=offset):
        yield from (memory for memory in batch if memory.memory_id.startswith(ID))
        offset += len(batch)
