"""TeamMemory: what coding agents learn, kept with where it was learned, found again by those who may see it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .. import checks, config
from ..brain import Brain
from ..errors import InputError, NotFoundError
from ..filters import Filter
from ..models import Hit, Memory
from . import routes
from .identity import Repository
from .likeness import Saying, says_the_same
from .notes import CURRENT, KINDS, SUPERSEDED, Experience, Note, audience
from .relevance import relevance
from .staleness import staleness

_SOURCES = 50  # of a memory that are kept; its count goes on
_MOMENT = ("author", "agent", "session", "when")  # what makes two sources the same
_CLOSEST = 5  # memories that a new one is compared with
# What being out of date costs, in deviations and as a share. Two memories alone are two deviations apart.
_STALE_SCORE, _STALE_RELEVANCE = 2.5, 0.7


class TeamMemory:
    """The team's memory as one author sees it.

    team = TeamMemory(Brain(), author="ann@acme.io")
    team.remember(Note("Use pyarrow.dataset for files over 1 GB", "decision", author="ann@acme.io").at(repository))
    team.recall("reading a large parquet file", repository=repository)
    """

    def __init__(self, brain: Brain, *, author: str, origin: str = "local", workspace: str | None = None) -> None:
        """`origin` is what the audit log says of where a call came from; `workspace` is where new memories go."""
        self.brain = brain
        self.author = checks.name("author", author)
        self.origin = origin
        self._workspace = workspace
        policy = brain.privacy
        if policy is not None and author not in policy.allow:
            brain.privacy = replace(policy, allow=(*policy.allow, author))  # a memory says whose it is

    def remember(self, note: Note) -> Memory:
        """Keep a note. One that is known already is counted, and says where it came from this time too."""
        when = time.time() if note.when is None else note.when
        known = self.brain.get(note.id) or self._alike(note)
        if known is not None:
            return self._again(known, note, when)
        if note.supersedes is not None:
            self._end(note.supersedes, note.id, when)
        # The log comes first: it may tell of a write that a crash prevented, but no write goes untold.
        self.audit("remember", [note.id], agent=note.agent, session=note.session, kind=note.kind, scope=note.reach)
        return self.brain.remember(
            note.text,
            id=note.id,
            agent=note.agent,
            type=note.kind,
            session=note.session,
            actor=note.author,
            place=note.audience,
            importance=note.importance,
            when=when,
            tags={"state": note.state, "scope": note.reach},
            metadata=note.contents(when) | ({routes.KEY: self._workspace} if self._workspace else {}),
        )

    def _alike(self, note: Note) -> Memory | None:
        """A memory that says the same in almost the same words."""
        if note.key or note.supersedes:
            return None
        where = Filter(type=(note.kind,), place=(note.audience,), tags={"state": note.state})
        saying = Saying.of(note.text)
        for hit in self.brain.recall(note.text, _CLOSEST, where, mode="lexical", touch=False):
            if says_the_same(saying, Saying.of(hit.memory.text)):
                return hit.memory
        return None

    def _again(self, known: Memory, note: Note, when: float) -> Memory:
        source = note.source(when)
        body = {key: value for key, value in known.contents.items() if key != "text"}
        sources = list(body.get("sources", ()))
        if any(all(source.get(name) == told.get(name) for name in _MOMENT) for told in sources):
            return known  # told twice, perhaps at another commit, because the first attempt failed halfway
        body["sources"] = [*sources, source][-_SOURCES:]
        body["count"] = int(body.get("count", 1)) + 1
        body["files"] = sorted({*body.get("files", ()), *note.files})
        self.audit("learn again", [known.memory_id], agent=note.agent, session=note.session)
        return self.brain.update(known.memory_id, metadata=body, tags={**known.tags, "state": note.state})

    def _end(self, memory_id: str, successor: str, when: float) -> None:
        old = self.brain.get(memory_id)
        if old is None:
            raise NotFoundError(memory_id)
        body = {key: value for key, value in old.contents.items() if key != "text"}
        body |= {"valid_until": when, "superseded_by": successor}
        self.audit("supersede", [memory_id], by=successor)
        self.brain.update(memory_id, metadata=body, tags={**old.tags, "state": SUPERSEDED})

    def audit(self, action: str, memories: Sequence[str], **detail: Any) -> None:
        """Note who did what with which memories, and from where; never what they say."""
        if memories:
            known = {key: value for key, value in detail.items() if value is not None}
            self.brain.store.record(self.author, action, list(memories), origin=self.origin, **known)

    def visible(self, repository: Repository | str | None) -> list[str]:
        """The audiences that this author belongs to, in a repository."""
        name = repository.id if isinstance(repository, Repository) else repository
        seen = ["organisation", audience("personal", None, self.author)]
        return seen if name is None else [audience("repository", name, self.author), *seen]

    def recall(
        self,
        question: str,
        *,
        repository: Repository | str | None = None,
        k: int = 5,
        kinds: Sequence[str] = KINDS,
        bar: float = 0.0,
        as_of: float | None = None,
        everywhere: bool = False,
    ) -> list[Experience]:
        """What the team knows about a question, best first, only what reaches the `bar` of relevance.

        `as_of` asks for what held at a time; `everywhere` looks into all repositories.
        """
        where = Filter(
            type=tuple(kinds),
            place=None if everywhere else tuple(self.visible(repository)),
            tags={"state": CURRENT} if as_of is None else {},
        )
        hits = self.brain.recall(question, k if as_of is None else 4 * k, where, explain=True, touch=False)
        found = [
            Experience(hit.memory, hit.score, _relevance(hit), recall_id=hits.recall_id)
            for hit in hits
            if as_of is None or held(hit.memory, as_of)
        ]
        if isinstance(repository, Repository):
            found = sorted((self.checked(one, repository) for one in found), key=lambda one: -one.score)
        return [one for one in found if one.relevance >= bar][:k]

    def checked(self, one: Experience, repository: Repository) -> Experience:
        """The experience with whether it may be out of date, in which case it counts less."""
        prints = one.memory.contents.get("prints")
        if prints and one.repository == repository.id and one.commit != repository.commit:
            one.stale = staleness(repository.root, prints)
        if one.stale:
            one.score -= _STALE_SCORE
            one.relevance *= _STALE_RELEVANCE
        return one

    def get(self, memory_id: str) -> Experience | None:
        memory = self.brain.get(memory_id)
        return None if memory is None else Experience(memory)

    def forget(self, memory_id: str) -> bool:
        """Remove a memory for good; the log says so."""
        with config.acting(self.author):
            return bool(self.brain.forget(memory_id))

    def recent(
        self,
        *,
        repository: Repository | str | None = None,
        kinds: Sequence[str] = KINDS,
        limit: int = 20,
        offset: int = 0,
    ) -> list[Experience]:
        """The newest of what holds now."""
        where = Filter(type=tuple(kinds), place=tuple(self.visible(repository)), tags={"state": CURRENT})
        return [Experience(memory) for memory in self.brain.memories(where, limit=limit, offset=offset)]

    def file_history(
        self, path: str, *, repository: Repository | str | None = None, limit: int = 20
    ) -> list[Experience]:
        """What is known about a file, the newest first."""
        where = Filter(place=tuple(self.visible(repository)), attributes={"files": path})
        return [Experience(memory) for memory in self.brain.memories(where, limit=limit)]

    def who_knows(self, topic: str, *, repository: Repository | str | None = None, k: int = 5) -> list[dict[str, Any]]:
        """The people whose agents learned most about a topic."""
        weight: dict[str, float] = {}
        about: dict[str, list[str]] = {}
        for one in self.recall(topic, repository=repository, k=30):
            for source in one.memory.contents.get("sources", ()):
                who = source.get("author", one.author)
                weight[who] = weight.get(who, 0.0) + one.relevance
                about.setdefault(who, []).append(one.id)
        return [
            {"author": who, "weight": round(total, 3), "memories": list(dict.fromkeys(about[who]))[:5]}
            for who, total in sorted(weight.items(), key=lambda pair: -pair[1])[:k]
        ]

    def share(self, memory_id: str, scope: str) -> Memory:
        """Let others see a memory ("repository", "organisation"), or nobody else ("personal")."""
        known = self.brain.get(memory_id)
        if known is None:
            raise NotFoundError(memory_id)
        one = Experience(known)
        checks.one_of("scope", scope, ("personal", "repository", "organisation"))
        if scope == "personal" and one.author not in ("", self.author):
            raise InputError(f"only {one.author}, who learned it, can keep {memory_id!r} to themselves", field="scope")
        place = audience(scope, one.repository, one.author or self.author)
        self.audit("share", [memory_id], scope=scope)
        body = {key: value for key, value in known.contents.items() if key != "text"}
        body |= {"scope": scope, "shared_at": time.time()}
        return self.brain.update(memory_id, place=place, metadata=body, tags={**known.tags, "scope": scope})


def _relevance(hit: Hit) -> float:
    assert hit.explanation is not None  # it was asked for
    return relevance(hit.explanation)


def held(memory: Memory, when: float) -> bool:
    """Whether what a memory says was known at a time and had not been superseded yet."""
    start, end = (memory.contents.get(name) for name in ("valid_from", "valid_until"))
    # A memory that is no team's may say "valid_until: soon" and mean something else.
    known = float(start) if isinstance(start, int | float) else memory.timestamp
    return known <= when and not (isinstance(end, int | float) and end <= when)
