"""Google ADK's memory service: what is ours alone."""

from __future__ import annotations

import asyncio
import importlib.metadata

import pytest

pytest.importorskip("google.adk", reason="google-adk is not installed: make test-frameworks")

from google.adk.events.event import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai.types import Blob, Content, Part
from upstream import outcomes, repository

from rmem import Brain
from rmem.integrations.google_adk import BrainMemoryService

TEST = "test_in_memory_memory_service.py::test_"
INSIDE = [  # the dictionary in which it keeps sessions
    f"{TEST}add_session_to_memory",
    f"{TEST}add_events_to_memory_with_explicit_events",
    f"{TEST}add_events_to_memory_without_session_id_uses_default_bucket",
    f"{TEST}add_events_to_memory_alias_is_supported",
    f"{TEST}add_events_to_memory_appends_without_replacing",
    f"{TEST}add_events_to_memory_deduplicates_event_ids",
    f"{TEST}add_session_with_no_events_to_memory",
]


@pytest.mark.framework("google-adk", "its own tests")
def test_the_tests_of_the_memory_service_pass(tmp_path, record_property):
    """They are in the repository alone, not in the release."""
    tag = f"v{importlib.metadata.version('google-adk')}"
    root = repository("https://github.com/google/adk-python", tag, "tests/unittests/memory", tmp_path)
    files = ["test_in_memory_memory_service.py"]
    counted = outcomes(root, files, "replace_google_adk", deselect=INSIDE, alone=True)
    record_property("counted", counted["passed"])
    assert counted.keys() <= {"passed", "deselected", "warning", "warnings"}
    assert counted["passed"] >= 30


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
