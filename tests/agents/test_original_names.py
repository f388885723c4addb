"""The names of the original API under `memory`: each does on our stores what it says."""

from __future__ import annotations

import json

import memory.api
import memory.config
import pytest
from memory.api import hooks, models, types
from memory.config import AutoencoderConfig, SQLiteLTMConfig
from memory.config.models import MemoryConfigModel, SQLiteLTMConfigModel

from rmem.agents import AgentMemoryAPI, BaseAgent, MemoryConfig, MemoryConfigException
from rmem.agents.entries import MemoryEntry
from rmem.stores.base import MemoryStore


def test_the_modules_are_other_paths_to_the_same_things():
    assert (models.AgentState, hooks.BaseAgent) == (memory.api.AgentState, BaseAgent)
    assert hooks.install_memory_hooks is memory.api.install_memory_hooks
    assert types.MemoryEntry is memory.api.MemoryEntry is MemoryEntry
    assert types.MemoryStore is MemoryStore
    assert MemoryConfigModel is memory.config.MemoryConfig is MemoryConfig
    assert SQLiteLTMConfigModel is SQLiteLTMConfig


def test_types_tell_the_keys_that_there_are(api):
    for step in range(2):
        key = api.store_agent_state("a", {"health": step}, step)
    (entry,) = api.retrieve_similar_states("a", {"health": 1}, k=1)
    assert isinstance(entry, types.SimilaritySearchResult)
    assert entry["metadata"].keys() == types.MemoryMetadata.__annotations__.keys()
    assert entry["embeddings"].keys() == types.MemoryEmbeddings.__annotations__.keys()
    assert api.get_memory_statistics("a").keys() == types.MemoryStatistics.__annotations__.keys()
    history = api.get_memory_space("a").attribute_history("health")
    assert history[0].keys() == types.MemoryChangeRecord.__annotations__.keys()
    assert api.get_memory("a", key)["memory_id"] == key


def test_an_sqlite_ltm_config_leads_to_its_file(tmp_path):
    with AgentMemoryAPI(MemoryConfig(ltm_config=SQLiteLTMConfig(db_path=tmp_path / "ltm.db"))) as api:
        api.store_agent_state("a", {"health": 1}, 1)
    with AgentMemoryAPI({"ltm_config": {"db_path": str(tmp_path / "ltm.db")}}) as again:
        assert again.list_agents() == ["a"]
        assert again.config == MemoryConfig.from_dict(again.config.to_dict())
    assert SQLiteLTMConfig(path="a.db").db_path == "a.db"
    with pytest.raises(MemoryConfigException, match="path and db_path are one setting"):
        SQLiteLTMConfig(path="a.db", db_path="b.db")


def test_an_autoencoder_config_chooses_the_embedder(tmp_path):
    assert AutoencoderConfig(text_model_name="all-MiniLM-L6-v2").embedder == "minilm"
    assert AutoencoderConfig(model_path="model.onnx").embedder == "onnx:model.onnx"
    assert AutoencoderConfig().embedder is None
    config = MemoryConfig(
        autoencoder_config=AutoencoderConfig(text_model_name="none"), ltm_config={"path": str(tmp_path / "a.db")}
    )
    assert config == MemoryConfig.from_dict(json.loads(json.dumps(config.to_dict())))
    with AgentMemoryAPI(config) as api:
        key = api.store_agent_state("a", {"seen": "berries"}, 1)
        assert api.get_memory("a", key)["embeddings"]["full_vector"] is None  # the embedder "none" makes no vectors
    with pytest.raises(MemoryConfigException, match="embedder and autoencoder_config must name the same model"):
        MemoryConfig(embedder="static", autoencoder_config={"text_model_name": "none"})
    with pytest.raises(MemoryConfigException, match="text_model_name and model_path cannot both be given"):
        AutoencoderConfig(text_model_name="static", model_path="model.onnx")
    with pytest.raises(MemoryConfigException, match="AutoencoderConfig has no field 'stm_dim'"):
        AutoencoderConfig(stm_dim=768)


def test_models_are_dumped_with_all_their_fields():
    action = models.ActionData(action_type="move", state_before={"x": 1, "ok": True}, state_after={"x": 3, "ok": False})
    dumped = action.model_dump()
    assert dumped["state_before"] == {"x": 1, "ok": True}
    assert dumped["outcome"] is None
    assert models.ActionData(**dumped) == action
    assert "outcome" not in action.model_dump(exclude_none=True)
    dumped["state_before"]["x"] = 9
    assert action.state_before["x"] == 1
    assert action.get_state_difference() == {"x": 2}
    assert models.ActionData(action_type="wait").get_state_difference() == {}


def test_the_extra_data_of_a_state_can_be_read_together():
    told = models.AgentState(agent_id="a", step_number=1, extra_data={"wood": 5}).as_dict()
    assert told["extra_data"] == {"wood": 5}
    assert told == {"agent_id": "a", "step_number": 1, "wood": 5}
    with pytest.raises(KeyError):
        told["stone"]
