"""What `rmem bench agents` measures: one agent that has lived long, through AgentMemoryAPI as any user would, with the
tiers in the embedded file or the hot ones in a Redis of its own. The query cache is off, so that the work is seen."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from rmem.agents import AgentMemoryAPI, MemoryConfig, RedisIMConfig, RedisSTMConfig
from rmem.testing.synthetic import synthetic_memories, synthetic_questions

from .baselines import BareInsert, BruteStates
from .measure import Samples, interleaved, ratios
from .scenarios import Advance

AGENT = "walker"
K = 10
RESULTS = 100  # that a range of steps and an attribute have
_WARM_UP = 10
_SMALL = 500  # states whose bytes in Redis are counted; they all stay in short-term memory
_TASKS = ("similar", "time_range", "attributes", "recent", "content")

_KINDS = (("state", 800), ("action", 100), ("interaction", 100))  # of every thousand, in this order

Stretch = tuple[str, int, list[dict[str, Any]]]


def life(size: int, seed: int) -> Iterator[Stretch]:
    """One agent's memories in stretches of one kind: (kind, first step, contents). States are on a random walk; every
    `patrol` is that of a hundred memories, spread over the whole life."""
    chance = random.Random(seed)
    said = synthetic_memories(size // 10 + 1, seed)
    x, y, patrols, step = 50.0, 50.0, max(1, size // RESULTS), 0
    for kind, length in cycle(_KINDS):
        first, contents = step, []
        for step in range(first, min(first + length, size)):
            x, y = (min(100.0, max(0.0, at + chance.gauss(0, 2))) for at in (x, y))
            if kind == "state":
                kept = state(chance, x, y)
            elif kind == "action":
                kept = {
                    "action_type": chance.choice(("gather", "trade", "rest")),
                    "position": [round(x, 2), round(y, 2)],
                }
            else:
                kept = {"interaction_type": "conversation", "content": next(said)["text"]}
            contents.append({"patrol": step % patrols, **kept})
        if contents:
            yield kind, first, contents
        step = first + length
        if step >= size:
            return


def state(chance: random.Random, x: float, y: float) -> dict[str, Any]:
    return {
        "position": [round(x, 2), round(y, 2)],
        "health": round(chance.random(), 3),
        "gold": chance.randrange(1_000_000),
        "inventory": {"wood": chance.randrange(20), "stone": chance.randrange(20)},
        "weather": chance.choice(("sun", "rain", "fog")),
    }


def numbers(contents: dict[str, Any]) -> list[float]:
    """The numbers of a state that questions ask for."""
    kept = contents["inventory"]
    return [*contents["position"], contents["health"], contents["gold"], kept["wood"], kept["stone"]]


class AgentGround:
    """An agent with `size` memories, in the embedded file or with its hot tiers in Redis."""

    def __init__(self, folder: Path, size: int, seed: int, embedder: str, advance: Advance, *, redis: bool) -> None:
        self.folder, self.size, self.seed, self.advance = folder, size, seed, advance
        self.path = folder / "memories.db"
        self.label = "with Redis" if redis else "embedded"
        self.states = BruteStates()
        self._open = ExitStack()
        tiers: dict[str, Any] = {}
        self.server = None
        if redis:
            from rmem.testing.redis import RedisServer

            self.server = self._open.enter_context(RedisServer())
            there = self.server.connection()
            tiers = {"stm_config": RedisSTMConfig(**there), "im_config": RedisIMConfig(**there)}
        config = MemoryConfig(ltm_config={"path": self.path}, embedder=embedder, **tiers)
        self.api = self._open.enter_context(AgentMemoryAPI(config))
        self.api.set_cache_ttl(0)

    def fill(self) -> None:
        space, chance = self.api.get_memory_space(AGENT), random.Random(self.seed + 1)
        for kind, first, contents in life(self.size, self.seed):
            space.store_many(kind, contents, first_step=first, priority=chance.random())
            if kind == "state":
                self.states.add([numbers(kept) for kept in contents])
            self.advance(f"fill, {self.label}", first + len(contents), self.size)
        self.api.force_memory_maintenance(AGENT)

    def close(self) -> None:
        self._open.close()


def measure(
    folder: Path, size: int, embedder: str, calls: int, seed: int, advance: Advance, *, redis: bool
) -> dict[str, Any]:
    """The figures of a size: embedded, and with Redis where asked for."""
    result = {}
    for place in ("embedded", "redis") if redis else ("embedded",):
        (folder / place).mkdir()
        ground = AgentGround(folder / place, size, seed, embedder, advance, redis=place == "redis")
        try:
            result[place] = _measured(ground, calls)
        finally:
            ground.close()
    return result


def _measured(ground: AgentGround, calls: int) -> dict[str, Any]:
    ground.fill()
    asked, stored = _questions(ground, calls), _stores(ground, calls)
    result = asked | stored
    for part in ("baselines", "ratios"):
        result[part] = asked[part] | stored[part]
    held = ground.api.get_memory_statistics(AGENT)
    result["tiers"] = held["tier_distribution"]
    result["compression_ratio"] = round(held["compression"]["ratio"], 2)
    if ground.server is not None:
        result["redis_bytes"] = _redis_bytes(ground)
    return result


def _questions(ground: AgentGround, calls: int) -> dict[str, Any]:
    api, space, total = ground.api, ground.api.get_memory_space(AGENT), calls + _WARM_UP
    chance = random.Random(ground.seed + 2)
    like = [state(chance, chance.uniform(0, 100), chance.uniform(0, 100)) for _ in range(total)]
    for asked in like:
        del asked["weather"]  # brute force knows numbers only
    matrix = np.array([numbers(asked) for asked in like])
    starts = [chance.randrange(max(1, ground.size - RESULTS)) for _ in range(total)]
    patrols = [chance.randrange(max(1, ground.size // RESULTS)) for _ in range(total)]
    words = synthetic_questions(total, ground.seed, ground.size // 10 + 1)
    ground.states.settle()
    tasks: dict[str, Callable[[int], object]] = {
        "similar": lambda at: api.retrieve_similar_states(AGENT, like[at], K, "state"),
        "time_range": lambda at: api.retrieve_by_time_range(AGENT, starts[at], starts[at] + RESULTS - 1),
        "attributes": lambda at: api.retrieve_by_attributes(AGENT, {"patrol": patrols[at]}),
        "recent": lambda at: space.retrieve_recent_states(K),
        "content": lambda at: space.search_by_content(words[at], K),
        "numpy_brute_force": lambda at: ground.states.nearest(matrix[at], K),
    }
    for at in range(calls, total):
        for task in tasks.values():
            task(at)
    done = 0

    def count() -> None:
        nonlocal done
        done += 1
        ground.advance(f"ask, {ground.label}", done, calls * len(tasks))

    taken = {name: samples.summary() for name, samples in interleaved(tasks, calls, on_call=count).items()}
    result: dict[str, Any] = {name: taken[name] for name in _TASKS}
    result["baselines"] = {"numpy_brute_force": taken["numpy_brute_force"]}
    result["ratios"] = {"similar_to_numpy_brute_force": ratios(taken["similar"], taken["numpy_brute_force"])}
    result["results"] = {
        "time_range": len(api.retrieve_by_time_range(AGENT, starts[0], starts[0] + RESULTS - 1)),
        "attributes": len(api.retrieve_by_attributes(AGENT, {"patrol": patrols[0]})),
    }
    exact = [ground.states.nearest(query, 1)[0] for query in matrix[:100]]

    def agreeing(ask: Callable[[dict[str, Any]], list[Any]]) -> float:
        firsts = (numbers(ask(asked)[0]["contents"]) for asked in like)
        return float(np.mean([np.array_equal(first, best) for first, best in zip(firsts, exact, strict=False)]))

    result["similar_agrees"] = agreeing(lambda asked: api.retrieve_similar_states(AGENT, asked, 1, "state"))
    result["vectors_agree"] = agreeing(
        lambda asked: space.search_by_embedding(space.embed(asked), 1, memory_type="state")
    )
    return result


def _stores(ground: AgentGround, calls: int) -> dict[str, Any]:
    """One state at a time, each beside a bare insert of the same row. The tiers are tended as configured, so one call
    in a hundred takes longer."""
    bare = BareInsert(ground.path, ground.folder / "bare.db")
    chance = random.Random(ground.seed + 3)
    ours, plain = Samples(), Samples()
    for at in range(calls + _WARM_UP):
        kept = {"patrol": -1, **state(chance, chance.uniform(0, 100), chance.uniform(0, 100))}
        timed, beside = (ours, plain) if at >= _WARM_UP else (Samples(), Samples())
        memory_id = timed.time(
            lambda kept=kept, at=at: ground.api.store_agent_state(AGENT, kept, ground.size + at, 0.5)  # type: ignore[misc]
        )
        row = bare.row(memory_id)
        beside.time(lambda row=row: bare.insert(row))  # type: ignore[misc]
        ground.advance(f"store, {ground.label}", at + 1, calls + _WARM_UP)
    bare.close()
    subject, baseline = ours.summary(), plain.summary()
    subject["per_cpu_s"] = round(1000 / max(subject["cpu_ms"]["p50"], 1e-3), 1)
    subject["per_cpu_s_tended"] = round(calls / sum(ours.cpu), 1)
    subject["per_wall_s_tended"] = round(calls / sum(ours.wall), 1)
    return {
        "store": subject,
        "baselines": {"bare_sqlite_insert": baseline},
        "ratios": {"store_to_bare_sqlite_insert": ratios(subject, baseline)},
    }


def _redis_bytes(ground: AgentGround) -> dict[str, float]:
    """Bytes that Redis takes for a memory, its keys and indexes included: of the run, and of a small state alone."""
    assert ground.server is not None
    held = ground.api.get_memory_statistics(AGENT)["tier_distribution"]
    with ground.server.client() as client:

        def used() -> int:
            return int(client.info("memory")["used_memory"])

        full = used()
        client.flushall()
        empty = used()
        chance = random.Random(ground.seed + 4)
        for step in range(_SMALL):
            ground.api.store_agent_state("small", state(chance, chance.uniform(0, 100), chance.uniform(0, 100)), step)
        small = used()
    memories = held["stm"] + held["im"]
    return {"memory": round((full - empty) / memories, 1), "state": round((small - empty) / _SMALL, 1)}
