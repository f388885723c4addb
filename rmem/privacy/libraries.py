"""Optional libraries of the detectors, imported when a text first needs them."""

from __future__ import annotations

from collections.abc import Iterable

from .. import extras

_KINDS = frozenset({"phone", "iban", "national_id"})


def require_library() -> None:
    """Raise ConfigError with the install command if a library of the detectors is missing."""
    extras.require("privacy", "the privacy policy")


def require(kinds: Iterable[str]) -> None:
    """Raise ConfigError now, rather than at the first match, if a library that these kinds need is missing."""
    if not _KINDS.isdisjoint(kinds):
        require_library()
