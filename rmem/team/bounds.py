"""The bounds of a memory that others of a team get: whoever has its repository receives it. Checked by every way in
(notes, `/sync`, REST, imports); what is beyond is refused with the name of its field. docs/team.md lists the bounds."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from typing import Any

from .. import checks
from ..errors import InputError
from .notes import ID, LONGEST_TEXT, is_shared
from .validation import COUNTS, TIMES

_NOTE_ID = re.compile(rf"{ID}[0-9a-f]{{24}}")
_LARGEST_CONTENTS = 262_144  # characters as JSON
_CLOCKS_APART = 86_400.0  # seconds that a member's clock may be ahead of ours
_VERSIONS_AHEAD = 1_000_000  # changes without a connection; a higher number would leave none for its author
_NAMES = ("repository", "branch", "commit", "supersedes", "superseded_by", "workspace")


def check_id(memory_id: str) -> None:
    """Check the id of a memory that the server does not have yet."""
    if not _NOTE_ID.fullmatch(memory_id):
        raise checks.refuse("id", f"the id of a team's memory ({ID} and 24 hexadecimal digits)", memory_id)


def check_bounds(sent: Mapping[str, Any], known_version: int, *, body: str = "contents") -> None:
    """Check a document whose fields have the right types (`check_document`). `known_version` is the version that the
    store has, 0 without one; `body` is what the caller calls its contents."""
    contents = sent["contents"]
    latest = time.time() + _CLOCKS_APART
    checks.text("text", sent["text"], maximum=LONGEST_TEXT)
    _check_time("when", sent["when"], latest)
    for name in _NAMES:
        if name in contents:
            checks.name(f"{body}.{name}", contents[name])
    for name in TIMES:
        if name in contents:
            _check_time(f"{body}.{name}", contents[name], latest)
    for at, source in enumerate(contents.get("sources", ())):
        if "when" in source:
            _check_time(f"{body}.sources[{at}].when", source["when"], latest)
    for name in COUNTS:
        check_version(f"{body}.{name}", contents.get(name, 1), 0 if name == "count" else known_version)
    size = len(json.dumps(contents, ensure_ascii=False))
    if size > _LARGEST_CONTENTS:
        raise InputError(f"{body} must be at most {_LARGEST_CONTENTS:,} characters as JSON, got {size:,}", field=body)
    if is_shared(sent["place"]):
        _check_place(sent["place"], contents, body)


def check_version(field: str, version: int, known_version: int) -> None:
    checks.whole(field, version, low=1, high=known_version + _VERSIONS_AHEAD)


def _check_time(field: str, when: float, latest: float) -> None:
    checks.number(field, when, low=0)
    if when > latest:
        ahead = (when - latest + _CLOCKS_APART) / 86_400.0
        raise InputError(
            f"{field} must not be more than a day in the future, got {ahead:,.1f} days; check the clock of the machine "
            "that it comes from",
            field=field,
        )


def _check_place(place: str, contents: Mapping[str, Any], body: str) -> None:
    """Refuse a memory whose contents name another audience than its place."""
    wanted = "organisation" if place == "organisation" else "repository"
    if contents.get("scope", wanted) != wanted:
        raise InputError(f"{body}.scope must be {wanted!r} for the place {place!r}", field=f"{body}.scope")
    repository = place.removeprefix("repo:")
    if wanted == "repository" and contents.get("repository", repository) != repository:
        raise InputError(f"{body}.repository must be that of the place {place!r}", field=f"{body}.repository")
