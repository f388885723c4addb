"""Mask in an event what the default privacy policy would, before the hook writes it to disk. The policy itself loads
numpy, for which a hook has no time; its traversal and its scanner do not."""

from __future__ import annotations

import os
from typing import Any

from ..privacy.findings import KINDS, Finding
from ..privacy.libraries import require
from ..privacy.replacements import Replacer, Walk, refuse_secrets
from ..privacy.scanner import scan
from .events import Event

_LARGEST = 128 << 10  # characters of a text that are handed over: its beginning and its end
_TEXT_FIELDS = ("prompt", "tool", "command", "output", "message", "call", "transcript", "source")
_NAMES = ("session", "cwd")


def mask_event(event: Event) -> Event:
    """Remove secrets and personal data from an event. Raise PrivacyError if a name that must stay contains a secret,
    ConfigError if a required library is missing."""
    require(KINDS)
    for name in _NAMES:
        refuse_secrets(name, getattr(event, name))
    walk = _Walk(scan, _mark)
    texts: dict[str, Any] = {name: walk.text(getattr(event, name), name) for name in _TEXT_FIELDS}
    texts["input"] = walk.mapping(dict(event.input), "input")
    paths = [_split_path(path, event.cwd) for path in event.files]
    rests = [walk.text(rest, "files") for _, rest in paths]
    if walk.replaced:
        replacer = Replacer(walk.replaced)
        texts, rests = replacer.value(texts), replacer.value(rests)
    files = [folder + rest for (folder, _), rest in zip(paths, rests, strict=True)]
    return event._replace(**texts, files=files)


class _Walk(Walk):
    def text(self, text: str, field: str, key: str = "") -> str:
        return super().text(_shorten(text), field, key)


def _mark(finding: Finding, value: str, field: str) -> str:
    return f"[{finding.kind}]"


def _split_path(path: str, cwd: str) -> tuple[str, str]:
    """Split a path into the part shared with the working folder, which must stay searchable, and the rest."""
    folder = os.path.join(cwd, "")
    while not path.startswith(folder):
        folder = folder[: folder.rfind("/", 0, -1) + 1]
    return folder, path[len(folder) :]


def _shorten(text: str) -> str:
    """Cut the middle out of a long text, between lines: half a secret would not be detected."""
    if len(text) <= _LARGEST:
        return text
    text = Walk(lambda whole: scan(whole, ("private_key",)), _mark).text(text, "")  # it has many lines
    half = _LARGEST // 2
    start, end = text[:half], text[-half:]
    for blank in ("\n", " "):
        if blank in start and blank in end:
            start, end = start[: start.rindex(blank)], end[end.index(blank) + 1 :]
            break
    left = len(text) - len(start) - len(end)
    return f"{start}\n… {left} characters left out …\n{end}"
