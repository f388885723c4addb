"""The models of agents: AgentState, the ActionResult that an agent returns, and the ActionData stored for an action.
Every field is checked, when an object is made and when a field is set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from .. import checks
from ..errors import InputError, MemoryInputError
from .changes import Changes, changed_paths
from .checked_dataclass import Check, Checked, optional

_AXES = ("position_x", "position_y", "position_z")


def _any(name: str, value: object) -> Any:
    return checks.json_object(name, {"value": value})["value"]


class _Model(Checked):
    """Base of the models. Fields of a derived class may hold what JSON can hold."""

    @classmethod
    def _checked(cls, name: str, value: object) -> Any:
        check: Check = cls._checks.get(name, _any)
        try:
            return check(name, value)
        except InputError as error:
            raise cls._error.caused_by(error) from None

    def __setattr__(self, name: str, value: object) -> None:
        self._known(type(self).__name__, {name: value})
        object.__setattr__(self, name, self._checked(name, value))

    def _given(self) -> dict[str, Any]:
        """Return copies of the fields that have a value."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        return {name: self._checked(name, value) for name, value in given.items() if value is not None}

    def model_dump(self, *, exclude_none: bool = False) -> dict[str, Any]:
        """Return copies of all fields by name; with `exclude_none` only those that have a value."""
        given = self._given()
        return given if exclude_none else {f.name: given.get(f.name) for f in fields(self)}  # type: ignore[arg-type]


class StateDict(dict[str, Any]):
    """A state by name, with its extra data beside the fields. `state["extra_data"]` reads the extra data together, as
    in the original API; it is no item of its own, so that nothing is stored twice."""

    def __init__(self, own: Mapping[str, Any], extra: dict[str, Any]) -> None:
        super().__init__({**own, **extra})
        self._extra = extra

    def __missing__(self, name: str) -> Any:
        if name == "extra_data" and self._extra:
            return self._extra
        raise KeyError(name)


@dataclass
class AgentState(_Model):
    """An agent at one step. What has no field of its own goes into `extra_data`.

    state = AgentState(agent_id="agent-123", step_number=1234, health=0.85, position_x=10, position_y=20)
    memory_api.store_agent_state(state.agent_id, state.as_dict(), state.step_number)
    """

    _checks: ClassVar[Mapping[str, Check]] = {
        "agent_id": checks.name,
        "step_number": checks.whole,
        "extra_data": checks.json_object,
        "position": checks.point,
        **dict.fromkeys(("health", "reward", *_AXES, "resource_level"), optional(checks.number)),
    }

    agent_id: str
    step_number: int
    health: float | None = None
    reward: float | None = None
    position_x: float | None = None
    position_y: float | None = None
    position_z: float | None = None
    resource_level: float | None = None
    extra_data: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> StateDict:
        """Return the fields that have a value, `position` as a list for spatial queries, and the extra data."""
        own = self._given()
        extra = own.pop("extra_data")
        if "position_x" in own and "position_y" in own:
            own["position"] = [own[axis] for axis in _AXES if axis in own]
        for name in extra.keys() & own.keys():
            raise MemoryInputError(
                f"extra_data must not hold {name!r}: the state has that already", field="extra_data", recoverable=True
            )
        return StateDict(own, extra)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> AgentState:
        """Reverse `as_dict`: `position` sets the coordinates, unknown keys become extra data."""
        if not isinstance(data, Mapping):
            raise MemoryInputError.caused_by(checks.refuse("state", "a mapping", data))
        for name in ("agent_id", "step_number"):
            if name not in data:
                raise MemoryInputError(f"a state must have the field {name!r}", field=name, recoverable=True)
        names = {f.name for f in fields(cls)} - {"extra_data"}
        own = {name: data[name] for name in names & data.keys()}
        extra = {name: data[name] for name in data.keys() - names - {"extra_data"}}
        if isinstance(extra.get("position"), list | tuple):
            for axis, value in zip(_AXES, cls._checked("position", extra.pop("position")), strict=False):
                if own.setdefault(axis, value) != value:
                    raise MemoryInputError(
                        f"position must agree with {axis}, got {value:g} and {checks.shown(own[axis])}",
                        field="position",
                        recoverable=True,
                    )
        return cls(**own, extra_data={**cls._checked("extra_data", data.get("extra_data", {})), **extra})


@dataclass
class ActionResult(_Model):
    """The result of an action; the `act` of a hooked agent may return one."""

    _checks: ClassVar[Mapping[str, Check]] = {
        "action_type": checks.name,
        "params": checks.json_object,
        "reward": checks.number,
        "outcome": optional(checks.name),
    }

    action_type: str
    params: dict[str, Any] = field(default_factory=dict)
    reward: float = 0.0
    outcome: str | None = None
    """One word, such as "success" or "refused"."""

    def as_dict(self) -> dict[str, Any]:
        return self._given()


@dataclass
class ActionData(_Model):
    """An action with the states around it, as the hooks store it."""

    _checks: ClassVar[Mapping[str, Check]] = {
        "action_type": checks.name,
        "action_params": checks.json_object,
        "arguments": optional(checks.json_object),
        "state_before": optional(checks.json_object),
        "state_after": optional(checks.json_object),
        "result": _any,
        "reward": checks.number,
        "outcome": optional(checks.name),
        "error": optional(checks.text),
        "execution_time": optional(lambda name, value: checks.number(name, value, low=0)),
        "step_number": optional(checks.whole),
    }

    action_type: str
    action_params: dict[str, Any] = field(default_factory=dict)
    arguments: dict[str, Any] | None = None
    """The arguments of the call."""
    state_before: dict[str, Any] | None = None
    state_after: dict[str, Any] | None = None
    result: Any = None
    """What the action returned, as plain data."""
    reward: float = 0.0
    outcome: str | None = None
    error: str | None = None
    execution_time: float | None = None
    """Seconds."""
    step_number: int | None = None

    @property
    def state_difference(self) -> Changes | None:
        """Return what the action changed, by dotted path; None if a state is missing."""
        if self.state_before is None or self.state_after is None:
            return None
        return changed_paths(self.state_before, self.state_after)

    def get_state_difference(self) -> dict[str, float]:
        """Return the change of each top-level number that both states have: {"health": -0.2, "gold": 0}."""
        before, after = self.state_before or {}, self.state_after or {}
        return {
            name: after[name] - before[name]
            for name in before.keys() & after.keys()
            if all(
                isinstance(state[name], int | float) and not isinstance(state[name], bool) for state in (before, after)
            )
        }

    def as_dict(self) -> dict[str, Any]:
        changes = self.state_difference
        return self._given() | ({} if changes is None else {"state_difference": changes})
