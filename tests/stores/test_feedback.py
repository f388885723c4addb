"""What is said of hits changes later rankings: for questions alike, within bounds, and as explained."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from rmem import Brain
from rmem.feedback import Feedback
from rmem.recall.settings import RecallSettings

TEXTS = {
    "monday": "The nightly backup of the billing database runs on Monday at two in the morning",
    "tuesday": "The nightly backup of the billing database was moved to Tuesday after the outage",
    "restore": "How to restore the billing database from the nightly backup: use pg_restore",
    "lunch": "Lunch on Friday is at the Italian place around the corner",
    "deploy": "Deployments of the web shop need two approvals since March",
    "cat": "The office cat is called Ada and sleeps on the printer",
}
QUESTION = "When does the nightly backup of the billing database run?"
MOST = RecallSettings().feedback


def fill(brain: Brain) -> None:
    brain.remember_many([{"id": key, "text": text} for key, text in TEXTS.items()])


@pytest.fixture(params=["memory", "sqlite", "postgres", "redis"])
def brain(request, tmp_path):
    """A filled Brain over each store."""
    if request.param == "redis":
        address = request.getfixturevalue("open_store")()
    elif request.param == "postgres":
        address = request.getfixturevalue("postgres_url")
    else:
        address = {"memory": ":memory:", "sqlite": tmp_path / "m.db"}[request.param]
    with Brain(address) as brain:
        fill(brain)
        yield brain


def order(brain: Brain, question: str = QUESTION, **options: object) -> list[str]:
    return [hit.id for hit in brain.recall(question, k=6, touch=False, **options)]


def scores(brain: Brain, question: str = QUESTION) -> dict[str, float]:
    return {hit.id: hit.score for hit in brain.recall(question, k=6, touch=False)}


def test_a_memory_that_was_useful_rises_for_the_same_question_and_one_like_it(brain):
    before, last = scores(brain), order(brain)[1]
    brain.feedback(brain.recall(QUESTION, k=6), memory_id=last, useful=True)
    assert order(brain)[0] == last
    assert scores(brain)[last] - before[last] == pytest.approx(MOST / 2, abs=1e-4)
    alike = "when will the nightly backup of the billing database run"
    told = {hit.id: hit.explanation.components.get("feedback", 0.0) for hit in brain.recall(alike, k=6, explain=True)}
    assert 0 < told[last] < MOST / 2


def test_a_memory_that_was_wrong_falls(brain):
    first = order(brain)[0]
    brain.recall(QUESTION)[0].useful(False)
    assert order(brain)[0] != first


def test_another_question_is_answered_as_before_to_the_last_bit(brain):
    other = "Who sleeps on the printer?"
    before = scores(brain, other)
    brain.recall(QUESTION)[1].useful()
    assert scores(brain, other) == before


def test_a_first_hit_that_is_passed_over_again_and_again_falls_a_little(brain):
    first, third = order(brain)[0], order(brain)[2]
    before = scores(brain)[first]
    for _ in range(3):
        brain.feedback(brain.recall(QUESTION, k=6), memory_id=third, useful=True)
    lost = before - scores(brain)[first]
    assert 0 < lost < MOST / 2
    assert sum(one.passed_over for one in brain.store.feedback()) >= 1


def test_what_is_said_moves_no_score_beyond_the_bound(brain):
    before = scores(brain)
    for _ in range(20):
        hits = brain.recall(QUESTION, k=6)
        brain.feedback(hits, memory_id="lunch", useful=True)
        brain.feedback(hits, memory_id="monday", useful=False)
    after = scores(brain)
    assert max(abs(after[key] - before[key]) for key in before) < MOST
    assert after["lunch"] - before["lunch"] > 0.9 * MOST


def test_feedback_goes_with_its_memory(brain):
    hits = brain.recall(QUESTION, k=6)
    brain.feedback(hits, memory_id="tuesday", useful=True)
    raised = scores(brain)["tuesday"]
    when = brain.get("tuesday").when
    brain.forget("tuesday")
    brain.remember(TEXTS["tuesday"], id="tuesday", when=when)
    assert scores(brain)["tuesday"] < raised - MOST / 4
    assert not [one for one in brain.store.feedback() if one.memory_id == "tuesday"]


def test_a_forgotten_subject_takes_the_feedback_on_questions_about_them_along(brain):
    question = "Where does Ada sleep?"
    before = scores(brain, question)
    brain.feedback(brain.recall(question, k=6), memory_id="lunch", useful=True)
    assert scores(brain, question) != before
    brain.forget(subject="Ada")
    assert not brain.store.feedback()
    assert all("feedback" not in hit.explanation.components for hit in brain.recall(question, k=6, explain=True))


def test_it_can_be_turned_off_and_leaves_plain_modes_alone(brain):
    plain = {mode: order(brain, mode=mode) for mode in ("lexical", "vector")}
    off = order(brain, settings={"feedback": 0})
    brain.feedback(brain.recall(QUESTION, k=6), memory_id="lunch", useful=True)
    assert {mode: order(brain, mode=mode) for mode in ("lexical", "vector")} == plain
    assert order(brain, settings={"feedback": 0}) == off


def test_the_parts_of_a_score_still_add_up_to_it(brain):
    brain.recall(QUESTION)[1].useful()
    for hit in brain.recall(QUESTION, k=6, explain=True):
        assert sum(hit.explanation.components.values()) == pytest.approx(hit.score, abs=1e-3)
    assert "feedback +0.75" in str(brain.recall(QUESTION, explain=True)[0].explanation)


def test_another_process_learns_from_it(tmp_path: Path) -> None:
    with Brain(tmp_path / "m.db") as brain, Brain(tmp_path / "m.db") as other:
        fill(brain)
        second = order(other)[1]
        brain.feedback(brain.recall(QUESTION, k=6), memory_id=second, useful=True)
        assert order(other)[0] == second
        when = brain.get(second).when
        brain.forget(second)
        brain.remember(TEXTS[second], id=second, when=when)
        assert order(other)[0] != second


def test_a_verdict_that_is_taken_back_counts_as_what_was_said_last(brain):
    hit = brain.recall(QUESTION)[1]
    hit.useful()
    raised = scores(brain)[hit.id]
    hit.useful(False)
    assert scores(brain)[hit.id] == pytest.approx(raised - MOST, abs=1e-4)


def test_of_a_hashed_question_only_the_same_one_is_known_again(tmp_path: Path) -> None:
    with Brain(tmp_path / "m.db") as brain:
        fill(brain)
        brain.store.set_meta("judged_questions", "hash")
        second = order(brain)[1]
        brain.recall(QUESTION)[1].useful()
        assert order(brain)[0] == second
        like = brain.recall(QUESTION.replace("When does", "When will"), k=6, explain=True)
        assert all("feedback" not in hit.explanation.components for hit in like)


def test_feedback_of_an_older_version_counts(tmp_path: Path) -> None:
    with Brain(tmp_path / "m.db") as brain:
        fill(brain)
        second = order(brain)[1]
        brain.recall(QUESTION)[1].useful()
        brain.store.write(lambda connection: connection.execute("DELETE FROM notes WHERE key LIKE 'feedback%'"))
    with Brain(tmp_path / "m.db") as brain:
        assert order(brain)[0] == second


def test_ten_thousand_verdicts_cost_little_once_they_are_read(tmp_path: Path) -> None:
    with Brain(tmp_path / "m.db") as brain:
        fill(brain)
        brain.store.add_feedback(
            [
                Feedback(f"r{n}", "cat", f"{n} questions on {n % 97} things", "a", "m", 1, 0.5, True, 1.0 + n)
                for n in range(10_000)
            ]
        )
        order(brain)
        learned = brain._learned
        started = time.thread_time()
        for _ in range(50):
            learned.evidence(brain.store, QUESTION)
        assert (time.thread_time() - started) / 50 < 0.002
