"""What a keeper does: events of the spool become memories, and questions of hooks are answered. It has the memory open
and is used from several threads."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from threading import Lock

from ..brain import Brain
from ..errors import RemanenceError
from . import places, spool
from .events import Event
from .hook import note

_ATTEMPTS = 3


class Work:
    """The memory of this user and what is done with it."""

    def __init__(self, brain: Brain | None = None) -> None:
        from .briefing import Briefing
        from .capture import Capture

        self.brain = brain or Brain(privacy="default")
        self._capture = Capture(self.brain)
        self._briefing = Briefing(self.brain, self._capture.sessions)
        self._turn = Lock()
        self._failed: dict[Path, int] = {}
        self._trouble = ""

    def drain(self, most: int) -> int:
        """Take in events that wait; how many there were. A file goes when what it says is in the memory."""
        with self._turn:
            paths = spool.waiting()[:most]
            done = 0
            for path, event in spool.read(paths):
                if event is None:
                    note(f"keeper: {path.name} cannot be read; it was set aside")
                    spool.set_aside(path)
                    continue
                done += self._take_in(path, event)
            return done

    def _take_in(self, path: Path, event: Event) -> int:
        try:
            self._capture.take(event)
        except Exception as error:  # of whatever kind: the next event must not wait for this one
            self._failed[path] = self._failed.get(path, 0) + 1
            note(f"keeper: {event.agent} {event.kind}: {type(error).__name__}: {error}")
            if self._failed[path] >= _ATTEMPTS:
                spool.set_aside(path)
                del self._failed[path]
            return 0
        self._failed.pop(path, None)
        path.unlink(missing_ok=True)
        _told(event)
        return 1

    def context(self, event: Event) -> str:
        """What helps the agent at this moment; empty if nothing does."""
        return self._briefing.context(event)

    def share(self) -> None:
        """Bring this memory and the team's together, if there is a login. Trouble is told once, not every minute."""
        from .login import login
        from .sync import sync

        try:
            found = login()
            if found is not None:
                sync(self.brain, *found)
            self._trouble = ""
        except RemanenceError as error:
            if str(error) != self._trouble:
                self._trouble = str(error)
                note(f"keeper: not shared: {error}")

    def close(self) -> None:
        self.brain.close()


def _told(event: Event) -> None:
    """Leave word for `rmem status`."""
    path = places.last_capture()
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps({"time": time.time(), "agent": event.agent, "kind": event.kind, "cwd": event.cwd}))
    os.replace(draft, path)
