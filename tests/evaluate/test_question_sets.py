"""Question sets: the format is checked line by line, and the measures are the textbook ones."""

from __future__ import annotations

import json
import math

import pytest

from rmem import Brain
from rmem.errors import InputError, UnknownFieldError
from rmem.evaluate.measures import gains, measure
from rmem.evaluate.offline import Setting, evaluate
from rmem.evaluate.question_sets import read
from rmem.testing import synthetic_memories

MEMORIES = [
    {"id": "m1", "text": "Parquet it is, CSV is dropped", "agent": "swe-01"},
    {"id": "m2", "text": "The ETL job runs at six", "agent": "swe-01"},
    {"id": "m3", "text": "The ETL job was killed by OOM", "agent": "swe-02"},
    "The kingfisher dived into the harbour",
    "Lunch is at noon",
    "The office closes at eight",
]


def written(path, *items):
    path.write_text("".join(f"{json.dumps(item)}\n" for item in items), encoding="utf-8")
    return path


@pytest.fixture
def file(tmp_path):
    return written(
        tmp_path / "questions.jsonl",
        {"memories": MEMORIES},
        {"question": "csv or parquet?", "relevant": ["m1"]},
        {"question": "what happened to the ETL job?", "relevant": ["m2", "m3"]},
        {"question": "which bird dived?", "relevant": ["The kingfisher dived into the harbour"]},
        {"question": "the ETL job", "relevant": {"m3": 2}, "where": {"agent": "swe-02"}, "now": "2026-05-01"},
    )


def test_a_file_with_its_own_memories_is_measured(file):
    seen = []
    report = evaluate(file, depths=(1, 5), on_progress=lambda done, total: seen.append((done, total)))
    assert report["questions"] == report["measured"] == 4
    assert report["skipped"] == report["missing"] == 0
    (setting,) = report["settings"]
    assert setting["name"] == "default"
    assert list(setting["measures"]) == ["recall@1", "ndcg@1", "recall@5", "ndcg@5", "mrr"]
    assert setting["measures"]["recall@5"] == 1.0
    assert setting["measures"]["recall@1"] == pytest.approx((1 + 0.5 + 1 + 1) / 4)
    assert setting["measures"]["mrr"] == 1.0
    assert seen == [(number, 4) for number in range(1, 5)]
    assert "comparison" not in report


def test_measures_are_the_textbook_ones():
    wanted, grades = {"a": 0, "b": 1, "c": 2}, [1.0, 3.0, 1.0]
    found = gains(["x", "b", "a", "y"], wanted, grades)
    assert found == [0, 3, 1, 0]
    result = measure(found, grades, (1, 3))
    assert result["recall@1"] == 0
    assert result["recall@3"] == pytest.approx(2 / 3)
    ideal = 3 + 1 / math.log2(3) + 1 / 2
    assert result["ndcg@3"] == pytest.approx((3 / math.log2(3) + 1 / 2) / ideal)
    assert result["mrr"] == 0.5


def test_of_memories_with_the_same_text_one_is_enough():
    assert gains(["a1", "a2"], {"a1": 0, "a2": 0}, [1.0]) == [1.0, 0.0]


def test_a_file_without_memories_asks_a_store_and_leaves_it_as_it_is(tmp_path):
    path = written(
        tmp_path / "questions.jsonl",
        {"question": "which bird dived?", "relevant": ["bird", "gone"]},
        {"question": "nothing of this is there", "relevant": ["also gone"]},
        {"question": "who has tea?", "relevant": ["Tea is at four."]},
    )
    with Brain(tmp_path / "m.db") as brain:
        brain.remember_many(list(synthetic_memories(200)))
        brain.remember("The kingfisher dived into the harbour", id="bird")
        brain.remember("Tea is at four.", id="t1")
        brain.remember("Tea is at four.", id="t2")
        report = evaluate(path, brain=brain)
        assert (report["measured"], report["skipped"], report["missing"]) == (2, 1, 2)
        assert report["settings"][0]["measures"]["recall@10"] == 1.0
        assert brain.get("bird").bookkeeping.retrieval_count == 0
        with pytest.raises(InputError, match="embedder must be left out"):
            evaluate(path, brain=brain, settings=Setting.of("x", {"embedder": "static"}))
    with pytest.raises(InputError, match="contains no memories"):
        evaluate(path)


def test_two_settings_are_compared_question_by_question(tmp_path):
    memories = list(synthetic_memories(200, seed=5))
    items = [{"memories": [{"id": f"m{at}", "text": one["text"]} for at, one in enumerate(memories)]}]
    for at in range(0, 200, 4):
        rare = sorted(memories[at]["text"].split(), key=len)[-2:]
        items.append({"question": " ".join(rare), "relevant": [f"m{at}"]})
    path = written(tmp_path / "set.jsonl", *items)
    blind = Setting.of("blind", {"similar": 1000, "dense": 0})  # other words count more
    report = evaluate(path, depths=(1, 10), against=blind)
    assert [one["name"] for one in report["settings"]] == ["default", "blind"]
    told = report["comparison"]["mrr"]
    assert told["better"] == "first"
    assert told["p"] < 0.05
    assert told["low"] <= told["difference"] <= told["high"]
    first, second = (one["measures"]["mrr"] for one in report["settings"])
    assert told["difference"] == pytest.approx(first - second)
    assert evaluate(path, depths=(1, 10), against=blind)["comparison"] == report["comparison"]
    swapped = evaluate(path, depths=(1, 10), settings=blind, against=Setting("default"))
    assert swapped["comparison"]["mrr"]["better"] == "second"
    same = evaluate(path, depths=(1,), against=Setting("default"))["comparison"]["recall@1"]
    assert (same["better"], same["p"], same["changed"]) == (None, 1.0, 0)


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("{not json", r"line 2: not JSON"),
        ("[1]", r"line 2: a line must be an object"),
        ("{}", r"line 2: a line must have a question or memories"),
        ('{"question": "x"}', r"line 2: relevant must be a list of ids or texts"),
        ('{"question": "x", "relevant": []}', r"line 2: relevant must be"),
        ('{"question": "x", "relevant": [5]}', r"line 2: relevant\[0\] must be a text, got 5"),
        ('{"question": "x", "relevant": {"a": 0}}', r"line 2: relevant\['a'\] must be"),
        ('{"question": "x", "relevant": {"a": "much"}}', r"line 2: relevant\['a'\] must be"),
        ('{"question": " ", "relevant": ["a"]}', r"line 2: question must"),
        ('{"question": 5, "relevant": ["a"]}', r"line 2: question must be a text, got 5"),
        ('{"question": "x", "relevant": ["a"], "wher": {}}', r"line 2: .*wher.*"),
        ('{"question": "x", "relevant": ["a"], "where": {"agnt": "b"}}', r"line 2: where: .*agnt"),
        ('{"question": "x", "relevant": ["a"], "where": []}', r"line 2: where must be an object"),
        ('{"question": "x", "relevant": ["a"], "now": "never ever"}', r"line 2: now must be"),
        ('{"memories": "x"}', r"line 2: memories must be a list"),
        ('{"memories": ["x", 5]}', r"line 2: memories\[1\] must be a text or an object"),
        ('{"memories": [{"id": "x"}]}', r"line 2: memories\[0\].text must be a text"),
        ('{"memories": ["x"], "relevant": ["x"]}', r"line 2: relevant needs a question on the same line"),
    ],
)
def test_an_error_names_the_line_and_the_field(tmp_path, line, part):
    path = tmp_path / "bad.jsonl"
    path.write_text('{"question": "x", "relevant": ["a"]}\n' + line + "\n")
    with pytest.raises(InputError, match=part):
        read(path)


def test_files_that_cannot_be_measured_are_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        evaluate(tmp_path / "missing.jsonl")
    (tmp_path / "latin.jsonl").write_bytes(b'{"question": "\xe9"}\n')
    with pytest.raises(InputError, match="UTF-8"):
        evaluate(tmp_path / "latin.jsonl")
    with pytest.raises(InputError, match="at least one question"):
        evaluate(written(tmp_path / "none.jsonl", {"memories": ["x"]}))
    with pytest.raises(InputError, match="line 2: relevant names 'y'"):
        evaluate(written(tmp_path / "y.jsonl", {"memories": ["x"]}, {"question": "x", "relevant": ["y"]}))
    bad = {"memories": ["y", {"text": "x", "colour": "blue"}], "question": "x", "relevant": ["x"]}
    with pytest.raises(InputError, match=r"line 2: memories: .*colour"):
        evaluate(written(tmp_path / "colour.jsonl", {"memories": ["w"]}, bad))


def test_settings_and_depths_are_checked(file):
    with pytest.raises(UnknownFieldError, match="densse"):
        Setting.of("a", {"densse": 1})
    with pytest.raises(InputError, match="mode"):
        Setting.of("a", {"mode": "psychic"})
    with pytest.raises(InputError, match="dense"):
        Setting.of("a", {"dense": 7})
    with pytest.raises(InputError, match="k must"):
        evaluate(file, depths=[0])
    with pytest.raises(InputError, match="k must"):
        evaluate(file, depths=[])
