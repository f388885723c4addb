"""What is known, as a graph of facts: questions about them (`graph`), how they are read (`reader`), how long they hold
(`validity`), ways through them (`paths`), patterns with variables (`patterns`), the whole graph (`whole`), and files
(`formats`). What a fact is and how it is read from a memory is in `rmem.facts`.

    brain.graph.add("staging", "runs on", "port 5433", since="2026-05-01")
    brain.graph.neighbours("staging")
"""

from .graph import Graph, Scope
from .model import Change, Contradiction, Explanation, Fact, Neighbour, Path

__all__ = ["Change", "Contradiction", "Explanation", "Fact", "Graph", "Neighbour", "Path", "Scope"]
