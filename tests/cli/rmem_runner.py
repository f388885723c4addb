"""Ways to run `rmem`: in this process, as a process of its own, and as a process on a terminal."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from rmem.cli.app import rmem

COMMAND = (sys.executable, "-m", "rmem")


@dataclass
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        return json.loads(self.err)["error"]

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


@dataclass
class Rmem:
    """`rmem("recall", "OOM", "--json").json`; the store is the default one of a folder of this test."""

    home: Path

    def __call__(self, *arguments: str, input: str | bytes | None = None) -> Answer:
        result = CliRunner().invoke(rmem, arguments, input=input, env={"RMEM_HOME": str(self.home)})
        return Answer(result.exit_code, result.stdout, result.stderr)

    def environment(self, **more: str) -> dict[str, str]:
        inherited = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
        return {**inherited, "RMEM_HOME": str(self.home), "COLUMNS": "100", **more}

    def process(self, *arguments: str, input: str = "", **environment: str) -> Answer:
        """As a shell runs it, with pipes."""
        done = subprocess.run(
            [*COMMAND, *arguments],
            input=input.encode(),
            capture_output=True,
            env=self.environment(**environment),
            timeout=60,
        )
        return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())

    def terminal(self, *arguments: str, typed: str = "", **environment: str) -> Answer:
        """As a person sees it: standard input, output and errors are one terminal."""
        return self.on_terminal([*COMMAND, *arguments], typed, **environment)

    def on_terminal(self, command: list[str], typed: str = "", **environment: str) -> Answer:
        ours, theirs = pty.openpty()
        environment = {"TERM": "xterm-256color", **environment}
        child = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=self.environment(**environment),
            start_new_session=True,
        )
        os.close(theirs)
        os.write(ours, typed.encode())
        seen = b""
        try:
            while part := os.read(ours, 4096):
                seen += part
        except OSError:  # how Linux says that the other side was closed
            pass
        os.close(ours)
        return Answer(child.wait(60), seen.decode(), "")
