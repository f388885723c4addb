"""Recall measured on facts that later facts replace."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from rmem.errors import InputError
from rmem.evaluate.fact_sets import evaluate

SETS = [
    {
        "name": "capitals",
        "facts": ["The capital of France is Paris.", "Keats died in the city of Rome."],
        "questions": [
            {"question": "What is the capital of France?", "answers": ["paris"]},
            {"question": "What is the capital of Atlantis?", "answers": ["Poseidonis"]},
        ],
    }
]


def test_answers_are_looked_for_in_the_first_hit_and_in_ten(tmp_path: Path) -> None:
    path = tmp_path / "sets.json.gz"
    path.write_bytes(gzip.compress(json.dumps(SETS).encode()))
    steps: list[tuple[int, int]] = []
    (told,) = evaluate([path], on_progress=lambda done, total: steps.append((done, total)))["sets"]
    assert (told["name"], told["first"], told["among ten"]) == ("capitals", 0.5, 0.5)
    assert [row["first"] for row in told["by_question"]] == [1.0, 0.0]
    assert steps == [(1, 2), (2, 2)]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("no json", "must be sets of facts and questions in JSON"),
        ('{"a": 1}', "must be a list of sets"),
        ('[{"name": "x", "facts": [""], "questions": []}]', "facts"),
        ('[{"name": "x", "facts": ["a"], "questions": [{"question": "b"}]}]', "answers"),
    ],
)
def test_what_is_no_set_of_facts_is_refused(tmp_path: Path, given: str, message: str) -> None:
    path = tmp_path / "sets.json"
    path.write_text(given, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        evaluate([path])


def test_a_folder_is_read_file_by_file(tmp_path: Path) -> None:
    for number in range(2):
        named = [{**SETS[0], "name": f"set {number}"}]
        (tmp_path / f"{number}.json").write_text(json.dumps(named), encoding="utf-8")
    assert [one["name"] for one in evaluate([tmp_path])["sets"]] == ["set 0", "set 1"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="must hold sets of questions"):
        evaluate([tmp_path / "empty"])


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sets.json.gz").write_bytes(gzip.compress(json.dumps(SETS).encode())[:-20])
    with pytest.raises(InputError, match="must be sets of facts and questions"):
        evaluate([tmp_path / "sets.json.gz"])
