"""Privacy: find what a memory must not keep, and mask, hash, drop, encrypt or refuse it before it is stored. This
module is the list of public names; each is loaded when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["ACTIONS", "KINDS", "Finding", "PrivacyPolicy", "policy_of", "scan"]

_HOMES = {
    "ACTIONS": "policy",
    "Finding": "findings",
    "KINDS": "findings",
    "PrivacyPolicy": "policy",
    "policy_of": "choice",
    "scan": "scanner",
}

if TYPE_CHECKING:
    from .choice import policy_of
    from .findings import KINDS, Finding
    from .policy import ACTIONS, PrivacyPolicy
    from .scanner import scan


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'rmem.privacy' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"rmem.privacy.{home}"), name)
