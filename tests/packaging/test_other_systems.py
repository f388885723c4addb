"""What holds where Windows or macOS differ from Linux: modules and calls that are missing there, and terminals that
cannot show every character. Real processes, from which these were taken away."""

from __future__ import annotations

import ast
import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rmem

PACKAGE = Path(rmem.__file__).parent
TEXT = "The café is 東京 😀 – fixed"

WITHOUT = """
import os, signal, socket, subprocess, sys
for module in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[module] = None
import types  # msvcrt has the lock of files there; subprocess, loaded above, would take it for more
msvcrt = types.ModuleType("msvcrt")
msvcrt.LK_LOCK = msvcrt.LK_NBLCK = 0
msvcrt.locking = lambda *_: None
sys.modules["msvcrt"] = msvcrt
for owner, names in {
    os: "fork getuid geteuid link pread pwrite sched_getaffinity killpg setsid chown register_at_fork O_DIRECTORY",
    socket: "AF_UNIX send_fds recv_fds",
    signal: "SIGKILL SIGHUP SIGUSR1 SIGCHLD",
}.items():
    for name in names.split():
        if hasattr(owner, name):
            delattr(owner, name)
from rmem.cli import main
sys.argv[0] = "rmem"
main()
"""


def run(*arguments: str, code: str | None = None, **environment: str) -> subprocess.CompletedProcess[bytes]:
    line = [sys.executable, *(["-m", "rmem"] if code is None else ["-c", code]), *arguments]
    return subprocess.run(line, env={**os.environ, **environment}, capture_output=True, timeout=120)


def test_memories_are_kept_and_found_where_unix_calls_are_missing():
    for command in (
        ["remember", "The export was killed", "--id", "m-1"],
        ["recall", "export"],
        ["list"],
        ["forget", "m-1", "--yes"],
        ["audit", "--verify"],
        ["doctor"],
        ["--help"],
    ):
        done = run(*command, code=WITHOUT)
        assert done.returncode == 0, (command, done.stderr.decode())


@pytest.mark.parametrize(("command", "said"), [(["serve"], b"rmem serve forks"), (["install"], b"needs Unix sockets")])
def test_what_needs_unix_says_so_in_one_sentence(command, said):
    done = run(*command, code=WITHOUT)
    assert done.returncode == 2
    assert said in done.stderr.splitlines()[-1]
    assert b"report" not in done.stderr


def test_a_file_is_published_once_without_hard_links(tmp_path, monkeypatch):
    from rmem.private_files import publish

    monkeypatch.delattr(os, "link")
    for text in ("first", "second"):
        (tmp_path / "draft").write_text(text)
        publish(tmp_path / "draft", tmp_path / "secret")
    assert (tmp_path / "secret").read_text() == "first"
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "draft").exists()


def test_what_a_terminal_cannot_show_is_replaced():
    assert run("remember", TEXT, "--id", "m-1", "--tag", "face=😀").returncode == 0
    commands = (
        ["recall", "café 東京", "--explain"],
        ["list"],
        ["show", "m-1"],
        ["stats"],
        ["--help"],
        ["recall", "--help"],
        ["list", "--json"],
        ["remember", "東京 " + TEXT],
        ["privacy", "check", TEXT],
    )
    for command, encoding in zip(commands, itertools.cycle(["cp1252", "cp437"]), strict=False):
        done = run(*command, PYTHONIOENCODING=encoding)
        assert done.returncode == 0, (command, done.stderr)
        done.stdout.decode(encoding)
        if command == ["list"]:
            assert b"fixed" in done.stdout
    assert run("show", "東京", PYTHONIOENCODING="cp437").returncode == 3


# Names that a system may lack, and the files that are only reached where they are there.
GUARDED = {
    "fork", "getuid", "geteuid", "getgid", "link", "pread", "pwrite", "sched_getaffinity", "killpg", "setsid", "chown",
    "mkfifo", "register_at_fork", "AF_UNIX", "send_fds", "recv_fds", "SIGKILL", "SIGHUP", "SIGUSR1", "SIGCHLD",
}  # fmt: skip
BEHIND_A_CHECK = {
    "server/recall_workers.py": "serve() refuses systems without fork and send_fds",
    "server/workers.py": "serve() refuses systems without fork and send_fds",
    "server/worker_host.py": "serve() refuses systems without fork and send_fds",
    "team/daemon_client.py": "check_system() comes first",
    "team/daemon.py": "check_system() comes first",
    "private_files.py": "publish() catches AttributeError",
}


def uses(tree: ast.AST) -> list[tuple[int, str]]:
    """Attributes of os, socket and signal that a system may lack, outside of `if hasattr(…)`."""
    guarded: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.IfExp) and "hasattr" in ast.dump(node.test):
            guarded |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return [
        (node.lineno, node.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in ("os", "socket", "signal")
        and node.attr in GUARDED
        and node.lineno not in guarded
    ]


def test_calls_that_a_system_may_lack_are_guarded():
    found = [
        f"{path.relative_to(PACKAGE)}:{line}: {name}"
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).as_posix() not in BEHIND_A_CHECK
        if any(name in (text := path.read_text(encoding="utf-8")) for name in GUARDED)
        for line, name in uses(ast.parse(text))
    ]
    assert found == []


def test_modules_that_a_system_lacks_are_not_imported_at_the_top():
    lacking = {"fcntl", "resource", "pwd", "grp", "termios", "msvcrt", "winreg"}
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.parse(text).body if any(name in text for name in lacking) else ():
            names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
            assert lacking.isdisjoint(names), path


def test_powershell_completes_commands_and_options():
    told = run(_RMEM_COMPLETE="powershell_complete", COMP_WORDS="rmem re", COMP_WORD="re").stdout.decode()
    assert {line.split("\t")[1] for line in told.splitlines()} >= {"remember", "recall", "restore", "review", "reindex"}
    told = run(_RMEM_COMPLETE="powershell_complete", COMP_WORDS="rmem list --js", COMP_WORD="--js").stdout.decode()
    assert told.split("\t")[:2] == ["plain", "--json"]
    script = run("completion", "powershell").stdout.decode()
    assert "Register-ArgumentCompleter -Native -CommandName rmem" in script
    assert '$env:_RMEM_COMPLETE = "powershell_complete"' in script
