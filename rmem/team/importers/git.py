"""Make notes from git's history: what was fixed and how, what was tried and reverted, which files change together."""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from itertools import combinations
from pathlib import Path, PurePosixPath

from ...errors import InputError
from ..identity import Repository
from ..notes import Note
from .patches import TEST, Patch

_KIND = r"^(?:\[[^\]]{1,20}\]\s*)?(?:[\w./-]{1,20}(?:\([^)]*\))?!?:\s*)?"
_FIX = re.compile(
    _KIND + r"(?:(?:bug|hot)?fix(?:e[sd]|ing)?|repair(?:s|ed)?|correct(?:s|ed)?|work(?:s|ed)? around|"
    r"resolve[sd]?(?= .*(?:\b(?:bug|issue|problem|error|failure|warning|deadlock|conflict|race|crash|leak)|#\d)))\b"
    r"(?!up!)|^(?:bug|hot)?fix(?:\([^)]*\))?!?:|^fix/"
    r"|^(?!.*\b(?:add|test|document|describe|simulate)s?\b).*\b(?:crash(?:es|ed|ing)?|deadlocks?|regressions?|"
    r"memory leaks?|race conditions?|data loss|segfaults?|infinite loops?|off[- ]by[- ]one)\b",
    re.IGNORECASE,
)
_NO_FIX = re.compile(
    r"\b(?:typos?|spelling|grammar|lint(?:er|ing)?|whitespace|indentation|formatting|changelog|comments?|docs?|documentation|readme|"
    r"docstrings?|wording|review|findings|jsdoc|javadoc|ruff|flake8|black|isort|prettier|eslint|pylint|mypy|pyright|rustfmt|clippy|"
    r"flaky|dev version|version number|broken links?|links? in|layout|examples?|badges?|unused|ci|travis|"
    r"github actions?|workflows?|release|type (?:hints?|annotations?|errors?)|typing|merge|build)\b|"
    r"^(?:fixup|squash|amend)!|^reverts?\b|"
    r"^[\w()-]+!?: (?:enhance|improve|refactor|clean|simplify|rename|bump|update|upgrade)|"
    r"^fix(?:e[sd])?[ /](?:\w+ ){0,3}tests?\b|^(?:docs?|tests?|ci|build|chore|style|refactor|release)(?:\([^)]*\))?!?:",
    re.IGNORECASE,
)
# Git's own form, perhaps with the number of a pull request or a remark behind it: Revert "Use threads" (#12)
_REVERTED = re.compile(
    r"^(?:[\w./-]{1,20}(?:\([^)]*\))?!?:\s*)?"
    r"(?:Revert(?:ed|s)?:?|(Re-?(?:appl(?:y|ies|ied)|land(?:s|ed)?|merge[sd]?|introduce[sd]?)|Restore[sd]?):?)"
    r" [\"“](.+)[\"”]\.?\s*(.*)$",
    re.IGNORECASE,
)
_REVERT_IN_WORDS = re.compile(r"revert(?:ed|s|ing)?\b", re.IGNORECASE)
_REVERTS = re.compile(
    r"^This reverts commits? ([0-9a-f]{7,40})(?:\.{2,3}[0-9a-f]{7,40})?"
    r"(?:, reversing\s+changes made to [0-9a-f]{7,40})?[^.\n]*\.?",
    re.IGNORECASE | re.MULTILINE,
)
_PARTLY = re.compile(r"\bpart of commit\b|\bpartial(?:ly)? revert", re.IGNORECASE)
_MERGE = re.compile(r"^Merge (?:pull request|branch|remote-tracking branch)\b", re.IGNORECASE)
_CONFLICTS = re.compile(r"^#?\s*Conflicts:\s*\n(?:[#\t ]+\S+\n?)*", re.MULTILINE)
_REQUEST = re.compile(r"\s*\((?:[\w.-]+/[\w.-]+)?(?:#|GH-)(\d+)\)\s*$")
_REFERENCE = re.compile(
    r"^\W*(?:(?:refs?|fix(?:es|ed)?|close[sd]?|resolve[sd]?|see|reverts|follow[- ]?up (?:on|to|of))\b:?\s*)?"
    r"(?:\(?(?:[\w./-]*#\d+|GH-\d+|https?://\S+)\)?[\s,.]*(?:and )?)+$",
    re.IGNORECASE,
)
_CONVENTION = re.compile(
    _KIND + r"(?:(?:use[sd]?|prefer(?:red)?|choose|chose|require[sd]?) .+ (?:instead of|rather than|over) |"
    r"deprecate[sd]? |switch(?:ed)? (?:\S+ ){0,3}to |"
    r"migrate[sd]? (?:\S+ ){0,3}to |drop(?:ped)? (?:\S+ ){0,2}support|replace[sd]? \S+(?: \S+)? (?:with|by) )",
    re.IGNORECASE,
)
_FROM_NOW_ON = re.compile(
    r"\b(?:from now on|we (?:now (?:use|require|prefer|expect|run|write|keep)|no longer)|(?:our|the) convention)\b",
    re.IGNORECASE,
)
_CC = re.compile(r"(?:/|\b)cc:?(?:[ ,]+@[\w-]+)+", re.IGNORECASE)
_TRAILER = re.compile(r"^(?:[A-Z][\w]*(?:-[\w]+)+|Change-Id|Fixes|Closes|Refs?): .*$|^\(cherry picked from .*\)$", re.M)
_BOT = re.compile(r"\[bot\]|\bbot@|dependabot|renovate", re.IGNORECASE)
_FIELDS = "%x1e%H%x1f%P%x1f%aN%x1f%aE%x1f%at%x1f%s%x1f%b%x1f"
_UPDATE = re.compile(r"(?i)^(?:update|merge|apply|address|revert)\w* (?:\S+$|branch|suggestion|review|commit)")
_SQUASHED = re.compile(r"^[ \t]*[*-] .*$(?:\n[ \t]+(?![*-] )\S.*$)*|^-{4,}\s*$", re.MULTILINE)  # with wrapped lines
_BESIDE_THE_CODE = re.compile(
    r"(?:^|/)(?:docs?|examples?|\.github|\.circleci|\.travis|ci|news|newsfragments|changelog\.d|requirements)(?:/|\.)|"
    r"\.(?:md|rst|adoc|txt|texi|pod|[1-9]|ya?ml|toml|cfg|ini|lock|json|html|css|svg|png)$|"
    r"(?:^|/)(?:Makefile|Dockerfile|setup\.py|tox\.ini|noxfile\.py|conftest\.py|LICENSE|NOTICE|AUTHORS|CHANGE\w*|HISTORY|"
    r"NEWS)[^/]*$",
    re.IGNORECASE,
)
_HOUSEKEEPING = re.compile(
    r"^(?:lint|style|refactor|tests?|docs?|chore|ci|build|release)(?:\([^)]*\))?!?:|\b(?:docs|docstrings?)\b",
    re.IGNORECASE,
)
_ROUTINE = re.compile(
    r"^(?:lint|style|tests?|docs?|ci|release)(?:\([^)]*\))?!?:|^(?:fixup|squash|amend)!|^(?:merge|release|bump)\b|"
    r"\b(?:typos?|spelling|lint(?:er|ing)?|flake8|whitespace|(?:re)?format(?:ted|ting)? (?:code|with)|changelog|"
    r"release notes|copyright|(?:prepare|preparing) (?:for )?(?:the )?(?:release|\d)|version (?:bump|number)|"
    r"(?:bump|update|set)(?:ed|s|d)? (?:the )?(?:version|dependenc)\w*|pre-commit|up to date)\b|^v?\d+(?:\.\d+)+\w*$",
    re.IGNORECASE,
)
_MANIFEST = re.compile(r"(?:^|/)(?:pyproject\.toml|setup\.(?:py|cfg)|package\.json|Cargo\.toml|go\.mod|pom\.xml)$")
_CLOSED = re.compile(r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?|refs?):? #(\d+)", re.IGNORECASE)
_MOST_FILES = 30  # a commit of more files says nothing about which belong together
_NAMED_FILES = 10
_REASONED, _EXPLAINED, _BARE, _COUNTED, _PLAIN = 0.45, 0.4, 0.3, 0.25, 0.2
"""How important a commit is: one that says why, one that says something, one with a subject only, files that change
together, one that is neither a fix nor a decision. Notes that people give their agents begin at 0.5."""
_TOGETHER, _OFTEN = 0.7, 5  # share and number of commits from which on two files belong together
_LIFT = 2.0  # so much oftener than that file changes anyway
_COMPANIONS = 4
_LONG, _LONG_STEPS = 1200, 500
_BY_THE_WAY = re.compile(
    r"(?:^|/)(?:[^/]*(?:lock|-lock)\.(?:json|ya?ml|toml)|[^/]+\.lock|go\.sum|CHANGE(?:S|LOG)[^/]*|HISTORY[^/]*|NEWS[^/]*|"
    r"VERSION|package\.json|Cargo\.toml|go\.mod|pyproject\.toml|__init__\.py|"
    r"[^/]*\.(?:min\.(?:js|css)|snap|map|po|pot|pb\.go|svg|png)|[^/]*_pb2(?:_grpc)?\.py|"
    r"[^/]*\.(?:generated|gen|g)\.[^/]+)$|(?:^|/)(?:vendor|node_modules|dist|generated|__snapshots__|migrations|\.github)/",
    re.IGNORECASE,
)


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
    is_first: bool = False
    is_whole: bool = True  # whether git could read all contents for the patch
    patch: Patch = field(default_factory=Patch)


def commit_ids(root: Path) -> list[str]:
    """Return the ids of all commits but merges, newest first."""
    if not _git(root, "rev-list", "--max-count=1", "--all").strip():
        raise InputError(f"{root.name!r} has no commits yet", field="path")
    return _git(root, "rev-list", "--no-merges", "HEAD").split()


def files_now(root: Path) -> frozenset[str]:
    listing = _git(root, "ls-tree", "-r", "-z", "--name-only", "--full-tree", "HEAD")
    return frozenset(listing.split("\0")) - {""}


def commits(root: Path, ids: Sequence[str]) -> Iterator[Commit]:
    """Yield these commits. Renames are not detected. Where the contents of a file are missing (snapshots without large
    files, partial clones), a commit has no patch, or part of one, and `is_whole` is False."""
    with_patches = not _is_partial(root)  # git would fetch the contents, one file at a time
    resource = resources.files(__package__) / "gitattributes"  # how functions begin in each language
    with resources.as_file(resource) as attributes:
        command = [
            "git", "-C", str(root), "-c", "core.quotepath=off", "-c", f"core.attributesFile={attributes}", "diff-tree",
            "--stdin", "--always", "-r", "--no-color", "--no-renames", "--no-ext-diff", "--no-textconv",
            "--encoding=UTF-8", "--raw", *(("--patch", "--unified=0") if with_patches else ()), f"--format={_FIELDS}",
        ]  # fmt: skip
        done = 0
        while done < len(ids):  # git stops at what it cannot read: go on with the commit after it
            before = done
            for commit in _diff_tree(command, ids[done:]):
                commit.is_whole &= with_patches
                done += 1
                yield commit
            if done == before:
                raise InputError(f"git could not read commit {ids[done][:10]} of {root.name!r}", field="path")


def _diff_tree(command: list[str], ids: Sequence[str]) -> Iterator[Commit]:
    """Run git until it ends; if it fails, the last commit is the one whose patch could not be made."""
    last = None
    with tempfile.TemporaryFile() as given:
        given.write("".join(f"{number}\n" for number in ids).encode())
        given.seek(0)
        with subprocess.Popen(command, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            assert process.stdout is not None
            for commit in _read_commits(line.decode("utf-8", "replace") for line in process.stdout):
                if last is not None:
                    yield last
                last = commit
    if last is not None:
        last.is_whole = process.returncode == 0
        yield last


def _read_commits(lines: Iterable[str]) -> Iterator[Commit]:
    """Parse the output of git: a header that ends with its own separator, the files, the patch."""
    header, commit = "", None
    for line in lines:
        if line.startswith("\x1e"):
            if commit is not None:
                yield commit
            header, commit = line, None
        elif commit is None:
            header += line
        elif line.startswith(":") and not commit.is_first:
            commit.files.append(line.rstrip("\n").rpartition("\t")[2])
        elif not commit.is_first:
            commit.patch.add(line.rstrip("\r\n"))
        if commit is None and header.endswith("\x1f\n"):
            commit = _commit(header)
    if commit is not None:
        yield commit


def _commit(header: str) -> Commit:
    name, parents, person, address, when, subject, body, _ = header.lstrip("\x1e").split("\x1f", 7)
    message = re.sub(r"\n{3,}", "\n\n", _TRAILER.sub("", body.replace("\r\n", "\n"))).strip()
    author = address.strip() or person.strip() or "unknown"
    by_bot = bool(_BOT.search(f"{person} {address}"))
    commit = Commit(name.strip(), author, min(float(when or 0), time.time()), subject.strip(), message, by_bot=by_bot)
    commit.is_first = not parents.strip()
    return commit


def _is_partial(root: Path) -> bool:
    command = ["git", "-C", str(root), "config", "--get-regexp", r"^remote\..*\.(promisor|partialclonefilter)$"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


class History:
    """Makes notes of commits, given newest first. A change that was reverted and applied again makes none."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._reapplied: set[str] = set()  # reverts that were undone: their ids, and titles of what they reverted
        self._subjects: set[str] = set()  # of newer commits
        self._closed: set[str] = set()  # issues that newer commits say they close
        self._learned: set[str] = set()
        self._entries: dict[str, list[str]] = {}  # changelog entries of newer commits, by the numbers that they name
        self._reverted: set[str] = set()  # commits that were reverted, by their ids and titles

    def learn(self, commit: Commit) -> Note | None:
        """Return the note of a commit; None for most."""
        entries = (entry for number in _numbers(commit) for entry in self._entries.get(number, ()))
        commit.patch.later_entries = list(dict.fromkeys(entries))
        note = self._learn(commit)
        for number, entry in commit.patch.entries_by_number():
            self._entries.setdefault(number, []).append(entry)
        return note

    def _learn(self, commit: Commit) -> Note | None:
        if commit.by_bot:
            return None
        reverted = _parse_revert(commit.subject)
        title = _title(commit.subject)
        later, closed = title in self._subjects, set(self._closed)
        self._subjects.add(title)
        if reverted is not None:
            what, remark, times = reverted
            return self._dead_end(commit, what, remark, closed) if times % 2 else self._reapplication(commit, what)
        self._closed |= set(_CLOSED.findall(f"{commit.subject}\n{commit.body}"))
        if f"{title}\n{commit.body}" in self._learned or later or {commit.id, title} & self._reverted:
            return None  # cherry-picked, made again, or reverted; the note of the revert covers it
        self._learned.add(f"{title}\n{commit.body}")
        if _is_fix(commit) and not _is_convention(commit):
            changed = f"changed {_list_files(commit.files)}"
            note = self._note(
                commit,
                _describe(commit, f"Fix: {changed}"),
                "error_fix",
                _EXPLAINED if _explanation(commit.body) else _BARE,
            )
            note.error, note.fix = commit.subject, changed
            return note
        if _is_convention(commit):
            return self._note(commit, _describe(commit), "decision", _EXPLAINED if _explanation(commit.body) else _BARE)
        if _is_change(commit):
            return self._note(commit, _describe(commit, f"Changed: {_list_files(commit.files)}"), "codebase", _PLAIN)
        return None

    def _dead_end(self, commit: Commit, what: str, remark: str, closed: set[str]) -> Note | None:
        undone = _REVERTS.search(commit.body)
        why = _explanation(f"{remark}\n{commit.body}")
        title = _title(what)
        is_back = commit.id in self._reapplied or title in self._reapplied or title in self._subjects
        if is_back or closed & set(_CLOSED.findall(what)) or not _is_of_code(commit):
            return None
        if _PARTLY.search(commit.body) or (_MERGE.match(what) and not why):
            return None  # most of it stayed; the name of a branch says nothing
        self._reverted |= {title, *(undone.groups() if undone else ())}
        which = f" (commit {undone[1][:10]})" if undone else ""
        text = f"Tried and reverted: {_REQUEST.sub('', what).rstrip('.')}{which}."
        note = self._note(
            commit, text + (f" Why: {why[:_LONG]}" if why else ""), "decision", _REASONED if why else _BARE
        )
        note.details = {"takes_back": undone[1]} if undone else {}
        return note

    def _reapplication(self, commit: Commit, what: str) -> Note | None:
        """Supersede the note of the revert that this commit undoes."""
        self._reapplied.add(_title(what))
        undone = _REVERTS.search(commit.body)
        if undone is None:
            return None
        self._reapplied.add(undone[1])
        text = f"It was reverted once and is in again: {_REQUEST.sub('', what).rstrip('.')}."
        note = self._note(commit, text, "decision", _BARE)
        note.supersedes = self._note(replace(commit, id=undone[1]), "revert", "decision", _BARE).id
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
        and len(commit.files) <= _MOST_FILES
        and _is_of_code(commit)
        and (words >= 4 or bool(commit.body))  # "Fix tests" helps nobody
    )


def _is_convention(commit: Commit) -> bool:
    in_subject = _CONVENTION.search(commit.subject) and not _HOUSEKEEPING.search(commit.subject)
    in_body = not _FIX.search(commit.subject) and _FROM_NOW_ON.search(_explanation(commit.body))
    return bool(in_subject or in_body) and _is_of_code(commit)


def _is_change(commit: Commit) -> bool:
    """Return whether the subject says what changed, and it is code, dependencies or has an explanation."""
    of_program = _is_of_code(commit) or any(_MANIFEST.search(name) for name in commit.files)
    return (
        len(re.findall(r"\w{2,}", _REQUEST.sub("", commit.subject))) >= 2
        and not _ROUTINE.search(commit.subject)
        and 0 < len(commit.files) <= _MOST_FILES
        and (of_program or bool(_explanation(commit.body)))
    )


def _is_of_code(commit: Commit) -> bool:
    """Return whether a commit changes code, and not only documents, tests or settings."""
    return any(not _BESIDE_THE_CODE.search(name) and not TEST.search(name) for name in commit.files)


def _parse_revert(subject: str) -> tuple[str, str, int] | None:
    """Return the subject that a commit reverts, the remark after it and the number of nested reverts; None if it is no
    revert."""
    subject_of_reverted, remark, times = subject, "", 0
    while (found := _REVERTED.match(_REQUEST.sub("", subject_of_reverted))) is not None:
        times += 2 if found[1] else 1
        subject_of_reverted, remark = found[2].strip(), remark or _REQUEST.sub("", found[3]).strip(" ,-–—:.")
    times += bool(times and _REVERT_IN_WORDS.match(subject_of_reverted))
    return (subject_of_reverted, remark, times) if times else None


def _title(subject: str) -> str:
    """Normalize a subject for comparison: no pull request numbers, punctuation or capitals."""
    return re.sub(r"\W+", " ", _REQUEST.sub("", subject)).strip().casefold()


def _numbers(commit: Commit) -> list[str]:
    """Return the numbers of the pull request of a commit and of the issues that it closes."""
    return [*_REQUEST.findall(commit.subject), *_CLOSED.findall(f"{commit.subject}\n{commit.body}")]


def _explanation(body: str) -> str:
    """Return the explanation in a message: no lists of squashed commits, references or git's own words."""
    kept = [
        line
        for line in _SQUASHED.sub("", _CONFLICTS.sub("", _REVERTS.sub("", _CC.sub("", body)))).splitlines()
        if not _REFERENCE.match(line)
    ]
    explanation = re.sub(r"\n{3,}", "\n\n", "\n".join(line for line in kept if not _parse_revert(line.strip()))).strip()
    return explanation if len(re.findall(r"\w{2,}", explanation)) >= 3 else ""


def _describe(commit: Commit, *more: str) -> str:
    """Return the text of a note: the message of a commit, then the summary of its patch."""
    steps = "\n".join(_steps(commit))[:_LONG_STEPS]
    lines = [commit.subject, _explanation(commit.body)[:_LONG], steps, *more, *commit.patch.lines()]
    return "\n".join(line for line in lines if line)


def _steps(commit: Commit) -> list[str]:
    """List the commits that were squashed into one, without "* Linting" and what its subject says already."""
    steps = dict.fromkeys(" ".join(line.split()) for line in _SQUASHED.findall(commit.body))
    known = _title(commit.subject)
    return [line for line in steps if len(re.findall(r"\w{2,}", line)) >= 3 and not _ROUTINE.search(line[2:])
            and not _UPDATE.match(line[2:]) and _title(line) not in known]  # fmt: skip


def _list_files(files: Sequence[str]) -> str:
    more = len(files) - _NAMED_FILES
    return ", ".join(files[:_NAMED_FILES]) + (f" and {more} more" if more > 0 else "")


class FilePairs:
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
        """Return a note for each file that usually changes with others, the surest first."""
        beside: dict[str, list[tuple[int, str]]] = {}
        for (left, right), times in self._pairs.items():
            if times < _OFTEN or left not in present or right not in present or _is_test_of(left, right):
                continue
            # A pair appears once: in the note of the file that more rarely changes alone.
            first, second = sorted((left, right), key=lambda name: (self._alone[name], name))
            share = times / self._alone[first]
            if share >= _TOGETHER and share >= _LIFT * self._alone[second] / self._commits:
                beside.setdefault(first, []).append((times, second))
        surest = sorted(beside, key=lambda name: (-sum(times for times, _ in beside[name]), name))
        return [self._note(name, beside[name], repository, author, when) for name in surest[:limit]]

    def _note(self, name: str, beside: list[tuple[int, str]], repository: Repository, author: str, when: float) -> Note:
        best = sorted(beside, key=lambda pair: (-pair[0], pair[1]))[:_COMPANIONS]
        companions = ", ".join(f"{other} ({times})" for times, other in best)
        text = f"Of the {self._alone[name]} commits that changed {name}, most changed these files too: {companions}."
        return Note(
            text, "codebase", author=author, agent="git", repository=repository.id, commit=repository.commit,
            files=[name, *(other for _, other in best)], when=when, importance=_COUNTED, key=f"together {name}",
        )  # fmt: skip


def _is_test_of(left: str, right: str) -> bool:
    """Return whether one of two files seems to be the test of the other."""
    if bool(TEST.search(left)) == bool(TEST.search(right)):
        return False
    test, code = (left, right) if TEST.search(left) else (right, left)
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
