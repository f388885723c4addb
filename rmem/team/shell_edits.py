"""Find the edits in a shell command: some models have no tool for edits, and write files with `apply_patch`, `sed -i`,
`cat > file <<EOF`, `git apply` or a Python script in a here-document. What is not understood is no edit."""

from __future__ import annotations

import ast
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .dialects.payloads import files_in
from .error_fixes import Change, change_in

_HERE_DOCUMENT = re.compile(r"(?<!<)<<(-?)\s*(['\"]?)(\w+)\2")
_SHELL = re.compile(r"\s*(?:\S*/)?(?:ba|z)?sh\s+-l?c\s")
_STATEMENT_END = re.compile(r"&&|\|\||;|\n")
_REDIRECTION = re.compile(r"(?<![\d&<])(>>?)\s*([^\s&|<>;]+)")
_SUBSTITUTION = re.compile(r"(?<![A-Za-z_\\])s([/|#,:@!])((?:\\.|(?!\1).)*)\1((?:\\.|(?!\1).)*)\1", re.DOTALL)
_IN_PLACE = re.compile(r"-(?!-)\w*i|--in-place")
_ELSEWHERE = ("/dev/", "/tmp/", "/var/tmp/", "/proc/")
_LONGEST = 65_536  # characters of a command that are read
_MOST = 20  # edits


class ShellEdit(NamedTuple):
    """A file that a command changed, and the change."""

    path: str
    change: Change


class _Statement(NamedTuple):
    text: str
    document: str | None
    """The here-document, if it has one."""


def shell_edits(command: str, cwd: str) -> tuple[list[ShellEdit], str]:
    """Return the edits in a command, and the command without them: `sed -i … && pytest` is an edit and `pytest`."""
    wrapped = _words(command) if _SHELL.match(command) else []
    if len(wrapped) == 3:
        command = wrapped[2]
    edits: list[ShellEdit] = []
    rest: list[str] = []
    folder = cwd
    for statement in _statements(command[:_LONGEST]):
        words = _words(statement.text)
        if words[:1] == ["cd"] and len(words) == 2:
            folder = os.path.normpath(os.path.join(folder, words[1]))
        found = [] if len(edits) >= _MOST else list(_edits_of(statement, words))
        edits += [ShellEdit(os.path.join(folder, path), change) for path, change in found if _is_project_file(path)]
        if not found:
            rest.append(statement.text)
    if all(_words(text)[:1] in (["cd"], ["set"]) for text in rest):
        rest = []
    return edits[:_MOST], " && ".join(rest) if edits else command


def _is_project_file(path: str) -> bool:
    return not path.startswith(_ELSEWHERE) and "$" not in path and "`" not in path


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return []


def _statements(command: str) -> Iterator[_Statement]:
    """Split a command at `&&`, `||`, `;` and line ends outside of quotes; each with its here-document."""
    at, start, quote, document = 0, 0, "", None
    while at < len(command):
        char = command[at]
        if char == "\\" and quote != "'":
            at += 2
            continue
        if quote or char in "'\"":
            quote = ("" if char == quote else quote) if quote else char
        elif char == "#" and (at == start or command[at - 1].isspace()):
            if text := command[start:at].strip():
                yield _Statement(text, document)
                document = None
            line_end = command.find("\n", at)
            at = start = len(command) if line_end < 0 else line_end
            continue
        elif char == "<" and document is None and (mark := _HERE_DOCUMENT.match(command, at)):
            line_end = command.find("\n", at)
            if line_end < 0:
                return
            body, after = _here_document(command, line_end + 1, mark[3])
            document = body
            command = command[: mark.start()] + command[mark.end() : line_end] + "\n" + command[after:]
            continue
        elif end := _STATEMENT_END.match(command, at):
            if text := command[start:at].strip():
                yield _Statement(text, document)
                document = None
            at = start = end.end()
            continue
        at += 1
    if text := command[start:].strip():
        yield _Statement(text, document)


def _here_document(command: str, start: int, delimiter: str) -> tuple[str, int]:
    """Return a here-document and where the command goes on behind it."""
    end = re.compile(rf"^\t*{re.escape(delimiter)}[ \t]*$", re.MULTILINE).search(command, start)
    if end is None:
        return command[start:], len(command)
    return command[start : end.start()], min(end.end() + 1, len(command))


def _edits_of(statement: _Statement, words: Sequence[str]) -> Iterator[ShellEdit]:
    text, document = statement
    name = os.path.basename(words[0]) if words else ""
    if name in ("apply_patch", "applypatch"):
        yield from _patch_edits(document or " ".join(words[1:]))
    elif document is not None and (words[:2] == ["git", "apply"] or name == "patch"):
        yield from _patch_edits(document)
    elif name in ("sed", "gsed", "perl") and any(_IN_PLACE.match(word) for word in words[1:]):
        yield from _sed_edits(words)
    elif re.fullmatch(r"python[\d.]*", name) and (document is not None or words[1:2] == ["-c"]):
        yield from _python_edits(document if document is not None else " ".join(words[2:3]))
    elif name in ("cat", "echo", "printf", "tee"):
        yield from _redirect_edits(text, name, words, document)


def _patch_edits(patch: str) -> Iterator[ShellEdit]:
    given = {"patch": patch}
    yield from (ShellEdit(path, change_in(given, path)) for path in files_in(given) if path != "/dev/null")


def _sed_edits(words: Sequence[str]) -> Iterator[ShellEdit]:
    """Edits by `sed -i` and `perl -pi`: the script is the argument of -e, else the first word that is no option."""
    scripts: list[str] = []
    others: list[str] = []
    rest = iter(words[1:])
    for word in rest:
        if word in ("-e", "--expression") or re.fullmatch(r"-(?!-)[a-z0-9]*e", word):
            scripts.append(next(rest, ""))
        elif word and not word.startswith("-"):
            others.append(word)
    if not scripts:
        scripts, others = others[:1], others[1:]
    pairs = [
        (_literal_text(old), _literal_text(new)) for script in scripts for _, old, new in _SUBSTITUTION.findall(script)
    ]
    change = Change.joined(change_in({"old_string": old, "new_string": new}, "") for old, new in pairs)
    if not change.text:
        change = Change(f"`{' '.join(scripts)[:200]}`", 0, is_unknown=True)
    yield from (ShellEdit(path, change) for path in others)


def _literal_text(pattern: str) -> str:
    """Return the text that a simple pattern stands for."""
    return re.sub(r"\\([^\w\s])", r"\1", pattern)


def _redirect_edits(text: str, name: str, words: Sequence[str], document: str | None) -> Iterator[ShellEdit]:
    """Edits by redirections of `cat`, `echo` and `printf`, and by `tee`."""
    if name == "tee":
        paths, appends = [word for word in words[1:] if not word.startswith(("-", ">"))], "-a" in words
    else:
        found = list(_REDIRECTION.finditer(_hide_quotes(text)))
        paths = [text[match.start(2) : match.end(2)].strip("'\"") for match in found]
        appends = any(match[1] == ">>" for match in found)
    content = (
        document if document is not None else " ".join(_printed_words(words)) if name in ("echo", "printf") else None
    )
    if content is not None and (by_script := list(_python_edits(content, must_read=True))):
        yield from by_script  # a script that edits other files, written to be run next
    elif content is not None:
        given: Mapping[str, Any] = {"new_string": content} if appends else {"content": content}
        yield from (ShellEdit(path, change_in(given, path)) for path in paths)


def _hide_quotes(text: str) -> str:
    """Hide the operators in quoted texts, in as many characters: a ">" in them is no redirection."""
    return re.sub(r"'[^']*'|\"[^\"]*\"", lambda quoted: re.sub(r"[<>&|;\s]", "_", quoted[0]), text)


def _printed_words(words: Sequence[str]) -> Iterator[str]:
    for word in words[1:]:
        if word.startswith(">"):
            return
        if word not in ("-e", "-n"):
            yield word


def _python_edits(script: str, *, must_read: bool = False) -> Iterator[ShellEdit]:
    """Edits of a Python script that replaces parts of files or writes them. With `must_read`, only of those that it
    reads: a test writes files, too."""
    if "open(" not in script and "write_" not in script:
        return
    try:
        tree = ast.parse(script)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # too deep for the parser
        return
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = {node.func.attr for node in calls if isinstance(node.func, ast.Attribute)}
    constants = {
        target.id: text
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Name)
        if (text := _constant(node.value, {})) is not None
    }
    read: set[str] = set()
    written: dict[str, None] = {}
    changes: list[Change] = []
    for node in calls:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        given = [_constant(argument, constants) for argument in node.args]
        named = {keyword.arg: _constant(keyword.value, constants) for keyword in node.keywords}
        first, second = (*given, None, None)[:2]
        if name == "open" and first:
            mode = second or named.get("mode") or "r"
            read |= {first} if mode[0] == "r" else set()
            written |= {first: None} if set(mode) & set("wa+") else {}
        elif name == "Path" and first:
            read |= {first} if "read_text" in names else set()
            written |= {first: None} if "write_text" in names else {}
        elif name == "replace" and first and second is not None:
            changes.append(change_in({"old_string": first, "new_string": second}, ""))
        elif name in ("write", "write_text") and first and not must_read:
            changes.append(change_in({"content": first}, ""))
    change = Change.joined(changes)
    yield from (ShellEdit(path, change) for path in written if path in read or not must_read)


def _constant(node: ast.expr, constants: Mapping[str, str]) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return constants.get(node.id) if isinstance(node, ast.Name) else None
