"""`python -m rmem.server.worker_host FD`: load once what workers need, and fork a worker for each socket that arrives
on FD, which takes milliseconds. Ends, with all workers, when the server does."""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
from importlib import import_module

_LATER = (
    "rmem.tables.engines.sqlite",
    "rmem.tables.workspace",
)
"""What workers would load with their first statement, out of its time."""

FOR_REQUESTS, FOR_RECALLS = b"+", b"?"
"""What kind of worker to fork."""


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how a worker ended
    server = socket.socket(fileno=int(sys.argv[1]))
    from . import recall_worker, worker

    for name in _LATER:
        import_module(name)
    gc.freeze()
    while True:
        kind, links, _, _ = socket.recv_fds(server, 1, 1)
        if not kind:
            os.killpg(0, signal.SIGKILL)
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            server.close()
            (recall_worker if kind == FOR_RECALLS else worker).run(socket.socket(fileno=links[0]))
            os._exit(0)
        os.close(links[0])


if __name__ == "__main__":
    main()
