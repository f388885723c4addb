"""How long facts hold, checked against a slow and simple reading of the rules over random histories."""

import time

from hypothesis import given
from hypothesis import strategies as st

from rmem.facts.model import DATED, LIKELY, NEGATED, STATED, SURE, StoredFact
from rmem.graph.validity import resolve


def fact(seq, object_, start, *, negated=False, dated=False, confidence=SURE, until=None):
    flags = NEGATED * negated | DATED * dated
    return StoredFact(
        seq, 0, 1, 2, object_, flags, confidence, 0, 0, start, until, start, "s", "r", str(object_),
        f"m{seq}", "a", None, None,
    )  # fmt: skip


histories = st.lists(
    st.tuples(
        st.integers(1, 3), st.integers(0, 6), st.booleans(), st.booleans(), st.sampled_from([LIKELY, SURE, STATED])
    ),
    max_size=8,
).map(
    lambda drawn: [
        fact(seq, object_, float(start), negated=negated, dated=dated, confidence=confidence)
        for seq, (object_, start, negated, dated, confidence) in enumerate(drawn)
    ]
)


@given(histories, st.integers(0, 7))
def test_of_a_single_valued_relation_equals_in_trust_never_hold_together(facts, now):
    found = resolve(facts, single=True, ends={})
    contested = {frozenset((first.seq, second.seq)) for first, second in found.conflicts}
    holding = [one.fact for one in found.periods if one.holds_at(now) and not one.fact.negated]
    for first in holding:
        for second in holding:
            if first.object != second.object and first.confidence == second.confidence >= SURE:
                assert frozenset((first.seq, second.seq)) in contested


@given(histories)
def test_nothing_trusted_less_ends_anything_and_nothing_ends_before_it_begins(facts):
    for period in resolve(facts, single=True, ends={}).periods:
        if period.ended_by is not None:
            assert period.ended_by.confidence >= period.fact.confidence
        assert period.until is None or period.until >= period.fact.valid_from


@given(histories)
def test_many_values_are_ended_by_denials_alone(facts):
    for period in resolve(facts, single=False, ends={}).periods:
        if period.ended_by is not None:
            assert period.ended_by.negated != period.fact.negated
            assert period.ended_by.object == period.fact.object


@given(histories, st.randoms())
def test_the_order_of_reading_does_not_matter(facts, random):
    shuffled = list(facts)
    random.shuffle(shuffled)
    assert resolve(shuffled, single=True, ends={}) == resolve(facts, single=True, ends={})


def test_a_hub_of_many_values_is_not_compared_with_itself():
    facts = [fact(seq, seq, float(seq)) for seq in range(20_000)] + [fact(20_000, 7, 20_000.0, negated=True)]
    begun = time.process_time()
    found = resolve(facts, single=False, ends={})
    assert time.process_time() - begun < 5, "each with each took minutes"
    assert [period.fact.object for period in found.periods if period.ended_by is not None] == [7]
