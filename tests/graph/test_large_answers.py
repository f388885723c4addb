"""Answers that are found by SQL in a large store are those that are found by reading everything."""

from collections import defaultdict
from random import Random

import pytest

from rmem.facts.stated import RESERVED
from rmem.graph.reader import FactReader
from rmem.graph.validity import key_of, resolve

SPAN = 40
START = 1e9


@pytest.fixture
def contested(graph):
    """Facts of few subjects, relations and values at few times, so that most have rivals."""
    chance = Random(7)
    graph.declare("runs on", single=True)
    graph.alias("s0", "zero")
    stated = []
    for _ in range(300):
        since, until = START + chance.randrange(SPAN), chance.choice([None, None, chance.randrange(1, 9)])
        dated = chance.random() < 0.5
        stated.append(
            graph.add(
                chance.choice(["s0", "s1", "s2", "zero"]),
                chance.choice(["runs on", "runs on", "uses"]),
                chance.choice(["o0", "o1", "s1"]),
                since=since if dated else None,
                when=since,
                until=None if until is None else since + until,
                negated=chance.random() < 0.2,
                confidence=chance.choice([1.0, 1.0, 0.9, 0.6]),
            )
        )
    for fact in chance.sample(stated, 20):
        graph.end(fact, fact.valid_from + chance.randrange(1, 9))
    return graph


def count_reads(graph):
    """Return a list to which the store adds what it reads."""
    reads = []
    plain = graph.store.facts_about

    def counted(*given, **named):
        reads.append(plain(*given, **named))
        return reads[-1]

    graph.store.facts_about = counted
    return reads


def moments(changes):
    return [(change.time, change.began, change.fact.id) for change in changes]


def test_changes_between_two_times_are_those_of_the_whole_history(contested, monkeypatch):
    everything = moments(contested.between(START - 1, START + 3 * SPAN))
    assert len(everything) > 200
    for first in range(-1, SPAN + 10, 4):
        expected = [one for one in everything if START + first <= one[0] < START + first + 5]
        assert moments(contested.between(START + first, START + first + 5)) == expected
        assert moments(contested.between(START + first, START + first + 5, limit=3, offset=2)) == expected[2:5]
    for entity in ("s0", "zero", "o1", "s1", "nobody"):
        timeline = moments(contested.timeline(entity))
        for few in (0, 2000):  # by the facts of the span, and by the facts of the entity
            monkeypatch.setattr("rmem.graph.questions._FEW", few)
            for first in range(-1, SPAN + 10, 6):
                expected = [one for one in timeline if START + first <= one[0] < START + first + 7]
                assert moments(contested.between(START + first, START + first + 7, entity)) == expected


def test_contradictions_are_those_of_all_groups(contested):
    reader, groups = FactReader(contested.store, None), defaultdict(list)
    for fact in contested.store.facts_about():
        if fact.relation_name not in RESERVED:
            groups[fact.subject, fact.relation].append(fact)
    expected, about = [], defaultdict(list)
    for pair in sorted(groups):
        (resolved,) = reader.resolve_around(groups[pair])
        found = [tuple(f"{one.memory_id}#{one.number}" for one in two) for two in resolved.conflicts]
        expected += found
        for name in {name for fact in groups[pair] for name in (fact.subject_name, fact.object_name)}:
            about[name] += found
    assert len(expected) > 15
    assert [(one.first.id, one.second.id) for one in contested.contradictions(limit=1000)] == expected
    page = contested.contradictions(limit=7, offset=11)
    assert [(one.first.id, one.second.id) for one in page] == expected[11:18]
    about["s0"] = about["zero"] = [one for one in expected if one in about["s0"] or one in about["zero"]]
    for entity, wanted in about.items():
        assert [(one.first.id, one.second.id) for one in contested.contradictions(entity, limit=1000)] == wanted


def test_a_denial_is_compared_with_the_other_values_of_a_hub_too(brain, graph):
    graph.declare("runs on", single=True)
    brain.remember_many([{"text": f"Hub runs on Node{number}.", "when": START + number} for number in range(2100)])
    denied = graph.add("hub", "runs on", "Node2099", negated=True, since=START + 5000, confidence=0.9)
    graph.add("hub", "runs on", "Node2099", since=START + 5000, confidence=0.9)
    pairs = [{one.first.id, one.second.id} for one in graph.contradictions()]
    assert any(denied.id in pair for pair in pairs)
    assert {key_of(fact) for fact in graph.store.facts_about(within=(START + 5000, START + 5001))} == {
        key_of(fact) for fact in graph.store.facts_about() if fact.valid_from == START + 5000
    }


def test_a_circle_is_refused_without_reading_all_parts_of_a_hub(brain, graph):
    texts = [" ".join(f"World contains Part{30 * page + n}." for n in range(30)) for page in range(300)]
    brain.remember_many([{"text": text} for text in texts])
    reads = count_reads(graph)
    graph.add("universe", "contains", "world")
    assert sum(map(len, reads)) < 4000
    with pytest.raises(ValueError, match="circle"):
        graph.add("Part8999", "contains", "universe")


def test_a_hub_keeps_its_many_values_where_each_is_stated_very_often(brain, graph):
    brain.remember_many([{"text": "Hub uses Redis.", "when": START + number} for number in range(2100)])
    brain.remember("Hub uses Kafka.", when=START + 5000)
    assert {one.name for one in graph.neighbours("hub", limit=5000)} == {"Redis", "Kafka"}


def test_a_store_leaves_out_what_cannot_hold_as_reading_everything_does(contested):
    everything = contested.store.facts_about()
    for at in (START + 5, START + SPAN / 2):
        expected = [
            fact
            for fact in everything
            if fact.confidence >= 0.9
            and not fact.negated
            and fact.valid_from <= at
            and (fact.valid_until is None or at < fact.valid_until)
        ]
        assert 20 < len(expected) < len(everything) - 20
        assert contested.store.facts_about(may_hold_at=at, least=0.9) == expected
        page = contested.store.facts_about(may_hold_at=at, least=0.9, after=key_of(expected[4]), limit=3)
        assert page == expected[5:8]


def test_a_hub_of_facts_that_are_only_likely_is_not_read_to_find_that_none_is_sure(brain, graph):
    texts = [" ".join(f"Hub calls Node{30 * page + n}." for n in range(30)) for page in range(100)]
    brain.remember_many([{"text": text} for text in texts])
    reads = count_reads(graph)
    assert graph.neighbours("hub") == []
    assert sum(map(len, reads)) < 1100
    assert len(graph.neighbours("hub", likely=True)) == 100


def test_a_long_history_of_one_value_is_compared_once(brain, graph, monkeypatch):
    texts = [" ".join(f"The port of Gateway is {1000 + 20 * page + n}." for n in range(20)) for page in range(300)]
    brain.remember_many([{"text": text, "when": START + at} for at, text in enumerate(texts)])
    compared = []

    def counted(facts, **named):
        compared.append(len(facts))
        return resolve(facts, **named)

    monkeypatch.setattr("rmem.graph.reader.resolve", counted)
    assert [one.name for one in graph.neighbours("gateway")] == ["6999"]
    assert compared == [6000]
