"""What a memory said before it was edited: kept with it, found by nobody, erased with it."""

import os

import pytest

from rmem import Brain, Encryption
from rmem.errors import InputError
from rmem.team.exchange import document
from rmem.team.memory import TeamMemory
from rmem.team.notes import Note
from rmem.transfer import export, import_


@pytest.fixture(params=["sqlite", "postgres", "memory"])
def address(request, tmp_path):
    if request.param == "memory":
        return ":memory:"
    return str(tmp_path / "edited.db") if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.fixture
def brain(address):
    with Brain(address, embedder="none") as brain:
        yield brain


def texts_of(memory):
    return [one.text for one in memory.earlier]


def test_an_edit_keeps_the_earlier_text_which_can_be_restored(brain):
    brain.remember("Deploys go to Bern", id="m", metadata={"ticket": 7})
    assert brain.get("m").earlier == []
    brain.update("m", text="Deploys go to Oslo")
    changed = brain.update("m", importance=0.9, metadata={"ticket": 8})
    assert texts_of(changed) == texts_of(brain.get("m")) == ["Deploys go to Bern"]
    assert changed.metadata == {"ticket": 8}
    restored = brain.update("m", text=changed.earlier[0].text)
    assert restored.text == "Deploys go to Bern"
    assert texts_of(restored) == ["Deploys go to Bern", "Deploys go to Oslo"]
    assert restored.earlier[0].until <= restored.earlier[1].until


def test_an_edit_that_says_the_same_adds_nothing(brain):
    brain.remember("Deploys go to Bern", id="m")
    assert brain.update("m", text="Deploys go to Bern").earlier == []


def test_earlier_texts_are_not_recalled_and_are_no_metadata(brain):
    brain.remember("Deploys go to Bern", id="m")
    brain.update("m", text="Deploys go to Oslo")
    assert brain.recall("Bern", mode="lexical") == []
    (hit,) = brain.recall("Oslo")
    assert hit.memory.metadata == {}
    assert "Bern" not in str(hit.to_dict())
    with pytest.raises(InputError, match="_earlier"):
        brain.remember("made up", metadata={"_earlier": [{"text": "never said", "until": 1.0}]})


def test_only_so_many_earlier_texts_are_kept(brain):
    brain.remember("text 0", id="m")
    for number in range(1, 14):
        brain.update("m", text=f"text {number}")
    assert texts_of(brain.get("m")) == [f"text {number}" for number in range(3, 13)]
    brain.update("m", text="a" * 200_000)
    brain.update("m", text="b" * 200_000)
    assert [text[0] for text in texts_of(brain.update("m", text="short"))] == ["b"]


def test_a_text_can_be_replaced_for_good(brain):
    brain.remember("the word is xyzzy", id="m")
    brain.update("m", text="the word is xyzzy, said Ann")
    assert brain.update("m", text="ask Ann for the word", keep_earlier=False).earlier == []


def test_whom_a_memory_is_shown_to_later_does_not_see_what_it_said_before(brain):
    brain.remember("Ann thinks Bob is slow", id="m", place="ann")
    brain.update("m", text="Bob needs more time")
    assert brain.update("m", place="everybody").earlier == []


def test_forgetting_somebody_finds_them_in_earlier_texts(brain):
    brain.remember("Wilhelmina Quist decides", id="m")
    brain.remember("Somebody else pays", id="n")
    brain.update("m", text="The board decides")
    assert brain.forget(subject="Wilhelmina Quist") == ["m"]


@pytest.mark.parametrize("how", ["id", "subject", "for good"])
def test_nothing_of_an_earlier_text_is_left_in_the_file(tmp_path, how):
    with Brain(str(tmp_path / "m.db"), embedder="none") as brain:
        brain.remember("Wilhelmina Quist decides", id="m")
        brain.remember("The board meets on Mondays", id="n")
        brain.update("m", text="The board decides")
        assert texts_of(brain.get("m")) == ["Wilhelmina Quist decides"]
        if how == "id":
            brain.forget("m")
        elif how == "subject":
            brain.forget(subject="Wilhelmina Quist")
        else:
            brain.update("m", text="It decides", keep_earlier=False)
    held = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"Mondays" in held
    assert b"Wilhelmina" not in held


@pytest.mark.parametrize("address", ["sqlite", "postgres"], indirect=True)
def test_earlier_texts_are_encrypted_with_the_memory(address, tmp_path):
    with Brain(address, embedder="none", encryption=Encryption(master=os.urandom(32))) as brain:
        brain.remember("Wilhelmina Quist decides", id="m")
        brain.update("m", text="The board decides")
        assert texts_of(brain.get("m")) == ["Wilhelmina Quist decides"]
        raw = brain.store.read(lambda connection: connection.execute("SELECT * FROM memories").fetchall())
        assert "Wilhelmina" not in str([[bytes(c) if isinstance(c, memoryview) else c for c in row] for row in raw])
    assert not any(b"Wilhelmina" in path.read_bytes() for path in tmp_path.iterdir())


def test_export_and_import_take_earlier_texts_along(tmp_path):
    with Brain(str(tmp_path / "a.db"), embedder="none") as brain:
        brain.remember("Deploys go to Bern", id="m")
        brain.update("m", text="Deploys go to Oslo")
        export(brain, tmp_path / "all.jsonl")
        before = brain.get("m").earlier
    with Brain(str(tmp_path / "b.db"), embedder="none") as brain:
        import_(brain, tmp_path / "all.jsonl")
        assert brain.get("m").earlier == before


def test_a_reworded_team_memory_keeps_its_earlier_text_to_itself(tmp_path):
    with Brain(str(tmp_path / "a.db"), embedder="none") as brain:
        team = TeamMemory(brain, author="ann")
        made = team.remember(Note("Deploys go to Bern", "decision", author="ann"))
        changed = team.reword(made.memory_id, "Deploys go to Oslo")
        assert texts_of(changed) == ["Deploys go to Bern"]
        assert "Bern" not in str(document(changed))
        assert team.share(made.memory_id, "organisation").earlier == []
