"""The Redis store against a dictionary, with a second handle that reads along and a server that is real."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from strategies import ids, memories
from test_stores_against_a_model import StoreAgainstModel

from rmem.index import recall_index
from rmem.stores import redis as redis_store
from rmem.stores.redis import RedisRecordStore
from rmem.testing.redis import RedisServer


@pytest.fixture(scope="module", autouse=True)
def _server():
    with RedisServer() as server:
        RedisAgainstModel.server = server
        yield


class RedisAgainstModel(StoreAgainstModel):
    """With few rows in one answer, few removals listed, and an index that is made anew early."""

    server: RedisServer

    def __init__(self):
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(redis_store, "_READ_AHEAD", 3)
        self.patch.setattr(redis_store, "_LISTED", 3)
        self.patch.setattr(recall_index, "_MANY_DEAD", 8)
        self.server.flush()
        self.other = None

    def open(self):
        return RedisRecordStore(**self.server.connection())

    def readers(self):
        return [self.store] if self.other is None else [self.store, self.other]

    @rule(batch=st.lists(st.one_of(memories(), memories(id_from=ids)), max_size=5))
    def put(self, batch):
        """An id that goes from one agent to another is a newcomer there: order and counts are each agent's own."""
        holder = {key: memory.agent_id for key, memory in self.model.items()}
        for memory in batch:
            if memory.memory_id and holder.setdefault(memory.memory_id, memory.agent_id) != memory.agent_id:
                self._gone([memory.memory_id])
        agents = {}
        super().put([one for one in batch if agents.setdefault(one.memory_id or id(one), one.agent_id) == one.agent_id])

    @rule()
    def open_a_second_handle(self):
        if self.other is None:
            self.other = self.open()

    @precondition(lambda self: self.other is not None)
    @rule()
    def write_through_the_other_handle(self):
        self.store.flush()
        self.store, self.other = self.other, self.store

    @rule()
    def reopen(self):
        self.store.close()
        self.store = self.open()

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def touch(self, data):
        """Counts that wait are seen by their own handle; by others when they are written."""
        keys = data.draw(st.lists(st.sampled_from(sorted(self.model)), min_size=1, max_size=3, unique=True))
        self.store.touch(keys, 2_000_000_000.0)
        self.touched.update(keys)
        self.store.flush()
        for store in self.readers():
            assert [memory.bookkeeping.retrieval_count for memory in store.get_many(keys)] == [
                self.touched[key] for key in keys
            ]

    def teardown(self):
        super().teardown()
        if self.other is not None:
            self.other.close()
        self.patch.undo()


TestRedisStoreAgainstModel = RedisAgainstModel.TestCase
TestRedisStoreAgainstModel.settings = settings(max_examples=settings.default.max_examples, stateful_step_count=30)
