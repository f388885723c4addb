"""Forgetting: the curve, pruning with a grace period, erasing a subject, and a log of it all."""

from __future__ import annotations

import math
import time
from pathlib import Path

import pytest

from rmem import Brain
from rmem.errors import InputError
from rmem.memory_builder import build_memory
from rmem.stores.sql import audit
from rmem.stores.sql.sqlite import SqliteRecordStore
from rmem.tiers.forgetting import DAY, ForgettingPolicy


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memories.db"


def aged(brain: Brain, text: str, days: float, **more) -> str:
    """A memory that was kept and last used so many days ago."""
    memory = build_memory(text=text, **more)
    then = time.time() - days * DAY
    memory.timestamp = memory.bookkeeping.creation_time = memory.bookkeeping.last_access_time = then
    return brain.keep([memory])[0].memory_id


def bytes_on_disk(path: Path) -> bytes:
    return b"".join(part.read_bytes() for part in sorted(path.parent.iterdir()) if part.is_file())


def test_retention_falls_with_time_and_slower_with_importance_and_use():
    policy = ForgettingPolicy()
    curve = [policy.retention(0.5, days) for days in (0, 1, 7, 30, 365)]
    assert curve[0] == 1.0
    assert curve == sorted(curve, reverse=True)
    assert policy.retention(1.0, 30) > policy.retention(0.0, 30)
    assert policy.retention(0.5, 30, recalls=5) > policy.retention(0.5, 30, recalls=1) > policy.retention(0.5, 30)
    assert ForgettingPolicy(stability=7, importance_weight=0).retention(0, 7) == pytest.approx(0.3679, abs=1e-4)


def test_nothing_is_pruned_unless_a_policy_says_so(path):
    with Brain(path) as brain:
        aged(brain, "an old story", 4000, importance=0.0)
        assert brain.prune(ForgettingPolicy()) == []
        assert brain.stats()["memories"] == 1


def test_faded_memories_are_pruned_and_can_be_restored(path):
    with Brain(path) as brain:
        old = aged(brain, "the old mill burned down", 300, importance=0.1)
        pinned = aged(brain, "never forget the mill", 300, importance=0.1)
        brain.pin(pinned)
        new = brain.remember("the mill is being rebuilt").memory_id
        policy = ForgettingPolicy(below=0.05)
        assert [key for key, _ in brain.prune(policy, dry_run=True)] == [old]
        assert brain.stats()["memories"] == 3
        assert [key for key, _ in brain.prune(policy)] == [old]
        assert {hit.memory.memory_id for hit in brain.recall("mill")} == {pinned, new}
        assert [one.memory.memory_id for one in brain.store.aside()] == [old]
    with Brain(path) as brain:
        (back,) = brain.restore(old, "never there")
        assert back.text == "the old mill burned down"
        assert old in {hit.memory.memory_id for hit in brain.recall("mill burned")}
        assert brain.store.aside() == []
        assert "pinned" not in brain.pin(pinned, False).tags


def test_a_budget_prunes_the_most_faded_first_and_no_more(path):
    with Brain(path) as brain:
        ids = [aged(brain, f"note number {n}", days, importance=0.5) for n, days in enumerate((90, 10, 50, 30, 70))]
        assert [key for key, _ in brain.prune(ForgettingPolicy(max_count=3), dry_run=True)] == [ids[0], ids[4]]
        size = sum(trace.bytes for trace in brain.store.traces())
        chosen = brain.prune(ForgettingPolicy(max_bytes=size - 1), dry_run=True)
        assert [key for key, _ in chosen] == [ids[0]]


def test_young_memories_are_never_pruned(path):
    with Brain(path) as brain:
        for n in range(5):
            brain.remember(f"fresh {n}", importance=0.0)
        assert brain.prune(ForgettingPolicy(below=1.0, max_count=0)) == []


def test_what_was_used_lately_is_kept(path):
    with Brain(path) as brain:
        aged(brain, "how to sharpen a scythe", 200, importance=0.1)
        used = aged(brain, "how to mend a net", 200, importance=0.1)
        brain.recall("mend a net", k=1)
        assert used not in {key for key, _ in brain.prune(ForgettingPolicy(below=0.05), dry_run=True)}


def test_useless_recalls_do_not_keep_a_memory(path):
    with Brain(path) as brain:
        aged(brain, "how to mend a net", 40, importance=0.5)
        for useful in (True, False, True):
            brain.recall("mend a net", k=1)[0].useful(useful)
        (trace,) = brain.store.traces()
        assert trace.recalls == 2


def test_after_the_grace_period_it_is_gone_for_good(path):
    with Brain(path) as brain:
        old = aged(brain, "xylophonist quarrelled vociferously", 300, importance=0.0)
        brain.prune(ForgettingPolicy(below=0.05, grace_days=1e-9))
        time.sleep(0.01)
        brain.prune(ForgettingPolicy())
        assert brain.store.aside() == []
        assert brain.restore(old) == []
        assert b"xylophonist" not in bytes_on_disk(path)
    assert b"xylophonist" not in bytes_on_disk(path)


def test_forgotten_data_is_gone_from_the_file(path):
    """Also from the words of a segment and from the log of pages."""
    with Brain(path) as brain:
        brain.remember_many([{"text": f"ordinary note number {n}"} for n in range(2500)])
        secret = brain.remember("zygomorphic marzipan", tags={"who": "quetzal"}, metadata={"code": "brillig"})
        brain.remember_many([{"text": f"another ordinary note {n}"} for n in range(2500)])
        assert b"zygomorphic" in bytes_on_disk(path)
        assert brain.forget(secret.memory_id)
    raw = bytes_on_disk(path)
    for word in (b"zygomorph", b"marzipan", b"quetzal", b"brillig"):
        assert word not in raw
    with Brain(path) as brain:
        assert brain.stats()["memories"] == 5000


def test_forgetting_a_subject_removes_all_that_concerns_it(path):
    with Brain(path) as brain:
        brain.remember("the report is done", agent="ann")
        brain.remember("I will call Ann tomorrow", agent="ben")
        brain.remember("lunch was fine", agent="ben", actor="ann")
        brain.remember("meeting notes", agent="ben", metadata={"attendees": ["Ann", "Cleo"]})
        brain.remember("tagged", agent="ben", tags={"owner": "ann"})
        aged(brain, "ann once sang", 300, importance=0.0, agent="ben")
        brain.prune(ForgettingPolicy(below=0.05))
        kept = {
            brain.remember("an annual review", agent="ben").memory_id,
            brain.remember("Joanna called", agent="ben").memory_id,
        }
        told = brain.forget(subject="ann", dry_run=True)
        assert len(told) == 6
        assert brain.stats()["memories"] == 7
        assert brain.forget(subject="ann") == told
        assert {memory.memory_id for memory in brain.memories()} == kept
        assert b"call Ann" not in bytes_on_disk(path)
        log = brain.store.audit()
        assert len([entry for entry in log if entry.detail == {"reason": "subject"}]) == 6
        assert not any("ann" in (entry.memory or "") for entry in log if entry.detail == {"reason": "subject"})


def test_every_removal_is_in_the_audit_log_and_tampering_shows(path, monkeypatch):
    monkeypatch.setenv("RMEM_USER", "tester")
    with Brain(path) as brain:
        one = brain.remember("one").memory_id
        two = aged(brain, "two", 300, importance=0.0)
        brain.forget(one)
        brain.prune(ForgettingPolicy(below=0.05))
        brain.restore(two)
        told = [(entry.who, entry.action, entry.memory) for entry in reversed(brain.store.audit())]
        assert told == [("tester", "forget", one), ("tester", "set aside", two), ("tester", "restore", two)]
        assert [entry.action for entry in brain.store.audit(memory=two, limit=1)] == ["restore"]
        assert brain.store.broken_audit() == []
    for damage, found in (
        ("UPDATE audit SET who = 'somebody else' WHERE n = 2", [2]),
        ("DELETE FROM audit WHERE n = 1", [2]),
        ("DELETE FROM audit WHERE n = 3", [3]),
    ):
        with SqliteRecordStore(path) as store:
            chain = store.audit_chain
            store._writer.between(
                lambda connection, damage=damage, found=found, chain=chain: _damaged(connection, damage, found, chain)
            )


def _damaged(connection, damage, found, chain):
    """Do damage, see that it shows, and undo it."""
    connection.execute("BEGIN")
    connection.execute(damage)
    assert list(audit.broken(connection, 3, chain)) == found
    connection.execute("ROLLBACK")


def test_a_restored_id_that_is_in_use_again_stays_aside(path):
    with Brain(path) as brain:
        aged(brain, "the first", 300, importance=0.0, id="x")
        brain.prune(ForgettingPolicy(below=0.05))
        brain.remember("the second", id="x")
        assert brain.restore("x") == []
        assert brain.get("x").text == "the second"
        assert len(brain.store.aside()) == 1


def test_importance_fades_only_where_nobody_looks(path):
    with Brain(path) as brain:
        old = aged(brain, "old", 90, importance=0.8)
        low = aged(brain, "low", 90, importance=0.05)
        new = brain.remember("new", importance=0.8).memory_id
        assert brain.decay_importance(0.5) == 1
        assert [brain.get(key).importance for key in (old, low, new)] == [0.4, 0.05, 0.8]


@pytest.mark.parametrize(
    ("policy", "field"),
    [
        ({"below": 2}, "below"),
        ({"below": True}, "below"),
        ({"max_count": -1}, "max_count"),
        ({"grace_days": float("nan")}, "grace_days"),
        ({"growth": 0.5}, "growth"),
        ({"belov": 0.1}, "belov"),
        ("all", "policy"),
    ],
)
def test_a_bad_policy_is_refused_by_name(path, policy, field):
    with Brain(path) as brain, pytest.raises(InputError, match=field):
        brain.prune(policy)


@pytest.mark.parametrize(
    "written", ["José Müller", "jose muller", "JOSÉ MÜLLER", "Jose\u0301 Mu\u0308ller", "José\u00a0Müller"]
)
@pytest.mark.parametrize("asked", ["José Müller", "Jose Muller"])
def test_a_subject_is_forgotten_however_the_name_is_written(path, written, asked):
    with Brain(path, embedder="none") as brain:
        named = [
            brain.remember(f"the desk of {written} is by the window").memory_id,
            brain.remember("a note", metadata={"who": {written: 3}}).memory_id,
            brain.remember("said something", actor=written).memory_id,
        ]
        brain.remember("Josef Müllerin is somebody else")
        assert sorted(brain.forget(subject=asked)) == sorted(named)
        assert brain.stats()["memories"] == 1


def test_forget_wants_an_id_or_a_subject(path):
    with Brain(path) as brain:
        for call in (lambda: brain.forget(), lambda: brain.forget("x", subject="y")):
            with pytest.raises(InputError, match="subject"):
                call()


def test_a_store_in_memory_prunes_for_good_only():
    with Brain(":memory:") as brain:
        aged(brain, "old", 300, importance=0.0)
        assert len(brain.prune(ForgettingPolicy(below=0.05, grace_days=0))) == 1
        assert brain.stats()["memories"] == 0


@pytest.mark.parametrize("address", ["file", ":memory:"])
def test_age_counts_from_the_time_that_a_memory_is_about(path, address):
    with Brain(path if address == "file" else address) as brain:
        then = time.time() - 300 * DAY
        old = brain.remember("the old mill burned down", when=then, importance=0.0).memory_id  # kept just now
        used = brain.remember("how to mend a net", when=then, importance=0.0).memory_id
        brain.remember("the fair is next month", when=time.time() + 30 * DAY, importance=0.0)
        brain.recall("mend a net", k=1)
        assert {trace.memory_id: round((time.time() - trace.when) / DAY) for trace in brain.store.traces()}[old] == 300
        assert [key for key, _ in brain.prune(ForgettingPolicy(below=0.05), dry_run=True)] == [old]
        gone = brain.prune(ForgettingPolicy(max_count=0, grace_days=0))
        assert [key for key, _ in gone] == [old, used]  # what is still to come has not faded


@pytest.mark.parametrize("address", ["file", ":memory:"])
def test_age_can_be_counted_in_steps(path, address):
    with Brain(path if address == "file" else address) as brain:
        for agent, steps in (("walker", 1001), ("sitter", 3)):
            for step in range(0, steps, 100 if steps > 100 else 1):
                brain.remember(f"{agent} saw {step}", agent=agent, step=step, importance=0.0, id=f"{agent}-{step}")
        policy = ForgettingPolicy(below=math.exp(-6.5 / 7), steps_per_day=100)
        chosen = dict(brain.prune(policy, dry_run=True))
        assert list(chosen) == [f"walker-{step}" for step in (0, 100, 200, 300)]  # seven days behind, or more
        assert chosen["walker-0"] == pytest.approx(math.exp(-10 / 7))
        young = ForgettingPolicy(below=1.0, min_age_days=8, steps_per_day=100)
        assert [key for key, _ in brain.prune(young, dry_run=True)] == ["walker-0", "walker-100", "walker-200"]
        with pytest.raises(InputError, match="steps_per_day must be"):
            ForgettingPolicy(steps_per_day=0)
