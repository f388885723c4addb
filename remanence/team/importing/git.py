"""What git's history knows: what was fixed and how, what was tried and taken back, which files change together."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path, PurePosixPath

from ...errors import InputError
from ..identity import Repository
from ..notes import Note

_KIND = r"^(?:\[[^\]]{1,20}\]\s*)?(?:[\w./-]{1,20}(?:\([^)]*\))?!?:\s*)?"
_FIX = re.compile(
    _KIND + r"(?:(?:bug|hot)?fix(?:e[sd]|ing)?|resolve[sd]?|repair(?:s|ed)?|correct(?:s|ed)?|work(?:s|ed)? around)\b"
    r"(?!up!)|^(?:bug|hot)?fix(?:\([^)]*\))?!?:|^fix/|\bfix(?:es|ed)? #\d+"
    r"|^(?!.*\b(?:add|test|document|describe|simulate)s?\b).*\b(?:crash(?:es|ed|ing)?|deadlocks?|regressions?|"
    r"memory leaks?|race conditions?|data loss|segfaults?|infinite loops?|off[- ]by[- ]one)\b",
    re.IGNORECASE,
)
_NO_FIX = re.compile(
    r"\b(?:typos?|spelling|lint(?:er|ing)?|whitespace|indentation|formatting|changelog|comments?|docs?|readme|"
    r"docstrings?|wording|review|findings)\b|^(?:fixup|squash|amend)!",
    re.IGNORECASE,
)
_REVERTED = re.compile(r'^Revert(?:ed|s)?:? "(.+)"$', re.IGNORECASE)
_AGAIN = re.compile(r'^(?:Revert(?:ed|s)?:? "Revert\b|Re-?apply\b)', re.IGNORECASE)
_REVERTS = re.compile(r"This reverts commit ([0-9a-f]{7,40})[^.\n]*\.?", re.IGNORECASE)
_CONVENTION = re.compile(
    r"\b(?:instead of|rather than|deprecate[sd]?|switch(?:ed)? (?:\S+ )?to|migrate[sd]? (?:\S+ ){0,3}to|drop support|"
    r"replace[sd]? \S+(?: \S+)? (?:with|by))\b",
    re.IGNORECASE,
)
_FROM_NOW_ON = re.compile(
    r"\b(?:from now on|we (?:now|no longer|always|never)|(?:our|the) convention)\b", re.IGNORECASE
)
_TRAILER = re.compile(r"^(?:[A-Z][\w]*(?:-[\w]+)+|Change-Id|Fixes|Closes|Refs?): .*$|^\(cherry picked from .*\)$", re.M)
_BOT = re.compile(r"\[bot\]|\bbot@|dependabot|renovate", re.IGNORECASE)
_FIELDS = "%x1e%H%x1f%P%x1f%aN%x1f%aE%x1f%at%x1f%s%x1f%b%x1f"
_MOST_FILES = 30  # a commit of more files says nothing about which belong together
_NAMED_FILES = 10
_TOGETHER, _OFTEN = 0.7, 5  # share and number of commits from which on two files belong together
_LIFT = 2.0  # so much oftener than that file changes anyway
_COMPANIONS = 4
_LONG = 1200
_BY_THE_WAY = re.compile(
    r"(?:^|/)(?:[^/]*(?:lock|-lock)\.(?:json|ya?ml|toml)|[^/]+\.lock|go\.sum|CHANGE(?:S|LOG)[^/]*|HISTORY[^/]*|NEWS[^/]*|"
    r"VERSION|__init__\.py|[^/]*\.(?:min\.(?:js|css)|snap|map|po|pot|pb\.go|svg|png)|[^/]*_pb2(?:_grpc)?\.py|"
    r"[^/]*\.(?:generated|gen|g)\.[^/]+)$|(?:^|/)(?:vendor|node_modules|dist|generated|__snapshots__|migrations)/",
    re.IGNORECASE,
)
_TEST = re.compile(r"(?:^|/)(?:tests?|specs?|__tests__)/|(?:^|/)test_[^/]+$|[._-](?:test|spec)s?\.[^/.]+$")


@dataclass(slots=True)
class Commit:
    """One commit of the history. A first commit has no files: it brings all there are, or stands where a shallow
    clone was cut."""

    id: str
    author: str
    when: float
    subject: str
    body: str
    files: list[str] = field(default_factory=list)
    by_bot: bool = False


def count(root: Path) -> int:
    """How many commits there are, merges left out."""
    if not _git(root, "rev-list", "--max-count=1", "--all").strip():
        raise InputError(f"{root.name!r} has no commits yet", field="path")
    return int(_git(root, "rev-list", "--count", "--no-merges", "HEAD").strip() or 0)


def files_now(root: Path) -> frozenset[str]:
    """The files that the repository has today."""
    told = _git(root, "ls-tree", "-r", "-z", "--name-only", "--full-tree", "HEAD")
    return frozenset(told.split("\0")) - {""}


def commits(root: Path) -> Iterator[Commit]:
    """The history, newest first, one commit at a time, from one process of git. Renames are not looked for: that
    would read the contents of files, which a partial clone has to fetch."""
    command = [
        "git", "-C", str(root), "-c", "core.quotepath=off", "-c", "log.showSignature=false", "log", "--no-merges",
        "--no-color", "--no-renames", "--encoding=UTF-8", "--name-only", f"--format={_FIELDS}",
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        waiting = b""
        for chunk in iter(lambda: process.stdout.read(1 << 16), b""):  # type: ignore[union-attr]
            *whole, waiting = (waiting + chunk).split(b"\x1e")
            yield from (found for part in whole if (found := _commit(part)) is not None)
        if (found := _commit(waiting)) is not None:
            yield found
    if process.returncode:
        raise InputError(f"git could not tell the history of {root.name!r}", field="path")


def _commit(raw: bytes) -> Commit | None:
    parts = raw.decode("utf-8", "replace").split("\x1f")
    if len(parts) != 8:
        return None
    name, parents, person, address, when, subject, body, files = parts
    named = [line for line in files.splitlines() if line.strip()] if parents.strip() else []
    said = re.sub(r"\n{3,}", "\n\n", _TRAILER.sub("", body)).strip()
    author = address.strip() or person.strip() or "unknown"
    by_bot = bool(_BOT.search(f"{person} {address}"))
    return Commit(name.strip(), author, float(when or 0), subject.strip(), said, named, by_bot)


class History:
    """What commits teach, told newest first: a revert that was itself reverted later teaches nothing."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._in_again: set[str] = set()

    def note_of(self, commit: Commit) -> Note | None:
        """What a commit teaches; None for most."""
        if commit.by_bot:
            return None
        if _AGAIN.match(commit.subject):
            return self._brought_back(commit)
        taken_back = _REVERTED.match(commit.subject)
        if taken_back is not None or _REVERTS.search(commit.body):
            return None if commit.id in self._in_again else self._dead_end(commit)
        if _is_fix(commit):
            changed = f"changed {_listed(commit.files)}"
            note = self._note(commit, f"{_told(commit)}\nFix: {changed}", "error_fix", 0.6)
            note.error, note.fix = commit.subject, changed
            return note
        if _CONVENTION.search(commit.subject) or _FROM_NOW_ON.search(f"{commit.subject}\n{commit.body}"):
            return self._note(commit, _told(commit), "decision", 0.5)
        return None

    def _dead_end(self, commit: Commit) -> Note:
        named, taken_back = _REVERTED.match(commit.subject), _REVERTS.search(commit.body)
        what = named[1] if named else commit.subject
        which = f" (commit {taken_back[1][:10]})" if taken_back else ""
        why = _REVERTS.sub("", commit.body).strip()
        text = f"Tried and taken back: {what}{which}." + (f" Why: {why[:_LONG]}" if why else "")
        return self._note(commit, text, "decision", 0.7)

    def _brought_back(self, commit: Commit) -> Note | None:
        """Where the revert that this one undoes was learned before, it no longer holds."""
        undone = _REVERTS.search(commit.body)
        if undone is None:
            return None
        self._in_again.add(undone[1])
        what = re.sub(r'^(?:Revert\S* "Revert\S* |Re-?apply )"?|"+$', "", commit.subject, flags=re.IGNORECASE)
        note = self._note(commit, f"It was taken back once and is in again: {what}.", "decision", 0.5)
        note.supersedes = self._note(replace(commit, id=undone[1]), "revert", "decision", 0.7).id
        return note

    def _note(self, commit: Commit, text: str, kind: str, importance: float) -> Note:
        return Note(
            text, kind, author=commit.author, agent="git", repository=self._repository.id, commit=commit.id,
            files=commit.files[:_MOST_FILES], when=commit.when, importance=importance, key=f"commit {commit.id}",
        )  # fmt: skip


def _is_fix(commit: Commit) -> bool:
    words = len(re.findall(r"\w{2,}", commit.subject))
    return (
        bool(_FIX.search(commit.subject))
        and not _NO_FIX.search(commit.subject)
        and 0 < len(commit.files) <= _MOST_FILES
        and (words >= 4 or bool(commit.body))  # "Fix tests" helps nobody
    )


def _told(commit: Commit) -> str:
    return f"{commit.subject}\n{commit.body[:_LONG]}" if commit.body else commit.subject


def _listed(files: Sequence[str]) -> str:
    more = len(files) - _NAMED_FILES
    return ", ".join(files[:_NAMED_FILES]) + (f" and {more} more" if more > 0 else "")


class Together:
    """Counts which files change in the same commits. What changes with everything (lock files, changelogs, generated
    files) and what anybody would look for (the tests of a module) is left out."""

    def __init__(self) -> None:
        self._commits = 0
        self._alone: Counter[str] = Counter()
        self._pairs: Counter[tuple[str, str]] = Counter()

    def add(self, files: Sequence[str]) -> None:
        if 0 < len(files) <= _MOST_FILES:
            telling = sorted(name for name in files if not _BY_THE_WAY.search(name))
            self._commits += 1
            self._alone.update(telling)
            self._pairs.update(combinations(telling, 2))

    def notes(
        self, repository: Repository, author: str, when: float, present: Collection[str], limit: int = 20
    ) -> list[Note]:
        """For each file those that belong to it, as far as these commits tell; the surest first."""
        beside: dict[str, list[tuple[int, str]]] = {}
        for (one, other), times in self._pairs.items():
            if times < _OFTEN or one not in present or other not in present or _tests(one, other):
                continue
            # A pair is told once: of the file that more rarely changes alone.
            first, second = sorted((one, other), key=lambda name: (self._alone[name], name))
            share = times / self._alone[first]
            if share >= _TOGETHER and share >= _LIFT * self._alone[second] / self._commits:
                beside.setdefault(first, []).append((times, second))
        surest = sorted(beside, key=lambda name: (-sum(times for times, _ in beside[name]), name))
        return [self._note(name, beside[name], repository, author, when) for name in surest[:limit]]

    def _note(self, name: str, beside: list[tuple[int, str]], repository: Repository, author: str, when: float) -> Note:
        best = sorted(beside, key=lambda pair: (-pair[0], pair[1]))[:_COMPANIONS]
        told = ", ".join(f"{other} ({times})" for times, other in best)
        text = f"Of the {self._alone[name]} commits that changed {name}, most changed these files too: {told}."
        return Note(
            text, "codebase", author=author, agent="git", repository=repository.id, commit=repository.commit,
            files=[name, *(other for _, other in best)], when=when, importance=0.3, key=f"together {name}",
        )  # fmt: skip


def _tests(one: str, other: str) -> bool:
    """Whether one of two files seems to be the test of the other."""
    if bool(_TEST.search(one)) == bool(_TEST.search(other)):
        return False
    test, code = (one, other) if _TEST.search(one) else (other, one)
    words = set(re.split(r"[^a-z0-9]+", PurePosixPath(test).stem.lower()))
    return bool(words & set(re.split(r"[^a-z0-9]+", PurePosixPath(code).stem.lower())))


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)
    except FileNotFoundError:
        raise InputError("git is not installed, and its history cannot be read without it", field="path") from None
    if done.returncode:
        raise InputError(f"git {arguments[0]} failed: {done.stderr.strip()[:200]}", field="path")
    return done.stdout
