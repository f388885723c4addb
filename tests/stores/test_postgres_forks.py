"""Forked processes on PostgreSQL and Redis: each has connections, locks and threads of its own, nothing acknowledged is
lost, nobody hangs, and the parent does not notice."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from urllib.request import urlopen

import psycopg
import pytest

from rmem import Brain
from rmem.agents import AgentMemoryAPI, MemoryConfig
from rmem.errors import StoreClosedError, StoreForkedError
from rmem.kv import RedisStore
from rmem.stores.redis import RedisRecordStore
from rmem.stores.sql.postgres import PostgresRecordStore
from rmem.tables.workspace import Workspace
from rmem.testing.contract import example
from rmem.testing.redis import RedisServer

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
PATIENCE = 60
FORKS = pytest.mark.parametrize("forks", [4, pytest.param(10, marks=pytest.mark.slow)])


def in_child(work: Callable[[], object]) -> int:
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


def finished(child: int) -> int:
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def ids_of(url: str) -> list[str]:
    with Brain(url) as brain:
        return sorted(memory.memory_id for memory in brain.memories(limit=None))


def backends(url: str) -> set[int]:
    with psycopg.connect(url) as raw:
        return {
            pid
            for (pid,) in raw.execute(
                "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        }


def test_parent_and_child_go_on_with_the_store_they_had(postgres_url):
    with Brain(postgres_url) as brain:
        brain.remember("before", id="before")
        assert brain.recall("before")
        own = backends(postgres_url)

        def work() -> None:
            for n in range(30):
                brain.remember(f"child {n}", id=f"c{n}")
                assert brain.recall(f"child {n}", k=1)

        child = in_child(work)
        for n in range(30):
            brain.remember(f"parent {n}", id=f"p{n}")
            assert brain.get(f"p{n}").text == f"parent {n}"
        assert finished(child) == 0
        assert len(brain.memories(limit=None)) == 61
        assert len(brain.recall("child", k=100, mode="lexical")) == 30
        assert own <= backends(postgres_url), "the connections of the parent are the ones it had"


@FORKS
def test_forks_while_threads_write_lose_nothing_and_hang_nobody(postgres_url, forks):
    acknowledged: list[str] = []
    failed: list[BaseException] = []
    stop = threading.Event()
    with Brain(postgres_url) as brain, Workspace(postgres_url) as tables:
        tables.query("CREATE TABLE notes (x TEXT)")

        def write(thread: int) -> None:
            n = 0
            try:
                while not stop.wait(0.005):
                    key = f"t{thread}-{n}"
                    brain.remember(f"by thread {thread}", id=key)
                    acknowledged.append(key)
                    tables.query("INSERT INTO notes VALUES ($1)", [key])
                    n += 1
                    if n % 7 == 0:
                        assert brain.recall("thread", k=3)
            except BaseException as error:
                failed.append(error)

        def store_some(number: int) -> None:
            for n in range(5):
                brain.remember(f"by child {number}", id=f"c{number}-{n}")
                tables.query("INSERT INTO notes VALUES ($1)", [f"c{number}-{n}"])
            assert brain.recall(f"child {number}", k=1)
            assert tables.query("SELECT count(*) FROM notes").rows[0][0] >= 5

        threads = [threading.Thread(target=write, args=(thread,)) for thread in range(3)]
        for thread in threads:
            thread.start()
        children = []
        for number in range(forks):
            time.sleep(0.05)
            children.append(in_child(lambda number=number: store_some(number)))
        codes = [finished(child) for child in children]
        stop.set()
        for thread in threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()
        assert (codes, failed) == ([0] * forks, [])
        wanted = sorted([*acknowledged, *(f"c{number}-{n}" for number in range(forks) for n in range(5))])
        assert sorted(x for (x,) in tables.query("SELECT x FROM notes").rows) == wanted
    assert ids_of(postgres_url) == wanted


def test_what_waits_in_the_parent_is_written_once(postgres_url):
    with Brain(postgres_url) as brain:
        brain.remember("apples", id="m")
        brain.recall("apples")
        assert finished(in_child(lambda: brain.remember("more"))) == 0
        brain.remember("and more")
    with Brain(postgres_url) as brain:
        assert brain.get("m").bookkeeping.retrieval_count == 1


def test_a_child_that_closes_or_exits_leaves_the_parent_alone(postgres_url):
    with Brain(postgres_url) as brain, Workspace(postgres_url) as tables:
        brain.remember("before")
        tables.query("CREATE TABLE notes (x INT)")
        own = backends(postgres_url)

        def close() -> None:
            brain.close()
            tables.close()
            with pytest.raises(StoreClosedError):
                brain.remember("closed")

        assert finished(in_child(close)) == 0
        assert finished(in_child(lambda: brain.remember("from a child"))) == 0
        brain.remember("after")
        tables.query("INSERT INTO notes VALUES (1)")
        assert own <= backends(postgres_url)
        assert len(brain.memories()) == 3


def test_a_script_whose_child_ends_normally_hangs_neither(postgres_url, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys\n"
        "from rmem import Brain\n"
        "brain = Brain(sys.argv[1])\n"
        "brain.remember('before', id='before')\n"
        "brain.recall('before')\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    brain.remember('child', id='child')\n"
        "    sys.exit(7)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7\n"
        "idle = os.fork()\n"
        "if not idle:\n"
        "    sys.exit(8)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(idle, 0)[1]) == 8\n"
        "brain.remember('after', id='after')\n"
        "brain.close()\n"
    )
    done = subprocess.run([sys.executable, str(script), postgres_url], capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
    assert ids_of(postgres_url) == ["after", "before", "child"]


def test_a_parent_that_is_killed_leaves_no_lock_behind_in_its_children(postgres_url, tmp_path):
    """A socket that a child kept open would keep the transaction of its parent, and what it locked, alive."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os, signal, sys, time\n"
        "from threading import Thread\n"
        "from rmem.stores.sql.postgres import PostgresRecordStore\n"
        "store = PostgresRecordStore(sys.argv[1])\n"
        "def hold(link):\n"
        "    time.sleep(60)\n"
        "Thread(target=store.write, args=(hold,), daemon=True).start()\n"
        "time.sleep(1)\n"
        "if os.fork() == 0:\n"
        "    time.sleep(20)\n"
        "    os._exit(0)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    with PostgresRecordStore(postgres_url) as store:
        assert subprocess.run([sys.executable, str(script), postgres_url], timeout=PATIENCE).returncode < 0
        started = time.monotonic()
        store.put([example("not held up")])
        assert time.monotonic() - started < 5


def test_a_fork_in_the_middle_of_a_transaction_is_refused_in_the_child_only(postgres_url):
    with PostgresRecordStore(postgres_url) as store, Workspace(postgres_url) as tables:
        store.put([example("before")])
        tables.query("CREATE TABLE notes (x INT)")
        children: list[int] = []

        def work(connection) -> int:
            connection.execute("INSERT INTO notes VALUES ('own', 'x')")
            child = os.fork()
            children.append(child)
            return child

        try:
            store.write(work)
            if not children[-1]:
                os._exit(1)
        except StoreForkedError as error:
            os._exit(0 if not children[-1] and "begin it anew" in str(error) else 2)
        except BaseException as error:
            if not children[-1]:
                print(type(error), error, file=sys.stderr, flush=True)
                os._exit(3)
            raise
        assert finished(children[-1]) == 0
        assert store.get_meta("own") == "x"


def test_a_daemon_keeps_what_it_stores_although_others_close(postgres_url, tmp_path):
    """Open, fork twice, let the parents end: the textbook's way to become a daemon."""
    script = tmp_path / "daemon.py"
    script.write_text(
        "import os, sys, time\n"
        "from rmem import Brain\n"
        "brain = Brain(sys.argv[1])\n"
        "brain.remember('before', id='before')\n"
        "if os.fork(): sys.exit(0)\n"
        "os.setsid()\n"
        "if os.fork(): sys.exit(0)\n"
        "for n in range(40):\n"
        "    brain.remember(f'daemon {n}', id=f'd{n:02}')\n"
        "open(sys.argv[2], 'w').write('done')\n"
        "brain.close()\n"
    )
    done = tmp_path / "done"
    subprocess.run([sys.executable, str(script), postgres_url, str(done)], check=True, timeout=PATIENCE)
    until = time.monotonic() + PATIENCE
    while not done.exists():
        assert time.monotonic() < until
        time.sleep(0.02)
    assert ids_of(postgres_url) == ["before", *(f"d{n:02}" for n in range(40))]


def _remember_in_a_pool(number: int) -> int:
    _pooled.remember(f"pooled {number}", id=f"m{number:02}")
    return os.getpid()


def test_the_workers_of_multiprocessing_use_the_store_that_was_open(postgres_url):
    global _pooled
    with Brain(postgres_url) as _pooled:
        _pooled.remember("before", id="before")
        with multiprocessing.get_context("fork").Pool(3) as pool:
            pids = set(pool.map_async(_remember_in_a_pool, range(30), chunksize=1).get(PATIENCE))
        assert os.getpid() not in pids
        _pooled.remember("zero", id="zero")
    assert ids_of(postgres_url) == ["before", *(f"m{n:02}" for n in range(30)), "zero"]


def _remember_at(url: str, number: int) -> None:
    with Brain(url) as brain:
        brain.remember(f"served {number}", id=f"m{number}")


def test_the_forkserver_of_multiprocessing_uses_stores_of_its_own(postgres_url):
    context = multiprocessing.get_context("forkserver")
    with Brain(postgres_url) as brain:
        brain.remember("before", id="before")
        workers = [context.Process(target=_remember_at, args=(postgres_url, number)) for number in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(PATIENCE)
            assert worker.exitcode == 0
        assert len(brain.memories()) == 4


def test_gunicorn_may_open_memories_and_tables_before_it_forks(postgres_url, tmp_path):
    """A real pre-fork server with the application loaded, and the stores open, in its master."""
    pytest.importorskip("gunicorn")
    application = tmp_path / "application.py"
    application.write_text(
        "import os\n"
        "from rmem import Brain\n"
        "from rmem.tables.workspace import Workspace\n"
        f"brain = Brain({postgres_url!r})\n"
        f"tables = Workspace({postgres_url!r})\n"
        "brain.remember('from the master', id='master')\n"
        "tables.query('CREATE TABLE notes (x TEXT)')\n"
        "def app(environ, start_response):\n"
        "    key = environ['PATH_INFO'].strip('/')\n"
        "    brain.remember(f'by a worker {key}', id=key)\n"
        "    tables.query('INSERT INTO notes VALUES ($1)', [key])\n"
        "    found = len(brain.recall('worker', k=100, mode='lexical'))\n"
        "    start_response('200 OK', [('Content-Type', 'text/plain')])\n"
        "    return [f'{os.getpid()} {found}'.encode()]\n"
    )
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
        until = time.monotonic() + PATIENCE
        while True:
            try:
                urlopen(f"http://127.0.0.1:{port}/first", timeout=PATIENCE).read()
                break
            except OSError:
                assert server.poll() is None, server.stderr.read()
                assert time.monotonic() < until
                time.sleep(0.05)
        pids = set()
        for n in range(40):
            pid, found = urlopen(f"http://127.0.0.1:{port}/m{n:02}", timeout=PATIENCE).read().split()
            pids.add(pid)
            assert int(found) == n + 2, "a worker did not find what another one had stored"
    finally:
        server.terminate()
        server.wait(PATIENCE)
        server.stderr.close()
    assert len(pids) > 1
    assert ids_of(postgres_url) == ["first", *(f"m{n:02}" for n in range(40)), "master"]


# Redis


@FORKS
def test_redis_stores_go_on_in_both_processes(forks):
    with RedisServer() as server:
        values = RedisStore(port=server.port, namespace="forks")
        store = RedisRecordStore(port=server.port, namespace="forks")
        stop = threading.Event()
        failed: list[BaseException] = []
        written: list[str] = []

        def write(thread: int) -> None:
            n = 0
            try:
                while not stop.wait(0.005):
                    key = f"t{thread}-{n}"
                    values.add(key, {"n": n})
                    store.put([example(key, memory_id=key, agent_id="a")])
                    assert values.get(key) == {"n": n}
                    written.append(key)
                    n += 1
            except BaseException as error:
                failed.append(error)

        def some(number: int) -> None:
            for n in range(5):
                key = f"c{number}-{n}"
                values.add(key, {"n": n})
                assert values.get(key) == {"n": n}
                store.put([example(key, memory_id=key, agent_id="a")])
            assert store.get(f"c{number}-4").text == f"c{number}-4"
            assert store.match(f"c{number}-4", k=1)

        threads = [threading.Thread(target=write, args=(thread,)) for thread in range(2)]
        for thread in threads:
            thread.start()
        children = []
        for number in range(forks):
            time.sleep(0.03)
            children.append(in_child(lambda number=number: some(number)))
        codes = [finished(child) for child in children]
        stop.set()
        for thread in threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()
        assert (codes, failed) == ([0] * forks, [])
        wanted = {*written, *(f"c{number}-{n}" for number in range(forks) for n in range(5))}
        assert set(values) == wanted
        assert set(store) == wanted
        store.close()
        values.close()


def test_agents_with_hot_tiers_go_on_in_both_processes(postgres_url):
    with RedisServer() as server:
        redis = {"host": "127.0.0.1", "port": server.port}
        api = AgentMemoryAPI(MemoryConfig(stm_config=redis, im_config=redis, ltm_config={"path": postgres_url}))
        bee, ant = api.get_memory_space("bee"), api.get_memory_space("ant")
        bee.store("state", {"x": 1}, 1)
        assert len(bee.retrieve_recent_states(5)) == 1

        def work() -> None:
            for step in range(2, 12):
                bee.store("state", {"x": step}, step)
                assert bee.retrieve_recent_states(1)[0]["step_number"] == step

        child = in_child(work)
        for step in range(100, 110):
            ant.store("state", {"x": step}, step)
            assert ant.retrieve_recent_states(1)[0]["step_number"] == step
        assert finished(child) == 0
        assert len(bee.retrieve_recent_states(50)) == 11
        api.close()
