"""TeamMemory: store what coding agents learn with where they learned it, and find it for those who may see it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from .. import checks, config
from ..brain import Brain
from ..earlier_texts import add_earlier_text, drop_earlier_texts
from ..errors import InputError, NotFoundError
from ..filters import Filter
from ..memory_builder import build_memory
from ..models import Hits, Memory
from ..stores.base import Edit, Edited
from . import known_repositories
from .bounds import check_bounds
from .identity import Repository
from .notes import (
    CURRENT,
    FOREIGN,
    ID,
    KINDS,
    LONGEST_TEXT,
    MOST_SOURCES,
    SCOPES,
    SUPERSEDED,
    Experience,
    Note,
    audience,
)
from .relevance import relevances
from .similarity import NoteFeatures, says_the_same
from .staleness import staleness
from .validation import repaired_contents, sound
from .versions import KEY as VERSION
from .versions import audience_detail, removal_of, version_of

_MOMENT = ("author", "agent", "session", "when")  # what makes two sources the same
_CLOSEST = 5  # memories that a new one is compared with
_BATCH = 1000  # memories that are read at once to look for a file
_RERANKED = 30  # hits of a question whose relevance is looked at
_OUT_OF_DATE = 0.5  # what is left of the relevance of a memory whose files are gone or changed a lot


class TeamMemory:
    """The team's memory as one author sees it.

    team = TeamMemory(Brain(), author="ann@acme.io")
    team.remember(Note("Use pyarrow.dataset for files over 1 GB", "decision", author="ann@acme.io").at(repository))
    team.recall("reading a large parquet file", repository=repository)
    """

    def __init__(
        self,
        brain: Brain,
        *,
        author: str,
        origin: str = "local",
        workspace: str | None = None,
        aliases: Sequence[str] = (),
        token: str | None = None,
    ) -> None:
        """`origin` is what the audit log says of where a call came from, and `token` with whose; `workspace` is where
        new memories go; `aliases` are other names of the author, such as the one that a server knows."""
        self.brain = brain
        self.author = checks.name("author", author)
        self.origin = origin
        self._source = {"origin": origin} | ({"token": token} if token else {})
        self._workspace = workspace
        self._names = (self.author, *aliases)

    def remember(self, note: Note) -> Memory:
        """Keep a note. One that is known already is counted, and says where it came from this time too."""
        when = time.time() if note.when is None else note.when
        fresh = self._build_memory(note, when)
        while True:
            known = self.brain.get(note.id) or self._alike(note)
            if known is None and note.supersedes is not None:
                self.supersede(note.supersedes, note.id, when)
            if known is None:
                removed = removal_of(self.brain, note.id)
                fresh.contents = {**fresh.contents, VERSION: 1 if removed is None else removed.version + 1}
            key = note.id if known is None else known.memory_id
            kept = self.brain.edit(key, partial(self._learn, note, fresh, key))
            if kept is not None:
                return kept  # else the one that says the same was forgotten just now

    def _build_memory(self, note: Note, when: float) -> Memory:
        """The memory that a note becomes, as the privacy policy lets it in; it may say whose it is."""
        body = note.contents(when) | ({known_repositories.KEY: self._workspace} if self._workspace else {})
        check_bounds({"text": note.text, "when": when, "place": note.audience, "contents": body}, 0)
        memory = build_memory(
            text=note.text,
            id=note.id,
            agent=note.agent,
            type=note.kind,
            session=note.session,
            actor=note.author,
            place=note.audience,
            importance=note.importance,
            when=when,
            tags={"state": note.state, "scope": note.effective_scope},
            metadata=body,
        )
        return cleaned_for(self.brain, memory, [note.author])

    def _alike(self, note: Note) -> Memory | None:
        """A memory that says the same in almost the same words."""
        if note.key or note.supersedes:
            return None
        where = Filter(type=(note.kind,), place=(note.audience,), tags={"state": note.state})
        features = NoteFeatures.of(note.text)
        for hit in self._search(note.text, _CLOSEST, where, mode="lexical"):
            if says_the_same(features, NoteFeatures.of(hit.memory.text)):
                return hit.memory
        return None

    def _learn(self, note: Note, fresh: Memory, key: str, known: Memory | None) -> Edited | None:
        """What learning a note makes of the memory with its id, or of one that says the same."""
        detail = {"agent": note.agent, "session": note.session}
        if known is None:
            new = {**detail, "kind": note.kind, "scope": note.effective_scope}
            return self._record_edit(fresh.copied(), "remember", **new) if key == note.id else None
        body = repaired_contents(known.contents)
        source = fresh.contents["sources"][0]
        sources = body.get("sources", [])
        if any(all(source.get(name) == before.get(name) for name in _MOMENT) for before in sources):
            return None  # stored twice, perhaps at another commit, because the first attempt failed halfway
        body["sources"] = [*sources, source][-MOST_SOURCES:]
        body["count"] = body.get("count", 1) + 1
        if files := sorted({*body.get("files", ()), *fresh.contents.get("files", ())}):
            body["files"] = files
        if note.state == CURRENT:  # it holds again
            body = {name: value for name, value in body.items() if name not in ("valid_until", "superseded_by")}
        known.contents = body
        known.tags = {**known.tags, "state": note.state}
        return self._record_edit(_next_version(known), "learn again", **detail)

    def supersede(self, memory_id: str, successor: str, when: float) -> None:
        """Mark a memory as replaced by another from a time on."""

        def apply(old: Memory | None) -> Edited:
            if old is None:
                raise NotFoundError(memory_id)
            old.contents = {**repaired_contents(old.contents), "valid_until": when, "superseded_by": successor}
            old.tags = {**old.tags, "state": SUPERSEDED}
            return self._record_edit(_next_version(old), "supersede", by=successor)

        self.brain.edit(memory_id, apply)

    def _record_edit(self, memory: Memory, action: str, **detail: Any) -> Edited:
        entry = {key: value for key, value in detail.items() if value is not None}
        kept = {VERSION: version_of(memory.contents), **audience_detail(memory.place)}
        return Edited(memory, self.author, action, {**self._source, **entry, **kept})

    def audit(self, action: str, memories: Sequence[str], **detail: Any) -> None:
        """Record who did what with which memories, and from where; never their contents."""
        if memories:
            known = {key: value for key, value in detail.items() if value is not None}
            self.brain.store.record(self.author, action, list(memories), **self._source, **known)

    def visible(self, repository: Repository | str | None) -> list[str]:
        """Return the audiences that this author belongs to in a repository."""
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
        failure: bool = False,
    ) -> list[Experience]:
        """Return what the team knows about a question, most relevant first, at or above the relevance `bar`.

        `as_of` returns what held at that time; `everywhere` searches all repositories; `failure` says that the question
        is the output of a command."""
        hits = self.search(
            question,
            repository=repository,
            k=max(_RERANKED, k if as_of is None else 4 * k),
            kinds=kinds,
            ended=as_of is not None,
            everywhere=everywhere,
        )
        scores = {hit.memory.memory_id: hit.score for hit in hits}
        likely = dict(zip(scores, relevances(question, hits, failure=failure), strict=True))
        found = [
            Experience(memory, scores[memory.memory_id], likely[memory.memory_id], None, hits.recall_id)
            for memory in sound(hit.memory for hit in hits)
            if as_of is None or held(memory, as_of)
        ]
        if isinstance(repository, Repository):
            found = [self.check_stale(experience, repository) for experience in found]
        found.sort(key=lambda experience: -experience.relevance)
        return [experience for experience in found if experience.relevance >= bar][:k]

    def search(
        self,
        question: str,
        *,
        repository: Repository | str | None = None,
        k: int = _RERANKED,
        kinds: Sequence[str] = KINDS,
        ended: bool = False,
        everywhere: bool = False,
    ) -> Hits:
        """Return the explained hits that `recall` rates; with `ended`, also memories that no longer hold."""
        where = Filter(
            type=tuple(kinds),
            place=None if everywhere else tuple(self.visible(repository)),
            tags={} if ended else {"state": CURRENT},
        )
        return self._search(question, k, where, explain=True)

    def _search(self, text: str, k: int, where: Filter, **how: Any) -> Hits:
        """Search for a text that is not a query: quotes in prompts, outputs and notes are not operators."""
        settings = self.brain.settings
        return self.brain.recall(text, k, where, settings=settings, touch=False, **how)

    def check_stale(self, experience: Experience, repository: Repository) -> Experience:
        """Check whether an experience may be out of date, and lower its relevance if so."""
        prints = experience.memory.contents.get("prints")
        if prints and experience.repository == repository.id and experience.commit != repository.commit:
            experience.stale = staleness(repository.root, prints)
        if experience.stale:
            experience.relevance *= _OUT_OF_DATE
        return experience

    def get(self, memory_id: str) -> Experience | None:
        """Return a memory; None if it is missing or damaged."""
        memory = self.brain.get(memory_id)
        return next((Experience(whole) for whole in sound([memory])), None) if memory is not None else None

    def reword(self, memory_id: str, text: str) -> Memory:
        """Change the wording of a memory. To change its meaning, supersede it with a new note."""
        words = checks.text("text", text, maximum=LONGEST_TEXT)
        policy = self.brain.privacy
        words = words if policy is None else policy.clean(words)

        def apply(known: Memory | None) -> Edited:
            if known is None:
                raise NotFoundError(memory_id)
            if words != known.text:
                known.contents = add_earlier_text(known.contents, known.text, time.time())
            known.text = words
            known.contents = {**repaired_contents(known.contents), "text": words}
            made = _next_version(known)
            made.contents["reworded"] = version_of(made.contents)
            return self._record_edit(made, "reword")

        return self._edit(memory_id, apply)

    def announce(self, memory_id: str, *, words: bool, audience: bool) -> Memory:
        """Make the present words, the present audience or both of a memory count before what other members have."""

        def apply(known: Memory | None) -> Edited:
            if known is None:
                raise NotFoundError(memory_id)
            made = _next_version(known)
            changed = [name for name, holds in (("reworded", words), ("shared", audience)) if holds]
            made.contents |= dict.fromkeys(changed, version_of(made.contents))
            return self._record_edit(made, "share" if audience else "reword")

        return self._edit(memory_id, apply)

    def explain(self, memory_id: str, reason: str, **detail: Any) -> Memory:
        """Add the reason of a failure to the memory of its fix, which has none yet."""

        def apply(known: Memory | None) -> Edited:
            if known is None:
                raise NotFoundError(memory_id)
            if "reason" not in known.contents:
                known.text = f"{known.text}\nWhy: {reason}"
                known.contents = {**repaired_contents(known.contents), "text": known.text, "reason": reason}
                _next_version(known).contents["reworded"] = version_of(known.contents)
            return self._record_edit(known, "reword", **detail)

        return self._edit(memory_id, apply)

    def _edit(self, memory_id: str, edit: Edit) -> Memory:
        kept = self.brain.edit(memory_id, edit)
        assert kept is not None  # what such an edit is given, it gives back
        return kept

    def forget(self, memory_id: str) -> bool:
        """Remove a memory permanently and log it."""
        with config.acting(self.author, self._source.get("token", "")):
            return bool(self.brain.forget(memory_id))

    def recent(
        self,
        *,
        repository: Repository | str | None = None,
        kinds: Sequence[str] = KINDS,
        limit: int = 20,
        offset: int = 0,
    ) -> list[Experience]:
        """Return the newest memories that hold now."""
        where = Filter(type=tuple(kinds), place=tuple(self.visible(repository)), tags={"state": CURRENT})
        return self.page(where, limit, offset)

    def page(self, where: Filter, limit: int, offset: int = 0) -> list[Experience]:
        """Return memories that match a filter, newest first, without damaged ones."""
        found: list[Experience] = []
        read, wanted = 0, offset + limit
        while len(found) < wanted:
            missing = wanted - len(found)
            batch = self.brain.memories(where, limit=missing, offset=read)
            found += [Experience(memory) for memory in sound(batch)]
            if len(batch) < missing:
                break
            read += missing
        return found[offset:]

    def file_history(
        self, path: str, *, repository: Repository | str | None = None, limit: int = 20
    ) -> list[Experience]:
        """Return what holds now about a file, newest first. If no memory has exactly this path, return those whose
        paths contain it."""
        where = Filter(place=tuple(self.visible(repository)), tags={"state": CURRENT})
        exact = self.page(replace(where, attributes={"files": path}), limit)
        return exact or self._with_file(path, where, limit)

    def _with_file(self, part: str, where: Filter, limit: int) -> list[Experience]:
        found: list[Experience] = []
        offset = 0
        while batch := self.brain.memories(where, limit=_BATCH, offset=offset):
            found += [
                experience
                for experience in map(Experience, sound(batch))
                if any(part in path for path in experience.files)
            ]
            offset += len(batch)
            if len(found) >= limit or len(batch) < _BATCH:
                break
        return found[:limit]

    def who_knows(
        self, topic: str, *, repository: Repository | str | None = None, k: int = 5, bar: float = 0.0
    ) -> list[dict[str, Any]]:
        """Return the people whose agents learned most about a topic, counting hits at or above the relevance `bar`."""
        weight: dict[str, float] = {}
        about: dict[str, list[str]] = {}
        for experience in self.recall(topic, repository=repository, k=30, bar=bar):
            for source in experience.memory.contents.get("sources", ()):
                who = experience.person(source)
                weight[who] = weight.get(who, 0.0) + experience.relevance
                about.setdefault(who, []).append(experience.id)
        return [
            {"author": who, "weight": round(total, 3), "memories": list(dict.fromkeys(about[who]))[:5]}
            for who, total in sorted(weight.items(), key=lambda pair: -pair[1])[:k]
        ]

    def share(self, memory_id: str, scope: str) -> Memory:
        """Set who sees a memory: "repository", "organisation", or only its author ("personal")."""
        checks.one_of("scope", scope, SCOPES)

        def apply(known: Memory | None) -> Edited:
            if known is None:
                raise NotFoundError(memory_id)
            if known.type not in KINDS or not (memory_id.startswith(ID) or FOREIGN in known.tags):
                raise InputError(
                    f"{memory_id!r} is a plain memory, which is never sent; `rmem remember --team` writes a note",
                    field="memory_id",
                )
            author, repository = known.actor or "", known.contents.get("repository")
            if scope == "personal" and author and author not in self._names:
                raise InputError(f"only {author}, who learned it, can keep {memory_id!r} to themselves", field="scope")
            if scope == "repository" and repository is None:
                raise InputError(
                    f"{memory_id!r} was learned outside any repository; share it with the organisation", field="scope"
                )
            known.place = audience(scope, repository, self.author)
            known.tags = {**known.tags, "scope": scope}
            known.contents = {
                **drop_earlier_texts(repaired_contents(known.contents)),
                "scope": scope,
                "shared_at": time.time(),
            }
            made = _next_version(known)
            made.contents["shared"] = version_of(made.contents)
            return self._record_edit(made, "share", scope=scope)

        return self._edit(memory_id, apply)


def cleaned_for(brain: Brain, memory: Memory, authors: Iterable[str]) -> Memory:
    """Apply a brain's privacy policy to a memory, but keep the names of its authors."""
    policy = brain.privacy
    return memory if policy is None else replace(policy, allow=(*policy.allow, *authors)).apply(memory)


def _next_version(memory: Memory) -> Memory:
    """Raise the version of a memory and return it."""
    memory.contents = {**memory.contents, VERSION: version_of(memory.contents) + 1}
    return memory


def held(memory: Memory, when: float) -> bool:
    """Return whether a memory was known at a time and not yet superseded."""
    start, end = (memory.contents.get(name) for name in ("valid_from", "valid_until"))
    # A memory that is no team's may say "valid_until: soon" and mean something else.
    known = float(start) if isinstance(start, int | float) else memory.timestamp
    return known <= when and not (isinstance(end, int | float) and end <= when)
