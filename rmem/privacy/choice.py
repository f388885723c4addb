"""Choose the policy of a Brain: the given one, else that of the environment, else none. Detectors are loaded only if
there is a policy."""

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
    """Return the policy for a PrivacyPolicy, "default", a mapping of its fields, the path of a JSON file, or "off".

    None stands for the value of $RMEM_PRIVACY: "default", "off" or a path; unset means no policy.
    """
    choice = os.environ.get(PRIVACY, "").strip() if given is None else given
    if choice in ("", "off"):
        if given == "":
            raise checks.refuse("privacy", "a PrivacyPolicy, 'default', 'off', a mapping, a path or None", given)
        return None
    from .policy import PrivacyPolicy

    if isinstance(choice, PrivacyPolicy):
        return choice
    if isinstance(choice, Mapping):
        return PrivacyPolicy.from_dict(choice)
    if not isinstance(choice, str):
        raise checks.refuse("privacy", "a PrivacyPolicy, 'default', 'off', a mapping, a path or None", choice)
    if choice == "default":
        return PrivacyPolicy.default()
    name = "privacy" if given is not None else PRIVACY
    try:
        return PrivacyPolicy.from_dict(json.loads(Path(choice).expanduser().read_text(encoding="utf-8")))
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise ConfigError(f"{name} must be 'default', 'off' or the path of a JSON file: {choice}: {error}") from None
