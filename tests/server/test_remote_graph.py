"""`Brain("https://…").graph` is the same graph: each story holds on a file and on a server."""

from __future__ import annotations

import asyncio
import inspect
from datetime import date

import pytest

from rmem import AsyncBrain, Brain
from rmem.aio import _Awaited
from rmem.errors import InputError, NotFoundError, ServerError
from rmem.graph import Change, Contradiction, Fact, FactExplanation, Graph, Neighbour, Path
from rmem.graph.aio import AsyncGraph
from rmem.graph.remote import RemoteGraph

INHERITED = {"as_of", "to_networkx", "add_many", "map_table"}
"""What is made of other questions."""


@pytest.fixture(params=["file", "server"])
def graph(request, tmp_path):
    if request.param == "server":
        server = request.getfixturevalue("server")
        opened = Brain(server.url, token=server.first_token)
    else:
        opened = Brain(tmp_path / "memories.db")
    with opened as brain:
        yield brain.graph


def test_every_question_has_the_same_answer(graph):
    graph.declare("runs on", single=True)
    old = graph.add("staging", "runs on", "port 5432", since="2026-01-01")
    new = graph.add("staging", "runs on", "port 5433", since=date(2026, 5, 1), tags={"repository": "etl"})
    graph.add("ann", "owns", "staging", since="2026-01-01")
    graph.add("staging", "depends on", "redis", since="2026-01-01")
    graph.add("redis", "depends on", "disk", since="2026-01-01", agent="ops")
    assert (type(old), new.repository, new.trust) == (Fact, "etl", "stated")
    assert graph.facts("staging", "runs on") == [new]
    (past,) = graph.facts("staging", "runs on", at="2026-02-01")
    assert (past.id, past.ended_by, past.valid_until) == (old.id, new.id, new.valid_from)
    assert graph.get(old.id) == past
    assert graph.of_memory(old.memory_id) == [past]
    assert len(graph.facts(relation=["runs on", "owns"], history=True)) == 3
    assert graph.facts(believed="2026-02-01") == []
    assert [one.id for one in graph.as_of("2026-02-01", "staging")].count(old.id) == 1
    (near,) = graph.neighbours("staging", direction="in")
    assert (type(near), near.name, near.outgoing) == (Neighbour, "ann", False)
    (way,) = graph.paths("ann", "disk")
    assert (type(way), str(way)) == (Path, "ann → owns → staging → depends on → redis → depends on → disk")
    assert graph.paths("ann", "disk", relations="owns") == []
    ended = [one for one in graph.timeline("staging") if not one.began]
    assert [(type(one), one.time, one.fact.id) for one in ended] == [(Change, new.valid_from, old.id)]
    assert [one.began for one in graph.between("2026-04-01", "2026-06-01", "staging")] == [False, True]
    assert graph.query("?who owns ?what, ?what depends on redis") == [{"who": "ann", "what": "staging"}]
    assert graph.closure("staging", "depends on") == [("redis", 1), ("disk", 2)]
    assert graph.closure("disk", "depends on", direction="in", depth=1) == [("redis", 1)]
    assert graph.entities("stag") == [("staging", 4)]
    assert ("depends on", 2) in graph.relations()
    assert sum(share for _, share in graph.important()) == pytest.approx(1)
    assert graph.communities(smallest=5) in ([], [sorted(name for name, _ in graph.entities())])
    why = graph.explain(new)
    assert (type(why), why.sentence, why.others) == (FactExplanation, "staging runs on port 5433.", [past])
    assert len(graph) == 6
    assert len(list(graph.all_facts(history=True))) == 5
    assert graph.to_networkx().number_of_edges() == 4
    assert [one.agent for one in graph.where({"agent": "ops"}).facts()] == ["ops"]
    assert len(graph.where({"agent": "ops"})) == 1


def test_what_is_stated_is_ended_joined_and_taken_back(graph):
    fact = graph.add("etl", "keeps", 3.5, since="2026-01-01")
    assert (fact.object, fact.is_value) == ("3.5", True)
    graph.alias("loader", "etl")
    assert [one.id for one in graph.facts("loader")] == [fact.id]
    end = graph.end(fact, "2026-06-01")
    assert graph.facts("etl") == []
    assert graph.undo(end) is True
    assert graph.facts("etl") == [fact]
    assert graph.undo(fact.id) is True
    with pytest.raises(NotFoundError):
        graph.undo(fact)


def test_contradictions_come_with_both_facts(graph):
    graph.declare("runs on", single=True)
    for port in ("port 1", "port 2"):
        graph.add("staging", "runs on", port, since="2026-01-01")
    (pair,) = graph.contradictions()
    assert (type(pair), {pair.first.object, pair.second.object}) == (Contradiction, {"port 1", "port 2"})


WRONG = [
    (lambda graph: graph.facts(limit=0), "limit"),
    (lambda graph: graph.facts("x", at="whenever"), "at"),
    (lambda graph: graph.facts(" "), "subject"),
    (lambda graph: graph.neighbours("x", direction="up"), "direction"),
    (lambda graph: graph.paths("a", "b", 9), "max_hops"),
    (lambda graph: graph.query("x"), "pattern"),
    (lambda graph: graph.between("2026-05-01", "2026-04-01"), "end"),
    (lambda graph: graph.add("a", "is", True), "object"),
    (lambda graph: graph.add("a", "rmem:ends", "b"), "relation"),
    (lambda graph: graph.add("a", "is", "b", since="2026-05-01", until="2026-04-01"), "until"),
    (lambda graph: graph.add("a", "is", "b", confidence=2), "confidence"),
    (lambda graph: graph.get("nonesuch"), "fact"),
    (lambda graph: graph.declare("is", single="yes"), "single"),
]


def test_what_is_wrong_is_named(graph):
    for call, field in WRONG:
        with pytest.raises(InputError) as caught:
            call(graph)
        assert caught.value.field == field, str(caught.value)
    for missing in (graph.get, graph.end, graph.undo, graph.explain):
        with pytest.raises(NotFoundError):
            missing("nobody-1#0")


def test_long_lists_come_whole(server, monkeypatch):
    monkeypatch.setattr("rmem.graph.remote._PAGE", 3)
    with Brain(server.url, token=server.first_token) as brain:
        for number in range(8):
            brain.graph.add("root", "holds", f"leaf {number}")
        leaves = [f"leaf {number}" for number in range(8)]
        assert [one.object for one in brain.graph.facts("root")] == leaves
        assert [one.object for one in brain.graph.facts("root", limit=4, offset=2)] == leaves[2:6]
        assert [one.name for one in brain.graph.neighbours("root", limit=7, offset=5)] == leaves[5:]
        assert [one.object for one in brain.graph.all_facts()] == leaves
        assert len(brain.graph.between("2020-01-01", "2100-01-01")) == 8
        assert len(brain.graph.query("root holds ?leaf", limit=5)) == 5


def test_a_reader_states_nothing(server):
    reader = server.token_for("default", "default", "READ")
    with Brain(server.url, token=reader) as brain, pytest.raises(ServerError) as refused:
        brain.graph.add("a", "is", "b")
    assert refused.value.status == 403


@pytest.mark.parametrize("place", ["file", "server"])
def test_the_async_face_asks_both(place, server, tmp_path):
    async def story():
        options = {"token": server.first_token} if place == "server" else {}
        async with AsyncBrain(server.url if place == "server" else tmp_path / "memories.db", **options) as brain:
            fact = await brain.graph.add("staging", "runs on", "port 5433")
            assert await brain.graph.facts("staging") == [fact]
            assert [one async for one in brain.graph.all_facts()] == [fact]
            assert await brain.graph.where({"agent": "nobody"}).facts() == []
            assert await brain.graph.undo(fact) is True

    asyncio.run(story())


def test_the_faces_have_all_that_the_graph_has():
    public = {name for name, value in vars(Graph).items() if not name.startswith("_") and callable(value)}
    assert public - INHERITED <= set(vars(RemoteGraph))
    assert public <= set(vars(AsyncGraph))
    for name in public & set(vars(RemoteGraph)) - {"where"}:
        ours, theirs = inspect.signature(getattr(RemoteGraph, name)), inspect.signature(getattr(Graph, name))
        assert ours.parameters.keys() == theirs.parameters.keys(), name
    awaited = {name: value for name, value in vars(AsyncGraph).items() if isinstance(value, _Awaited)}
    assert all(value.__wrapped__ is getattr(Graph, name) for name, value in awaited.items())
