"""Find what outlasts a session in prompts: rules, preferences, decisions, and the task. Pasted output, complaints and
questions do not count; a possible rule waits until somebody confirms it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+|;\s+(?=(?:always|never|we)\b)", re.IGNORECASE)
_PASTED = re.compile(r"```.*?(?:```|\Z)|<(\w[\w-]*)\b[^>]*>.*?</\1>", re.DOTALL)
# Lines of logs, tracebacks, warnings, diffs, prompts of a shell and quotations.
_OUTPUT = re.compile(
    r"^\s*(?:[>$#|+@]|at |File \"|Traceback|E\s{2,}|\d{4}-\d\d-\d\d|\d\d:\d\d|\[\w[\w .:-]*\]|npm |"
    r"\(?(?:warn(?:ing)?|error|fatal|hint|note|info|debug|deprecat\w*)\b\W*[:)\]]|\S+\.\w{1,4}:\d+|"
    r"\S*(?:Error|Warning|Exception):|"
    r"(?:[a-z_]+\.)+[a-z_]+ )|^\s{4,}\S|\bDeprecationWarning\b",
    re.IGNORECASE,
)
_LEAD = (
    r"^(?:[-*•❌✅⚠]\ufe0f?\s+|\d+[.)]\s+)*(?:\w[\w /&-]{2,40}: (?=always |never |don't ever |prefer ))?"
    r"(?:(?:so|and|also|but|ok(?:ay)?|please|btw|by the way|note|rule|remember|important|"
    r"reminder|one (?:more )?thing|for (?:the )?(?:future|record)|"
    r"in (?:this|our) (?:repo(?:sitory)?|project|codebase|team)|as a rule|in general|generally|here)\b[,:]?\s+)*"
    r"(?:(?:when(?:ever)?|if|before|after) [^,.]{3,60}, )?"
)
_IMPERATIVE = (
    r"(?!been\b|be\b|had\b|was\b|is\b|gets?\b|fails?\b|works?\b|returns?\b|happen|the same\b|mind\b"
    r"|(?!need|feed|embed|speed)[a-z]+ed\b|[a-z]+ing\b)[a-z]{2,}"
)
_NO_HABIT = r"(?:(?:actually|really|just|even) )?(?:know|care|need|have|want|see|get|think|expect|mind)\b"
_RULE = re.compile(
    _LEAD + rf"(?:(?:always|never) {_IMPERATIVE}|from now on\b|"
    r"in (?:the )?future,? (?!it\b|this\b|[^.]*\b(?:will|might|would|could)\b)|"
    r"(?:don't|do not) ever\b|prefer \S+|i (?:always )?prefer\b|we (?:strongly )?prefer\b|remember (?:that|to)\b|"
    r"(?:our|the|a) (?:convention|rule|policy|standard|house rule)(?: here)? is\b|"
    r"(?:we|you|agents?|everybody|everyone|nobody) (?:(?:must|should|shall) (?:always|never|only|not)|"
    r"(?:may|can) (?:never|only|not))\b|"
    rf"we (?:always|never|only) (?!{_NO_HABIT})[a-z]|"
    r"(?:all|every|new|no) [\w ]{2,30} (?:must|should|shall)\b|"
    r"[\w<>/ -]{2,40} (?:must|should|shall) (?:always|never)\b)",
    re.IGNORECASE,
)
_HABIT = re.compile(
    _LEAD + rf"we (?:use|don't use|do not use|write|run|deploy|keep|(?:don't|do not)(?! {_NO_HABIT})|require)\b",
    re.IGNORECASE,
)
_HERE = re.compile(
    r"\b(?:here|in (?:this|our) (?:repo(?:sitory)?|project|codebase|team|organi[sz]ation)|by convention|instead of|"
    r"rather than|not \w+ for|for all|for every|everywhere)\b",
    re.IGNORECASE,
)
_WISH = re.compile(
    _LEAD + r"(?:please (?:don't|do not|use|avoid|always|never)|(?:don't|do not|avoid|use|stop) \S+)", re.IGNORECASE
)
_COMPLAINT = re.compile(
    r"\b(?:why|keeps? \w+ing|still|again|broken|doesn't work|does not work|not working|fails?|failing|failed|crash\w*|"
    r"times? out|hangs?|i (?:get|got|see|saw)|it (?:always|never)|this (?:always|never)|that (?:always|never))\b",
    re.IGNORECASE,
)
_DECIDED = re.compile(
    _LEAD + r"(?:we(?:'ve| have)? decided\b|decision:|let's (?:go with|use|switch|drop|keep|stick)\b|"
    r"we(?:'ll| will) (?:use|go with|keep|drop|switch)\b|we(?:'re| are) (?:switching|moving|going) (?:to|with)\b)",
    re.IGNORECASE,
)
_NO_REQUEST = re.compile(r"^\s*(?:/\w|<[\w-]+|\[Request interrupted|Caveat:|!)")
_ASIDE = re.compile(
    r"^\W*(?:(?:y(?:es|ep|eah)?|no|ok(?:ay)?|sure|please|thanks?(?: you)?|(?:hi|hello|hey)(?: there)?|"
    r"good (?:morning|evening)|"
    r"go (?:on|ahead)|continue|proceed|looks good|great|perfect|are you there)\W*)+$",
    re.IGNORECASE,
)
_FEWEST, _MOST = 4, 60  # words of a sentence that is kept


class Statement(NamedTuple):
    """A sentence worth storing; `sure` if it is stated as a rule or a decision."""

    text: str
    kind: str
    sure: bool


def own_words(prompt: str) -> str:
    """Return a prompt without pasted text."""
    return "\n".join(line for line in _PASTED.sub("\n", prompt).splitlines() if not _OUTPUT.search(line))


def statements(prompt: str) -> Iterator[Statement]:
    """Yield the rules, preferences and decisions in a prompt."""
    for sentence in _SENTENCE.split(own_words(prompt)):
        plain = sentence.strip()
        if not _FEWEST <= len(plain.split()) <= _MOST or plain.endswith(("?", ":")):
            continue
        if _DECIDED.match(plain):
            yield Statement(plain, "decision", True)
        elif _RULE.match(plain):
            yield Statement(plain, "preference", not _COMPLAINT.search(plain))
        elif _HABIT.match(plain) and not _COMPLAINT.search(plain):
            yield Statement(plain, "preference", _HERE.search(plain) is not None)
        elif _WISH.match(plain) and not _COMPLAINT.search(plain):
            yield Statement(plain, "preference", False)


def is_request(prompt: str) -> bool:
    """Return whether a prompt asks for work, unlike a greeting, a command of the tool or "yes, go on"."""
    return len(own_words(prompt).split()) >= _FEWEST and not _NO_REQUEST.match(prompt) and not _ASIDE.match(prompt)


# Plans: each tool has its own format.

PLANS = ("todowrite", "todo_write", "update_plan", "write_todos", "update_todo")
_DONE = re.compile(r"^\s*[-*] \[(.)\] (.+)$", re.MULTILINE)
_NUMBER = re.compile(r'"id": ?"?(\d+)|#(\d+)')
_LONG, _STEPS = 200, 20


def plan_of(given: Mapping[str, Any]) -> list[str]:
    """Return the steps of a plan that is given completely."""
    steps = given.get("todos") or given.get("plan") or []
    if isinstance(steps, str):  # Copilot's is a list in Markdown
        marks = {"x": "completed", "X": "completed", " ": "pending"}
        return [f"[{marks.get(mark, 'in_progress')}] {name.strip()}"[:_LONG] for mark, name in _DONE.findall(steps)][
            :_STEPS
        ]
    found = []
    for step in steps[:_STEPS] if isinstance(steps, list) else ():
        if isinstance(step, Mapping):
            names = (step.get(key) for key in ("content", "step", "title", "description", "subject"))
            found.append(f"[{step.get('status', '')}] {next(filter(None, names), '')}"[:_LONG])
    return found


def step_of(tool: str, given: Mapping[str, Any], output: str, plan: list[str]) -> list[str] | None:
    """Return a plan after one step was added or changed (Claude Code's TaskCreate and TaskUpdate); None for other
    tools. Steps are numbered from 1 in the order of their creation."""
    if tool == "TaskCreate":
        return [*plan, f"[pending] {given.get('subject') or given.get('description') or ''}"[:_LONG]][:_STEPS]
    if tool != "TaskUpdate":
        return None
    match = _NUMBER.search(output) if not given.get("taskId") else None
    number = str(given.get("taskId") or (match and (match[1] or match[2])) or "")
    at = int(number) - 1 if number.isdigit() else -1
    if not 0 <= at < len(plan):
        return plan
    status, _, name = plan[at].partition("] ")
    status = str(given.get("status") or status.removeprefix("["))
    changed = f"[{status}] {given.get('subject') or name}"[:_LONG]
    return [*plan[:at], changed, *plan[at + 1 :]]
