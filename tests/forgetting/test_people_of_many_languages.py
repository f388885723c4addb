"""People whose names are written in many ways are forgotten, one after the other, and no byte of them is left."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from random import Random
from urllib.parse import quote, quote_plus

import psycopg
import pytest

from rmem import Brain
from rmem.errors import InputError
from rmem.tiers.forgetting import ForgettingPolicy

PEOPLE = [
    "Norma Fisher", "Karsten Wieloch-Bolnbach", "Benjamin Clément", "Manu de Pelayo", "Emil Tokarek", "Neval Çetin",
    "Raymond Jonsson Forsberg", "Igor Mareš", "Léo Garcia", "Bác Anh Lê", "Котова Ольга Филипповна", "遠藤 美加子",
    "刘倩", "임정수", "نصري آل قصير", "Έξαρχος Παπαθεοδοσίου", "יהלי טאהא", "अमला डी’कोस्टाजी",
]  # fmt: skip
"""As Faker makes them for 18 locales."""
TALK = ("Hey {}! Good to see you!", "{} works at Harbour Ltd in Rostock.", "The manager of {} is Berta Klein.")


def fill(brain: Brain) -> None:
    """Memories about, of and by each, facts, compressed and pruned ones, and questions that were kept."""
    for n in range(40):
        for person in PEOPLE[n % 3 :: 3]:
            brain.remember(TALK[n % 3].format(person), agent="clerk", metadata={"by": person, "n": n})
    for person in PEOPLE:
        brain.remember("a rope", agent=person)
        brain.remember("lanterns", agent="clerk", actor=person, tags={"of": person})
        brain.graph.add(person, "works_at", "Harbour Ltd")
    keys = [memory.memory_id for memory in brain.memories(limit=None)]
    brain.store.move(keys, "im")
    brain.store.move(keys[::2], "ltm")
    brain.prune(ForgettingPolicy(max_count=len(keys) - 30, min_age_days=0, grace_days=30))
    for person in PEOPLE:
        brain.recall(f"where does {person} work?")[0].useful()


def traces_of(name: str) -> set[bytes]:
    written = {form(name) for form in (str, str.lower, str.upper)}
    composed = {unicodedata.normalize(form, one) for one in written for form in ("NFC", "NFD")}
    return {one.encode() for one in composed} | {json.dumps(one)[1:-1].encode() for one in composed}


def left(folder: Path, name: str) -> list[str]:
    return [
        f"{path.name} at {at}"
        for path in folder.rglob("*")
        if path.is_file()
        for trace in traces_of(name)
        if (at := path.read_bytes().find(trace)) >= 0
    ]


def test_nobody_is_left_in_a_file(tmp_path):
    with Brain(tmp_path / "memories.db") as brain:
        fill(brain)
        for person in PEOPLE:
            assert len(brain.forget(subject=person)) >= 10, person
            assert left(tmp_path, person) == [], person
        assert brain.memories(limit=None) == []
        assert brain.graph.facts(limit=1000) == []
    assert [found for person in PEOPLE for found in left(tmp_path, person)] == []


@pytest.mark.parametrize("person", [*PEOPLE, "Ann Lee", "𠮷野家"])
def test_a_name_in_json_in_a_url_and_in_html_is_found(tmp_path, person):
    """The output of programs, as agents keep it."""
    told = json.dumps({"said": f"hello\n{person}\tsaid so"})
    forms = [
        told,
        json.dumps(told),
        quote(person),
        quote_plus(person),
        person.encode("ascii", "xmlcharrefreplace").decode(),
    ]
    with Brain(tmp_path / "memories.db") as brain:
        kept = [brain.remember(f"q={form}&k=5 from C:\\new").memory_id for form in forms]
        other = brain.remember(json.dumps("Ännchen\nBeate") + " 100% sure & C:\\temp\\neu + %zz \\u12 \\").memory_id
        assert set(brain.forget(subject=person)) == set(kept)
        assert [memory.memory_id for memory in brain.memories()] == [other]


def test_nobody_is_left_in_a_page_that_sqlite_rearranged(tmp_path):
    """SQLite overwrites what is deleted, but not the copy that stays behind when it moves a row to another page. With
    these numbers of rows it leaves one."""
    random = Random(5)
    with Brain(tmp_path / "memories.db", embedder="none", durability="normal") as brain:
        brain.remember_many([{"text": f"a rope {n}", "agent": "clerk"} for n in range(random.randrange(100, 500))])
        for person in PEOPLE:
            for n in range(random.randrange(3, 9)):
                brain.remember(f"{person} says {n}", agent="clerk", metadata={"by": person})
            brain.remember("a rope", agent=person)
        keys = [memory.memory_id for memory in brain.memories(limit=None)]
        brain.store.move(keys, "im")
        brain.store.move(keys[::2], "ltm")
        for person in PEOPLE:
            brain.forget(subject=person)
            assert left(tmp_path, person) == [], person


def test_nobody_is_left_in_the_tables_of_postgresql(postgres, postgres_url):
    with Brain(postgres_url) as brain, psycopg.connect(postgres_url, autocommit=True) as other:
        (folder,) = other.execute("SELECT oid FROM pg_database WHERE datname = current_database()").fetchone()
        fill(brain)
        other.execute("ANALYZE")  # as the server does by itself
        for person in PEOPLE[::4]:
            assert len(brain.forget(subject=person)) >= 10, person
            other.execute("CHECKPOINT")
            assert left(postgres.folder / "base" / str(folder), person) == [], person


WRITTEN = [
    # as the subject is given, as texts write it
    ("刘倩", "昨天刘倩说了这件事。"),
    ("遠藤 美加子", "きのう遠藤美加子さんが電話した。"),
    ("遠藤美加子", "遠藤　美加子"),
    ("임정수", "어제 임정수는 집에 갔다."),
    ("ณัฐ ยาปะโลหิต", "เมื่อวานณัฐ ยาปะโลหิตบอกว่า"),
    ("Neval Yilmaz", "Neval Yılmaz ile"),
    ("NEVAL YILMAZ", "neval yılmaz"),
    ("Lukasz Bak", "Łukasz Bąk przyszedł"),
    ("Soren Kjaer", "Søren Kjær"),
    ("Niamh O'Brien", "Niamh O’Brien’s keys"),
    ("Jean-Luc Picard", "Jean\u2011Luc Picard"),
    ("Ann Smith", "Ann\u200b Smith and Ann\u00a0Smith"),
    ("Γιώργος Σταμούλης", "ΓΙΩΡΓΟΣ ΣΤΑΜΟΥΛΗΣ"),
    ("Ann  Smith", "Ann Smith"),
]
OTHERS = [
    ("Ann", "Annabel has the keys"),
    ("Ann", "Joann has the keys"),
    ("정수", "임정수는 집에 갔다."),
    ("Ann Smith", "AnnSmith"),
    ("Lukasz", "Lukaszek"),
]


@pytest.mark.parametrize(("subject", "text"), WRITTEN)
def test_a_name_is_found_as_texts_of_its_language_write_it(tmp_path, subject, text):
    with Brain(tmp_path / "memories.db", embedder="none", durability="normal") as brain:
        kept = brain.remember(text)
        assert brain.forget(subject=subject) == [kept.memory_id]
        assert left(tmp_path, text) == []


@pytest.mark.parametrize(("subject", "text"), OTHERS)
def test_longer_names_are_those_of_others(subject, text):
    with Brain(":memory:", embedder="none") as brain:
        brain.remember(text)
        assert brain.forget(subject=subject) == []


def test_extra_spaces_do_not_hide_whom_a_memory_belongs_to():
    with Brain(":memory:", embedder="none") as brain:
        brain.remember("a rope", agent="Ann Smith")
        brain.remember("lanterns", agent="clerk", actor="ANN SMITH")
        assert len(brain.forget(subject="Ann  Smith")) == 2


@pytest.mark.parametrize("subject", ["\u200b", "\u0301"])
def test_a_subject_without_visible_characters_is_refused(subject):
    with Brain(":memory:", embedder="none") as brain, pytest.raises(InputError, match="subject must be"):
        brain.forget(subject=subject)
