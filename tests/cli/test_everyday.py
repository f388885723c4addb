"""What people expect of a command by others that they know: formats, quiet answers, colours, safe pipes, completion."""

from __future__ import annotations

import csv
import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rmem_runner import COMMAND, Rmem

from rmem import Brain
from rmem.foreign_files import _JSON, _PLAIN
from rmem.memory_builder import WRITABLE

LONG = "swe-01-with-a-long-name-12-1777632000"


@pytest.fixture
def three(rmem: Rmem) -> Rmem:
    with Brain(rmem.home / "memories.db") as brain:
        brain.remember("Parquet it is, CSV is dropped", id=LONG, agent="agent-of-the-data-team", type="decision")
        brain.remember('Retries need "jitter",\nor they come in waves', id="two", agent="swe-02", type="lesson",
                       tags={"repo": "pay"}, metadata={"ticket": 4711})  # fmt: skip
        brain.remember("Staging needs the VPN", id="three", agent="ops", type="note")
    return rmem


@pytest.mark.parametrize("columns", [20, 40, 60, 80, 200])
def test_list_keeps_id_type_and_agent_at_any_width(three: Rmem, columns: int) -> None:
    seen = re.sub(r"\x1b\[[0-9;]*m", "", three.terminal("list", COLUMNS=str(columns)).out)
    for whole in (LONG, "decision", "agent-of-the-data-team", "two", "lesson", "swe-02"):
        assert whole in seen
    assert "Parquet it" in seen


def test_list_and_recall_write_csv_and_tsv(three: Rmem) -> None:
    rows = list(csv.DictReader(io.StringIO(three("list", "--csv", "--order", "oldest").out)))
    assert [row["id"] for row in rows] == [LONG, "two", "three"]
    assert rows[1]["text"] == 'Retries need "jitter",\nor they come in waves'
    assert (rows[1]["agent"], rows[1]["tags"], rows[1]["metadata"]) == ("swe-02", '{"repo": "pay"}', '{"ticket": 4711}')
    hits = list(csv.DictReader(io.StringIO(three("recall", "jitter", "-n", "1", "--tsv").out), delimiter="\t"))
    assert [(hit["rank"], hit["id"]) for hit in hits] == [("1", "two")]
    assert float(hits[0]["score"]) > 0
    assert 0 < float(hits[0]["relevance"]) <= 1
    empty = three("recall", "jitter", "--agent", "nobody", "--csv")
    assert (empty.code, len(empty.lines), empty.err) == (0, 1, "Nothing recalled.\n")
    assert empty.out.startswith("rank,relevance,score,id,")


def test_a_listed_csv_fills_another_store_as_it_was(three: Rmem, tmp_path: Path) -> None:
    (tmp_path / "all.csv").write_text(three("list", "--csv").out, "utf-8")
    assert three("--store", str(tmp_path / "new.db"), "import", str(tmp_path / "all.csv")).code == 0
    with Brain(tmp_path / "new.db") as new, Brain(three.home / "memories.db") as old:
        for name in ("text", "agent", "type", "tags", "metadata", "importance", "session"):
            assert getattr(new.get("two"), name) == getattr(old.get("two"), name)
        assert abs(new.get("two").timestamp - old.get("two").timestamp) < 1e-3


def test_n_limits_and_q_prints_ids_alone(three: Rmem) -> None:
    assert len(three("list", "-n", "2", "-q").lines) == 2
    quiet = three("-q", "list", "--order", "oldest")
    assert (quiet.lines, quiet.err) == ([LONG, "two", "three"], "")
    assert three("recall", "jitter", "-n", "1", "-q").lines == ["two"]
    assert three("recall", "jitter", "--agent", "nobody", "--quiet").err == ""
    assert three("remember", "x", "--id", "four", "-q").out == "four\n"


def test_an_empty_answer_says_so(rmem: Rmem) -> None:
    rmem("remember", "one", "--id", "one")
    rmem("forget", "one", "--yes")
    for command in (("list",), ("recall", "x"), ("restore",), ("audit", "--who", "nobody"), ("export", os.devnull,
                    "--format", "jsonl")):  # fmt: skip
        answer = rmem(*command)
        assert answer.code == 0
        assert re.search(r"^(No|Nothing) ", answer.err), command


def test_force_color_colours_a_pipe_and_no_color_a_terminal_not(three: Rmem) -> None:
    assert "\x1b[" in three.process("list", FORCE_COLOR="1").out
    assert "\x1b[" not in three.process("list").out
    assert "\x1b[" in three.process("show", "nobody", FORCE_COLOR="1").err
    assert "\x1b[3" not in three.process("list", FORCE_COLOR="1", NO_COLOR="1").out
    assert "\x1b[" not in three.process("show", "nobody", FORCE_COLOR="1", NO_COLOR="1").err


def test_update_adds_tags_and_untag_removes_them(three: Rmem) -> None:
    assert three("update", "two", "--tag", "checked=yes", "--json").json["tags"] == {"repo": "pay", "checked": "yes"}
    changed = three("update", "two", "--tag", "repo=api", "--untag", "checked", "--importance", "1", "--json").json
    assert changed["tags"] == {"repo": "api"}
    assert changed["metadata"]["importance_score"] == 1
    assert three("update", "two", "--untag", "absent", "--json").json["tags"] == {"repo": "api"}
    assert three("update", "two", "--tag", "a=b", "--untag", "a").code == 2
    assert three("update", "nobody", "--tag", "a=b").code == 3
    assert three("update", "two", "--clear", "tags", "--json").json["tags"] == {}


def test_forget_in_a_pipe_needs_yes(three: Rmem) -> None:
    refused = three.process("forget", "two", "three")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err == "Error: forget would remove 2 memories and cannot ask here; add --yes\n"
    assert three("list", "-q", "--order", "oldest").lines == [LONG, "two", "three"]
    assert three.process("forget", "--faded", "--max-count", "0").code in (0, 2)
    assert three.process("forget", "two", "--yes").lines == ["two"]


# Importing


def _imported(rmem: Rmem, name: str, content: str, *options: str) -> list[dict]:
    path = rmem.home.parent / name
    path.write_text(content, "utf-8")
    for _ in range(2):  # twice doubles nothing
        answer = rmem("import", str(path), *options)
        assert answer.code == 0, answer.err
    return rmem("list", "--json", "--order", "step", "-n", "100").json["memories"]


def test_lines_with_a_text_are_imported(rmem: Rmem) -> None:
    lines = (
        '{"text": "one", "agent": "a", "tags": {"k": "v"}, "metadata": {"n": 1}}\n\n{"text": "two", "id": "second"}\n'
    )
    one, two = sorted(_imported(rmem, "notes.jsonl", lines, "--agent", "b"), key=lambda found: found["text"])
    assert (one["text"], one["agent_id"], one["tags"], one["contents"]["n"]) == ("one", "a", {"k": "v"}, 1)
    assert (two["memory_id"], two["agent_id"]) == ("second", "b")
    bad = rmem("import", "-", input='{"text": "three"}\n{"text": "four", "colour": "red"}\n')
    assert bad.code == 2
    assert "line 2" in bad.err
    assert "colour" in bad.err
    assert len(rmem("list", "-q").lines) == 2


def test_plain_text_is_imported_by_paragraph(rmem: Rmem) -> None:
    found = _imported(rmem, "notes.txt", "First line\nof one.\n\n  \nSecond.\r\n\r\n", "--type", "note")
    assert [one["text"] for one in found] == ["First line\nof one.", "Second."]
    assert {one["metadata"]["memory_type"] for one in found} == {"note"}
    assert found[0]["contents"]["source"] == "notes.txt"
    assert rmem("import", "-", "--format", "text", input="From a pipe.").code == 0


def test_markdown_is_imported_by_section(rmem: Rmem) -> None:
    text = "# Deploy\n\nUse the VPN.\n\n```\n# no heading\n```\n\n## Staging\n\n" + "A long paragraph. " * 60 + "\n\n"
    found = _imported(rmem, "NOTES.md", text + "Another paragraph. " * 60 + "\n\nOld\n---\nText\n\n## Nothing")
    assert found[0]["text"] == "Deploy\n\nUse the VPN.\n\n```\n# no heading\n```"
    assert [one["text"].split("\n\n")[0] for one in found] == [
        "Deploy",
        "Deploy > Staging",
        "Deploy > Staging",
        "Deploy > Old",
    ]
    assert found[3]["text"] == "Deploy > Old\n\nText"
    assert found[1]["contents"]["headings"] == ["Deploy", "Staging"]
    assert found[1]["text"].endswith("A long paragraph.")


def test_the_front_matter_of_markdown_is_metadata(rmem: Rmem) -> None:
    """As Jekyll, Hugo and Obsidian write it."""
    (found,) = _imported(rmem, "post.md", "---\ntitle: Deploys\ntags:\n  - vpn\n---\n\n# Deploy\n\nUse the VPN.\n")
    assert found["text"] == "Deploy\n\nUse the VPN."
    assert found["contents"]["front_matter"] == "title: Deploys\ntags:\n  - vpn"


def test_a_line_above_the_text_is_no_front_matter(rmem: Rmem) -> None:
    found = _imported(rmem, "notes.md", "---\nUse the VPN.\n\n---\nNever on Fridays: ask Ann.\n")
    assert "Use the VPN." in "\n".join(one["text"] for one in found)


def test_an_empty_table_is_imported_like_any_empty_file(rmem: Rmem) -> None:
    assert _imported(rmem, "empty.csv", "") == []


def test_a_file_of_unknown_format_is_refused_with_those_that_can_be_had(rmem: Rmem, tmp_path: Path) -> None:
    (tmp_path / "notes.docx").touch()
    assert ".csv" in rmem("import", str(tmp_path / "notes.docx")).err
    rmem("remember", "x")
    refused = rmem("export", "notes.csv").err
    assert ".parquet" in refused
    assert "text" not in refused


def test_csv_is_imported_with_other_columns_as_metadata(rmem: Rmem) -> None:
    rows = 'text,agent,ticket,importance\n"Retries, with\njitter",swe-01,4711,0.9\nPlain,,,\n'
    first, second = _imported(rmem, "notes.csv", rows)
    assert (first["text"], first["agent_id"], first["contents"]["ticket"]) == (
        "Retries, with\njitter",
        "swe-01",
        "4711",
    )
    assert first["metadata"]["importance_score"] == 0.9
    assert (second["agent_id"], second["contents"]) == ("default", {"text": "Plain"})


def test_csv_keeps_what_terminals_would_read_as_escapes(rmem: Rmem) -> None:
    text = "Roses are \x1b[0;31mred\x1b[0m, violets are blue"
    assert rmem("remember", "-", input=text).code == 0
    assert f'"{text}"' in rmem("list", "--csv").out


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_csv_of_spreadsheets_is_imported(rmem: Rmem, tmp_path: Path, delimiter: str, encoding: str) -> None:
    rows = [["text", '"a, b; c"'], ['"Käse, Brot; Wein"', "1,5"]]
    if delimiter == ",":
        rows[1][1] = '"1,5"'
    (tmp_path / "sheet.csv").write_bytes("\r\n".join(map(delimiter.join, rows)).encode(encoding))
    assert rmem("import", str(tmp_path / "sheet.csv")).code == 0
    (found,) = rmem("list", "--json").json["memories"]
    assert (found["text"], found["contents"]["a, b; c"]) == ("Käse, Brot; Wein", "1,5")


def test_csv_texts_may_be_in_any_column(rmem: Rmem, tmp_path: Path) -> None:
    path = tmp_path / "tickets.tsv"
    path.write_text("key\tsummary\nA-1\tIt burns\n", "utf-8")
    refused = rmem("import", str(path))
    assert refused.code == 2
    assert "--column" in refused.err
    assert "key, summary" in refused.err
    assert rmem("import", str(path), "--column", "summary").code == 0
    assert rmem("list", "--attr", "key=A-1", "--json").json["memories"][0]["text"] == "It burns"
    path.write_text("key\tsummary\nA-1\tIt burns\tagain\nA-2\tx\n", "utf-8")
    bad = rmem("import", str(path), "--column", "summary")
    assert "line 2: a row must have 2 cells" in bad.err
    assert rmem("list", "-q").lines.__len__() == 1


def test_every_field_has_a_place_in_a_csv_file() -> None:
    assert {*_PLAIN, *_JSON, "text", "vector"} == set(WRITABLE)


# Waiting


def test_progress_is_shown_before_the_work_has_told_anything(rmem: Rmem) -> None:
    script = "import time\nfrom rmem.cli.progress import progress\nwith progress('Embedding'):\n    time.sleep(0.9)\n"
    assert "Embedding" in rmem.on_terminal([sys.executable, "-c", script]).out


def test_an_interrupted_import_says_how_to_go_on(rmem: Rmem, tmp_path: Path) -> None:
    pipe = tmp_path / "slow.jsonl"
    os.mkfifo(pipe)
    child = subprocess.Popen(
        [*COMMAND, "import", str(pipe)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=rmem.environment(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    with pipe.open("wb"):
        time.sleep(0.2)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (130, b"")
    assert err == b"Stopped. Import it again: what is here already is not doubled.\n"


# Shells


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("rmem show t", {"two", "three"}),
        ("rmem forget two th", {"three"}),
        ("rmem update sw", {LONG}),
        ("rmem recall x --agent sw", {"swe-02"}),
        ("rmem list --type ", {"decision", "lesson", "note"}),
    ],
)
def test_the_shell_completes_ids_agents_and_types(three: Rmem, words: str, expected: set[str]) -> None:
    count = str(len(words.split()) - (not words.endswith(" ")))
    answer = three.process(_RMEM_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=count)
    assert (answer.code, answer.err) == (0, "")
    assert {line.partition(",")[2] for line in answer.lines} == expected


def test_completion_makes_no_store(rmem: Rmem) -> None:
    answer = rmem.process(_RMEM_COMPLETE="bash_complete", COMP_WORDS="rmem show x", COMP_CWORD="2")
    assert (answer.code, answer.out.strip(), answer.err) == (0, "", "")
    assert not (rmem.home / "memories.db").exists()


def test_a_missing_file_and_a_folder_are_named_before_their_format(rmem: Rmem, tmp_path: Path) -> None:
    missing, folder = rmem("import", "no-such-file"), rmem("import", str(tmp_path))
    assert (missing.code, missing.err) == (2, "Error: no-such-file cannot be read: there is no such file\n")
    assert folder.code == 2
    assert f"{tmp_path} cannot be read: it is a folder" in folder.err


@pytest.mark.parametrize("given", [("--meta", "a=1", "--meta", "a=2"), ("--meta", "a=1", "--meta", '{"a": 2}'),
                                   ("--tag", "a=1", "--tag", "a=2")])  # fmt: skip
def test_a_key_that_is_given_twice_is_refused(rmem: Rmem, given: tuple[str, ...]) -> None:
    answer = rmem("remember", "text", *given)
    assert (answer.code, answer.err) == (2, f"Error: {given[0]} a=… is given twice\n")


def test_a_server_that_cannot_be_reached_is_named_without_a_class_of_python(rmem: Rmem) -> None:
    answer = rmem("--store", "http://127.0.0.1:1", "list")
    assert answer.code == 4
    assert answer.err.splitlines()[-1] == "Error: http://127.0.0.1:1 cannot be reached: Connection refused"


@pytest.mark.parametrize("command", [("list",), ("recall", "parquet"), ("sql", "SELECT 1")])
@pytest.mark.parametrize("table", ["--csv", "--tsv"])
def test_json_and_a_table_cannot_both_be_printed(three: Rmem, command: tuple[str, ...], table: str) -> None:
    answer = three(*command, table, "--json")
    assert answer.code == 2
    assert "--json does not go with --csv and --tsv" in answer.err


def test_a_tag_given_twice_means_either_value(three: Rmem) -> None:
    three("update", "three", "--tag", "repo=api")
    both = three("list", "--tag", "repo=api", "--tag", "repo=pay", "--json").json["memories"]
    assert {one["tags"]["repo"] for one in both} == {"api", "pay"}
    assert three("list", "--tag", "repo=api", "--tag", "repo=pay", "--tag", "no=where", "--json").json["memories"] == []
