"""Build a SELECT step by step: `client.table("t").select("task").where("id > $1", 5).limit(3)()`.

Names are quoted, values are parameters, and an expression cannot end the place where it is put. The statement is
checked where it runs, like any other."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .. import checks
from ..errors import InputError, SqlError
from .catalog import quote_identifier

if TYPE_CHECKING:
    from .streams import QueryRows

_NAME = re.compile(r"[^\W\d]\w*")
_ORDERED = re.compile(rf"\s*({_NAME.pattern})((?:\s+(?:asc|desc))?(?:\s+nulls\s+(?:first|last))?)\s*", re.IGNORECASE)
_TOKENS = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(\d+)|--|/\*|[()'";]""")


def quote_name(name: str) -> str:
    """Check a name and quote it for SQL."""
    return quote_identifier(checks.name("name", name))


@dataclass(frozen=True, slots=True)
class Select:
    """A SELECT on one table. Each step returns a new object, so a prefix can be shared; calling it runs it."""

    run: Callable[[str, list[Any]], QueryRows]
    table: str
    columns: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()
    order: tuple[str, ...] = ()
    most: int | None = None
    skipped: int | None = None

    def select(self, *columns: str) -> Select:
        """Select columns by name, or expressions such as `count(*) AS n`. Without this step: all columns."""
        columns = columns if columns != ("*",) else ()
        return replace(self, columns=self.columns + tuple(_expression("select", column) for column in columns))

    def where(self, condition: str | None = None, *values: Any, **equal: Any) -> Select:
        """Add a condition with values for `$1`, `$2`, …, or `where(repo="etl")`, where None means IS NULL. All
        conditions must hold."""
        conditions, given = list(self.conditions), list(self.values)
        if condition is not None:
            shifted = _shift_parameters(condition, len(given), len(values))
            conditions.append(f"({_whole('where', shifted)})")
            given += values
        elif values:
            raise InputError("where needs a condition for its values", field="where")
        for name, value in equal.items():
            if value is None:
                conditions.append(f"{quote_name(name)} IS NULL")
            else:
                given.append(value)
                conditions.append(f"{quote_name(name)} = ${len(given)}")
        return replace(self, conditions=tuple(conditions), values=tuple(given))

    def order_by(self, *columns: str) -> Select:
        """Order by columns or expressions, each with an optional ASC or DESC: `order_by("repo", "timestamp DESC")`."""
        return replace(self, order=self.order + tuple(_order_expression(column) for column in columns))

    def limit(self, count: int) -> Select:
        return replace(self, most=checks.whole("limit", count))

    def offset(self, count: int) -> Select:
        return replace(self, skipped=checks.whole("offset", count))

    @property
    def sql(self) -> str:
        parts = [f"SELECT {', '.join(self.columns) or '*'} FROM {quote_name(self.table)}"]
        if self.conditions:
            parts.append(f"WHERE {' AND '.join(self.conditions)}")
        if self.order:
            parts.append(f"ORDER BY {', '.join(self.order)}")
        if self.most is not None:
            parts.append(f"LIMIT {self.most}")
        if self.skipped is not None:
            parts.append(f"OFFSET {self.skipped}")
        return " ".join(parts)

    def __call__(self) -> QueryRows:
        return self.run(self.sql, list(self.values))


def _expression(step: str, text: object) -> str:
    """Return an expression for the statement; a plain name is quoted."""
    if not isinstance(text, str) or not text.strip():
        raise checks.refuse(step, "a column or an expression", text)
    name = _NAME.fullmatch(text.strip())
    return quote_name(name[0]) if name else _whole(step, text.strip())


def _order_expression(text: object) -> str:
    named = _ORDERED.fullmatch(text) if isinstance(text, str) else None
    if named is None:
        return _expression("order_by", text)
    return quote_name(named[1]) + " ".join(part.upper() for part in ("", *named[2].split()))


def _whole(step: str, text: str) -> str:
    """Check that a text closes its brackets and contains no comment or second statement."""
    depth = 0
    for match in _TOKENS.finditer(text):
        token = match[0]
        depth += (token == "(") - (token == ")")
        if depth < 0 or token in ("--", "/*", ";", "'", '"'):
            raise SqlError(f"{step} must be one expression, but {token} does not fit: {text}", field=step)
    if depth:
        raise SqlError(f"{step} must be one expression, but a ( is not closed: {text}", field=step)
    return text


def _shift_parameters(condition: str, by: int, count: int) -> str:
    """Renumber `$1`, `$2`, … of a condition to follow `by` earlier values."""
    if not isinstance(condition, str):
        raise checks.refuse("where", "a condition such as 'repo = $1'", condition)
    seen: set[int] = set()

    def shift(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0]
        seen.add(int(match[1]))
        return f"${int(match[1]) + by}"

    text = _TOKENS.sub(shift, condition.strip())
    if seen != set(range(1, count + 1)):
        named = ", ".join(f"${number}" for number in sorted(seen)) or "no parameter"
        given = f"{count} {'value' if count == 1 else 'values'}"
        raise SqlError(f"where needs one value for each of $1, $2, …: it names {named} and got {given}", field="where")
    return text
