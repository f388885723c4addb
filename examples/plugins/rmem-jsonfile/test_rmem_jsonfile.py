"""The store passes Remanence's suite, and keeps what the suite cannot see: the file."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from rmem_jsonfile import JsonFileStore

from rmem import Brain
from rmem.errors import ConfigError, StoreCorruptError
from rmem.testing import RecordStoreContract, synthetic_memories


class TestJsonFileStore(RecordStoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        with JsonFileStore(f"jsonfile:///{tmp_path}/memories.jsonl") as store:
            yield store

    @pytest.fixture
    def reopen(self, tmp_path):
        return lambda: JsonFileStore(f"jsonfile:///{tmp_path}/memories.jsonl")


class TestJsonFileStoreSeenByAnother(RecordStoreContract):
    """Every read goes through a second store on the same file, as another process would read it."""

    @pytest.fixture
    def store(self, tmp_path):
        with _Pair(f"jsonfile:///{tmp_path}/memories.jsonl") as store:
            yield store


class _Pair(JsonFileStore):
    def __init__(self, address):
        super().__init__(address)
        self._other = JsonFileStore(address)

    def filtered_rows(self, where):
        return self._other.filtered_rows(where)

    def memories_at(self, seqs):
        return self._other.memories_at(seqs)

    def touch(self, keys, when):
        self._other.touch(keys, when)

    def get_many(self, keys):
        return self._other.get_many(keys)

    def close(self):
        self._other.close()
        super().close()


@pytest.fixture
def address(tmp_path):
    return f"jsonfile:///{tmp_path}/memories.jsonl"


def lines(tmp_path):
    return [json.loads(line) for line in (tmp_path / "memories.jsonl").read_text().splitlines()]


def test_a_brain_finds_everything_again_after_a_restart(address):
    with Brain(address) as brain:
        brain.remember_many(list(synthetic_memories(300)))
        brain.remember("the kingfisher dived into the harbour", id="bird", session="s")
        assert brain.recall("kingfisher", k=1)[0].memory.memory_id == "bird"
        brain.recall("kingfisher", k=1)[0].useful()
    with Brain(address) as brain:
        found = brain.recall("a bird at the harbour", k=5)
        assert "bird" in [hit.memory.memory_id for hit in found]
        assert brain.stats()["memories"] == 301
        assert brain.embedder == "static:minilm-256"
        assert brain.get("bird").bookkeeping.retrieval_count >= 1
        assert [one.useful for one in brain.store.feedback()] == [True]


def test_a_replaced_memory_keeps_its_place_after_a_restart(address):
    with Brain(address) as brain:
        for number in range(6):
            brain.remember(f"part {number}", id=f"m{number}", session="s", when=1_700_000_000 + number)
        for _ in range(8):  # until the file is written anew
            brain.remember("part one again", id="m1", session="s", when=1_700_000_001)
    with Brain(address) as brain:
        assert [memory.text for memory in brain.memories(order="oldest")][:3] == ["part 0", "part one again", "part 2"]


def test_what_is_forgotten_is_not_in_the_file(address, tmp_path):
    with Brain(address) as brain:
        brain.remember("a secret plan", id="m")
        brain.remember("something else")
        brain.forget("m")
        assert "secret" not in (tmp_path / "memories.jsonl").read_text()
        assert len(brain.memories()) == 1


def test_a_writer_that_died_in_the_middle_of_a_line_harms_nobody(address, tmp_path):
    with Brain(address) as brain:
        brain.remember("whole", id="m")
    with (tmp_path / "memories.jsonl").open("ab") as file:
        file.write(b'{"put": [{"memory_id": "ha')
    with Brain(address) as brain:
        assert [memory.text for memory in brain.memories()] == ["whole"]
        brain.remember("later")
    with Brain(address) as brain:
        assert len(brain.memories()) == 2
    assert all(lines(tmp_path))


def test_processes_see_each_other_and_lose_nothing(address):
    script = (
        "import sys; from rmem import Brain\n"
        "with Brain(sys.argv[1], embedder='none') as brain:\n"
        "    for n in range(40): brain.remember(f'{sys.argv[2]} {n}', agent=sys.argv[2])\n"
    )
    with Brain(address, embedder="none") as brain:
        brain.remember("first")
        writers = [subprocess.Popen([sys.executable, "-c", script, address, name]) for name in ("ana", "bo")]
        assert [writer.wait(60) for writer in writers] == [0, 0]
        brain.remember("last")
        assert brain.stats()["memories"] == 82
        assert brain.stats()["by_agent"]["ana"] == 40


def test_a_file_of_another_kind_is_refused(address, tmp_path):
    (tmp_path / "memories.jsonl").write_text('{"hello": 1}\n')
    with pytest.raises(StoreCorruptError, match="no such line"):
        Brain(address)


def test_an_address_without_a_file_is_refused():
    with pytest.raises(ConfigError, match="names no file"):
        JsonFileStore("jsonfile://")
