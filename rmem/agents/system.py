"""MemorySystem: what all memory spaces of one AgentMemoryAPI share: the archive, the hot tiers, the embedder, the
cache, and when the tiers are rebalanced."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import fields
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from ..brain import Brain
from ..errors import (
    MemoryAPIException,
    MemoryConfigException,
    MemoryConfigInputError,
    MemoryMaintenanceException,
    MemoryRetrievalException,
    MemoryStoreException,
    RemanenceError,
)
from ..filters import Filter
from ..forks import new_lock
from ..models import Memory
from ..stores.breaker import CircuitBreaker
from ..tiers import copies
from ..tiers.maintenance import TierMaintenance
from ..tiers.policy import Bounds
from ..tiers.storage import HotTier, TieredStore, tier_version
from .cache import QueryCache
from .config import IMConfig, MemoryConfig, RedisConfig, STMConfig

log = logging.getLogger(__name__)

Result = TypeVar("Result")


class MemorySystem:
    """The shared parts of one AgentMemoryAPI."""

    def __init__(self, config: MemoryConfig, brain: Brain | None = None) -> None:
        self.config = config
        self.brain = brain if brain is not None else _archive(config)
        archive = self.brain.store
        hot = {
            tier: _hot_tier(tier, settings, self.brain)
            for tier, settings in (("stm", config.stm_config), ("im", config.im_config))
            if isinstance(settings, RedisConfig)
        }
        self.tiers = TieredStore(archive, hot)
        if hot:
            copies.register(archive, [tier.store for tier in hot.values()])
        self.cache = QueryCache(config.cache_ttl, config.cache_size)
        self.maintenance = _maintenance(config)
        self.state_failures: Counter[str] = Counter()
        """Failures of `get_state` of hooked agents, by agent."""
        self._inserted: dict[str, int] = {}
        self._versions: dict[str, object] = {}
        self._states: dict[str, tuple[object, ...]] = {}
        self._lock = new_lock()

    def configure(self, config: MemoryConfig) -> None:
        """Apply another configuration; refuse changes that need the memory to be opened again."""
        before, after = _facts(self.config), _facts(config)
        changed = {name for name in {**before, **after} if before.get(name, _ABSENT) != after.get(name, _ABSENT)}
        fixed = sorted(changed - _CHANGEABLE)
        if fixed:
            raise MemoryConfigInputError(
                f"{fixed[0]} cannot change while a memory is open; close it and make an AgentMemoryAPI with the new "
                f"configuration. These can: {', '.join(sorted(_CHANGEABLE))}",
                field=fixed[0],
                recoverable=True,
            )
        if changed & {"cache_ttl", "cache_size"}:
            self.cache = QueryCache(config.cache_ttl, config.cache_size)
        self.config, self.maintenance = config, _maintenance(config)

    def pickled_config(self) -> MemoryConfig:
        """Return the configuration with which another process opens the same memory, for pickling."""
        address, store = self.brain.address, self.brain.store
        if address == ":memory:" or address == type(store).__name__:  # a store object was given to the Brain
            raise MemoryConfigException(
                "this memory lives in its process alone and cannot be pickled; give ltm_config a path, or pickle the "
                "agent without its memory"
            )
        scheme, separator, rest = address.partition("://")
        if not separator or scheme == "sqlite":
            address = str(Path(rest.removeprefix("/") if separator else address).expanduser().absolute())
        return self.config.updated({"ltm_config.path": address})

    def clear(self, agent: str, tiers: Sequence[str]) -> int:
        try:
            return self.tiers.clear(agent, tiers)
        finally:
            self.on_removal(agent)

    def on_removal(self, agent: str) -> None:
        """Drop what was derived from removed memories of an agent."""
        self._inserted.pop(agent, None)
        self.cache.invalidate(agent)

    def store(self, agent: str, memories: Sequence[Memory]) -> list[Memory]:
        """Store memories of an agent; rebalance its tiers every `cleanup_interval` insertions."""
        kept = self.brain.keep(memories)
        self.tiers.copy_to_hot(kept)
        self.cache.invalidate(agent)
        try:
            if self._is_due(agent, kept):
                self.rebalance(agent)
        except RemanenceError as error:  # the memories are stored; the next rebalance moves what is left
            log.warning("the tiers of %s were not rebalanced: %s", agent, error)
        return kept

    def _is_due(self, agent: str, stored: Sequence[Memory]) -> bool:
        interval = self.config.cleanup_interval
        if agent not in self._inserted:
            # Short runs must be rebalanced as often as one long run: count on from the first step, or from the stored
            # memories if a run starts at 0 (that needs the index, which other runs may not need to load).
            began = stored[0].step_number or self.brain.store.count(Filter(agent=(agent,))) - len(stored)
            self._inserted.setdefault(agent, began % interval)
        with self._lock:
            count = self._inserted[agent] + len(stored)
            self._inserted[agent] = 0 if count >= interval else count
            return count >= interval

    def rebalance(self, agent: str) -> dict[str, int]:
        try:
            return self.maintenance.rebalance(self.tiers, agent)
        finally:
            self.cache.invalidate(agent)

    def plan(self, agent: str) -> dict[str, int]:
        """Return how many memories `rebalance` would move, each way."""
        return self.maintenance.plan(self.tiers, agent)

    def agents(self) -> list[str]:
        return list(self.brain.store.stats().by_agent)

    def cached(self, agent: str, key: Hashable | None, compute: Callable[[], Result]) -> Result:
        """Return the cached answer to a query of an agent, unless that agent was written to since, in any process that
        shares the archive."""
        if self.cache.ttl:
            version = self.brain.store.version()
            if self._versions.get(agent) != version:
                found_rows = self.brain.store.filtered_rows(Filter(agent=(agent,)))
                state = (
                    found_rows.size,
                    int(found_rows.seq[-1]) if found_rows.size else 0,
                    *tier_version(found_rows)[1:],
                )
                if self._states.get(agent) != state:
                    self.cache.invalidate(agent)
                self._versions[agent], self._states[agent] = version, state
        return self.cache.fetch(key, compute, group=agent)

    def close(self) -> None:
        self.tiers.close()


def _archive(config: MemoryConfig) -> Brain:
    ltm = config.ltm_config
    with raise_as(MemoryConfigException):
        return Brain(ltm.path, embedder=config.embedder, durability=ltm.durability, privacy=config.privacy)


_ABSENT = object()
_CHANGEABLE = {
    "cleanup_interval", "memory_priority_decay", "cache_ttl", "cache_size", "promotion_threshold",
    "enable_memory_hooks",
    *(f"{tier}_config.{bound}" for tier in ("stm", "im") for bound in ("memory_limit", "ttl", "max_steps")),
}  # fmt: skip


def _facts(config: MemoryConfig) -> dict[str, Any]:
    """Return the fields of a configuration; those of its tiers by dotted names."""
    facts: dict[str, Any] = {}
    for f in fields(config):
        value = getattr(config, f.name)
        tier = fields(value) if f.name.endswith("_config") and value is not None else None
        facts |= {f.name: value} if tier is None else {f"{f.name}.{g.name}": getattr(value, g.name) for g in tier}
    return facts


def _maintenance(config: MemoryConfig) -> TierMaintenance:
    bounds = {"stm": _bounds(config.stm_config), "im": _bounds(config.im_config)}
    return TierMaintenance(bounds, config.memory_priority_decay)


def _bounds(config: STMConfig | IMConfig) -> Bounds:
    return Bounds(config.memory_limit, config.ttl, config.max_steps)


def _hot_tier(tier: str, config: RedisConfig, brain: Brain) -> HotTier:
    from ..stores.redis import RedisRecordStore

    if brain.store.encryption is not None:
        raise MemoryConfigException(
            "a master key is given, but tiers in Redis are not encrypted; leave Redis out, or unset the key"
        )
    store = RedisRecordStore(
        host=config.host,
        port=config.port,
        db=config.db,
        username=config.username,
        password=config.password,
        tls=config.tls,
        ca=config.tls_ca_file,
        cluster=config.cluster,
        connect_timeout=config.connect_timeout,
        socket_timeout=config.socket_timeout,
        namespace=f"{config.namespace}.{tier}",
    )
    return HotTier(tier, store, brain.store, CircuitBreaker(f"Redis at {config.host}:{config.port}"))


class raise_as:
    """Convert errors of the engine to the documented exception, with its context. A class, because every
    call of the API goes through here and a generator takes three times as long."""

    __slots__ = ("_agent", "_kind", "_tiers")

    def __init__(self, kind: type[MemoryAPIException], agent: object = None, tiers: object = None) -> None:
        """`tiers` are those of the call; if there is one, the exception names it."""
        self._kind, self._agent, self._tiers = kind, agent, tiers

    def __enter__(self) -> None:
        return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, RemanenceError) and not isinstance(error, MemoryAPIException):
            agent, tiers = self._agent if isinstance(self._agent, str) else None, self._tiers
            tier = tiers[0] if isinstance(tiers, list | tuple) and len(tiers) == 1 else None
            raise self._kind.caused_by(error, agent_id=agent, tier=tier) from error


def raise_store_error(agent: object, tiers: object = None) -> raise_as:
    return raise_as(MemoryStoreException, agent, tiers)


def raise_retrieval_error(agent: object, tiers: object = None) -> raise_as:
    return raise_as(MemoryRetrievalException, agent, tiers)


def raise_maintenance_error(agent: object, tiers: object = None) -> raise_as:
    return raise_as(MemoryMaintenanceException, agent, tiers)
