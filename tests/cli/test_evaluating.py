"""`rmem eval FILE.jsonl` and `rmem eval online`, as a shell sees them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from rmem_runner import Rmem

from rmem import Brain

LINES = (
    {"memories": [{"id": "m1", "text": "Parquet it is, CSV is dropped"}, "Lunch is at noon", "The job runs at six"]},
    {"question": "csv or parquet?", "relevant": ["m1"]},
    {"question": "when is lunch?", "relevant": ["Lunch is at noon"]},
)


def written(path: Path, *items: object) -> str:
    path.write_text("".join(f"{json.dumps(item)}\n" for item in items), encoding="utf-8")
    return str(path)


@pytest.fixture
def file(tmp_path: Path) -> str:
    return written(tmp_path / "questions.jsonl", *LINES)


@pytest.fixture
def judged(rmem: Rmem) -> Rmem:
    with Brain(rmem.home / "memories.db") as brain:
        brain.remember("Parquet it is, CSV is dropped", agent="swe-01", type="decision")
        brain.remember("The parquet floor was polished", agent="swe-02", type="fact")
        hits = brain.recall("csv or parquet?")
        hits[0].useful()
        hits[1].useful(False)
        brain.recall("what of the floor?", where={"agent": "swe-02"})[0].useful()
    return rmem


def test_a_question_set_is_measured(rmem: Rmem, file: str) -> None:
    answer = rmem("eval", file, "--k", "1,3")
    assert answer.code == 0, answer.err
    assert answer.lines[0].split() == ["MEASURE", "default"]
    assert answer.lines[1].split() == ["recall@1", "1.000"]
    assert answer.lines[-1].endswith(", 2 questions")
    assert rmem("eval", "--k", "1,3", file).out == answer.out
    assert rmem("eval", "file", file, "--k", "1,3").out == answer.out
    assert list(rmem("eval", file, "--json").json["settings"][0]["measures"]) == [
        "recall@5", "ndcg@5", "recall@10", "ndcg@10", "mrr",
    ]  # fmt: skip


def test_two_settings_are_compared_in_a_table(rmem: Rmem, file: str, tmp_path: Path) -> None:
    (tmp_path / "tuned.json").write_text('{"dense": 0.7}')
    answer = rmem("eval", file, "--settings", "tuned.json", "--against", "default")
    assert answer.code == 0, answer.err
    assert "BETTER" in answer.lines[0]
    assert "tuned.json" in answer.lines[0]
    assert all(line.endswith("no clear difference") for line in answer.lines[1:-1])
    told = rmem("eval", file, "--settings", "dense=0.7,mode=hybrid", "--against", "mode=lexical", "--json").json
    assert [one["name"] for one in told["settings"]] == ["dense=0.7,mode=hybrid", "mode=lexical"]
    assert set(told["comparison"]["mrr"]) == {"difference", "low", "high", "p", "changed", "better"}


def test_a_set_without_memories_asks_the_store(rmem: Rmem, tmp_path: Path) -> None:
    file = written(tmp_path / "q.jsonl", {"question": "csv?", "relevant": ["d-1", "gone"]})
    missing = rmem("eval", file)
    assert missing.code == 4
    assert "there is no store" in missing.err
    rmem("remember", "Parquet it is, CSV is dropped", "--id", "d-1")
    answer = rmem("eval", file, "--json")
    assert answer.code == 0, answer.err
    assert answer.json["missing"] == 1
    assert answer.json["settings"][0]["measures"]["mrr"] == 1.0
    assert "1 relevant memories are not in the store" in rmem("eval", file).out


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("nowhere.jsonl",), "cannot be read"),
        (("questions.jsonl", "--k", "five"), "--k must be whole numbers"),
        (("questions.jsonl", "--k", "0"), "k must be"),
        (("questions.jsonl", "--settings", "densse=1"), "densse"),
        (("questions.jsonl", "--settings", "missing.json"), "--settings must be a JSON file"),
        (("questions.jsonl", "--against", "bad.json"), "is not JSON"),
        (("questions.jsonl", "--against", "list.json"), "an object of settings"),
        (("questions.jsonl", "--store", "x.db"), "--store must be left out"),
        (("online", "--by", "month"), "month"),
        (("online", "--since", "never ever"), "since must be"),
    ],
)
def test_wrong_arguments_are_exit_code_2(
    rmem: Rmem, file: str, tmp_path: Path, arguments: tuple[str, ...], part: str
) -> None:
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "list.json").write_text("[1]")
    answer = rmem("eval", *arguments)
    assert answer.code == 2
    assert part in answer.err


def test_a_wrong_line_is_named(rmem: Rmem, tmp_path: Path) -> None:
    file = written(tmp_path / "bad.jsonl", LINES[1], {"question": "x", "relevant": []})
    answer = rmem("eval", file, "--json")
    assert answer.code == 2
    assert "line 2: relevant must be" in answer.error["message"]
    assert answer.error["field"] == "relevant"


def test_feedback_are_shown_by_window_agent_and_type(judged: Rmem) -> None:
    answer = judged("eval", "online")
    assert answer.code == 0, answer.err
    assert answer.lines[0].split()[:2] == ["WEEK", "FROM"]
    assert answer.lines[-1].split()[:6] == ["all", "2", "3", "1.000", "0.667", "1.000"]
    assert any(line.split()[:2] == ["swe-02", "fact"] for line in answer.lines)
    told = judged("eval", "online", "--agent", "swe-02", "--by", "day", "--json").json
    assert told["overall"] == {"recalls": 2, "hits": 2, "success_rate": 0.5, "hit_ratio": 0.5, "mrr": 0.5}
    assert judged("eval", "online", "--type", "decision", "--json").json["overall"]["hits"] == 1
    assert judged("eval", "online", "--since", "2100-01-01", "--json").json["overall"]["recalls"] == 0


def test_a_terminal_gets_tables(judged: Rmem, file: str) -> None:
    assert "─" in judged.terminal("eval", "online").out
    assert "─" in judged.terminal("eval", file).out


def test_without_feedback_a_note_says_how_to_judge(rmem: Rmem) -> None:
    answer = rmem("eval", "online")
    assert answer.code == 0
    assert "hit.useful()" in answer.err


@pytest.mark.parametrize("name", ["file", "online"])
def test_each_measure_teaches_by_example(rmem: Rmem, name: str) -> None:
    answer = rmem("eval", name, "--help")
    assert answer.code == 0
    assert "rmem eval" in answer.out
    assert "--json" in answer.out


@pytest.fixture
def history(tmp_path: Path) -> tuple[str, str]:
    """A clone with one fix, and a file of prompts over it."""
    root = tmp_path / "etl"
    (root / "etl").mkdir(parents=True)
    git = ["git", "-C", str(root), "-c", "user.name=n", "-c", "user.email=n@acme.io"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    (root / "etl" / "carrier.py").write_text("def load(row):\n    return row.get('carrier_code')\n")
    subprocess.run([*git, "add", "-A"], check=True)
    told = "Fix KeyError of carrier_code in the import\n\nParcels have no carrier."
    subprocess.run([*git, "commit", "-q", "-m", told], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout[:12]
    error = {"repository": "acme/etl", "kind": "error", "prompt": "KeyError: 'carrier_code'", "answers": [commit]}
    nothing = {"repository": "acme/etl", "kind": "nothing", "prompt": "write a haiku about the sea", "answers": []}
    return str(root), written(tmp_path / "prompts.jsonl", error, nothing)


def test_what_the_team_memory_tells_is_measured_on_a_repository(rmem: Rmem, history: tuple[str, str]) -> None:
    root, prompts = history
    answer = rmem("eval", "team", "--repository", root, "--prompts", prompts, "--mistakes")
    assert answer.code == 0, answer.err
    assert answer.lines[0].split() == ["REPOSITORY", "PRECISION", "RECALL", "SHOWN", "ANYWAY", "FIRST", "THREE"]
    assert answer.lines[1].startswith("acme/etl")
    assert answer.lines[1].endswith("1.000 (1 of 1)")
    assert "BAR" in answer.out
    found = rmem("eval", "team", "--repository", root, "--prompts", prompts, "--bar", "0", "--json").json
    assert found["all"]["recall"] == {"value": 1.0, "right": 1, "of": 1}
    assert [point["bar"] for point in found["curve"]][:2] == [0.0, 0.1]
    assert not (rmem.home / "memories.db").exists()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--repository", "ROOT"], "Missing option '--prompts'"),
        (["--prompts", "PROMPTS"], "Missing option '--repository'"),
        (["--repository", "ROOT", "--prompts", "PROMPTS", "--sessions", "vim=here"], "--sessions must be"),
    ],
)
def test_what_an_evaluation_of_the_team_memory_needs(
    rmem: Rmem, history: tuple[str, str], options: list[str], complaint: str
) -> None:
    given = {"ROOT": history[0], "PROMPTS": history[1]}
    answer = rmem("eval", "team", *(given.get(word, word) for word in options))
    assert answer.code != 0
    assert complaint in answer.err


def test_facts_that_replace_others_are_measured(rmem: Rmem, tmp_path: Path) -> None:
    sets = [
        {
            "name": "capitals",
            "facts": ["The capital of France is Paris."],
            "questions": [{"question": "What is the capital of France?", "answers": ["Paris"]}],
        }
    ]
    (tmp_path / "sets.json").write_text(json.dumps(sets), encoding="utf-8")
    answer = rmem("eval", "facts", str(tmp_path / "sets.json"))
    assert answer.code == 0, answer.err
    assert answer.lines[1].split() == ["capitals", "100.0", "100.0", "1", "1"]
    told = rmem("eval", "facts", str(tmp_path / "sets.json"), "--json").json
    assert told["sets"][0]["first"] == 1.0
