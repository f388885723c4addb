"""Sessions of the OpenAI Agents SDK: the SDK's own tests of its SQLite session, and what is ours alone."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("agents.memory", reason="openai-agents is not installed: make test-frameworks")

from agents.memory import Session
from upstream import outcomes, sources

from rmem import Brain
from rmem.integrations.openai_agents import BrainSession

_TESTS = "tests/memory/test_session.py::test_sqlite_session"
INSIDE_SQLITE = [  # they look into the connections, locks and tables of that class
    f"{_TESTS}_close_closes_worker_thread_connections",
    f"{_TESTS}_reaps_connections_from_exited_worker_threads",
    f"{_TESTS}_closes_retired_connections_before_the_next_allocation",
    f"{_TESTS}_keeps_connections_of_live_worker_threads",
    f"{_TESTS}_pop_item_skips_corrupt_most_recent",
    f"{_TESTS}_pop_item_returns_none_after_dropping_only_corrupt_rows",
    f"{_TESTS}_get_items_limit_skips_corrupt_newest_rows",
    f"{_TESTS}_get_items_session_settings_limit_skips_corrupt_rows",
    f"{_TESTS}_file_lock_is_shared_across_instances",
    f"{_TESTS}_failed_add_items_releases_write_lock",
    f"{_TESTS}_failed_clear_session_rolls_back",
    f"{_TESTS}_failed_pop_item_releases_write_lock",
    f"{_TESTS}_rollback_failure_evicts_connection",
    f"{_TESTS}_close_retries_quarantined_connection",
    f"{_TESTS}_post_commit_cancellation_propagates_after_known_outcome",
    f"{_TESTS}_closed_rejects_empty_add_items",  # wants an error that names SQLiteSession
]


@pytest.mark.framework("openai-agents", "its own tests")
def test_the_tests_of_the_sqlite_session_pass(tmp_path, record_property):
    files = ["tests/memory/test_session.py", "tests/memory/test_session_limit.py"]
    root = sources("openai-agents", tmp_path)
    counted = outcomes(root, files, "replace_openai_agents", deselect=INSIDE_SQLITE)
    record_property("counted", counted["passed"])
    assert counted.keys() <= {"passed", "deselected"}
    assert counted["passed"] > 40


def test_it_is_a_session():
    with Brain(":memory:") as brain:
        assert isinstance(BrainSession("one", brain), Session)


def test_items_come_back_exactly_and_recall_finds_what_was_said(tmp_path):
    items = [
        {"role": "user", "content": "my dog is called Bruno"},
        {"type": "function_call", "call_id": "1", "name": "weather", "arguments": '{"city": "Oslo"}'},
        {"type": "function_call_output", "call_id": "1", "output": "rain\x00 and \ud800 wind"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "It rains in Oslo", "annotations": []}]},
    ]
    with Brain(tmp_path / "a.db") as brain:
        asyncio.run(BrainSession("one", brain).add_items(items))
    with Brain(tmp_path / "a.db") as brain:
        session = BrainSession("one", brain)
        assert asyncio.run(session.get_items()) == items
        assert asyncio.run(BrainSession("two", brain).get_items()) == []
        assert brain.recall("what is the dog called?", k=1)[0].text == "my dog is called Bruno"
        assert asyncio.run(session.pop_item()) == items[-1]
        asyncio.run(session.clear_session())
        assert brain.count() == 0


def test_callers_who_pop_at_once_get_different_items():
    async def popped(session: BrainSession) -> list[object]:
        await session.add_items([{"role": "user", "content": str(at)} for at in range(20)])
        return [item["content"] for item in await asyncio.gather(*(session.pop_item() for _ in range(20)))]

    with Brain(":memory:") as brain:
        assert sorted(asyncio.run(popped(BrainSession("one", brain))), key=int) == [str(at) for at in range(20)]
