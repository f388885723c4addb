"""The work of the daemon: store the events of the spool as memories, and answer the questions of hooks. Holds the open
memory; safe to use from several threads.

An event that our own code refuses twice can never be stored and is set aside. Any other error is one of the store, the
system or a connection: the event and those behind it wait, in order, and are tried again after a pause."""

from __future__ import annotations

import json
import time
import traceback
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Condition, Lock
from threading import Event as ThreadEvent
from typing import TYPE_CHECKING, TypeVar

from ..brain import Brain
from ..errors import RemanenceError, VectorError
from . import known_repositories, paths, spool
from .atomic_files import replace_file
from .events import SELF_TEST, SELF_TEST_ANSWER, Event, EventKind
from .hook import note
from .identity import repository
from .outage import Outage

if TYPE_CHECKING:
    from .capture import Capture

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_SESSIONS = 500  # whose late answers are kept
_CATCHING_UP = 0.25  # seconds that a question waits for the events before it
_FOR_OTHERS = 1.0  # … that a prompt waits for the answers to other questions of its session
_CAUGHT_UP_WITH = 200  # events; a longer backlog is not stored within that time
_ATTEMPTS = 2  # the second shows that the first did not fail by accident
# InputError and PrivacyError are ValueErrors, NotFoundError is a LookupError.
_UNUSABLE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, AssertionError, RecursionError)


class _Memory:
    """The open memory with what works on it."""

    def __init__(self, brain: Brain) -> None:
        from .briefing import Briefing
        from .capture import Capture

        self.brain = brain
        self.capture = Capture(brain)
        self.briefing = Briefing(brain, self.capture.sessions)


class _PendingAnswers:
    """Context that sessions have not received yet: answers whose receipt no hook has confirmed, and session starts that
    nobody has answered. The next prompt of the session gets it, once."""

    def __init__(self) -> None:
        self._answers: OrderedDict[tuple[str, str], dict[str, str]] = OrderedDict()
        self._starts: OrderedDict[tuple[str, str], Event] = OrderedDict()
        self._claimed: OrderedDict[str, None] = OrderedDict()
        self._answering: Counter[tuple[str, str]] = Counter()
        self._changed = Condition()

    def add_start(self, event: Event) -> None:
        """Remember a session start that waited in the spool, unless it was claimed."""
        with self._changed:
            if event.kind is EventKind.SESSION_START and event.id not in self._claimed:
                _put(self._starts, _session(event), event)

    def claim(self, start: Event) -> bool:
        """Claim a session start for an answer; False if it was claimed already. On a busy machine a hook gives up, a
        prompt gets the briefing, and then the question of that hook is read."""
        with self._changed:
            if start.id in self._claimed:
                return False
            _put(self._claimed, start.id, None)
            self._starts.pop(_session(start), None)
            return True

    def start_of(self, prompt: Event) -> Event | None:
        """Return the start of a prompt's session if nobody has answered it."""
        with self._changed:
            return self._starts.get(_session(prompt))

    @contextmanager
    def answering(self, event: Event) -> Iterator[None]:
        """Note that a question is being answered."""
        with self._changed:
            self._answering[_session(event)] += 1
        try:
            yield
        finally:
            with self._changed:
                self._answering[_session(event)] -= 1
                if not self._answering[_session(event)]:
                    del self._answering[_session(event)]
                self._changed.notify_all()

    def wait_for_others(self, event: Event, timeout: float) -> None:
        """Wait until the other questions of a prompt's session are answered."""
        with self._changed:
            self._changed.wait_for(lambda: self._answering[_session(event)] <= 1, timeout)

    def add_answer(self, event: Event, context: str) -> None:
        with self._changed:
            if context:
                key = _session(event)
                _put(self._answers, key, {**self._answers.get(key, {}), event.id: context})

    def confirm(self, event_id: str) -> None:
        """Forget the answer to an event: its hook has received it."""
        with self._changed:
            for key, answers in self._answers.items():
                if answers.pop(event_id, None) is not None:
                    if not answers:
                        del self._answers[key]
                    return

    def pop_answers(self, event: Event) -> list[str]:
        """Return and forget what a prompt's session has not received."""
        with self._changed:
            found = self._answers.pop(_session(event), {}) if event.kind is EventKind.PROMPT else {}
            return list(found.values())


def _session(event: Event) -> tuple[str, str]:
    return event.agent, event.session


def _put(kept: OrderedDict[_Key, _Value], key: _Key, value: _Value) -> None:
    kept[key] = value
    if len(kept) > _SESSIONS:
        kept.popitem(last=False)


class EventProcessor:
    """Store events and answer questions with the memory of this user, which is opened at its first use."""

    def __init__(self, brain: Brain | None = None) -> None:
        self.outage = Outage()
        self.wants_sharing = ThreadEvent()
        """Set when there is a reason to sync before the next minute."""
        self.wants_draining = ThreadEvent()
        """Set when a question waits for events in the spool."""
        self._stored = Condition()
        self._pending = _PendingAnswers()
        self._memory = None if brain is None else _Memory(brain)
        self._opening = Lock()
        self._turn = Lock()
        self._trouble = ""

    def _open(self) -> _Memory:
        with self._opening:
            if self._memory is None:
                self._memory = _Memory(Brain(privacy="default"))
            return self._memory

    def _open_unless_failing(self) -> _Memory | None:
        """The memory; None while it cannot be opened, so that nobody waits for the next attempt."""
        return None if self._memory is None and self.outage.is_active else self._open()

    def drain(self, most: int) -> int:
        """Store waiting events, oldest first; return how many. Does nothing during the pause of an outage. A file is
        removed once its event is in the memory."""
        with self._turn:
            if not self.outage.is_due:
                return 0
            done, last = 0, None
            try:
                capture = self._open().capture
                for path in spool.waiting()[:most]:
                    event = _take_in(path, capture)
                    if event is not None:
                        done, last = done + 1, event
                        self._pending.add_start(event)
                    with self._stored:
                        self._stored.notify_all()
                    if event is not None:
                        self._note_repository(event)
            except Exception as error:  # whatever it is: no event is lost by it, and none overtakes another
                if self.outage.record_failure(error, progress=done > 0):
                    note(f"daemon: events wait: {_headline(error)}")
            else:
                if self.outage.over():
                    note("daemon: events are taken in again")
            if last is not None:
                _record_capture(last)
            return done

    def is_stuck(self) -> bool:
        """Whether events wait that cannot be stored now."""
        try:
            return self.outage.is_active and bool(spool.waiting())
        except OSError:
            return True  # nobody knows what waits

    def context(self, event: Event) -> str:
        """Return the context for an event, after what its session has missed; empty if there is none, or while the
        memory cannot be opened."""
        if event.source == SELF_TEST:
            return self._self_test()
        self._note_repository(event)
        memory = self._open_unless_failing()
        if memory is None:
            return ""
        if event.kind is EventKind.SESSION_START and not self._pending.claim(event):
            return ""
        waiting = self._catch_up(event)
        missed = ""
        if event.kind is EventKind.PROMPT:
            self._pending.wait_for_others(event, _FOR_OTHERS)
            start = self._pending.start_of(event) or _start_among(waiting, event)
            if start is not None and self._pending.claim(start):
                missed = memory.briefing.context(start)
        found = memory.briefing.context(event)
        return "\n\n".join(filter(None, (*self._pending.pop_answers(event), missed, found)))

    def _catch_up(self, event: Event) -> list[Path]:
        """Wait until the events before this one are stored: the session before it may have ended just now, and what
        failed may have been fixed. After a moment, or while the store fails, answer with what is known. Return the
        files of those that still wait."""
        earlier = spool.before(event, _CAUGHT_UP_WITH)
        if earlier and not self.outage.is_active:
            self.wants_draining.set()
            with self._stored:
                self._stored.wait_for(lambda: not any(path.exists() for path in earlier), _CATCHING_UP)
        return [path for path in earlier if path.exists()]

    def _self_test(self) -> str:
        """Answer a self-test of `rmem status`: the memory is open, or why it cannot be opened."""
        try:
            self._open()
        except Exception as error:
            return _headline(error)
        return SELF_TEST_ANSWER

    def warm_up(self) -> None:
        """Load what a recall needs: the first one takes longer than a hook waits."""
        memory = self._open_unless_failing()
        if memory is not None:
            memory.brain.recall("warm up", 1, touch=False)

    def answer(self, event: Event) -> str:
        """Return the context for the question of a hook. The next prompt gets it too, unless the hook confirms that it
        received it: it may have stopped waiting."""
        with self._pending.answering(event):
            context = self.context(event)
            if event.source != SELF_TEST:
                self._pending.add_answer(event, context)
        return context

    def confirm(self, event_id: str) -> None:
        """Note that a hook received the answer to its event."""
        self._pending.confirm(event_id)

    def _note_repository(self, event: Event) -> None:
        """Record that this user has the repository of an event, so that sync pulls its memories."""
        found = repository(event.cwd) if event.cwd else None
        try:
            if found is not None and known_repositories.note_repository(found.id):
                self.wants_sharing.set()
        except OSError as error:
            note(f"daemon: that there is a repository {found} was not recorded: {_headline(error)}")

    def share(self) -> None:
        """Sync with the team's server, if there is a login. The same error is logged once, not every minute."""
        from .login import login
        from .sync import sync

        try:
            found = login()
            memory = self._open_unless_failing() if found is not None else None
            if found is not None and memory is not None:
                sync(memory.brain, *found, attempts=1)  # the next sync is the next attempt
            self._trouble = ""
        except Exception as error:  # of whatever kind: the next sync may succeed
            if str(error) != self._trouble:
                self._trouble = str(error)
                note(f"daemon: not shared: {_headline(error)}")

    def close(self) -> None:
        if self._memory is not None:
            self._memory.brain.close()


def _start_among(paths: Iterable[Path], prompt: Event) -> Event | None:
    """Return the start of a prompt's session, if it still waits in the spool."""
    for path in paths:
        try:
            event = spool.read(path)
        except ValueError:
            continue  # `drain` sets it aside
        if event is not None and event.kind is EventKind.SESSION_START and _session(event) == _session(prompt):
            return event
    return None


def _take_in(path: Path, capture: Capture) -> Event | None:
    """Store one event and remove its file; None if the file was gone or is set aside."""
    for attempt in range(_ATTEMPTS):
        try:
            event = spool.read(path)
            if event is not None and event.source == SELF_TEST:
                path.unlink(missing_ok=True)
                return None
            if event is not None:
                capture.take(event)
                path.unlink(missing_ok=True)
            return event
        except VectorError:
            raise  # an event has no vectors: the embedder is wrong
        except _UNUSABLE as error:
            if attempt + 1 == _ATTEMPTS:
                spool.set_aside(path, f"{_headline(error)}\n\n{''.join(traceback.format_exception(error))}")
                note(f"daemon: {path.name} cannot be taken in and was set aside: {_headline(error)}")
    return None


def _headline(error: Exception) -> str:
    """Return an error as one line: its message if it is ours, else with its type."""
    message = " ".join(str(error).split())
    return message if isinstance(error, RemanenceError) else f"{type(error).__name__}: {message}"


def _record_capture(event: Event) -> None:
    """Record the last capture for `rmem status`. Best effort: the event is stored already."""
    record = {"time": time.time(), "agent": event.agent, "kind": event.kind, "cwd": event.cwd}
    try:
        replace_file(paths.last_capture(), json.dumps(record).encode())
    except OSError as error:
        note(f"daemon: the last capture was not recorded: {_headline(error)}")
