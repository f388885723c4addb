"""Brain, the main class: remember, recall, get, update, forget.

The write path is here (build → embed → one transaction); the recall path is recall/pipeline."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, cast, overload

from . import checks, config
from .annotations import Changes, Durability, MemoryOrId, Mode, Moment, Names, NewMemory, Stats, Tier, VectorLike, Where
from .closing import Closing
from .embed import EmbedderSpec, question_vectors, word_vectors
from .errors import (
    ConfigError,
    InputError,
    NotFoundError,
)
from .feedback import QUESTIONS, Feedback, Recall, Recalls, stored_question
from .filters import Filter
from .garbage import collect_rarely
from .memory_builder import apply_changes, build_changes, build_memory, build_memory_of, current_time
from .models import Hit, Hits, Memories, Memory, Vector, id_of
from .privacy.choice import PrivacySpec, policy_of
from .recall.feedback import LearnedFeedback
from .recall.pipeline import load_hits, parse_request, search
from .recall.settings import RecallSettings
from .store_embedding import StoreEmbedding
from .stores import open_store
from .stores.base import Edit, Edited, MemoryStore, Order, Progress, RecordStore
from .stores.capabilities import FactTable
from .stores.value_records import ValueRecords, as_records, keeps_values, store_expected
from .vectors.engine import VectorEngine

if TYPE_CHECKING:
    from .crypto.encryption import Encryption
    from .graph import Graph
    from .tiers.forgetting import ForgettingPolicy
    from .vectors.base import VectorIndex

_CHUNK = 1000


class Brain(Closing):
    """A persistent memory.

        brain = Brain()                            # the default file; RMEM_HOME moves it
        brain = Brain("sqlite:///path/file.db")    # or a plain path, ":memory:", "postgresql://…", "redis://…"
        brain.remember("Fixed OOM: switched to pyarrow.dataset", agent="swe-01", type="error_fix")
        brain.recall("ETL job killed by OOM", k=5)

    Instead of an address it takes a store: a RecordStore, or any object with `add`, `get`, `search` and `forget`, which
    then gives what these four can do and refuses the rest by name.

    `embedder` is "static" (the default), "minilm", "onnx:FOLDER", "sentence-transformers:NAME", "ollama:MODEL",
    "http:MODEL@URL", any Embedder or function, or "none" for vectors that you supply. A store remembers its embedder,
    so a later Brain need not name it.
    `privacy` is a PrivacyPolicy or "default": what it finds is masked, hashed or refused before it is stored.
    `encryption` is an Encryption, or False for none; without it the master key of the environment is used, if any.
    `vectors` is an engine beside the store that looks for neighbours: "milvus://…", "qdrant://…", "faiss:///file",
    "pgvector://…" or a VectorIndex, and "none" for none again. A store remembers the address of its engine.
    Safe to use from many threads; many processes may open one file.

        brain = Brain("https://host", token="…")   # the same on a server; `workspace` is one of the server's

    There the token may come from RMEM_API_KEY and the workspace from RMEM_WORKSPACE; what a server does not support
    raises a ServerError that names it.
    """

    def __new__(cls, address: object = None, *args: Any, **options: Any) -> Self:
        if cls is Brain and isinstance(address, str) and address.startswith(("http://", "https://")):
            from .remote import RemoteBrain

            return cast("Self", super().__new__(RemoteBrain))
        return super().__new__(cls)

    def __init__(
        self,
        address: str | Path | RecordStore | MemoryStore[Any] | None = None,
        *,
        embedder: EmbedderSpec = None,
        settings: RecallSettings | Mapping[str, Any] | None = None,
        durability: Durability = "full",
        privacy: PrivacySpec = None,
        encryption: Encryption | Literal[False] | None = None,
        vectors: str | VectorIndex | None = None,
        token: str | None = None,
        workspace: str | None = None,
    ) -> None:
        if token is not None or workspace is not None:
            raise ConfigError("token and workspace go with the address of a server: Brain('https://host', token=…)")
        self.settings = RecallSettings.of(settings)
        self.privacy = policy_of(privacy)
        checks.one_of("durability", durability, ("full", "normal"))
        if keeps_values(address):
            if encryption:
                raise ConfigError("encryption must be given to the store that you pass, not to Brain")
            self.address, self.store = type(address).__name__, as_records(address)
        else:
            self.address = _address(address)
            options: dict[str, Any] = {"durability": durability, "encryption": encryption}
            self.store = open_store(self.address, word_vectors=word_vectors, **options)
        if isinstance(self.store, ValueRecords):
            if embedder not in (None, "none"):
                raise ConfigError(f"embedder cannot be given with {self.store!r}: four methods keep no vectors")
            embedder = "none"
        self._embedding = StoreEmbedding(self.store, embedder)
        self._recalls = Recalls()
        self._learned = LearnedFeedback(question_vectors)
        self._engine = VectorEngine(self.store, vectors)
        try:
            if vectors is not None:
                self._engine.attach()
            if embedder is not None:
                self._embedding.resolve()
        except BaseException:
            self.store.close()
            raise

    def vector_of(self, text: str, contents: Mapping[str, Any] | None = None) -> Vector | None:
        """Return the vector of a memory with this text and contents; None for a store without vectors."""
        return self._embedding.vector_of(text, contents or {})

    @property
    def embedder(self) -> str:
        """Return the name of the embedder whose vectors this store holds, or will hold."""
        embedder = self._embedding.resolve()
        return "none" if embedder is None else embedder.name

    # Writing

    def remember(
        self,
        text: str,
        *,
        agent: str = "default",
        type: str = "memory",
        session: str | None = None,
        actor: str | None = None,
        tags: Mapping[str, Any] | None = None,
        importance: float = 0.5,
        when: Moment | None = None,
        metadata: Mapping[str, Any] | None = None,
        step: int | None = None,
        position: Sequence[float] | None = None,
        place: str | None = None,
        vector: VectorLike | None = None,
        id: str | None = None,
        tier: Tier = "stm",
    ) -> Memory:
        """Store one memory. When this returns it is on disk and every process finds it.

        Every argument is a field of the memory: `metadata` is your own data and comes back as `memory.metadata`.
        `step` defaults to the agent's next one; a memory with the same `id` is replaced.
        """
        memory = build_memory(
            text=text,
            agent=agent,
            type=type,
            session=session,
            actor=actor,
            tags=tags,
            importance=importance,
            when=when,
            metadata=metadata,
            step=step,
            position=position,
            place=place,
            vector=vector,
            id=id,
            tier=tier,
        )
        return self.put([self.cleaned(memory)])[0]

    @collect_rarely()
    def remember_many(
        self,
        items: Iterable[NewMemory | Mapping[str, Any]],
        *,
        chunk: int = _CHUNK,
        on_progress: Progress | None = None,
    ) -> list[Memory]:
        """Store many memories, given as mappings of `remember`'s arguments; one transaction per chunk.

        A list is checked completely before anything is written; other iterables chunk by chunk.
        """
        checks.whole("chunk", chunk, low=1)
        if on_progress is not None and not callable(on_progress):
            raise checks.refuse("on_progress", "a function of two numbers", on_progress)
        if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
            raise checks.refuse("items", "a list of mappings of remember's arguments", items)
        total = len(items) if isinstance(items, Sequence) else None
        now = current_time()
        drafts: Iterable[Memory] = (self._item(at, item, now) for at, item in enumerate(items))
        if total is not None:
            drafts = list(drafts)
            if any(draft.embeddings.full_vector is not None for draft in drafts):
                self._embedding.check_given(drafts, self._embedding.resolve())
        kept: list[Memory] = []
        for batch in _chunks(drafts, chunk):
            kept += self.put(batch)
            if on_progress is not None:
                on_progress(len(kept), total)
        self.store.compact()
        return kept

    def _item(self, at: int, item: NewMemory | Mapping[str, Any], now: float) -> Memory:
        if not isinstance(item, dict) and not isinstance(item, Mapping):
            raise checks.refuse(f"item {at}", "a mapping of remember's arguments", item)
        try:
            return self.cleaned(build_memory_of(item, now))
        except InputError as error:
            raise type(error)(f"item {at}: {error}", field=error.field) from None

    def cleaned(self, memory: Memory) -> Memory:
        """Apply the privacy policy to a memory."""
        return memory if self.privacy is None else self.privacy.apply(memory)

    def keep(self, memories: Sequence[Memory]) -> list[Memory]:
        """Apply the privacy policy, store memories, and embed those without a vector."""
        return self.put(memories if self.privacy is None else [self.privacy.apply(memory) for memory in memories])

    def put(self, memories: Sequence[Memory]) -> list[Memory]:
        """Store memories without applying the privacy policy; embed those without a vector."""
        kept = self._embedding.embed_and_write(memories, lambda: self.store.put(memories))
        self._engine.on_write(len(kept))
        return kept

    def update(
        self,
        memory_id: MemoryOrId,
        *,
        only_if: Callable[[Memory], None] | None = None,
        keep_earlier: bool = True,
        **changes: Unpack[Changes],
    ) -> Memory:
        """Change fields of a memory, named as in `remember`. It keeps its id and its place in the session. `only_if` is
        called with the current memory inside the transaction; if it raises, nothing is changed. A text that is replaced
        stays in `memory.earlier`; `keep_earlier=False` erases all earlier texts."""
        drafted = self.cleaned(build_changes(changes))

        def edit(memory: Memory) -> Memory:
            if only_if is not None:
                only_if(memory)
            apply_changes(memory, changes, drafted, keep_earlier=checks.flag("keep_earlier", keep_earlier))
            return memory

        embedded = "text" in changes or drafted.embeddings.full_vector is not None
        return self._embedding.embed_and_write([drafted] if embedded else [], lambda: self._change(memory_id, edit))

    def edit(self, memory_id: str, edit: Edit) -> Memory | None:
        """Replace or remove a memory by what `edit` returns, with no other change of it meanwhile, and add
        the entry to the audit log, if it has one. A new text without a new vector is embedded. What `edit` returns is
        kept as it is: it has to be `cleaned` before."""
        return self._embedding.edit(checks.memory_id("memory_id", memory_id), edit)

    def _change(self, memory_id: MemoryOrId, edit: Callable[[Memory], Memory]) -> Memory:
        """Edit an existing memory; NotFoundError if there is none."""
        key = id_of(memory_id)
        changed = self.edit(key, lambda memory: None if memory is None else Edited(edit(memory)))
        if changed is None:
            raise NotFoundError(key)
        return changed

    @overload
    def forget(self, memory_id: MemoryOrId) -> bool: ...

    @overload
    def forget(self, *, where: Where, dry_run: bool = False) -> list[str]: ...

    @overload
    def forget(self, *, subject: str, dry_run: bool = False, on_progress: Progress | None = None) -> list[str]: ...

    def forget(
        self,
        memory_id: MemoryOrId | None = None,
        *,
        where: Where | None = None,
        subject: str | None = None,
        dry_run: bool = False,
        on_progress: Progress | None = None,
    ) -> bool | list[str]:
        """Remove a memory permanently, given as itself, as a hit or by its id; return whether there was one.

        With `where`, remove all memories that match a filter; return the ids. With `subject`, remove all that concerns
        a person or an agent: its memories, what it said or did, and what names it; return the ids. `dry_run` only
        returns them. Removed text is also erased from the file: at once with `subject`, else when the store is closed.
        """
        if sum(given is not None for given in (memory_id, where, subject)) != 1:
            raise InputError("exactly one of memory_id, where and subject must be given", field="memory_id")
        if memory_id is not None:
            if dry_run:
                raise InputError("dry_run goes with where and subject", field="dry_run")
            gone = bool(self.store.erase([id_of(memory_id)], who=config.user(), reason="forget"))
            self._engine.on_removal()
            return gone
        from .tiers import forgetting

        if where is not None:
            keys = forgetting.forget_where(self.store, Filter.of(where), dry_run=dry_run)
        else:
            keys = forgetting.forget_subject(self.store, subject, dry_run=dry_run, on_progress=on_progress)
        if not dry_run:
            if subject is not None:
                self._recalls.forget(forgetting.Subject(str(subject)).is_named_in)
            self._engine.on_removal(strict=subject is not None)
        return keys

    def prune(self, policy: ForgettingPolicy | Mapping[str, Any], *, dry_run: bool = False) -> list[tuple[str, float]]:
        """Remove what a forgetting policy chooses; return (id, retention), the most faded first. They can be restored
        for the policy's grace period, after which a later prune deletes them permanently."""
        from .tiers import forgetting

        return forgetting.prune(self.store, policy, dry_run=dry_run)

    def restore(self, *memory_ids: str) -> list[Memory]:
        """Restore pruned memories during their grace period; return those that were restored."""
        return self.store.put_back([checks.memory_id("memory_id", key) for key in memory_ids], who=config.user())

    def pin(self, memory_id: MemoryOrId, pinned: bool = True) -> Memory:
        """Exempt a memory from pruning, or with pinned=False let it fade again."""
        checks.flag("pinned", pinned)

        def edit(memory: Memory) -> Memory:
            tags = {key: value for key, value in memory.tags.items() if key != "pinned"}
            memory.tags = {**tags, "pinned": "yes"} if pinned else tags
            return memory

        return self._change(memory_id, edit)

    def decay_importance(self, factor: float = 0.9, *, unused_days: float = 30.0, floor: float = 0.05) -> int:
        """Multiply the importance of memories unused for `unused_days` by `factor`, not below `floor`; return how many.
        To be called now and then; pinned memories keep theirs."""
        checks.share("factor", factor)
        checks.share("floor", floor)
        from .tiers import forgetting

        before = time.time() - checks.number("unused_days", unused_days, low=0) * forgetting.DAY
        forgetting.refuse_unreadable(self.store, "changed")
        old = [t for t in self.store.traces() if t.last_used < before and not t.pinned and t.importance > floor]

        def edit(memory: Memory) -> Memory:
            own = memory.bookkeeping
            own.importance_score = min(own.importance_score, max(floor, own.importance_score * factor))
            return memory

        return sum(self.store.change(trace.memory_id, edit) is not None for trace in old)

    # Reading

    def get(self, memory_id: str) -> Memory | None:
        """Return the memory with this id, or None."""
        return self.store.get(checks.memory_id("memory_id", memory_id))

    def get_many(self, memory_ids: Iterable[str]) -> list[Memory | None]:
        """Return the memories with these ids, in order; None for a missing one."""
        if isinstance(memory_ids, str | bytes) or not isinstance(memory_ids, Iterable):
            raise checks.refuse("memory_ids", "a list of ids", memory_ids)
        return self.store.get_many([checks.memory_id("memory_ids", key) for key in memory_ids])

    def memories(
        self,
        where: Where | None = None,
        *,
        agent: Names | None = None,
        type: Names | None = None,
        order: Order = "newest",
        limit: int | None = 100,
        offset: int = 0,
    ) -> Memories:
        """Return the memories that match a filter. `agent` and `type` are short for fields of the filter."""
        chosen = Filter.of(where, agent=agent, type=type)
        return Memories(self.store.select(chosen, order=order, limit=limit, offset=offset))

    def count(self, where: Where | None = None) -> int:
        """Count the memories that match a filter."""
        return self.store.count(Filter.of(where))

    def recall(
        self,
        question: str,
        k: int = 5,
        where: Where | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        mode: Mode = "hybrid",
        token_budget: int | None = None,
        explain: bool = False,
        *,
        agent: Names | None = None,
        type: Names | None = None,
        must: Names = (),
        must_not: Names = (),
        min_relevance: float | None = None,
        vector: VectorLike | None = None,
        settings: RecallSettings | Mapping[str, Any] | None = None,
        now: datetime | None = None,
        touch: bool = True,
    ) -> Hits:
        """Return the memories that best answer a question, best first.

        `where`, and for short `agent` and `type` beside it, say which memories count. Any text is a question; nothing
        in it is an operator. `must` and `must_not` are words or phrases that a memory has to contain, or must not
        contain, word for word. Time words ("yesterday", "last May") raise memories of that time;
        settings={"time_words": "filter"} keeps only those. `vector` replaces the question's own vector. `token_budget`
        leaves out hits whose text would not fit. Scores order the hits of one question; `hit.relevance` says how likely
        a hit answers it, and `min_relevance` leaves out the others. Hits count as accessed unless `touch` is False.
        """
        request = parse_request(
            question,
            k,
            where if agent is type is None else Filter.of(where, agent=agent, type=type),
            since,
            until,
            mode,
            token_budget,
            explain,
            must=must,
            must_not=must_not,
            vector=vector,
            settings=self.settings if settings is None else settings,
            now=now,
            touch=touch,
            min_relevance=min_relevance,
        )

        if isinstance(self.store, ValueRecords):
            return Hits(self.store.answer(request), self.new_recall(request.text, request.where))

        ready = request.mode != "lexical" and self._engine.catch_up()

        def read() -> list[Hit]:
            rows = self.store.candidates(request.where)  # first, because it may switch to a newer snapshot
            if ready:
                rows = self._engine.search_in(rows, request.where)
            embedder = self._embedding.resolve() if request.needs_embedder else None
            facts = self.store if isinstance(self.store, FactTable) else None
            return load_hits(self.store, search(self.store, rows, request, embedder, self._learned, facts))

        hits = Hits(self.store.recall_transaction(read), self.new_recall(request.text, request.where))
        if request.touch:
            self.store.touch([hit.memory.memory_id for hit in hits], time.time())
        return hits

    def new_recall(self, question: str, where: Filter) -> Recall:
        """Record a question that was answered without `recall`, so that its hits can get feedback."""
        return self._recalls.new(question, where, self._keep_feedback)

    def record_remote_recall(self, recall: Recall, touched: Sequence[str]) -> None:
        """Record a recall that another process made on the same store, so that it can get feedback here; `touched` are
        the ids that count as accessed."""
        recall.write = self._keep_feedback
        self._recalls.keep(recall)
        if touched:
            self.store.touch(touched, time.time())

    def last_recalls(self, count: int) -> list[Recall]:
        """Return the last recalls of this Brain, newest first, for diagnosis."""
        return self._recalls.latest(count)

    def feedback(self, recalled: Hit | Hits | str, *, memory_id: str | None = None, useful: bool = True) -> Feedback:
        """Record whether a hit was useful. `recalled` is the hit, or a recall (or its id) with the hit's memory_id.

        useful=False without a memory_id means that nothing in the whole answer helped. An id can get feedback as long
        as its recall is one of the last few thousand of this Brain; a hit at any time, in any process.
        """
        feedback = self._recalls.feedback_on(recalled, memory_id, useful)
        self._keep_feedback(feedback)
        return feedback[0]

    def _keep_feedback(self, feedback: Sequence[Feedback]) -> None:
        question = feedback[0].question
        if question is not None and self.privacy is not None:
            question = self.privacy.question(question)
        wish = self.store.get_meta(QUESTIONS)
        if wish is None and self.store.encryption is not None:
            wish = "none"  # a question reveals much of what it found
        kept = stored_question(question, wish)
        self.store.add_feedback([replace(entry, question=kept) for entry in feedback])

    @property
    def graph(self) -> Graph:
        """The facts in memories, as a graph."""
        from .graph import Graph

        return Graph(self)

    def stats(self) -> Stats:
        """Return the statistics of the store."""
        held = {"embedder": self.store.get_meta("embedder"), **asdict(self.store.stats())}
        return cast("Stats", {"address": self.address, **held, "unreadable": self.store.unreadable()})

    def close(self) -> None:
        """Write pending changes and close the store. Closing twice is harmless."""
        self._engine.close()
        self.store.close()

    def __repr__(self) -> str:
        return f"Brain({self.address!r})"


def _address(address: object) -> str:
    if address is None:
        return str(config.default_store())
    if not isinstance(address, str | Path):
        expected = f"a path, an address such as sqlite:///path, :memory: or {store_expected(address)}"
        raise checks.refuse("address", expected, address)
    return checks.text("address", str(address))


def _chunks(items: Iterable[Memory], size: int) -> Iterator[list[Memory]]:
    batch: list[Memory] = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
