"""EnhancedAgentMemory: the façade of the Advanced Memory System Guide. A conversation within a token limit, a
long-term memory of everything, and recall of experiences, over one Brain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .. import checks, config
from ..annotations import Mode
from ..attachments import detach, restore
from ..closing import Closing
from ..contents import own_contents
from ..crypto.encryption import Encryption
from ..embed import EmbedderSpec
from ..errors import InputError
from ..kv.base import MAX_NAMESPACE, Entry, Hits, apply_policy, check_query, text_of
from ..kv.sqlite import sqlite_path
from ..models import Memory
from ..privacy.choice import PrivacySpec
from ..stores.base import MemoryStore
from ..stores.value_records import ValueRecords
from .custom_stores import LongTermValues, WorkingValues, check_store
from .long_term import KINDS, LongTermMemory, SemanticMemory, importance_of, open_brain
from .prompt_block import block
from .summarisers import ExtractiveSummariser, Summariser, summariser_for
from .working_memory import WorkingMemory

if TYPE_CHECKING:
    from ..vectors.base import VectorIndex

_MAX_RECALLED = 8  # memories that a context may hold


class EnhancedAgentMemory(Closing):
    """The memory of one agent.

        memory = EnhancedAgentMemory(persistent=True)            # the default file; path="agent.db" for another
        memory.add_message("user", "Which port does staging use?")
        memory.add_experience("Staging listens on port 8443", importance=3)
        memory.recall("staging port")                            # [("exp_0", "Staging listens on port 8443", 2.1)]
        memory.context_for("staging port", token_budget=500)     # a text to put before a prompt

    `working` holds the newest messages within `token_limit` tokens, `long_term` everything, `vector` the experiences
    by their vectors (None with vector=False). Several agents may share a file, and several processes an agent;
    processes that talk at the same time should each have a `session`, whose conversation is its own. Safe to use from
    many threads.

        EnhancedAgentMemory(store="postgresql://…")              # or any other store that Brain takes
        memory.long_term = SqliteStore("notes.db")               # any object with add, get, search and forget
        memory.vector = VectorMemoryStore(vectors="qdrant://…")

    A `long_term` of your own gets every experience, message and tool call and answers `recall` and `search`; a `vector`
    of your own gets every experience and answers `recall`. Four methods cannot list what they hold, so that with a
    store of four methods a conversation ends with the process, and so do the links from summaries to their sources.
    """

    def __init__(
        self,
        persistent: bool = False,
        vector: bool = True,
        *,
        store: str | Path | MemoryStore[Any] | None = None,
        path: str | Path | None = None,
        agent: str = "agent",
        session: str = "main",
        embedder: EmbedderSpec = None,
        privacy: PrivacySpec = None,
        vectors: str | VectorIndex | None = None,
        encryption: Encryption | Literal[False] | None = None,
        token_limit: int = 4000,
        summarise_at: float = 0.8,
        summarise_every: int | None = None,
        summariser: str | Summariser | None = None,
    ) -> None:
        """Working memory is summarised when it reaches `summarise_at` of `token_limit`, and after `summarise_every`
        messages and tool calls if that is given. `store` is what Brain takes, and is kept as long as it keeps things;
        `persistent` and `path` are short for a file. `summariser` is "extractive" (the default), "chat:MODEL@URL" or a
        function of texts and a number of tokens. `embedder`, `privacy`, `vectors` and `encryption` are those of
        Brain."""
        checks.flag("persistent", persistent)
        checks.flag("vector", vector)
        checks.name("agent", agent, maximum=MAX_NAMESPACE)
        self.session = checks.name("session", session)
        if path is not None and not persistent:
            raise InputError("path is only for persistent=True: without it nothing is written", field="path")
        if store is not None and (persistent or path is not None):
            raise InputError("store must not be given with persistent or path, which name a file", field="store")
        summarise = summariser_for(summariser)
        address: str | Path | MemoryStore[Any] = ":memory:"
        if store is not None:
            address = store
        elif persistent:
            address = config.default_store() if path is None else sqlite_path(path)
        own = open_brain(address, vector, embedder, privacy=privacy, encryption=encryption, vectors=vectors)
        values = own.store.values if isinstance(own.store, ValueRecords) else None
        self.brain = own if values is None else open_brain(":memory:", vector, embedder, privacy=privacy)
        self._values: LongTermValues | None = None
        self._others: WorkingValues | None = None
        self._similar: MemoryStore[Any] | None = None
        self._given = values
        try:
            self._long_term = LongTermMemory(self.brain, agent)
            self._vector = SemanticMemory(self.brain, agent) if vector else None
            self._working = WorkingMemory(
                self._long_term,
                self.session,
                summarise,
                token_limit=token_limit,
                summarise_at=summarise_at,
                summarise_every=summarise_every,
            )
        except BaseException:
            self.close()
            raise
        if values is not None:
            self.long_term = values

    # Stores that can be replaced

    @property
    def long_term(self) -> Any:
        """Experiences, messages, tool calls and summaries by key; replace it with any store of four methods."""
        return self._long_term if self._values is None else self._values.store

    @long_term.setter
    def long_term(self, store: MemoryStore[Any]) -> None:
        if store is self._long_term:
            self._values = None
            return
        given = check_store("long_term", store)
        self._values = LongTermValues(given, lambda key: self._long_term.memory(key) is not None)
        self._vector = None  # it shows the experiences of our own long-term memory

    @property
    def working(self) -> Any:
        """The newest messages and tool calls by key; replace it with any store of four methods."""
        return self._working if self._others is None else self._others.store

    @working.setter
    def working(self, store: MemoryStore[Any]) -> None:
        self._others = None if store is self._working else WorkingValues(check_store("working", store))

    @property
    def vector(self) -> Any:
        """The experiences by their vectors, or None; replace it with any store of four methods."""
        return self._vector if self._similar is None else self._similar

    @vector.setter
    def vector(self, store: MemoryStore[Any] | None) -> None:
        if store is self._vector and store is not None:
            self._similar = None
            return
        self._similar = None if store is None else check_store("vector", store)
        self._vector = None

    @property
    def agent(self) -> str:
        return self._long_term.namespace

    @property
    def mode(self) -> Mode:
        """Return how recall ranks: by words and vectors, or by words alone."""
        return "lexical" if self.vector is None else "hybrid"

    def _custom_stores(self) -> list[MemoryStore[Any]]:
        """Return the stores that replace ours."""
        held = [values.store for values in (self._values, self._others) if values is not None]
        return held if self._similar is None else [*held, self._similar]

    # Experiences

    def add_experience(self, text: str, importance: float = 1, meta: Mapping[str, Any] | None = None) -> str:
        """Store an experience; return its key. Importance counts 1, 2, 3 … as in the guide (1 is ordinary); with a
        decimal point it is a share from 0 to 1."""
        fields = checks.json_object("meta", {"importance": importance, **(meta or {})})
        share = importance_of(importance)
        checks.text("text", text)
        if self._values is None:
            kept = self._long_term.write("experience", text, {"meta": fields}, importance=share)
            key, text = self._long_term.key_of(kept), kept.text
        else:
            key = self._values.new_key("experience")
            entry = Entry(key, text, fields)
            entry = entry if self.brain.privacy is None else apply_policy(self.brain.privacy, entry)
            text = entry.value
            self._values.store.add(key, text, entry.meta)
        if self._similar is not None:
            self._similar.add(key, text)
        return key

    def add(self, text: str, importance: float = 1, meta: Mapping[str, Any] | None = None) -> str:
        """`add_experience` by the name that the guide's picture gives it."""
        return self.add_experience(text, importance, meta)

    def recall(self, query: str, k: int = 5) -> Hits:
        """Return (key, text, score) of the experiences that best answer a question, best first."""
        checks.whole("k", k, low=1)
        if self._similar is not None:
            check_query(query, k)
            return [(key, value, float(score)) for key, value, score in self._similar.search(query, k)]
        return self._search(query, k, ["experience"])

    def _search(self, query: str, k: int, kinds: Sequence[str]) -> Hits:
        if self._values is not None:
            return self._values.search(query, k, kinds)
        return self._long_term.recall(query, k, kinds, self.mode)

    def search(self, query: str, k: int = 5, kinds: Sequence[str] = KINDS[:3]) -> Hits:
        """Search experiences, messages and tool calls, or only the given kinds, as `recall` does."""
        if isinstance(kinds, str):
            kinds = [kinds]
        for kind in kinds:
            checks.one_of("kinds", kind, KINDS)
        return self._search(query, checks.whole("k", k, low=1), kinds)

    def forget(self, key: str) -> bool:
        """Remove a memory from working and long-term memory and from summaries; return whether there was one."""
        with self._working.turn:
            gone = self._long_term.forget(key)
            gone = self._working.forget(key) or gone
            for store in self._custom_stores():
                gone = bool(store.forget(key)) or gone
            if gone:
                self._working.rewrite_summaries(key)
            if key == self._working.summary_key:
                self._working.reload_summary()
            return gone

    # The conversation

    def add_message(self, role: str, content: Any) -> str:
        """Add a message to working and long-term memory; return its key. Content is a text or JSON, with images and
        other blobs as chat APIs write them, or as bytes. Blobs become attachments: `get_memory` returns them, a
        context does not contain them."""
        return self._add_message(role, content, {})

    def _add_message(self, role: str, content: Any, rest: Mapping[str, Any]) -> str:
        """Add a message with other fields, such as the calls of an assistant; JSON or their text."""
        checks.name("role", role)
        parts = detach({"role": role, "content": content, **rest})
        parts |= {name: _jsonable(parts[name]) for name in rest}
        if isinstance(parts["content"], str):
            return self._add("message", f"{role}: {parts.pop('content')}", parts, actor=role)
        contents = checks.json_object("message", parts)
        said = contents["content"] if content is not None else {name: contents[name] for name in rest} or ""
        return self._add("message", f"{role}: {text_of(said)}", contents, actor=role)

    def add_tool_call(
        self, name: str, arguments: Mapping[str, Any] | None = None, result: Any = None, *, error: str | None = None
    ) -> str:
        """Store the arguments of a tool call and its result or error; return its key. What JSON cannot hold is stored
        as its text."""
        checks.name("name", name)
        if arguments is not None and not isinstance(arguments, Mapping):
            raise checks.refuse(
                "arguments", "a mapping of names to values; json.loads reads one from a text", arguments
            )
        parts = detach({"arguments": dict(arguments or {}), "result": result})
        contents = {"name": name, **{part: _jsonable(value) for part, value in parts.items()}}
        contents |= {} if error is None else {"error": checks.text("error", str(error))}
        outcome = "done" if result is None else text_of(contents["result"])
        if error is not None:
            outcome = f"error: {contents['error']}"
        return self._add("tool_call", f"tool {name}: {text_of(contents['arguments'])} -> {outcome}", contents)

    def _add(self, kind: str, text: str, contents: dict[str, Any], actor: str | None = None) -> str:
        with self._working.turn:
            key = None if self._values is None else self._values.new_key(kind)
            kept = self._long_term.write(kind, text, contents, session=self.session, actor=actor, key=key)
            key = self._working.append(kept)
            if self._values is not None:
                self._values.store.add(key, kept.text, {"type": kind, "session": self.session})
            if self._others is not None:
                self._others.add(key, kept.text)
            return key

    def _recent(self) -> dict[str, str]:
        """Return what is in working memory, oldest first."""
        if self._others is not None:
            return self._others.texts
        return {key: str(text) for key, text in list(self._working.data.items())}

    def get_recent_messages(self, n: int = 10) -> str:
        """Return the newest messages of working memory as "role: content", one per line."""
        checks.whole("n", n)
        texts = [text for key, text in self._recent().items() if not key.startswith("tool_")]
        return "\n".join(texts[-n:] if n else [])

    def get_messages(self, n: int | None = None, *, attachments: bool = False) -> list[dict[str, Any]]:
        """Return the newest messages of this session since the last clear() in full, also summarised ones. Without
        `attachments` they contain only the names of images and other blobs."""
        if n is not None:
            checks.whole("n", n)
        shown = restore if checks.flag("attachments", attachments) else own_contents
        found = list(islice(self._working.history("message"), n))
        return [dict(shown(_message(memory))) for memory in reversed(found)]

    def get_memory(self, key: str) -> dict[str, Any] | None:
        """Return a memory with its attachments, key, type and time; None if there is none."""
        memory = self._long_term.memory(key)
        if memory is None:
            value = None if self._values is None else self._values.store.get(key)
            return None if value is None else {"key": key, "text": text_of(value)}
        message = _message(memory) if memory.type == "message" else {}
        return restore({"type": memory.type, "text": memory.text, **self._fields(memory), **message})

    @property
    def tool_call_history(self) -> list[dict[str, Any]]:
        """Return all tool calls of this session, oldest first: key, name, arguments, result, error if any, and time."""
        calls = reversed(list(self._working.history("tool_call")))
        return [dict(own_contents(self._fields(memory))) for memory in calls]

    def _fields(self, memory: Memory) -> dict[str, Any]:
        fields = {name: value for name, value in memory.contents.items() if name != "text"}
        when = datetime.fromtimestamp(memory.timestamp, UTC).isoformat(timespec="seconds")
        return {"key": self._long_term.key_of(memory), **fields, "time": when}

    def clear(self) -> None:
        """Start a new conversation: empty working memory. Long-term memory keeps everything."""
        self._working.empty()
        if self._others is not None:
            self._others.empty()

    # Summaries

    def create_summary(self) -> str:
        """Summarise all of working memory but the newest message now; return the running summary."""
        with self._working.turn:
            self._working.summarise_oldest(list(self._working.data)[:-1])
            return self._working.summary or self.summary()

    def summary(self, token_budget: int = 300) -> str:
        """Return a summary of the conversation so far, in at most `token_budget` tokens, without changing anything."""
        checks.whole("token_budget", token_budget, low=1)
        with self._working.turn:
            texts = [*self._working.summary.splitlines(), *self._recent().values()]
        return self._working.summarise(texts, token_budget)

    def sources(self, key: str, *, deep: bool = False) -> list[str]:
        """Return the keys of the messages and tool calls in a summary; with `deep`, also those of the summaries that it
        continues, oldest first."""
        found: list[str] = []
        waiting: str | None = key
        while waiting is not None:
            memory = self._long_term.memory(waiting)
            if memory is None or memory.type != "summary":
                break
            found = [*memory.contents.get("of", []), *found]
            waiting = memory.contents.get("previous") if deep else None
        return found

    def context_for(self, prompt: str, token_budget: int = 1000) -> str:
        """Build a text to put before a prompt: the running summary, memories relevant to the prompt and the newest
        messages, in at most `token_budget` tokens as `rmem.recall.budget` estimates them."""
        checks.whole("token_budget", token_budget, low=1)
        with self._working.turn:
            recent, summary = self._recent(), self._working.summary
        found = self.search(prompt, k=_MAX_RECALLED + len(recent))
        recalled = [text for key, text, _ in found if key not in recent][:_MAX_RECALLED]
        return block(summary, recalled, list(recent.values()), token_budget, ExtractiveSummariser())

    # Closing

    def close(self) -> None:
        """Write pending changes and close the file, and the store that was given. Closing twice is harmless."""
        self.brain.close()
        if self._given is not None:
            ValueRecords(self._given).close()

    def __repr__(self) -> str:
        return f"EnhancedAgentMemory({self.agent!r}, {self.brain.address!r})"


def _message(memory: Memory) -> dict[str, Any]:
    fields = {name: value for name, value in memory.contents.items() if name != "text"}
    role = fields.get("role")
    return {"role": role, "content": memory.text.removeprefix(f"{role}: "), **fields}


def _jsonable(value: Any) -> Any:
    """Return a value that JSON can hold: itself, or its text."""
    try:
        return checks.json_object("tool", {"value": value})["value"]
    except InputError:
        return str(value).encode("utf-8", "replace").decode().replace("\x00", "")
