"""Match patterns with variables against the graph: `?who owns ?service, ?service depends on redis`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, NamedTuple

from .. import checks
from ..errors import InputError

if TYPE_CHECKING:
    from .reader import View

_TOKEN = re.compile(r'"([^"]+)"|(\S+)')
_MAX_BINDINGS = 20_000  # held in memory while a pattern is matched
_EXAMPLE = "?who owns ?service, ?service depends on redis"

Binding = dict[str, tuple[int, str]]


class _Clause(NamedTuple):
    """One fact of a pattern; a variable begins with `?`."""

    subject: str
    relation: str
    object: str


def match(view: View, pattern: str, relations: Callable[[], list[str]]) -> list[dict[str, str]]:
    """Return the values of the variables, one mapping per match; `relations` lists all relations, for the error
    text."""
    waiting = [_parse_clause(view, part, relations) for part in _split_clauses(pattern)]
    bindings: list[Binding] = [{}]
    while waiting and bindings:
        clause = max(waiting, key=lambda one: _selectivity(one, bindings[0]))
        waiting.remove(clause)
        matches = (extended for binding in bindings for extended in _extend_binding(view, clause, binding))
        bindings = list(islice(matches, _MAX_BINDINGS + 1))
        if len(bindings) > _MAX_BINDINGS:
            raise InputError(
                f"pattern has more than {_MAX_BINDINGS:,} matches; replace one of its variables by a name",
                field="pattern",
            )
    rows = [{name: value for name, (_, value) in binding.items()} for binding in bindings]
    return list({tuple(sorted(row.items())): row for row in rows}.values())


def _parse_clause(view: View, part: str, relations: Callable[[], list[str]]) -> _Clause:
    """Parse one clause: split the words where those in the middle are a known relation."""
    found = _TOKEN.findall(part)
    tokens = [quoted or bare for quoted, bare in found]
    if len(tokens) < 3:
        raise InputError(f"pattern must hold facts like {_EXAMPLE!r}, not {part.strip()!r}", field="pattern")
    is_whole = [bool(quoted) or bare.startswith("?") for quoted, bare in found]
    firsts = [1] if is_whole[0] else range(1, len(tokens) - 1)
    lasts = [len(tokens) - 1] if is_whole[-1] else range(len(tokens) - 1, 1, -1)
    splits = [(first, last, " ".join(tokens[first:last])) for first in firsts for last in lasts if first < last]
    for first, last, relation in splits:
        if relation.startswith("?") or any(map(view.reader.knows_relation, _relation_ids(view, relation))):
            return _Clause(" ".join(tokens[:first]), relation, " ".join(tokens[last:]))
    known = relations()
    similar = get_close_matches(splits[0][2], known, 3, 0.5)
    hint = (
        f"did you mean {' or '.join(map(repr, similar))}?"
        if similar
        else f"there are: {', '.join(known[:10]) or 'none'}"
    )
    raise InputError(f"pattern {part.strip()!r} holds no known relation; {hint}", field="pattern")


def _extend_binding(view: View, clause: _Clause, binding: Binding) -> Iterator[Binding]:
    """Yield a binding extended by each match of a clause."""
    subjects, objects = _possible_ids(view, clause.subject, binding), _possible_ids(view, clause.object, binding)
    is_named = not clause.relation.startswith("?")
    relations = view.reader.relation_ids(clause.relation) if is_named else _possible_ids(view, clause.relation, binding)
    inverse = view.reader.inverse_ids(clause.relation) if is_named else []
    inverted = view.stream(objects, inverse, subjects) if inverse else ()
    for period, is_inverse in chain(
        zip(view.stream(subjects, relations, objects), repeat(False)), zip(inverted, repeat(True))
    ):
        fact, extended = period.fact, dict(binding)
        ends = [(fact.subject, fact.subject_name), (fact.object, fact.object_name)]
        first, last = reversed(ends) if is_inverse else ends
        values = (first, (fact.relation, fact.relation_name), last)
        for part, (key, name) in zip(clause, values, strict=True):
            if part.startswith("?") and extended.setdefault(part[1:], (key, name))[0] != key:
                break
        else:
            yield extended


def _possible_ids(view: View, part: str, binding: Binding) -> Sequence[int]:
    """Return the ids that a part of a clause may have; empty means any."""
    if not part.startswith("?"):
        return view.reader.ids_of(part)
    return [binding[part[1:]][0]] if part[1:] in binding else ()


def _relation_ids(view: View, relation: str) -> list[int]:
    return [*view.reader.relation_ids(relation), *view.reader.inverse_ids(relation)]


def _split_clauses(pattern: str) -> list[str]:
    """Split a pattern into clauses at commas outside quotes."""
    text = checks.text("pattern", pattern)
    parts = re.findall(r'(?:"[^"]*"|[^,])+', text)
    if not any("?" in part for part in parts):
        raise InputError(f"pattern must hold a variable, as in {_EXAMPLE!r}", field="pattern")
    return parts


def _selectivity(clause: _Clause, binding: Binding) -> int:
    """Weigh the known parts of a clause: the most selective clause is matched first."""
    weights = (4, 1, 4)
    return sum(
        weight for part, weight in zip(clause, weights, strict=True) if not part.startswith("?") or part[1:] in binding
    )
