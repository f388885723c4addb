"""Processes that the fault tests start, kill and starve: `python fault_children.py TASK ARGUMENTS…`.

Each prints one JSON line for each thing that was acknowledged to it, at once, so that the test knows what may
not be lost."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__)


# For both


def word(*numbers: object) -> str:
    """A word that no other numbers give and that has no parts: digits as consonants."""
    return "q" + "z".join("".join("bcdfghjklm"[int(digit)] for digit in str(number)) for number in numbers)


# For the tests


def start(task: str, *arguments: object, **options: Any) -> subprocess.Popen[str]:
    """A child that runs `task`; its words come through stdout."""
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, **options}
    return subprocess.Popen([sys.executable, str(HERE), task, *map(str, arguments)], **options)


def run(task: str, *arguments: object) -> list[Any]:
    """What a child said that ran to its end, which must be a good one."""
    child = subprocess.run(
        [sys.executable, str(HERE), task, *map(str, arguments)], capture_output=True, text=True, timeout=120
    )
    assert child.returncode == 0, child.stderr
    return [json.loads(line) for line in child.stdout.splitlines()]


def said(stdout: Path) -> list[Any]:
    """The whole lines that a child wrote before it died."""
    lines = stdout.read_text().split("\n")[:-1]
    return [json.loads(line) for line in lines]


def kill_after(child: subprocess.Popen[str], stdout: Path, lines: int, delay: float) -> None:
    """Kill -9 once the child has said `lines` lines and `delay` seconds have passed."""
    patience = time.monotonic() + 60
    while stdout.read_bytes().count(b"\n") < lines:
        assert child.poll() is None, "the child ended by itself"
        assert time.monotonic() < patience, "the child said too little"
        time.sleep(0.002)
    time.sleep(delay)
    child.kill()
    child.wait()


# In the children


def say(*words: object) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


def write_until_killed(path: str, round_: str) -> None:
    """One memory after another, each announced once it is acknowledged."""
    from rmem import Brain

    brain = Brain(path)
    for number in range(1_000_000):
        token = word(round_, number)
        memory = brain.remember(f"{token} was written by a process that will be killed", session=f"s{number % 7}")
        say(memory.memory_id, token)


def churn_until_killed(path: str, round_: str) -> None:
    """Writes, lists, changes and removals with segments made and merged all the time. Each act is announced
    before and after: `["will", …]` and `["did", …]`."""
    from rmem.stores.sql import cache
    from rmem.stores.sql.sqlite import SqliteRecordStore
    from rmem.testing.contract import clustered_vectors, example

    cache.SETTLE_FROM = cache.SETTLE_BULK = 8
    store = SqliteRecordStore(path)
    rng = random.Random(round_)
    vectors = clustered_vectors(64, 16, seed=int(round_))
    mine: list[str] = []
    for number in range(1_000_000):
        act = rng.choice(["put", "put", "list", "change", "forget"]) if mine else "put"
        if act in ("put", "list"):
            size = 1 if act == "put" else rng.randint(2, 6)
            ids = [f"r{round_}-{number}-{part}" for part in range(size)]
            words = {key: word(round_, number, part) for part, key in enumerate(ids)}
            say("will", "put", words)
            store.put(
                [example(f"{words[key]} here", memory_id=key, session="s", vector=vectors[number % 64]) for key in ids]
            )
            say("did", "put", words)
            mine += ids
        elif act == "change":
            key, token = rng.choice(mine), word(round_, number)
            say("will", "put", {key: token})

            def edit(memory, token=token):
                memory.text = f"{token} here"
                memory.contents = {"text": memory.text}
                return memory

            store.change(key, edit)
            say("did", "put", {key: token})
        else:
            key = mine.pop(rng.randrange(len(mine)))
            say("will", "forget", key)
            store.forget(key)
            say("did", "forget", key)


def write_with_threads(path: str, name: str, threads: str, each: str) -> None:
    """Several threads at once; a shared agent, so that steps and ids are contested."""
    from rmem import Brain

    brain = Brain(path)
    lock, failures = threading.Lock(), []

    def work(thread: int) -> None:
        try:
            for number in range(int(each)):
                token = word(name, thread, number)
                memory = brain.remember(f"{token} written beside others", agent="shared")
                seen = [hit.memory.memory_id for hit in brain.recall(token, k=1, mode="lexical")]
                with lock:
                    say(memory.memory_id, memory.step_number, token, seen == [memory.memory_id])
        except BaseException as error:
            failures.append(error)
            raise

    workers = [threading.Thread(target=work, args=(thread,)) for thread in range(int(threads))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    brain.close()
    sys.exit(1 if failures else 0)


def obey(path: str) -> None:
    """Remember or recall what stdin asks for, one line at a time."""
    from rmem import Brain

    brain = Brain(path)
    say("ready")
    for line in sys.stdin:
        order, text = line.rstrip("\n").split(" ", 1)
        if order == "remember":
            say(brain.remember(text).memory_id)
        elif order == "forget":
            say(brain.forget(text))
        else:
            say([hit.memory.memory_id for hit in brain.recall(text, k=3, mode="lexical")])


def open_at_once(*paths: str) -> None:
    """Open each file when stdin says so, and write one memory into it."""
    import alembic.command
    import sqlalchemy  # loaded before, so that all children reach the file at the same moment

    from rmem.stores.sql.sqlite import SqliteRecordStore
    from rmem.testing.contract import example

    assert alembic.command
    assert sqlalchemy
    for path in paths:
        say("ready")
        sys.stdin.readline()
        with SqliteRecordStore(path) as store:
            say(store.put([example("opened at once")])[0].memory_id)


def write_under_a_file_limit(path: str, limit: str) -> None:
    """Write until no file may grow further, then say which error came and what is still there."""
    import resource

    from rmem import Brain
    from rmem.errors import StoreError

    brain = Brain(path)
    kept = [brain.remember(f"before the limit {number}").memory_id for number in range(5)]
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), resource.RLIM_INFINITY))
    try:
        for number in range(10_000):
            kept.append(brain.remember(f"filling up {number} " + "lorem ipsum " * 200).memory_id)
        say("no error", None, kept)
    except StoreError as error:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        found = [memory is not None for memory in brain.store.get_many(kept)]
        after = brain.remember("there is room again").memory_id
        say(type(error).__name__, str(error), kept, all(found), brain.get(after) is not None)


def open_under_a_file_limit(path: str, limit: str) -> None:
    """Open a store where not even the file that its readers share can be made."""
    import resource

    from rmem import Brain
    from rmem.errors import StoreError

    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), resource.RLIM_INFINITY))
    try:
        Brain(path).remember("no room")
    except StoreError as error:
        say(type(error).__name__, str(error))


def fill_the_disk(path: str) -> None:
    """The same on a file system that is really full; ends with an orderly close."""
    from rmem import Brain
    from rmem.errors import StoreError

    brain = Brain(path)
    kept = [brain.remember(f"before it was full {number}").memory_id for number in range(5)]
    try:
        for number in range(10_000):
            kept.append(brain.remember(f"filling up {number} " + "lorem ipsum " * 200).memory_id)
        say("no error", None, kept)
    except StoreError as error:
        found = [memory is not None for memory in brain.store.get_many(kept)]
        hits = brain.recall("before it was full", k=5, mode="lexical")
        brain.close()
        from rmem.doctor import examine

        unsound = [finding.detail for finding in examine(path) if not finding.ok]
        say(type(error).__name__, str(error), kept, all(found), len(hits), unsound)


def use_without_permission(path: str, warm: str) -> None:
    """As an unprivileged user: read and write a store that this user may only read."""
    from rmem import Brain
    from rmem.errors import RemanenceError

    with Brain(warm) as other:  # everything that is loaded late, while the interpreter's folder can be read
        other.remember("warm up")
        other.recall("warm up two weeks ago")
    if os.geteuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    for act in ("open", "recall", "remember", "forget", "close"):
        try:
            if act == "open":
                brain = Brain(path)
                say(act, "done")
            elif act == "recall":
                say(act, "done", [hit.text for hit in brain.recall("lighthouse", k=1)])
            elif act == "remember":
                say(act, "done", brain.remember("not allowed").memory_id)
            elif act == "forget":
                say(act, "done", brain.forget("m1"))
            else:
                brain.close()
                say(act, "done")
        except RemanenceError as error:
            say(act, type(error).__name__, str(error))
            if act == "open":
                return


def new_embedding(texts: list[str]) -> list[list[float]]:
    """Slow on purpose: a re-embedding that can be killed half-way."""
    time.sleep(0.02)
    return [[float(len(text) % 7 + 1), float(text.count("a") + 1), *[1.0] * 10] for text in texts]


def reindex_slowly(path: str) -> None:
    from rmem import upkeep
    from rmem.embed.function import FunctionEmbedder
    from rmem.stores.sql import reembed

    reembed._BATCH = 16
    embedder = FunctionEmbedder(new_embedding, name="slow", dimension=12)
    done = upkeep.reindex(path, embedder, lambda done, total: say(done, total))
    say("finished", done["embedded"])


def write_until_told(path: str) -> None:
    """Memories in pairs, always both in one transaction, until stdin closes."""
    from rmem import Brain

    brain = Brain(path)
    stop = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
    number = 0
    while not stop.is_set():
        kept = brain.remember_many([{"text": f"left {number}", "id": f"l{number}"}, {"text": f"right {number}"}])
        say([memory.memory_id for memory in kept])
        number += 1
    brain.close()


def close_under_writers(path: str) -> None:
    """Close a store while threads write to it; say which errors they met."""
    from rmem.stores.sql.sqlite import SqliteRecordStore
    from rmem.testing.contract import example

    store = SqliteRecordStore(path, durability="normal")
    kept: list[str] = []
    met: set[str] = set()

    def work(thread: int) -> None:
        for number in range(100_000):
            try:
                kept.append(store.put([example(f"t{thread} n{number}", agent_id=f"a{thread}")])[0].memory_id)
                store.match(f"n{number}")
            except BaseException as error:
                met.add(type(error).__name__)
                return

    workers = [threading.Thread(target=work, args=(thread,)) for thread in range(4)]
    for worker in workers:
        worker.start()
    while len(kept) < 20:
        time.sleep(0.001)
    store.close()
    for worker in workers:
        worker.join()
    say(kept, sorted(met))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
