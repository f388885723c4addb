"""Judgements: what is said of hits stays in the store, and the figures follow from it."""

from __future__ import annotations

import pickle
import time
from datetime import datetime

import pytest

from rmem import Brain
from rmem.errors import InputError
from rmem.evaluate.online import drift, report, window
from rmem.feedback import Feedback
from rmem.stores.base import RecordStore
from rmem.stores.memory import InMemoryRecordStore

MONDAY = datetime(2026, 5, 4, 12).timestamp()
DAY = 86_400.0


class Noted(InMemoryRecordStore):
    """A store that knows no judgements of its own, as most plugins will."""

    add_feedback = RecordStore.add_feedback
    feedback = RecordStore.feedback
    remove_feedback = RecordStore.remove_feedback


@pytest.fixture(params=["memory", "sqlite", "noted"])
def brain(request, tmp_path):
    store = {"memory": ":memory:", "sqlite": tmp_path / "m.db", "noted": Noted()}[request.param]
    with Brain(store) as brain:
        brain.remember("Parquet it is, CSV is dropped", id="m1", agent="swe-01", type="decision")
        brain.remember("The parquet floor is old", id="m2", agent="swe-02", type="fact")
        yield brain


def judged(recall, useful, rank=1, when=MONDAY, agent="a", kind="fact", memory="m"):
    return Feedback(recall, memory if rank else "", "why?", agent, kind, rank, 0.5, useful, when)


def test_a_hit_knows_its_rank_and_its_recall(brain):
    hits = brain.recall("parquet")
    assert [hit.rank for hit in hits] == [1, 2]
    assert {hit.recall_id for hit in hits} == {hits.recall_id}
    assert brain.recall("parquet").recall_id != hits.recall_id


def test_feedback_are_kept_with_what_they_are_about(brain):
    hits = brain.recall("csv or parquet?")
    started = time.time()
    hits[0].useful()
    hits[1].useful(False)
    first, second = brain.store.feedback()
    assert (first.recall_id, first.memory_id, first.question) == (hits.recall_id, "m1", "csv or parquet?")
    assert (first.agent, first.type, first.rank, first.useful) == ("swe-01", "decision", 1, True)
    assert first.score == pytest.approx(hits[0].score)
    assert started <= first.time <= second.time
    assert (second.memory_id, second.rank, second.useful) == ("m2", 2, False)
    assert brain.store.feedback(since=time.time() + 1) == []


def test_a_later_judgement_of_the_same_hit_takes_the_place_of_the_first(brain):
    hit = brain.recall("parquet")[0]
    hit.useful()
    hit.useful(False)
    assert [one.useful for one in brain.store.feedback()] == [False]


def test_a_recall_is_judged_by_its_id_too(brain):
    hits = brain.recall("parquet")
    told = brain.feedback(hits.recall_id, memory_id="m2", useful=True)
    assert brain.store.feedback() == [told]
    assert told.rank == [hit.memory.memory_id for hit in hits].index("m2") + 1
    brain.feedback(hits, memory_id="m1", useful=False)
    assert len(brain.store.feedback()) == 2


def test_an_answer_without_anything_useful_counts_as_a_miss(brain):
    nothing = brain.recall("parquet", where={"agent": "nobody", "type": "fact"})
    assert nothing == []
    nothing.useless()
    brain.feedback(brain.recall("floor").recall_id, useful=False)
    first, second = brain.store.feedback()
    assert (first.memory_id, first.rank, first.useful, first.agent, first.type) == ("", 0, False, "nobody", "fact")
    assert second.agent == ""
    assert report(brain.store.feedback())["overall"] == {
        "recalls": 2, "hits": 0, "success_rate": 0.0, "hit_ratio": None, "mrr": 0.0,
    }  # fmt: skip


def test_a_hit_that_went_to_another_process_is_judged_there(brain):
    hits = pickle.loads(pickle.dumps(brain.recall("parquet")))
    with pytest.raises(InputError, match=r"brain\.feedback\(hit\)"):
        hits[0].useful()
    brain.feedback(hits[0])
    assert brain.store.feedback()[0].question == "parquet"


def test_what_cannot_be_judged_is_refused(brain):
    hits = brain.recall("parquet")
    for call, part in (
        (lambda: brain.feedback("no-such-recall", memory_id="m1"), "recalled must be a Hit"),
        (lambda: brain.feedback(5), "recalled must be a Hit"),
        (lambda: brain.feedback(hits.recall_id, memory_id="m9"), "memory_id must be one of"),
        (lambda: brain.feedback(hits.recall_id), "memory_id must name the hit"),
        (lambda: brain.feedback(hits[0], memory_id="m9"), "memory_id must be the hit's own"),
        (lambda: hits[0].useful("yes"), "useful must be True or False"),
    ):
        with pytest.raises(InputError, match=part):
            call()
    assert brain.store.feedback() == []


def test_the_owner_of_a_store_decides_what_is_kept_of_questions(brain):
    for wish, kept in (("text", "parquet"), ("hash", None), ("none", None)):
        brain.store.set_meta("judged_questions", wish)
        brain.recall("parquet")[0].useful()
        question = brain.store.feedback()[-1].question
        if wish == "hash":
            assert question
            assert "parquet" not in question
        else:
            assert question == kept


def test_a_recall_that_nobody_judges_writes_nothing(tmp_path):
    with Brain(tmp_path / "m.db") as brain:
        brain.remember("something")
        size = brain.store.stats().bytes
        for _ in range(300):
            brain.recall("something", touch=False)
        assert brain.store.stats().bytes == size
        assert brain.store.feedback() == []


def test_a_forgotten_memory_takes_its_feedback_along(tmp_path):
    for address in (":memory:", tmp_path / "m.db"):
        with Brain(address) as brain:
            brain.remember("Parquet it is", id="m1")
            brain.recall("parquet")[0].useful()
            brain.forget("m1")
            assert brain.store.feedback() == []


def test_feedback_outlive_the_process_and_reach_other_processes(tmp_path):
    with Brain(tmp_path / "m.db") as brain, Brain(tmp_path / "m.db") as other:
        brain.remember("Parquet it is", id="m1")
        brain.recall("parquet")[0].useful()
        assert len(other.store.feedback()) == 1
    with Brain(tmp_path / "m.db") as again:
        assert again.store.feedback()[0].memory_id == "m1"


# The figures


def test_rates_are_taken_over_recalls_and_over_hits():
    found = report(
        [
            judged("r1", False, 1, memory="x"),
            judged("r1", True, 2),
            judged("r2", True, 4),
            judged("r3", False, 1),
            judged("r4", False, 0),
        ]
    )
    assert found["overall"] == {
        "recalls": 4, "hits": 4, "success_rate": 0.5, "hit_ratio": 0.5, "mrr": (0.5 + 0.25) / 4,
    }  # fmt: skip
    assert found["drift"] is None


def test_each_agent_and_type_has_its_own_figures():
    given = [
        judged("r1", True, agent="ana", kind="fact"),
        judged("r1", False, 2, agent="bo", kind="plan"),
        judged("r2", True, 2, agent="ana", kind="plan"),
    ]
    groups = {(one["agent"], one["type"]): one for one in report(given)["groups"]}
    assert set(groups) == {("ana", "fact"), ("ana", "plan"), ("bo", "plan")}
    assert groups["ana", "plan"]["mrr"] == 0.5
    assert groups["bo", "plan"]["success_rate"] == 0.0
    assert report(given, agent=["ana"])["overall"]["hits"] == 2
    assert report(given, agent=["ana"], type=["plan"])["overall"]["hits"] == 1


def test_windows_are_local_days_or_weeks_from_monday():
    assert window(MONDAY, "day").isoformat() == "2026-05-04"
    assert window(MONDAY + 6 * DAY, "week").isoformat() == "2026-05-04"
    assert window(MONDAY + 7 * DAY, "week").isoformat() == "2026-05-11"
    given = [judged("r1", True), judged("r2", True, when=MONDAY + DAY), judged("r3", True, when=MONDAY + 8 * DAY)]
    assert [one["from"] for one in report(given, by="week")["windows"]] == ["2026-05-04", "2026-05-11"]
    assert len(report(given, by="day")["windows"]) == 3
    with pytest.raises(InputError, match="by"):
        report(given, by="month")


def test_drift_is_told_when_it_is_more_than_luck():
    good = [judged(f"g{n}", n % 10 != 0) for n in range(60)]
    bad = [judged(f"b{n}", n % 3 == 0, when=MONDAY + 7 * DAY) for n in range(60)]
    told = drift([*good, *bad], "week")
    assert told["direction"] == "worse"
    assert (told["before"], told["last"], told["recalls"]) == ("2026-05-04", "2026-05-11", [60, 60])
    assert told["measures"]["success_rate"]["change"] == pytest.approx(20 / 60 - 54 / 60)
    assert told["measures"]["success_rate"]["p"] < 0.01
    better = [judged(f"c{n}", True, when=MONDAY + 14 * DAY) for n in range(60)]
    assert drift([*good, *bad, *better], "week")["direction"] == "better"


def test_luck_is_not_called_drift():
    same = [judged(f"a{n}", n % 4 != 0) for n in range(40)]
    again = [judged(f"b{n}", n % 4 != 1, when=MONDAY + 7 * DAY) for n in range(41)]
    assert drift([*same, *again], "week")["direction"] == "steady"
    assert drift([judged("x", True), judged("y", False, when=MONDAY + 7 * DAY)], "week")["direction"] == "steady"


def test_who_is_forgotten_is_forgotten_in_questions_too(brain):
    brain.recall("what did Ana Lopez say of parquet?")[0].useful()
    brain.recall("parquet", where={"agent": "swe-02"})[0].useful()
    brain.recall("lopez").useless()
    brain.recall("csv")[0].useful()
    assert brain.forget(subject="lopez", dry_run=True) == []
    assert len(brain.store.feedback()) == 4
    brain.forget(subject="lopez")
    assert [one.question for one in brain.store.feedback()] == ["parquet", "csv"]
    brain.forget(subject="swe-02")
    assert [one.question for one in brain.store.feedback()] == ["csv"]


def test_an_erased_memory_takes_its_feedback_along_in_every_store(brain):
    hits = brain.recall("parquet")
    hits[0].useful()
    hits[1].useful()
    brain.forget(hits[0].memory.memory_id)
    assert [one.memory_id for one in brain.store.feedback()] == [hits[1].memory.memory_id]
