"""Try an installed rmem: the library, the command, and with the argument "server" a real server. Run by wheel.py."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

HERE = Path(tempfile.mkdtemp())
os.environ["RMEM_HOME"] = str(HERE)


def rmem(*words: str) -> str:
    line = [sys.executable, "-m", "rmem", *words]
    return subprocess.run(line, capture_output=True, encoding="utf-8", check=True).stdout


def library() -> None:
    import rmem as package

    assert "site-packages" in str(package.__file__), package.__file__
    with package.Brain(HERE / "library.db") as brain:
        brain.remember("Fixed the OOM in the nightly export: read it in batches", agent="a", type="error_fix")
        brain.remember("Lunch is at noon", agent="b")
        assert brain.recall("job killed, out of memory")[0].memory.agent_id == "a"
        assert brain.recall("what happened yesterday") is not None


def command() -> None:
    script = Path(sys.executable).with_name("rmem.exe" if sys.platform == "win32" else "rmem")
    told = subprocess.run([script, "--version"], capture_output=True, text=True, check=True).stdout
    assert told.startswith("rmem "), told
    id = rmem("remember", "Parquet it is, CSV is dropped").strip()
    assert json.loads(rmem("recall", "csv or parquet", "--json"))["hits"][0]["memory"]["memory_id"] == id
    assert "recall" in rmem("--help")
    assert "Parquet" in rmem("list")
    rmem("doctor")


def server() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    line = [sys.executable, "-m", "rmem", "serve", "--json", "--port", str(port), "--data", str(HERE / "server")]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8") as process:
        try:
            assert process.stdout is not None
            text = ""
            while not text.endswith("}\n"):
                part = process.stdout.readline()
                assert part, "the server ended"
                text += part
            token = json.loads(text)["token"]
            request = urllib.request.Request(
                f"http://127.0.0.1:{port}/me", headers={"Authorization": f"Bearer {token}"}
            )
            for _ in range(150):
                with suppress(OSError), urllib.request.urlopen(request, timeout=5) as answer:
                    assert answer.status == 200
                    return
                time.sleep(0.2)
            raise AssertionError("the server did not answer")
        finally:
            process.terminate()


if __name__ == "__main__":
    library()
    command()
    if sys.argv[1:] == ["server"]:
        server()
    print("works")
