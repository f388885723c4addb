"""`rmem stats --agent`: what one agent remembers."""

from __future__ import annotations

import pytest
from rmem_runner import Rmem

from rmem.agents import AgentMemoryAPI


@pytest.fixture
def walker(rmem: Rmem) -> Rmem:
    rmem.home.mkdir()
    tiers = {"stm_config": {"memory_limit": 5}, "ltm_config": {"path": rmem.home / "memories.db"}}
    with AgentMemoryAPI(tiers) as api:
        for step in range(12):
            api.store_agent_state("walker", {"position": [step, 0], "note": "on my way"}, step, step / 11)
        api.store_agent_action("walker", {"action_type": "eat"}, 12)
        api.force_memory_maintenance()
    return rmem


def test_an_agent_is_shown_by_tier_type_and_importance(walker: Rmem) -> None:
    shown = walker("stats", "--agent", "walker")
    assert shown.code == 0
    assert "state 12, action 1" in shown.out
    assert "0 to 12" in shown.out
    assert [line.split()[:2] for line in shown.lines if line[:3] in ("stm", "im ", "ltm")] == [
        ["stm", "5"],
        ["im", "8"],
        ["ltm", "0"],
    ]
    assert "0.9-1.0" in shown.out
    assert "\x1b" not in shown.out


def test_json_is_what_the_api_says(walker: Rmem) -> None:
    held = walker("stats", "--agent", "walker", "--json").json
    with AgentMemoryAPI({"ltm_config": {"path": walker.home / "memories.db"}}) as api:
        assert held == api.get_memory_statistics("walker")
    assert held["total_memories"] == 13


def test_a_table_on_a_terminal(walker: Rmem) -> None:
    shown = walker.terminal("stats", "--agent", "walker")
    assert shown.code == 0
    assert "IMPORTANCE" in shown.out
    assert "█" in shown.out


def test_an_agent_without_memories_is_told_who_has_some(walker: Rmem) -> None:
    shown = walker("stats", "--agent", "walter")
    assert shown.code == 0
    assert shown.out == ""
    assert shown.err.startswith("walter has no memories in ")
    assert shown.err.endswith("agents there: walker\n")
    assert walker("stats", "--agent", "walter", "--json").json["total_memories"] == 0


def test_a_store_that_is_not_there_is_not_made(rmem: Rmem) -> None:
    shown = rmem("stats", "--agent", "walker")
    assert shown.code == 0
    assert "there is no store" in shown.err
    assert not rmem.home.exists()


def test_a_damaged_store_is_exit_code_4_and_a_bad_name_2(rmem: Rmem) -> None:
    rmem.home.mkdir()
    (rmem.home / "memories.db").write_bytes(b"no database at all" * 100)
    assert rmem("stats", "--agent", "walker").code == 4
    assert rmem("--store", ":memory:", "stats", "--agent", "").code == 2
