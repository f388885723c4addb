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
    """How many facts a mapping added, left unchanged and removed."""

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
    """State the fact of each row; remove facts of this table that no row states any more."""
    stated: dict[str, dict[str, Any]] = {}
    for number, row in enumerate(rows, 1):
        item = _item(f"row {number}", name, row, columns, relation)
        if item is not None:
            stated[item["id"]] = item
    where = {"type": TYPE, "tags": {"table": name}}
    stored = {memory.memory_id for memory in brain.memories(where, limit=None)}
    removed = sorted(stored - stated.keys())
    for key in removed:
        brain.forget(key)
    added = [item for key, item in stated.items() if key not in stored]
    brain.remember_many(added, on_progress=on_progress)
    return Mapped(len(added), len(stated) - len(added), len(removed))


def _item(
    where: str, name: str, row: Mapping[str, Any], columns: Mapping[str, str | None], relation: str
) -> dict[str, Any] | None:
    """Build the memory that states the fact of a row; None if its subject or object is empty."""
    for column in columns.values():
        if column is not None and column not in row:
            names = ", ".join(map(repr, row))
            raise InputError(f"{where} of table {name!r} has no column {column!r}; it has {names}", field=str(column))
    values = {part: None if column is None else row[column] for part, column in columns.items()}
    if values["subject"] in (None, "") or values["object"] in (None, ""):
        return None
    subject, goal = str(values["subject"]), str(values["object"])
    for part, value in (("subject", subject), ("object", goal)):
        if not name_key(checks.name(f"{where}: {part}", value)):
            raise checks.refuse(f"{where}: {part}", "a name with letters or digits", value)
    since, until = (
        None if values[part] is None else checks.moment(f"{where}: {part}", values[part]) for part in ("since", "until")
    )
    is_value = not isinstance(values["object"], str)
    contents = stated_contents(subject, relation, goal, is_value=is_value, since=since, until=until)
    digest = blake2b(repr((name, sorted(contents["fact"].items(), key=str))).encode(), digest_size=10).hexdigest()
    return {
        "id": f"table-{digest}",
        "text": sentence(subject, relation, goal),
        "type": TYPE,
        "tags": {"table": name},
        "when": since,
        "metadata": contents,
    }
