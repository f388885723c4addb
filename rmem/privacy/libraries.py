"""The libraries that detectors borrow from. They are optional, and loaded when a text first needs them."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from ..errors import ConfigError

_LIBRARIES = {
    "phone": ("phonenumbers", "phonenumbers"),
    "iban": ("stdnum", "python-stdnum"),
    "national_id": ("stdnum", "python-stdnum"),
}


def missing(library: str) -> ConfigError:
    return ConfigError(f"the privacy policy needs {library}; install it with: pip install 'rmem[privacy]'")


def require(kinds: Iterable[str]) -> None:
    """A ConfigError if a library that these kinds may need is not there: better now than at the first text that holds
    one."""
    for kind in kinds:
        module, library = _LIBRARIES.get(kind, ("re", ""))
        if find_spec(module) is None:
            raise missing(library)
