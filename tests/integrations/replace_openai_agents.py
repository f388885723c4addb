"""A plugin of pytest: BrainSession in the place of the SDK's SQLiteSession, with the constructor of that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import agents
import agents.memory

from rmem.integrations.openai_agents import BrainSession


class SQLiteSession(BrainSession):
    def __init__(self, session_id: str, db_path: str | Path = ":memory:", *, session_settings: Any = None) -> None:
        super().__init__(session_id, db_path, session_settings=session_settings)


agents.SQLiteSession = SQLiteSession  # type: ignore[misc, assignment]
agents.memory.SQLiteSession = SQLiteSession  # type: ignore[misc, assignment]
