"""Read transcripts as events, as the hooks would have reported them. Unknown lines are skipped. Ids are the
transcript's own, so that reading it twice adds nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ...errors import InputError
from . import claude_code, codex
from .transcript_lines import TranscriptEvent

_READERS = {claude_code.AGENT: claude_code.read_events, codex.AGENT: codex.read_events}


def folders_of(agent: str) -> list[Path]:
    """Where an agent keeps its transcripts."""
    if agent == codex.AGENT:
        home = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")
        return [home / "sessions", home / "archived_sessions"]
    own = os.environ.get("CLAUDE_CONFIG_DIR")
    homes = [Path(one.strip()) for one in own.split(",")] if own else [Path.home() / ".claude", _configured("claude")]
    return [home / "projects" for home in homes]


def _configured(name: str) -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / name


def transcripts(agent: str, folder: Path | None = None) -> list[Path]:
    """The transcripts of an agent, oldest first; InputError if there are none."""
    places = [folder] if folder is not None else folders_of(agent)
    found = {path for place in places for path in place.rglob("*.jsonl") if path.is_file()}
    if agent == claude_code.AGENT:
        found = {path for path in found if claude_code.of_its_own(path)}
    if not found:
        looked = " or ".join(str(place) for place in places)
        raise InputError(f"there are no transcripts of {agent} in {looked}; --from says where they are", field="from")
    return sorted(found, key=lambda path: (path.stat().st_mtime, path))


def read_transcript(agent: str, path: Path) -> Iterator[TranscriptEvent]:
    """What happened in a session, in order."""
    return _READERS[agent](path)
