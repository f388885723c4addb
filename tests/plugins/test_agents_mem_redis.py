"""The package that the guide imagines, as a user gets it: built as a wheel, installed in a fresh environment, and then
a store of Brain, of the façade and of the command line, on a real Redis."""

from __future__ import annotations

import json
import shutil

import environments
import pytest

from rmem.testing.redis import RedisServer

PLUGIN = environments.ROOT / "examples" / "plugins" / "agents-mem-redis"


@pytest.fixture(scope="module")
def server():
    with RedisServer() as server:
        yield server


@pytest.fixture(scope="module")
def fresh(tmp_path_factory, own_wheel):
    base = tmp_path_factory.mktemp("fresh")
    return environments.environment(base, own_wheel, environments.wheel(base / "plugin", PLUGIN))


@pytest.fixture
def environment(fresh, tmp_path, server):
    server.flush()
    return fresh._replace(folder=tmp_path)


@pytest.fixture
def address(server):
    return f"agents-mem-redis://127.0.0.1:{server.port}/0"


def test_it_is_a_few_lines_and_passes_the_suite(environment, server):
    lines = (PLUGIN / "agents_mem_redis.py").read_text(encoding="utf-8").splitlines()
    assert len(lines) < 60
    shutil.copy(PLUGIN / "test_agents_mem_redis.py", environment.folder)
    done = environment.run(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_agents_mem_redis.py", AGENTS_MEM_REDIS=str(server.port)
    )
    assert done.returncode == 0, done.stdout[-5000:]


def test_it_is_listed(environment):
    listed = environment.rmem("plugins", "--kind", "store")
    assert listed.stdout.splitlines()[1].split() == ["store", "agents-mem-redis", "agents-mem-redis", "0.1.0", "loads"]


def test_brain_the_facade_and_the_command_line_use_it(environment, address):
    code = f"""
from rmem import Brain, EnhancedAgentMemory
with Brain({address!r}) as brain:
    brain.remember("staging listens on port 8443", id="s-1", agent="swe-01", tags={{"repo": "ops"}})
    hit = brain.recall("which port has staging")[0]
    assert (hit.memory.agent_id, hit.memory.tags) == ("swe-01", {{"repo": "ops"}})
with EnhancedAgentMemory(store={address!r}) as memory:
    memory.add("anna prefers short answers", importance=3)
with EnhancedAgentMemory(store={address!r}) as memory:
    assert memory.recall("short answers")[0][:2] == ("exp_0", "anna prefers short answers")
    assert memory.add("another one") == "exp_1"
"""
    done = environment.run("-c", code)
    assert done.returncode == 0, done.stderr
    told = environment.rmem("--store", address, "recall", "port of staging", "--json")
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["hits"][0]["memory"]["memory_id"] == "s-1"
    kept = environment.rmem("--store", address, "remember", "CSV is dropped", "--id", "d-1")
    assert (kept.returncode, kept.stdout) == (0, "d-1\n"), kept.stderr
    assert environment.rmem("--store", address, "forget", "d-1", "--yes").returncode == 0
    refused = environment.rmem("--store", address, "stats")
    assert refused.returncode != 0
    assert "RedisStore cannot do this: statistics needs a RecordStore" in refused.stderr
