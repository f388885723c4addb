"""Find the success that fixed a failure, and what was done between the two.

A command is fixed by the same command, a test by a run that includes it; other successes prove nothing. An edit belongs
to the failure that names its file, else to the latest one."""

from __future__ import annotations

import difflib
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from .dialects.payloads import patch_in
from .outcomes import headline
from .tool_output import signature

_CD = re.compile(r"""^cd\s+("[^"]*"|'[^']*'|[^\s;&]+)\s*(?:&&|;)\s*""")
_LEAD = re.compile(
    r"^(?:[A-Za-z_]\w*=\S+\s+|(?:time|sudo|env|npx|uv run|poetry run|pipenv run|hatch run|pnpm exec|yarn exec)\s+"
    r"|timeout\s+\S+\s+|(?:\S*/)?bin/(?=\w)|python[\d.]*\s+-m\s+(?=(?:pytest|unittest|mypy|ruff|flake8|black|tox)\b))+"
)
_AFTER = re.compile(r"\s*(?:2>&1|\|\s*(?:tail|head|tee|grep|cat|less)\b.*|\d?>\s*\S+|;\s*echo\b.*|\|\|\s*true)")
_LOUDNESS = re.compile(
    r"\s(?:-v+|-q+|-x|-s|-rA|--verbose|--quiet|--silent|--tb=\S+|--maxfail=\d+|--color=\S+|--no-header|--lf|--ff)(?=\s|$)"
)
_RUNNERS = (
    "pytest", "unittest", "jest", "vitest", "mocha", "rspec", "phpunit", "go test", "cargo test", "npm test",
    "npm run test", "yarn test", "pnpm test", "mvn test", "gradle test",
)  # fmt: skip
_NARROWING = ("-k", "-m", "-t", "--filter", "-run", "--testNamePattern", "--deselect", "--ignore")
_FAILED_TEST = re.compile(
    r"^(?:FAILED|ERROR|FAIL)[:\s]\s*([\w./-]+(?:::[\w.\[\]-]+)*)|^_{3,} ERROR collecting (\S+)", re.M
)
_FILE = re.compile(r"[\w./-]*[\w-]\.[A-Za-z]\w{0,4}\b")
_REMEDY = re.compile(
    r"\b(?:(?:pip|pip3|uv|npm|pnpm|yarn|cargo|go|gem|bundle|poetry|apt(?:-get)?|brew|conda) (?:\S+ )*?(?:install|add|"
    r"ci|get|update|upgrade|remove|sync|tidy|i)\b|sed -i|git (?:checkout|restore|apply|stash|merge|rebase|pull|revert|"
    r"submodule|clean)|chmod|mkdir|touch|cp |mv |ln |rm |alembic|migrate|createdb|systemctl|service |docker|kill|"
    r"export |patch |make (?:clean|install|deps|migrate)|ruff (?:check --fix|format)|prettier --write|eslint --fix|"
    r"black |tee )|[^2&]>>? ?\w"
)
_OLD = ("old_string", "oldString", "old_str")
_NEW = ("new_string", "newString", "new_str")
_WHOLE = ("content", "file_text", "contents")
_LONG_EDIT, _LONG_REASON = 300, 400
_MANY_NAMES = 40
_PATCHED = re.compile(r"^(?:\*\*\* (?:Add|Update|Delete) File: (.+)|\+\+\+ (?:b/)?(\S+).*)$", re.MULTILINE)
_BECAUSE = re.compile(
    r"\b(?:because|since|due to|caused? by|root cause|turned out|turns out|"
    r"the (?:problem|issue|bug|cause|reason|failure|error)(?: here)? (?:was|is)|"
    r"(?:was|were) (?:missing|wrong|never|not|no longer)|(?:didn|doesn|wasn|isn)'t|(?:did|does) not)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_HASHES = 1 << 64
_MARKUP = re.compile(r"^(?:[-*#>\d.]+\s+)+|\*\*|__")


def command_key(command: str, cwd: str = "", root: str = "") -> str:
    """Return a key that is equal for attempts at the same command: the folder (empty for the repository's root) and the
    program with its targets, without verbosity, filters and wrappers."""
    words, folder = command.strip(), cwd
    while True:
        moved = _CD.match(words)
        rest = _LEAD.sub("", words[moved.end() :] if moved else words)
        if moved:
            folder = os.path.normpath(os.path.join(folder, moved[1].strip("\"'")))
        if rest == words:
            break
        words = rest
    base = root or cwd
    if base and (folder == base or folder.startswith(os.path.join(base, ""))):
        folder = os.path.relpath(folder, base).removeprefix(".")
    words = " ".join(_LOUDNESS.sub("", _AFTER.sub("", words)).split())[:300]
    return f"{folder}$ {words}" if folder else words


def failing_tests(output: str) -> list[str]:
    return list(dict.fromkeys(first or other for first, other in _FAILED_TEST.findall(output)))[:_MANY_NAMES]


def is_same_failure(fix: Mapping[str, Any], command: str, output: str) -> bool:
    """Return whether a fix is of this error of this command; `fix` is the contents of its memory."""
    before, error = str(fix.get("command") or ""), str(fix.get("error") or "")
    if not before or not error or command_key(before) != command_key(command):
        return False
    return signature(headline(error)) == signature(headline(output))


def files_named(command: str, output: str) -> list[str]:
    """Return the file names, without folders, in a failing command and its output."""
    named = [os.path.basename(name) for name in _FILE.findall(f"{command}\n{output[-50_000:]}")]
    return list(dict.fromkeys(named))[-_MANY_NAMES:]


def fixed_by(key: str, failures: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the failures that a success of `key` ends: its own, and those of tests that it also ran."""
    return [other for other in failures if other == key or _includes(key, other, failures[other])]


def _includes(key: str, other: str, failure: Mapping[str, Any]) -> bool:
    done, before = _test_run(key), _test_run(other)
    if done is None or before is None or done[:2] != before[:2] or (done[3] and done[3] != before[3]):
        return False
    scope, wanted = done[2], before[2]
    if not scope or (wanted and all(_within(test, scope) for test in wanted)):
        return True
    tests = failure.get("tests") or []
    return bool(tests) and all(_within(test, scope) for test in tests)


def _within(test: str, scope: Sequence[str]) -> bool:
    return any(
        test == selected or test.startswith((selected.rstrip("/") + "/", selected + "::", selected + "["))
        for selected in scope
    )


def _test_run(key: str) -> tuple[str, str, list[str], list[str]] | None:
    """Parse a test run into folder, runner, targets and selection; None for other commands."""
    folder, _, command = key.rpartition("$ ")
    runner = next((name for name in _RUNNERS if command == name or command.startswith(f"{name} ")), None)
    if runner is None:
        return None
    try:
        words = shlex.split(command[len(runner) :])
    except ValueError:
        return None
    narrowing = [word for word in words if word.startswith(_NARROWING)]
    if narrowing:
        return folder, runner, [], words
    return folder, runner, [word for word in words if not word.startswith("-")], []


def belongs_to(path: str, failures: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the failures that an edit of a file is for."""
    name = os.path.basename(path)
    stem = re.sub(r"^test_|[._]test$", "", name.partition(".")[0])
    naming = []
    for key, failure in failures.items():
        stems = {re.sub(r"^test_|[._]test$", "", other.partition(".")[0]) for other in failure.get("files", ())}
        if name in failure.get("files", ()) or stem in stems:
            naming.append(key)
    latest = sorted(failures, key=lambda key: failures[key]["time"])[-1:]
    return naming or latest


def is_remedy(command: str) -> bool:
    """Return whether a command changes something, and so may have fixed a failure."""
    return _REMEDY.search(command) is not None


class Change(NamedTuple):
    """What an edit changed, in short, and as a number that is equal however the same edit is worded: the hashes of the
    tokens that came less those that went. The numbers of successive edits add up."""

    text: str
    net: int
    is_whole: bool = False
    """Whether the file was written anew; then nothing is known of what went."""
    is_unknown: bool = False
    """Whether neither is known; then the file itself shows it."""

    @classmethod
    def joined(cls, changes: Iterable[Change]) -> Change:
        made = list(changes)
        text = "; ".join(dict.fromkeys(filter(None, (change.text for change in made))))
        return cls(text, sum(change.net for change in made) % _HASHES, any(change.is_whole for change in made))


def token_hash(text: str) -> int:
    """Return the sum of the hashes of a text's tokens; white space does not count."""
    return sum(_hash(token) for token in _TOKEN.findall(text)) % _HASHES


def _hash(token: str) -> int:
    return int.from_bytes(blake2b(token.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def fix_key(name: str, changes: Mapping[str, Sequence[Mapping[str, Any]]], fix: str) -> str:
    """Return what makes a fix the same as another: the error and the changes of each file, by their numbers; without
    any (lines in another order, commands that were run), by their words."""
    nets = {path: sum(edit.get("net", 0) for edit in edits) % _HASHES for path, edits in changes.items()}
    done = " ".join(f"{path} {net:x}" for path, net in sorted(nets.items()) if net)
    return f"{signature(name)} {done or signature(fix)}"


def change_in(given: Mapping[str, Any], path: str) -> Change:
    """Summarise an edit of one file: removed lines and added lines."""
    pairs = [given, *(edit for edit in given.get("edits") or () if isinstance(edit, Mapping))]
    changes = [_difference(_first(edit, _OLD), _first(edit, _NEW)) for edit in pairs if _first(edit, _OLD + _NEW)]
    if changes:
        joined = Change.joined(changes)
        return joined._replace(text=_cut(joined.text, _LONG_EDIT))
    whole = _first(given, _WHOLE)
    if whole:
        lines = [line.strip() for line in whole.splitlines() if line.strip()]
        text = _cut(f"wrote {len(lines)} lines: `{' '.join(lines)}`", _LONG_EDIT)
        return Change(text, token_hash(whole), is_whole=True)
    return _patch_summary(patch_in(given), path)


def _difference(old: str, new: str) -> Change:
    before, after = old.splitlines(), new.splitlines()
    gone: list[str] = []
    come: list[str] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind != "equal":
            gone += before[a:b]
            come += after[c:d]
    went, came = (_cut(" ".join(" ".join(part).split()), _LONG_EDIT // 2) for part in (gone, come))
    if went and came:
        text = f"`{went}` → `{came}`"
    else:
        text = f"added `{came}`" if came else f"removed `{went}`" if went else ""
    return Change(text, (token_hash(new) - token_hash(old)) % _HASHES)


def _patch_summary(patch: str, path: str) -> Change:
    """Summarise what a patch does to one file."""
    heads = [(found.end(), (found[1] or found[2]).strip(), found.start()) for found in _PATCHED.finditer(patch)]
    if not heads:
        return Change("", 0)
    ends = [start for _, _, start in heads[1:]] + [len(patch)]
    own = [patch[at:end] for (at, name, _), end in zip(heads, ends, strict=True) if path.endswith(name.lstrip("./"))]
    lines = (own[0] if own else patch[heads[0][0] : ends[0]]).splitlines()
    gone = [line[1:] for line in lines if line.startswith("-") and not line.startswith("---")]
    come = [line[1:] for line in lines if line.startswith("+") and not line.startswith("+++")]
    change = _difference("\n".join(gone), "\n".join(come))
    return change._replace(text=_cut(change.text, _LONG_EDIT))


def reason_in(message: str, fix: str, *, alone: bool) -> str:
    """Return the sentences of an agent's closing message that explain a failure. If several failures were fixed, only
    those about this fix."""
    words = set(re.findall(r"[A-Za-z_]\w{3,}", fix))
    found = []
    for sentence in _SENTENCE.split(re.sub(r"```.*?```", "", message, flags=re.DOTALL)):
        plain = _MARKUP.sub("", sentence.strip()).strip()
        if _BECAUSE.search(plain) and (alone or words & set(re.findall(r"[A-Za-z_]\w{3,}", plain))):
            found.append(plain)
    return _cut(" ".join(found[:2]), _LONG_REASON)


def _first(given: Mapping[str, Any], names: Sequence[str]) -> str:
    return next((str(given[name]) for name in names if given.get(name)), "")


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
