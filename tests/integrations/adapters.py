"""Each framework behind two functions, so that one contract can be tested on all of them: `keep` a sentence in a scope
of the framework, by its own interface, and `find` sentences there."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

from rmem import Brain


class Adapter(NamedTuple):
    keep: Callable[[str, str], object]
    find: Callable[[str, str], list[str]]


def google_adk(brain: Brain) -> Adapter:
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session
    from google.genai.types import Content, Part

    from rmem.integrations.google_adk import BrainMemoryService

    service = BrainMemoryService(brain)

    def keep(user: str, text: str) -> None:
        event = Event(author="user", content=Content(role="user", parts=[Part(text=text)]))
        session = Session(id=f"session of {user}", app_name="app", user_id=user, events=[event])
        asyncio.run(service.add_session_to_memory(session))

    def find(user: str, query: str) -> list[str]:
        found = asyncio.run(service.search_memory(app_name="app", user_id=user, query=query))
        return [entry.content.parts[0].text for entry in found.memories]

    return Adapter(keep, find)


ADAPTERS: dict[str, tuple[str, Callable[[Brain], Adapter]]] = {  # by distribution: the module it is known by
    "google-adk": ("google.adk", google_adk),
}


def is_installed(module: str) -> bool:
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


def adapter(name: str, brain: Any) -> Adapter:
    return ADAPTERS[name][1](brain)
