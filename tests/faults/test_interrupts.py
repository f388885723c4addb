"""Ctrl-C at any moment: the process goes on with what is true now, and threads that were not meant notice nothing."""

from __future__ import annotations

import json
import subprocess
import sys

from rmem import Brain

READS = """
import json, random, signal, sys, time
from rmem import Brain

def interrupt(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
random.seed(7)
stale = interrupted = 0
with Brain(sys.argv[1]) as reader, Brain(sys.argv[1]) as writer:
    for n in range(int(sys.argv[2])):
        writer.remember(f"memory number {n}", id=f"m{n}")
        try:
            signal.setitimer(signal.ITIMER_REAL, random.uniform(0.00005, 0.004))
            for _ in range(100):  # an interrupt within a weak reference's callback is lost
                reader.recall("which memory number", k=3)
        except KeyboardInterrupt as error:
            interrupted += 1
            held = error  # whoever logs it holds on to its frames
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        stale += reader.get(f"m{n}") is None
        stale += len(reader.memories(limit=None)) != n + 1
        stale += f"m{n}" not in {hit.memory.memory_id for hit in reader.recall(str(n), k=n + 1, mode="lexical")}
print(json.dumps([interrupted, stale]))
"""

WRITES = """
import json, random, signal, sys, threading, time
from rmem import Brain

def interrupt(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
random.seed(11)
acknowledged, wrong, interrupted = [], [], 0
stop = threading.Event()
with Brain(sys.argv[1], durability="normal") as brain:
    def write(thread):
        n = 0
        while not stop.is_set():
            text = f"by thread {thread} number {n}"
            try:
                brain.remember(text)
                acknowledged.append(text)
            except BaseException as error:
                wrong.append(f"{type(error).__name__}: {error}")
            n += 1
    threads = [threading.Thread(target=write, args=(thread,)) for thread in range(3)]
    for thread in threads:
        thread.start()
    begun = 0
    until = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < until:
        try:
            signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0002, 0.01))
            for _ in range(100):  # an interrupt within a weak reference's callback is lost
                begun += 1
                brain.remember(f"by main number {begun}")
                acknowledged.append(f"by main number {begun}")
        except KeyboardInterrupt:
            interrupted += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    stop.set()
    for thread in threads:
        thread.join(60)
        if thread.is_alive():
            wrong.append("a thread hangs")
    brain.remember("the last one")
print(json.dumps([interrupted, wrong, acknowledged]))
"""


def run(script, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_recall_that_was_interrupted_does_not_keep_the_process_in_the_past(tmp_path):
    interrupted, stale = run(READS, tmp_path / "memories.db", 120)
    assert interrupted > 80
    assert stale == 0


def test_an_interrupt_of_the_main_thread_fails_no_write_of_another_and_doubles_none(tmp_path):
    path = tmp_path / "memories.db"
    interrupted, wrong, acknowledged = run(WRITES, path, 2)
    assert interrupted > 40
    assert wrong == []
    with Brain(path) as brain:
        texts = [memory.text for memory in brain.memories(limit=None)]
    assert len(texts) == len(set(texts)), "a write was done twice"
    assert set(acknowledged) <= set(texts)
