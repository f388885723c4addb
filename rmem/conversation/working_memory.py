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

_KEPT_SHARE, _SUMMARY_SHARE = 0.6, 0.3  # shares of the threshold that messages and the summary take after summarising
_PAGE = 200  # memories read at a time
_FORGOTTEN = "(forgotten)"
_KINDS = ("message", "tool_call")
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
        self._added = 0  # messages and tool calls added since the last summary
        self._first: dict[str, int] = {}  # per key prefix, the lowest number still in working memory
        self._began = 0  # number of the first message after the last clear()
        self._summary_key: str | None = None
        self._summary = ""
        self.turn = new_rlock()
        self._load()

    @property
    def tokens(self) -> int:
        """Return the estimated tokens of all texts and the summary."""
        return sum(_cost(str(text)) for text in list(self.data.values())) + _cost(self._summary)

    @property
    def summary(self) -> str:
        """Return the running summary of what was removed; empty until then."""
        return self._summary

    @property
    def summary_key(self) -> str | None:
        return self._summary_key

    def append(self, memory: Memory) -> str:
        """Add a memory that long-term memory has just stored; summarise if it is time. Return its key."""
        with self.turn:
            key = self._put_memory(memory)
            self._added += 1
            due = self._every is not None and self._added >= self._every
            if due or self.tokens > self._threshold:
                self.summarise_oldest(
                    _keys_to_remove(
                        self, self._threshold * _KEPT_SHARE, None if self._every is None else self._every // 2
                    )
                )
            return key

    def _put_memory(self, memory: Memory) -> str:
        key = self._long_term.key_of(memory)
        with self._lock:
            self.data[key] = shorten(memory.text, int(self._threshold * _KEPT_SHARE))
        return key

    def summarise_oldest(self, keys: Sequence[str]) -> str | None:
        """Add the texts of the oldest keys to the running summary and remove them; return the key of the new
        summary."""
        self._added = 0
        if not keys:
            return None
        with self.turn:
            texts = {key: str(self.data[key]) for key in keys}
            existing = self._long_term.existing_keys(keys)
            self._long_term.add_many(
                (key, text) for key, text in texts.items() if key not in existing
            )  # texts that a caller put into `data`
            text = self.summarise([*_lines(self._summary), *texts.values()], int(self._threshold * _SUMMARY_SHARE))
            contents = {"of": list(keys), "previous": self._summary_key}
            memory = self._long_term.write("summary", text or _FORGOTTEN, contents, session=self._session)
            self._summary_key, self._summary = self._long_term.key_of(memory), _summary_text(memory)
            self._remove_oldest(keys)
            return self._summary_key

    def empty(self) -> None:
        """Remove everything and the summary; long-term memory keeps it."""
        with self.turn:
            self._summary_key, self._summary, self._added = None, "", 0
            self._remove_oldest(list(self.data), last=True)

    def _remove_oldest(self, keys: Sequence[str], last: bool = False) -> None:
        for key in keys:
            prefix = key.rpartition("_")[0]
            self._first[prefix] = max(self._first.get(prefix, 0), _number(key) + 1)
            super()._forget(key)
        if last:
            self._began = self._first.get("msg", 0)
        state = {"summary": self._summary_key, "first": self._first, "began": self._began}
        self._long_term.records.set_meta(self._meta_key, json.dumps(state))

    def summarise(self, texts: Sequence[str], budget: int) -> str:
        """Summarise; if the summariser fails, choose sentences instead, so that adding a message never fails."""
        try:
            return shorten(self._summariser(texts, budget).strip(), budget)
        except Exception as error:  # of the caller's own function
            log.warning("the summariser failed, sentences are chosen instead: %s: %s", type(error).__name__, error)
            return ExtractiveSummariser()(texts, budget)

    # After a restart

    def _load(self) -> None:
        state = json.loads(self._long_term.records.get_meta(self._meta_key) or "{}")
        self._first, self._began = state.get("first", {}), state.get("began", 0)
        self._summary_key = state.get("summary")
        self.reload_summary()
        for memory in reversed(list(self._newest_first(_KINDS, self._was_removed))):
            self._put_memory(memory)
        if self.tokens > self.token_limit:  # the limit was larger when it was written
            self.summarise_oldest(_keys_to_remove(self, self._threshold * _KEPT_SHARE, None))

    def reload_summary(self) -> None:
        memory = None if self._summary_key is None else self._long_term.memory(self._summary_key)
        self._summary = "" if memory is None else shorten(_summary_text(memory), int(self._threshold * _SUMMARY_SHARE))

    def history(self, kind: str) -> Iterator[Memory]:
        """Yield the memories of a kind in this session, newest first; messages only since the last clear()."""
        return self._newest_first([kind], lambda key: key.startswith("msg_") and _number(key) < self._began)

    def _newest_first(self, kinds: Sequence[str], is_over: Callable[[str], bool]) -> Iterator[Memory]:
        where = Filter.of({"agent": self._long_term.namespace, "session": self._session, "type": list(kinds)})
        offset, more = 0, True
        while more:
            page = self._long_term.records.select(where, order="last step", limit=_PAGE, offset=offset)
            current = [memory for memory in page if not is_over(self._long_term.key_of(memory))]
            yield from current
            offset, more = offset + len(page), bool(current)

    def _was_removed(self, key: str) -> bool:
        return _number(key) < self._first.get(key.rpartition("_")[0], 0)

    # Forgetting

    def rewrite_summaries(self, key: str) -> int:
        """Rewrite the summaries that include a forgotten memory, and those that continue them; return how many."""
        count, budget = 0, int(self._threshold * _SUMMARY_SHARE)
        with self.turn:
            where = {"agent": self._long_term.namespace, "type": "summary"}
            pending = self._long_term.records.select(Filter.of({**where, "attributes": {"of": key}}), order="step")
            while pending:
                memory = pending.pop(0)
                previous_key = memory.contents.get("previous")
                previous = self._long_term.memory(previous_key) if previous_key else None
                sources = [self._long_term.get(source) for source in memory.contents.get("of", [])]
                texts = [*(_lines(_summary_text(previous)) if previous else []), *(text for text in sources if text)]
                summary = self.summarise(texts, budget) or _FORGOTTEN
                self._long_term.brain.update(memory.memory_id, text=summary, keep_earlier=False)
                summary_key = self._long_term.key_of(memory)
                pending += self._long_term.records.select(Filter.of({**where, "attributes": {"previous": summary_key}}))
                count += 1
            if count:
                self.reload_summary()
        return count


def _keys_to_remove(working: WorkingMemory, tokens: float, most: int | None) -> list[str]:
    """Return the oldest keys to remove, so that the rest takes at most `tokens` tokens and `most` keys."""
    keys = list(working.data)
    left, kept = tokens, 0
    for key in reversed(keys):
        left -= _cost(str(working.data[key]))
        if left < 0 or (most is not None and kept >= max(1, most)):
            break
        kept += 1
    return keys[: len(keys) - kept]


def _number(key: str) -> int:
    """Return 7 for msg_7; -1 for a key of another form."""
    number = key.rpartition("_")[2]
    return int(number) if number.isascii() and number.isdigit() else -1


def _summary_text(memory: Memory) -> str:
    return "" if memory.text == _FORGOTTEN else memory.text


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]
