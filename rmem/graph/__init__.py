"""The graph of facts. `graph` is the API; `reader` reads facts from a store, `validity` computes how long they hold,
`paths` finds paths, `patterns` matches queries with variables, `whole` analyses the whole graph, and `formats` reads
and writes files. What a fact is and how it is extracted from a memory is in `rmem.facts`.

    brain.graph.add("staging", "runs on", "port 5433", since="2026-05-01")
    brain.graph.neighbours("staging")
"""

from .graph import Graph, Scope
from .model import Change, Contradiction, Fact, FactExplanation, Neighbour, Path

__all__ = ["Change", "Contradiction", "Fact", "FactExplanation", "Graph", "Neighbour", "Path", "Scope"]
