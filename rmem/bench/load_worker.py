"""`python -m rmem.bench.load_worker`: one process of `rmem bench load`. Its agents are threads; each reads or
writes until the time is up. Orders come as a line of JSON on stdin, the figures go out as a line on stdout."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from threading import Thread
from typing import TYPE_CHECKING, Any
from zlib import crc32

from .child import resident_bytes

if TYPE_CHECKING:
    from rmem import Brain

TEXTS = 2000
QUESTIONS = 500


@dataclass(slots=True)
class Order:
    """What one process is to do."""

    address: str
    readers: list[str]
    writers: list[str]
    seconds: float
    pause: float
    seed: int
    size: int


@dataclass(slots=True)
class Agent:
    """What one agent did: the seconds of its calls, what failed, and the ids of what was acknowledged."""

    name: str
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    kept: list[tuple[int, str]] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)

    def told(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}  # asdict would count a Counter's pairs

    def work(self, act: Callable[[int], None], until: float, pause: float) -> None:
        for number in count():
            if time.monotonic() >= until:
                return
            wall, cpu = time.perf_counter(), time.thread_time()
            try:
                act(number)
            except Exception as error:  # an agent that fails is a figure of the report, not the end of the run
                self.errors[f"{type(error).__name__}: {error}"[:300]] += 1
            else:
                self.wall.append(time.perf_counter() - wall)
                self.cpu.append(time.thread_time() - cpu)
            if pause:
                time.sleep(min(pause, max(0.0, until - time.monotonic())))


def marked(text: str, agent: str, number: int) -> str:
    """A text that only this write has, so that it is known again."""
    return f"{text} {_mark(agent, number)}"


def is_marked(text: str, agent: str, number: int) -> bool:
    return text.endswith(_mark(agent, number))


def _mark(agent: str, number: int) -> str:
    return f"(write {number} of {agent})"


def writing(brain: Brain, agent: Agent, texts: list[str]) -> Callable[[int], None]:
    start = crc32(agent.name.encode())

    def act(number: int) -> None:
        text = marked(texts[(start + number) % len(texts)], agent.name, number)
        kept = brain.remember(text, agent=agent.name, type="observation", session=f"{agent.name}-{number // 20}")
        agent.kept.append((number, kept.memory_id))

    return act


def reading(brain: Brain, agent: Agent, questions: list[str]) -> Callable[[int], None]:
    """Every other question goes to the whole store, the rest to the memories of one agent."""
    start = crc32(agent.name.encode())
    names = sorted(brain.stats()["by_agent"]) or [agent.name]

    def act(number: int) -> None:
        where = {"agent": names[(start + number) % len(names)]} if number % 2 else None
        brain.recall(questions[(start + number) % len(questions)], k=10, where=where)

    return act


def run(order: Order, ready: Callable[[], None]) -> dict[str, Any]:
    """Open the store, tell that all is ready, and let the agents work."""
    from rmem import Brain
    from rmem.testing.synthetic import synthetic_memories, synthetic_questions

    texts = [memory["text"] for memory in synthetic_memories(TEXTS, order.seed + 1)]
    questions = synthetic_questions(QUESTIONS, order.seed, max(100, order.size))
    with Brain(order.address) as brain:
        readers, writers = ([Agent(name) for name in names] for names in (order.readers, order.writers))
        acts = [(one, reading(brain, one, questions)) for one in readers]
        acts += [(one, writing(brain, one, texts)) for one in writers]
        brain.recall(questions[0], k=10)  # loads the index, which is not what is measured here
        ready()
        rss, _ = resident_bytes()
        started, cpu = time.monotonic(), time.process_time()
        until = started + order.seconds
        threads = [Thread(target=one.work, args=(act, until, order.pause), name=one.name) for one, act in acts]
        for thread in threads:
            thread.start()
        time.sleep(order.seconds / 2)
        half, _ = resident_bytes()  # by now buffers and caches are filled; what grows later grows with the store
        for thread in threads:
            thread.join()
        wall, cpu = time.monotonic() - started, time.process_time() - cpu
        rss_end, peak = resident_bytes()
    return {
        "readers": [one.told() for one in readers],
        "writers": [one.told() for one in writers],
        "wall_s": wall,
        "cpu_s": cpu,
        "rss_start_bytes": rss,
        "rss_half_bytes": half,
        "rss_end_bytes": rss_end,
        "rss_peak_bytes": peak,
    }


def main() -> None:
    order = Order(**json.loads(sys.stdin.readline()))

    def ready() -> None:
        print("ready", flush=True)
        sys.stdin.readline()  # all start together

    print(json.dumps(run(order, ready)), flush=True)


if __name__ == "__main__":
    main()
