"""The store passes the suite of stores with four methods, on a real Redis server: AGENTS_MEM_REDIS is its port."""

from __future__ import annotations

import os

import pytest
import redis
from agents_mem_redis import RedisStore

from rmem.testing import MemoryStoreContract

ADDRESS = f"agents-mem-redis://localhost:{os.environ.get('AGENTS_MEM_REDIS', '6379')}/15"


class TestRedisStore(MemoryStoreContract):
    @pytest.fixture
    def store(self):
        redis.Redis.from_url(ADDRESS.removeprefix("agents-mem-")).flushdb()
        return RedisStore(ADDRESS)
