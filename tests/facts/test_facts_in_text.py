"""Facts read from sentences: which ones, how sure, and what states nothing."""

from __future__ import annotations

from datetime import datetime

import pytest

from rmem.facts.extract import facts_in
from rmem.facts.model import LIKELY, SURE, FoundFact
from rmem.facts.names import clean
from rmem.models import Memory


def memory(text: str, actor: str | None = None, **fields: object) -> Memory:
    return Memory(
        memory_id="m", agent_id="agent", step_number=0, timestamp=1.7e9, contents={"text": text}, text=text,
        actor=actor, **fields,  # type: ignore[arg-type]
    )  # fmt: skip


def triples(text: str, actor: str | None = None) -> list[tuple[str, str, str]]:
    return [fact[:3] for fact in facts_in(memory(text, actor))]


def only(text: str, actor: str | None = None) -> FoundFact:
    (fact,) = facts_in(memory(text, actor))
    return fact


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("The capital of France is Paris.", ("France", "capital", "Paris")),
        ("The staging DB runs on port 5433.", ("The staging DB", "runs on", "port 5433")),
        ("The Query service depends on Postgres 16.", ("The Query service", "depends on", "Postgres 16")),
        ("The Search team owns the Query service.", ("the Query service", "owner", "The Search team")),
        ("The API gateway runs on nginx.", ("The API gateway", "runs on", "nginx")),
        ("Apollo's new owner is Ann Lee.", ("Apollo", "owner", "Ann Lee")),
        ("Paris is the capital of France.", ("France", "capital", "Paris")),
        ("France's capital is Paris.", ("France", "capital", "Paris")),
        ("The author of The Witcher is Andrzej Sapkowski.", ("The Witcher", "author", "Andrzej Sapkowski")),
        ("The Witcher was written by Andrzej Sapkowski.", ("The Witcher", "author", "Andrzej Sapkowski")),
        ("Scientology was founded by L. Ron Hubbard.", ("Scientology", "founder", "L. Ron Hubbard")),
        ("Tony Blair is married to Cherie Blair.", ("Tony Blair", "married to", "Cherie Blair")),
        ("rap rock was created in the country of Italy.", ("rap rock", "created in the country of", "Italy")),
        (
            "Tunisia national football team is associated with the sport of association football.",
            ("Tunisia national football team", "associated with the sport of", "association football"),
        ),
        (
            "The headquarters of University of California, Los Angeles is located in the city of Los Angeles.",
            ("University of California, Los Angeles", "headquarters located in the city of", "Los Angeles"),
        ),
        ("The university where Lou Reed was educated is Yale.", ("Lou Reed", "university where educated", "Yale")),
        ("The company that produced iPhone is Apple Inc..", ("iPhone", "company that produced", "Apple Inc.")),
        (
            "The name of the current head of state in Poland is Andrzej Duda.",
            ("Poland", "head of state", "Andrzej Duda"),
        ),
        (
            "The name of the current head of the South Korea government is Moon Jae-in.",
            ("South Korea", "head of government", "Moon Jae-in"),
        ),
        (
            "Diego Rivera worked in the city of Washington, D.C..",
            ("Diego Rivera", "worked in the city of", "Washington, D.C."),
        ),
        ("I Fall to Pieces was performed by Patsy Cline.", ("I Fall to Pieces", "performer", "Patsy Cline")),
        ("httpx depends on certifi.", ("httpx", "depends on", "certifi")),
        ("`rmem.Brain` replaces `remanence.Brain`.", ("rmem.Brain", "replaces", "remanence.Brain")),
        ("The default timeout of redis-py is 30 s.", ("redis-py", "default timeout", "30 s")),
        ("lock.locked() returns True", ("lock.locked()", "returns", "True")),
        ("benches/bench.rs uses lazy_static but Cargo.toml does not.", ("benches/bench.rs", "uses", "lazy_static")),
    ],
)
def test_a_plain_statement_is_a_sure_fact(text: str, fact: tuple[str, str, str]) -> None:
    found = only(text)
    assert found[:3] == fact
    assert found.confidence == SURE
    assert not found.negated


@pytest.mark.parametrize(
    "text",
    [
        "Is Paris the capital of France?",
        "If the capital of France is Paris, the answer is no.",
        "Redis might be replaced by Valkey.",
        "It is married to Python 3.",
        "He works at Google.",
        "Sounds like a great plan!",
        "Drop support of Python 3.6",
        "Bump mypy from 0.961 to 0.971 (#2325)",
        "Thanks, that was really kind of you!",
        "I work at Google.",
        "no middleware uses the event loop",
        "I have played Nintendo.",
    ],
)
def test_questions_suppositions_and_pronouns_state_nothing(text: str) -> None:
    assert facts_in(memory(text)) == ()


def test_the_first_person_is_the_actor() -> None:
    assert triples("I work at Google.", "Ann") == [("Ann", "works at", "Google")]
    assert triples("My favorite character is Aragorn, he grows so much.", "Ann") == [
        ("Ann", "favorite character", "Aragorn")
    ]
    assert triples("I'm a shooting guard for the team.", "Ann") == [("Ann", "is a", "shooting guard")]


@pytest.mark.parametrize(
    "text",
    ["redis-py does not support Cluster Mode.", "Paris is no longer the capital of Prussia.", "X isn't part of Y."],
)
def test_a_denial_is_marked(text: str) -> None:
    assert only(text).negated


def test_a_hedged_statement_is_at_most_likely() -> None:
    assert only("I think the capital of France is Lyon.", "Ann").confidence == LIKELY
    assert only("The capital of France is probably Lyon.").confidence == LIKELY


@pytest.mark.parametrize(
    "text",
    [  # from public histories
        "ensure implicit_returning is checked on a Table instance",
        "Ensure `pycon3` is always normalised to `pycon`",
        "update CI supported DB versions",
        "detect map_imperatively() called twice",
        "WIP adding links to issues",
        "Support is established for Postgresql, MySQL, Oracle SQL Server and Firebird.",
        "1534 - Remove previously deprecated code.",
        "FIX BaseSerializer.from_native has an altered signature",
        "Put PRWv2 created timestamp ingestion behind feature-flag",
        "DOC Add links to text/plot_hashing_vs_dict_vectorizer.py example (#26967)",
        "MNT Remove deprecated pandas.api.types.is_sparse (#26287)",
        "Correctly replaces revoked certificates",
        "Implemented contains operator",
        "put @nexucis has a release shepherd (#13383)",
        "As 2.0.0 was released in 2014-05-28 it is reasonable to drop any mention.",
        "Later, dictTypeExpandAllowed was introduced in #7954, which is 6.2.",
        "Parameter `pnread` was a `ssize_t *`, but `size_t *` is better.",
        "req.no_body was only initialized in Curl_connect, while HTTP/2 server push adds a handle.",
        "Client writes a 3 MB key",
        "The PR contains 5 commits.",
        "Previously a C++20 requires-clause was only supported on `function` declarations.",
        "`typeof(col)` returns `blob` confirming binary storage",
        "`types.Union` was renamed to `types.UnionType` on the HEAD of 3.10 (refs: python/cpython#27342).",
    ],
)
def test_orders_earlier_states_and_parts_of_phrases_are_never_sure(text: str) -> None:
    assert [fact for fact in facts_in(memory(text)) if fact.confidence >= SURE] == []


def test_what_opens_a_sentence_is_no_part_of_the_subject() -> None:
    assert triples("MNT `_weighted_percentile` supports np.nan values (#29034)")[0][0] == "_weighted_percentile"
    assert triples("However, GIF support was broken by #6178.")[0][0] == "GIF support"


def test_an_adverb_is_no_part_of_the_subject() -> None:
    assert triples("GHA/appveyor-status already uses `GH_TOKEN`.") == [("GHA/appveyor-status", "uses", "GH_TOKEN")]


def test_quoted_names_in_a_list_are_objects_of_their_own() -> None:
    text = "`*-members` also includes `inherited-members` and `exclude-members` which are not dealt with."
    assert triples(text) == [
        ("*-members", "includes", "inherited-members"),
        ("*-members", "includes", "exclude-members"),
    ]


def test_a_class_ends_before_the_participle_that_describes_it() -> None:
    assert triples("PATCH is a proposed standard described by RFC 5789:") == [("PATCH", "is a", "proposed standard")]


def test_a_verb_that_nobody_listed_is_likely() -> None:
    found = only("Ada Lovelace translated the memoir of Menabrea.")
    assert (found.subject, found.relation, found.confidence) == ("Ada Lovelace", "translated", LIKELY)


def test_values_are_told_from_entities() -> None:
    assert only("The port of staging is 5433.").is_value
    assert not only("The capital of France is Paris.").is_value


def test_one_value_at_a_time_where_the_words_say_so() -> None:
    assert only("The capital of France is Paris.").single
    assert not only("Ann Lee visited Rome.").single


def test_since_and_until_are_read() -> None:
    found = only("The owner of billing is Ann Lee since 2026-05-01.")
    assert found[:3] == ("billing", "owner", "Ann Lee")
    assert found.valid_from == datetime(2026, 5, 1).timestamp()
    found = only("Ann Lee worked at Acme from 2019 to May 2021.")
    assert found.object == "Acme"
    assert (found.valid_from, found.valid_until) == (datetime(2019, 1, 1).timestamp(), datetime(2021, 5, 1).timestamp())


def test_the_place_in_the_text_is_that_of_the_sentence() -> None:
    text = "Hello there. The capital of France is Paris. Bye."
    found = only(text)
    assert text[found.start : found.end].strip() == "The capital of France is Paris."


def test_lists_are_several_facts_where_there_may_be_many() -> None:
    assert triples("httpx uses certifi, idna and h11.") == [
        ("httpx", "uses", "certifi"),
        ("httpx", "uses", "idna"),
        ("httpx", "uses", "h11"),
    ]


def test_at_most_32_facts_of_one_memory() -> None:
    text = " ".join(f"The capital of Land{n} is City{n}." for n in range(50))
    assert len(facts_in(memory(text))) == 32


def test_notes_in_markdown() -> None:
    front = "---\ntitle: Billing\nowner: Ann Lee\ntags: [payments, core]\n---\n"
    text = front + "uses:: [[Stripe]], [[PostgreSQL]]\nSee [[Invoices|them]]."
    assert triples(text) == [
        ("Billing", "owner", "Ann Lee"),
        ("Billing", "tag", "payments"),
        ("Billing", "tag", "core"),
        ("Billing", "uses", "Stripe"),
        ("Billing", "uses", "PostgreSQL"),
        ("Billing", "links to", "Invoices"),
    ]
    assert triples("# Staging\n\nruns on:: port 5433\n") == [("Staging", "runs on", "port 5433")]


@pytest.mark.parametrize(
    "text",
    [
        "Automatically removes useless catch clauses.",
        "Internally `PathLookup` is a lazy call to `lookup_path`.",
        "`quota 2e+09` means current quota size is 2 GB.",
        "HANA TINYINT is unsigned by default.",
        "O_TRUNC is needed in case file exists.",
        "When Laravel Cloud's agent is enabled, a worker pops jobs.",
        "Previously HEAD requests returned 405 Method Not Allowed.",
    ],
)
def test_what_stands_before_a_verb_is_not_always_a_name(text: str) -> None:
    assert triples(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "The method on Python3 is `bit_length`.",
        "In CreateWorkExprContext(), maxBlockSize is initialized to ALLOCSET_DEFAULT_MAXSIZE.",
        "dedupe sys/types.h, HAVE_SYS_TYPES_H is now unused in code",
        "Client Stats were supported for max 50 clients.",
        "NimbusJwtEncoder did not support EdDSA family algorithms.",
        "searchcount() returns wrong cached maxcount",
        "trig_rule now uses 1 - sin(u) = 2*cos(u/2 + pi/4)**2",
        "PR fixes 2",
        "Original bug was reported by Matthias Pitzl.",
    ],
)
def test_what_is_over_cut_or_names_nothing_is_not_sure(text: str) -> None:
    assert [fact for fact in facts_in(memory(text)) if fact.confidence >= SURE] == []


def test_a_leading_underscore_belongs_to_a_name() -> None:
    assert triples("_signal_closed() calls _connect_future.exception().")[0][::2] == (
        "_signal_closed()",
        "_connect_future.exception()",
    )
    assert clean("_Billing_") == clean("**Billing**") == "Billing"
    assert clean("__init__") == "__init__"


def test_versions_of_a_list_keep_the_name_before_the_first() -> None:
    listed = triples("Django 6.0 supports Python 3.12, 3.13, and 3.14.")
    assert [object_ for _, _, object_ in listed] == ["Python 3.12", "Python 3.13", "Python 3.14"]


def test_what_a_thing_came_from_ends_before_to() -> None:
    assert only("docs.docker.com switched from Jekyll to Hugo.")[:3] == ("docs.docker.com", "switched from", "Jekyll")


def test_a_line_that_begins_with_an_option_or_a_number_goes_on_with_its_sentence() -> None:
    assert triples("The check fails if the\n--all flag is provided by the user.") == []
    assert triples("The newest\n3006.x release is 3006.28.") == []
