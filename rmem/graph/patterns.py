"""Questions with variables: `?who owns ?service, ?service depends on redis`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from .. import checks
from ..errors import InputError

if TYPE_CHECKING:
    from .reader import View

_TOKEN = re.compile(r'"([^"]+)"|(\S+)')
_MOST = 20_000  # bindings that are held while a pattern is matched
_EXAMPLE = "?who owns ?service, ?service depends on redis"

Binding = dict[str, tuple[int, str]]


class _Clause(NamedTuple):
    """One fact of a pattern; a variable begins with `?`."""

    subject: str
    relation: str
    object: str


def match(view: View, pattern: str, relations: Callable[[], list[str]]) -> list[dict[str, str]]:
    """The values of the variables; `relations` gives the names of all relations, for a hint."""
    waiting = [_clause(view, part, relations) for part in _clauses(pattern)]
    bindings: list[Binding] = [{}]
    while waiting and bindings:
        clause = max(waiting, key=lambda one: _bound(one, bindings[0]))
        waiting.remove(clause)
        bindings = [joined for binding in bindings for joined in _joined(view, clause, binding)]
        if len(bindings) > _MOST:
            raise InputError(f"pattern matches in more than {_MOST:,} ways; name one of its variables", field="pattern")
    rows = [{name: value for name, (_, value) in binding.items()} for binding in bindings]
    return list({tuple(sorted(row.items())): row for row in rows}.values())


def _clause(view: View, part: str, relations: Callable[[], list[str]]) -> _Clause:
    """Read one fact of a pattern: the relation is what stands between, as far as there is such a relation."""
    found = _TOKEN.findall(part)
    tokens = [quoted or bare for quoted, bare in found]
    if len(tokens) < 3:
        raise InputError(f"pattern must hold facts like {_EXAMPLE!r}, not {part.strip()!r}", field="pattern")
    whole = [bool(quoted) or bare.startswith("?") for quoted, bare in found]
    firsts = [1] if whole[0] else range(1, len(tokens) - 1)
    lasts = [len(tokens) - 1] if whole[-1] else range(len(tokens) - 1, 1, -1)
    tried = [(first, last, " ".join(tokens[first:last])) for first in firsts for last in lasts if first < last]
    for first, last, relation in tried:
        if relation.startswith("?") or any(map(view.reader.knows_relation, _relations(view, relation))):
            return _Clause(" ".join(tokens[:first]), relation, " ".join(tokens[last:]))
    known = relations()
    near = get_close_matches(tried[0][2], known, 3, 0.5)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are: {', '.join(known[:10]) or 'none'}"
    raise InputError(f"pattern {part.strip()!r} holds no known relation; {hint}", field="pattern")


def _joined(view: View, clause: _Clause, binding: Binding) -> list[Binding]:
    """What a clause adds to the values that variables have already."""
    subjects, objects = _choices(view, clause.subject, binding), _choices(view, clause.object, binding)
    named = not clause.relation.startswith("?")
    relations = view.reader.relation_ids(clause.relation) if named else _choices(view, clause.relation, binding)
    turned = view.reader.inverse_ids(clause.relation) if named else []
    found = []
    streams = [(period, False) for period in view.stream(subjects, relations, objects)]
    streams += [(period, True) for period in view.stream(objects, turned, subjects)] if turned else []
    for period, is_turned in streams:
        fact, joined = period.fact, dict(binding)
        ends = [(fact.subject, fact.subject_name), (fact.object, fact.object_name)]
        first, last = reversed(ends) if is_turned else ends
        told = (first, (fact.relation, fact.relation_name), last)
        for part, (key, name) in zip(clause, told, strict=True):
            if part.startswith("?") and joined.setdefault(part[1:], (key, name))[0] != key:
                break
        else:
            found.append(joined)
    return found


def _choices(view: View, part: str, binding: Binding) -> Sequence[int]:
    """The ids that a part of a clause may have; none for any."""
    if not part.startswith("?"):
        return view.reader.ids_of(part)
    return [binding[part[1:]][0]] if part[1:] in binding else ()


def _relations(view: View, relation: str) -> list[int]:
    return [*view.reader.relation_ids(relation), *view.reader.inverse_ids(relation)]


def _clauses(pattern: str) -> list[str]:
    """The facts of a pattern; commas inside quotes separate none."""
    text = checks.text("pattern", pattern)
    parts = re.findall(r'(?:"[^"]*"|[^,])+', text)
    if not any("?" in part for part in parts):
        raise InputError(f"pattern must hold a variable, as in {_EXAMPLE!r}", field="pattern")
    return parts


def _bound(clause: _Clause, binding: Binding) -> int:
    """How many parts of a clause are known: the most telling clause goes first."""
    weights = (4, 1, 4)
    return sum(
        weight for part, weight in zip(clause, weights, strict=True) if not part.startswith("?") or part[1:] in binding
    )
