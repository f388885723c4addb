"""A Note is what a team stores, an Experience what it gets back. Both are memories; this module maps their fields."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from .. import checks
from ..errors import InputError
from ..models import Memory
from .identity import Repository
from .staleness import prints_of

KINDS = ("codebase", "preference", "task", "error_fix", "tool_output", "decision")
SCOPES = ("personal", "repository", "organisation")
CURRENT, SUPERSEDED, WAITING = "current", "superseded", "waiting"
ID = "team-"
"""How the id of a note begins."""
LONGEST_TEXT = 65_536
"""Characters of a note."""
MOST_SOURCES = 50
"""Sources of a memory that are kept; its count goes on."""
FOREIGN = "from"
"""The tag of a memory that is another member's; its value is the server's address."""
CLAIMED = "for"
"""The field of a source whose author, says the member who pushed it, is somebody else: of a commit, for one."""
_REPOSITORY = "repo:"
_SPACE = re.compile(r"\s+")


def audience(scope: str, repository: str | None, author: str) -> str:
    """Return who sees a memory, as its `place`: "repo:github.com/acme/etl", "organisation" or
    "personal:ann@acme.io"."""
    if scope == "organisation":
        return "organisation"
    return f"personal:{author}" if scope == "personal" or repository is None else f"{_REPOSITORY}{repository}"


def is_shared(place: str | None) -> bool:
    """Return whether others see a memory with this place."""
    return place is not None and (place == "organisation" or (place.startswith(_REPOSITORY) and place != _REPOSITORY))


@dataclass(slots=True)
class Note:
    """Something worth keeping. `error`, `fix` and `command` belong to the kind "error_fix"; `details` is anything
    else. A note without a repository is personal, unless it is for the whole organisation."""

    text: str
    kind: str
    author: str
    agent: str = "rmem"
    scope: str = "repository"
    repository: str | None = None
    branch: str | None = None
    commit: str | None = None
    files: Sequence[str] = ()
    session: str | None = None
    when: float | None = None
    importance: float = 0.5
    error: str = ""
    fix: str = ""
    command: str = ""
    supersedes: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    state: str = CURRENT
    key: str = ""
    """What makes it the same note as another, where that is not its text: an output without its times and numbers."""

    def __post_init__(self) -> None:
        checks.text("text", self.text, maximum=LONGEST_TEXT)
        checks.one_of("kind", self.kind, KINDS)
        checks.one_of("scope", self.scope, SCOPES)

    @property
    def effective_scope(self) -> str:
        """Return the effective scope: personal outside a repository."""
        return "personal" if self.scope == "repository" and self.repository is None else self.scope

    @property
    def audience(self) -> str:
        return audience(self.scope, self.repository, self.author)

    @property
    def id(self) -> str:
        """Return an id that is equal for the same note on every machine, so that it is stored once."""
        words = _SPACE.sub(" ", self.key or self.text).strip().casefold()
        identity = "\0".join((self.kind, self.audience, words))
        return ID + blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()

    def at(self, repository: Repository | None) -> Note:
        """Return the note with the repository in which it was made."""
        if repository is not None:
            self.repository, self.branch, self.commit = repository.id, repository.branch, repository.commit
            self.files = [repository.relative(path) for path in self.files]
            prints = prints_of(repository.root, self.files)
            self.details = {**self.details, "prints": prints} if prints else self.details
        return self

    def source(self, when: float) -> dict[str, Any]:
        """Return an entry for the sources of a memory: who, which agent and session, when."""
        fields = {
            "author": self.author,
            "agent": self.agent,
            "session": self.session,
            "branch": self.branch,
            "commit": self.commit,
            "when": when,
        }
        return {key: value for key, value in fields.items() if value is not None}

    def contents(self, when: float) -> dict[str, Any]:
        fields = {
            "repository": self.repository,
            "branch": self.branch,
            "commit": self.commit,
            "files": list(self.files),
            "error": self.error,
            "fix": self.fix,
            "command": self.command,
            "scope": self.effective_scope,
            "count": 1,
            "sources": [self.source(when)],
            "valid_from": when,
            "supersedes": self.supersedes,
        }
        clash = set(fields) & set(self.details)
        if clash:
            raise InputError(
                f"details must not hold {sorted(clash)[0]!r}, which has a meaning of its own", field="details"
            )
        return {**{key: value for key, value in fields.items() if value not in (None, "", [])}, **self.details}


@dataclass(slots=True)
class Experience:
    """A memory of the team with what a reader needs: how relevant it is (0…1), how well it ranks, and whether it may
    be out of date."""

    memory: Memory
    score: float = 0.0
    relevance: float = 0.0
    stale: str | None = None
    """Why it may no longer hold: "src/pool.py is gone"."""
    recall_id: str | None = None

    @property
    def id(self) -> str:
        return self.memory.memory_id

    @property
    def text(self) -> str:
        return self.memory.text

    @property
    def kind(self) -> str:
        return self.memory.type

    @property
    def author(self) -> str:
        """Return whose memory it is: who may change it."""
        return self.memory.actor or ""

    @property
    def said_by(self) -> str:
        """Return who said or did it: of a commit its author, whoever imported it."""
        return next((self.person(source) for source in self.memory.contents.get("sources", ())), self.author)

    def person(self, source: Mapping[str, Any]) -> str:
        """Return who said or did what a source of this memory reports."""
        claimed = source.get(CLAIMED) if self.is_imported else None
        return str(claimed or source.get("author") or self.author)

    @property
    def is_foreign(self) -> bool:
        """Return whether it is another member's, received from a server."""
        return FOREIGN in self.memory.tags

    @property
    def is_imported(self) -> bool:
        """Return whether it comes from git history; what people and their agents said has priority."""
        return self.memory.agent_id == "git"

    @property
    def files(self) -> list[str]:
        return list(self.memory.contents.get("files", ()))

    @property
    def repository(self) -> str | None:
        return self.memory.contents.get("repository")

    @property
    def commit(self) -> str | None:
        return self.memory.contents.get("commit")

    @property
    def scope(self) -> str:
        return str(self.memory.contents.get("scope", "repository"))

    @property
    def count(self) -> int:
        """Return how often it was learned."""
        return int(self.memory.contents.get("count", 1))

    def to_dict(self) -> dict[str, Any]:
        body = {key: value for key, value in self.memory.contents.items() if key not in ("text", "prints")}
        return {
            "id": self.id,
            "kind": self.kind,
            "text": self.text,
            "author": self.author,
            "agent": self.memory.agent_id,
            "session": self.memory.session,
            "when": self.memory.timestamp,
            "score": self.score,
            "relevance": self.relevance,
            "stale": self.stale,
            **body,
        }
