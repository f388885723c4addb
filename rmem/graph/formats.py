"""Facts in files: JSON lines, GraphML, N-Triples and JSON-LD to keep and exchange, DOT, Mermaid and SVG to look at."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from typing import Any
from urllib.parse import quote, unquote

from .. import checks
from ..errors import InputError
from ..extras import require
from ..facts.model import STATED
from ..models import shorten
from .model import Fact, iso
from .whole import to_networkx

_BASE, _RDF, _XSD = "urn:rmem:", "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://www.w3.org/2001/XMLSchema#"
_FIELDS = ("valid_from", "valid_until", "learned_at", "confidence", "memory_id", "agent", "dated", "negated")
_TRIPLE = re.compile(r'<([^>]*)>\s+<([^>]*)>\s+(?:<([^>]*)>|"((?:[^"\\]|\\.)*)"(?:\^\^<[^>]*>|@[\w-]+)?)\s*\.\s*\Z')
_WIDTH, _HEIGHT, _MAX_ENTITIES = 960, 640, 200  # of an SVG picture: pixels, and entities that stay legible
_LABEL = 32  # characters of a name shown; the tooltip has all of it
_HALO = 'stroke="#fff" stroke-width="3" paint-order="stroke"'


# Writing files to exchange


def _jsonl(facts: Iterable[Fact]) -> Iterator[str]:
    for fact in facts:
        yield json.dumps(fact.to_dict(), ensure_ascii=False) + "\n"


def _graphml(facts: Iterable[Fact]) -> Iterator[str]:
    require("graph", "GraphML")
    import networkx

    graph = to_networkx(facts)
    for _, _, fields in graph.edges(data=True):
        fields["tags"] = json.dumps(fields["tags"], ensure_ascii=False)
        for name in [name for name, value in fields.items() if value is None]:
            del fields[name]
    yield from (line + "\n" for line in networkx.generate_graphml(graph))


def _ntriples(facts: Iterable[Fact]) -> Iterator[str]:
    for fact in facts:
        about = f"{_BASE}fact:{quote(fact.id, safe='')}"
        end = _literal(fact.object) if fact.is_value else f"<{_iri('entity', fact.object)}>"
        subject, relation = f"<{_iri('entity', fact.subject)}>", f"<{_iri('relation', fact.relation)}>"
        if not fact.negated:
            yield f"{subject} {relation} {end} .\n"
        yield f"<{about}> <{_RDF}type> <{_RDF}Statement> .\n"
        yield f"<{about}> <{_RDF}subject> {subject} .\n"
        yield f"<{about}> <{_RDF}predicate> {relation} .\n"
        yield f"<{about}> <{_RDF}object> {end} .\n"
        for name in _FIELDS:
            value = getattr(fact, name)
            if value is not None:
                yield f"<{about}> <{_BASE}{name}> {_typed_literal(name, value)} .\n"


def _jsonld(facts: Iterable[Fact]) -> Iterator[str]:
    context = {
        "rdf": _RDF,
        "xsd": _XSD,
        "@vocab": _BASE,
        "subject": {"@id": "rdf:subject", "@type": "@id"},
        "relation": {"@id": "rdf:predicate", "@type": "@id"},
        "object": {"@id": "rdf:object"},
        **{
            name: {"@id": _BASE + name, "@type": "xsd:dateTime"} for name in ("valid_from", "valid_until", "learned_at")
        },
    }
    yield f'{{"@context": {json.dumps(context)}, "@graph": ['
    for number, fact in enumerate(facts):
        subject, relation = _iri("entity", fact.subject), _iri("relation", fact.relation)
        end = {"@value": fact.object} if fact.is_value else {"@id": _iri("entity", fact.object)}
        triple = [] if fact.negated else [{"@id": subject, relation: end}]
        node: dict[str, Any] = {
            "@id": f"{_BASE}fact:{quote(fact.id, safe='')}",
            "@type": "rdf:Statement",
            "subject": subject,
            "relation": relation,
            "object": end,
        }
        for name in _FIELDS:
            value = getattr(fact, name)
            if value is not None:
                node[name] = iso(value) if name in ("valid_from", "valid_until", "learned_at") else value
        yield ",\n" if number else "\n"
        yield ",\n".join(json.dumps(one, ensure_ascii=False) for one in (*triple, node))
    yield "\n]}\n"


def _iri(kind: str, name: str) -> str:
    return f"{_BASE}{kind}:{quote(name, safe='')}"


def _literal(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


def _typed_literal(name: str, value: Any) -> str:
    if name in ("valid_from", "valid_until", "learned_at"):
        return f'"{iso(value)}"^^<{_XSD}dateTime>'
    if isinstance(value, bool):
        return f'"{str(value).lower()}"^^<{_XSD}boolean>'
    if isinstance(value, float):
        return f'"{value}"^^<{_XSD}double>'
    return _literal(str(value))


# Writing pictures


def _dot(facts: Iterable[Fact]) -> Iterator[str]:
    yield "digraph facts {\n  rankdir=LR;\n  node [shape=box, style=rounded];\n"
    for fact in facts:
        style = ", style=dashed" if fact.valid_until is not None or fact.negated else ""
        yield f"  {json.dumps(fact.subject)} -> {json.dumps(fact.object)} [label={json.dumps(fact.relation)}{style}];\n"
    yield "}\n"


def _mermaid(facts: Iterable[Fact]) -> Iterator[str]:
    numbers: dict[str, int] = {}

    def node(name: str) -> str:
        number = numbers.setdefault(name, len(numbers))
        return f'n{number}["{_mermaid_text(name)}"]'

    yield "graph LR\n"
    for fact in facts:
        arrow = "-.->" if fact.valid_until is not None or fact.negated else "-->"
        yield f'  {node(fact.subject)} {arrow}|"{_mermaid_text(fact.relation)}"| {node(fact.object)}\n'


def _mermaid_text(text: str) -> str:
    """Escape text for a quoted label in Mermaid."""
    return escape(text, quote=False).replace("&", "#").replace('"', "#quot;")


def _svg(facts: Iterable[Fact]) -> Iterator[str]:
    require("graph", "SVG")
    import networkx

    chosen = list(facts)
    graph: networkx.Graph[str] = networkx.Graph()
    graph.add_edges_from((fact.subject, fact.object) for fact in chosen)
    if len(graph) > _MAX_ENTITIES:
        raise InputError(f"a picture holds at most {_MAX_ENTITIES} entities, not {len(graph):,}; choose an entity")
    layout = networkx.spring_layout(graph, seed=0, k=1.6 / max(1, len(graph)) ** 0.5, iterations=120)
    positions = {
        name: (80 + (x + 1) / 2 * (_WIDTH - 160), 40 + (y + 1) / 2 * (_HEIGHT - 80)) for name, (x, y) in layout.items()
    }
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        'font-size="12"><defs><marker id="a" viewBox="0 0 8 8" refX="16" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0L8 4L0 8z" fill="#888"/></marker></defs>'
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>\n'
    )
    for fact in chosen:
        (x, y), (u, v) = positions[fact.subject], positions[fact.object]
        dashed = ' stroke-dasharray="4 3"' if fact.valid_until is not None or fact.negated else ""
        yield (
            f'<line x1="{x:.0f}" y1="{y:.0f}" x2="{u:.0f}" y2="{v:.0f}" stroke="#888"{dashed} marker-end="url(#a)"/>'
            f'<text x="{(x + u) / 2:.0f}" y="{(y + v) / 2 - 3:.0f}" fill="#666" text-anchor="middle" font-size="10" '
            f"{_HALO}>{escape(fact.relation)}</text>\n"
        )
    for name, (x, y) in positions.items():
        yield (
            f'<circle cx="{x:.0f}" cy="{y:.0f}" r="6" fill="#3b6ea5"/>'
            f'<text x="{x:.0f}" y="{y - 10:.0f}" text-anchor="middle" {_HALO}>{escape(shorten(name, _LABEL))}'
            f"<title>{escape(name)}</title></text>\n"
        )
    yield "</svg>\n"


WRITERS: dict[str, Callable[[Iterable[Fact]], Iterator[str]]] = {
    "jsonl": _jsonl,
    "graphml": _graphml,
    "nt": _ntriples,
    "jsonld": _jsonld,
    "dot": _dot,
    "mermaid": _mermaid,
    "svg": _svg,
}


def write(facts: Iterable[Fact], kind: str) -> Iterator[str]:
    """Yield the text of a file of facts in the format `kind`, piece by piece."""
    return WRITERS[checks.one_of("format", kind, list(WRITERS))](facts)


# Reading


def read(lines: Iterable[str], kind: str) -> list[Fact]:
    """Read the facts of a file; an InputError names the line or the fact that is wrong."""
    return READERS[checks.one_of("format", kind, list(READERS))](lines)


def _build_fact(where: str, fields: Any) -> Fact:
    """Build a fact from its fields; `where` names it in errors."""
    if not isinstance(fields, dict):
        raise InputError(f"{where} must be an object with subject, relation and object", field=where)
    for name in ("subject", "relation", "object"):
        if not isinstance(fields.get(name), str) or not fields[name]:
            raise checks.refuse(f"{where}: {name}", "a text", fields.get(name))
    tags = fields.get("tags") or {}
    start, until = fields.get("valid_from"), fields.get("valid_until")
    return Fact(
        id="",
        subject=fields["subject"],
        relation=fields["relation"],
        object=fields["object"],
        valid_from=checks.moment(f"{where}: valid_from", start if start is not None else "now"),
        learned_at=0.0,
        memory_id="",
        valid_until=None if until is None else checks.moment(f"{where}: valid_until", until),
        confidence=checks.share(f"{where}: confidence", fields.get("confidence", STATED)),
        is_value=fields.get("is_value") is True,
        negated=fields.get("negated") is True,
        dated=fields.get("dated") is True or (start is not None and "dated" not in fields),
        agent=checks.name(f"{where}: agent", fields.get("agent", "default")),
        tags=checks.labels(f"{where}: tags", json.loads(tags) if isinstance(tags, str) else tags),
    )


def _read_jsonl(lines: Iterable[str]) -> list[Fact]:
    found = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                fields = json.loads(line)
            except ValueError as error:
                raise InputError(f"line {number} is not JSON: {error}", field=f"line {number}") from None
            found.append(_build_fact(f"line {number}", fields))
    return found


def _read_graphml(lines: Iterable[str]) -> list[Fact]:
    require("graph", "GraphML")
    import networkx

    try:
        graph = networkx.parse_graphml("".join(lines), force_multigraph=True)
    except Exception as error:  # of the XML parser or networkx, which have no common base class
        raise InputError(f"the file is not GraphML: {error}", field="file") from None
    return [
        _build_fact(f"edge {number}", {"relation": fields.get("label", ""), **fields, "subject": start, "object": goal})
        for number, (start, goal, fields) in enumerate(graph.edges(data=True), 1)
    ]


def _read_ntriples(lines: Iterable[str]) -> list[Fact]:
    """Read reified statements with their fields, and those plain triples that no statement repeats."""
    about: dict[str, dict[str, Any]] = {}
    plain: dict[tuple[str, ...], dict[str, Any]] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _TRIPLE.match(line.strip())
        if found is None:
            raise InputError(f"line {number} is not a triple: {line.strip()[:80]!r}", field=f"line {number}")
        subject, predicate, goal, literal = found.groups()
        value = _unescape(literal) if goal is None else _name_in_iri(goal)
        if predicate.startswith(_RDF) or (subject.startswith(f"{_BASE}fact:") and predicate.startswith(_BASE)):
            fields = about.setdefault(subject, {})
            name = predicate.removeprefix(_RDF).removeprefix(_BASE)
            fields["relation" if name == "predicate" else name] = value
            if name == "object":
                fields["is_value"] = goal is None
        else:
            triple = (_name_in_iri(subject), _name_in_iri(predicate), value)
            plain[triple] = dict(zip(("subject", "relation", "object"), triple, strict=True))
            plain[triple]["is_value"] = goal is None
    for fields in about.values():
        plain.pop((fields.get("subject", ""), fields.get("relation", ""), fields.get("object", "")), None)
        fields.pop("type", None)
        for name in ("dated", "negated"):
            fields[name] = fields.get(name) == "true"
        if "confidence" in fields:
            fields["confidence"] = float(fields["confidence"])
    return [_build_fact(f"statement {at}", fields) for at, fields in enumerate([*about.values(), *plain.values()], 1)]


def _read_jsonld(lines: Iterable[str]) -> list[Fact]:
    try:
        document = json.loads("".join(lines))
        nodes = document["@graph"]
    except (ValueError, KeyError, TypeError):
        raise InputError('the file must be JSON-LD with a "@graph" of statements', field="file") from None
    found = []
    for number, node in enumerate(nodes, 1):
        fields = dict(node) if isinstance(node, dict) else {}
        if fields and all(name.startswith(("@id", _BASE)) for name in fields):
            continue  # the triple alone, which its statement repeats
        goal = fields.get("object")
        if isinstance(goal, dict):
            fields |= (
                {"object": goal["@value"], "is_value": True}
                if "@value" in goal
                else {"object": _name_in_iri(goal["@id"])}
            )
        for name in ("subject", "relation"):
            if isinstance(fields.get(name), str):
                fields[name] = _name_in_iri(fields[name])
        found.append(_build_fact(f"statement {number}", fields))
    return found


def _name_in_iri(iri: str) -> str:
    """Return the name in an IRI: ours unquoted, else its last segment."""
    for kind in ("entity", "relation"):
        if iri.startswith(f"{_BASE}{kind}:"):
            return unquote(iri.removeprefix(f"{_BASE}{kind}:"))
    return unquote(re.split(r"[/#:]", iri.rstrip("/#"))[-1]).replace("_", " ") or iri


def _unescape(literal: str) -> str:
    return re.sub(
        r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)",
        lambda found: (
            chr(int(found[1][1:], 16))
            if found[1][0] in "uU"
            else {"n": "\n", "r": "\r", "t": "\t"}.get(found[1], found[1])
        ),
        literal,
    )


READERS: dict[str, Callable[[Iterable[str]], list[Fact]]] = {
    "jsonl": _read_jsonl,
    "graphml": _read_graphml,
    "nt": _read_ntriples,
    "jsonld": _read_jsonld,
}
SUFFIXES = {".jsonl": "jsonl", ".graphml": "graphml", ".nt": "nt", ".jsonld": "jsonld", ".dot": "dot", ".gv": "dot"}
SUFFIXES |= {".mmd": "mermaid", ".mermaid": "mermaid", ".svg": "svg"}


def format_of(path: str, known: Sequence[str]) -> str:
    """Return the format for a file's suffix, one of `known`."""
    suffix = next((suffix for suffix in SUFFIXES if path.lower().endswith(suffix)), None)
    if suffix is None or SUFFIXES[suffix] not in known:
        ends = ", ".join(suffix for suffix, kind in SUFFIXES.items() if kind in known)
        raise InputError(f"{path} has no known suffix; end it in one of {ends}, or give --format", field="format")
    return SUFFIXES[suffix]
