"""A graph that somebody shares with others shows nothing whose evidence they may not see."""

from __future__ import annotations

import pytest

from rmem import Brain, Encryption
from rmem.crypto.encryption import new_master_key
from rmem.errors import InputError, NotFoundError
from rmem.graph import Graph
from rmem.graph.graph import Scope

SECRET = "moonbase"


@pytest.fixture(params=["SQLite", "encrypted", "PostgreSQL"])
def brain(request, tmp_path):
    postgres = request.param == "PostgreSQL"
    address = request.getfixturevalue("postgres_url") if postgres else tmp_path / "memories.db"
    encryption = Encryption(master=new_master_key()) if request.param == "encrypted" else None
    with Brain(address, encryption=encryption) as opened:
        yield opened


@pytest.fixture
def mine(brain):
    """A fact that only ann may see, in a graph that is otherwise everybody's."""
    graph = brain.graph
    graph.add("staging", "runs on", "redis", since="2026-01-01")
    graph.add("redis", "stands in", "Berlin")
    return graph.add("redis", "is paid by", SECRET, place="personal:ann")


@pytest.fixture
def bobs(brain, mine):
    return Graph(brain, None, Scope(lambda place: place is None or place == "personal:bob", {"actor": "bob"}))


QUESTIONS = {
    "facts": lambda graph: graph.facts(),
    "facts of it": lambda graph: graph.facts(object=SECRET, history=True, likely=True),
    "neighbours": lambda graph: graph.neighbours("redis"),
    "as_of": lambda graph: graph.as_of("2030-01-01", "redis"),
    "timeline": lambda graph: graph.timeline("redis"),
    "between": lambda graph: graph.between("2020-01-01", "2040-01-01"),
    "closure": lambda graph: graph.closure("redis", "is paid by"),
    "paths": lambda graph: graph.paths("staging", SECRET),
    "query": lambda graph: graph.query("redis ?how ?what"),
    "important": lambda graph: graph.important(),
    "communities": lambda graph: graph.communities(smallest=1),
    "entities": lambda graph: graph.entities(),
    "relations": lambda graph: graph.relations(),
    "all_facts": lambda graph: list(graph.all_facts(history=True)),
    "contradictions": lambda graph: graph.contradictions(),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_no_question_tells_what_its_asker_may_not_see(brain, bobs, question):
    told = str(QUESTIONS[question](bobs))
    assert SECRET not in told
    assert "is paid by" not in told
    if question not in ("contradictions", "facts of it", "closure", "paths"):
        assert "Berlin" in told or "stands in" in told
    if question != "contradictions":
        assert SECRET in str(QUESTIONS[question](brain.graph)) or question == "relations"
    assert len(bobs) == 2


def test_a_relation_that_is_only_in_hidden_facts_is_unknown(bobs):
    with pytest.raises(InputError, match="no known relation") as caught:
        bobs.query("?what is paid by ?who")
    assert "paid" not in str(caught.value).partition("did you mean")[2]


def test_hidden_statements_about_facts_do_not_count(brain, bobs):
    (place,) = brain.graph.facts("redis", "stands in")
    brain.remember(
        "redis is another name of cache.",
        type="fact",
        place="personal:ann",
        metadata={"fact": {"subject": "redis", "relation": "rmem:same as", "object": "cache"}},
    )
    brain.remember(
        "No longer true.",
        type="fact",
        place="personal:ann",
        metadata={"fact": {"subject": place.id, "relation": "rmem:ends", "object": place.id}},
    )
    assert brain.graph.facts("cache", "stands in", history=True)
    assert not brain.graph.facts("redis", "stands in")
    assert not bobs.facts("cache", history=True)
    assert bobs.facts("redis", "stands in") == [place]


def test_a_hidden_fact_can_be_neither_read_ended_nor_taken_back(brain, bobs, mine):
    for refused in (bobs.get, bobs.end, bobs.undo, bobs.explain):
        with pytest.raises(NotFoundError):
            refused(mine.id)
    assert brain.graph.get(mine.id) == mine


def test_the_end_of_a_fact_is_seen_by_whoever_sees_the_fact(brain, bobs, mine):
    end = brain.graph.end(mine)
    memory = brain.get(end.memory_id)
    assert memory.place == "personal:ann"
    assert not brain.graph.facts("redis", "is paid by")
    with pytest.raises(NotFoundError):
        bobs.get(end.id)


def test_what_somebody_states_carries_their_name(brain, bobs):
    fact = bobs.add("etl", "uses", "duckdb")
    assert brain.get(fact.memory_id).actor == "bob"
    assert bobs.undo(fact) is True
    assert brain.get(fact.memory_id) is None
    with pytest.raises(NotFoundError):
        bobs.undo(fact)


def test_a_filter_limits_the_whole_graph_too(brain, mine):
    brain.graph.add("etl", "uses", "duckdb", agent="etl-agent")
    graph = brain.graph.where({"agent": "etl-agent"})
    assert {name for name, _ in graph.entities()} == {name for name, _ in graph.important()} == {"etl", "duckdb"}
    assert [name for name, _ in graph.relations()] == ["uses"]
    assert graph.communities(smallest=1) == [["duckdb", "etl"]]
    assert len(graph) == 1
