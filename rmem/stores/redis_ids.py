"""Find the agent of an id. Ids that stores make, `agent-step-timestamp`, name their agent; other ids (foreign ones) are
listed in one hash of the namespace, with their agents."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..models import Memory
from .redis_link import Command, Keys, RedisLink

Reply = tuple[str, Sequence[str], list[Any]]  # an agent, ids that it may have, and the answers
CommandsFor = Callable[[str, Sequence[str]], list[Command]]

_FORMS = (re.compile(r"(.+)-\d+--?\d+", re.DOTALL), re.compile(r"(.+)-\d+--?\d+-\d+", re.DOTALL))


def encode(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


def decode(name: bytes) -> str:
    return name.decode("utf-8", "surrogatepass")


def agents_of_id(memory_id: str) -> list[str]:
    """Return the agents that an id may name, by its form `agent-step-timestamp` or `agent-step-timestamp-number`."""
    return [found[1] for form in _FORMS if (found := form.fullmatch(memory_id))]


def group_by_agent(ids: Sequence[str]) -> dict[str, list[str]]:
    """Return the agents that these ids may name, each with its ids."""
    found: dict[str, list[str]] = defaultdict(list)
    for memory_id in ids:
        for home in agents_of_id(memory_id):
            found[home].append(memory_id)
    return found


class OtherHolders(NamedTuple):
    """Other agents that may have the same ids, and the ids that need no longer be listed."""

    ids: dict[str, list[str]]
    unlisted: list[str]


class Ids:
    """The ids of one namespace."""

    def __init__(self, keys: Keys, link: RedisLink) -> None:
        self._keys = keys
        self._link = link

    def lookup_command(self, ids: Sequence[str]) -> Command:
        """Return the command that looks up the agents of foreign ids."""
        return ("HMGET", self._keys.strangers, *map(encode, ids))

    def remove_listed(self, ids: Sequence[str]) -> None:
        """Remove foreign ids that are no longer used from the list."""
        if not ids:
            return
        lent: list[Command] = [
            ("SREM", self._keys.of(home, "lent"), *map(encode, some)) for home, some in group_by_agent(ids).items()
        ]
        self._link.run([("HDEL", self._keys.strangers, *map(encode, ids)), *lent])

    def query_holders(self, ids: Sequence[str], commands_for: CommandsFor) -> tuple[list[Reply], list[str]]:
        """Run commands for the agents that the ids name, and look up the foreign ones in the same round trip; then run
        commands for the agents of these. Return the replies, and the foreign ids."""
        if not ids:
            return [], []
        home = group_by_agent(ids)
        commands = [commands_for(agent, some) for agent, some in home.items()]
        listed, *answers = self._link.run(
            [self.lookup_command(ids), *(command for part in commands for command in part)]
        )
        replies = _replies(home, commands, answers)
        away: dict[str, list[str]] = defaultdict(list)
        for memory_id, agent in zip(ids, listed, strict=True):
            if agent is not None and decode(agent) not in agents_of_id(memory_id):
                away[decode(agent)].append(memory_id)
        replies += self.query(away, commands_for)
        return replies, [memory_id for memory_id, agent in zip(ids, listed, strict=True) if agent is not None]

    def query(self, holders: Mapping[str, Sequence[str]], commands_for: CommandsFor) -> list[Reply]:
        commands = [commands_for(agent, ids) for agent, ids in holders.items()]
        return _replies(holders, commands, self._link.run([command for part in commands for command in part]))

    def listing_commands(self, memories: Sequence[Memory]) -> list[Command]:
        """Return commands that list the foreign ids of memories to be written. Those of the form of another agent are
        marked as lent there, so that it does not make the same id."""
        new = _with_foreign_ids(memories)
        if not new:
            return []
        pairs: list[Any] = [part for memory in new for part in (encode(memory.memory_id), encode(memory.agent_id))]
        lent: list[Command] = [
            ("SADD", self._keys.of(home, "lent"), *map(encode, ids))
            for home, ids in group_by_agent([memory.memory_id for memory in new]).items()
        ]
        return [("HSET", self._keys.strangers, *pairs), *lent]

    def agents_with_lent_ids(self) -> list[str]:
        """Return the agents whose form of id others use."""
        (listed,) = self._link.run([("HKEYS", self._keys.strangers)])
        return list(group_by_agent(list(map(decode, listed))))

    def other_holders(self, memories: Sequence[Memory], listed: Mapping[str, str]) -> OtherHolders:
        """Return the other agents that may have the ids of memories just written; `listed` is what was listed
        before."""
        others = group_by_agent([memory.memory_id for memory in _with_foreign_ids(memories)])
        unlisted = []
        for memory in memories if listed else ():
            before = listed.get(memory.memory_id, memory.agent_id)
            if before != memory.agent_id:
                others.setdefault(before, []).append(memory.memory_id)
                if memory.agent_id in agents_of_id(memory.memory_id):
                    unlisted.append(memory.memory_id)
        return OtherHolders(others, unlisted)


def _with_foreign_ids(memories: Sequence[Memory]) -> list[Memory]:
    return [memory for memory in memories if memory.memory_id and memory.agent_id not in agents_of_id(memory.memory_id)]


def _replies(
    holders: Mapping[str, Sequence[str]], commands: Sequence[Sequence[Command]], answers: Sequence[Any]
) -> list[Reply]:
    left = iter(answers)
    return [
        (agent, ids, [next(left) for _ in part]) for (agent, ids), part in zip(holders.items(), commands, strict=True)
    ]
