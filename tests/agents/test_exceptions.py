"""What the agents' face raises: which kind, with which context, and as what else it can be caught."""

from __future__ import annotations

import pickle

import pytest

from rmem import errors
from rmem.agents import AgentMemoryAPI
from rmem.errors import (
    ConfigError,
    InputError,
    MemoryAPIException,
    MemoryConfigException,
    MemoryInputError,
    MemoryMaintenanceException,
    MemoryRetrievalException,
    MemoryStoreException,
    RemanenceError,
)

KINDS = (
    MemoryAPIException,
    MemoryStoreException,
    MemoryRetrievalException,
    MemoryMaintenanceException,
    MemoryConfigException,
)


@pytest.mark.parametrize("kind", KINDS)
def test_bad_input_is_both_a_failure_of_the_call_and_a_value_error(kind):
    error = kind.caused_by(InputError("step_number must be ≥ 0", field="step_number"), agent_id="a", tier="stm")
    for base in (kind, MemoryAPIException, MemoryInputError, InputError, ValueError, RemanenceError):
        assert isinstance(error, base), base
    assert (str(error), error.field, error.agent_id, error.tier) == (
        "step_number must be ≥ 0",
        "step_number",
        "a",
        "stm",
    )
    assert error.recoverable


@pytest.mark.parametrize("kind", KINDS)
def test_other_errors_are_of_the_kind_itself(kind):
    error = kind.caused_by(errors.StoreCorruptError("damaged"), agent_id="a")
    assert type(error) is kind
    assert not isinstance(error, ValueError)
    assert (error.agent_id, error.tier, error.field) == ("a", None, None)


@pytest.mark.parametrize(
    ("cause", "recoverable"),
    [
        (InputError("x"), True),
        (errors.VectorError("x"), True),
        (ConfigError("x"), True),
        (errors.StoreBusyError("x"), True),
        (errors.StoreFullError("x"), True),
        (ConnectionError("x"), True),
        (TimeoutError("x"), True),
        (errors.StoreClosedError("x"), False),
        (errors.StoreCorruptError("x"), False),
        (errors.StoreVersionError("x"), False),
        (RuntimeError("x"), False),
    ],
)
def test_what_can_be_mended_or_passes_is_recoverable(cause, recoverable):
    assert MemoryStoreException.caused_by(cause).recoverable is recoverable


def test_a_configuration_error_is_a_config_error():
    assert issubclass(MemoryConfigException, ConfigError)


def test_an_error_without_words_says_its_kind():
    assert str(MemoryStoreException.caused_by(TimeoutError())) == "TimeoutError"


def test_an_exception_survives_the_way_to_another_process():
    error = MemoryStoreException.caused_by(InputError("bad", field="k"), agent_id="a", tier="im")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert vars(again) == vars(error)
    assert str(again) == "bad"


def test_the_drawn_tree_names_every_error():
    public = [
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, RemanenceError) and value.__module__ == errors.__name__
    ]
    pairs = {name for name in public if name.endswith("InputError") and name != "MemoryInputError"} - {"InputError"}
    missing = [name for name in public if name not in errors.__doc__ and name not in pairs]
    assert missing == []


def test_an_exception_tells_the_tier_that_the_call_was_about(tmp_path):
    memory = AgentMemoryAPI({"ltm_config": {"path": tmp_path / "m.db"}})
    space = memory.get_memory_space("ann")
    memory.close()
    with pytest.raises(MemoryStoreException) as storing:
        memory.store_agent_state("ann", {"x": 1}, 1)
    with pytest.raises(MemoryRetrievalException) as retrieving:
        space.retrieve_recent_states(memory_tiers=["im"])
    with pytest.raises(MemoryRetrievalException) as anywhere:
        space.retrieve_recent_states(memory_tiers=["stm", "im"])
    told = [(raised.value.agent_id, raised.value.tier) for raised in (storing, retrieving, anywhere)]
    assert told == [("ann", "stm"), ("ann", "im"), ("ann", None)]
