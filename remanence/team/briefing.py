"""Recall without being asked. When a session starts, a briefing: the team's rules, where work stopped, what was
decided here, hot files, what is known to fail. When a prompt reads like a task or an error, the experience that fits,
with who learned it, when and at which commit; only what is relevant enough, and nothing twice in a session."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from ..brain import Brain
from ..recall.budget import estimate_tokens, shorten
from .events import Event, Kind
from .identity import Repository, author, repository
from .memory import TeamMemory
from .notes import Experience
from .sessions import Sessions, SessionState

Place = Repository | str | None
BAR = 0.4
"""The relevance from which on an experience is told unasked; `rmem eval team` measures it."""
BUDGET, PROMPT_BUDGET = 1000, 700  # tokens
_TOLD_AT_ONCE = 3
_BESIDE = 0.75  # share of the best relevance that others beside it need
_MONTH = 30 * 86_400.0
_ASIDE = (
    r"(?:y(?:es|ep|eah)?|no(?:pe)?|ok(?:ay)?|sure|please|thanks?(?: you)?|thx|go(?: on| ahead)?|continue|proceed|do it|"
    r"looks good|lgtm|nice|great|perfect|stop|wait|never ?mind|undo that|try again|commit(?: it| this)?|push(?: it)?)"
)
_CHATTER = re.compile(rf"\W*(?:{_ASIDE}\W+)*{_ASIDE}\W*", re.IGNORECASE)


def reads_like_work(prompt: str) -> bool:
    """Whether a prompt is a task or an error, and no "yes, go on"."""
    return len(prompt.split()) >= 3 and not _CHATTER.fullmatch(prompt)


class Briefing:
    def __init__(self, brain: Brain, sessions: Sessions | None = None, *, bar: float = BAR) -> None:
        self._brain = brain
        self._sessions = sessions or Sessions()
        self._bar = bar

    def context(self, event: Event) -> str:
        """What an agent should know at this moment; empty if there is nothing."""
        where = repository(event.cwd) if event.cwd else None
        team = TeamMemory(self._brain, author=author(event.cwd or None))
        with self._sessions.changing(event.agent, event.session) as state:
            if event.kind is Kind.SESSION_START:
                return self._start(event, state, team, where)
            if event.kind is Kind.PROMPT:
                return self._prompt(event, state, team, where)
        return ""

    def told(self, event: Event, team: TeamMemory, where: Place) -> str:
        """The briefing of a session that starts, for whoever asks for it."""
        return self._start(event, SessionState(event.agent, event.session), team, where)

    # A prompt

    def _prompt(self, event: Event, state: SessionState, team: TeamMemory, where: Repository | None) -> str:
        found = [one for one in self.relevant(event.prompt, team, where) if one.id not in state.injected]
        found = [one for one in found if one.memory.session != event.session][:_TOLD_AT_ONCE]
        if not found:
            return ""
        lines = _fitting((told(one) for one in found), PROMPT_BUDGET)
        state.injected += [one.id for one in found[: len(lines)]]
        team.audit("inject", [one.id for one in found[: len(lines)]], agent=event.agent, session=event.session)
        return "The team memory knows something that may help (check it before you rely on it):\n" + "\n".join(lines)

    def relevant(self, prompt: str, team: TeamMemory, where: Place) -> list[Experience]:
        """The experience that is told unasked for a prompt."""
        if not reads_like_work(prompt):
            return []
        kinds = ("error_fix", "decision", "codebase", "preference", "task")
        found = team.recall(prompt[:4000], repository=where, k=2 * _TOLD_AT_ONCE, kinds=kinds, bar=self._bar)
        best = max((one.relevance for one in found), default=0.0)
        return [one for one in found if one.relevance >= _BESIDE * best]

    # The start of a session

    def _start(self, event: Event, state: SessionState, team: TeamMemory, where: Place) -> str:
        parts: list[str] = []
        if event.source in ("compact", "resume"):
            parts.append(_restored(state))
        else:
            parts += self._sections(event, state, team, where)
        lines = _fitting((part for part in parts if part), BUDGET)
        team.audit("inject", state.injected, agent=event.agent, session=event.session)
        return "" if not lines else "From the team memory:\n\n" + "\n\n".join(lines)

    def _sections(self, event: Event, state: SessionState, team: TeamMemory, where: Place) -> list[str]:
        def newest(kinds: Sequence[str], limit: int) -> list[Experience]:
            return team.recent(repository=where, kinds=kinds, limit=limit)

        rules = sorted(newest(("preference",), 50), key=lambda one: (-one.count, -one.memory.timestamp))[:8]
        decided = sorted(
            newest(("decision", "codebase"), 50), key=lambda one: (-one.memory.importance, -one.memory.timestamp)
        )[:8]
        state.injected += [one.id for one in [*rules, *decided]]
        return [
            _section("Rules of the team", [one.text for one in rules]),
            self._last_time(event, team, where),
            _section("Decisions and conventions here", [told(one) for one in decided]),
            _section("Known to fail", self._failing(team, where)),
            _section("Files that change most", self._hot(team, where)),
        ]

    def _last_time(self, event: Event, team: TeamMemory, where: Place) -> str:
        name = where.id if isinstance(where, Repository) else where
        last = self._sessions.last_in(name, but=event.session) if name is not None else None
        if last is not None and last.ended is None and last.task:
            return "Where work stopped last time:\n" + _restored(last)
        tasks = team.recent(repository=where, kinds=("task",), limit=1) if where is not None else []
        return f"Where work stopped last time ({_when(tasks[0])}):\n{tasks[0].text}" if tasks else ""

    def _failing(self, team: TeamMemory, where: Place) -> list[str]:
        """Commands whose last output was a failure."""
        if where is None:
            return []
        latest: dict[str, Experience] = {}
        for one in team.recent(repository=where, kinds=("tool_output",), limit=100):
            attempt = str(one.memory.contents.get("attempt", ""))
            if attempt not in latest or _last_seen(one) > _last_seen(latest[attempt]):
                latest[attempt] = one
        failing = [one for one in latest.values() if one.memory.contents.get("failed")]
        return [f"{one.text[:300]} ({_when(one)})" for one in failing[:3]]

    def _hot(self, team: TeamMemory, where: Place) -> list[str]:
        if where is None:
            return []
        files: Counter[str] = Counter()
        for one in team.recent(repository=where, limit=200):
            if time.time() - one.memory.timestamp < _MONTH:
                files.update(one.files)
        return [path for path, times in files.most_common(8) if times > 1]


def told(one: Experience) -> str:
    """An experience as it is told: what, who, when, at which commit."""
    by = f"{one.author}, " if one.author else ""
    at = f", commit {one.commit[:10]}" if one.commit else ""
    often = f", seen {one.count} times" if one.count > 1 else ""
    doubt = f", may be out of date: {one.stale}" if one.stale else ""
    return f"- [{one.kind.replace('_', ' ')}] {one.text} ({by}{_when(one)}{at}{often}{doubt}; memory {one.id})"


def _when(one: Experience) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(one.memory.timestamp))


def _last_seen(one: Experience) -> float:
    return max((float(source.get("when", 0)) for source in one.memory.contents.get("sources", ())), default=0.0)


def _section(title: str, lines: Iterable[str]) -> str:
    given = list(lines)
    return f"{title}:\n" + "\n".join(line if line.startswith("- ") else f"- {line}" for line in given) if given else ""


def _restored(state: SessionState) -> str:
    """A session's state in words."""
    parts: list[tuple[str, Callable[[], str]]] = [
        ("Task", lambda: state.task[:800]),
        ("Plan", lambda: "; ".join(state.plan)),
        ("Files open", lambda: ", ".join(state.open_files[-10:])),
        ("Edited", lambda: ", ".join(state.edited_files[-10:])),
        ("Still failing", lambda: "; ".join(one["command"] for one in state.failures.values())),
        ("Last output", lambda: _last_output(state)),
    ]
    return "\n".join(f"{name}: {value}" for name, words in parts if (value := words()))


def _last_output(state: SessionState) -> str:
    if not state.outputs:
        return ""
    last = state.outputs[-1]
    return f"`{last['command']}`: {last['output'][-400:]}"


def _fitting(lines: Iterable[str], budget: int) -> list[str]:
    """As many as fit, the first ones first; one that is too long alone is cut."""
    kept: list[str] = []
    left = budget
    for line in lines:
        size = estimate_tokens(line)
        if size > left:
            if kept or left < 50:
                continue
            line = shorten(line, left)
            size = estimate_tokens(line)
        kept.append(line)
        left -= size
    return kept
