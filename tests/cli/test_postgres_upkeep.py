"""`rmem doctor` and `rmem keys` on a PostgreSQL database."""

from __future__ import annotations

import psycopg
import pytest

from rmem import Brain
from rmem.crypto.encryption import MASTER_KEY, MASTER_KEY_FILE, new_master_key


@pytest.fixture(autouse=True)
def _no_key_of_the_environment(monkeypatch):
    monkeypatch.delenv(MASTER_KEY, raising=False)
    monkeypatch.delenv(MASTER_KEY_FILE, raising=False)


def findings(answer) -> dict[str, tuple[bool, str]]:
    return {one["name"]: (one["ok"], one["detail"]) for one in answer.json["findings"]}


def test_doctor_examines_a_database_and_repairs_what_is_derived(rmem, postgres_url):
    for address in (postgres_url, f"{postgres_url}&tenant=other"):
        with Brain(address) as brain:
            for number in range(30):
                brain.remember(f"the safe number {number} is behind painting {number}", id=f"m{number}")
            brain.forget("m7")
    sound = findings(rmem("--store", postgres_url, "doctor", "--json"))
    assert {name for name, (ok, _) in sound.items() if ok} >= {
        "store", "counters", "rows", "keys", "vectors", "terms", "index", "embedder",
    }  # fmt: skip
    assert sound["store"][1].startswith("PostgreSQL ")
    assert sound["rows"][1] == "29 memories, all readable"
    with psycopg.connect(postgres_url) as link:  # of both tenants
        link.execute("UPDATE remanence.memories SET terms = '\\x01' WHERE id = 'm3'")
        link.execute("DELETE FROM remanence.postings WHERE seq = 5")
    broken = rmem("--store", postgres_url, "doctor", "--json")
    assert broken.code == 6
    found = findings(broken)
    assert not found["terms"][0]
    assert not found["counters"][0]
    assert "postings" in found["counters"][1]
    mended = rmem("--store", postgres_url, "doctor", "--repair")
    assert "derived the terms of 29 memories again" in mended.out, mended.err
    repaired = findings(rmem("--store", postgres_url, "doctor", "--json"))
    assert all(repaired[name][0] for name in ("store", "counters", "rows", "vectors", "terms", "index")), repaired
    assert not findings(rmem("--store", f"{postgres_url}&tenant=other", "doctor", "--json"))["terms"][0]


def test_doctor_tells_of_a_database_that_is_away(rmem):
    answer = rmem("--store", "postgresql://nobody@127.0.0.1:1/none", "doctor", "--json")
    assert answer.code == 6
    assert not findings(answer)["store"][0]


@pytest.mark.parametrize("held_up_to", [20_000, 3], ids=["held in memory", "searched by the database"])
def test_rotate_changes_master_and_data_keys_in_a_database(rmem, postgres_url, monkeypatch, held_up_to):
    monkeypatch.setattr("rmem.stores.sql.postgres.HELD_UP_TO", held_up_to)
    monkeypatch.setenv(MASTER_KEY, new_master_key())
    at = ("--store", postgres_url)
    with Brain(postgres_url) as brain:
        for number in range(5):
            brain.remember(f"the safe is behind painting {number}", id=f"m{number}")
    with Brain(postgres_url) as other:  # which is open meanwhile
        assert other.recall("painting")
        monkeypatch.setenv("FRESH", fresh := new_master_key())
        assert rmem(*at, "keys", "rotate", "--data", "--json").json == {
            "version": 2, "memories": 5, "resumed": False, "unreadable": 0,
        }  # fmt: skip
        assert {hit.memory.memory_id for hit in other.recall("painting", k=9)} == {f"m{number}" for number in range(5)}
    listed = rmem(*at, "keys", "list", "--json").json["keys"]
    assert {(one["version"], one["memories"], one["opens"]) for one in listed} == {(2, 5, True)}
    assert rmem(*at, "keys", "rotate", "--master-env", "FRESH", "--json").json == {"rewrapped": 4}
    assert rmem(*at, "show", "m1").code == 4
    monkeypatch.setenv(MASTER_KEY, fresh)
    assert "painting 1" in rmem(*at, "show", "m1").out
    assert len(rmem(*at, "recall", "where is the safe", "--json").json["hits"]) == 5
    sound = findings(rmem(*at, "doctor", "--json"))
    assert all(sound[name][0] for name in ("counters", "rows", "keys", "terms", "index")), sound
    with psycopg.connect(postgres_url) as link:
        assert "painting" not in str(link.execute("SELECT m::text FROM remanence.memories m").fetchall())
