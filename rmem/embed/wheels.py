"""Find a data file inside an installed wheel without importing its package, which would cost start-up time."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from rmem.errors import EmbedderError


def file_in_wheel(package: str, relative: str, *, install: str) -> Path:
    """Return the path of `relative` inside the top-level `package`; `install` is the command that installs it."""
    spec = find_spec(package)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder, relative)
        if path.is_file():
            return path
    found = f"it holds no file {relative}" if spec else "it is not installed"
    raise EmbedderError(f"the weights of the package {package} are needed, but {found}. Run: {install}")
