"""PostgreSQL ranks as SQLite does: with its rows held in memory, and from candidates that it finds itself."""

from __future__ import annotations

from itertools import chain

import pytest

from rmem import Brain, Filter
from rmem.embed import word_vectors
from rmem.stores.sql.postgres import PostgresRecordStore
from rmem.testing import synthetic_memories, synthetic_questions

MEMORIES, QUESTIONS = 1500, 40


@pytest.fixture(scope="module")
def brains(postgres, tmp_path_factory):
    """The same memories in SQLite, and in PostgreSQL as a small and as a large tenant."""
    url = postgres.new_database()
    given = list(synthetic_memories(MEMORIES))
    with Brain(tmp_path_factory.mktemp("ranking") / "m.db", durability="normal") as sqlite:
        sqlite.remember_many(given)
        with (
            Brain(PostgresRecordStore(url, word_vectors=word_vectors)) as small,
            Brain(PostgresRecordStore(url, word_vectors=word_vectors, held_up_to=0)) as large,
        ):
            small.remember_many(given)
            large.store.compact()
            yield sqlite, small, large
    postgres.drop_database(url)


def overlap(one: Brain, other: Brain, mode: str, count: int = QUESTIONS, **where) -> float:
    shares = []
    for question in synthetic_questions(count):
        found = [
            {hit.memory.memory_id for hit in brain.recall(question, k=10, mode=mode, where=where, touch=False)}
            for brain in (one, other)
        ]
        shares.append(len(found[0] & found[1]) / len(found[0]) if found[0] else 1.0)
    return sum(shares) / len(shares)


@pytest.mark.parametrize("mode", ["lexical", "vector", "hybrid"])
def test_a_tenant_held_in_memory_ranks_as_sqlite_does(brains, mode):
    assert overlap(brains[0], brains[1], mode, 30) >= 0.99


@pytest.mark.parametrize(("mode", "least"), [("lexical", 0.99), ("hybrid", 0.9)])
def test_candidates_of_the_database_rank_as_all_rows_do(brains, mode, least):
    assert overlap(brains[0], brains[2], mode) >= least


def test_the_database_finds_the_nearest_vectors(brains):
    assert overlap(brains[0], brains[2], "vector", 20) >= 0.95


def test_statistics_are_those_of_the_filter(brains):
    agent = brains[0].memories(limit=1)[0].agent_id
    assert overlap(brains[0], brains[2], "lexical", 20, agent=agent) == 1.0
    question = synthetic_questions(1)[0]
    for where in ({}, {"agent": agent}):
        told = [
            [(hit.memory.memory_id, round(hit.score, 3)) for hit in brain.recall(question, 5, where, mode="lexical")]
            for brain in (brains[0], brains[2])
        ]
        assert told[0] == told[1]


def test_the_tenant_has_an_index_of_its_own_for_vectors(brains):
    store = brains[2].store
    held = store.read(
        lambda connection: connection.execute(
            "SELECT indexdef FROM pg_indexes WHERE schemaname = 'remanence' AND indexdef LIKE '%USING hnsw%'"
        ).fetchall()
    )
    assert len(held) == 1
    assert f"tenant = '{store.hnsw.number}'" in held[0][0]


def test_phrases_exclusions_and_people_are_found_by_the_database(brains):
    large = brains[2]
    text = next(m.text for m in large.memories(limit=50) if len(m.text.split()) > 6)
    phrase = " ".join(text.split()[1:4])
    found = large.recall(phrase, k=5, must=[phrase])
    assert found
    assert all(phrase.lower() in hit.text.lower() for hit in found)
    assert {hit.memory.memory_id for hit in found} == {
        h.memory.memory_id for h in brains[0].recall(phrase, k=5, must=[phrase])
    }


def test_a_large_tenant_lays_out_an_agents_rows(brains):
    agent = brains[0].memories(limit=1)[0].agent_id
    where = Filter(agent=(agent,))
    ids = [set(chain(brain.store.ids_at(brain.store.filtered_rows(where).seq.tolist()))) for brain in brains]
    assert ids[0] == ids[1] == ids[2]


def test_places_whose_squares_fit_in_no_float_are_found_or_not_like_others(postgres_url, tmp_path):
    places = {"here": (0, 0), "edge": (3, 4), "beyond": (3, 4.001), "hair": (1e-200, 0), "far": (-1e200, 1e300)}
    found = []
    for store in (tmp_path / "m.db", PostgresRecordStore(postgres_url, word_vectors=word_vectors, held_up_to=0)):
        with Brain(store) as brain:
            for name, place in places.items():
                brain.remember(name, id=name, position=place)
            brain.remember("nowhere", id="nowhere")
            near = [{"near": point, "radius": 5} for point in ((0, 0), (1e300, 0), (1e-300, 4))]
            found.append([{memory.memory_id for memory in brain.memories(where)} for where in near])
    assert found[0] == found[1] == [{"here", "edge", "hair"}, set(), {"here", "edge", "beyond", "hair"}]
