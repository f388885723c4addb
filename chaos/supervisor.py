"""The run on one store: rounds of workers and faults, after each of which everything is compared with the model."""

from __future__ import annotations

import mmap
import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from . import inspection, plan, power
from .clients import Setting
from .commands import COMMANDS, TIMEOUT, run_command
from .faults import KINDS, Control
from .journal import FOREVER, Journal, Operation, has_ended, read_journal
from .model import Model, StoredMemory, Violation, Window
from .plan import Fault
from .processes import ChildError, call_in_process, fork, is_alive, kill, reap
from .worker import Known, Task, Worker

_AFTER_DEATH = {"postgres": 2_000_000_000}  # nanoseconds that a server may still work for a dead client
_AFTER_CRASH = 5_000_000_000  # nanoseconds in which clients may still fail after a crash of the server
_MAX_COMMANDS = 2  # at a time
_MAX_MEMORIES = 1200  # beyond which most are forgotten between two rounds
_SIGNALS = {"interrupt": signal.SIGUSR1, "fork": signal.SIGHUP, "stop": signal.SIGSTOP}


class Options(NamedTuple):
    """The options of a run."""

    seconds: float
    processes: int
    threads: int
    seed: int
    faults: list[str]
    rounds: int | None  # instead of seconds
    round_seconds: float
    pace: float
    cuts: int


@dataclass
class Run:
    """Rounds on one store until the time is up."""

    options: Options
    setting: Setting
    folder: Path
    control: Control | None
    crash_server: Callable[[float], None]
    progress: Callable[[str], None]
    counts: Counter[str] = field(default_factory=Counter)
    violations: list[tuple[int, Violation]] = field(default_factory=list)  # with their rounds
    memories: list[StoredMemory] = field(default_factory=list)  # after the last round
    over: bool = False
    ops: memoryview = field(default_factory=lambda: memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("Q"))

    def execute(self) -> None:
        options, number = self.options, 0
        end = time.monotonic() + options.seconds - options.round_seconds / 2
        while not self.over and (number < options.rounds if options.rounds else not number or time.monotonic() < end):
            if not self.memories:
                self.memories, _ = call_in_process(self._create, self.folder / "create", TIMEOUT)
            elif len(self.memories) > _MAX_MEMORIES:
                self.memories, _ = call_in_process(self._thin_out, self.folder / "thin-out", TIMEOUT)
            Round(self, number).execute()
            number += 1
        self.counts["rounds"] = number

    def _create(self) -> Any:
        """Create the store with the memories that are never forgotten."""
        client = self.setting.open()
        for word in plan.ever_words():
            client.remember(plan.EVER, {word: "vessel"})
        client.close()
        return inspection.inspect_store(self.setting, (), 0)

    def _thin_out(self) -> Any:
        """Forget most of what killed workers have left, or each round would take longer than the one before."""
        client = self.setting.open()
        for seen in self.memories[: -_MAX_MEMORIES // 4]:
            if seen.agent != plan.EVER:
                client.forget(seen.id, seen.word, seen.agent)
        client.close()
        return inspection.inspect_store(self.setting, (), 0)


class Round:
    """One round: start workers, inject faults, stop, compare."""

    def __init__(self, run: Run, number: int) -> None:
        self._run, self._number = run, number
        self._theme = plan.theme_of(run.setting.kind, number, run.options.faults)
        self._folder = run.folder / f"round-{number:03d}"
        self._folder.mkdir()
        self._model = Model.of(run.memories, moves_by_itself=run.setting.kind == "redis")
        self._pids: list[int] = []  # by slot
        self._incarnations: Counter[int] = Counter()
        self._commands: dict[int, str] = {}  # pid → name
        self._deaths: dict[str, int] = {}
        self._stopped: dict[int, float] = {}  # slot → until when
        self._excuses: list[Window] = []
        self._disk_until = FOREVER
        self._known: dict[str, dict[str, Known]] = {}
        for seen in run.memories:
            self._known.setdefault(seen.agent, {})[seen.word] = Known(seen.id, dict(seen.tags), seen.actor)

    def execute(self) -> None:
        control = self._run.control if self._theme == "power" else None
        if control is not None:
            self._start_recording(control)
        try:
            self._pids = [self._start(slot) for slot in range(self._run.options.processes)]
            self._inject_until(time.monotonic() + self._run.options.round_seconds)
            self._stop()
        except BaseException:
            for pid in (*self._pids, *self._commands):
                kill(pid)
            raise
        operations = self._operations()
        self._model.read(operations)
        if control is not None:
            self._cut_power(control)
        self._compare(operations)
        self._report(operations)

    def _inject_until(self, end: float) -> None:
        run = self._run
        pace = run.options.pace * run.options.processes
        events = plan.faults(run.options.seed, self._number, self._theme, run.options.faults, pace)
        fault = next(events, None)
        due = time.monotonic() + (fault.wait if fault else 0)
        while (now := time.monotonic()) < end:
            if fault is not None and now >= due:
                self._inject(fault)
                fault = next(events)
                due = now + fault.wait
            self._supervise(now)
            done = run.counts["operations"] + sum(run.ops)
            run.progress(
                f"{run.setting.kind}, round {self._number} ({self._theme}): {done:,} operations, "
                f"{run.counts['kill']:,} kills, {len(run.violations):,} violations"
            )
            time.sleep(0.01)

    # Processes

    def _start(self, slot: int) -> int:
        """Start the next incarnation of a worker; return its pid. Only the first knows memories of earlier rounds."""
        run, incarnation = self._run, self._incarnations[slot]
        known = {plan.EVER: self._known[plan.EVER]} if incarnation else self._known
        who = self._theme, self._number, slot, incarnation
        task = Task(run.setting, self._folder, run.options.seed, *who, run.options.threads, known, run.ops)
        self._incarnations[slot] += 1
        return fork(self._folder / task.name, lambda: Worker(task).run())

    def _name(self, slot: int) -> str:
        return f"worker-{slot}-{self._incarnations[slot] - 1}"

    def _supervise(self, now: float) -> None:
        """Continue stopped workers, end faults of the disk, replace dead workers, reap commands."""
        for slot in [slot for slot, until in self._stopped.items() if now >= until]:
            kill(self._pids[slot], signal.SIGCONT)
            del self._stopped[slot]
        if now >= self._disk_until:
            self._end_disk_faults()
        for slot, pid in enumerate(self._pids):
            if reap(pid) is not None:
                self._violate("died", f"{self._name(slot)} ended by itself", self._log(self._name(slot)))
                self._replace(slot)
        for pid in list(self._commands):
            if (status := reap(pid)) is not None:
                self._check_status(self._commands.pop(pid), status)

    def _replace(self, slot: int) -> None:
        self._deaths[self._name(slot)] = time.monotonic_ns() + _AFTER_DEATH.get(self._run.setting.kind, 0)
        self._stopped.pop(slot, None)
        self._pids[slot] = self._start(slot)

    def _check_status(self, name: str, status: int) -> None:
        if status:
            self._violate("died", f"{name} ended badly", self._log(name))

    def _log(self, name: str, kind: str = "log") -> str:
        path = self._folder / f"{name.partition('-fork')[0]}.{kind}"
        return path.read_text(errors="replace")[-3000:] if path.exists() else ""

    def _violate(self, kind: str, message: str, lines: str = "") -> None:
        self._model.violations.append(Violation(kind, message, lines))

    def _stop(self) -> None:
        """Let all processes finish; kill those that do not, and report them."""
        self._end_disk_faults()
        for slot, pid in enumerate(self._pids):
            kill(pid, signal.SIGCONT)
            if slot == 0 and "fork" in self._run.options.faults:  # its child outlives all others
                self._inject(Fault(0, "fork", 0, 0))
            kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + TIMEOUT
        for pid, name in {**{pid: self._name(slot) for slot, pid in enumerate(self._pids)}, **self._commands}.items():
            status = reap(pid, deadline - time.monotonic())
            if status is None:
                self._kill_hung(pid, name)
                os.waitpid(pid, 0)
            else:
                self._check_status(name, status)
        for journal in self._folder.glob("*-fork-*.jsonl"):
            pid = int(journal.stem.rpartition("-")[2])
            while not has_ended(journal) and is_alive(pid) and time.monotonic() < deadline:
                time.sleep(0.005)
            if not has_ended(journal) and is_alive(pid):
                self._kill_hung(pid, journal.stem)
            else:
                self._check_status(journal.stem, not has_ended(journal))

    def _kill_hung(self, pid: int, name: str) -> None:
        kill(pid, signal.SIGUSR2)  # dumps the stacks of its threads
        time.sleep(0.5)
        kill(pid)
        self._deaths[name] = time.monotonic_ns()
        self._violate("hung", f"{name} did not end within {TIMEOUT:.0f} s", self._log(name, "stacks"))

    # Faults

    def _inject(self, fault: Fault) -> None:
        run, slot = self._run, int(fault.which * len(self._pids))
        if fault.kind in COMMANDS:
            if len(self._commands) >= _MAX_COMMANDS:
                return
            name = f"{fault.kind}-{run.counts[fault.kind]}"
            journal = Journal(self._folder / f"{name}.jsonl")
            command_pid = fork(self._folder / name, lambda: run_command(fault, run.setting.address, journal))
            self._commands[command_pid] = name
        elif fault.kind == "kill":
            kill(self._pids[slot])
            os.waitpid(self._pids[slot], 0)
            self._replace(slot)
        elif fault.kind == "disk":
            if run.control is None or self._disk_until < FOREVER:
                return
            self._start_disk_faults(run.control, fault)
        elif fault.kind == "server":
            start = time.monotonic_ns()
            run.crash_server(fault.how)
            if run.setting.kind == "postgres":  # without Redis the archive answers
                self._excuses.append(Window(start, time.monotonic_ns() + _AFTER_CRASH))
        else:
            kill(self._pids[slot], _SIGNALS[fault.kind])
            if fault.kind == "stop":
                self._stopped[slot] = time.monotonic() + 0.1 + 1.4 * fault.how
        run.counts[fault.kind] += 1

    def _start_disk_faults(self, control: Control, fault: Fault) -> None:
        rng = random.Random(fault.how)
        slots = rng.sample(range(len(self._pids)), rng.randint(1, len(self._pids)))
        self._excuses += [Window(time.monotonic_ns(), FOREVER, self._name(slot)) for slot in slots]
        self._disk_until = time.monotonic() + 0.2 + rng.random()
        kinds, rate = rng.sample(KINDS, rng.randint(1, 3)), rng.choice((20, 100, 500))
        control.fail(kinds, rate, int(fault.which * 2**32), [self._pids[slot] for slot in slots])

    def _end_disk_faults(self) -> None:
        if self._run.control is not None and self._disk_until < FOREVER:
            self._run.control.fail((), 0, 0, ())
            self._disk_until, now = FOREVER, time.monotonic_ns()
            self._excuses = [window._replace(end=now) if window.end == FOREVER else window for window in self._excuses]

    # Power cuts

    def _start_recording(self, control: Control) -> None:
        """Copy the files of the store, which no process has open, and start the log of writes."""
        for suffix in ("", "-wal"):
            if (part := Path(f"{self._run.setting.address}{suffix}")).exists():
                shutil.copy(part, self._folder / f"base.db{suffix}")
        control.log.write_bytes(b"")
        control.record(True)

    def _cut_power(self, control: Control) -> None:
        control.record(False)
        options, model = self._run.options, self._model
        rng = random.Random(f"{options.seed}/{self._number}/power")
        for moment, store in power.cuts(self._folder / "base.db", control.log, self._folder, options.cuts, rng):
            self._run.counts["power cuts"] += 1
            before = len(model.violations)
            try:
                found, problems = call_in_process(partial(inspection.read_copy, str(store)), store, TIMEOUT)
            except ChildError as error:
                self._violate("power", f"{store.name} cannot be read: {error.last}", str(error))
                continue
            lines = (f"{store} holds {len(found)} memories",)
            model.compare(Operation(store.name, "power", {"agent": None}, moment, moment, result=found, lines=lines))
            if problems:
                self._violate("power", f"doctor of {store.name}: {'; '.join(problems)}")
            if len(model.violations) == before:
                for path in self._folder.glob(f"{store.name}*"):
                    path.unlink()

    # Comparing

    def _operations(self) -> list[Operation]:
        journals = [path for path in self._folder.glob("*.jsonl") if not path.name.endswith(".out.jsonl")]
        now = time.monotonic_ns()
        return [
            operation for path in sorted(journals) for operation in read_journal(path, self._deaths.get(path.stem, now))
        ]

    def _compare(self, operations: list[Operation]) -> None:
        run, model = self._run, self._model
        model.check(operations, self._excuses)
        gone = model.gone()
        try:
            inspected = call_in_process(
                lambda: inspection.inspect_store(run.setting, gone, run.options.seed), self._folder / "look", TIMEOUT
            )
        except ChildError as error:
            self._violate("unopenable", f"a fresh process cannot read the store: {error.last}", str(error))
            for path in run.folder.glob("store.db*"):  # the next round begins with an empty one
                shutil.move(path, self._folder / path.name)
            run.memories, run.over = [], run.setting.kind == "postgres"
        else:
            run.memories, problems = inspected
            model.check_final_state(run.memories, operations)
            model.violations += [Violation(kind, message) for kind, message in problems]

    def _report(self, operations: list[Operation]) -> None:
        run, found = self._run, self._model.violations
        run.ops[:] = memoryview(bytes(mmap.PAGESIZE)).cast("Q")
        run.counts.update(
            {
                "operations": len(operations),
                "acknowledged": sum(operation.acknowledged for operation in operations),
                "failed": sum(operation.error is not None for operation in operations),
                "unanswered": sum(not operation.acknowledged and operation.error is None for operation in operations),
                "reads checked": self._model.reads,
            }
        )
        run.counts["memories"] = len(run.memories)
        run.violations += [(self._number, violation) for violation in found]
        if not found:
            shutil.rmtree(self._folder)
        for path in run.folder.glob("store.db*") if found else ():
            shutil.copy(path, self._folder)
