"""`rmem privacy`, and a policy from the environment for the commands that write."""

from __future__ import annotations

import subprocess
from pathlib import Path

LABELLED = str(Path(__file__).parents[1] / "privacy" / "labelled.tsv")


def test_check_shows_what_is_found_and_what_is_kept(rmem):
    answer = rmem("privacy", "check", "mail anna@example.org from 203.0.112.9")
    assert answer.code == 0
    assert answer.lines[-1] == "mail [email] from [ip]"
    assert "anna" not in answer.out


def test_check_reads_standard_input_and_answers_in_json(rmem):
    answer = rmem("privacy", "check", "-", "--json", input="token=" + "gl" + "pat-" + "x1" * 10)
    assert answer.json["kept"] == "token=[secret]"
    assert [(one["kind"], one["start"], one["action"]) for one in answer.json["findings"]] == [("secret", 6, "mask")]


def test_check_of_a_clean_text_gives_it_back(rmem):
    assert rmem("privacy", "check", "nothing", "here").lines == ["nothing here"]


def test_check_uses_the_policy_of_the_environment(rmem, monkeypatch, tmp_path):
    policy = tmp_path / "policy.json"
    policy.write_text('{"actions": {"email": "block"}}')
    monkeypatch.setenv("RMEM_PRIVACY", str(policy))
    assert rmem("privacy", "check", "to anna@example.org").lines[-1] == "refused"
    assert rmem("privacy", "check", "to anna@example.org", "--json").json["kept"] is None


def test_eval_tells_recall_and_precision_by_kind(rmem):
    answer = rmem("privacy", "eval", LABELLED, "--part", "all", "--wrong")
    assert answer.code == 0
    assert "RECALL" in answer.lines[0]
    result = rmem("privacy", "eval", LABELLED, "--json").json
    assert result["part"] == "test"
    assert result["by_kind"]["email"]["recall"] >= 0.95
    assert result["samples"] == {"labelled.tsv": 186}


def test_eval_reads_the_files_and_the_log_of_a_clone(rmem, tmp_path):
    clone = tmp_path / "clone"
    clone.mkdir()
    (clone / "a.py").write_text("x = 1\npassword = 'Tr0ub4dor&3'\n")
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "took 123456789 ns"]):
        subprocess.run(
            ["git", "-C", str(clone), "-c", "user.name=A", "-c", "user.email=a@b.co", *arguments], check=True
        )
    result = rmem("privacy", "eval", str(clone), "--json").json
    assert result["real_text"]["source code"]["findings"] == {"secret": 1}
    assert result["real_text"]["git log"]["findings"] == {"email": 1}
    assert [one["source"] for one in result["alarms"] if one["kind"] == "secret"] == ["clone/a.py:2"]
    told = rmem("privacy", "eval", str(clone), "--wrong")
    assert "clone/a.py:2: secret (assignment)" in told.out
    assert "Tr0ub4dor" not in told.out


def test_eval_refuses_what_it_cannot_read(rmem, tmp_path):
    assert rmem("privacy", "eval").code == 2
    assert "missing.tsv is neither" in rmem("privacy", "eval", "missing.tsv").err
    assert "must be a clone of gitleaks" in rmem("privacy", "eval", str(tmp_path)).err
    assert rmem("privacy", "eval", LABELLED, "--part", "half").code == 2
    bad = tmp_path / "bad.tsv"
    bad.write_text("no tab here\n")
    assert "line 1" in rmem("privacy", "eval", str(bad)).err
    bad.write_text("x\t{{secret:nonsense}}\n")
    assert "secret:nonsense" in rmem("privacy", "eval", str(bad)).err


def test_bench_tells_megabytes_per_second(rmem):
    result = rmem("privacy", "bench", "--megabytes", "0.05", "--json").json
    assert result["clean"]["found"] == 0
    assert result["mixed"]["found"] > 0
    assert rmem("privacy", "bench", "--megabytes", "0").code == 2
    assert "MB PER SECOND" in rmem("privacy", "bench", "--megabytes", "0.02").out


def test_remember_import_and_update_follow_the_environment(rmem, monkeypatch, tmp_path):
    monkeypatch.setenv("RMEM_PRIVACY", "default")
    assert rmem("remember", "to anna@example.org", "--id", "m").code == 0
    assert rmem("update", "m", "--text", "from bob@example.org").code == 0
    shown = rmem("show", "m", "--json")
    assert shown.json["text"] == "from [email]"
    for path in (tmp_path / "home").iterdir():
        assert b"example.org" not in path.read_bytes()


def test_a_blocked_memory_is_bad_input(rmem, monkeypatch, tmp_path):
    policy = tmp_path / "policy.json"
    policy.write_text('{"actions": {"email": "block"}}')
    monkeypatch.setenv("RMEM_PRIVACY", str(policy))
    answer = rmem("remember", "to anna@example.org", "--json")
    assert answer.code == 2
    assert answer.error["type"] == "PrivacyError"
    assert answer.error["field"] == "text"
    assert "anna" not in answer.err
