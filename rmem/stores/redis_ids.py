"""Which agent an id belongs to. Ids that we make, `agent-step-timestamp`, name their agent; all others are listed in
one hash of the namespace."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..models import Memory
from .redis_link import Command, Keys, Link

Reply = tuple[str, Sequence[str], list[Any]]  # an agent, ids that it may hold, and the answers
Asking = Callable[[str, Sequence[str]], list[Command]]

_FORMS = (re.compile(r"(.+)-\d+--?\d+", re.DOTALL), re.compile(r"(.+)-\d+--?\d+-\d+", re.DOTALL))


def encoded(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


def decoded(name: bytes) -> str:
    return name.decode("utf-8", "surrogatepass")


def homes(memory_id: str) -> list[str]:
    """The agents whose own id this can be, by its form `agent-step-timestamp` or `agent-step-timestamp-number`."""
    return [found[1] for form in _FORMS if (found := form.fullmatch(memory_id))]


def at_home(ids: Sequence[str]) -> dict[str, list[str]]:
    """The agents that these ids tell, each with those that tell it."""
    found: dict[str, list[str]] = defaultdict(list)
    for memory_id in ids:
        for home in homes(memory_id):
            found[home].append(memory_id)
    return found


class Elsewhere(NamedTuple):
    """Where else ids may be held: agents with ids; and which of the ids need no longer be listed."""

    ids: dict[str, list[str]]
    unlisted: list[str]


class Ids:
    def __init__(self, keys: Keys, link: Link) -> None:
        self._keys = keys
        self._link = link

    def listed(self, ids: Sequence[str]) -> Command:
        """Asks for the agents of strangers."""
        return ("HMGET", self._keys.strangers, *map(encoded, ids))

    def unlist(self, ids: Sequence[str]) -> None:
        """Let go of ids that their agents use no longer."""
        if not ids:
            return
        lent: list[Command] = [
            ("SREM", self._keys.of(home, "lent"), *map(encoded, some)) for home, some in at_home(ids).items()
        ]
        self._link.run([("HDEL", self._keys.strangers, *map(encoded, ids)), *lent])

    def ask_holders(self, ids: Sequence[str], asking: Asking) -> tuple[list[Reply], list[str]]:
        """Ask the agents that the ids tell, and at the same time which of them are strangers; then those who hold
        these. The replies, and the strangers."""
        if not ids:
            return [], []
        home = at_home(ids)
        commands = [asking(agent, some) for agent, some in home.items()]
        listed, *answers = self._link.run([self.listed(ids), *(one for part in commands for one in part)])
        replies = _replies(home, commands, answers)
        away: dict[str, list[str]] = defaultdict(list)
        for memory_id, agent in zip(ids, listed, strict=True):
            if agent is not None and decoded(agent) not in homes(memory_id):
                away[decoded(agent)].append(memory_id)
        replies += self.ask(away, asking)
        return replies, [memory_id for memory_id, agent in zip(ids, listed, strict=True) if agent is not None]

    def ask(self, holders: Mapping[str, Sequence[str]], asking: Asking) -> list[Reply]:
        commands = [asking(agent, ids) for agent, ids in holders.items()]
        return _replies(holders, commands, self._link.run([one for part in commands for one in part]))

    def announce(self, memories: Sequence[Memory]) -> list[Command]:
        """List the strangers among ids that are about to be written. Those that another agent could make itself are
        also kept from being made there."""
        new = _strange(memories)
        if not new:
            return []
        pairs: list[Any] = [part for one in new for part in (encoded(one.memory_id), encoded(one.agent_id))]
        lent: list[Command] = [
            ("SADD", self._keys.of(home, "lent"), *map(encoded, ids))
            for home, ids in at_home([one.memory_id for one in new]).items()
        ]
        return [("HSET", self._keys.strangers, *pairs), *lent]

    def lenders(self) -> list[str]:
        """The agents of whose form others use ids."""
        (listed,) = self._link.run([("HKEYS", self._keys.strangers)])
        return list(at_home(list(map(decoded, listed))))

    def elsewhere(self, memories: Sequence[Memory], listed: Mapping[str, str]) -> Elsewhere:
        """Where else the ids of memories just written may be held; `listed` is what was listed before."""
        others = at_home([one.memory_id for one in _strange(memories)])
        unlisted = []
        for one in memories if listed else ():
            before = listed.get(one.memory_id, one.agent_id)
            if before != one.agent_id:
                others.setdefault(before, []).append(one.memory_id)
                if one.agent_id in homes(one.memory_id):
                    unlisted.append(one.memory_id)
        return Elsewhere(others, unlisted)


def _strange(memories: Sequence[Memory]) -> list[Memory]:
    return [one for one in memories if one.memory_id and one.agent_id not in homes(one.memory_id)]


def _replies(
    holders: Mapping[str, Sequence[str]], commands: Sequence[Sequence[Command]], answers: Sequence[Any]
) -> list[Reply]:
    left = iter(answers)
    return [
        (agent, ids, [next(left) for _ in part]) for (agent, ids), part in zip(holders.items(), commands, strict=True)
    ]
