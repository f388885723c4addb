"""Edit JSON as text: only what is added or removed changes; comments, trailing commas, order and indentation stay.
Strict JSON stays strict. Files and their backups are handled by `files`."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...errors import ConfigError

Step = str | int
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_SPACE = re.compile(rf"[ \t\r\n]*(?:(?:{_COMMENT.pattern})[ \t\r\n]*)*", re.DOTALL)
_STRING = re.compile(r'"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*"')
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])")
_WORD = re.compile(r"(?:true|false|null)(?!\w)")
_LINE = re.compile(r"\r\n|\r|\n")
_DEEPEST = 200
_NEAR = 200  # characters behind a value, to see whether its line ends there
_GONE = object()


@dataclass(slots=True)
class _Member:
    """A value in an object or array: from its key (or itself) to its end, and where the comma behind it is."""

    start: int
    node: _Node
    key: str | None = None
    comma: int | None = None


@dataclass(slots=True)
class _Node:
    """A value and where it is written. `tail` is where the last thing inside ends: a value, a comma or a comment."""

    start: int
    end: int
    value: Any
    members: list[_Member] = field(default_factory=list)
    tail: int = 0

    @property
    def brackets(self) -> bool:
        return isinstance(self.value, dict | list)


class Document:
    """A JSON text that can be changed in places: `Document('{"a": 1}').set(("b",), 2)`.

    A path is a sequence of keys and positions. An empty text counts as an empty object.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._read()

    @property
    def value(self) -> Any:
        return self._root.value

    def get(self, path: Sequence[Step]) -> Any:
        node = self._find(path)
        return None if node is None else node.value

    def has(self, path: Sequence[Step]) -> bool:
        return self._find(path) is not None

    def set(self, path: Sequence[Step], value: Any) -> None:
        """Set the value at a path; a new key goes behind the last one of its object."""
        node = self._find(path)
        parent = self._find(path[:-1])
        if node is not None:
            written = self._written(value, self._indent_at(node.start), self._inline(node))
            self._splice(_put(self.value, path, value), (node.start, node.end, written))
        elif parent is None:
            self.set(path[:-1], {path[-1]: value})
        elif isinstance(parent.value, dict):
            self._insert(parent, path, value)
        else:
            raise ConfigError(f"{path_text(path[:-1])} must be an object")

    def append(self, path: Sequence[Step], value: Any) -> None:
        """Append a value to the array at a path."""
        node = self._find(path)
        if node is None:
            self.set(path, [value])
        elif isinstance(node.value, list):
            self._insert(node, [*path, len(node.value)], value)
        else:
            raise ConfigError(f"{path_text(path)} must be an array")

    def remove(self, path: Sequence[Step]) -> None:
        """Remove the value at a path, with its key and comma."""
        parent = self._find(path[:-1])
        members = [] if parent is None else parent.members
        at = _position(members, path[-1])
        if parent is None or at is None:
            raise ConfigError(f"there is nothing at {path_text(path)}")
        member = members[at]
        comma = member.comma if member.comma is not None or at == 0 else members[at - 1].comma
        pieces = [(self._begin(parent, at), member.node.end, "")]
        if comma is not None:
            pieces = sorted([*pieces, (comma, comma + 1, "")])
        if len(members) == 1 and not _COMMENT.search(self._between(parent, member)):
            pieces = [(parent.start + 1, parent.end - 1, "")]
        self._splice(_put(self.value, path, _GONE), *pieces)

    # Reading

    def _read(self) -> None:
        self._lines = [0, *(found.end() for found in _LINE.finditer(self.text))]
        position, _ = self._skip(0)
        if position == len(self.text):
            before = self.text.rstrip()
            self.text = f"{before}{self._newline()}{{}}\n" if before else "{}\n"
            self._read()
            return
        self._root = self._value(position, 0)
        rest, _ = self._skip(self._root.end)
        if rest != len(self.text):
            raise self._wrong(rest, "there is something behind the end")

    def _value(self, position: int, depth: int) -> _Node:
        text = self.text
        opening = text[position : position + 1]
        if opening in ("{", "["):
            if depth > _DEEPEST:
                raise self._wrong(position, "it is nested too deeply")
            return self._inside(position, depth, opening == "{")
        if opening == '"':
            value, end = self._string(position)
            return _Node(position, end, value)
        found = _NUMBER.match(text, position) or _WORD.match(text, position)
        if found is None:
            raise self._wrong(position, "a value was expected")
        return _Node(position, found.end(), json.loads(found[0]))

    def _string(self, position: int) -> tuple[str, int]:
        found = _STRING.match(self.text, position)
        if found is None:
            raise self._wrong(position, "this text is not valid")
        written = found[0]
        try:
            return (written[1:-1] if "\\" not in written else json.loads(written)), found.end()
        except ValueError:
            raise self._wrong(position, "this text is not valid") from None

    def _inside(self, start: int, depth: int, keyed: bool) -> _Node:
        members: list[_Member] = []
        closing = "}" if keyed else "]"
        position, tail = start + 1, start + 1
        while True:
            position, commented = self._skip(position)
            tail = max(tail, commented)
            if self.text[position : position + 1] == closing:
                break
            if members and members[-1].comma is None:
                raise self._wrong(position, f"a comma or {closing} was expected")
            member, tail = self._member(position, depth, keyed)
            members.append(member)
            position, commented = self._skip(tail)
            tail = max(tail, commented)
            if self.text[position : position + 1] == ",":
                member.comma = position
                position = tail = position + 1
        values = [member.node.value for member in members]
        value: Any = dict(zip([member.key for member in members], values, strict=True)) if keyed else values
        return _Node(start, position + 1, value, members, tail)

    def _member(self, position: int, depth: int, keyed: bool) -> tuple[_Member, int]:
        start, key = position, None
        if keyed:
            if self.text[position : position + 1] != '"':
                raise self._wrong(position, "a key in quotes was expected")
            key, position = self._string(position)
            position, _ = self._skip(position)
            if self.text[position : position + 1] != ":":
                raise self._wrong(position, "a colon was expected")
            position, _ = self._skip(position + 1)
        node = self._value(position, depth + 1)
        return _Member(start, node, key), node.end

    def _skip(self, position: int) -> tuple[int, int]:
        """Past space and comments: where the next thing starts, and where the last comment ended (0 for none)."""
        found = _SPACE.match(self.text, position)
        passed = "" if found is None else found[0]
        end = position + len(passed)
        return end, end - len(passed) + len(passed.rstrip(" \t\r\n")) if "/" in passed else 0

    def _wrong(self, position: int, what: str) -> ConfigError:
        line = bisect_right(self._lines, position)
        column = position - self._lines[line - 1] + 1
        return ConfigError(f"line {line}, column {column}: {'the text ends' if position >= len(self.text) else what}")

    def _find(self, path: Sequence[Step]) -> _Node | None:
        node = self._root
        for step in path:
            at = _position(node.members, step)
            if at is None:
                return None
            node = node.members[at].node
        return node

    # Writing

    def _insert(self, node: _Node, path: Sequence[Step], value: Any) -> None:
        last = node.members[-1] if node.members else None
        inline = self._inline(node)
        base = self._indent_at(node.start)
        indent = base + self._unit()
        if last is not None and not inline and self._starts_line(last.start):
            indent = self._indent_at(last.start)
        written = self._written(value, indent, inline)
        if isinstance(path[-1], str):
            written = f"{json.dumps(path[-1], ensure_ascii=False)}{self._colon(inline)}{written}"
        trailing = last is not None and last.comma is not None
        if trailing:
            written += ","
        pieces = [(last.node.end, last.node.end, ",")] if last is not None and not trailing else []
        if inline:
            space = " " if last is not None and self._colon(True) == ": " else ""
            pieces.append((node.tail, node.tail, f"{space}{written}"))
        else:
            pieces.append((node.tail, node.tail, f"{self._newline()}{indent}{written}"))
            if last is None and not _LINE.search(self.text, node.tail, node.end):
                pieces.append((node.tail, node.end - 1, f"{self._newline()}{base}"))
        self._splice(_put(self.value, path, value), *pieces)

    def _splice(self, expected: Any, *pieces: tuple[int, int, str]) -> None:
        """Replace stretches, given in order; nothing changes unless the new text says what is expected."""
        before, parts, position = self.text, [], 0
        for begin, end, written in pieces:
            parts += [self.text[position:begin], written]
            position = end
        self.text = "".join([*parts, self.text[position:]])
        try:
            self._read()
        except ConfigError:
            self._root.value = None
        if self.value != expected:
            self.text = before
            self._read()
            raise ConfigError("it is written in a way that cannot be changed safely (is a key there twice?)")

    def _written(self, value: Any, indent: str, inline: bool) -> str:
        if inline:
            tight = self._colon(True) == ":"
            return json.dumps(value, ensure_ascii=False, separators=(",", ":") if tight else (", ", ": "))
        lines = json.dumps(value, ensure_ascii=False, indent=self._unit()).split("\n")
        return f"{self._newline()}{indent}".join(lines)

    def _inline(self, node: _Node) -> bool:
        """Whether what goes into these brackets goes on their line: they have no line of their own, or no text has."""
        if node.brackets and node.members:
            return _LINE.search(self.text, node.start, node.end) is None
        root = self._root
        return bool(root.members) and _LINE.search(self.text, root.start, root.end) is None

    def _colon(self, inline: bool) -> str:
        return ": " if not inline or re.search(r'":[ \t]', self.text) or not re.search(r'":', self.text) else ":"

    def _newline(self) -> str:
        found = _LINE.search(self.text)
        return found[0] if found else "\n"

    def _unit(self) -> str:
        """One step of indentation, as the first line inside the root has it."""
        for member in self._root.members[:1]:
            own = self._indent_at(member.start)
            if own and self._starts_line(member.start):
                return own
        return "  "

    def _indent_at(self, position: int) -> str:
        """The space at the beginning of a position's line."""
        line = self._lines[bisect_right(self._lines, position) - 1]
        return self.text[line : line + len(self.text[line:position]) - len(self.text[line:position].lstrip(" \t"))]

    def _starts_line(self, position: int) -> bool:
        return not self.text[self._lines[bisect_right(self._lines, position) - 1] : position].strip()

    def _begin(self, parent: _Node, at: int) -> int:
        """Where the space before a member begins, if it can go with the member: behind a bracket, comma or comment."""
        before, member = parent.members[at - 1] if at else None, parent.members[at]
        begin = parent.start + 1 if before is None else (before.comma or 0) + 1
        commented = self._skip(begin)[1]
        rest = self.text[member.node.end : member.node.end + _NEAR].lstrip(" \t").removeprefix(",").lstrip(" \t")[:1]
        comments = _COMMENT.findall(self.text[begin:commented])
        if comments and comments[-1].startswith("//") and not rest.isspace():
            return member.start  # what follows must not slip onto the comment's line
        return max(begin, commented)

    def _between(self, parent: _Node, only: _Member) -> str:
        """What is inside brackets beside their only member."""
        return self.text[parent.start + 1 : only.start] + self.text[only.node.end : parent.end - 1]


def _position(members: Sequence[_Member], step: Step) -> int | None:
    """Where a key or position is; of a key that is there twice the last counts, as it does for every reader."""
    if isinstance(step, int):
        return step if step < len(members) and members[step].key is None else None
    return next((at for at in range(len(members) - 1, -1, -1) if members[at].key == step), None)


def _put(value: Any, path: Sequence[Step], new: Any) -> Any:
    """A value with something else at a path; what lies beside the path is shared, not copied."""
    if not path:
        return new
    step: Any = path[0]
    copied = value.copy()
    if isinstance(copied, list) and step == len(copied):
        copied.append(new)
    elif len(path) == 1 and new is _GONE:
        del copied[step]
    else:
        copied[step] = _put(copied.get(step) if isinstance(copied, dict) else copied[step], path[1:], new)
    return copied


def path_text(path: Sequence[Step]) -> str:
    """Format a path: hooks.Stop[0]."""
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return steps.removeprefix(".") or "the whole"
