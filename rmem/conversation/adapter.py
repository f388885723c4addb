"""AgentMemory: the enhanced memory for agents that were written for a plain list of messages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from .. import checks
from ..contents import ATTACHMENTS
from .enhanced import EnhancedAgentMemory


class RecordingList(list[dict[str, Any]]):
    """A copy of the messages or tool calls; `append` and `extend` also store the item, other changes do not."""

    def __init__(self, items: Iterable[dict[str, Any]], keep: Callable[[Mapping[str, Any]], object]) -> None:
        super().__init__(items)
        self._keep = keep

    def append(self, item: Mapping[str, Any]) -> None:
        if not isinstance(item, Mapping):
            raise checks.refuse("item", "a mapping", item)
        self._keep(item)
        super().append(dict(item))

    def extend(self, items: Iterable[Mapping[str, Any]]) -> None:
        for item in items:
            self.append(item)


class AgentMemory(EnhancedAgentMemory):
    """A replacement for a plain list-based memory: `from rmem.conversation import AgentMemory`.

    Covered: `add_message`, `add_user_message`, `add_assistant_message`, `add_system_message`, `add`, `messages` (also
    `messages.append({"role": …, "content": …})`), `get_messages`, `get_history`, `get_context`, `add_tool_call`,
    `tool_calls` and `tool_call_history` (also `.append({"name": …, …})`), `create_summary`, `clear`, `len`, and
    iterating over the messages. All of EnhancedAgentMemory is there too.
    """

    @property
    def messages(self) -> RecordingList:
        """Return all messages since the last clear(), as {"role": …, "content": …}."""
        return RecordingList(self.get_messages(), self._append_message)

    def _append_message(self, item: Mapping[str, Any]) -> None:
        rest = {name: value for name, value in item.items() if name not in ("role", "content", "text", ATTACHMENTS)}
        self._add_message(item.get("role", "user"), item.get("content"), rest)

    @property
    def tool_call_history(self) -> RecordingList:
        """Return all tool calls, oldest first."""
        return RecordingList(super().tool_call_history, self._append_call)

    tool_calls = tool_call_history

    def _append_call(self, item: Mapping[str, Any]) -> None:
        if isinstance(item.get("function"), Mapping):  # as chat APIs write it, with the arguments as JSON
            item = {**item, **item["function"]}
        name = item.get("name", item.get("tool", item.get("tool_name", "tool")))
        arguments = item.get("arguments", item.get("args", item.get("parameters")))
        self.add_tool_call(name, _named(arguments), item.get("result", item.get("output")), error=item.get("error"))

    def add(self, role: str, content: Any) -> str:  # type: ignore[override]  # what plain memories call it
        return self.add_message(role, content)

    def add_user_message(self, content: Any) -> str:
        return self.add_message("user", content)

    def add_assistant_message(self, content: Any) -> str:
        return self.add_message("assistant", content)

    def add_system_message(self, content: Any) -> str:
        return self.add_message("system", content)

    def get_history(self, n: int | None = None) -> list[dict[str, Any]]:
        """Return the newest messages as {"role": …, "content": …}, oldest first."""
        return self.get_messages(n)

    def get_context(self, n: int = 10, *, query: str | None = None, token_budget: int | None = None) -> str:
        """Return the summary and the newest messages, as context for a model; with a query or a budget, the result of
        `context_for`."""
        if query is not None or token_budget is not None:
            return self.context_for(query or "", 1000 if token_budget is None else token_budget)
        return "\n".join(part for part in (self.working.summary, self.get_recent_messages(n)) if part)

    def __len__(self) -> int:
        return len(self.get_messages())

    def __iter__(self) -> Any:
        return iter(self.get_messages())

    def __bool__(self) -> bool:
        return True


def _named(arguments: object) -> Mapping[str, Any] | None:
    """Return the arguments of a call by their names; chat APIs write them as JSON."""
    if isinstance(arguments, str):
        with suppress(ValueError):
            read = json.loads(arguments)
            arguments = read if isinstance(read, Mapping) else arguments
    return arguments if arguments is None or isinstance(arguments, Mapping) else {"value": arguments}
