"""Google ADK's memory service: what is ours alone."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("google.adk", reason="google-adk is not installed: make test-frameworks")

from google.adk.events.event import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai.types import Blob, Content, Part

from rmem import Brain
from rmem.integrations.google_adk import BrainMemoryService


def session(*events: Event) -> Session:
    return Session(id="one", app_name="app", user_id="ann", events=list(events))


def said(text: str, **rest: object) -> Event:
    return Event(author="user", content=Content(role="user", parts=[Part(text=text)]), **rest)


def search(service: BrainMemoryService, query: str, user: str = "ann") -> list[MemoryEntry]:
    return asyncio.run(service.search_memory(app_name="app", user_id=user, query=query)).memories


@pytest.fixture
def service():
    with Brain(":memory:") as brain:
        yield BrainMemoryService(brain)


def test_an_event_comes_back_whole(service):
    picture = Part(inline_data=Blob(data=b"\xff\x00", mime_type="image/png"))
    event = said("my dog Bruno", timestamp=1_700_000_000.0)
    event.content.parts.append(picture)
    asyncio.run(service.add_session_to_memory(session(event)))
    (found,) = search(service, "dog")
    assert (found.content, found.id, found.author) == (event.content, event.id, "user")
    assert found.timestamp.startswith("2023-11-1")
    assert service.brain.memories()[0].timestamp == 1_700_000_000.0


def test_a_session_that_is_added_again_is_kept_once(service):
    first = said("my dog Bruno")
    asyncio.run(service.add_session_to_memory(session(first)))
    asyncio.run(service.add_session_to_memory(session(first, said("my cat Mia"))))
    assert service.brain.count() == 2


def test_what_was_deleted_stays_away_when_its_session_is_added_again(service):
    event = said("my dog Bruno")
    asyncio.run(service.add_session_to_memory(session(event)))
    asyncio.run(service.delete_memory(app_name="app", user_id="bob", memory_id=event.id))
    assert len(search(service, "dog")) == 1  # it is not bob's
    asyncio.run(service.delete_memory(app_name="app", user_id="ann", memory_id=event.id))
    asyncio.run(service.add_session_to_memory(session(event)))
    assert search(service, "dog") == []
    assert "Bruno" not in str(service.brain.memories())


def test_a_memory_is_added_with_its_metadata_and_deleted_by_the_id_of_a_search(service):
    entry = MemoryEntry(content=Content(parts=[Part(text="Ann likes tea")]), custom_metadata={"source": "form"})
    added = service.add_memory(app_name="app", user_id="ann", memories=[entry], custom_metadata={"ttl": "6000s"})
    asyncio.run(added)
    (found,) = search(service, "tea")
    assert found.custom_metadata == {"source": "form", "ttl": "6000s"}
    asyncio.run(service.delete_memory(app_name="app", user_id="ann", memory_id=found.id))
    assert search(service, "tea") == []


def test_events_without_words_and_questions_without_words_give_nothing(service):
    call = Event(author="model", content=Content(parts=[Part.from_function_call(name="f", args={})]))
    asyncio.run(service.add_session_to_memory(session(call, Event(author="model"))))
    assert service.brain.count() == 0
    assert search(service, " ") == []
