"""What is known, when it was true, and how things are connected: `brain.graph` on SQLite and PostgreSQL."""

import time
from itertools import chain
from random import Random

import numpy as np
import pytest

from rmem import Brain
from rmem.errors import ConfigError, InputError, NotFoundError
from rmem.facts.model import FactEdges
from rmem.graph.whole import communities, important
from rmem.stores.redis import RedisRecordStore


def objects(facts):
    return [fact.object for fact in facts]


def test_a_stated_fact_is_a_memory_with_its_evidence(brain, graph):
    fact = graph.add("staging", "runs on", "port 5433", since="2026-05-01", agent="ops", tags={"repository": "api"})
    assert (fact.subject, fact.relation, fact.object) == ("staging", "runs on", "port 5433")
    assert (fact.trust, fact.agent, fact.repository) == ("stated", "ops", "api")
    memory = brain.get(fact.memory_id)
    assert memory.type == "fact"
    assert memory.text[fact.start : fact.end] == "staging runs on port 5433."
    assert brain.recall("where does staging run?", k=1)[0].id == fact.memory_id


def test_names_meet_whatever_their_case_article_and_separators(graph):
    graph.add("the Staging-DB", "runs on", "Host 7")
    assert objects(graph.facts("staging db")) == objects(graph.facts("STAGING_DB")) == ["Host 7"]


def test_a_newer_value_ends_the_older_one_of_a_single_valued_relation(graph):
    old = graph.add("staging", "answers at", "port 5433", since="2026-05-01")
    new = graph.add("staging", "answers at", "port 5434", since="2026-07-01")
    assert objects(graph.facts("staging")) == ["port 5433", "port 5434"]
    graph.declare("answers at", single=True)
    assert objects(graph.facts("staging")) == ["port 5434"]
    assert objects(graph.facts("staging", at="2026-06-01")) == ["port 5433"]
    past = graph.facts("staging", history=True)[0]
    assert (past.id, past.ended_by, past.valid_until) == (old.id, new.id, new.valid_from)
    graph.declare("answers at", single=False)
    assert objects(graph.facts("staging")) == ["port 5433", "port 5434"]


def test_relations_that_have_one_value_by_their_meaning_need_no_declaration(graph):
    graph.add("staging", "runs on", "port 5433", since="2026-05-01")
    graph.add("staging", "runs on", "port 5434", since="2026-07-01")
    assert objects(graph.facts("staging")) == ["port 5434"]


def test_wordings_of_one_relation_meet_and_so_do_both_of_its_sides(brain, graph):
    graph.add("Endymion", "written by", "John Keats")
    assert objects(graph.facts("Endymion", "author")) == ["John Keats"]
    brain.remember("Ann Lee owns Billing. Billing depends on Redis.")
    assert graph.query("?who owns ?service, ?service depends on redis") == [{"who": "Ann Lee", "service": "Billing"}]
    assert [fact.object for fact in graph.facts("Ann Lee", "owns")] == ["Ann Lee"]
    assert [fact.subject for fact in graph.facts(relation="owner", object="Ann Lee")] == ["Billing"]


def test_every_question_takes_a_relation_from_either_side(brain, graph):
    brain.remember("Ann Lee owns Billing. Billing owns Redis.")  # stored as the owners of Billing and Redis
    assert [one.name for one in graph.neighbours("Ann Lee", relations="owns", direction="out")] == ["Billing"]
    assert [one.name for one in graph.neighbours("Billing", relations="owns", direction="in")] == ["Ann Lee"]
    assert [one.name for one in graph.neighbours("Billing", relations="owner", direction="out")] == ["Ann Lee"]
    assert graph.closure("Ann Lee", "owns") == [("Billing", 1), ("Redis", 2)]
    assert graph.closure("Redis", "owns", direction="in") == [("Billing", 1), ("Ann Lee", 2)]
    (path,) = graph.paths("Ann Lee", "Redis", relations=["owns"])
    assert path.names == ("Ann Lee", "Billing", "Redis")


def test_what_was_true_and_what_was_believed_are_two_questions(graph):
    graph.declare("lives in", single=True)
    graph.add("ann", "lives in", "Oslo", since="2026-01-01")
    between = time.time()
    time.sleep(0.02)
    graph.add("ann", "lives in", "Bergen", since="2026-03-01")
    assert objects(graph.as_of("2026-04-01", "ann")) == ["Bergen"]
    assert objects(graph.as_of("2026-04-01", "ann", believed=between)) == ["Oslo"]
    assert objects(graph.as_of("2026-02-01", "ann")) == ["Oslo"]
    assert graph.as_of("2025-12-01", "ann") == []


def test_forgetting_the_newer_value_brings_the_older_one_back(brain, graph):
    graph.declare("runs on", single=True)
    graph.add("staging", "runs on", "port 5433")
    newer = graph.add("staging", "runs on", "port 5434")
    brain.forget(newer.memory_id)
    assert objects(graph.facts("staging")) == ["port 5433"]
    assert len(graph.facts("staging", history=True)) == 1


def test_an_end_a_denial_and_undo(graph):
    owner = graph.add("ann", "owns", "billing", since="2026-01-01")
    ended = graph.end(owner, "2026-02-01")
    assert graph.facts("ann") == []
    assert objects(graph.facts("ann", at="2026-01-15")) == ["billing"]
    assert graph.undo(ended)
    assert objects(graph.facts("ann")) == ["billing"]
    denial = graph.add("ann", "owns", "billing", negated=True)
    assert graph.facts("ann") == []
    assert graph.undo(denial)
    assert objects(graph.facts("ann")) == ["billing"]


def test_two_values_at_one_time_are_a_contradiction_with_both_pieces_of_evidence(graph):
    graph.declare("capital", single=True)
    first = graph.add("Norway", "capital", "Oslo", since="2026-01-01")
    second = graph.add("Norway", "capital", "Bergen", since="2026-01-01")
    graph.add("Sweden", "capital", "Stockholm")
    (found,) = graph.contradictions()
    assert {found.first.id, found.second.id} == {first.id, second.id}
    assert graph.contradictions("norway") == graph.contradictions("Oslo") == [found]
    assert graph.contradictions("Sweden") == graph.contradictions("nobody") == []
    graph.undo(second)
    assert graph.contradictions() == []


def test_what_is_less_sure_never_replaces_what_was_stated(graph):
    graph.declare("port", single=True)
    graph.add("staging", "port", "5433", since="2026-01-01")
    graph.add("staging", "port", "9999", since="2026-03-01", confidence=0.9)
    graph.add("staging", "port", "1111", since="2026-04-01", confidence=0.6)
    assert "5433" in objects(graph.facts("staging"))
    assert "1111" not in objects(graph.facts("staging"))
    assert len(graph.contradictions()) == 1


def test_neighbours_in_both_directions_and_in_pages(graph):
    graph.add("billing", "depends on", "redis")
    for number in range(7):
        graph.add(f"service {number}", "depends on", "redis")
    graph.add("redis", "runs on", "host 7")
    near = graph.neighbours("redis")
    assert [(one.name, one.outgoing) for one in near[:2]] == [("host 7", True), ("billing", False)]
    assert [one.name for one in graph.neighbours("redis", direction="out")] == ["host 7"]
    pages = [graph.neighbours("redis", direction="in", limit=3, offset=at) for at in (0, 3, 6, 9)]
    assert [len(page) for page in pages] == [3, 3, 2, 0]
    assert len({one.name for page in pages for one in page}) == 8


def test_paths_are_the_shortest_and_alternatives_follow(graph):
    for subject, relation, goal in (
        ("ann", "owns", "billing"),
        ("billing", "depends on", "redis"),
        ("redis", "runs on", "host 7"),
        ("ann", "administers", "host 7"),
        ("bob", "works with", "ann"),
    ):
        graph.add(subject, relation, goal)
    assert [str(path) for path in graph.paths("bob", "host 7")] == ["bob → works with → ann → administers → host 7"]
    both = graph.paths("bob", "host 7", 4, k=5)
    assert [len(path.facts) for path in both] == [2, 4]
    assert str(graph.paths("host 7", "billing", 2)[0]) == "host 7 ← runs on ← redis ← depends on ← billing"
    assert graph.paths("bob", "host 7", relations=["works with", "owns"]) == []
    assert graph.paths("bob", "nobody") == []


def test_patterns_with_variables(graph):
    for subject, relation, goal in (
        ("ann", "owns", "billing"),
        ("bob", "owns", "search"),
        ("billing", "depends on", "redis cache"),
        ("search", "depends on", "postgres"),
    ):
        graph.add(subject, relation, goal)
    assert graph.query("?who owns ?service, ?service depends on redis cache") == [{"who": "ann", "service": "billing"}]
    assert graph.query("bob ?how ?what") == [{"how": "owns", "what": "search"}]
    assert graph.query('?x depends on "postgres"') == [{"x": "search"}]
    with pytest.raises(InputError, match="did you mean 'owns'"):
        graph.query("?a own ?b")
    with pytest.raises(InputError, match="must hold a variable"):
        graph.query("ann owns billing")


def test_closure_ends_in_a_circle_and_a_part_cannot_contain_its_whole(graph):
    graph.add("wheel", "part of", "car")
    graph.add("bolt", "part of", "wheel")
    assert graph.closure("bolt", "part of") == [("wheel", 1), ("car", 2)]
    assert graph.closure("car", "part of", direction="in") == [("wheel", 1), ("bolt", 2)]
    with pytest.raises(InputError, match="would close a circle"):
        graph.add("car", "part of", "bolt")
    graph.add("a", "follows", "b")
    graph.add("b", "follows", "a")
    assert graph.closure("a", "follows") == [("b", 1)]


def test_a_table_is_mapped_to_facts_and_mapped_again_as_it_changes(brain, graph):
    rows = [
        {"service": "billing", "host": "host 7", "at": "2026-01-01"},
        {"service": "search", "host": "host 8", "at": "2026-01-01"},
        {"service": None, "host": "host 9", "at": None},
    ]
    columns = {"subject": "service", "relation": "runs on", "object": "host", "since": "at"}
    assert graph.map_table("deploys", rows, **columns) == (2, 0, 0)
    assert objects(graph.facts("billing")) == ["host 7"]
    assert graph.map_table("deploys", rows, **columns) == (0, 2, 0)
    rows[1] = {"service": "billing", "host": "host 9", "at": "2026-02-01"}
    assert graph.map_table("deploys", rows, **columns) == (1, 1, 1)
    assert objects(graph.facts("billing")) == ["host 9"]
    assert graph.facts("search") == []
    with pytest.raises(InputError, match="row 1 of table 'deploys' has no column 'machine'"):
        graph.map_table("deploys", rows, **columns | {"object": "machine"})
    assert objects(graph.facts("billing")) == ["host 9"]


def test_an_alias_joins_two_names(graph):
    graph.add("staging-db-01", "runs on", "port 5433")
    assert graph.facts("the staging database") == []
    joined = graph.alias("the staging database", "staging-db-01")
    assert objects(graph.facts("the staging database")) == ["port 5433"]
    graph.undo(joined)
    assert graph.facts("the staging database") == []


def test_timeline_and_changes_between_two_times(graph):
    graph.declare("runs on", single=True)
    graph.add("staging", "runs on", "port 5433", since="2026-05-01")
    graph.add("staging", "runs on", "port 5434", since="2026-07-01")
    graph.add("other", "runs on", "port 1", since="2026-07-02")
    assert [(change.began, change.fact.object) for change in graph.timeline("staging")] == [
        (True, "port 5433"),
        (False, "port 5433"),
        (True, "port 5434"),
    ]
    assert len(graph.between("2026-06-15", "2026-07-15")) == 3
    assert len(graph.between("2026-06-15", "2026-07-15", "staging")) == 2
    with pytest.raises(InputError, match="end must be after start"):
        graph.between("2026-07-15", "2026-06-15")


def test_explanation_shows_the_sentence_and_other_values(brain, graph):
    first = graph.add("staging", "runs on", "port 5433")
    second = graph.add("staging", "runs on", "port 5434")
    again = graph.add("Staging", "runs on", "port 5433")
    why = graph.explain(first)
    assert why.sentence == "staging runs on port 5433."
    assert ([fact.id for fact in why.same], [fact.id for fact in why.others]) == ([again.id], [second.id])


def test_bad_input_is_refused_and_nothing_is_written(brain, graph):
    with pytest.raises(InputError, match="until must be after since"):
        graph.add("a", "b", "c", since="2026-05-01", until="2026-04-01")
    with pytest.raises(InputError, match="subject must not be empty"):
        graph.add("", "b", "c")
    with pytest.raises(InputError, match="letters or digits"):
        graph.add("a", "b", "--")
    with pytest.raises(InputError, match="rmem:"):
        graph.add("a", "rmem:ends", "c")
    with pytest.raises(InputError, match="after the fact began"):
        graph.end(graph.add("a", "b", "c"), "1999-01-01")
    with pytest.raises(NotFoundError):
        graph.get("nobody#0")
    with pytest.raises(InputError, match="fact must be"):
        graph.undo("no-number")
    assert brain.count() == 1


def test_questions_about_nothing_are_refused(graph):
    graph.add("a", "uses", "b")
    for ask in (
        lambda: graph.neighbours(None),
        lambda: graph.closure(None, "uses"),
        lambda: graph.timeline(None),
        lambda: graph.paths(None, "b"),
        lambda: graph.paths("a", None),
    ):
        with pytest.raises(InputError):
            ask()


def test_a_filter_limits_what_is_shown(graph):
    graph.declare("runs on", single=True)
    graph.add("staging", "runs on", "port 5433", agent="ann")
    graph.add("staging", "runs on", "port 5434", agent="bob")
    assert objects(graph.facts("staging")) == ["port 5434"]
    assert objects(graph.where({"agent": "ann"}).facts("staging")) == ["port 5433"]
    assert graph.where({"agent": "eve"}).facts("staging") == []


def test_communities_do_not_depend_on_the_order_in_which_a_store_reads_facts(graph):
    chance = Random(3)
    for _ in range(150):
        graph.add(f"n{chance.randrange(40)}", "calls", f"m{chance.randrange(40)}")
    edges = graph.store.fact_edges()
    order = np.random.default_rng(0).permutation(edges.subject.size)
    shuffled = FactEdges(*(column[order] for column in edges))
    found = [communities(graph.store, one, smallest=2, limit=20) for one in (edges, shuffled)]
    assert found[0] == found[1]
    assert len(found[0]) > 3
    ranked = [important(graph.store, one, limit=20) for one in (edges, shuffled)]
    assert ranked[0] == ranked[1]


def test_what_matters_most_and_what_belongs_together(graph):
    for number in range(5):
        graph.add(f"service {number}", "depends on", "redis")
        graph.add(f"page {number}", "links to", "home")
    assert {name for name, _ in graph.important(2)} == {"redis", "home"}
    assert sum(share for _, share in graph.important(1000)) == pytest.approx(1, abs=1e-6)
    groups = graph.communities()
    assert [len(group) for group in groups] == [6, 6]
    assert graph.entities()[0][1] == 5
    assert graph.entities("redis") == [("redis", 5)]
    assert dict(graph.relations()) == {"depends on": 5, "links to": 5}


def test_networkx_gets_the_facts_that_hold(graph):
    graph.declare("runs on", single=True)
    graph.add("staging", "runs on", "port 5433")
    newer = graph.add("staging", "runs on", "port 5434")
    assert list(graph.to_networkx().edges(keys=True)) == [("staging", "port 5434", newer.id)]
    assert graph.to_networkx(history=True).number_of_edges() == 2


def test_a_store_without_facts_says_so():
    with pytest.raises(ConfigError, match="keeps no facts"):
        _ = Brain(RedisRecordStore()).graph  # which needs no server


def test_a_hub_answers_in_pages_and_its_denials_count(brain, graph):
    texts = [" ".join(f"Hub depends on Node{30 * page + n}." for n in range(30)) for page in range(100)]
    brain.remember_many([{"text": text, "when": 1e9 + at} for at, text in enumerate(texts)])
    brain.remember("Hub does not depend on Node7.", when=1.1e9)
    assert len(graph.neighbours("hub")) == 100
    names = [one.name for page in range(0, 3000, 1000) for one in graph.neighbours("hub", limit=1000, offset=page)]
    assert len(names) == 2999
    assert len(set(names)) == 2999
    assert "Node7" not in names
    assert [one.name for one in graph.neighbours("Node8")] == ["Hub"]
    assert graph.neighbours("Node7") == []
    (denied,) = graph.facts("hub", object="Node7", at=1.05e9)
    assert denied.valid_until == 1.1e9
    pages = [graph.closure("hub", "depends on", offset=offset) for offset in (0, 1000, 2000)]
    assert [len(page) for page in pages] == [1000, 1000, 999]
    assert len(set(chain.from_iterable(pages))) == 2999
    (began, *_), (ended,) = graph.between(1e9, 1e9 + 1, "hub"), graph.between(1.05e9, 1.2e9, "Node7")[:1]
    assert (began.fact.object, ended.began, ended.fact.object) == ("Node0", False, "Node7")
    assert graph.contradictions("hub") == graph.contradictions() == []


def test_of_very_many_values_of_a_relation_with_one_only_the_newest_holds(brain, graph):
    brain.remember_many([{"text": f"The port of Gateway is {1000 + at}.", "when": 1e9 + at} for at in range(2500)])
    assert [one.name for one in graph.neighbours("gateway")] == ["3499"]
    assert objects(graph.as_of(1e9 + 17, "gateway")) == ["1017"]


def test_answers_print_as_a_line(graph):
    graph.add("billing", "depends on", "redis", since="2026-05-01")
    graph.add("billing", "depends on", "redis", negated=True, since="2026-06-01")
    graph.add("staging", "runs on", "host 7", since="2026-05-01")
    began = graph.timeline("staging")[0]
    assert str(began) == "2026-05-01 began: staging – runs on – host 7 (since 2026-05-01, stated)"
    assert [str(change).split(":")[0] for change in graph.timeline("billing")][:2] == [
        "2026-05-01 began",
        "2026-06-01 ended",
    ]
    assert [str(one) for one in graph.neighbours("staging")] == ["→ runs on → host 7"]
    assert [str(one) for one in graph.neighbours("host 7")] == ["← runs on ← staging"]
    graph.add("staging", "runs on", "host 8", since="2026-05-01")
    assert str(graph.contradictions("staging")[0]).count("staging – runs on – host") == 2


def test_a_long_timeline_comes_in_pages(brain, graph):
    texts = [" ".join(f"Hub depends on Node{20 * page + n}." for n in range(20)) for page in reversed(range(60))]
    brain.remember_many([{"text": text, "when": 1e9 - at} for at, text in enumerate(texts)])
    pages = [graph.timeline("hub", offset=offset) for offset in (0, 1000, 2000)]
    assert [len(page) for page in pages] == [1000, 200, 0]
    assert pages[0][0].fact.object == "Node0"
    times = [change.time for page in pages for change in page]
    assert times == sorted(times)
    with pytest.raises(InputError, match="limit"):
        graph.timeline("hub", limit=0)


def test_a_timeline_too_long_to_be_ordered_says_what_to_ask_instead(graph, monkeypatch):
    monkeypatch.setattr("rmem.graph.questions._MAX_ORDERED", 3)
    for number in range(4):
        graph.add("hub", "depends on", f"node {number}")
    with pytest.raises(InputError, match=r"'hub' has more than 3 facts.*between two times"):
        graph.timeline("hub")
    monkeypatch.setattr("rmem.graph.questions._FEW", 3)
    with pytest.raises(InputError, match=r"more than 3 facts have a start or an end.*shorter time"):
        graph.between("2020-01-01", "2100-01-01", "hub")
    assert graph.between("2020-01-01", "2020-02-01", "hub") == []


def test_an_unknown_fact_is_called_a_fact(graph):
    stated = graph.add("a", "uses", "b")
    for ask in (graph.get, graph.explain, graph.end, graph.undo):
        for wrong in ("nobody#0", f"{stated.memory_id}#7"):
            with pytest.raises(NotFoundError, match=f"no fact with id '{wrong}'"):
                ask(wrong)
    assert objects(graph.facts("a")) == ["b"]


def test_the_rows_of_a_filter_are_read_once_for_an_answer(brain, graph, monkeypatch):
    texts = [" ".join(f"Hub depends on Node{30 * page + n}." for n in range(30)) for page in range(100)]
    brain.remember_many([{"text": text, "agent": "ops"} for text in texts])
    read, calls = brain.store.filtered_rows, []
    monkeypatch.setattr(brain.store, "filtered_rows", lambda where: calls.append(where) or read(where))
    assert len(graph.where({"agent": "ops"}).neighbours("hub", limit=3000)) == 3000
    assert len(calls) == 1


def test_of_a_group_those_with_most_facts_come_first(graph):
    for number in range(4):
        graph.add(f"a service {number}", "depends on", "redis")
    assert graph.communities()[0][0] == "redis"
