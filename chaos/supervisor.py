"""The run on one store: rounds of workers and faults, and after each a comparison of everything with the model.

The supervisor opens no store itself and has no threads: every process that uses a store is forked from it, which
takes milliseconds where a new interpreter would take half a second."""

from __future__ import annotations

import mmap
import os
import pickle
import random
import shutil
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from . import examine, plan, power
from .faces import Setting
from .faults import KINDS, Control
from .helpers import COMMANDS, PATIENCE, help_with
from .journal import FOREVER, Journal, Operation, has_ended, read_journal
from .model import Model, Seen, Violation, Window
from .plan import Fault
from .worker import SIGNALS, Known, Task, Worker

_SLACK = {"postgres": 2_000_000_000}  # nanoseconds that a server may still work for a client that has died
_HELPERS = 2  # commands at a time
_BACK_AGAIN = 5_000_000_000  # nanoseconds after a crash of the server in which clients may still fail


class Options(NamedTuple):
    """What a run was asked for."""

    seconds: float
    processes: int
    threads: int
    seed: int
    faults: tuple[str, ...]
    round_seconds: float
    pace: float
    cuts: int


@dataclass
class Result:
    """What came of it."""

    counts: Counter[str] = field(default_factory=Counter)
    violations: list[tuple[int, Violation]] = field(default_factory=list)  # with their rounds


class Run:
    """Rounds on one store, until the time is over."""

    def __init__(
        self,
        options: Options,
        setting: Setting,
        folder: Path,
        control: Control | None,
        crash_server: Callable[[float], None],
        progress: Callable[[str], None],
    ) -> None:
        self.options, self.setting, self.folder, self.control = options, setting, folder, control
        self.crash_server, self.progress = crash_server, progress
        self.faults = plan.faults_for(setting.kind, options.faults)
        self.memories: list[Seen] = []
        self.over = False
        self.result = Result()
        self.ops = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("Q")  # shared with the workers

    def go(self) -> Result:
        end, number = time.monotonic() + self.options.seconds, 0
        while number == 0 or (not self.over and time.monotonic() + self.options.round_seconds / 2 < end):
            if not self.memories:
                self._begin()
            Round(self, number, self.options.round_seconds).go()
            number += 1
        self.result.counts["rounds"] = number
        return self.result

    def _begin(self) -> None:
        """Create the store with the memories that are always there."""

        def work() -> Any:
            face = self.setting.open()
            for word in plan.ever_words():
                face.remember(plan.EVER, {word: "vessel"})
            face.close()
            return examine.look(self.setting, (), 0)

        self.memories, _ = answer_of(work, self.folder / "begin")


class Round:
    """Start workers, inject faults, stop, compare."""

    def __init__(self, run: Run, number: int, seconds: float) -> None:
        self._run, self._number, self._seconds = run, number, seconds
        self._theme = plan.theme_of(run.setting.kind, number, run.faults)
        self._folder = run.folder / f"round-{number:03d}"
        self._folder.mkdir()
        self._counts = run.result.counts
        self._violations: list[Violation] = []
        self._pids: dict[int, int] = {}  # of each slot
        self._incarnations: Counter[int] = Counter()
        self._helpers: dict[int, str] = {}
        self._deaths: dict[str, int] = {}
        self._asleep: dict[int, float] = {}  # slot → until when
        self._excuses: list[Window] = []
        self._disk_until: float | None = None
        self._known: dict[str, dict[str, Known]] = {}
        for seen in run.memories:
            self._known.setdefault(seen.agent, {})[seen.word] = Known(seen.id, dict(seen.tags), seen.actor)

    def go(self) -> None:
        run, recording = self._run, self._theme == "power" and self._run.control is not None
        if recording:
            self._start_recording()
        run.ops[:] = memoryview(bytes(mmap.PAGESIZE)).cast("Q")
        try:
            for slot in range(run.options.processes):
                self._start(slot)
            self._inject_until(time.monotonic() + self._seconds)
            self._stop()
        except BaseException:
            for pid in (*self._pids.values(), *self._helpers):
                os.kill(pid, signal.SIGKILL)
            raise
        operations = self._operations()
        model = Model.of(run.memories, moves_by_itself=run.setting.kind == "redis")
        model.read(operations)
        if recording:
            self._cut_power(model)
        self._compare(model, operations)
        self._report(model, operations)

    def _inject_until(self, end: float) -> None:
        run = self._run
        events = plan.faults(run.options.seed, self._number, self._theme, run.faults, run.options.pace * run.options.processes)
        fault, now = next(events, None), time.monotonic()
        due = now + (fault.wait if fault else 0)
        while (now := time.monotonic()) < end:
            if fault is not None and now >= due:
                self._inject(fault)
                fault = next(events)
                due = now + fault.wait
            self._look_after(now)
            done = self._counts["operations"] + sum(run.ops)
            run.progress(
                f"{run.setting.kind}, round {self._number} ({self._theme}): {done:,} operations, "
                f"{self._counts['kill']:,} kills, {len(run.result.violations):,} violations"
            )
            time.sleep(0.01)

    # Processes

    def _start(self, slot: int) -> None:
        """Start the next incarnation of a worker. Only the first knows memories of earlier rounds."""
        run, first = self._run, not self._incarnations[slot]
        known = self._known if first else {plan.EVER: self._known[plan.EVER]}
        task = Task(
            run.setting, self._folder, run.options.seed, self._theme, self._number, slot, self._incarnations[slot],
            run.options.threads, known, run.ops,
        )  # fmt: skip
        self._incarnations[slot] += 1
        self._pids[slot] = fork(self._folder / task.name, lambda: Worker(task).run())

    def _name(self, slot: int) -> str:
        return f"worker-{slot}-{self._incarnations[slot] - 1}"

    def _look_after(self, now: float) -> None:
        """Wake who has slept enough, end faults of the disk, replace who has died."""
        for slot, until in list(self._asleep.items()):
            if now >= until:
                self._signal(slot, signal.SIGCONT)
                del self._asleep[slot]
        if self._disk_until is not None and now >= self._disk_until:
            self._end_disk_faults()
        for slot, pid in self._pids.items():
            if os.waitpid(pid, os.WNOHANG)[0]:
                self._violate("died", f"{self._name(slot)} ended by itself", self._log(self._name(slot)))
                self._bury(slot)
                self._start(slot)
        for pid in list(self._helpers):
            self._reap_helper(pid)

    def _reap_helper(self, pid: int) -> None:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            name = self._helpers.pop(pid)
            if status:
                self._violate("died", f"{name} failed", self._log(name))

    def _bury(self, slot: int) -> None:
        self._deaths[self._name(slot)] = time.monotonic_ns() + _SLACK.get(self._run.setting.kind, 0)
        self._asleep.pop(slot, None)

    def _log(self, name: str) -> str:
        path = self._folder / f"{name}.log"
        return path.read_text(errors="replace")[-3000:] if path.exists() else ""

    def _signal(self, slot: int, number: int) -> None:
        try:
            os.kill(self._pids[slot], number)
        except ProcessLookupError:
            pass  # it has just died, and is replaced at the next look

    def _violate(self, kind: str, message: str, lines: str = "") -> None:
        self._violations.append(Violation(kind, message, lines))

    def _stop(self) -> None:
        """Let everyone finish what they are doing; who does not is killed, and told."""
        self._end_disk_faults()
        for slot in self._pids:
            self._signal(slot, signal.SIGCONT)
            if slot == 0 and "fork" in self._run.faults:  # a child that is still there when all others have left
                self._inject(Fault(0, "fork", 0, 0))
            self._signal(slot, signal.SIGTERM)
        deadline = time.monotonic() + PATIENCE
        waiting = {**{pid: self._name(slot) for slot, pid in self._pids.items()}, **self._helpers}
        while waiting and time.monotonic() < deadline:
            for pid in list(waiting):
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    name = waiting.pop(pid)
                    if status:
                        self._violate("died", f"{name} ended badly", self._log(name))
            time.sleep(0.005)
        for pid, name in waiting.items():
            self._kill_hung(pid, name)
            os.waitpid(pid, 0)
        for journal in self._folder.glob("*-fork-*.jsonl"):
            pid = int(journal.stem.rpartition("-")[2])
            while not has_ended(journal) and is_alive(pid) and time.monotonic() < deadline:
                time.sleep(0.005)
            if not has_ended(journal) and is_alive(pid):
                self._kill_hung(pid, journal.stem)
            elif not has_ended(journal):
                self._violate("died", f"{journal.stem} failed", self._log(journal.stem.partition("-fork")[0]))

    def _kill_hung(self, pid: int, name: str) -> None:
        os.kill(pid, signal.SIGUSR2)  # writes down where its threads are
        time.sleep(0.5)
        os.kill(pid, signal.SIGKILL)
        stacks = self._folder / f"{name.partition('-fork')[0]}.stacks"
        told = stacks.read_text()[-3000:] if stacks.exists() else ""
        self._deaths[name] = time.monotonic_ns()
        self._violate("hung", f"{name} did not end within {PATIENCE:.0f} s", told)

    # Faults

    def _inject(self, fault: Fault) -> None:
        slot = int(fault.which * len(self._pids))
        if fault.kind in COMMANDS:
            if len(self._helpers) >= _HELPERS:
                return
            name = f"{fault.kind}-{self._counts[fault.kind]}"
            journal = Journal(self._folder / f"{name}.jsonl")

            def work() -> None:
                help_with(fault, self._run.setting.address, journal)

            self._helpers[fork(self._folder / name, work)] = name
        elif fault.kind == "kill":
            os.kill(self._pids[slot], signal.SIGKILL)
            os.waitpid(self._pids[slot], 0)
            self._bury(slot)
            self._start(slot)
        elif fault.kind == "stop":
            self._signal(slot, signal.SIGSTOP)
            self._asleep[slot] = time.monotonic() + 0.1 + 1.4 * fault.how
        elif fault.kind == "interrupt":
            self._signal(slot, signal.SIGUSR1)
        elif fault.kind == "fork":
            self._signal(slot, signal.SIGHUP)
        elif fault.kind == "disk":
            self._start_disk_faults(fault)
        elif fault.kind == "server":
            start = time.monotonic_ns()
            self._run.crash_server(fault.how)
            if self._run.setting.kind == "postgres":  # without Redis everything goes on
                self._excuses.append(Window(start, time.monotonic_ns() + _BACK_AGAIN))
        self._counts[fault.kind] += 1

    def _start_disk_faults(self, fault: Fault) -> None:
        if self._run.control is None or self._disk_until is not None:
            return
        rng = random.Random(fault.how)
        slots = rng.sample(list(self._pids), rng.randint(1, len(self._pids)))
        self._excuses += [Window(time.monotonic_ns(), FOREVER, self._name(slot)) for slot in slots]
        self._disk_until = time.monotonic() + 0.2 + rng.random()
        victims = [self._pids[slot] for slot in slots]
        kinds = rng.sample(KINDS, rng.randint(1, 3))
        self._run.control.fail(kinds, rng.choice((20, 100, 500)), int(fault.which * 2**32), victims)

    def _end_disk_faults(self) -> None:
        if self._disk_until is not None and self._run.control is not None:
            self._run.control.fail((), 0, 0, ())
            self._disk_until, now = None, time.monotonic_ns()
            self._excuses = [one._replace(end=now) if one.end == FOREVER else one for one in self._excuses]

    # Power cuts

    @property
    def _base(self) -> Path:
        return self._folder / "base.db"

    def _start_recording(self) -> None:
        """Nobody has the store open: what is in its files now is on the disk."""
        for suffix in ("", "-wal"):
            if (part := Path(f"{self._run.setting.address}{suffix}")).exists():
                shutil.copy(part, f"{self._base}{suffix}")
        assert self._run.control is not None
        self._run.control.log.write_bytes(b"")
        self._run.control.record(True)

    def _cut_power(self, model: Model) -> None:
        assert self._run.control is not None
        self._run.control.record(False)
        rng = random.Random(f"{self._run.options.seed}/{self._number}/power")
        for moment, store in power.cuts(self._base, self._run.control.log, self._folder, self._run.options.cuts, rng):
            self._counts["power cuts"] += 1
            read = Operation(store.name, "power", {"agent": None}, moment, moment, moment, acknowledged=True)
            try:
                found = answer_of(lambda path=str(store): examine.read_copy(path), self._folder / store.name)
            except ChildError as error:
                self._violate("power", f"the store at {store.name} cannot be read: {error.last}", str(error))
                continue
            read.result, problems = found
            read.lines = (f"the store at {store} holds {len(read.result)} memories",)
            before = len(model.violations)
            model.compare(read)
            if problems:
                self._violate("power", f"doctor of {store.name}: {'; '.join(problems)}")
            elif len(model.violations) == before:
                for suffix in ("", "-wal"):
                    Path(f"{store}{suffix}").unlink(missing_ok=True)

    # Comparing

    def _operations(self) -> list[Operation]:
        now = time.monotonic_ns()
        return [
            operation
            for path in sorted(self._folder.glob("*.jsonl"))
            if not path.name.endswith(".out.jsonl")
            for operation in read_journal(path, self._deaths.get(path.stem, now))
        ]

    def _compare(self, model: Model, operations: list[Operation]) -> None:
        run = self._run
        model.check(operations, self._excuses)
        try:
            memories, problems = answer_of(
                lambda: examine.look(run.setting, model.gone(), run.options.seed), self._folder / "look"
            )
        except ChildError as error:
            self._violate("unopenable", f"a fresh process cannot read the store: {error.last}", str(error))
            for path in run.folder.glob("store.db*"):  # the next round begins with an empty one
                shutil.move(path, self._folder / path.name)
            run.memories, run.over = [], run.setting.kind == "postgres"
            return
        model.settle(memories, operations)
        self._violations += [Violation(kind, message) for kind, message in problems]
        run.memories = memories

    def _report(self, model: Model, operations: list[Operation]) -> None:
        counts, run = self._counts, self._run
        counts["operations"] += len(operations)
        counts["acknowledged"] += sum(one.acknowledged for one in operations)
        counts["failed"] += sum(one.error is not None for one in operations)
        counts["unanswered"] += sum(not one.acknowledged and one.error is None for one in operations)
        counts["reads checked"] += model.reads
        counts["memories"] = len(run.memories)
        found = [*self._violations, *model.violations]
        run.result.violations += [(self._number, violation) for violation in found]
        if not found:
            shutil.rmtree(self._folder)


class ChildError(Exception):
    """A process that was to look at a store did not answer."""

    @property
    def last(self) -> str:
        return (str(self).strip().splitlines() or [""])[-1]


def fork(name: Path, work: Callable[[], None]) -> int:
    """Run `work` in a process of its own, whose output goes to a log; its pid. It begins with the signals of workers
    blocked, which would end it before it has handlers for them."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    pid = os.fork()
    if not pid:
        _child(name, work)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    return pid


def _child(name: Path, work: Callable[[], None]) -> NoReturn:
    status = 1
    try:
        log = os.open(f"{name}.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def answer_of(work: Callable[[], Any], name: Path) -> Any:
    """What `work` answers in a process of its own, so that this one never has a store open."""
    answer = Path(f"{name}.answer")
    pid = fork(name, lambda: answer.write_bytes(pickle.dumps(work())) and None)
    deadline = time.monotonic() + PATIENCE
    while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise ChildError(f"no answer within {PATIENCE:.0f} s")
        time.sleep(0.005)
    if ended[1]:
        raise ChildError(Path(f"{name}.log").read_text(errors="replace")[-3000:])
    return pickle.loads(answer.read_bytes())


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
