"""Record one act of an agent: its agent and step, the states before and after it, and its importance.

Errors of the memory are logged and never raised here."""

from __future__ import annotations

import asyncio
import atexit
import inspect
import logging
import math
import os
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral
from traceback import format_exception_only
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from cachetools import LRUCache

from .. import checks, config
from ..errors import InputError, MemoryStoreException
from .base_agent import BaseAgent
from .cache import key_of
from .changes import amount_of
from .config import MemoryConfig
from .models import ActionData, ActionResult, AgentState
from .plain_data import plain

if TYPE_CHECKING:
    from .api import AgentMemoryAPI

log = logging.getLogger(__name__)

LEAST = 0.3
"""The importance of an act without changes and reward."""
_REMEMBERED_AGENTS = 10_000
_RECORD_FIELDS = ("agent_id", "step_number")  # fields of the record; in a state they would always count as changed
_ID = "_rmem_agent_id"


@contextmanager
def log_memory_errors(agent: object, doing: str) -> Iterator[None]:
    """Log errors of the memory instead of raising them into the agent."""
    try:
        yield
    except Exception:
        log.warning("the memory of %s failed while %s; the agent goes on", _describe(agent), doing, exc_info=True)


def _describe(agent: object) -> str:
    name = type(agent).__name__
    with suppress(Exception):  # its properties may raise
        name = agent.__name__ if isinstance(agent, type) else name
        known = getattr(agent, "__dict__", {}).get("agent_id")
        return f"{name} {known!r}" if isinstance(known, str) else name
    return name


# Which memory


_shared: dict[object, AgentMemoryAPI] = {}
_shared_lock = threading.Lock()


def shared_memory(settings: MemoryConfig | None = None) -> AgentMemoryAPI:
    """Return the shared memory for agents without one: one per configuration, opened on first use."""
    from .api import AgentMemoryAPI

    settings = MemoryConfig() if settings is None else settings
    known = key_of(settings)
    own = id(settings) if known is None else known  # the memory keeps its settings alive, so the id stays unique
    key = (os.getpid(), str(config.default_store()), own)  # a forked process or another RMEM_HOME needs its own
    with _shared_lock:
        if key not in _shared:
            _shared[key] = AgentMemoryAPI(settings)
            atexit.register(_shared[key].close)
        return _shared[key]


def memory_of(agent: object) -> AgentMemoryAPI:
    """Return the agent's `memory_api`, or the shared memory for the configuration in its `config`."""
    given = getattr(agent, "memory_api", None)
    return shared_memory(_settings_of(agent)) if given is None else _sync(given)


def _sync(memory_api: Any) -> AgentMemoryAPI:
    """Return the synchronous API of an AsyncAgentMemoryAPI: the recorder uses threads itself where needed."""
    return getattr(memory_api, "sync", memory_api)  # type: ignore[no-any-return]


def _settings_of(agent: object) -> MemoryConfig | None:
    settings = getattr(agent, "config", None)
    if isinstance(settings, Mapping):
        settings = settings.get("memory_config")
    elif not isinstance(settings, MemoryConfig):
        settings = getattr(settings, "memory_config", None)
    return None if settings is None else MemoryConfig.of(settings)


# Name and step of an agent


def id_of(agent: object) -> str:
    """Return the agent's `agent_id`, or assign one; the name of the class if the agent cannot have attributes."""
    known = getattr(agent, "agent_id", None)
    if isinstance(known, str | int | uuid.UUID) and not isinstance(known, bool) and str(known).strip():
        return checks.name("agent_id", str(known))
    if isinstance(agent, type):
        return agent.__name__
    given = getattr(agent, _ID, None)
    if given is None:
        given = f"{type(agent).__name__}-{uuid.uuid4().hex[:12]}"
        try:
            object.__setattr__(agent, _ID, given)
        except (AttributeError, TypeError):
            return type(agent).__name__
    return str(given)


def own_step(agent: object) -> int | None:
    """Return the step that the agent itself counts; None if it does not."""
    with log_memory_errors(agent, "asking for its step"):
        return _step(getattr(agent, "step_number", None))
    return None


def _step(value: object) -> int | None:
    return int(value) if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0 else None


@dataclass(slots=True)
class _Trace:
    """The progress of an agent: the step of its next act, and the state stored last."""

    step: int
    resumed: int = 0
    """The step at which a newly created BaseAgent starts."""
    state: tuple[int, dict[str, Any]] | None = None


_traces: WeakKeyDictionary[object, LRUCache[str, _Trace]] = WeakKeyDictionary()
_trace_lock = threading.RLock()  # re-entrant: `step_number` may be a property that acts


def _trace_of(memory: AgentMemoryAPI, agent_id: str) -> _Trace:
    with _trace_lock:
        known = _traces.setdefault(memory, LRUCache(_REMEMBERED_AGENTS))
        trace = known.get(agent_id)
    if trace is None:
        trace = _Trace(0)
        for latest in memory.get_memory_space(agent_id).retrieve_recent_states(count=1):
            step = latest["step_number"]
            trace = _Trace(step + 1, step + 1)  # continue after the last stored step
            if latest["metadata"]["memory_type"] == "state":  # the state after an act has the step of the next act
                trace.resumed, trace.state = step, (step, latest["contents"])
        with _trace_lock:
            trace = known.setdefault(agent_id, trace)
    return trace


def resume(agent: BaseAgent) -> None:
    """Set the step of a newly created agent to continue after the last step in its memory."""
    with log_memory_errors(agent, "looking for its last step"):
        memory = memory_of(agent)
        if memory.config.enable_memory_hooks:
            _set_step(agent, _trace_of(memory, id_of(agent)))


def _set_step(agent: BaseAgent, trace: _Trace) -> None:
    if trace.resumed and own_step(agent) == 0:
        with suppress(AttributeError):  # it may be a read-only property
            agent.step_number = trace.resumed


@dataclass(slots=True)
class _RunningActs:
    """The concurrent acts of a BaseAgent: the step that the agent counted when each began, and the steps counted for it
    meanwhile."""

    acts: list[int] = field(default_factory=list)
    counted: int = 0


_running_acts: dict[int, _RunningActs] = {}  # id(agent) -> its running acts


# One act


@dataclass(slots=True, eq=False)
class _Span:
    """A period in which an agent's own code runs. A task started in it may still refer to it afterwards."""

    agent: Any
    over: bool = False


_open: ContextVar[tuple[_Span, ...]] = ContextVar("open_acts", default=())


@dataclass(slots=True)
class Recorder:
    """How a hooked method is remembered: in which memory and under whose name, unless the agent says."""

    memory_api: Any = None
    agent_id: str | None = None

    def begin(self, agent: Any, arguments: Callable[[], Mapping[str, Any]]) -> RecordedCall:
        """Start a new act; None inside another act of the same agent (`super().act()`), which it is part of."""
        call = RecordedCall(self, agent, part=any(span.agent is agent and not span.over for span in _open.get()))
        if not call.part:
            with log_memory_errors(agent, "reading the arguments"):
                call.arguments = plain(arguments())
        return call


@dataclass(slots=True, eq=False)
class RecordedCall:
    """The recording of one act, from the state before it to the state after it."""

    recorder: Recorder
    agent: Any
    part: bool
    arguments: dict[str, Any] = field(default_factory=dict)
    memory: AgentMemoryAPI | None = None
    agent_id: str = ""
    trace: _Trace = field(default_factory=lambda: _Trace(0))
    step: int = 0
    next_step: int = 0
    own_count: int | None = None
    """The step that a BaseAgent had counted when the act began; None after the act."""
    stated_step: int | None = None
    """The step number in the latest state, if it has one."""
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    priority: float = LEAST
    started: float = 0.0
    took: float = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Mark that the agent's own code runs. Not across a `yield`: a generator shares the context of its caller."""
        outside, span = _open.get(), _Span(self.agent)
        _open.set((*outside, span))
        try:
            yield
        finally:
            span.over = True
            _open.set(outside)

    # Before

    def start(self) -> None:
        if not self.part:
            self._prepare()
            self.before = self._state()
            self._begin()

    async def start_async(self) -> None:
        if not self.part:
            with log_memory_errors(self.agent, "opening"):
                await _in_thread(self._prepare)
            self.before = await self._state_async()
            self._begin()

    def _prepare(self) -> None:
        """Find the memory and the name of the agent; without a memory, only count the step."""
        with log_memory_errors(self.agent, "opening"):
            given = self.recorder.memory_api
            memory = memory_of(self.agent) if given is None else _sync(given)
            if memory.config.enable_memory_hooks:
                self.agent_id = self.recorder.agent_id or id_of(self.agent)
                self.trace = _trace_of(memory, self.agent_id)
                self.memory = memory
                with _trace_lock:
                    if issubclass(type(self.agent), BaseAgent) and not self.agent._has_acted:
                        self.agent._has_acted = True
                        _set_step(self.agent, self.trace)

    def _begin(self) -> None:
        own = own_step(self.agent)
        own = self.stated_step if own is None else own
        with _trace_lock:  # concurrent acts get different steps
            if own is not None:
                own += self._uncounted_acts(own)
            self.step = self.trace.step if own is None else own
            self.trace.step = self.step + 1
        self.started = time.perf_counter()

    def _uncounted_acts(self, own: int) -> int:
        """Count the running acts of this BaseAgent whose step is not counted yet."""
        if not issubclass(type(self.agent), BaseAgent):
            return 0
        counting = _running_acts.setdefault(id(self.agent), _RunningActs())
        self.own_count = own - counting.counted
        counting.acts.append(self.own_count)
        return counting.acts.count(self.own_count) - 1

    # After

    def end(self, **outcome: Any) -> None:
        """End the act with `result=`, `error=` or `outcome=`, and store it."""
        if not self.part:
            self._finish()
            self.after = self._state()
            self._count()
            self._store(outcome)

    async def end_async(self, **outcome: Any) -> None:
        if not self.part:
            self._finish()
            self.after = await self._state_async()
            self._count()
            if self.memory is not None:
                with log_memory_errors(self.agent, "storing"):
                    await _in_thread(self._store, outcome)

    def leave(self) -> None:
        """Abort the act: it was no step, and nothing is stored."""
        with _trace_lock:
            self._finish_counting(0)

    def _finish(self) -> None:
        self.took = time.perf_counter() - self.started
        with log_memory_errors(self.agent, "counting its steps"), _trace_lock:
            self._finish_counting(1)

    def _finish_counting(self, steps: int) -> None:
        """Finish this act of a BaseAgent, and count its steps unless the agent did."""
        if self.own_count is None:
            return
        counting, before = _running_acts[id(self.agent)], self.own_count
        self.own_count = None
        counting.acts.remove(before)
        if not counting.acts:
            del _running_acts[id(self.agent)]
        if steps and own_step(self.agent) == before + counting.counted:
            self.agent.step_number += steps
            counting.counted += steps
            self.next_step = self.step + steps

    def _count(self) -> None:
        if not self.next_step:
            own = own_step(self.agent)
            own = self.stated_step if own is None else own
            self.next_step = self.step + 1 if own is None else own
        self.trace.resumed = self.next_step

    def _store(self, outcome: dict[str, Any]) -> None:
        """Store the state before, the action and the state after. If one is refused, store the others; if the store
        fails, stop, because each attempt might wait for a lock while the agent waits."""
        for doing, store in (
            ("storing its state", self._store_before),
            ("storing its action", partial(self._store_action, outcome)),
            ("storing its state", self._store_after),
        ):
            if self.memory is None:
                return
            with log_memory_errors(self.agent, doing):
                try:
                    store(self.memory)
                except MemoryStoreException as error:
                    if not isinstance(error, InputError):
                        self.memory = None
                    raise

    def _store_before(self, memory: AgentMemoryAPI) -> None:
        if self.before and self.trace.state != (self.step, self.before):
            memory.store_agent_state(self.agent_id, self.before, self.step, priority=LEAST)

    def _store_action(self, outcome: dict[str, Any], memory: AgentMemoryAPI) -> None:
        action = self._action(**outcome)
        self.priority = importance(action)
        memory.store_agent_action(self.agent_id, action.as_dict(), self.step, priority=self.priority)

    def _store_after(self, memory: AgentMemoryAPI) -> None:
        if self.after:
            memory.store_agent_state(self.agent_id, self.after, self.next_step, priority=self.priority)
            self.trace.state = (self.next_step, self.after)

    def _action(self, result: Any = None, error: Exception | None = None, outcome: str | None = None) -> ActionData:
        fields = result.as_dict() if isinstance(result, ActionResult) else result
        fields = fields if isinstance(fields, Mapping) else {}
        reward = plain(fields.get("reward"))
        return ActionData(
            action_type=_name(fields.get("action_type"), "act"),
            action_params=plain(fields["params"]) if isinstance(fields.get("params"), Mapping) else {},
            arguments=self.arguments,
            state_before=self.before,
            state_after=self.after,
            result=plain(result),
            reward=reward if isinstance(reward, int | float) and not isinstance(reward, bool) else 0.0,
            outcome=outcome or ("error" if error is not None else _name(fields.get("outcome"), "success")),
            error=None if error is None else plain("".join(format_exception_only(error)).strip()),
            execution_time=self.took,
            step_number=self.step,
        )

    # States

    @contextmanager
    def _state_errors(self) -> Iterator[None]:
        """Ignore errors of `get_state`: log the first of an agent, then count them."""
        try:
            with self.running():
                yield
        except Exception:
            system = getattr(self.memory, "_system", None)  # another implementation of the API has none
            failed: Counter[str] = Counter() if system is None else system.state_failures
            failed[self.agent_id] += 1
            if failed[self.agent_id] == 1:
                log.warning(
                    "the state of %s cannot be read; the agent goes on, and further failures are only counted, in its "
                    "statistics",
                    _describe(self.agent),
                    exc_info=True,
                )

    def _state(self) -> dict[str, Any] | None:
        with self._state_errors():
            seen = self._get_state()
            if inspect.isawaitable(seen):
                if inspect.iscoroutine(seen):
                    seen.close()
                raise TypeError("an agent with an asynchronous get_state needs an asynchronous act")
            return self._read(seen)
        return None

    async def _state_async(self) -> dict[str, Any] | None:
        with self._state_errors():
            seen = self._get_state()
            return self._read(await seen if inspect.isawaitable(seen) else seen)
        return None

    def _get_state(self) -> Any:
        if self.memory is None:
            return None
        get_state = getattr(self.agent, "get_state", None)
        if isinstance(self.agent, type) and not inspect.ismethod(get_state):
            return None  # a class method: only instances have states
        return get_state() if callable(get_state) else None

    def _read(self, seen: Any) -> dict[str, Any] | None:
        self.stated_step = None
        if seen is None:
            return None
        if isinstance(seen, AgentState):  # its extra data may contain any object
            seen = replace(seen, extra_data=plain(seen.extra_data)).as_dict()
        state = plain(seen)
        if not isinstance(state, dict):
            raise checks.refuse("get_state()", "an AgentState or a mapping", seen)
        self.stated_step = _step(state.get("step_number"))
        return {name: value for name, value in state.items() if name not in _RECORD_FIELDS}


async def _in_thread(work: Callable[..., None], *args: Any) -> None:
    """Run work in a thread of asyncio; directly if another event loop drives the agent."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        work(*args)
    else:
        await asyncio.to_thread(work, *args)


def _name(value: object, default: str) -> str:
    try:
        return checks.name("name", value)
    except InputError:
        return default


def importance(action: ActionData) -> float:
    """Rate an action from LEAST towards 1, by the change of the state, the absolute reward, and failure."""
    amount = amount_of(action.state_difference or {}) + min(1.0, abs(action.reward)) + (action.error is not None)
    return 1.0 - (1.0 - LEAST) * math.exp(-amount)
