"""Privacy: find what a memory must not keep, and mask, hash, drop, encrypt or refuse it before it is stored. This
module is the list of public names; each is loaded when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_names import lazy_names

_HOMES = {
    "ACTIONS": "privacy.policy",
    "Finding": "privacy.findings",
    "KINDS": "privacy.findings",
    "PrivacyPolicy": "privacy.policy",
    "policy_of": "privacy.choice",
    "scan": "privacy.scanner",
}

__all__ = [*_HOMES]

if TYPE_CHECKING:
    from .choice import policy_of as policy_of
    from .findings import KINDS as KINDS
    from .findings import Finding as Finding
    from .policy import ACTIONS as ACTIONS
    from .policy import PrivacyPolicy as PrivacyPolicy
    from .scanner import scan as scan
else:
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
