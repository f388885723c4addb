"""Forked processes: nothing acknowledged is lost, nobody hangs, and what cannot be done is refused in words."""

from __future__ import annotations

import ast
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rmem import Brain
from rmem.doctor import examine
from rmem.errors import StoreForkedError
from rmem.stores.sql.sqlite import SqliteRecordStore

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
PATIENCE = 60


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memories.db"


def in_child(work):
    """Fork, do `work` in the child; its process id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        signal.alarm(PATIENCE)
        work()
        code = 0
    except BaseException as error:
        print(f"child {os.getpid()}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def finished(child):
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def ids_of(path):
    with Brain(path) as brain:
        return {memory.memory_id for memory in brain.memories(limit=None)}


def test_what_a_child_stores_survives_the_parent_that_closes_first(path):
    brain = Brain(path)
    brain.remember("from the parent", id="p")
    closed_r, closed_w = os.pipe()
    written_r, written_w = os.pipe()

    def work():
        for n in range(50):
            brain.remember(f"from the child {n}", id=f"c{n}")
            if n == 10:
                os.write(written_w, b"x")
                assert os.read(closed_r, 1) == b"x"
        assert len(brain.recall("child", k=100, mode="lexical")) == 50
        os.kill(os.getpid(), signal.SIGKILL)  # without closing

    child = in_child(work)
    assert os.read(written_r, 1) == b"x"
    brain.close()
    os.write(closed_w, b"x")
    assert finished(child) == -signal.SIGKILL
    assert ids_of(path) == {"p", *(f"c{n}" for n in range(50))}
    assert all(finding.ok for finding in examine(path))


def test_parent_and_child_go_on_with_the_store_they_had(path):
    with Brain(path) as brain:
        brain.remember("before", id="before")
        child = in_child(lambda: [brain.remember(f"child {n}", id=f"c{n}") for n in range(30)])
        for n in range(30):
            brain.remember(f"parent {n}", id=f"p{n}")
        assert finished(child) == 0
        assert len(brain.memories(limit=None)) == 61
        assert len(brain.recall("child", k=100, mode="lexical")) == 30


def test_forks_while_threads_write_lose_nothing_and_hang_nobody(path):
    acknowledged: list[str] = []
    stop = threading.Event()
    with Brain(path) as brain:

        def write(thread):
            n = 0
            while not stop.is_set():
                key = f"t{thread}-{n}"
                brain.remember(f"by thread {thread}", id=key)
                acknowledged.append(key)
                n += 1
                if n % 7 == 0:
                    brain.recall("thread", k=3)

        threads = [threading.Thread(target=write, args=(thread,)) for thread in range(3)]
        for thread in threads:
            thread.start()
        children = []
        for number in range(10):
            time.sleep(0.03)
            children.append(in_child(lambda number=number: _store_some(brain, number)))
        codes = [finished(child) for child in children]
        stop.set()
        for thread in threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()
    assert codes == [0] * 10
    wanted = {*acknowledged, *(f"c{number}-{n}" for number in range(10) for n in range(5))}
    assert ids_of(path) == wanted
    assert all(finding.ok for finding in examine(path))


def _store_some(brain, number):
    for n in range(5):
        brain.remember(f"by child {number}", id=f"c{number}-{n}")
    assert brain.recall(f"child {number}", k=1)


def test_a_daemon_keeps_what_it_stores_although_others_close(path, tmp_path):
    """Open, fork twice, let the parents end: the textbook's way to become a daemon."""
    script = tmp_path / "daemon.py"
    script.write_text(
        "import os, sys, time\n"
        "from rmem import Brain\n"
        "brain = Brain(sys.argv[1])\n"
        "brain.remember('before', id='before')\n"
        "if os.fork(): os._exit(0)\n"
        "os.setsid()\n"
        "if os.fork(): os._exit(0)\n"
        "for n in range(40):\n"
        "    brain.remember(f'daemon {n}', id=f'd{n}')\n"
        "    time.sleep(0.01)\n"
        "open(sys.argv[2], 'w').write('done')\n"
        "os._exit(0)\n"
    )
    done = tmp_path / "done"
    subprocess.run([sys.executable, str(script), str(path), str(done)], check=True, timeout=PATIENCE)
    deadline = time.monotonic() + PATIENCE
    while not done.exists():
        assert time.monotonic() < deadline
        with Brain(path) as other:
            other.recall("daemon")
        time.sleep(0.02)
    assert ids_of(path) == {"before", *(f"d{n}" for n in range(40))}


def _remember_in_a_pool(number):
    _pooled.remember(f"pooled {number}", id=f"m{number}")
    return os.getpid()


def test_the_workers_of_multiprocessing_use_the_store_that_was_open(path):
    global _pooled
    _pooled = Brain(path)
    _pooled.remember("before", id="before")
    with multiprocessing.get_context("fork").Pool(3) as pool:
        pids = set(pool.map(_remember_in_a_pool, range(30), chunksize=1))
    assert os.getpid() not in pids
    _pooled.close()
    assert ids_of(path) == {"before", *(f"m{n}" for n in range(30))}


def _remember_by_path(path, number):
    with Brain(path) as brain:
        brain.remember(f"served {number}", id=f"m{number}")


def test_the_forkserver_of_multiprocessing_uses_stores_of_its_own(path):
    context = multiprocessing.get_context("forkserver")
    with Brain(path) as brain:
        brain.remember("before", id="before")
        workers = [context.Process(target=_remember_by_path, args=(path, number)) for number in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(PATIENCE)
            assert worker.exitcode == 0
        assert len(brain.memories()) == 4


def test_gunicorn_may_open_the_store_before_it_forks(path, tmp_path):
    """A real pre-fork server with the application loaded, and the store open, in its master."""
    application = tmp_path / "application.py"
    application.write_text(
        "import os\n"
        "from rmem import Brain\n"
        f"brain = Brain({str(path)!r})\n"
        "brain.remember('from the master', id='master')\n"
        "def app(environ, start_response):\n"
        "    key = environ['PATH_INFO'].strip('/')\n"
        "    brain.remember(f'by a worker {key}', id=key)\n"
        "    found = len(brain.recall('worker', k=100, mode='lexical'))\n"
        "    start_response('200 OK', [('Content-Type', 'text/plain')])\n"
        "    return [f'{os.getpid()} {found}'.encode()]\n"
    )
    import socket
    from urllib.request import urlopen

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "gunicorn", "--preload", "-w", "3", "-b", f"127.0.0.1:{port}", "application:app"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                urlopen(f"http://127.0.0.1:{port}/first", timeout=PATIENCE).read()
                break
            except OSError:
                assert server.poll() is None, server.stderr.read()
                assert time.monotonic() < deadline
                time.sleep(0.05)
        pids = set()
        for n in range(40):
            pid, found = urlopen(f"http://127.0.0.1:{port}/m{n}", timeout=PATIENCE).read().split()
            pids.add(pid)
            assert int(found) == n + 2, "a worker did not find what another one had stored"
    finally:
        server.terminate()
        server.wait(PATIENCE)
        server.stderr.close()
    assert ids_of(path) == {"master", "first", *(f"m{n}" for n in range(40))}


def test_a_child_forked_in_the_middle_of_a_read_is_refused_in_words_and_the_parent_goes_on(path):
    with SqliteRecordStore(path) as store, Brain(path) as other:
        other.remember("before", id="before")

        def refused():
            for attempt in (
                lambda: store.count(),
                lambda: Brain(path).remember("lost?"),
                lambda: other.remember("lost?"),
            ):
                with pytest.raises(StoreForkedError, match=r"forked while a thread used .*memories\.db"):
                    attempt()

        with store.connection() as connection:
            connection.execute("SELECT count(*) FROM memories").fetchone()
            child = in_child(refused)
            assert finished(child) == 0
        other.remember("after", id="after")
        assert store.count() == 2
    assert ids_of(path) == {"before", "after"}


def test_closing_in_the_child_leaves_the_parent_alone(path):
    with Brain(path) as brain:
        brain.remember("before", id="before")
        assert finished(in_child(brain.close)) == 0
        brain.remember("after", id="after")
        assert len(brain.memories()) == 2
    assert not Path(f"{path}-wal").exists()


def test_a_fork_while_another_thread_loads_the_embedder_hangs_nobody(tmp_path):
    """In a process of its own, in which nothing was imported and no table was loaded before."""
    program = """
import os, signal, sys, threading
from rmem import Brain
brain = Brain(sys.argv[1])
thread = threading.Thread(target=brain.remember, args=("by the thread",))
thread.start()
children = []
while thread.is_alive():
    child = os.fork()
    if not child:
        signal.alarm(30)
        brain.remember("by a child")
        os._exit(0)
    children.append(child)
    thread.join(0.03)
print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
"""
    ended = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "m.db")], capture_output=True, text=True, timeout=120
    )
    codes = ast.literal_eval(ended.stdout)
    assert set(codes) == {0}, ended.stderr
