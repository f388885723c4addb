"""How the command behaves as a command: help, exit codes, pipes, terminals, signals, start-up."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from rmem_runner import COMMAND, Rmem

from rmem import Brain, __version__
from rmem.cli.app import COMMANDS, SECTIONS

_ESCAPE = re.compile(r"\x1b\[")
_BOXES = re.compile("[\u2500-\u257f]")


def test_help_lists_every_command_by_section_and_the_exit_codes(rmem: Rmem) -> None:
    answer = rmem("--help")
    assert answer.code == 0
    for title in SECTIONS:
        assert f"{title}:" in answer.out
    for name, entry in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(entry.summary)}$", answer.out, re.MULTILINE)
    for code in ("0", "1", "2", "3", "4", "5", "6", "130"):
        assert re.search(rf"^    {code} +\w", answer.out, re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_teaches_by_example_and_takes_json(rmem: Rmem, name: str) -> None:
    arguments = [name, "locomo"] if name == "eval" else [name]
    answer = rmem(*arguments, "--help")
    assert answer.code == 0
    assert "Example" in answer.out
    assert answer.out.count(f"rmem {name}") + answer.out.count(f" {name} ") >= 2
    # What only programs call speaks their language anyway.
    assert "--json" in answer.out or name in ("hook", "mcp")


def test_version(rmem: Rmem) -> None:
    assert rmem.process("--version").out == f"rmem {__version__}\n"


def test_the_installed_script_is_the_same_command(rmem: Rmem) -> None:
    script = Path(sys.executable).with_name("rmem")
    assert subprocess.run([script, "--version"], capture_output=True, text=True).stdout.startswith("rmem ")


@pytest.mark.parametrize(
    "arguments", [("recal", "x"), ("recall",), ("recall", "x", "--modee", "y"), ("list", "--order", "x"), ("--nope",)]
)
def test_wrong_usage_is_exit_code_2(rmem: Rmem, arguments: tuple[str, ...]) -> None:
    answer = rmem(*arguments)
    assert answer.code == 2
    assert "Error: " in answer.err
    assert "--help" in answer.err
    as_json = rmem(*arguments, "--json")
    assert as_json.code == 2
    assert as_json.error["message"]


def test_a_mistyped_command_is_guessed(rmem: Rmem) -> None:
    assert "Did you mean 'recall'?" in rmem("recal", "x").err


def test_no_command_shows_the_help(rmem: Rmem) -> None:
    for arguments in ((), ("eval",)):
        answer = rmem(*arguments)
        assert (answer.code, answer.err) == (0, "")
        assert answer.out == rmem(*arguments, "--help").out


def test_the_store_may_be_named_before_or_behind_the_command(rmem: Rmem, tmp_path: Path) -> None:
    path = tmp_path / "other store.db"
    rmem("--store", str(path), "remember", "kept elsewhere")
    assert rmem("list", "--json", "--store", f"sqlite:///{path}").json["total"] == 1
    assert rmem("--store", "other store.db", "--json", "list").json["total"] == 1
    assert rmem("list", "--json").json["total"] == 0


def test_a_file_that_is_no_store_is_exit_code_4(rmem: Rmem, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("these are my own notes\n" * 100)
    sqlite3.connect(tmp_path / "foreign.db").execute("CREATE TABLE mine (x)").connection.close()
    for name in ("notes.txt", "foreign.db", "."):
        answer = rmem("--store", name, "recall", "x", "--json")
        assert answer.code == 4
        assert answer.error["type"] == "StoreCorruptError"
    assert (tmp_path / "notes.txt").read_text().startswith("these are my own notes")


def test_an_unknown_address_is_exit_code_2(rmem: Rmem) -> None:
    answer = rmem("--store", "mysql://host/db", "recall", "x")
    assert answer.code == 2
    assert "mysql" in answer.err


def test_an_embedder_that_cannot_be_loaded_is_exit_code_5(rmem: Rmem, tmp_path: Path) -> None:
    with Brain(tmp_path / "own.db", embedder=lambda texts: [[1.0] * 8 for _ in texts]) as brain:
        brain.remember("embedded by a function of my own")
    answer = rmem("--store", "own.db", "recall", "function", "--json")
    assert answer.code == 5
    assert answer.error["type"] == "EmbedderError"
    assert rmem("--store", "own.db", "recall", "function", "--mode", "lexical").code == 0


def test_an_unexpected_error_is_one_line_and_exit_code_1(rmem: Rmem, tmp_path: Path) -> None:
    rmem("remember", "x")
    # a full disk behind standard output is nothing the command can foresee
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "list"], stdout=full, stderr=subprocess.PIPE, env=rmem.environment(), text=True
        )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "No space left" in done.stderr


def test_piped_output_is_plain(rmem: Rmem) -> None:
    rmem("remember", "Fixed the OOM", "--id", "m")
    for command in (("recall", "OOM", "--explain"), ("list",), ("show", "m"), ("stats",), ("doctor",), ("--help",)):
        out = rmem.process(*command).out
        assert out
        assert "\t" not in out
        assert not _ESCAPE.search(out)
        assert not _BOXES.search(out)


def test_a_terminal_gets_colours_and_tables(rmem: Rmem) -> None:
    rmem("remember", "Fixed the OOM", "--id", "m")
    for command in (("recall", "OOM", "--explain"), ("list",), ("show", "m"), ("stats",), ("doctor",)):
        answer = rmem.terminal(*command)
        assert answer.code == 0
        assert _ESCAPE.search(answer.out)
        assert _BOXES.search(answer.out) or command != ("list",)
    assert "Fixed the OOM" in rmem.terminal("recall", "OOM").out


def test_no_color_is_honoured(rmem: Rmem) -> None:
    rmem("remember", "Fixed the OOM", "--id", "m")
    for command in (("recall", "OOM", "--explain"), ("doctor",), ("show", "nope")):
        assert not re.search(r"\x1b\[[0-9;]*3[0-9]", rmem.terminal(*command, NO_COLOR="1").out)
    assert "\x1b[31m" in rmem.terminal("show", "nope").out


def test_json_on_a_terminal_is_json(rmem: Rmem) -> None:
    rmem("remember", "Fixed the OOM")
    assert rmem.terminal("recall", "OOM", "--json").json["hits"]


def test_output_survives_a_terminal_that_knows_only_ascii(rmem: Rmem) -> None:
    rmem("remember", "Größe 日本語", "--id", "m")
    environment = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    plain = rmem.process("show", "m", **environment)
    assert plain.code == 0
    assert "Gr" in plain.out
    assert rmem.process("show", "m", "--json", **environment).json["text"] == "Größe 日本語"


def test_a_reader_that_goes_away_is_no_error_message(rmem: Rmem) -> None:
    with Brain(rmem.home / "memories.db") as brain:
        brain.remember_many([{"text": f"memory {number} " + "long " * 200} for number in range(500)])
    child = subprocess.Popen(
        [*COMMAND, "list", "--limit", "500"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=rmem.environment()
    )
    assert child.stdout is not None
    assert child.stderr is not None
    assert child.stdout.readline()
    child.stdout.close()
    assert child.stderr.read() == b""
    child.stderr.close()
    assert child.wait(60) == 141


def test_ctrl_c_ends_without_a_trace(rmem: Rmem, tmp_path: Path) -> None:
    pipe = tmp_path / "slow.jsonl"
    os.mkfifo(pipe)
    child = subprocess.Popen(
        [*COMMAND, "import", str(pipe)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=rmem.environment(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a test run in the background ignores it
    )
    with pipe.open("wb"):  # opens once the command is reading, and keeps it waiting
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert out == b""
    assert err.startswith(b"Stopped. ")
    assert err.count(b"\n") == 1


def test_long_work_shows_a_bar_on_a_terminal_and_nothing_in_a_pipe(rmem: Rmem) -> None:
    script = (
        "from rmem.cli import progress\n"
        "progress._PATIENCE = 0\n"
        "with progress.progress('Embedding') as bar:\n"
        "    bar.under('Checking')(1, None)\n"
        "    bar(1, 2)\n"
        "    bar(2, 2)\n"
        "print('done')\n"
    )
    seen = rmem.on_terminal([sys.executable, "-c", script])
    assert seen.code == 0
    assert "Embedding" in seen.out
    assert "2/2" in seen.out
    piped = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=rmem.environment())
    assert (piped.stdout, piped.stderr) == ("done\n", "")


def test_an_answer_in_a_pipe_loads_nothing_it_does_not_need(rmem: Rmem) -> None:
    rmem("remember", "Fixed the OOM")
    script = (
        "import sys\n"
        "from rmem.cli.app import rmem\n"
        "try: rmem.main(['recall', 'OOM'])\n"
        "finally: print(' '.join({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=rmem.environment(), check=True
    )
    assert "Fixed the OOM" in done.stdout
    heavy = {"rich", "dateparser", "sqlalchemy", "pyarrow", "pydantic", "onnxruntime"}
    assert not heavy & set(done.stderr.split())


def test_help_does_not_even_load_numpy(rmem: Rmem) -> None:
    script = (
        "import sys\n"
        "from rmem.cli.app import rmem\n"
        "try: rmem.main(['--help'])\n"
        "finally: assert 'numpy' not in sys.modules\n"
    )
    assert subprocess.run([sys.executable, "-c", script], stdout=subprocess.DEVNULL).returncode == 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("rmem re", {"remember", "recall", "restore", "reindex", "review"}),
        ("rmem recall --mo", {"--mode"}),
        ("rmem recall x --mode ", {"hybrid", "lexical", "vector"}),
        ("rmem eval lo", {"locomo"}),
        ("rmem completion ", {"bash", "zsh", "fish", "powershell"}),
    ],
)
def test_the_shell_completes(rmem: Rmem, words: str, expected: set[str]) -> None:
    count = str(len(words.split()) - (not words.endswith(" ")))
    answer = rmem.process(_RMEM_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=count)
    assert answer.code == 0
    assert {line.partition(",")[2] for line in answer.lines} == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_the_script_of_each_shell(rmem: Rmem, shell: str) -> None:
    script = rmem.process("completion", shell).out
    assert "_RMEM_COMPLETE" in script
    assert f"{shell}_complete" in script
    assert rmem("completion", shell, "--json").json["script"].strip() == script.strip()


def test_the_bash_script_is_valid_bash(rmem: Rmem) -> None:
    script = rmem.process("completion", "bash").out
    assert subprocess.run(["bash", "-n"], input=script, text=True).returncode == 0


@pytest.mark.parametrize("group", ["fact", "graph", "keys", "privacy", "eval", "org", "token", "workspace", "member"])
def test_a_group_without_a_subcommand_shows_its_help(rmem: Rmem, group: str) -> None:
    answer = rmem(group)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out == rmem(group, "--help").out


def test_output_survives_a_terminal_in_the_locale_c(rmem: Rmem) -> None:
    rmem("remember", "the OOM at Größe 日本語")
    shown = rmem.terminal("recall", "OOM", LC_ALL="C", PYTHONUTF8="0")
    assert shown.code == 0
    assert "Gr" in shown.out


def test_a_list_of_none_does_not_say_that_there_are_none(rmem: Rmem) -> None:
    rmem("remember", "Fixed the OOM")
    assert rmem("list", "--limit", "0").err == ""
    assert "behind the last" in rmem("list", "--offset", "5").err


def test_a_server_whose_folder_cannot_be_made_says_so(rmem: Rmem) -> None:
    answer = rmem("serve", "--data", "/proc/nowhere/server", "--port", "0")
    assert answer.code == 4
    assert "cannot be made" in answer.err
