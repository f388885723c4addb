"""Choose the policy of a Brain: the one it is given, else the one that the environment names, else none. Detectors are
loaded only where there is a policy."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Union

from .. import checks
from ..errors import ConfigError, InputError

if TYPE_CHECKING:
    from .policy import PrivacyPolicy

PRIVACY = "RMEM_PRIVACY"
PrivacySpec: TypeAlias = Union["PrivacyPolicy", Mapping[str, Any], str, None]


def policy_of(given: PrivacySpec) -> PrivacyPolicy | None:
    """A policy from itself, "default", a mapping of its fields, the path of a JSON file with them, or "off".

    None is what $RMEM_PRIVACY says: "default", "off" or such a path; nothing there means no policy.
    """
    told = os.environ.get(PRIVACY, "").strip() if given is None else given
    if told in ("", "off"):
        if given == "":
            raise checks.refuse("privacy", "a PrivacyPolicy, 'default', 'off', a mapping, a path or None", given)
        return None
    from .policy import PrivacyPolicy

    if isinstance(told, PrivacyPolicy):
        return told
    if isinstance(told, Mapping):
        return PrivacyPolicy.from_dict(told)
    if not isinstance(told, str):
        raise checks.refuse("privacy", "a PrivacyPolicy, 'default', 'off', a mapping, a path or None", told)
    if told == "default":
        return PrivacyPolicy.default()
    where = "privacy" if given is not None else PRIVACY
    try:
        return PrivacyPolicy.from_dict(json.loads(Path(told).expanduser().read_text(encoding="utf-8")))
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise ConfigError(f"{where} must be 'default', 'off' or the path of a JSON file: {told}: {error}") from None
