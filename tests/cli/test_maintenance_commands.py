"""Export, import, backup, doctor, reindex and eval from the command line. What they do is tested beside the code."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from rmem_runner import Rmem


@pytest.fixture
def three(rmem: Rmem) -> Rmem:
    for number in range(1, 4):
        rmem(
            "remember",
            f"memory number {number} – größer",
            "--id",
            f"m-{number}",
            "--type",
            f"t{number}",
            "--session",
            "s",
        )
    return rmem


@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet"])
def test_an_exported_file_fills_another_store(three: Rmem, name: str) -> None:
    done = three("export", name, "--json")
    assert done.json["memories"] == 3
    assert done.json["format"] == name.partition(".")[2]
    taken = three("--store", "new.db", "import", name, "--json").json
    assert (taken["imported"], taken["replaced"], taken["vectors_kept"]) == (3, 0, 3)
    for number in (1, 2, 3):
        assert three("--store", "new.db", "show", f"m-{number}", "--json", "--vectors").json == (
            three("show", f"m-{number}", "--json", "--vectors").json
        )
    again = three("--store", "new.db", "import", name)
    assert "3 of them in place of older ones" in again.out
    assert three("--store", "new.db", "stats", "--json").json["memories"] == 3


def test_two_stores_joined_by_a_pipe(three: Rmem) -> None:
    sent = three.process("export", "-", "--type", "t1", "--type", "t2")
    assert sent.err == ""
    three.process("--store", "new.db", "import", "-", input=sent.out)
    assert three("--store", "new.db", "list", "--json").json["total"] == 2


def test_a_bad_line_is_named_and_nothing_is_imported(three: Rmem, tmp_path: Path) -> None:
    three("export", "out.jsonl")
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    lines[2] = lines[2].replace('"step_number":', '"stepnumber":')
    (tmp_path / "bad.jsonl").write_text("\n".join(lines))
    answer = three("--store", "new.db", "import", "bad.jsonl")
    assert answer.code == 2
    assert "line 3" in answer.err
    assert len(answer.err.splitlines()) == 1
    assert three("--store", "new.db", "stats", "--json").json["memories"] == 0


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("export", "out.csv"), "format"),
        (("export", "no/such/folder/out.jsonl"), "cannot be written"),
        (("export", "-", "--format", "csv"), "csv"),
        (("import", "missing.jsonl"), "cannot be read"),
        (("import", "."), "it is a folder"),
        (("import", ".", "--format", "jsonl"), "cannot be read"),
        (("export", "home/memories.db", "--format", "jsonl"), "the store itself"),
    ],
)
def test_files_that_cannot_be_used_are_exit_code_2(three: Rmem, arguments: tuple[str, ...], part: str) -> None:
    answer = three(*arguments)
    assert answer.code == 2
    assert part in answer.err
    assert three("stats", "--json").json["memories"] == 3


def test_exporting_a_store_that_is_not_there_is_exit_code_4(rmem: Rmem, tmp_path: Path) -> None:
    assert rmem("--store", "mistyped.db", "export", "out.jsonl").code == 4
    assert not list(tmp_path.glob("out.jsonl*"))


def test_parquet_without_pyarrow_says_what_to_install(three: Rmem) -> None:
    script = "import sys; sys.modules['pyarrow'] = None; from rmem.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script, "export", "out.parquet"], capture_output=True, text=True, env=three.environment()
    )
    assert done.returncode == 2
    assert 'pip install "rmem[parquet]"' in done.stderr


def test_a_backup_is_a_store(three: Rmem) -> None:
    done = three("backup", "copy.db", "--json").json
    assert done["memories"] == 3
    assert three("--store", "copy.db", "recall", "number 2", "--json").json["hits"]
    again = three("backup", "copy.db")
    assert again.code == 2
    assert "copy.db" in again.err
    assert three("--store", "mistyped.db", "backup", "other.db").code == 4


def test_doctor_finds_a_sound_store_sound(three: Rmem) -> None:
    answer = three("doctor", "--json")
    assert answer.code == 0
    assert answer.json["ok"] is True
    assert {"name", "ok", "detail"} == answer.json["findings"][0].keys()
    assert all(line.startswith("ok") for line in three("doctor").lines)


def test_doctor_finds_stale_terms_and_repairs_what_is_derived(three: Rmem) -> None:
    with sqlite3.connect(three.home / "memories.db") as connection:
        connection.execute("UPDATE notes SET value = '0' WHERE key = 'analyser'")
    connection.close()
    answer = three("doctor")
    assert answer.code == 6
    assert any(line.startswith("PROBLEM") for line in answer.lines)
    assert "--repair" in answer.err
    repaired = three("doctor", "--repair", "--json")
    assert repaired.code == 0
    assert repaired.json["repaired"]
    assert three("doctor").code == 0
    assert three("recall", "number", "--mode", "lexical", "--json").json["hits"]


def test_doctor_of_a_missing_store_is_exit_code_6_and_makes_none(rmem: Rmem) -> None:
    assert rmem("doctor").code == 6
    assert not rmem.home.exists()


def test_reindex_embeds_every_memory_anew(three: Rmem) -> None:
    done = three("reindex", "--json").json
    assert done["memories"] == 3
    assert done["embedder"].startswith("static")
    assert "memories" in three("reindex", "--embedder", "static").out
    assert three("reindex", "--embedder", "nonsense").code == 2
    assert three("--store", "mistyped.db", "reindex").code == 4


def test_eval_locomo_prints_a_table_or_json(rmem: Rmem, tmp_path: Path) -> None:
    turns = [
        {"speaker": "Ada", "dia_id": "D1:1", "text": "I adopted a grey cat"},
        {"speaker": "Bob", "dia_id": "D1:2", "text": "My bicycle was stolen"},
    ]
    talk = {"session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": turns}
    asked = [{"question": "Whose bicycle was stolen?", "answer": "Bob", "evidence": ["D1:2"], "category": 4}]
    (tmp_path / "tiny.json").write_text(json.dumps([{"sample_id": "c-1", "conversation": talk, "qa": asked}]))
    result = rmem("eval", "locomo", "tiny.json", "--json").json
    assert result["recall"]["1-4"]["10"] == 100.0
    out = rmem("eval", "locomo", "tiny.json", "--granularity", "session").out
    assert "R@10" in out
    assert "100.0" in out
    assert "1 questions" in out
    (tmp_path / "other.json").write_text("[]")
    assert rmem("eval", "locomo", "other.json").code == 2
    assert rmem("eval", "locomo", "missing.json").code == 2
