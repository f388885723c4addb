"""Support the environment variables and the repository file of the time when the package was called `remanence`."""

from __future__ import annotations

import os
import warnings

OLD, NEW = "REMANENCE_", "RMEM_"
REPOSITORY_FILES = (".rmem.toml", ".remanence.toml")
"""What a repository's file may be called; the first is its name."""


def adopt_environment() -> None:
    """Copy each old variable to its new name, unless that is set, and warn."""
    for old in [name for name in os.environ if name.startswith(OLD)]:
        new = NEW + old.removeprefix(OLD)
        if new not in os.environ:
            os.environ[new] = os.environ[old]
            warnings.warn(f"the environment variable {old} is now called {new}; rename it", FutureWarning, stacklevel=3)
