"""Working memory: the newest messages and tool calls within a number of tokens, and a running summary of what came
before them. Whatever leaves it is in long-term memory already; summaries keep the keys of what they summarise."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from .. import checks
from ..filters import Filter
from ..forks import new_rlock
from ..kv.memory import InMemoryStore
from ..models import Memory
from ..recall.budget import estimate_tokens, shorten
from .long_term import LongTermMemory
from .summarisers import ExtractiveSummariser, Summariser

log = logging.getLogger(__name__)

_KEPT, _SUMMARY = 0.6, 0.3  # shares of the mark at which it is summarised, that messages and the summary have then
_PAGE = 200  # memories read at a time
_GONE = "(forgotten)"
_SPOKEN = ("message", "tool_call")
_cost = lru_cache(maxsize=1024)(estimate_tokens)


class WorkingMemory(InMemoryStore):
    """Texts such as "user: hello" by key, oldest first. `tokens` never passes `token_limit`.

    When they reach `summarise_at` of the limit, or after every `summarise_every` additions, the older ones are folded
    into the summary and leave.
    """

    def __init__(
        self,
        long_term: LongTermMemory,
        session: str,
        summariser: Summariser,
        *,
        token_limit: int,
        summarise_at: float,
        summarise_every: int | None,
    ) -> None:
        super().__init__()
        self.token_limit = checks.whole("token_limit", token_limit, low=20)
        share = checks.number("summarise_at", summarise_at, low=0.1, high=1.0)
        self._threshold = share * self.token_limit
        self._every = None if summarise_every is None else checks.whole("summarise_every", summarise_every, low=1)
        self._long_term = long_term
        self._session = session
        self._summariser = summariser
        self._meta_key = f"working {long_term.prefix}{session}"
        self._since = 0  # additions since the last summary
        self._first: dict[str, int] = {}  # the lowest number of each prefix that is still in working memory
        self._began = 0  # the number of the first message after the last clear()
        self._summary_key: str | None = None
        self._summary = ""
        self.turn = new_rlock()
        self._load()

    @property
    def tokens(self) -> int:
        """What the texts and the summary cost."""
        return sum(_cost(str(text)) for text in list(self.data.values())) + _cost(self._summary)

    @property
    def summary(self) -> str:
        """The running summary of what has left; empty until something has."""
        return self._summary

    @property
    def summary_key(self) -> str | None:
        return self._summary_key

    def take(self, memory: Memory) -> str:
        """Take in a memory that was just kept; its key."""
        with self.turn:
            key = self._place(memory)
            self._since += 1
            due = self._every is not None and self._since >= self._every
            if due or self.tokens > self._threshold:
                self.fold(_within(self, self._threshold * _KEPT, None if self._every is None else self._every // 2))
            return key

    def _place(self, memory: Memory) -> str:
        key = self._long_term.key_of(memory)
        with self._lock:
            self.data[key] = shorten(memory.text, int(self._threshold * _KEPT))
        return key

    def fold(self, keys: Sequence[str]) -> str | None:
        """Put these, the oldest, into the running summary and let them go. The key of the new summary."""
        self._since = 0
        if not keys:
            return None
        with self.turn:
            told = {key: str(self.data[key]) for key in keys}
            held = self._long_term.held(keys)
            self._long_term.add_many((key, text) for key, text in told.items() if key not in held)  # nothing is lost
            text = self.summarised([*_lines(self._summary), *told.values()], int(self._threshold * _SUMMARY))
            contents = {"of": list(keys), "previous": self._summary_key}
            kept = self._long_term.write("summary", text or _GONE, contents, session=self._session)
            self._summary_key, self._summary = self._long_term.key_of(kept), _said(kept)
            self._leave(keys)
            return self._summary_key

    def empty(self) -> None:
        """Let everything go, without a summary; it stays in long-term memory."""
        with self.turn:
            self._summary_key, self._summary, self._since = None, "", 0
            self._leave(list(self.data), last=True)

    def _leave(self, keys: Sequence[str], last: bool = False) -> None:
        for key in keys:
            prefix = key.rpartition("_")[0]
            self._first[prefix] = max(self._first.get(prefix, 0), _number(key) + 1)
            super()._forget(key)
        if last:
            self._began = self._first.get("msg", 0)
        state = {"summary": self._summary_key, "first": self._first, "began": self._began}
        self._long_term.records.set_meta(self._meta_key, json.dumps(state))

    def summarised(self, texts: Sequence[str], budget: int) -> str:
        """A summary that fails must not stop an agent from adding a message, so that another steps in."""
        try:
            return shorten(self._summariser(texts, budget).strip(), budget)
        except Exception as error:  # it may be the caller's own function
            log.warning("the summariser failed, sentences are chosen instead: %s: %s", type(error).__name__, error)
            return ExtractiveSummariser()(texts, budget)

    # After a restart

    def _load(self) -> None:
        state = json.loads(self._long_term.records.get_meta(self._meta_key) or "{}")
        self._first, self._began = state.get("first", {}), state.get("began", 0)
        self._summary_key = state.get("summary")
        self.reload_summary()
        for memory in reversed(list(self._back(_SPOKEN, self._left))):
            self._place(memory)
        if self.tokens > self.token_limit:  # it was larger before
            self.fold(_within(self, self._threshold * _KEPT, None))

    def reload_summary(self) -> None:
        kept = None if self._summary_key is None else self._long_term.memory(self._summary_key)
        self._summary = "" if kept is None else shorten(_said(kept), int(self._threshold * _SUMMARY))

    def history(self, kind: str) -> Iterator[Memory]:
        """All memories of a kind in this session, newest first; messages since the last clear()."""
        return self._back([kind], lambda key: key.startswith("msg_") and _number(key) < self._began)

    def _back(self, kinds: Sequence[str], ended: Callable[[str], bool]) -> Iterator[Memory]:
        where = Filter.of({"agent": self._long_term.namespace, "session": self._session, "type": list(kinds)})
        offset, fresh = 0, True
        while fresh:
            page = self._long_term.records.select(where, order="last step", limit=_PAGE, offset=offset)
            current = [memory for memory in page if not ended(self._long_term.key_of(memory))]
            yield from current
            offset, fresh = offset + len(page), bool(current)

    def _left(self, key: str) -> bool:
        return _number(key) < self._first.get(key.rpartition("_")[0], 0)

    # Forgetting

    def retell(self, key: str) -> int:
        """Write the summaries that told of a forgotten memory anew, without it; how many there were."""
        told, budget = 0, int(self._threshold * _SUMMARY)
        with self.turn:
            where = {"agent": self._long_term.namespace, "type": "summary"}
            waiting = self._long_term.records.select(Filter.of({**where, "attributes": {"of": key}}), order="step")
            while waiting:
                memory = waiting.pop(0)
                before = memory.contents.get("previous")
                previous = self._long_term.memory(before) if before else None
                sources = [self._long_term.get(one) for one in memory.contents.get("of", [])]
                texts = [*(_lines(_said(previous)) if previous else []), *(text for text in sources if text)]
                self._long_term.brain.update(memory.memory_id, text=self.summarised(texts, budget) or _GONE)
                mine = self._long_term.key_of(memory)
                waiting += self._long_term.records.select(Filter.of({**where, "attributes": {"previous": mine}}))
                told += 1
            if told:
                self.reload_summary()
        return told


def _within(working: WorkingMemory, tokens: float, most: int | None) -> list[str]:
    """The oldest keys, without which the others are within so many tokens and no more than `most`."""
    keys = list(working.data)
    left, kept = tokens, 0
    for key in reversed(keys):
        left -= _cost(str(working.data[key]))
        if left < 0 or (most is not None and kept >= max(1, most)):
            break
        kept += 1
    return keys[: len(keys) - kept]


def _number(key: str) -> int:
    """The 7 of msg_7; -1 for a key that is not ours."""
    number = key.rpartition("_")[2]
    return int(number) if number.isascii() and number.isdigit() else -1


def _said(memory: Memory) -> str:
    return "" if memory.text == _GONE else memory.text


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]
