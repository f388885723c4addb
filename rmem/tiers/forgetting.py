"""The forgetting curve, pruning by it, and removal by filter, person or agent.

The retention of a memory falls with the time t since it was last used, as Ebbinghaus found: R = exp(-t / S). A memory
that was never used counts from the time that it is about (`when`), not from when it was stored. Its stability S, in
days, grows with its importance and with every recall:

    S = stability · (1 + importance_weight · importance) · growth ^ log2(1 + recalls)

Nothing is pruned without a policy. A policy prunes what has faded below a bound or exceeds a budget, the most faded
first; pinned memories stay. Removal on request ignores retention."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from html import unescape
from typing import Any
from urllib.parse import unquote_plus

from .. import checks, config
from ..contents import leaves
from ..errors import InputError, KeyMissingError
from ..feedback import Feedback
from ..filters import Filter
from ..index.analyser import fold, is_spaceless
from ..models import TIERS, Memory
from ..stores.base import Progress, RecordStore, Trace, counted
from . import copies

DAY = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgettingPolicy:
    """Which memories are pruned, and how fast they fade.

    ForgettingPolicy(below=0.05)                  # what has almost faded
    ForgettingPolicy(max_count=100_000)           # the most faded beyond a hundred thousand
    ForgettingPolicy(below=0.05, grace_days=0)    # delete at once, without a grace period
    ForgettingPolicy(below=0.05, steps_per_day=1000)  # for agents whose time is counted in steps
    """

    below: float | None = None
    """Retention under which a memory is pruned."""
    max_count: int | None = None
    """Most memories to keep."""
    max_bytes: int | None = None
    """Most bytes that the rows may take."""
    min_age_days: float = 1.0
    """Younger memories are never pruned."""
    steps_per_day: float | None = None
    """Measure age in steps of the agent, this many to a day. A recall then adds stability but does not reset the
    age."""
    grace_days: float = 30.0
    """How long pruned memories can be restored; 0 deletes them at once."""
    stability: float = 7.0
    """Days after which the retention of a memory of importance 0 has fallen to 37 %."""
    importance_weight: float = 4.0
    """Importance 1 multiplies stability by 1 + this."""
    growth: float = 1.6
    """Factor on stability for each doubling of 1 + the number of recalls."""

    def __post_init__(self) -> None:
        if self.below is not None:
            checks.share("below", self.below)
        for name in ("max_count", "max_bytes"):
            if getattr(self, name) is not None:
                checks.whole(name, getattr(self, name))
        for name in ("min_age_days", "grace_days", "importance_weight"):
            checks.number(name, getattr(self, name), low=0)
        for name, low in (("stability", 1e-6), ("growth", 1.0), ("steps_per_day", 1e-6)):
            if getattr(self, name) is not None:
                checks.number(name, getattr(self, name), low=low)

    @classmethod
    def of(cls, policy: ForgettingPolicy | Mapping[str, Any]) -> ForgettingPolicy:
        if isinstance(policy, ForgettingPolicy):
            return policy
        if not isinstance(policy, Mapping):
            raise checks.refuse("policy", "a ForgettingPolicy or a mapping", policy)
        checks.known_fields("a forgetting policy", policy, [f.name for f in fields(cls)])
        return cls(**policy)

    def retention(self, importance: float, days: float, recalls: int = 0) -> float:
        """Return the retention of a memory, 0 to 1, `days` after it was last used."""
        return math.exp(-max(days, 0.0) / self.stable_days(importance, recalls))

    def stable_days(self, importance: float, recalls: int = 0) -> float:
        """Return after how many days a memory has faded to 37 %."""
        try:
            growth: float = self.growth ** math.log2(1 + recalls)
            return self.stability * (1 + self.importance_weight * importance) * growth
        except OverflowError:  # beyond the largest float: such a memory does not fade
            return math.inf

    def falls_at(self, trace: Trace, below: float) -> float | None:
        """Return when a memory fades below a retention if unused; None if never, or if steps are counted."""
        if self.steps_per_day is not None or below <= 0:
            return None
        at = trace.last_used - DAY * self.stable_days(trace.importance, trace.recalls) * math.log(below)
        return at if math.isfinite(at) else None

    def retention_of(self, trace: Trace, now: float) -> float:
        return self.retention(trace.importance, self._days(trace, now - trace.last_used), trace.recalls)

    def _days(self, trace: Trace, seconds: float) -> float:
        return seconds / DAY if self.steps_per_day is None else trace.steps_behind / self.steps_per_day

    def choose(self, traces: Iterable[Trace], now: float) -> list[tuple[Trace, float]]:
        """Choose what this policy prunes, the most faded first, with its retention."""
        known = [(trace, self.retention_of(trace, now)) for trace in traces]
        count, size = len(known), sum(trace.bytes for trace, _ in known)
        candidates = [
            (trace, retained)
            for trace, retained in known
            if not trace.pinned and self._days(trace, now - trace.when) >= self.min_age_days
        ]
        if self.below is not None and self.max_count is self.max_bytes is None:  # the others need not be put in order
            candidates = [(trace, retained) for trace, retained in candidates if retained < self.below]
        candidates.sort(key=lambda pair: (pair[1], pair[0].last_used, pair[0].memory_id))
        pruned = []
        for trace, retained in candidates:
            faded = self.below is not None and retained < self.below
            too_many = self.max_count is not None and count > self.max_count
            too_large = self.max_bytes is not None and size > self.max_bytes
            if not (faded or too_many or too_large):
                break
            pruned.append((trace, retained))
            count, size = count - 1, size - trace.bytes
        return pruned


def prune(
    store: RecordStore,
    policy: ForgettingPolicy | Mapping[str, Any],
    *,
    dry_run: bool = False,
    on_progress: Progress | None = None,
) -> list[tuple[str, float]]:
    """Remove what a policy chooses, or set it aside for the policy's grace period; return (id, retention), the most
    faded first. Delete what was set aside earlier and whose grace period is over. `on_progress` counts the memories
    that were read and weighed."""
    chosen = ForgettingPolicy.of(policy)
    refuse_unreadable(store, "pruned")
    now = time.time()

    def half(number: int) -> Progress:
        def report(done: int, total: int | None) -> None:
            if on_progress is not None and total is not None:
                on_progress(number * total + done, 2 * total)

        return report

    traces = list(store.traces(half(0)))
    weighed = chosen.choose(counted(traces, len(traces), half(1)), now)
    found = [(trace.memory_id, retained) for trace, retained in weighed]
    if checks.flag("dry_run", dry_run):
        return found
    keys = [key for key, _ in found]
    if keys and chosen.grace_days:
        store.set_aside(keys, until=now + chosen.grace_days * DAY, who=config.user(), reason="faded")
    elif keys:
        store.erase(keys, who=config.user(), reason="faded")
    if store.empty_trash(now, who=config.user()) or (keys and not chosen.grace_days):
        store.scrub()
    return found


def forget_where(store: RecordStore, where: Filter, *, dry_run: bool = False) -> list[str]:
    """Remove the memories that match a filter; return their ids. An empty filter is refused."""
    if not where:
        raise InputError("where must name at least one field, or everything would be forgotten", field="where")
    refuse_unreadable(store, "searched for the filter")
    keys = [memory.memory_id for memory in store.select(where)]
    if checks.flag("dry_run", dry_run) or not keys:
        return keys
    return store.erase(keys, who=config.user(), reason="filter")


def forget_subject(
    store: RecordStore, subject: object, *, dry_run: bool = False, on_progress: Progress | None = None
) -> list[str]:
    """Remove all that concerns a person or an agent, also from free pages of the file and copies in Redis; return the
    ids of the memories."""
    person = Subject(checks.name("subject", subject))
    checks.flag("dry_run", dry_run)
    keys, feedback = _ids_about(store, person), _feedback_about(store, person)
    with copies.open_copies(store) as redis_stores:
        ids_in_copies = [_ids_about(copy, person) for copy in redis_stores]
        if dry_run or not (keys or feedback or any(ids_in_copies)):
            return keys
        store.remove_feedback(feedback)
        if keys:
            store.erase(keys, who=config.user(), reason="subject", named=False)
            store.repack(on_progress)
        store.scrub(rewrite=True)
        for copy, ids in zip(redis_stores, ids_in_copies, strict=True):
            copy.forget_many(list(dict.fromkeys([*ids, *keys])))
            copy.scrub()
    return keys


class Subject:
    """The name of a person or agent to forget; case, accents, character width, spacing, and the kind of apostrophe and
    hyphen do not matter."""

    def __init__(self, name: str) -> None:
        words = _plain_name(name).split()
        if not words:
            raise checks.refuse("subject", "a name with characters that are seen", name)
        first, last = words[0][0], words[-1][-1]
        starts = "" if is_spaceless(first) else r"(?<!\w)"
        # A Korean particle directly follows the name.
        ends = "" if is_spaceless(last) or "가" <= last <= "힣" else r"(?!\w)"
        spelled = (
            r"\s*".join(map(re.escape, "".join(words))) if is_spaceless(first) else r"\s+".join(map(re.escape, words))
        )
        self._pattern = re.compile(f"{starts}{spelled}{ends}")

    def is_among(self, *names: str | None) -> bool:
        return any(name is not None and self._pattern.fullmatch(_plain_name(name).strip()) for name in names)

    def is_named_in(self, text: str) -> bool:
        return any(self._pattern.search(_plain_name(form)) for form in _decoded(text))


_LETTERS = str.maketrans(
    {"ı": "i", "ł": "l", "ø": "o", "đ": "d", "ð": "d", "ħ": "h", "æ": "ae", "œ": "oe"}
    | dict.fromkeys("\u2018\u2019\u02bc\u02b9\u00b4", "'")
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2212", "-")
    | dict.fromkeys("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff")
)
"""Letters that are no letter with an accent to Unicode, apostrophes and hyphens, and characters that are not seen."""


_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_NESTED = 3  # JSON in JSON in JSON


def _decoded(text: str) -> Iterator[str]:
    """Yield a text, and what it says where it is JSON ("\\u0141ukasz", or a name behind "\\n"), of a URL or HTML."""
    yield text
    for _ in range(_NESTED):
        if "\\" not in text:
            break
        text = _ESCAPE.sub(_unescaped, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        yield text
    for signs, decode in (("%+", unquote_plus), ("&", unescape)):
        if any(sign in text for sign in signs):
            text = decode(text)
            yield text


def _unescaped(found: re.Match[str]) -> str:
    code, letter = found.groups()
    return chr(int(code, 16)) if code else " " if letter in "nrtbf" else letter


def _plain_name(text: str) -> str:
    return text.lower() if text.isascii() else fold(text.casefold().translate(_LETTERS))


def clear_agent(store: RecordStore, agent: str, tiers: Sequence[str] = TIERS) -> list[str]:
    """Remove the memories of an agent in some tiers, also those set aside; return their ids. Memories of others stay,
    even if they name the agent."""
    refuse_unreadable(store, f"searched for the memories of {agent!r}")
    keys = store.ids_at(store.filtered_rows(Filter(agent=(agent,), tier=tuple(tiers))).seq.tolist())
    aside = [item.memory for item in store.aside()]
    keys += [memory.memory_id for memory in aside if memory.agent_id == agent and memory.tier in tiers]
    return store.erase(keys, who=config.user(), reason="clear") if keys else []


def refuse_unreadable(store: RecordStore, task: str) -> None:
    """Raise if some memories are encrypted and their key is missing or wrong, instead of passing over them."""
    if count := store.unreadable():
        raise KeyMissingError(
            f"{count:,} encrypted memories cannot be {task} without their key, so nothing was changed; set "
            "RMEM_MASTER_KEY or RMEM_MASTER_KEY_FILE to the key of this store"
        )


def _ids_about(store: RecordStore, subject: Subject) -> list[str]:
    """Return the ids of all memories, also those set aside, that belong to a person or an agent or that name it."""
    refuse_unreadable(store, "searched for the subject")
    stored = store.select()
    aside = [item.memory for item in store.aside()]
    return [memory.memory_id for memory in (*stored, *aside) if _is_about(memory, subject)]


def _feedback_about(store: RecordStore, subject: Subject) -> list[Feedback]:
    """Return the feedback on recalls by the subject or whose questions name it."""
    return [
        item for item in store.feedback() if subject.is_among(item.agent) or subject.is_named_in(item.question or "")
    ]


def _is_about(memory: Memory, subject: Subject) -> bool:
    if subject.is_among(memory.agent_id, memory.actor, memory.session):
        return True
    texts = (memory.memory_id, memory.text, memory.place or "", *memory.tags.values(), *_texts(memory.contents))
    texts += tuple(one.text for one in memory.earlier)
    return any(map(subject.is_named_in, texts))


def _texts(contents: Mapping[str, Any]) -> Iterator[str]:
    for path, value in leaves(contents):
        yield path
        if isinstance(value, str):
            yield value
