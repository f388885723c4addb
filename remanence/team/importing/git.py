"""What git's history knows: what was fixed and how, what was tried and taken back, which files change together."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

from ...errors import InputError
from ..identity import Repository
from ..notes import Note

_FIX = re.compile(
    r"\b(?:fix(?:e[sd])?|bug(?:fix)?|hotfix|regression|crash(?:es)?|broken|resolve[sd]?)\b", re.IGNORECASE
)
_NO_FIX = re.compile(r"\b(?:typos?|lint|whitespace|formatting|changelog|comment|docs?)\b", re.IGNORECASE)
_REVERT = re.compile(r'^Revert(?:ed|s)? "?(.+?)"?$|^This reverts commit ([0-9a-f]{7,40})', re.IGNORECASE | re.MULTILINE)
_CONVENTION = re.compile(
    r"\b(?:from now on|we (?:now|no longer)|convention|instead of|deprecate[sd]?|switch(?:ed)? to|migrate[sd]? to|"
    r"replace[sd]? \S+ (?:with|by))\b",
    re.IGNORECASE,
)
_FIELDS = "%x1e%H%x1f%an <%ae>%x1f%at%x1f%s%x1f%b%x1f"
_MOST_FILES = 30  # a commit of more files says nothing about which belong together
_TOGETHER, _OFTEN = 0.6, 5  # share and number of commits from which on two files belong together
_LONG = 1200


@dataclass(slots=True)
class Commit:
    """One commit of the history."""

    id: str
    author: str
    when: float
    subject: str
    body: str
    files: list[str] = field(default_factory=list)


def count(root: Path) -> int:
    """How many commits there are, merges left out."""
    return int(_git(root, "rev-list", "--count", "--no-merges", "HEAD").strip() or 0)


def commits(root: Path) -> Iterator[Commit]:
    """The history, newest first, one commit at a time."""
    command = ["git", "-C", str(root), "log", "--no-merges", "--name-only", f"--format={_FIELDS}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        waiting = b""
        for chunk in iter(lambda: process.stdout.read(1 << 16), b""):  # type: ignore[union-attr]
            *whole, waiting = (waiting + chunk).split(b"\x1e")
            yield from (found for part in whole if (found := _commit(part)) is not None)
        if (found := _commit(waiting)) is not None:
            yield found
    if process.returncode:
        raise InputError(f"git could not tell the history of {root.name!r}; is it a repository?", field="path")


def _commit(raw: bytes) -> Commit | None:
    parts = raw.decode("utf-8", "replace").split("\x1f")
    if len(parts) != 6:
        return None
    name, author, when, subject, body, files = parts
    named = [line for line in files.splitlines() if line.strip()]
    return Commit(name.strip(), author, float(when or 0), subject.strip(), body.strip(), named)


def note_of(commit: Commit, repository: Repository) -> Note | None:
    """What a commit teaches; None for most."""
    said = f"{commit.subject}\n{commit.body}"
    reverted = _REVERT.search(said)
    if reverted is not None:
        what = reverted[1] or f"commit {(reverted[2] or '')[:10]}"
        why = re.sub(r"This reverts commit [0-9a-f]+\.?", "", commit.body).strip()
        text = f"Dead end, it was reverted: {what}." + (f" {why[:_LONG]}" if why else "")
        return _note(commit, repository, text, "decision", 0.7)
    if _FIX.search(commit.subject) and not _NO_FIX.search(commit.subject) and len(commit.files) <= _MOST_FILES:
        body = f"\n{commit.body[:_LONG]}" if commit.body else ""
        text = f"{commit.subject}{body}\nFix: changed {', '.join(commit.files[:10])}"
        note = _note(commit, repository, text, "error_fix", 0.6)
        note.fix = f"changed {', '.join(commit.files[:10])}"
        return note
    if _CONVENTION.search(said):
        body = f"\n{commit.body[:_LONG]}" if commit.body else ""
        return _note(commit, repository, f"{commit.subject}{body}", "decision", 0.5)
    return None


class Together:
    """Counts which files change in the same commits."""

    def __init__(self) -> None:
        self._alone: Counter[str] = Counter()
        self._pairs: Counter[tuple[str, str]] = Counter()

    def add(self, files: Sequence[str]) -> None:
        if len(files) <= _MOST_FILES:
            self._alone.update(files)
            self._pairs.update(combinations(sorted(files), 2))

    def notes(self, repository: Repository, author: str, when: float, limit: int = 50) -> list[Note]:
        """The pairs that belong together, as far as those commits tell."""
        found = []
        for (one, other), times in self._pairs.most_common():
            if times < _OFTEN:
                break
            for first, second in ((one, other), (other, one)):
                if times / self._alone[first] >= _TOGETHER:
                    text = (
                        f"When {first} changes, {second} usually changes too ({times} of {self._alone[first]} commits)."
                    )
                    found.append(
                        Note(
                            text,
                            "codebase",
                            author=author,
                            agent="git",
                            repository=repository.id,
                            commit=repository.commit,
                            files=[first, second],
                            when=when,
                            importance=0.4,
                            key=f"together {first} {second}",
                        )
                    )
                    break
        return found[:limit]


def _note(commit: Commit, repository: Repository, text: str, kind: str, importance: float) -> Note:
    return Note(
        text, kind, author=commit.author, agent="git", repository=repository.id, commit=commit.id,
        files=commit.files[:_MOST_FILES], when=commit.when, importance=importance, key=f"commit {commit.id}",
    )  # fmt: skip


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(f"git {arguments[0]} failed: {done.stderr.strip()[:200]}", field="path")
    return done.stdout
