"""Facts in Markdown notes: `[[links]]`, `relation:: target` lines, front matter, the heading they stand under."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from ..models import Memory
from ..patterns import lazy_pattern
from . import names
from .model import SURE, FoundFact
from .relations import canonical

_FRONT_MATTER = lazy_pattern(r"\A---\n(.*?)\n---\s*(?:\n|\Z)", re.DOTALL)
_FIELD = lazy_pattern(r"^([A-Za-z][\w -]{0,40}): +(\S.*)$", re.MULTILINE)
_LINE = lazy_pattern(
    r"^(?P<heading>#{1,6}) +(?P<title>\S[^\n]*)$"
    r"|^[ \t]*(?:[-*+] +)?(?P<relation>[A-Za-z][\w -]{0,40}?):: *(?P<target>\S[^\n]*)$"
    r"|\[\[(?P<link>[^\]\n|#]{1,100})(?:#[^\]\n|]*)?(?:\|[^\]\n]*)?\]\]",
    re.MULTILINE,
)
_LINK_SEPARATOR = lazy_pattern(r", *(?=\[\[)")
_TITLE_KEYS = ("title", "name")
_IGNORED_KEYS = frozenset("title name date created updated layout permalink draft description summary slug".split())


def facts_in_markdown(memory: Memory, text: str) -> Iterator[FoundFact]:
    """Yield the facts of a note. Their subject is its title: front matter, tag or field `title`, or heading; in a
    section of an imported file, its topmost heading or the file's name."""
    subject = next((str(one[key]) for one in (memory.tags, memory.contents) for key in _TITLE_KEYS if one.get(key)), "")
    subject = subject or _title_of_section(memory.contents)
    front = _FRONT_MATTER.match(text)
    at = 0
    if front is not None:
        at = front.end()
        fields = {found[1].strip().lower(): found for found in _FIELD.finditer(text, front.start(1), front.end(1))}
        subject = next((names.clean(fields[key][2]) for key in _TITLE_KEYS if key in fields), subject)
        for name, found in fields.items():
            if subject and name not in _IGNORED_KEYS:
                for target in found[2].strip("[] ").split(","):
                    yield from _fact(subject, name.removesuffix("s") if name == "tags" else name, target, found)
    for found in _LINE.finditer(text, at):
        if found["heading"]:
            if found["heading"] == "#" or not subject:
                subject = names.clean(found["title"].strip("# "))
        elif not subject:
            continue
        elif found["relation"]:
            for target in _LINK_SEPARATOR.split(found["target"]):
                yield from _fact(subject, found["relation"], target, found)
        else:
            yield from _fact(subject, "links to", found["link"], found)


def _title_of_section(contents: Mapping[str, Any]) -> str:
    """Return the topmost heading of an imported section, or the name of its file; "" if it was not imported."""
    headings, source = contents.get("headings"), contents.get("source")
    if isinstance(headings, list) and headings and isinstance(headings[0], str):
        return names.clean(headings[0])
    is_file = isinstance(source, str) and source.endswith((".md", ".markdown"))
    return PurePath(str(source)).stem if is_file else ""


def _fact(subject: str, relation: str, target: str, found: re.Match[str]) -> Iterator[FoundFact]:
    what = names.clean(target.strip())
    if what and what != subject and len(what) <= names.LONGEST:
        yield FoundFact(
            subject, canonical(relation), what, is_value=names.is_value(what), confidence=SURE, start=found.start(),
            end=found.end(),
        )  # fmt: skip
