"""The field table of a memory: what each field is, declared once beside it in `models`. Rows, JSON, files, the
arguments of `remember` and the fields of `update` are derived from it.

To add a field, add one line to `Memory` or `Bookkeeping` and a migration for its column:

    mood: str | None = field(default=None, metadata=stored(checks.name, argument="mood", column="mood", slot=13))

That is enough for SQLite, PostgreSQL, Redis, JSON, JSONL, Parquet, the trash, `remember_many` and `update`. Interfaces
that name their arguments or columns themselves (`Brain.remember`, the forms of the server, options of the command line)
need a change of their own. The search index has a format of its own (`index/columns.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

Check = Callable[[str, Any], Any]
"""Checks a value, named in errors by the first argument; returns it in its stored form."""

_KEY = "stored"


@dataclass(frozen=True, slots=True)
class Stored:
    """What a declaration adds to the type and default of a field."""

    check: Check
    bound: Check | None = None
    """Checks a new value further; a stored one beyond it stays readable."""
    argument: str | None = None
    """Its argument in `remember` and `update`; None if they have none."""
    fixed: bool = False
    """Whether `update` must not change it."""
    filled: bool = False
    """Whether None means "not given", as for an argument that the store fills in."""
    column: str | None = None
    """Its column in `memories`; None if it has no column, or one that is packed and encrypted."""
    slot: int | None = None
    """Its position in the list of values in Redis; never changes. A new field takes the next free number."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a memory, or of its bookkeeping."""

    name: str
    kind: str
    """Its type as it is written, without `| None`."""
    nullable: bool
    required: bool
    default: Any
    inside: str
    """The part of a memory that holds it: "bookkeeping", or nothing."""
    stored: Stored

    @property
    def path(self) -> str:
        """Return its path in a memory, for `operator.attrgetter`."""
        return f"{self.inside}.{self.name}" if self.inside else self.name

    @property
    def takes_none(self) -> bool:
        return self.nullable or self.stored.filled

    def initial(self) -> Any:
        """Return the default; a new object if it is mutable."""
        return self.default() if callable(self.default) else self.default

    def check_new(self, name: str, value: Any) -> Any:
        """Return the checked value of a memory that comes in, from whichever interface; `name` is the caller's."""
        checked = self.stored.check(name, value)
        return checked if self.stored.bound is None else self.stored.bound(name, checked)

    def read(self, document: Mapping[str, Any]) -> Any:
        """Return the checked value in a document; the default if it has none."""
        value = document.get(self.name, self)
        if value is self or (value is None and self.takes_none and not self.required):
            return self.initial()
        return self.stored.check(self.name, value)


def stored(check: Check, **facts: Any) -> dict[str, Stored]:
    """Declare a field: `field(metadata=stored(checks.name, column="actor"))`."""
    return {_KEY: Stored(check, **facts)}


def declared_fields(cls: type, inside: str = "") -> tuple[Field, ...]:
    """Return the fields of a dataclass that were declared with `stored`, in their order."""
    found = []
    for field in fields(cls):
        if _KEY in field.metadata:
            kind, _, rest = str(field.type).partition(" | ")
            required = field.default is MISSING and field.default_factory is MISSING
            default = field.default if field.default_factory is MISSING else field.default_factory
            found.append(Field(field.name, kind, rest == "None", required, default, inside, field.metadata[_KEY]))
    return tuple(found)


def compile_function(arguments: Iterable[str], expression: str, **names: Any) -> Callable[..., Any]:
    """Compile a function of `arguments` that returns `expression`. Hot paths need it: a loop over the table takes 1.5
    times as long as code that names every field."""
    made: Callable[..., Any] = eval(f"lambda {', '.join(arguments)}: {expression}", names)
    return made
