"""The state of a session: what an agent is doing now. Stored apart from memories, rewritten at every event, restored
after a crash or a compacted context, and summarised into a memory at the end."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

from ..filelocks import lock
from ..private_files import make_folder, opener
from . import paths
from .atomic_files import replace_file

_MANY = 20  # files, edits, outputs of a session that are remembered
_SEEN = 500  # events
_MOST = 400  # sessions whose files are kept


@dataclass(slots=True)
class SessionState:
    agent: str
    session: str
    cwd: str = ""
    repository: str | None = None
    branch: str | None = None
    task: str = ""
    requests: list[str] = field(default_factory=list)
    """What was asked for after the task."""
    plan: list[str] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    open_files: list[str] = field(default_factory=list)
    edits: list[dict[str, Any]] = field(default_factory=list)
    outputs: list[dict[str, Any]] = field(default_factory=list)
    failures: dict[str, dict[str, Any]] = field(default_factory=dict)
    fixed: list[str] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)
    """Memories of fixes that nobody has said the reason of yet."""
    injected: list[str] = field(default_factory=list)
    recounted: list[str] = field(default_factory=list)
    """Other sessions whose state was shown to this one."""
    seen: list[str] = field(default_factory=list)
    started: float = 0.0
    updated: float = 0.0
    ended: float | None = None

    def looked_at(self, path: str) -> None:
        """Record that a file was read or changed; the latest is last."""
        self.open_files = [*(known for known in self.open_files if known != path), path][-_MANY:]

    def note_edit(self, edit: dict[str, Any]) -> None:
        self.edits = [*self.edits, edit][-3 * _MANY :]
        self.looked_at(edit["file"])

    def note_output(self, output: dict[str, Any]) -> None:
        self.outputs = [*self.outputs, output][-_MANY:]

    def is_new(self, event_id: str) -> bool:
        """Record an event; return whether it was new."""
        if event_id in self.seen:
            return False
        self.seen = [*self.seen, event_id][-_SEEN:]
        return True

    @property
    def edited_files(self) -> list[str]:
        return list(dict.fromkeys(edit["file"] for edit in self.edits))

    def to_dict(self) -> dict[str, Any]:
        """Return the public fields."""
        fields = asdict(self)
        del fields["seen"]
        return fields


class Sessions:
    """All sessions of this user, one small file each."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or paths.sessions()
        self._lock = Lock()

    @contextmanager
    def changing(self, agent: str, session: str) -> Iterator[SessionState]:
        """Lock a session, yield its state and save it if the block succeeds."""
        with self.lock():
            state = self.load(agent, session)
            yield state
            self.save(state)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other threads and processes from changing sessions; must not be nested."""
        with self._lock:
            make_folder(self._folder.parent)
            with open(self._folder.with_suffix(".lock"), "ab", opener=opener) as file:
                lock(file.fileno(), wait=True)
                yield

    def load(self, agent: str, session: str) -> SessionState:
        """Return the state of a session; a new one if there is none."""
        return self._read(self._path(agent, session)) or SessionState(agent, session, started=time.time())

    def find(self, session: str) -> SessionState | None:
        """Return the state of a session by its id alone."""
        return next((state for state in self.all() if state.session == session), None)

    def save(self, state: SessionState) -> None:
        """Write the state; durable on return."""
        make_folder(self._folder)
        data = json.dumps(asdict(state), ensure_ascii=False).encode("utf-8", "surrogatepass")
        path = self._path(state.agent, state.session)
        is_new = not path.exists()
        replace_file(path, data)
        if state.updated:
            os.utime(path, (state.updated, state.updated))  # the latest is the one that worked last
        if is_new:
            self._prune()

    def _prune(self) -> None:
        """Remove the oldest sessions if there are many; what they taught is in the memory."""
        latest_first = self._paths()
        if len(latest_first) > _MOST + _MOST // 4:
            for path in latest_first[_MOST:]:
                path.unlink(missing_ok=True)

    def _paths(self) -> list[Path]:
        """Return the files of all sessions, latest first."""
        found = []
        for path in self._folder.glob("*.json"):
            with suppress(FileNotFoundError):  # removed in this moment
                if not path.name.startswith("."):
                    found.append((-path.stat().st_mtime, path))
        return [path for _, path in sorted(found)]

    def all(self) -> Iterator[SessionState]:
        """Return every session, latest first."""
        if not self._folder.is_dir():
            return
        for path in self._paths():
            try:
                state = self._read(path)
            except OSError:
                continue
            if state is not None:
                yield state

    def last_in(self, repository: str, *, but: str = "") -> SessionState | None:
        """Return the latest session in a repository other than `but`."""
        return next((state for state in self.all() if state.repository == repository and state.session != but), None)

    def remove(self, state: SessionState) -> None:
        self._path(state.agent, state.session).unlink(missing_ok=True)

    def _path(self, agent: str, session: str) -> Path:
        return self._folder / f"{sha256(f'{agent}/{session}'.encode()).hexdigest()[:24]}.json"

    def _read(self, path: Path) -> SessionState | None:
        """Read a state; None if this version cannot read it. An OSError is raised: a new state must not replace an
        unreadable one."""
        try:
            data = json.loads(path.read_bytes().decode("utf-8", "surrogatepass"))
            known = {field.name for field in fields(SessionState)}
            return SessionState(**{key: value for key, value in data.items() if key in known})
        except (FileNotFoundError, NotADirectoryError, ValueError, TypeError, AttributeError):
            return None


NO_SESSIONS = Sessions(Path(os.devnull))
"""No sessions at all, for a host where none run."""
