"""A worker: one process whose threads run the plan on one open store until it is stopped or killed.

SIGTERM ends it after the current operations, SIGUSR1 interrupts the operation of its main thread like Ctrl-C, SIGHUP
makes it fork with the store open, SIGUSR2 dumps the stacks of its threads."""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from contextlib import ExitStack
from pathlib import Path
from threading import Lock, Thread
from typing import Any, NamedTuple

from rmem.errors import NotFoundError
from rmem.stores.sql import cache

from . import plan
from .clients import Client, Setting, is_excusable
from .journal import Journal
from .plan import EVER, OWN_AT_MOST, SHARED, Step

SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_TIERS = ("stm", "im", "ltm")
_SEGMENT_FROM = 64  # rows that make a segment; the default of 2,048 would be too rare here


class Known(NamedTuple):
    """What a thread must know of a memory to use it."""

    id: str
    tags: dict[str, str]
    actor: str | None = None


class Interrupted(KeyboardInterrupt):
    """Raised inside an operation by SIGUSR1."""


class Task(NamedTuple):
    """The task of a worker: its identity, its store, and the memories that it starts with."""

    setting: Setting
    folder: Path
    seed: int
    theme: str
    round: int
    slot: int
    incarnation: int
    threads: int
    memories: dict[str, dict[str, Known]]  # of each agent that matters, by word
    ops: memoryview  # how many operations each thread has issued, for the progress line

    @property
    def name(self) -> str:
        return f"worker-{self.slot}-{self.incarnation}"


class Worker:
    def __init__(self, task: Task) -> None:
        self.task = task
        self.journal = Journal(task.folder / f"{task.name}.jsonl")
        self.stopping = self.forking = False
        self._interruptible = False
        self._forks = 0
        self._parent = os.getppid()
        self._locks = [Lock() for _ in range(task.threads)]
        self.client: Client

    def run(self) -> None:
        cache.SEGMENT_FROM = cache.SEGMENT_BULK = _SEGMENT_FROM
        log = (self.task.folder / f"{self.task.name}.stacks").open("w")
        faulthandler.register(signal.SIGUSR2, log)
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "stopping", True))
        signal.signal(signal.SIGHUP, lambda *_: setattr(self, "forking", True))
        signal.signal(signal.SIGUSR1, self._interrupt)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        if self._open():
            others = [Thread(target=self._work, args=(thread,)) for thread in range(1, self.task.threads)]
            for thread in others:
                thread.start()
            self._work(0)
            for thread in others:
                thread.join()
            self.do(0, "close", {}, self.client.close)
        self.journal.end()

    def _open(self) -> bool:
        """Open the store; retry while the disk fails."""
        while not self.stopping:
            number = self.journal.issue("open", {})
            try:
                self.client = self.task.setting.open()
            except Exception as error:
                self.journal.fail(number, error, excusable=is_excusable(error))
                time.sleep(0.05)
            else:
                self.journal.acknowledge(number, None)
                return True
        return False

    def _interrupt(self, *_: object) -> None:
        if self._interruptible:
            self._interruptible = False
            raise Interrupted

    def _fork(self) -> None:
        """Fork between operations; the child uses the inherited store and exits."""
        self.forking = False
        self._forks += 1
        with ExitStack() as stack:
            for lock in self._locks:
                stack.enter_context(lock)
            if os.fork():
                return
            try:  # in the child
                for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
                    signal.signal(number, signal.SIG_IGN)
                name = f"{self.task.name}-fork-{self._forks}-{os.getpid()}"
                self.journal = Journal(self.task.folder / f"{name}.jsonl")
                fork = WorkerThread(self, 0, forks=self._forks)
                for pause in (0, 0, 0.5, 0):  # later the parent may have closed the store
                    time.sleep(pause)
                    fork.remember(1)
                fork.do("list", agent=fork.agent)
                if self._forks % 2:
                    self.do(0, "close", {}, self.client.close)
                self.journal.end()
            finally:
                os._exit(0)

    def _work(self, thread: int) -> None:
        task, state = self.task, WorkerThread(self, thread)
        who = task.round, task.slot, task.incarnation, thread
        for step in plan.steps(task.seed, task.setting.kind, task.theme, *who):
            if thread == 0 and self.forking:
                self._fork()
            if self.stopping or os.getppid() != self._parent:
                return
            with self._locks[thread]:
                state.run_step(step)
            task.ops[task.slot * task.threads + thread] += 1

    def do(self, thread: int, op: str, args: dict[str, Any], call: Any) -> tuple[bool, Any]:
        """Run and journal one operation; return whether it was acknowledged, and its result."""
        number, main = self.journal.issue(op, args), thread == 0
        try:
            if main:
                self._interruptible = True
            result = call(**args)
            if main:
                self._interruptible = False
        except NotFoundError:
            self._interruptible &= not main
            self.journal.acknowledge(number, "not found")
        except (Exception, Interrupted) as error:
            self._interruptible &= not main
            self.journal.fail(number, error, excusable=is_excusable(error) or (main and isinstance(error, Interrupted)))
        else:
            self.journal.acknowledge(number, result)
            return True, result
        return False, None


class WorkerThread:
    """One thread of a worker: has its own memories, and turns the steps of the plan into operations."""

    def __init__(self, worker: Worker, thread: int, forks: int = 0) -> None:
        task = worker.task
        self._worker, self._thread = worker, thread
        self._who = (task.round, task.slot, thread, task.incarnation, *([forks] if forks else []))
        self._made = 0
        self.agent = plan.agent_of(task.slot, thread)
        self._mine = {} if forks else dict(task.memories.get(self.agent, {}))
        self._ever = task.memories[EVER]
        self._shared = {word: Known(key, {}) for word, key in plan.contended_words().items()}
        self._has_agents_only = task.setting.kind == "redis"

    def run_step(self, step: Step) -> None:
        if step.op in ("remember", "remember_many") and len(self._mine) >= OWN_AT_MOST:
            self._forget(step)
        else:
            getattr(self, f"_{step.op}", self._read)(step)

    def do(self, op: str, **args: Any) -> tuple[bool, Any]:
        call = getattr(self._worker.client, "raise_" if op == "raise" else op)
        return self._worker.do(self._thread, op, args, call)

    def _new(self, first: str) -> str:
        self._made += 1
        return plan.word(*self._who, self._made, first=first)

    def _choose(self, step: Step) -> tuple[str, str, Known]:
        """Return (agent, word, memory) of a memory to use: one of this thread, or one that is never forgotten."""
        if self._mine and step.how < 0.6:
            return self.agent, *_pick(self._mine, step)
        return EVER, *_pick(self._ever, step)

    def _write(self, op: str, agent: str, word: str, known: Known, **more: Any) -> bool:
        """Run a write. A memory of this thread is not used again after a write with an unknown result."""
        done, _ = self.do(op, id=known.id, word=word, agent=agent, **more)
        if agent == self.agent and (not done or op == "forget"):
            self._mine.pop(word, None)
        return done

    # Writing

    def remember(self, number: int, **more: Any) -> None:
        items = {self._new("q"): self._new("v") for _ in range(number)}
        done, ids = self.do("remember", agent=self.agent, items=items, **more)
        if done:
            self._mine |= {word: Known(key, {}, more.get("actor")) for word, key in zip(items, ids, strict=True)}

    def _remember(self, step: Step) -> None:
        # With an id, with a step or with neither: the store has a path for each.
        if step.how < 0.3 and not self._has_agents_only:
            self.remember(1, id=self._new("i"))
        elif step.how < 0.6:
            self.remember(1, step=int(step.much * 1e6))
        else:
            self.remember(1)

    def _remember_many(self, step: Step) -> None:
        self.remember(2 + int(step.much * 5))

    def _bulk(self, step: Step) -> None:
        self.remember(plan.BULK, actor=self._new("b"))

    def _forget(self, step: Step) -> None:
        if not self._mine:
            return
        word, known = _pick(self._mine, step)
        if known.actor is None:
            self._write("forget", self.agent, word, known)
        else:
            words = [word for word, other in self._mine.items() if other.actor == known.actor]
            self._mine = {word: other for word, other in self._mine.items() if other.actor != known.actor}
            self.do("forget_subject", subject=known.actor, words=words)

    def _update(self, step: Step) -> None:
        chosen = (SHARED, *_pick(self._shared, step)) if step.how > 0.85 else self._choose(step)
        self._write("update", *chosen, rev=self._new("v"))

    def _tag(self, step: Step) -> None:
        agent, word, known = self._choose(step)
        tags = {"colour": self._new("c")}
        if self._write("tag", agent, word, known, tags=tags) and agent == self.agent:
            self._mine[word] = known._replace(tags=tags)

    def _pin(self, step: Step) -> None:
        if not self._mine:
            return
        word, known = _pick(self._mine, step)
        tags = {key: value for key, value in known.tags.items() if key != "pinned"}
        tags |= {} if "pinned" in known.tags else {"pinned": "yes"}
        if self._write("pin", self.agent, word, known, tags=tags):
            self._mine[word] = known._replace(tags=tags)

    def _move(self, step: Step) -> None:
        agent, word, known = self._choose(step)  # only its own thread moves it up: it needs the text
        tier = _TIERS[int(step.much * len(_TIERS))] if agent == self.agent else "ltm"
        self._write("move", agent, word, known, tier=tier)

    def _raise(self, step: Step) -> None:
        self._write("raise", *self._choose(step))

    def _maintain(self, step: Step) -> None:
        self.do("maintain", agent=self.agent if step.how < 0.5 else EVER)

    def _put(self, step: Step) -> None:
        word, known = _pick(self._shared, step)
        revision = "vessel" if self._worker.task.theme == "same words" else self._new("v")
        self.do("remember", agent=SHARED, items={word: revision}, id=known.id)

    def _drop(self, step: Step) -> None:
        self._write("forget", SHARED, *_pick(self._shared, step))

    # Reading

    def _read(self, step: Step) -> None:
        agent, word, known = self._choose(step)
        if step.op == "get":
            self.do("get", id=known.id, word=word, agent=agent)
        elif step.op == "lexical":
            self.do("lexical", word=word, agent=agent)
        elif step.op in ("hybrid", "vector"):
            self.do(step.op, agent=EVER, question=plan.text_of(word, "vessel"))
        elif self._has_agents_only or 0.1 < step.much < 0.9:
            self.do(step.op, agent=agent)
        else:
            self.do(step.op, agent=SHARED if step.much > 0.5 else None)


def _pick(memories: dict[str, Known], step: Step) -> tuple[str, Known]:
    return list(memories.items())[int(step.which * len(memories))]
