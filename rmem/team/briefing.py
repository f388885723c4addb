"""Give an agent what helps without being asked. When a session starts, a briefing: the team's rules, where work
stopped, what was decided here, hot files, known failures. When a prompt reads like a task or an error, or a command
fails, the experience that fits, with who learned it, when and at which commit; only above a relevance threshold, and
nothing twice in a session."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from ..brain import Brain
from .capture import with_outcome
from .events import Event, Kind
from .identity import Repository, author, repository
from .memory import TeamMemory
from .notes import Experience
from .outcomes import has_failed, headline
from .sessions import Sessions, SessionState
from .tool_output import essence

Place = Repository | str | None
BAR = 0.5
"""The relevance from which on an experience is told unasked; `rmem eval team` measures it."""
BUDGET, PROMPT_BUDGET = 4000, 2800  # characters
HEADING = "From the team memory:\n\n"
CONSIDERED, TOLD_AT_ONCE = 6, 3  # memories that may be told, and that are
_BESIDE = 0.9  # share of the best relevance that others beside it need
_LONGEST_LINE, _LONGEST_TEXT = 300, 1500  # characters of a line of the briefing; of an experience that fits
_LOOKED_AT = 400  # memories of a repository among which its rules and decisions are looked for
TOLD_KINDS = ("error_fix", "decision", "codebase", "preference", "task")
_OUTCOME_PATIENCE = 0.1  # seconds that a transcript has to tell how a command ended; an agent waits
_MONTH = 30 * 86_400.0
_ASIDE = (
    r"(?:y(?:es|ep|eah)?|no(?:pe)?|ok(?:ay)?|sure|please|thanks?(?: you)?|thx|go(?: on| ahead)?|continue|proceed|do it|"
    r"looks good|lgtm|nice|great|perfect|stop|wait|never ?mind|undo that|try again|commit(?: it| this)?|push(?: it)?)"
)
_CHATTER = re.compile(rf"\W*(?:{_ASIDE}\W+)*{_ASIDE}\W*", re.IGNORECASE)


class Line(NamedTuple):
    """A line of what is told, and the memory that is told by it."""

    text: str
    memory: str | None = None


class Section(NamedTuple):
    title: str
    lines: Sequence[Line]


def reads_like_work(prompt: str) -> bool:
    """Whether a prompt is a task or an error, and no "yes, go on"."""
    return len(prompt.split()) >= 3 and not _CHATTER.fullmatch(prompt)


def question_of_failure(command: str, output: str) -> str:
    """What to search for when a command fails: the line that names the error, then the lines that say more."""
    return f"{headline(output)}\n{essence(output, 1500)}\n{command}"


class Rated(Protocol):
    relevance: float


Candidate = TypeVar("Candidate", bound=Rated)


def chosen(found: Sequence[Candidate], bar: float) -> list[Candidate]:
    """Those that reach the bar, without what falls far behind the best."""
    best = max((one.relevance for one in found), default=0.0)
    return [one for one in found if one.relevance >= max(bar, _BESIDE * best)]


class Briefing:
    def __init__(self, brain: Brain, sessions: Sessions | None = None, *, bar: float = BAR) -> None:
        self._brain = brain
        self._sessions = sessions or Sessions()
        self._bar = bar

    def context(self, event: Event) -> str:
        """What an agent should know at this moment; empty if there is nothing."""
        if event.kind is Kind.TOOL and not _is_failure(event := with_outcome(event, _OUTCOME_PATIENCE)):
            return ""  # most commands succeed; nobody waits for the session's state then
        where = repository(event.cwd) if event.cwd else None
        team = TeamMemory(self._brain, author=author(event.cwd or None))
        with self._sessions.changing(event.agent, event.session) as state:
            if event.kind is Kind.SESSION_START:
                return self._start(event, state, team, where)
            if event.kind is Kind.PROMPT:
                return self._fitting_experience(event, state, team, self.relevant(event.prompt, team, where))
            if event.kind is Kind.TOOL:
                found = self.relevant_to_failure(event.command, event.output, team, where)
                return self._fitting_experience(event, state, team, found)
        return ""

    def text_for(self, event: Event, team: TeamMemory, where: Place) -> str:
        """The briefing of a session that starts, for whoever asks for it."""
        return self._start(event, SessionState(event.agent, event.session), team, where)

    # A prompt, a failure

    def _fitting_experience(
        self, event: Event, state: SessionState, team: TeamMemory, found: Sequence[Experience]
    ) -> str:
        """What was found, without what this session was told or learned itself."""
        new = [one for one in found if one.id not in state.injected and one.memory.session != event.session]
        return self._tell([section_of(new)], PROMPT_BUDGET, event, state, team)

    def relevant(self, prompt: str, team: TeamMemory, where: Place) -> list[Experience]:
        """The experience that is told unasked for a prompt."""
        return chosen(self.candidates(prompt, team, where), self._bar)

    def relevant_to_failure(self, command: str, output: str, team: TeamMemory, where: Place) -> list[Experience]:
        """The experience that is told when a command fails."""
        return chosen(self.failure_candidates(command, output, team, where), self._bar)

    def candidates(self, prompt: str, team: TeamMemory, where: Place) -> list[Experience]:
        """What may be told for a prompt, the most relevant first, whatever the bar."""
        if not reads_like_work(prompt):
            return []
        return team.recall(prompt[:4000], repository=where, k=CONSIDERED, kinds=TOLD_KINDS)

    def failure_candidates(self, command: str, output: str, team: TeamMemory, where: Place) -> list[Experience]:
        """What may be told when a command fails."""
        question = question_of_failure(command, output)
        return team.recall(question, repository=where, k=CONSIDERED, kinds=TOLD_KINDS, failure=True)

    # The start of a session

    def _start(self, event: Event, state: SessionState, team: TeamMemory, where: Place) -> str:
        if event.source in ("compact", "resume"):
            sections = [Section("", [Line(line) for line in _restored(state)])]
        else:
            sections = self.sections(event, team, where)
        text = self._tell(sections, BUDGET - len(HEADING), event, state, team)
        return HEADING + text if text else ""

    def sections(self, event: Event, team: TeamMemory, where: Place) -> list[Section]:
        """All that may be told when a session starts, the most important first."""
        rules = team.recent(repository=where, kinds=("preference",), limit=_LOOKED_AT)
        decided = team.recent(repository=where, kinds=("decision", "codebase"), limit=_LOOKED_AT)
        rules.sort(key=lambda one: (one.is_imported, -one.count, -one.memory.timestamp))
        decided.sort(key=lambda one: (one.is_imported, -one.memory.importance, -one.memory.timestamp))
        return [
            Section("Rules of the team:", [Line(f"- {_headed(one.text)}", one.id) for one in rules[:8]]),
            self._last_time(event, team, where),
            Section(
                "Decisions and conventions here:",
                [Line(format_experience(one, _LONGEST_LINE), one.id) for one in decided[:8]],
            ),
            Section("Known to fail:", self._failing(team, where)),
            Section("Files that change most:", [Line(f"- {path}") for path in self._hot(team, where)]),
        ]

    def _last_time(self, event: Event, team: TeamMemory, where: Place) -> Section:
        name = where.id if isinstance(where, Repository) else where
        last = self._sessions.last_in(name, but=event.session) if name is not None else None
        if last is not None and last.ended is None and last.task:
            return Section("Where work stopped last time:", [Line(line) for line in _restored(last)])
        tasks = team.recent(repository=where, kinds=("task",), limit=1) if where is not None else []
        if not tasks:
            return Section("", ())
        first, *others = tasks[0].text.splitlines()
        lines = [Line(_cut(first, _LONGEST_LINE), tasks[0].id), *(Line(_cut(one, _LONGEST_LINE)) for one in others)]
        return Section(f"Where work stopped last time ({_when(tasks[0])}):", lines)

    def _failing(self, team: TeamMemory, where: Place) -> list[Line]:
        """Commands whose last output was a failure."""
        if where is None:
            return []
        latest: dict[str, Experience] = {}
        for one in team.recent(repository=where, kinds=("tool_output",), limit=100):
            attempt = str(one.memory.contents.get("attempt", ""))
            if attempt not in latest or _last_seen(one) > _last_seen(latest[attempt]):
                latest[attempt] = one
        failing = [one for one in latest.values() if one.memory.contents.get("failed")]
        shown = [(one, _cut(" ".join(one.text.split()), _LONGEST_LINE)) for one in failing[:3]]
        return [Line(f"- {text} ({_when(one)})", one.id) for one, text in shown]

    def _hot(self, team: TeamMemory, where: Place) -> list[str]:
        if where is None:
            return []
        files: Counter[str] = Counter()
        for one in team.recent(repository=where, limit=200):
            if time.time() - one.memory.timestamp < _MONTH:
                files.update(one.files)
        return [path for path, times in files.most_common(8) if times > 1]

    # What fits

    def _tell(
        self, sections: Iterable[Section], budget: int, event: Event, state: SessionState, team: TeamMemory
    ) -> str:
        """What fits. What it tells is noted in the session and in the audit log, and nothing else."""
        kept = fitted(sections, budget)
        memories = [line.memory for one in kept for line in one.lines if line.memory is not None]
        state.injected += [one for one in memories if one not in state.injected]
        team.audit("inject", memories, agent=event.agent, session=event.session)
        return text_of(kept)


def fitted(sections: Iterable[Section], budget: int) -> list[Section]:
    """As many whole lines as fit into so many characters, the first ones first."""
    found: list[Section] = []
    left = budget
    for title, lines in sections:
        kept: list[Line] = []
        for line in lines:
            cost = len(line.text) + 1 + (0 if kept else len(title) + 2)
            if line.text and cost <= left:
                kept.append(line)
                left -= cost
        if kept:
            found.append(Section(title, kept))
    return found


def text_of(sections: Iterable[Section]) -> str:
    """Sections as an agent reads them."""
    return "\n\n".join(
        "\n".join([*([one.title] if one.title else []), *(line.text for line in one.lines)]) for one in sections
    )


def section_of(found: Sequence[Experience]) -> Section:
    """The experience that is told for a prompt or a failure."""
    lines = [Line(format_experience(one, _LONGEST_TEXT), one.id) for one in found[:TOLD_AT_ONCE]]
    return Section("The team memory knows something that may help (check it before you rely on it):", lines)


def _is_failure(event: Event) -> bool:
    return event.action in ("shell", "test") and has_failed(event.command, event.output, event.failed)


def format_experience(one: Experience, longest: int) -> str:
    """An experience as it is told: what, in at most so many characters, who, when, at which commit."""
    by = f"{one.author}, " if one.author else ""
    at = f", commit {one.commit[:10]}" if one.commit else ""
    often = f", seen {one.count} times" if one.count > 1 else ""
    doubt = f", may be out of date: {one.stale}" if one.stale else ""
    text = _cut(one.text, longest) if longest > _LONGEST_LINE else _headed(one.text)
    return f"- [{one.kind.replace('_', ' ')}] {text} ({by}{_when(one)}{at}{often}{doubt}; memory {one.id})"


def _headed(text: str) -> str:
    """The first line of a text, and a sign if there is more."""
    first, _, more = text.strip().partition("\n")
    return _cut(first, _LONGEST_LINE) + (" …" if more.strip() else "")


def _cut(text: str, longest: int) -> str:
    """The whole lines of a text that fit into so many characters; of one that is too long alone, whole words."""
    if len(text) <= longest:
        return text
    head = text[: longest - 2]
    end = head.rfind("\n") if "\n" in head else head.rfind(" ")
    return head[: end if end > 0 else None].rstrip() + " …"


def _when(one: Experience) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(one.memory.timestamp))


def _last_seen(one: Experience) -> float:
    return max((float(source.get("when", 0)) for source in one.memory.contents.get("sources", ())), default=0.0)


def _restored(state: SessionState) -> list[str]:
    """A session's state in words."""
    parts: list[tuple[str, Callable[[], str]]] = [
        ("Task", lambda: state.task[:800]),
        ("Plan", lambda: "; ".join(state.plan)),
        ("Files open", lambda: ", ".join(state.open_files[-10:])),
        ("Edited", lambda: ", ".join(state.edited_files[-10:])),
        ("Still failing", lambda: "; ".join(one["command"] for one in state.failures.values())),
        ("Last output", lambda: _last_output(state)),
    ]
    return [f"{name}: {value}" for name, words in parts if (value := words())]


def _last_output(state: SessionState) -> str:
    if not state.outputs:
        return ""
    last = state.outputs[-1]
    return f"`{last['command']}`: {last['output'][-400:]}"
