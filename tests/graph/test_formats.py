"""Facts in files: what others' libraries read of them, and what comes back."""

import json
from xml.etree import ElementTree

import networkx
import pytest
import rdflib

from rmem import Brain
from rmem.errors import InputError
from rmem.graph import formats
from rmem.graph.model import iso


@pytest.fixture
def graph(tmp_path):
    with Brain(str(tmp_path / "a.db")) as brain:
        brain.graph.declare("runs on", single=True)
        brain.graph.add("staging <db>", "runs on", 'port "5433"', since="2026-05-01")
        brain.graph.add("staging <db>", "runs on", "port & co", since="2026-07-01", tags={"repository": "api"})
        brain.graph.add("staging <db>", "uptime", 99.5)
        brain.graph.add("Zoë", "owns", "staging <db>", negated=True)
        yield brain.graph


def told(facts):
    return {
        (fact.subject, fact.relation, fact.object, iso(fact.valid_from), fact.valid_until, fact.is_value, fact.negated)
        for fact in facts
    }


@pytest.mark.parametrize("kind", ["jsonl", "graphml", "nt", "jsonld"])
def test_what_is_exported_comes_back(kind, graph, tmp_path):
    written = "".join(formats.write(graph.all_facts(history=True), kind))
    with Brain(str(tmp_path / "b.db")) as brain:
        brain.graph.declare("runs on", single=True)
        assert brain.graph.add_many(formats.read(written.splitlines(keepends=True), kind)) == 4
        assert told(brain.graph.all_facts(history=True)) == told(graph.all_facts(history=True))


def test_rdflib_reads_the_triples_of_both_formats(graph):
    plain, linked = rdflib.Graph(), rdflib.Graph()
    plain.parse(data="".join(formats.write(graph.all_facts(), "nt")), format="nt")
    linked.parse(data="".join(formats.write(graph.all_facts(), "jsonld")), format="json-ld")
    subject = rdflib.URIRef("urn:rmem:entity:staging%20%3Cdb%3E")
    statements = set(plain.subjects(rdflib.RDF.subject, subject))
    assert len(statements) == 2
    assert set(linked.subjects(rdflib.RDF.subject, subject)) == statements
    triples = set(linked.triples((subject, None, None)))
    assert (subject, rdflib.URIRef("urn:rmem:relation:uptime"), rdflib.Literal("99.5")) in triples
    assert triples == set(plain.triples((subject, None, None)))
    asked = f"SELECT ?port WHERE {{ <{subject}> <urn:rmem:relation:runs%20on> ?port }}"
    assert {str(row[0]) for row in linked.query(asked)} == {"urn:rmem:entity:port%20%26%20co"}


def test_what_is_denied_is_no_triple(graph):
    for kind, name in (("nt", "nt"), ("jsonld", "json-ld")):
        read = rdflib.Graph().parse(data="".join(formats.write(graph.all_facts(history=True), kind)), format=name)
        assert not set(read.subjects(rdflib.URIRef("urn:rmem:relation:owner"), None))
        assert len(set(read.subjects(rdflib.RDF.type, rdflib.RDF.Statement))) == 4


def test_networkx_reads_graphml(graph):
    read = networkx.parse_graphml("".join(formats.write(graph.all_facts(), "graphml")))
    assert read.has_edge("staging <db>", "port & co")


def test_triples_that_others_wrote_are_taken_by_the_ends_of_their_addresses():
    written = [
        "<http://dbpedia.org/resource/Oslo> <http://dbpedia.org/ontology/country> "
        "<http://dbpedia.org/resource/Norway> .",
        '<http://dbpedia.org/resource/Oslo> <http://xmlns.com/foaf/0.1/name> "Osl\\u00f8"@no .',
    ]
    found = formats.read(written, "nt")
    assert [(fact.subject, fact.relation, fact.object, fact.is_value) for fact in found] == [
        ("Oslo", "country", "Norway", False),
        ("Oslo", "name", "Osl\u00f8", True),
    ]


def test_pictures_escape_what_texts_hold(graph):
    svg = "".join(formats.write(graph.all_facts(), "svg"))
    ElementTree.fromstring(svg)
    assert "staging &lt;db&gt;" in svg
    assert '"staging <db>" -> "port & co"' in "".join(formats.write(graph.all_facts(), "dot"))
    assert 'n0["staging #lt;db#gt;"]' in "".join(formats.write(graph.all_facts(), "mermaid"))


@pytest.mark.parametrize(
    ("kind", "written", "message"),
    [
        ("jsonl", '{"subject": "a"}', "line 1: relation must be"),
        ("jsonl", "no json", "line 1 is not JSON"),
        ("nt", "a b c", "line 1 is not a triple"),
        ("graphml", "<xml", "not GraphML"),
        ("jsonld", "[]", "@graph"),
        ("svg", "", "format must be"),
    ],
)
def test_what_cannot_be_read_is_named(kind, written, message):
    with pytest.raises(InputError, match=message):
        formats.read([written], kind)


def test_nothing_is_stated_of_a_file_with_one_wrong_fact(graph):
    before = len(graph)
    good = json.dumps({"subject": "a", "relation": "b", "object": "c"})
    bad = json.dumps(
        {"subject": "a", "relation": "b", "object": "c", "valid_from": "2026-05-01", "valid_until": "2026-04-01"}
    )
    with pytest.raises(InputError, match="valid_until must be after valid_from"):
        graph.add_many(formats.read([good, bad], "jsonl"))
    assert len(graph) == before
