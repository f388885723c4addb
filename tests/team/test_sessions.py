"""The files of sessions: there are never many of them."""

from __future__ import annotations

import json
import os
from dataclasses import asdict

from rmem.team.sessions import Sessions, SessionState


def test_only_the_latest_sessions_are_kept(tmp_path):
    sessions = Sessions(tmp_path / "sessions")
    (tmp_path / "sessions").mkdir()
    for number in range(2000):
        path = tmp_path / "sessions" / f"{number:05}.json"
        path.write_text(json.dumps(asdict(SessionState("codex", f"s-{number}"))))
        os.utime(path, (number, number))
    sessions.save(SessionState("codex", "new"))
    kept = [state.session for state in sessions.all()]
    assert kept[0] == "new"
    assert kept[1:] == [f"s-{number}" for number in range(1999, 1600, -1)]
