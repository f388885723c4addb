"""`rmem eval recall`: sets of any kind, counted as the format says, beside plain baselines."""

from __future__ import annotations

import gzip
import json

import pytest

from rmem.errors import InputError
from rmem.evaluate.offline import Setting
from rmem.evaluate.recall_sets import MEASURES, PlainBM25, evaluate, fuse, plot

TEXTS = [
    "the harbour master lost his keys",
    "a kingfisher dived into the harbour",
    "lunch is at noon",
    "the office closes at eight",
    "keys are in the drawer of the office",
]


def written(path, stores, **more):
    data = json.dumps({"name": path.name.partition(".")[0], "unit": "memory", "stores": stores, **more}).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def store(*questions, sessions=(None, None, None, None, None)):
    memories = [{"text": text, "session": session} for text, session in zip(TEXTS, sessions, strict=True)]
    return {"memories": memories, "questions": [{"question": q, "relevant": r, **more} for q, r, more in questions]}


def test_measures_are_those_of_the_places_that_were_right(tmp_path):
    path = written(
        tmp_path / "small.json.gz",
        [store(("kingfisher", [1], {}), ("keys", [0, 4], {}), ("zeppelin", [2], {}), ("nothing", [], {}))],
    )
    report = evaluate([path], settings=Setting("words", mode="lexical"))
    (one,) = report["sets"]
    assert (one["name"], one["questions"], one["measured"]) == ("small", 4, 3)
    assert list(one["systems"]) == ["words", "bm25", "rrf"]
    found = one["systems"]["words"]
    assert found["r@1"] == pytest.approx(2 / 3)
    assert found["r@10"] == found["all@5"] == pytest.approx(2 / 3)
    assert found["mrr"] == pytest.approx(2 / 3)
    assert [row["mrr"] for row in one["by_question"]["words"]] == [1, 1, 0]
    assert report["mean"]["words"] == found


def test_hits_may_count_by_session_and_questions_may_ask_in_one(tmp_path):
    sessions = ("a", "a", "b", "b", "b")
    asked = [("keys", [0], {}), ("keys", [4], {"session": "b"})]
    by_memory = written(tmp_path / "memory.json", [store(*asked, sessions=sessions)])
    by_session = written(tmp_path / "session.json", [store(*asked, sessions=sessions)], unit="session")
    report = evaluate([by_memory, by_session], settings=Setting("words", mode="lexical"), baselines=False)
    memory, session = (one["by_question"]["words"] for one in report["sets"])
    assert memory[1]["r@1"] == 1, "only the memory of the session that was asked can come"
    assert session[0]["all@5"] == 1


def test_a_folder_stands_for_its_sets_and_two_settings_are_compared(tmp_path):
    for name in ("one", "two"):
        written(tmp_path / f"{name}.json", [store(*[(text, [at], {}) for at, text in enumerate(TEXTS)])])
    report = evaluate([tmp_path], settings=Setting("words", mode="lexical"), against=Setting("default"))
    assert [one["name"] for one in report["sets"]] == ["one", "two"]
    assert set(report["sets"][0]["comparison"]) == set(MEASURES)
    picture = plot(report)
    assert picture.startswith("<svg")
    assert picture.count("<rect") == 3 * 4


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"{", "must be a set of questions in JSON"),
        (b"[]", "must hold stores with memories and questions"),
        (b'{"unit": "page", "stores": []}', "unit must be"),
        (b'{"stores": [{"memories": [{"text": ""}], "questions": []}]}', "memories\\[0\\].text"),
        (b'{"stores": [{"memories": [{"text": "a"}], "questions": [{"question": "a", "relevant": [1]}]}]}', "relevant"),
    ],
)
def test_a_wrong_set_is_refused_by_file_and_field(tmp_path, content, told):
    path = tmp_path / "set.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"set\.json.*{told}"):
        evaluate([path])
    with pytest.raises(InputError, match=r"none\.json cannot be read: No such file or directory"):
        evaluate([tmp_path / "none.json"])
    path = tmp_path / "cut.json.gz"
    path.write_bytes(gzip.compress(b"{}" * 100)[:-12])
    with pytest.raises(InputError, match=r"cut\.json\.gz must be a set of questions in JSON"):
        evaluate([path])
    with pytest.raises(InputError, match="must hold sets"):
        evaluate([tmp_path / "empty"] if (tmp_path / "empty").mkdir() is None else [])


def test_baselines_are_the_plain_ones():
    words = PlainBM25([*TEXTS, "我在北京大学学习"])
    assert words.rank("the kingfisher", range(6))[0] == 1
    assert words.rank("北京", range(6))[0] == 5
    assert words.rank("keys", [2, 4]) == [4, 2]
    assert fuse([[1, 2, 3], [3, 1]])[0] == 1
