"""Facts from the rows of a table, by a mapping of its columns: one row states one fact. The memories that state them
have ids made of what they say, so mapping a table again changes only what has changed in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import checks
from ..errors import InputError
from ..facts.model import name_key
from ..facts.stated import TYPE, sentence, stated_contents

if TYPE_CHECKING:
    from ..brain import Brain
    from ..stores.base import Progress


class Mapped(NamedTuple):
    """What mapping a table changed."""

    added: int
    unchanged: int
    removed: int


def map_rows(
    brain: Brain,
    name: str,
    rows: Iterable[Mapping[str, Any]],
    columns: Mapping[str, str | None],
    relation: str,
    on_progress: Progress | None,
) -> Mapped:
    """State the facts of rows; facts of this table that no row states any more are taken back."""
    wanted: dict[str, dict[str, Any]] = {}
    for number, row in enumerate(rows, 1):
        item = _item(f"row {number}", name, row, columns, relation)
        if item is not None:
            wanted[item["id"]] = item
    where = {"type": TYPE, "tags": {"table": name}}
    held = {memory.memory_id for memory in brain.memories(where, limit=None)}
    gone = sorted(held - wanted.keys())
    for key in gone:
        brain.forget(key)
    fresh = [item for key, item in wanted.items() if key not in held]
    brain.remember_many(fresh, on_progress=on_progress)
    return Mapped(len(fresh), len(wanted) - len(fresh), len(gone))


def _item(
    where: str, name: str, row: Mapping[str, Any], columns: Mapping[str, str | None], relation: str
) -> dict[str, Any] | None:
    """The memory that states the fact of a row; None where its subject or object is empty."""
    for column in columns.values():
        if column is not None and column not in row:
            known = ", ".join(map(repr, row))
            raise InputError(f"{where} of table {name!r} has no column {column!r}; it has {known}", field=str(column))
    told = {part: None if column is None else row[column] for part, column in columns.items()}
    if told["subject"] in (None, "") or told["object"] in (None, ""):
        return None
    subject, goal = str(told["subject"]), str(told["object"])
    for part, value in (("subject", subject), ("object", goal)):
        if not name_key(checks.name(f"{where}: {part}", value)):
            raise checks.refuse(f"{where}: {part}", "a name with letters or digits", value)
    since, until = (
        None if told[part] is None else checks.moment(f"{where}: {part}", told[part]) for part in ("since", "until")
    )
    is_value = not isinstance(told["object"], str)
    contents = stated_contents(subject, relation, goal, is_value=is_value, since=since, until=until)
    print_ = blake2b(repr((name, sorted(contents["fact"].items(), key=str))).encode(), digest_size=10).hexdigest()
    return {
        "id": f"table-{print_}",
        "text": sentence(subject, relation, goal),
        "type": TYPE,
        "tags": {"table": name},
        "when": since,
        "metadata": contents,
    }
