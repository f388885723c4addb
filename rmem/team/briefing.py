"""Choose the context that hooks add for an agent. At the start of a session: a briefing with the team's rules, where
work stopped, decisions, known failures and hot files. After a prompt that reads like a task or an error, or a failed
command: the relevant experience with its author, date and commit, only above a relevance threshold and never twice in
a session."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from ..brain import Brain
from .capture import read_transcript
from .error_fixes import is_same_failure
from .events import Event, EventKind
from .identity import Repository, author, repository
from .memory import TeamMemory
from .notes import Experience
from .outcomes import has_failed, headline
from .sessions import Sessions, SessionState
from .tool_output import excerpt

Place = Repository | str | None
BAR = 0.5
"""The least relevance of an experience that is shown without a request; `rmem eval team` measures it."""
BUDGET, PROMPT_BUDGET = 4000, 2800  # characters
HEADING = "From the team memory:\n\n"
CONSIDERED, MOST_SHOWN = 6, 3  # memories that are considered, and that are shown at most
_SAME_FAILURE = 0.95  # relevance of the fix of the same error of the same command
_NEAR_BEST = 0.9  # least share of the best relevance for further memories
_LONGEST_LINE, _LONGEST_TEXT = 300, 1500  # characters of a line of the briefing; of an experience
_RECENT = 400  # newest memories of a repository that are searched for rules and decisions
SHOWN_KINDS = ("error_fix", "decision", "codebase", "preference", "task")
_OUTCOME_PATIENCE = 0.1  # seconds to wait for a command's outcome in the transcript; the agent waits meanwhile
_MONTH = 30 * 86_400.0
_ASIDE = (
    r"(?:y(?:es|ep|eah)?|no(?:pe)?|ok(?:ay)?|sure|please|thanks?(?: you)?|thx|go(?: on| ahead)?|continue|proceed|do it|"
    r"looks good|lgtm|nice|great|perfect|stop|wait|never ?mind|undo that|try again|commit(?: it| this)?|push(?: it)?)"
)
_CHATTER = re.compile(rf"\W*(?:{_ASIDE}\W+)*{_ASIDE}\W*", re.IGNORECASE)


class Line(NamedTuple):
    """A line of the context, and the id of the memory or of the session that it shows."""

    text: str
    memory: str | None = None
    session: str | None = None


class BriefingSection(NamedTuple):
    title: str
    lines: Sequence[Line]


def reads_like_work(prompt: str) -> bool:
    """Return whether a prompt is a task or an error, unlike "yes, go on"."""
    return len(prompt.split()) >= 3 and not _CHATTER.fullmatch(prompt)


def question_of_failure(command: str, output: str) -> str:
    """Build the question for a failed command: the line that names the error, then the lines that say more."""
    return f"{headline(output)}\n{excerpt(output, 1500)}\n{command}"


class Rated(Protocol):
    relevance: float


Candidate = TypeVar("Candidate", bound=Rated)


def select_relevant(found: Sequence[Candidate], bar: float) -> list[Candidate]:
    """Return the candidates that reach the bar and come close to the best one."""
    best = max((candidate.relevance for candidate in found), default=0.0)
    return [candidate for candidate in found if candidate.relevance >= max(bar, _NEAR_BEST * best)]


class Briefing:
    def __init__(self, brain: Brain, sessions: Sessions | None = None, *, bar: float = BAR) -> None:
        self._brain = brain
        self._sessions = sessions or Sessions()
        self._bar = bar

    def context(self, event: Event) -> str:
        """Return the context for an event; empty if there is none."""
        if event.kind is EventKind.TOOL and not _is_failure(event := read_transcript(event, _OUTCOME_PATIENCE)[0]):
            return ""  # most commands succeed, and need no session state
        where = repository(event.cwd) if event.cwd else None
        team = TeamMemory(self._brain, author=author(event.cwd or None))
        with self._sessions.changing(event.agent, event.session) as state:
            if event.kind is EventKind.SESSION_START:
                return self._start(event, state, team, where)
            if event.kind is EventKind.PROMPT:
                return self._show_experience(event, state, team, self.relevant(event.prompt, team, where))
            if event.kind is EventKind.TOOL:
                found = self.relevant_to_failure(event.command, event.output, team, where)
                return self._show_experience(event, state, team, found)
        return ""

    def text_for(self, event: Event, team: TeamMemory, where: Place) -> str:
        """Return the briefing of a session without recording it in the session's state."""
        return self._start(event, SessionState(event.agent, event.session), team, where)

    # A prompt, a failure

    def _show_experience(self, event: Event, state: SessionState, team: TeamMemory, found: Sequence[Experience]) -> str:
        """Render what was found, except what this session has seen or learned itself."""
        new = [
            experience
            for experience in found
            if experience.id not in state.injected
            and experience.memory.session != event.session
            and not (experience.kind == "task" and experience.memory.session in state.recounted)
        ]
        return self._render([experience_section(new)], PROMPT_BUDGET, event, state, team)

    def relevant(self, prompt: str, team: TeamMemory, where: Place) -> list[Experience]:
        """Return the experience to show for a prompt."""
        return select_relevant(self.candidates(prompt, team, where), self._bar)

    def relevant_to_failure(self, command: str, output: str, team: TeamMemory, where: Place) -> list[Experience]:
        """Return the experience to show for a failed command."""
        return select_relevant(self.failure_candidates(command, output, team, where), self._bar)

    def candidates(self, prompt: str, team: TeamMemory, where: Place) -> list[Experience]:
        """Return candidates for a prompt, most relevant first, whatever the bar."""
        if not reads_like_work(prompt):
            return []
        return team.recall(prompt[:4000], repository=where, k=CONSIDERED, kinds=SHOWN_KINDS)

    def failure_candidates(self, command: str, output: str, team: TeamMemory, where: Place) -> list[Experience]:
        """Return candidates for a failed command, most relevant first, whatever the bar."""
        question = question_of_failure(command, output)
        found = team.recall(question, repository=where, k=CONSIDERED, kinds=SHOWN_KINDS, failure=True)
        for experience in found:
            if is_same_failure(experience.memory.contents, command, output):
                experience.relevance = max(experience.relevance, _SAME_FAILURE)
        return sorted(found, key=lambda experience: -experience.relevance)

    # The start of a session

    def _start(self, event: Event, state: SessionState, team: TeamMemory, where: Place) -> str:
        if event.source in ("compact", "resume"):
            sections = [BriefingSection("", [Line(line) for line in _describe_session(state)])]
        else:
            sections = self.sections(event, team, where)
        text = self._render(sections, BUDGET - len(HEADING), event, state, team)
        return HEADING + text if text else ""

    def sections(self, event: Event, team: TeamMemory, where: Place) -> list[BriefingSection]:
        """Return all sections of a briefing, most important first."""
        rules = team.recent(repository=where, kinds=("preference",), limit=_RECENT)
        decisions = team.recent(repository=where, kinds=("decision", "codebase"), limit=_RECENT)
        rules.sort(key=lambda rule: (rule.is_imported, -rule.count, -rule.memory.timestamp))
        decisions.sort(key=lambda found: (found.is_imported, -found.memory.importance, -found.memory.timestamp))
        return [
            BriefingSection("Rules of the team:", [Line(f"- {_first_line(rule.text)}", rule.id) for rule in rules[:8]]),
            self._last_time(event, team, where),
            BriefingSection(
                "Decisions and conventions here:",
                [Line(format_experience(decision, _LONGEST_LINE), decision.id) for decision in decisions[:8]],
            ),
            BriefingSection("Known to fail:", self._known_failures(team, where)),
            BriefingSection("Files that change most:", [Line(f"- {path}") for path in self._hot_files(team, where)]),
        ]

    def _last_time(self, event: Event, team: TeamMemory, where: Place) -> BriefingSection:
        name = where.id if isinstance(where, Repository) else where
        last = self._sessions.last_in(name, but=event.session) if name is not None else None
        if last is not None and last.ended is None and last.task:
            lines = [Line(line, session=last.session) for line in _describe_session(last)]
            return BriefingSection("Where work stopped last time:", lines)
        tasks = team.recent(repository=where, kinds=("task",), limit=1) if where is not None else []
        if not tasks:
            return BriefingSection("", ())
        first, *others = tasks[0].text.splitlines()
        lines = [Line(_cut(first, _LONGEST_LINE), tasks[0].id), *(Line(_cut(line, _LONGEST_LINE)) for line in others)]
        whose = f"of {tasks[0].author} " if tasks[0].is_foreign else ""
        return BriefingSection(f"Where work {whose}stopped last time ({_when(tasks[0])}):", lines)

    def _known_failures(self, team: TeamMemory, where: Place) -> list[Line]:
        """List the commands that failed when they last ran."""
        if where is None:
            return []
        latest: dict[str, Experience] = {}
        for output in team.recent(repository=where, kinds=("tool_output",), limit=100):
            attempt = str(output.memory.contents.get("attempt", ""))
            if attempt not in latest or _last_seen(output) > _last_seen(latest[attempt]):
                latest[attempt] = output
        failing = [output for output in latest.values() if output.memory.contents.get("failed")]
        shown = [(output, _cut(" ".join(output.text.split()), _LONGEST_LINE)) for output in failing[:3]]
        return [Line(f"- {text} ({_when(output)})", output.id) for output, text in shown]

    def _hot_files(self, team: TeamMemory, where: Place) -> list[str]:
        if where is None:
            return []
        files: Counter[str] = Counter()
        for experience in team.recent(repository=where, limit=200):
            if time.time() - experience.memory.timestamp < _MONTH:
                files.update(experience.files)
        return [path for path, times in files.most_common(8) if times > 1]

    # What fits

    def _render(
        self, sections: Iterable[BriefingSection], budget: int, event: Event, state: SessionState, team: TeamMemory
    ) -> str:
        """Return what fits into the budget; record exactly that in the session and in the audit log."""
        fitting = fit_budget(sections, budget)
        memories = [line.memory for section in fitting for line in section.lines if line.memory is not None]
        state.injected += [memory for memory in memories if memory not in state.injected]
        sessions = {line.session for section in fitting for line in section.lines if line.session is not None}
        state.recounted += sorted(sessions - {*state.recounted})
        team.audit("inject", memories, agent=event.agent, session=event.session)
        return render_sections(fitting)


def fit_budget(sections: Iterable[BriefingSection], budget: int) -> list[BriefingSection]:
    """Keep the whole lines that fit into a budget of characters, in order."""
    fitting: list[BriefingSection] = []
    left = budget
    for title, lines in sections:
        kept: list[Line] = []
        for line in lines:
            cost = len(line.text) + 1 + (0 if kept else len(title) + 2)
            if line.text and cost <= left:
                kept.append(line)
                left -= cost
        if kept:
            fitting.append(BriefingSection(title, kept))
    return fitting


def render_sections(sections: Iterable[BriefingSection]) -> str:
    """Return sections as the text that an agent reads."""
    return "\n\n".join(
        "\n".join([*([section.title] if section.title else []), *(line.text for line in section.lines)])
        for section in sections
    )


def experience_section(found: Sequence[Experience]) -> BriefingSection:
    """Build the section of experience for a prompt or a failure."""
    lines = [Line(format_experience(experience, _LONGEST_TEXT), experience.id) for experience in found[:MOST_SHOWN]]
    return BriefingSection("The team memory knows something that may help (check it before you rely on it):", lines)


def _is_failure(event: Event) -> bool:
    return event.action in ("shell", "test") and has_failed(event.command, event.output, event.failed)


def format_experience(experience: Experience, longest: int) -> str:
    """Return a line with the text (at most `longest` characters), author, date and commit of an experience."""
    by = f"{experience.said_by}, " if experience.said_by else ""
    at = f", commit {experience.commit[:10]}" if experience.commit else ""
    often = f", seen {experience.count} times" if experience.count > 1 else ""
    doubt = f", may be out of date: {experience.stale}" if experience.stale else ""
    text = _cut(experience.text, longest) if longest > _LONGEST_LINE else _first_line(experience.text)
    kind = experience.kind.replace("_", " ")
    return f"- [{kind}] {text} ({by}{_when(experience)}{at}{often}{doubt}; memory {experience.id})"


def _first_line(text: str) -> str:
    """Return the first line of a text, with "…" if there is more."""
    first, _, more = text.strip().partition("\n")
    return _cut(first, _LONGEST_LINE) + (" …" if more.strip() else "")


def _cut(text: str, longest: int) -> str:
    """Shorten a text to whole lines within `longest` characters; a single long line to whole words."""
    if len(text) <= longest:
        return text
    head = text[: longest - 2]
    end = head.rfind("\n") if "\n" in head else head.rfind(" ")
    return head[: end if end > 0 else None].rstrip() + " …"


def _when(experience: Experience) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(experience.memory.timestamp))


def _last_seen(experience: Experience) -> float:
    return max((float(source.get("when", 0)) for source in experience.memory.contents.get("sources", ())), default=0.0)


def _describe_session(state: SessionState) -> list[str]:
    """Describe a session's state, one line for each part that is not empty."""
    parts: list[tuple[str, Callable[[], str]]] = [
        ("Task", lambda: state.task[:800]),
        ("Plan", lambda: "; ".join(state.plan)),
        ("Files open", lambda: ", ".join(state.open_files[-10:])),
        ("Edited", lambda: ", ".join(state.edited_files[-10:])),
        ("Still failing", lambda: "; ".join(failure["command"] for failure in state.failures.values())),
        ("Last output", lambda: _last_output(state)),
    ]
    return [f"{name}: {value}" for name, text_of_part in parts if (value := text_of_part())]


def _last_output(state: SessionState) -> str:
    if not state.outputs:
        return ""
    last = state.outputs[-1]
    return f"`{last['command']}`: {last['output'][-400:]}"
