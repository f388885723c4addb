"""The history of the schema, one short revision after another in `versions`, applied when a file is opened."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import Connection

REVISIONS = ("m001", "m002", "m003", "m004", "m005", "m006")  # a test compares them with the scripts
HEAD = REVISIONS[-1]


def upgrade(connection: Connection) -> None:
    """Bring the schema behind a connection to HEAD, inside the caller's transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
