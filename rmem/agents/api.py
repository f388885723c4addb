"""AgentMemoryAPI, the documented interface: finds the agent's MemorySpace by name and passes each call on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, overload

from .. import checks
from ..aio import AsyncFace
from ..brain import Brain
from ..closing import Closing
from ..errors import InputError
from ..tiers.forgetting import ForgettingPolicy
from .config import MemoryConfig
from .entries import MemoryEntries, MemoryEntry
from .space import MemorySpace
from .system import MemorySystem, raise_as, raise_maintenance_error, raise_retrieval_error, raise_store_error
from .types import ConfigUpdate, MemoryStatistics


class AgentMemoryAPI(Closing):
    """States, actions and interactions of many agents, in three tiers.

        memory_api = AgentMemoryAPI()
        memory_api.store_agent_state("agent-123", {"position": [10, 20], "health": 0.85}, step_number=1234)
        memory_api.retrieve_similar_states("agent-123", {"position": [12, 22], "health": 0.8})

    Without a configuration everything is in the default file, which RMEM_HOME moves. Safe to use from many
    threads. Errors are MemoryAPIException and its kinds; bad input is a ValueError as well, and nothing is written.
    """

    def __init__(self, config: MemoryConfig | Mapping[str, Any] | None = None, *, brain: Brain | None = None) -> None:
        """`brain` is an already open archive; `close` closes it, too."""
        self._system = MemorySystem(MemoryConfig.of(config), brain)
        self._spaces: dict[str, MemorySpace] = {}

    @property
    def config(self) -> MemoryConfig:
        """Return the current configuration."""
        return self._system.config

    # Storing

    def store_agent_state(
        self, agent_id: str, state_data: Mapping[str, Any], step_number: int, priority: float = 1.0
    ) -> str:
        """Store an agent's state; return the id of the memory. It is on disk and can be found when this returns."""
        return self._space(agent_id, raise_store_error).store("state", state_data, step_number, priority)

    def store_agent_interaction(
        self, agent_id: str, interaction_data: Mapping[str, Any], step_number: int, priority: float = 1.0
    ) -> str:
        """Store an interaction with another agent; return the id of the memory."""
        return self._space(agent_id, raise_store_error).store("interaction", interaction_data, step_number, priority)

    def store_agent_action(
        self, agent_id: str, action_data: Mapping[str, Any], step_number: int, priority: float = 1.0
    ) -> str:
        """Store an action of an agent; return the id of the memory."""
        return self._space(agent_id, raise_store_error).store("action", action_data, step_number, priority)

    # Retrieving

    def retrieve_similar_states(
        self, agent_id: str, query_state: Mapping[str, Any], k: int = 5, memory_type: str | None = None
    ) -> MemoryEntries:
        """Return the memories most similar to a state, best first."""
        return self._space(agent_id, raise_retrieval_error).retrieve_similar_states(query_state, k, memory_type)

    def retrieve_by_time_range(
        self, agent_id: str, start_step: int, end_step: int, memory_type: str | None = None
    ) -> MemoryEntries:
        """Return all memories from one step to another (both included), by step."""
        return self._space(agent_id, raise_retrieval_error).retrieve_by_time_range(start_step, end_step, memory_type)

    def retrieve_by_attributes(
        self, agent_id: str, attributes: Mapping[str, Any], memory_type: str | None = None
    ) -> MemoryEntries:
        """Return all memories whose contents have these values, by step."""
        return self._space(agent_id, raise_retrieval_error).retrieve_by_attributes(attributes, memory_type)

    def get_memory(self, agent_id: str, memory_id: str) -> MemoryEntry | None:
        """Return one memory of an agent with its attachments; None if there is none."""
        return self._space(agent_id, raise_retrieval_error).get(memory_id)

    # Managing

    def list_agents(self) -> list[str]:
        """Return the names of all agents that have memories, sorted."""
        with raise_retrieval_error(None):
            return sorted(self._system.agents())

    def clear_agent_memory(self, agent_id: str, memory_tiers: Sequence[str] | None = None) -> bool:
        """Remove the memories of an agent permanently, or those in some tiers; True when done. Memories of other
        agents stay, even if they name this one: `forget(subject=…)` removes those too."""
        self._space(agent_id, raise_maintenance_error).clear(memory_tiers)
        return True

    clear_memory = clear_agent_memory

    @overload
    def forget(self, agent_id: str, memory_id: str) -> bool: ...

    @overload
    def forget(self, *, subject: str, dry_run: bool = False) -> list[str]: ...

    def forget(
        self,
        agent_id: str | None = None,
        memory_id: str | None = None,
        *,
        subject: str | None = None,
        dry_run: bool = False,
    ) -> bool | list[str]:
        """Remove one memory of an agent permanently; return whether there was one. With `subject`, remove all that
        concerns a person or an agent, whichever agent remembers it, from every tier; return the ids. `dry_run` only
        returns them."""
        with raise_maintenance_error(agent_id):
            if subject is not None and agent_id is None and memory_id is None:
                gone = self._system.brain.forget(subject=subject, dry_run=dry_run)
                if not dry_run:
                    self._on_removal()
                return gone
            if subject is not None or agent_id is None or memory_id is None or dry_run:
                raise InputError("agent_id and memory_id must be given, or subject alone", field="subject")
        return self._space(agent_id, raise_maintenance_error).forget(memory_id)

    def prune(self, policy: ForgettingPolicy | Mapping[str, Any], *, dry_run: bool = False) -> list[tuple[str, float]]:
        """Remove faded memories of all agents and tiers; return (id, retention), the most faded first; see
        `Brain.prune`.

        api.prune({"below": 0.05, "steps_per_day": 1000})
        """
        with raise_maintenance_error(None):
            gone = self._system.tiers.prune(policy, dry_run=dry_run)
            if not dry_run:
                self._on_removal()
            return gone

    def _on_removal(self) -> None:
        for agent, space in list(self._spaces.items()):
            space.forget_deviations()
            self._system.on_removal(agent)

    def set_importance_score(self, agent_id: str, memory_id: str, importance_score: float) -> bool:
        """Set the importance of a memory, 0 to 1; return whether the agent has such a memory."""
        return self._space(agent_id, raise_maintenance_error).set_importance(memory_id, importance_score)

    def configure_memory_system(self, config: ConfigUpdate) -> bool:
        """Change the configuration of this open memory; True when done. All is checked before anything changes.

            api.configure_memory_system({"cleanup_interval": 200, "stm_config.memory_limit": 5000})

        What is read only when a memory is opened (where a tier lives, the embedder, the privacy policy) is refused.
        """
        self._system.configure(self.config.updated(config))
        return True

    def get_memory_space(self, agent_id: str) -> MemorySpace:
        """Return the MemorySpace of an agent, with every way to search its memories."""
        return self._space(agent_id, raise_retrieval_error)

    def _space(self, agent_id: str, doing: Callable[[object], raise_as]) -> MemorySpace:
        space = self._spaces.get(agent_id) if type(agent_id) is str else None
        if space is None:
            with doing(agent_id):
                space = MemorySpace(agent_id, self._system)
            space = self._spaces.setdefault(agent_id, space)
        return space

    def force_memory_maintenance(self, agent_id: str | None = None) -> dict[str, Any]:
        """Rebalance the tiers of one agent or of all; return how many memories moved each way, in total and by
        agent."""
        return self._maintain(agent_id, self._system.rebalance)

    def plan_memory_maintenance(self, agent_id: str | None = None) -> dict[str, Any]:
        """Return how many memories `force_memory_maintenance` would move now, without moving any."""
        return self._maintain(agent_id, self._system.plan)

    def _maintain(self, agent_id: str | None, move: Callable[[str], dict[str, int]]) -> dict[str, Any]:
        with raise_maintenance_error(agent_id):
            agents = self._system.agents() if agent_id is None else [checks.name("agent_id", agent_id)]
            by_agent = {agent: move(agent) for agent in agents}
            total: Counter[str] = Counter({"stm_to_im": 0, "im_to_ltm": 0})
            for moved in by_agent.values():
                total.update(moved)
            return {**total, "agents": by_agent}

    def get_memory_statistics(self, agent_id: str) -> MemoryStatistics:
        """Return the statistics of an agent: memories by type and tier, sizes, importance, and the cache."""
        return self.get_memory_space(agent_id).statistics()

    def clear_cache(self) -> None:
        """Clear the cache of answers."""
        self._system.cache.clear()

    def set_cache_ttl(self, ttl: float) -> None:
        """Set how many seconds answers are cached; 0 turns the cache off."""
        with raise_retrieval_error(None):
            self._system.cache.set_ttl(ttl)

    def close(self) -> None:
        """Write pending changes and close files and connections. Closing twice is harmless."""
        self._system.close()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # copies of an agent share its open memory

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the configuration; unpickling opens the memory again, once per process."""
        from .recorder import shared_memory

        return shared_memory, (self._system.pickled_config(),)

    def __repr__(self) -> str:
        return f"AgentMemoryAPI({self._system.brain.address!r})"


class AsyncAgentMemoryAPI(AsyncFace[AgentMemoryAPI]):
    """`async with AsyncAgentMemoryAPI() as api: await api.store_agent_state(…)`; the same API, awaited."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(AgentMemoryAPI(*args, **options))
