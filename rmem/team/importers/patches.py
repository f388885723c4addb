"""Read a commit's patch: the functions it touches, the tests it adds, and its changelog entries. Changelogs and test
names often use the words of people who meet the problem."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

TEST = re.compile(r"(?:^|/)(?:tests?|specs?|__tests__)/|(?:^|/)test_[^/]+$|[._-](?:test|spec)s?\.[^/.]+$")
_CHANGELOG = re.compile(
    r"(?:^|/)(?:CHANGE\w*|HISTORY|NEWS|RELEASES?|release-notes)[^/]*$|(?:^|/)(?:newsfragments|changelog\.d|changes)/",
    re.IGNORECASE,
)
_DOCUMENT = re.compile(r"\.(?:md|rst|txt|adoc|json|ya?ml|toml|lock|svg|html|css)$", re.IGNORECASE)
_HUNK = re.compile(r"^@@ [^@]+ @@ ?(.*)$")
_DEFINED = re.compile(
    r"^\s*(?:(?:export|public|private|protected|static|async|pub(?:\([^)]*\))?|default|final|abstract|unsafe)\s+)*"
    r"(?:def|fn|func|fun|function\*?|class|struct|enum|trait|interface)\s+(?:\([^)]*\)\s*)?([A-Za-z_]\w*)"
    r"|^\s*(?:[\w$]+\.)*([\w$]+)\s*[=:]\s*(?:async\s+)?function\b|^\s*(?:const|let|var)\s+([\w$]+)\s*=\s*(?:async\s*)?\("
)
_CASE = re.compile(r"""\b(?:it|test|describe|context|specify)\(\s*(['"`])(.+?)\1""")
_ROLE = re.compile(r":\w+:`~?\.?([^`]*)`|[`*]")  # marks of reStructuredText and Markdown
_HEADING = re.compile(r"(?i)^(?:version\b|released\b|unreleased\b|#+|[=~^-]{3,}|v?\d+(?:\.\d+)+\b)")
_NUMBER = re.compile(r"(?:#|GH-|:(?:issue|pr|gh|pull):`#?|/(?:issues|pull)/)(\d+)")
_BULLET = re.compile(r"(?:[-*+•]|\d+\.)\s|$")
_MOST_LINES, _LONGEST_LINE = 5000, 1000
_FUNCTIONS, _TESTS, _LONGEST_CHANGELOG, _LONGEST_TESTS = 12, 10, 600, 400


@dataclass(slots=True)
class Patch:
    """The parts of a patch that are kept; `add` takes its lines as git prints them."""

    functions: dict[str, None] = field(default_factory=dict)
    tests: dict[str, None] = field(default_factory=dict)
    later_entries: list[str] = field(default_factory=list)
    """Changelog entries of newer commits about this one."""
    _changelog: list[str] = field(default_factory=list)
    _path: str = ""
    _lines: int = 0

    def add(self, line: str) -> None:
        self._lines += 1
        if self._lines > _MOST_LINES or len(line) > _LONGEST_LINE:
            return
        if line.startswith("diff --git "):
            self._path = line.rstrip('"').rpartition(" b/")[2]
        elif line.startswith(("+++ ", "--- ")):
            return
        elif found := _HUNK.match(line):
            self._add_code(found[1])
        elif line.startswith(("+", "-")):
            if not _CHANGELOG.search(self._path):
                self._add_code(line[1:])
            elif line[0] == "+":
                self._changelog.append(line[1:].strip())

    def _add_code(self, line: str) -> None:
        if _DOCUMENT.search(self._path) or _CHANGELOG.search(self._path):
            return
        defined = _DEFINED.match(line)
        name = next(filter(None, defined.groups()), "") if defined else ""
        if TEST.search(self._path):
            case = _CASE.search(line)
            name = case[2] if case else name
            if name and len(self.tests) < _TESTS:
                self.tests[name] = None
        elif name and len(self.functions) < _FUNCTIONS:
            self.functions[name] = None

    def entries_by_number(self) -> Iterator[tuple[str, str]]:
        """Yield the changelog entries with each number of an issue or pull request that they name."""
        entries: list[str] = []
        for line in self._changelog:
            if _BULLET.match(line) or not entries:
                entries.append(line)
            else:
                entries[-1] += f" {line}"
        for entry in entries:
            for number in dict.fromkeys(_NUMBER.findall(entry)):
                yield number, entry

    def lines(self) -> list[str]:
        """Return the lines for the memory of the commit."""
        kept = [
            line
            for line in (*self._changelog, *self.later_entries)
            if re.search(r"[A-Za-z]{3}", line) and not _HEADING.match(line)
        ]
        entries = _ROLE.sub(lambda found: found[1] or "", " ".join(kept))[:_LONGEST_CHANGELOG].strip()
        tests = ", ".join(self.tests)[:_LONGEST_TESTS]
        parts = (("Changelog", entries), ("In", ", ".join(self.functions)), ("Tests", tests))
        return [f"{name}: {text}" for name, text in parts if text]
