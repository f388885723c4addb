"""The bounds of what a member may push to a server: everybody who has the repository gets it. Refused at the door, with
the field that is beyond. docs/team.md lists them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from typing import Any

from .. import checks
from ..errors import InputError
from .notes import ID, LONGEST_TEXT

_NOTE_ID = re.compile(rf"{ID}[0-9a-f]{{24}}")
_LARGEST_CONTENTS = 262_144  # characters as JSON
_CLOCKS_APART = 86_400.0  # seconds that a member's clock may be ahead of the server's
_VERSIONS_AHEAD = 1_000_000  # changes without a connection; a higher number would leave none for its author
_NAMES = ("repository", "branch", "commit", "supersedes", "superseded_by", "workspace")
_TIMES = ("valid_from", "valid_until", "shared_at")
_VERSIONS = ("version", "shared", "reworded")


def check_id(memory_id: str) -> None:
    """Check the id of a memory that the server does not have yet."""
    if not _NOTE_ID.fullmatch(memory_id):
        raise checks.refuse("id", f"the id of a team's memory ({ID} and 24 hexadecimal digits)", memory_id)


def check_bounds(sent: Mapping[str, Any], known_version: int) -> None:
    """Check a document that `check_document` accepted. `known_version` is the version on the server, 0 without one."""
    contents = sent["contents"]
    latest = time.time() + _CLOCKS_APART
    checks.text("text", sent["text"], maximum=LONGEST_TEXT)
    _check_time("when", sent["when"], latest)
    for name in _NAMES:
        if name in contents:
            checks.name(f"contents.{name}", contents[name])
    for name in _TIMES:
        if name in contents:
            _check_time(f"contents.{name}", contents[name], latest)
    for at, source in enumerate(contents.get("sources", ())):
        if "when" in source:
            _check_time(f"contents.sources[{at}].when", source["when"], latest)
    check_version("contents.count", contents.get("count", 1), 0)
    for name in _VERSIONS:
        check_version(f"contents.{name}", contents.get(name, 1), known_version)
    size = len(json.dumps(contents, ensure_ascii=False))
    if size > _LARGEST_CONTENTS:
        raise InputError(
            f"contents must be at most {_LARGEST_CONTENTS:,} characters as JSON, got {size:,}", field="contents"
        )
    _check_place(sent["place"], contents)


def check_version(field: str, version: int, known_version: int) -> None:
    checks.whole(field, version, low=1, high=known_version + _VERSIONS_AHEAD)


def _check_time(field: str, when: float, latest: float) -> None:
    checks.number(field, when, low=0)
    if when > latest:
        ahead = (when - latest + _CLOCKS_APART) / 86_400.0
        raise InputError(
            f"{field} must not be more than a day after the server's time, got {ahead:,.1f} days after it; check the "
            "clock of the machine that it comes from",
            field=field,
        )


def _check_place(place: str, contents: Mapping[str, Any]) -> None:
    """Refuse a memory whose contents name another audience than its place."""
    wanted = "organisation" if place == "organisation" else "repository"
    if contents.get("scope", wanted) != wanted:
        raise InputError(f"contents.scope must be {wanted!r} for the place {place!r}", field="contents.scope")
    repository = place.removeprefix("repo:")
    if wanted == "repository" and contents.get("repository", repository) != repository:
        raise InputError(f"contents.repository must be that of the place {place!r}", field="contents.repository")
