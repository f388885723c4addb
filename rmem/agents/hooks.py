"""Hooks that record what an agent does without changing its code: any object with a method `act` can be hooked.

Each call of `act` leaves an action memory (arguments, result, the states before and after and what differs) and, if the
agent has `get_state`, the states themselves. The wrapped method runs exactly once, and its result or exception passes
through unchanged. Errors of the memory are logged and do not reach the agent."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from functools import WRAPPER_ASSIGNMENTS, partial, wraps
from types import MethodType
from typing import Any, TypeVar, cast, overload

from .. import checks
from ..errors import MemoryInputError
from .base_agent import HOOKED, BaseAgent, check_memory_api
from .recorder import RecordedCall, Recorder

Agent = TypeVar("Agent")
AgentClass = TypeVar("AgentClass", bound=type)
Act = Callable[..., Any]


@overload
def install_memory_hooks(agent_class: AgentClass) -> AgentClass: ...
@overload
def install_memory_hooks(*, memory_api: Any = None) -> Callable[[AgentClass], AgentClass]: ...
def install_memory_hooks(agent_class: Any = None, *, memory_api: Any = None) -> Any:
    """Hook the `act` of a class: `@install_memory_hooks` or `@install_memory_hooks(memory_api=api)`.

    Subclasses are hooked with their class; `super().act()` is part of the act that calls it. The memory is the one
    given here (a BaseAgent may be made with another), else the agent's `memory_api`, else a shared one, of the
    MemoryConfig in the agent's `config` if there is one.
    """
    check_memory_api(memory_api)
    if agent_class is None:
        return partial(install_memory_hooks, memory_api=memory_api)
    if not isinstance(agent_class, type):
        raise MemoryInputError.caused_by(checks.refuse("agent_class", "a class", agent_class))
    recorder = Recorder(memory_api)
    if issubclass(agent_class, BaseAgent) and memory_api is not None:
        agent_class.memory_api, recorder = memory_api, Recorder()  # so that its property `memory` uses the same one
    if not _hook(agent_class, recorder, again=True):
        raise MemoryInputError(
            f"{agent_class.__name__} must have a method act(self, …) to remember", field="agent_class", recoverable=True
        )
    _hook_subclasses(agent_class, recorder)
    return agent_class


def with_memory(agent: Agent, agent_id: str | None = None, memory_api: Any = None) -> Agent:
    """Hook one agent, any object with a method `act`: `agent = with_memory(agent, agent_id="agent-456")`.

    The agent itself is returned, with its `act` replaced, so that its own calls of `self.act()` are remembered too. An
    object that cannot have a new attribute (it has `__slots__`) is returned inside a proxy. A `copy.copy` of the agent
    would share its `act`: copy first, then call this.
    """
    check_memory_api(memory_api)
    if not callable(getattr(agent, "act", None)):
        raise MemoryInputError.caused_by(checks.refuse("agent", "an object with a method act", agent))
    if isinstance(agent, type):
        wanted = "an object with a method act (a class takes install_memory_hooks)"
        raise MemoryInputError.caused_by(checks.refuse("agent", wanted, agent))
    if agent_id is not None:
        try:
            checks.name("agent_id", agent_id)
        except ValueError as error:
            raise MemoryInputError.caused_by(error) from None
    if isinstance(agent, BaseAgent) and memory_api is not None:
        agent.memory_api = memory_api
    act: Any = agent.act  # type: ignore[attr-defined]
    itself = object.__getattribute__(agent, "_agent") if issubclass(type(agent), _AgentProxy) else agent
    method = _bind_act(itself, act, Recorder(memory_api, agent_id))
    try:
        object.__setattr__(agent, "act", method)
    except (AttributeError, TypeError):
        return cast(Agent, _make_proxy(agent, method))
    return agent


# Wrapping


def _hook(agent_class: type, recorder: Recorder, *, again: bool = False) -> bool:
    """Wrap the `act` that the class has or inherits; False if there is none that an agent performs.

    A wrapped one is wrapped once more if `again`: the outermost decides where an act is remembered.
    """
    found = inspect.getattr_static(agent_class, "act", None)
    act = found.__func__ if isinstance(found, classmethod) else found
    if not inspect.isfunction(act):
        return False
    if again or getattr(act, HOOKED, None) is not act:
        hooked = _wrap_act(act, recorder)
        setattr(agent_class, "act", classmethod(hooked) if isinstance(found, classmethod) else hooked)  # noqa: B010
    return True


def _hook_subclasses(agent_class: type, recorder: Recorder) -> None:
    own = agent_class.__dict__.get("__init_subclass__")
    if own is not None:
        own = getattr(own.__func__, HOOKED, own)  # replace our own hook of an earlier decoration

    def __init_subclass__(cls: Any, /, **options: Any) -> None:
        _hook(cls, recorder)
        if own is not None:
            own.__get__(None, cls)(**options)
        else:
            # Not `agent_class`, which another decorator such as dataclass(slots=True) may have replaced.
            above: Any = next(base for base in cls.__mro__ if base.__dict__.get("__init_subclass__") is hook)
            super(above, cls).__init_subclass__(**options)

    setattr(__init_subclass__, HOOKED, own)
    hook: Any = classmethod(__init_subclass__)
    setattr(agent_class, "__init_subclass__", hook)  # noqa: B010


class _BoundAct(partial[Any]):
    """A hooked `act` of one agent. A bound method would be pickled by name, without its hook."""

    made_of: tuple[object, Act, Recorder]

    @property
    def __self__(self) -> object:
        return self.made_of[0]

    @property
    def __func__(self) -> Act:
        return self.func

    def __reduce__(self) -> tuple[Any, ...]:
        agent, act, recorder = self.made_of
        own = inspect.ismethod(act) and act.__self__ is agent and act.__func__ is getattr(type(agent), "act", None)
        return _bind_act, (agent, None if own else act, recorder)


def _bind_act(agent: Any, act: Act | None, recorder: Recorder) -> _BoundAct:
    """Hook the `act` of one agent; None means the method of its class."""
    if act is None:
        act = type(agent).act.__get__(agent)
    if isinstance(act, MethodType | _BoundAct) and act.__self__ is agent:
        hooked = _wrap_act(act.__func__, recorder)
    else:  # an instance attribute, a class method or another callable, without the agent as argument
        hooked = _wrap_act(act, recorder, takes_agent=False)
    bound = _BoundAct(hooked, agent)
    bound.made_of = agent, act, recorder
    for name in WRAPPER_ASSIGNMENTS:
        if hasattr(hooked, name):
            setattr(bound, name, getattr(hooked, name))
    return bound


def _wrap_act(act: Act, recorder: Recorder, *, takes_agent: bool = True) -> Act:
    """Wrap `act` in a function of the same kind (plain, coroutine, generator) that takes the agent first."""
    hook = _Hook(act, recorder, takes_agent)
    called = getattr(act, "__call__", None)  # noqa: B004 (an object's own, for its kind)
    for is_kind, wrapped in _KINDS:
        if is_kind(act) or is_kind(called):
            hooked = wraps(act)(wrapped(hook))
            if hook.signature is not None and not takes_agent:
                hooked.__signature__ = _with_agent(hook.signature)  # type: ignore[attr-defined]
            setattr(
                hooked, HOOKED, hooked
            )  # a reference to itself: `wraps` would copy a plain flag to wrappers that are not hooked
            return hooked
    raise AssertionError("every callable is of some kind")


def _with_agent(signature: inspect.Signature) -> inspect.Signature:
    """Add the agent as first parameter, which `inspect.signature` removes for a method."""
    agent = inspect.Parameter("__agent", inspect.Parameter.POSITIONAL_ONLY)
    return signature.replace(parameters=[agent, *signature.parameters.values()])


class _Hook:
    """An `act`: how to call it, and how to start recording a call."""

    def __init__(self, act: Act, recorder: Recorder, takes_agent: bool) -> None:
        self.act, self.recorder, self.takes_agent = act, recorder, takes_agent
        try:
            self.signature: inspect.Signature | None = inspect.signature(act)
        except (TypeError, ValueError):  # some built-in functions have no signature
            self.signature = None

    def run(self, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        return self.act(*(args if self.takes_agent else args[1:]), **options)

    def begin(self, args: tuple[Any, ...], options: dict[str, Any]) -> RecordedCall:
        return self.recorder.begin(args[0] if args else None, lambda: self._arguments(args, options))

    def _arguments(self, args: tuple[Any, ...], options: dict[str, Any]) -> Mapping[str, Any]:
        """Return the arguments by name, without the agent."""
        try:
            if self.signature is None:
                raise TypeError
            bound = self.signature.bind(*(args if self.takes_agent else args[1:]), **options).arguments
        except TypeError:
            return {"args": args[1:], **options}
        if self.takes_agent:
            name, value = next(iter(bound.items()))
            del bound[name]
            if (
                self.signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
            ):  # the agent is the first of *args
                return {name: value[1:], **bound}
        return bound


def _function(hook: _Hook) -> Act:
    def act(*args: Any, **options: Any) -> Any:
        call = hook.begin(args, options)
        call.start()
        try:
            with call.running():
                result = hook.run(args, options)
        except Exception as error:
            call.end(error=error)
            raise
        except BaseException:
            call.leave()
            raise
        call.end(result=result)
        return result

    return act


def _coroutine(hook: _Hook) -> Act:
    async def act(*args: Any, **options: Any) -> Any:
        call = hook.begin(args, options)
        await call.start_async()
        try:
            with call.running():
                result = await hook.run(args, options)
        except Exception as error:
            await call.end_async(error=error)
            raise
        except BaseException:
            call.leave()
            raise
        await call.end_async(result=result)
        return result

    return act


def _generator(hook: _Hook) -> Act:
    def act(*args: Any, **options: Any) -> Generator[Any, Any, Any]:
        call = hook.begin(args, options)
        inner = hook.run(args, options)
        call.start()
        resume = partial(next, inner)
        try:
            while True:
                with call.running():
                    item = resume()
                try:
                    sent = yield item
                except GeneratorExit:
                    with call.running():
                        inner.close()
                    call.end(outcome="stopped")
                    raise
                except BaseException as thrown:
                    resume = partial(inner.throw, thrown)
                else:
                    resume = partial(inner.send, sent)
        except StopIteration as stop:
            result = stop.value
        except Exception as error:
            call.end(error=error)
            raise
        except BaseException:
            call.leave()
            raise
        call.end(result=result)
        return result

    return act


def _async_generator(hook: _Hook) -> Act:
    async def act(*args: Any, **options: Any) -> AsyncGenerator[Any, Any]:
        call = hook.begin(args, options)
        inner = hook.run(args, options)
        await call.start_async()
        resume = partial(anext, inner)
        try:
            while True:
                with call.running():
                    item = await resume()
                try:
                    sent = yield item
                except GeneratorExit:
                    with call.running():
                        await inner.aclose()
                    await call.end_async(outcome="stopped")
                    raise
                except BaseException as thrown:
                    resume = partial(inner.athrow, thrown)
                else:
                    resume = partial(inner.asend, sent)
        except StopAsyncIteration:
            await call.end_async()
        except Exception as error:
            await call.end_async(error=error)
            raise
        except BaseException:
            call.leave()
            raise

    return act


_KINDS: tuple[tuple[Callable[[Any], bool], Callable[[_Hook], Act]], ...] = (
    (inspect.isasyncgenfunction, _async_generator),
    (inspect.iscoroutinefunction, _coroutine),
    (inspect.isgeneratorfunction, _generator),
    (callable, _function),
)


class _AgentProxy:
    """Proxy for an agent that cannot have a new attribute; behaves like it except for `act`."""

    __slots__ = ("__weakref__", "_agent", "act")

    def __init__(self, agent: object, act: Act) -> None:
        object.__setattr__(self, "_agent", agent)
        object.__setattr__(self, "act", act)

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_agent"), name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._agent, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._agent, name)

    def __dir__(self) -> list[str]:
        return dir(self._agent)

    def __repr__(self) -> str:
        return repr(self._agent)

    def __eq__(self, other: object) -> bool:
        return bool(self._agent == (other._agent if isinstance(other, _AgentProxy) else other))

    def __hash__(self) -> int:
        return hash(self._agent)

    def __reduce__(self) -> tuple[Any, ...]:
        return _make_proxy, (self._agent, self.act)

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # for isinstance
        return type(self._agent)


_NOT_FORWARDED = {"__new__", "__init__", "__del__", "__init_subclass__", "__class_getitem__", "__getattribute__"}


def _make_proxy(agent: object, act: Act) -> _AgentProxy:
    """Make a proxy whose class forwards the special methods of the agent's class: Python looks for `__len__` and others
    in the class."""
    kind = type(agent)
    special = {
        name: _forward(name)
        for name in set(dir(kind)) - _NOT_FORWARDED - vars(_AgentProxy).keys()
        if name.startswith("__")
        and callable(getattr(kind, name))
        and getattr(kind, name) is not getattr(object, name, 0)
    }
    return cast(_AgentProxy, type(kind.__name__, (_AgentProxy,), {"__slots__": (), **special})(agent, act))


def _forward(name: str) -> Act:
    def method(self: _AgentProxy, *args: Any, **options: Any) -> Any:
        result = getattr(self._agent, name)(*args, **options)
        return self if result is self._agent else result

    return method
