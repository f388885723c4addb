"""Names of a package that are loaded when they are first used, so that importing the package costs next to nothing.

Beside `lazy_names`, type checkers need each name below TYPE_CHECKING: `from .brain import Brain as Brain`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package, by the module of rmem that each name is in."""

    def load(name: str) -> object:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"rmem.{home}")
        value = module if name == home.rpartition(".")[2] else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted(homes)
