"""Find transcripts and read them as events, as the hooks would have reported them. Unknown lines are skipped. Ids are
the transcript's own, so that reading it twice adds nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ...errors import InputError
from . import claude_code, codex
from .transcript_lines import TranscriptEvent

_READERS = {claude_code.AGENT: claude_code.read_events, codex.AGENT: codex.read_events}


def transcript_folders(agent: str) -> list[Path]:
    if agent == codex.AGENT:
        home = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")
        return [home / "sessions", home / "archived_sessions"]
    own = os.environ.get("CLAUDE_CONFIG_DIR")
    homes = (
        [Path(path.strip()) for path in own.split(",")] if own else [Path.home() / ".claude", _config_folder("claude")]
    )
    return [home / "projects" for home in homes]


def _config_folder(name: str) -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / name


def find_transcripts(agent: str, folder: Path | None = None) -> list[Path]:
    """Return the transcripts of an agent, oldest first; InputError if there are none."""
    places = [folder] if folder is not None else transcript_folders(agent)
    found = {path for place in places for path in place.rglob("*.jsonl") if path.is_file()}
    if agent == claude_code.AGENT:
        found = {path for path in found if claude_code.is_original(path)}
    if not found:
        searched = " or ".join(str(place) for place in places)
        raise InputError(f"there are no transcripts of {agent} in {searched}; --from says where they are", field="from")
    return sorted(found, key=lambda path: (path.stat().st_mtime, path))


def read_transcript(agent: str, path: Path) -> Iterator[TranscriptEvent]:
    """Yield the events of a session, in order."""
    return _READERS[agent](path)
