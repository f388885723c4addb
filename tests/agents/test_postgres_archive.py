"""The agents' memory with its archive in PostgreSQL: the tests of the memory space, of its tiers and of similar states,
with each API a tenant of its own."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from test_similar_states import *  # noqa: F403
from test_space import *  # noqa: F403
from test_tiers import *  # noqa: F403

from rmem.agents import AgentMemoryAPI, MemoryConfig
from rmem.stores.sql.postgres import PostgresRecordStore

for _left_out in (  # about the index in memory, which is the same, or about times that a server may take to answer
    "test_old_memories_move_when_their_time_is_up",
    "test_the_cost_does_not_grow_with_other_agents_memories",
    "test_the_best_of_5000_states_is_that_of_an_exact_normalised_distance",
    "test_results_are_bounded_only_by_what_is_asked_for",
    "test_repeated_states_take_a_fraction_of_their_size",
):
    del globals()[_left_out]


@pytest.fixture(scope="module")
def database(postgres):
    url = postgres.new_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture
def new_api(database, request):
    """A function that makes an API; the same name gives the same tenant."""
    with ExitStack() as stack:

        def make(name="agents", **options):
            tenant = f"{request.node.nodeid}/{name}"[-200:]
            ltm = {"path": f"{database}&tenant={tenant.replace('&', '').replace('=', '').replace('#', '')}"}
            return stack.enter_context(AgentMemoryAPI(MemoryConfig(ltm_config=ltm, **options)))

        yield make


def test_the_archive_is_really_in_postgresql(api):
    assert isinstance(api.get_memory_space("a")._system.brain.store, PostgresRecordStore)
