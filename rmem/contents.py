"""Read the contents of memories by their layout: `{"position": [10, 20], "inventory": {"wood": 5}}` holds three values,
under the paths `position[0]`, `position[1]` and `inventory.wood`.

Records of one kind (the states of an agent) repeat their keys. What follows from keys and types alone is computed once
for a layout and cached; a record only adds its values."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

_JSON_TYPES = frozenset((float, int, str, bool, type(None), dict, list))  # the types that a JSON parser returns
_EMPTY = ""  # the kind of a blank text
_MAX_CACHED = 1024  # layouts
_MAX_CACHED_VALUES = 64  # values; larger contents are an array of data, whose layout rarely repeats

ATTACHMENTS = "_attachments"
"""The key in contents for blobs; see `rmem.attachments`."""


EARLIER = "_earlier"
"""The key in contents for texts that an edit replaced; see `rmem.earlier_texts`."""


def own_contents(contents: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return contents without blobs and earlier texts; the names of attachments stay in their places."""
    if ATTACHMENTS not in contents and EARLIER not in contents:
        return contents
    return {key: value for key, value in contents.items() if key not in (ATTACHMENTS, EARLIER)}


Outline = tuple[Any, ...]
"""The keys of an object (None for a list), then the kind of each member: a type, or the outline of a nested value."""


class Layout:
    """The paths of the values in contents, in reading order."""

    __slots__ = ("derived", "kinds", "numbers", "paths", "under")

    def __init__(self, outline: Outline) -> None:
        places: list[tuple[str, str, Any]] = []
        _collect_paths(outline, None, None, places)
        self.paths = tuple([path for path, _, _ in places])
        self.under = tuple([under for _, under, _ in places])
        """The paths with list members under the path of their list."""
        self.kinds = tuple([kind for _, _, kind in places])
        self.numbers = tuple([at for at, kind in enumerate(self.kinds) if kind is float or kind is int])
        """Positions of the values that are numbers."""
        self.derived = _Derived(self)


class _Derived(dict[Callable[[Layout], Any], Any]):
    """Cache of functions of a layout: `layout.derived[work]` is `work(layout)`, computed once."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def __missing__(self, work: Callable[[Layout], Any]) -> Any:
        return self.setdefault(work, work(self._layout))


def _collect_paths(outline: Outline, path: str | None, under: str | None, places: list[tuple[str, str, Any]]) -> None:
    keys, *kinds = outline
    for at, kind in enumerate(kinds):
        if keys is None:
            here, above = f"{path}[{at}]", under
        else:
            here = keys[at] if path is None else f"{path}.{keys[at]}"
            above = keys[at] if under is None else f"{under}.{keys[at]}"
        if isinstance(kind, tuple):
            _collect_paths(kind, here, above, places)
        else:
            places.append((here, above or "", kind))


_layouts: dict[Outline, Layout] = {}


def laid_out(contents: Mapping[str, Any]) -> tuple[Layout, list[Any]]:
    """Return the layout of contents and their scalar values, without attachments and earlier texts, which have no
    words, numbers or attributes."""
    contents = own_contents(contents)
    values: list[Any] = []
    outline = _outline(tuple(contents), contents.values(), values)
    layout = _layouts.get(outline)
    if layout is None:
        layout = Layout(outline)
        if len(values) <= _MAX_CACHED_VALUES:
            if len(_layouts) >= _MAX_CACHED:
                _layouts.clear()
            _layouts[outline] = layout
    return layout, values


def _outline(keys: tuple[str, ...] | None, members: Iterable[Any], values: list[Any]) -> Outline:
    outline: list[Any] = [keys]
    for member in members:
        kind = type(member)
        if kind not in _JSON_TYPES:
            kind = _json_type(member)
        if kind is dict:
            outline.append(_outline(tuple(member), member.values(), values))
        elif kind is list:
            outline.append(_outline(None, member, values))
        else:
            outline.append(kind if kind is not str or member else _EMPTY)
            values.append(member)
    return tuple(outline)


def _json_type(member: object) -> type:
    """Return the JSON type for a value of another type, such as a tuple or a member of an enumeration."""
    if isinstance(member, dict):
        return dict
    if isinstance(member, list | tuple):
        return list
    return next((kind for kind in (str, float, int) if isinstance(member, kind)), object)


def leaves(contents: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return every scalar value with its path."""
    layout, values = laid_out(contents)
    return list(zip(layout.paths, values, strict=True))


# Records as text


def is_record(contents: Mapping[str, Any]) -> bool:
    """Whether contents have no text of their own, as those of a state."""
    return bool(contents) and "text" not in contents


def text_of(contents: Mapping[str, Any]) -> str:
    """Write a record as text: `action_type: trade; items_given wood: 2; outcome: success`. Numbers are rounded to three
    digits, enough for word search."""
    return text_in(*laid_out(contents))


def text_in(layout: Layout, values: list[Any]) -> str:
    text: str = layout.derived[_with_numbers].format(*values)
    return text


def words_in(layout: Layout, values: list[Any]) -> str:
    """Return the keys and the texts of a record, without its numbers."""
    words: str = layout.derived[_without_numbers].format(*values)
    return words


def names_in(layout: Layout) -> str:
    """Return the keys of a record alone."""
    return _pattern(layout, ()).format()


def _with_numbers(layout: Layout) -> str:
    return _pattern(layout, range(len(layout.kinds)))


def _without_numbers(layout: Layout) -> str:
    return _pattern(layout, set(range(len(layout.kinds))).difference(layout.numbers))


def _pattern(layout: Layout, shown: Container[int]) -> str:
    """Build the `str.format` pattern for the values at the positions `shown`."""
    parts: list[str] = []
    last = None
    for at, (path, kind) in enumerate(zip(layout.paths, layout.kinds, strict=True)):
        slot = "" if kind is _EMPTY or at not in shown else f"{{{at}:.3g}}" if kind is float else f"{{{at}!s}}"
        name = path.split("[", 1)[0] if path.endswith("]") else path
        if parts and name == last:  # another member of the same list
            if slot:
                parts[-1] += f" {slot}"
        else:
            spoken = name.replace(".", " ").replace("{", "{{").replace("}", "}}")
            parts.append(f"{spoken}: {slot}" if slot else spoken)
        last = name
    return "; ".join(parts)
