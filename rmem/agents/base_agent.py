"""BaseAgent: an optional base class for agents, with a step counter and a state. The hooks work on any other class
too."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from .. import checks
from ..errors import InputError, MemoryInputError
from .models import ActionResult, AgentState
from .plain_data import plain

if TYPE_CHECKING:
    from .space import MemorySpace


HOOKED = "__remembers__"
"""Attribute that marks a hooked `act`."""


class BaseAgent:
    """An agent with a name, a step counter and a state. Override `process`, which here only records the observation.
    With hooks installed each `act` is one step, unless the agent counts `step_number` itself. An agent that is created
    again continues after the last step of its memory, at its first act or as soon as it has its `memory_api`. `config`
    may be anything, also a MemoryConfig or an object with one as `memory_config`; `memory_api` is the memory to use.
    """

    # Class attributes, for subclasses that do not call this __init__, and for `install_memory_hooks(memory_api=…)`.
    config: Any = None
    memory_api: Any = None
    step_number: int = 0
    _has_acted: bool = False

    def __init__(self, config: Any = None, agent_id: str | None = None, memory_api: Any = None) -> None:
        self.config = config
        if check_memory_api(memory_api) is not None:
            self.memory_api = memory_api
        try:
            self.agent_id = f"agent-{uuid.uuid4().hex[:12]}" if agent_id is None else checks.name("agent_id", agent_id)
        except InputError as error:
            raise MemoryInputError.caused_by(error) from None
        if agent_id is not None and self.memory_api is not None and hasattr(type(self).act, HOOKED):
            from .recorder import resume

            resume(self)

    @property
    def memory(self) -> MemorySpace:
        """Return the MemorySpace of this agent."""
        from .recorder import memory_of

        return memory_of(self).get_memory_space(self.agent_id)

    def act(self, observation: Any = None) -> Any:
        return self.process(observation)

    def process(self, observation: Any) -> Any:
        return ActionResult("observe", params={"observation": plain(observation)})

    def get_state(self) -> AgentState:
        return AgentState(agent_id=self.agent_id, step_number=self.step_number)


def check_memory_api(memory_api: Any) -> Any:
    """Check the memory given to an agent. Done here, because an error while the agent acts would only be logged."""
    if memory_api is None or (not isinstance(memory_api, type) and hasattr(memory_api, "store_agent_state")):
        return memory_api
    wanted = "an AgentMemoryAPI or an AsyncAgentMemoryAPI"
    raise MemoryInputError.caused_by(checks.refuse("memory_api", wanted, memory_api))
