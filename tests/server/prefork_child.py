"""A pre-fork server: the application is made once, and each worker is a fork of that process.
`prefork_child.py DATA PORT WORKERS [STORE]`; prints the admin's token and the workers' process ids."""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

import uvicorn

from rmem.server.app import create_app
from rmem.server.settings import ServerSettings


def main() -> None:
    data, port, workers, *store = sys.argv[1:]
    tokens: list[str] = []
    settings = ServerSettings(data=Path(data))
    if store:  # without processes of its own, which the server on a file has
        settings = ServerSettings(data=Path(data), store=store[0], workers=0, recall_workers=0)
    app = create_app(settings, on_first_token=tokens.append)
    app.state.service.control.organizations()  # in use before the fork
    listening = socket.create_server(("127.0.0.1", int(port)))
    pids = []
    for _ in range(int(workers)):
        pid = os.fork()
        if not pid:
            uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="on")).run(sockets=[listening])
            os._exit(0)
        pids.append(pid)
    print(json.dumps({"token": tokens[0], "pids": pids}), flush=True)
    for pid in pids:
        os.waitpid(pid, 0)
    app.state.service.control.organizations()  # and still of use afterwards


if __name__ == "__main__":
    main()
