"""Claude's memory tool on a Brain: each file that Claude writes below /memories is a memory, which recall finds.

from rmem.integrations.anthropic import BrainMemoryTool
client.beta.messages.run_tools(model=…, messages=…, tools=[BrainMemoryTool("memories.db")])
"""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import Any

from ..brain import Brain
from ..errors import NotFoundError, RemanenceError
from ..extras import require
from ..filters import Filter
from ..models import Memory
from .common import id_of, in_thread, open_brain

require("anthropic", "rmem.integrations.anthropic")

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError  # noqa: E402

FILE = "memory_file"
"""The type of these memories."""

_ROOT = "/memories"
_MAX_LINES = 999_999
_DEPTH = 2  # of a folder's listing


class MemoryFiles:
    """Files below /memories, each a memory of one agent; folders exist only in the paths of files.

    Results have the wording of Anthropic's own file system tool, which Claude was trained on.
    """

    def __init__(self, brain: Brain | str | Path | None, agent: str) -> None:
        self.brain, self._owned = open_brain(brain)
        self._agent = agent
        self._where = Filter.of({"agent": agent, "type": FILE})

    def view(self, command: Any) -> str:
        path = _normalize(command.path)
        found = self._get(path)
        if found is not None:
            return self._view_lines(command.path, _content(found), command.view_range)
        below = self._below(path)
        if not below and path != _ROOT:
            raise ToolError(f"The path {command.path} does not exist. Please provide a valid path.")
        return _listing(command.path, path, below)

    def create(self, command: Any) -> str:
        path = _normalize(command.path)
        if self._exists(path):
            raise ToolError(f"File {command.path} already exists")
        self._refuse_file_above(path)
        self._keep([(path, command.file_text, None)])
        return f"File created successfully at: {command.path}"

    def str_replace(self, command: Any) -> str:
        content = self._content_of(command.path)
        starts = _occurrences(content, command.old_str)
        if not starts:
            raise ToolError(
                f"No replacement was performed, old_str `{command.old_str}` did not appear verbatim in {command.path}."
            )
        lines = [content.count("\n", 0, start) + 1 for start in starts]
        if len(starts) > 1:
            raise ToolError(
                f"No replacement was performed. Multiple occurrences of old_str `{command.old_str}` in lines: "
                f"{', '.join(map(str, lines))}. Please ensure it is unique"
            )
        start = starts[0]
        changed = content[:start] + (command.new_str or "") + content[start + len(command.old_str) :]
        self._change(command.path, content, changed)
        first = max(0, lines[0] - 3)
        return (
            "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
            + _number_lines(changed.split("\n")[first : lines[0] + 2], first)
        )

    def insert(self, command: Any) -> str:
        content = self._content_of(command.path)
        lines = content.removesuffix("\n").split("\n") if content else []
        if not 0 <= command.insert_line <= len(lines):
            raise ToolError(
                f"Invalid `insert_line` parameter: {command.insert_line}. "
                f"It should be within the range [0, {len(lines)}]."
            )
        lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
        self._change(command.path, content, "\n".join(lines) + "\n")
        return f"The file {command.path} has been edited."

    def delete(self, command: Any) -> str:
        path = _normalize(command.path)
        if path == _ROOT:
            raise ToolError("Cannot delete the /memories directory itself")
        gone = [self.brain.forget(memory.id) for memory in self._at_or_below(path)]
        if not any(gone):
            raise ToolError(f"The path {command.path} does not exist")
        return f"Successfully deleted {command.path}"

    def rename(self, command: Any) -> str:
        old, new = _normalize(command.old_path), _normalize(command.new_path)
        if old == _ROOT:
            raise ToolError("Cannot rename the /memories directory itself")
        if self._exists(new):
            raise ToolError(f"The destination {command.new_path} already exists")
        moved = self._at_or_below(old)
        if not moved:
            raise ToolError(f"The path {command.old_path} does not exist")
        if new.startswith(f"{old}/"):
            raise ToolError(f"Cannot move {command.old_path} into itself")
        self._refuse_file_above(new)
        # Copies first: if this is interrupted, nothing is lost.
        self._keep([(new + _path(memory).removeprefix(old), _content(memory), memory.timestamp) for memory in moved])
        for memory in moved:
            self.brain.forget(memory.id)
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    def clear_all_memory(self) -> str:
        self.brain.forget(where=self._where)
        return "All memory cleared"

    def close(self) -> None:
        """Close the Brain if it was opened here."""
        if self._owned:
            self.brain.close()

    # Files as memories

    def _id_of(self, path: str) -> str:
        return id_of("anthropic", self._agent, path)

    def _get(self, path: str) -> Memory | None:
        return self.brain.get(self._id_of(path))

    def _below(self, path: str) -> list[Memory]:
        held = self.brain.memories(self._where, limit=None)
        return sorted((memory for memory in held if _path(memory).startswith(f"{path}/")), key=_path)

    def _at_or_below(self, path: str) -> list[Memory]:
        found = self._get(path)
        return self._below(path) if found is None else [found]

    def _exists(self, path: str) -> bool:
        return path == _ROOT or bool(self._at_or_below(path))

    def _refuse_file_above(self, path: str) -> None:
        parts = path.split("/")
        above = ["/".join(parts[:end]) for end in range(3, len(parts))]
        for name, found in zip(above, self.brain.get_many([self._id_of(folder) for folder in above]), strict=True):
            if found is not None:
                raise ToolError(f"{name} is a file, so {path} cannot lie below it")

    def _content_of(self, given: str) -> str:
        path = _normalize(given)
        found = self._get(path)
        if found is not None:
            return _content(found)
        if self._exists(path):
            raise ToolError(f"The path {given} is not a file.")
        raise ToolError(f"The path {given} does not exist. Please provide a valid path.")

    def _keep(self, files: list[tuple[str, str, float | None]]) -> None:
        try:
            self.brain.remember_many(
                [
                    {
                        "id": self._id_of(path),
                        "agent": self._agent,
                        "type": FILE,
                        "when": when,
                        **_text_and_metadata(path, content),
                    }
                    for path, content, when in files
                ]
            )
        except RemanenceError as error:  # such as a NUL, or a refusal by the privacy policy: Claude can react to it
            raise ToolError(str(error)) from error

    def _change(self, given: str, before: str, content: str) -> None:
        """Replace a file's content; ToolError if another process has changed it meanwhile."""
        path = _normalize(given)

        def unchanged(memory: Memory) -> None:
            if _content(memory) != before:
                raise ToolError(f"The file {given} was changed by another meanwhile; view it again.")

        try:
            self.brain.update(self._id_of(path), only_if=unchanged, **_text_and_metadata(path, content))
        except NotFoundError as error:
            raise ToolError(f"The file {given} no longer exists (it was deleted or renamed meanwhile).") from error
        except RemanenceError as error:
            raise ToolError(str(error)) from error

    def _view_lines(self, given: str, content: str, view_range: list[int] | None) -> str:
        lines = content.split("\n")
        if len(lines) > _MAX_LINES:
            raise ToolError(f"File {given} exceeds maximum line limit of {_MAX_LINES:,} lines.")
        first = 0
        if view_range and len(view_range) == 2:
            first = max(1, view_range[0]) - 1
            lines = lines[first : None if view_range[1] == -1 else view_range[1]]
        return f"Here's the content of {given} with line numbers:\n{_number_lines(lines, first)}"


class BrainMemoryTool(MemoryFiles, BetaAbstractMemoryTool):
    """Claude's memory tool with its files in `brain`, a Brain or its address."""

    def __init__(self, brain: Brain | str | Path | None = None, *, agent: str = "claude", **options: Any) -> None:
        MemoryFiles.__init__(self, brain, agent)
        BetaAbstractMemoryTool.__init__(self, **options)


class BrainAsyncMemoryTool(MemoryFiles, BetaAsyncAbstractMemoryTool):
    """BrainMemoryTool for `AsyncAnthropic`: each command runs in a thread."""

    def __init__(self, brain: Brain | str | Path | None = None, *, agent: str = "claude", **options: Any) -> None:
        MemoryFiles.__init__(self, brain, agent)
        BetaAsyncAbstractMemoryTool.__init__(self, **options)

    view: Any = in_thread(MemoryFiles.view)
    create: Any = in_thread(MemoryFiles.create)
    str_replace: Any = in_thread(MemoryFiles.str_replace)
    insert: Any = in_thread(MemoryFiles.insert)
    delete: Any = in_thread(MemoryFiles.delete)
    rename: Any = in_thread(MemoryFiles.rename)
    clear_all_memory: Any = in_thread(MemoryFiles.clear_all_memory)


def _normalize(path: str) -> str:
    """Normalize a path, and refuse one outside /memories."""
    if not path.startswith(_ROOT):
        raise ToolError(f"Path must start with /memories, got: {path}")
    plain = posixpath.normpath(path)
    if plain != _ROOT and not plain.startswith(f"{_ROOT}/"):
        raise ToolError(f"Path {path} would escape /memories directory")
    return plain


def _text_and_metadata(path: str, content: str) -> dict[str, Any]:
    """Return the text and metadata of a file. A memory needs a text: a blank file gets its path."""
    if content.strip():
        return {"text": content, "metadata": {"path": path}}
    return {"text": path, "metadata": {"path": path, "blank": content}}


def _path(memory: Memory) -> str:
    return str(memory.contents["path"])


def _content(memory: Memory) -> str:
    return str(memory.contents.get("blank", memory.text))


def _occurrences(content: str, wanted: str) -> list[int]:
    found, start = [], content.find(wanted) if wanted else -1
    while start >= 0:
        found.append(start)
        start = content.find(wanted, start + 1)
    return found


def _number_lines(lines: list[str], before: int) -> str:
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, before + 1))


def _listing(given: str, path: str, below: list[Memory]) -> str:
    """List files and folders up to two levels deep with their sizes, without hidden ones."""
    sizes: dict[str, int] = {}
    total = 0
    for memory in below:
        names = _path(memory).removeprefix(f"{path}/").split("/")
        size = len(_content(memory).encode())
        total += size
        for depth in range(1, min(len(names), _DEPTH) + 1):
            if any(name.startswith(".") for name in names[:depth]):
                break
            shown = "/".join(names[:depth]) + ("/" if depth < len(names) else "")
            sizes[shown] = sizes.get(shown, 0) + size
    header = f"Here're the files and directories up to 2 levels deep in {given}, excluding hidden items:"
    lines = [f"{_size(total)}\t{given}", *(f"{_size(size)}\t{given}/{name}" for name, size in sorted(sizes.items()))]
    return "\n".join([header, *lines])


def _size(count: int) -> str:
    size, unit = float(count), "B"
    for larger in "KMG":
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.0f}{unit}" if size == int(size) else f"{size:.1f}{unit}"
