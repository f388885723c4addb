"""Dataclasses whose every field is checked by name; shared by the configuration and the models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, ClassVar, Self

from .. import checks
from ..errors import InputError, MemoryAPIException, MemoryInputError

Check = Callable[[str, Any], Any]


class Checked:
    """A dataclass that refuses unknown fields and passes each value through the check of its field's name."""

    _checks: ClassVar[Mapping[str, Check]] = {}
    _error: ClassVar[type[MemoryAPIException]] = MemoryInputError

    def __new__(cls, *_: object, **given: object) -> Self:
        # A plain dataclass raises a bare TypeError for a misspelt keyword, without a suggestion.
        cls._known(cls.__name__, given)
        return super().__new__(cls)

    @classmethod
    def _known(cls, kind: str, given: Mapping[str, object]) -> None:
        try:
            checks.known_fields(kind, given, [f.name for f in fields(cls)])  # type: ignore[arg-type]
        except InputError as error:
            raise cls._error.caused_by(error) from None

    @classmethod
    def _checked(cls, name: str, value: object) -> Any:
        try:
            return cls._checks[name](name, value)
        except InputError as error:
            raise cls._error.caused_by(error) from None


def optional(check: Check) -> Check:
    return lambda name, value: None if value is None else check(name, value)
