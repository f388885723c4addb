"""Which repositories a workspace shares, and with whom: all, or those on a list that an administrator keeps. A member
receives those that are shared and that they have, or that an administrator granted them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from .. import checks
from ..brain import Brain
from .identity import repository_id

_KEY = "shared_repositories"


@dataclass(slots=True)
class Sharing:
    """`shared` is None if all repositories are shared; `given` maps members to repositories that they get without
    having them."""

    shared: list[str] | None = None
    given: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, brain: Brain) -> Self:
        saved = brain.store.get_meta(_KEY)
        return cls() if saved is None else cls(**json.loads(saved))

    @classmethod
    def checked(cls, shared: Any, given: Any) -> Self:
        """Build from what an administrator sends, checked."""
        names = None if shared is None else _ids("shared", shared)
        members = checks.json_object("given", given if given is not None else {})
        return cls(names, {checks.name("given", who): _ids(f"given.{who}", ids) for who, ids in members.items()})

    def keep(self, brain: Brain) -> None:
        brain.store.set_meta(_KEY, json.dumps(asdict(self)))

    def wanted(self, member: str, has: Iterable[str]) -> set[str]:
        """Return the repositories that a member has or was granted, shared or not."""
        return {*has, *self.given.get(member, ())}

    def received(self, member: str, has: Iterable[str]) -> set[str]:
        """Return the repositories whose memories a member receives."""
        wanted = self.wanted(member, has)
        return wanted if self.shared is None else wanted & set(self.shared)


def _ids(field: str, value: Any) -> list[str]:
    if not isinstance(value, list):
        raise checks.refuse(field, "a list of repositories", value)
    return sorted({repository_id(checks.name(field, id)) for id in value})
