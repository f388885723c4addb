"""AutoGen's memory: its own tests of a list and of a vector memory, and what is ours alone."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("autogen_core", reason="autogen-core is not installed: make test-frameworks")

from autogen_core import Image
from autogen_core.memory import Memory, MemoryContent, MemoryMimeType
from autogen_core.model_context import BufferedChatCompletionContext
from autogen_core.models import UserMessage
from PIL import Image as Picture
from upstream import outcomes, sources

from rmem import Brain
from rmem.errors import ConfigError
from rmem.integrations.autogen import BrainMemory

LIST = "tests/test_memory.py::test_"
INSIDE_LIST = [  # a list in the order of adding, and the name of its class
    f"{LIST}memory_component_load_config_from_base_model",
    f"{LIST}memory_component_dump_config_to_base_model",
    f"{LIST}list_memory_add_and_query",
    f"{LIST}list_memory_content_types",
]
CHROMA = "tests/memory/test_chroma_memory.py::test_"
INSIDE_CHROMA = [  # its configuration
    f"{CHROMA}error_handling",  # wants bytes refused, which we keep
    f"{CHROMA}component_serialization",
    f"{CHROMA}embedding_function_error_handling",
    f"{CHROMA}sentence_transformer_embedding_function",
    f"{CHROMA}custom_embedding_function",
]


@pytest.mark.framework("autogen-core", "its own tests")
def test_the_tests_of_the_list_memory_pass(tmp_path, record_property):
    root = sources("autogen-core", tmp_path)
    counted = outcomes(root, ["tests/test_memory.py"], "replace_autogen", deselect=INSIDE_LIST, alone=True)
    record_property("counted", counted["passed"])
    assert counted.keys() <= {"passed", "deselected", "warning", "warnings"}
    assert counted["passed"] >= 6


@pytest.mark.framework("autogen-core", "its own tests")
def test_the_tests_of_the_vector_memory_pass(tmp_path, record_property):
    pytest.importorskip("autogen_ext")
    root = sources("autogen-ext", tmp_path)
    files = ["tests/memory/test_chroma_memory.py"]
    counted = outcomes(root, files, "replace_autogen", deselect=INSIDE_CHROMA, alone=True)
    record_property("counted", counted["passed"])
    assert counted.keys() <= {"passed", "deselected", "warning", "warnings"}
    assert counted["passed"] >= 8


def content(text: str, **metadata: object) -> MemoryContent:
    return MemoryContent(content=text, mime_type=MemoryMimeType.TEXT, metadata=metadata or None)


def test_contents_of_every_type_come_back():
    picture = Image(Picture.new("RGB", (2, 2), "red"))
    given = [
        content("Ann likes tea"),
        MemoryContent(content={"tea": {"cups": 2}}, mime_type=MemoryMimeType.JSON),
        MemoryContent(content=b"\x00\xff", mime_type="application/x-tea", metadata={"about": "tea"}),
        MemoryContent(content=picture, mime_type=MemoryMimeType.IMAGE, metadata={"about": "red tea"}),
    ]
    with Brain(":memory:") as brain:
        memory = BrainMemory(brain)
        for one in given:
            asyncio.run(memory.add(one))
        found = asyncio.run(memory.query("tea")).results
    assert [one.mime_type for one in found if one.content == b"\x00\xff"] == ["application/x-tea"]
    assert {"tea": {"cups": 2}} in [one.content for one in found]
    assert "Ann likes tea" in [one.content for one in found]
    (image,) = (one.content for one in found if isinstance(one.content, Image))
    assert image.image.getpixel((0, 0)) == (255, 0, 0)


def test_the_model_is_told_what_answers_the_latest_message():
    async def told(memory: Memory) -> str:
        for text in ("Ann's dog is called Bruno", "the train leaves at nine", "tea is better than coffee"):
            await memory.add(content(text))
        context = BufferedChatCompletionContext(buffer_size=5)
        await context.add_message(UserMessage(content="what is the dog called?", source="user"))
        await memory.update_context(context)
        return str((await context.get_messages())[-1].content)

    with Brain(":memory:") as brain:
        assert asyncio.run(told(BrainMemory(brain, k=1))) == "Relevant memories:\n- Ann's dog is called Bruno"


def test_a_memory_is_saved_by_its_address_and_loaded_again(tmp_path):
    memory = BrainMemory(tmp_path / "a.db", name="pets", k=3)
    asyncio.run(memory.add(content("Ann's dog is called Bruno")))
    loaded = Memory.load_component(memory.dump_component())
    assert [one.content for one in asyncio.run(loaded.query("dog")).results] == ["Ann's dog is called Bruno"]
    asyncio.run(memory.close())
    asyncio.run(loaded.close())
    with Brain(":memory:") as brain, pytest.raises(ConfigError, match="made with an address"):
        BrainMemory(brain).dump_component()
