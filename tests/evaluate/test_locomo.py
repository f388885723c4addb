"""Evidence recall on a conversation small enough to know what must be found."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from rmem.errors import InputError
from rmem.evaluate.locomo import evaluate, read

_TALK = [
    ("1:56 pm on 8 May, 2023", ["Ada: I adopted a grey cat called Pixel", "Bob: My bicycle was stolen on Monday"]),
    (
        "12:09 am on 13 September, 2023",
        ["Ada: The violin lessons begin in October", "Bob: We painted the kitchen green"],
    ),
    ("9:00 am on 1 January 2024", ["Ada: Our flight to Lisbon was cancelled", "Bob: Look at this!"]),
]


def conversation(name: str = "conv-1", questions: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    talk: dict[str, Any] = {"speaker_a": "Ada", "speaker_b": "Bob"}
    for number, (when, lines) in enumerate(_TALK, 1):
        talk[f"session_{number}_date_time"] = when
        talk[f"session_{number}"] = [
            {"speaker": line.partition(": ")[0], "dia_id": f"D{number}:{turn}", "text": line.partition(": ")[2]}
            for turn, line in enumerate(lines, 1)
        ]
    talk["session_3"][1]["blip_caption"] = "a photo of a lighthouse"
    talk["session_4_date_time"] = "9:00 am on 2 January, 2024"  # the published file names days without a session
    return {"sample_id": name, "conversation": talk, "qa": deepcopy(QUESTIONS if questions is None else questions)}


QUESTIONS: list[dict[str, Any]] = [
    {"question": "Whose bicycle was stolen?", "answer": "Bob's", "evidence": ["D1:2"], "category": 4},
    {"question": "When do the violin lessons begin?", "answer": 2023, "evidence": ["D2:1"], "category": 2},
    {"question": "Which animal lives with Ada?", "evidence": ["D1:1; D3:1"], "category": 1},
    {"question": "Who saw a lighthouse?", "evidence": ["D:3:2", "D"], "category": 3},
    {"question": "When did Ada paint the kitchen?", "evidence": ["D2:2"], "category": 5},
    {"question": "Nobody knows", "evidence": ["D", "D9:9"], "category": 1},
    {"question": "Nothing to find", "evidence": [], "category": 4},
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.json"
    path.write_text(json.dumps([conversation()]), encoding="utf-8")
    return path


def test_turns_become_memories_with_date_speaker_session_and_caption(file: Path) -> None:
    (found,) = read(file)
    assert len(found.turns) == 6
    first = found.turns[1, 1]
    assert first["text"] == "I adopted a grey cat called Pixel"
    assert (first["agent"], first["actor"], first["session"]) == ("conv-1", "Ada", "session_1")
    assert first["when"].isoformat() == "2023-05-08T13:56:00"
    assert found.turns[2, 1]["when"].isoformat() == "2023-09-13T00:09:00"
    assert found.turns[3, 2]["text"] == "Look at this! [image: a photo of a lighthouse]"


def test_malformed_evidence_is_read_and_unknown_turns_are_left_out(file: Path) -> None:
    (found,) = read(file)
    evidence = {question.text: sorted(question.evidence) for question in found.questions}
    assert evidence["Which animal lives with Ada?"] == [(1, 1), (3, 1)]
    assert evidence["Who saw a lighthouse?"] == [(3, 2)]
    assert evidence["Nobody knows"] == []


def test_the_report_has_exactly_the_documented_shape(file: Path) -> None:
    report = evaluate(file)
    assert list(report) == ["embedder", "granularity", "recall", "questions", "skipped"]
    assert (report["questions"], report["skipped"]) == (5, 2)
    assert report["granularity"] == "turn"
    assert report["embedder"].startswith("static")
    assert set(report["recall"]) == {"1-4", "5", "all", "1", "2", "3", "4"}
    for found in report["recall"].values():
        assert list(found) == ["1", "5", "10", "20", "50"]
        assert list(found.values()) == sorted(found.values())
        assert found["50"] == 100.0  # there are six turns in all
    assert json.loads(json.dumps(report)) == report


def test_a_clear_question_finds_its_turn_first(file: Path) -> None:
    recall = evaluate(file)["recall"]
    assert recall["4"]["1"] == 100.0
    assert recall["2"]["1"] == 100.0
    assert recall["1"]["1"] <= 50.0  # of two pieces of evidence the first hit can be only one


def test_by_session_the_session_counts(file: Path) -> None:
    report = evaluate(file, granularity="session")
    assert report["granularity"] == "session"
    assert report["recall"]["4"]["1"] == 100.0
    assert all(found["5"] == 100.0 for found in report["recall"].values())  # there are three sessions


def test_conversations_do_not_see_each_other(tmp_path: Path) -> None:
    path = tmp_path / "two.json"
    asked = [QUESTIONS[0]]
    path.write_text(json.dumps([conversation("a", asked), conversation("b", asked)]))
    report = evaluate(path)
    assert report["questions"] == 2
    assert report["recall"]["1-4"]["1"] == 100.0
    assert report["recall"]["1-4"]["50"] == 100.0
    assert evaluate(path, limit_conversations=1)["questions"] == 1


def test_categories_without_questions_have_no_figure(tmp_path: Path) -> None:
    path = tmp_path / "few.json"
    path.write_text(json.dumps([conversation(questions=[QUESTIONS[0]])]))
    assert evaluate(path)["recall"]["5"]["10"] is None


def test_progress_counts_every_question(file: Path) -> None:
    seen: list[tuple[int, int]] = []
    evaluate(file, on_progress=lambda done, total: seen.append((done, total)))
    assert seen == [(number, 7) for number in range(1, 8)]


@pytest.mark.parametrize(
    ("data", "part"),
    [
        ("not json", "not a JSON file"),
        ("{}", "a list of conversations"),
        ("[]", "a list of conversations"),
        ("[1]", "conversation 0"),
        ('[{"sample_id": "x"}]', "conversation of conversation 0"),
        ('[{"sample_id": "x", "conversation": {}, "qa": []}]', "no turns"),
        ('[{"sample_id": 5, "conversation": {}, "qa": []}]', "sample_id"),
    ],
)
def test_a_file_of_another_kind_is_refused_with_the_reason(tmp_path: Path, data: str, part: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(data)
    with pytest.raises(InputError, match=part):
        evaluate(path)


def test_damaged_conversations_are_refused_with_the_place(tmp_path: Path) -> None:
    path = tmp_path / "damaged.json"

    def refused(change: Any, part: str) -> None:
        sample = conversation()
        change(sample)
        path.write_text(json.dumps([sample]))
        with pytest.raises(InputError, match=part):
            evaluate(path)

    refused(lambda one: one["conversation"].update(session_1_date_time="8.5.2023"), "session_1_date_time")
    refused(lambda one: one["conversation"].update(session_1_date_time="1:56 pm on 31 June, 2023"), "session_1_date")
    refused(lambda one: one["conversation"]["session_2"][0].pop("dia_id"), "dia_id of session_2")
    refused(lambda one: one["conversation"]["session_2"][0].update(text=""), "text of session_2")
    refused(lambda one: one["conversation"]["session_2"][0].pop("speaker"), "speaker of session_2")
    refused(lambda one: one["conversation"].update(session_2="words"), "a turn of session_2")
    refused(lambda one: one["qa"][0].update(category=9), "category")
    refused(lambda one: one["qa"][0].pop("question"), "question")
    refused(lambda one: one.update(qa=[1]), "a question of conv-1")
    path.write_text(json.dumps([conversation(), conversation()]))
    with pytest.raises(InputError, match="sample_id must be different"):
        evaluate(path)


def test_missing_files_and_wrong_options_are_refused(file: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        evaluate(tmp_path / "missing.json")
    with pytest.raises(InputError, match="granularity"):
        evaluate(file, granularity="word")
    with pytest.raises(InputError, match="limit_conversations"):
        evaluate(file, limit_conversations=0)
