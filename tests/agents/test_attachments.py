"""Images and other blobs in messages and memories: kept whole with their memory, and in no context, index or prompt."""

from __future__ import annotations

import json
from base64 import b64encode
from random import Random

import pytest

from rmem.agents import AgentMemory, AgentMemoryAPI, EnhancedAgentMemory, MemoryStoreException
from rmem.crypto.encryption import Encryption
from rmem.transfer import export, import_

PNG = b"\x89PNG\r\n\x1a\n" + Random(1).randbytes(30_000)
BASE64 = b64encode(PNG).decode()
URL = f"data:image/png;base64,{BASE64}"

OPENAI = [
    {"type": "text", "text": "What is on this picture?"},
    {"type": "image_url", "image_url": {"url": URL, "detail": "low"}},
    {"type": "input_audio", "input_audio": {"data": BASE64[:4000], "format": "wav"}},
]
ANTHROPIC = [
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": BASE64}},
    {"type": "text", "text": "What is on this picture?"},
]
CONTENTS = {
    "a list of parts as OpenAI writes it": OPENAI,
    "a list of parts as Anthropic writes it": ANTHROPIC,
    "bytes": PNG,
    "bytes among others": {"picture": PNG, "words": "a picture"},
    "a data URL": URL,
    "a data URL in a text": f"Look at this ![picture]({URL}) and at this <{URL[:-8]}>.",
    "bare base64": {"screenshot": BASE64},
}


def pieces():
    """Parts of the blob in the form that it would leak in."""
    return [BASE64[at : at + 40] for at in range(0, len(BASE64) - 40, 4000)]


def leaks(text):
    return [piece for piece in pieces() if piece in text]


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS.keys())
def test_a_message_gives_its_blobs_back_and_no_context_has_them(content):
    with EnhancedAgentMemory(token_limit=500) as memory:
        key = memory.add_message("user", content)
        memory.add_message("assistant", "A red house.")
        assert memory.get_memory(key)["content"] == content
        assert memory.get_memory(key)["role"] == "user"
        assert memory.get_messages(attachments=True)[0] == {"role": "user", "content": content}
        shown = [
            memory.context_for("What is on the picture?", 400),
            memory.get_recent_messages(),
            memory.summary(),
            memory.create_summary(),
            str(memory.get_messages()),
            str(memory.search("picture", 5)),
            str(memory.long_term.get(key)),
        ]
        assert [leaks(text) for text in shown] == [[]] * len(shown)
        assert "[attachment 1: image/png, 3" in memory.long_term.get(key)  # 30 KB
        assert memory.working.tokens < 500


def test_a_tool_call_keeps_what_the_tool_gave():
    with EnhancedAgentMemory() as memory:
        key = memory.add_tool_call("screenshot", {"window": "editor"}, {"image": PNG, "size": [640, 480]})
        (call,) = memory.tool_call_history
        assert call["result"] == {"image": "[attachment 1: image/png, 30 KB]", "size": [640, 480]}
        assert memory.get_memory(key)["result"] == {"image": PNG, "size": [640, 480]}
        assert memory.get_memory("tool_7") is None


@pytest.mark.parametrize("data", [bytes(3000), b64encode(bytes(3000)).decode()], ids=["bytes", "base64"])
def test_a_blob_is_named_by_the_media_type_beside_it(data):
    part = {"type": "image", "media_type": "image/avif", "data": data}
    with EnhancedAgentMemory() as memory:
        key = memory.add_message("user", [part])
        assert "[attachment 1: image/avif, 3 KB]" in memory.long_term.get(key)
        assert memory.get_memory(key)["content"] == [part]


def test_the_same_blob_is_kept_once():
    with EnhancedAgentMemory() as memory:
        key = memory.add_message("user", [{"image": PNG}, {"image": PNG}, {"url": URL}])
        kept = memory.long_term.memory(key).contents["_attachments"]
        assert list(kept) == ["[attachment 1: image/png, 30 KB]", "[attachment 2: image/png, 30 KB]"]


def test_ordinary_texts_are_left_as_they_are():
    said = ["data:text/plain,hello", "base64, they said", "x" * 500, {"data": "hello", "format": "short"}, "y" * 40]
    with EnhancedAgentMemory() as memory:
        key = memory.add_message("user", said)
        assert memory.long_term.memory(key).contents["content"] == said


def test_an_adapter_for_plain_memories_takes_images():
    with AgentMemory() as memory:
        memory.messages.append({"role": "user", "content": OPENAI})
        assert leaks(memory.get_context()) == []
        assert memory.get_messages(attachments=True)[0]["content"] == OPENAI


# In the memories of agents in steps


def test_a_memory_of_an_agent_gives_its_blobs_back(api):
    data = {"content": OPENAI, "camera": PNG, "place": "forest"}
    key = api.store_agent_interaction("a", data, 1)
    assert api.get_memory("a", key)["contents"] == data
    space = api.get_memory_space("a")
    (listed,) = api.retrieve_by_time_range("a", 0, 9)
    (found,) = space.search_by_content("picture forest")
    (alike,) = api.retrieve_similar_states("a", {"place": "forest"})
    for entry in (listed, found, alike):
        assert leaks(json.dumps(entry)) == []
        assert entry["contents"]["camera"] == "[attachment 3: image/png, 30 KB]"
    memory = api._system.brain.get(key)
    assert leaks(memory.text) == []
    assert leaks(json.dumps(api._system.brain.recall("picture")[0].to_dict())) == []
    assert api.retrieve_by_attributes("a", {"place": "forest"})
    with pytest.raises(MemoryStoreException, match="must not hold the key '_attachments'"):
        api.store_agent_state("a", {"_attachments": {}}, 2)


def test_what_has_no_end_is_refused_as_before(api):
    endless: dict = {"data": URL}
    endless["again"] = [endless]
    with pytest.raises(MemoryStoreException, match="nested deeper than 64 levels"):
        api.store_agent_state("a", endless, 1)


def test_blobs_come_back_from_every_tier_and_from_redis(new_api):
    from rmem.testing.redis import RedisServer

    with RedisServer() as server:
        where = {"host": "127.0.0.1", "port": server.port}
        api = new_api(
            stm_config={**where, "memory_limit": 2}, im_config={"memory_limit": 2}, cleanup_interval=10**9, cache_ttl=0
        )
        keys = [api.store_agent_state("a", {"n": step, "camera": PNG}, step) for step in range(6)]
        api.force_memory_maintenance("a")
        assert api.get_memory_statistics("a")["tier_distribution"] == {"stm": 2, "im": 2, "ltm": 2}
        assert [api.get_memory("a", key)["contents"] for key in keys] == [{"n": n, "camera": PNG} for n in range(6)]
        assert not api.retrieve_by_time_range("a", 0, 9).missing_tiers


def test_blobs_are_exported_and_imported_with_their_memory(tmp_path):
    with AgentMemoryAPI({"ltm_config": {"path": tmp_path / "one.db"}}) as one:
        key = one.store_agent_state("a", {"camera": PNG, "seen": URL}, 1)
        export(one._system.brain, tmp_path / "all.jsonl")
    with AgentMemoryAPI({"ltm_config": {"path": tmp_path / "two.db"}}) as two:
        import_(two._system.brain, tmp_path / "all.jsonl")
        assert two.get_memory("a", key)["contents"] == {"camera": PNG, "seen": URL}


def on_disk(folder):
    return b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())


def test_blobs_are_erased_with_their_memory(tmp_path):
    with AgentMemoryAPI({"ltm_config": {"path": tmp_path / "one.db"}}) as api:
        key = api.store_agent_state("a", {"seen": URL}, 1)
        assert any(piece.encode() in on_disk(tmp_path) for piece in pieces())
        api.forget("a", key)
    assert not any(piece.encode() in on_disk(tmp_path) for piece in pieces())


def test_blobs_are_encrypted_with_their_memory(tmp_path):
    key = Encryption(master=Random(7).randbytes(32))
    with EnhancedAgentMemory(True, path=tmp_path / "e.db", encryption=key) as memory:
        memory.add_message("user", OPENAI)
    assert not any(piece.encode() in on_disk(tmp_path) for piece in pieces())
    with EnhancedAgentMemory(True, path=tmp_path / "e.db", encryption=key) as memory:
        assert memory.get_memory("msg_0")["content"] == OPENAI


def test_a_privacy_policy_cleans_the_words_and_leaves_the_blobs():
    with EnhancedAgentMemory(privacy="default") as memory:
        said = [{"type": "text", "text": "Write to anna@example.com"}, *ANTHROPIC]
        key = memory.add_message("user", said)
        told = memory.get_memory(key)["content"]
        assert told[1:] == ANTHROPIC
        assert "anna@example.com" not in str(told)


def test_a_server_tells_bytes_as_data_urls(tmp_path):
    from rmem.server.bodies import to_json

    assert json.loads(to_json({"camera": PNG})) == {"camera": URL}
