"""Where things live by default, and the environment variables that move them."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import ConfigError

HOME = "REMANENCE_HOME"
STORE_NAME = "memories.db"


def home() -> Path:
    """The folder of the default store: $REMANENCE_HOME, or the user's data folder for applications."""
    given = os.environ.get(HOME, "").strip()
    if given:
        folder = Path(given).expanduser()
        if folder.exists() and not folder.is_dir():
            raise ConfigError(f"{HOME} must name a folder, but {folder} is a file")
        return folder
    import platformdirs

    return Path(platformdirs.user_data_dir("remanence", appauthor=False))


def default_store() -> Path:
    return home() / STORE_NAME


def user() -> str:
    """Who the audit log says it was: REMANENCE_USER, else the name of whoever runs this process."""
    named = (os.environ.get(name) for name in ("REMANENCE_USER", "LOGNAME", "USER", "USERNAME"))
    return next((name for name in named if name), None) or f"user-{os.getuid() if hasattr(os, 'getuid') else 0}"
