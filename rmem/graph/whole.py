"""What needs the whole graph: which entities matter most, which belong together, and the graph in networkx."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..extras import require
from ..facts.model import NEGATED, VALUE, FactEdges, name_id
from ..facts.stated import RESERVED

if TYPE_CHECKING:
    import networkx

    from ..stores.capabilities import FactTable
    from .model import Fact

_DAMPING, _MAX_ROUNDS, _TOLERANCE = 0.85, 100, 1e-9
_LARGE = 200_000  # facts above which communities are found by a faster algorithm


def important(store: FactTable, edges: FactEdges, limit: int) -> list[tuple[str, float]]:
    """Rank entities by PageRank. Computed here because networkx needs scipy for it, which is larger than all of
    rmem."""
    names, (sources, goals) = _entities(edges)
    if not names.size:
        return []
    out = np.bincount(sources, minlength=names.size)
    rank = np.full(names.size, 1 / names.size)
    for _ in range(_MAX_ROUNDS):
        flow = np.bincount(goals, weights=(rank / np.maximum(out, 1))[sources], minlength=names.size)
        lost = rank[out == 0].sum() / names.size
        fresh = (1 - _DAMPING) / names.size + _DAMPING * (flow + lost)
        if np.abs(fresh - rank).sum() < _TOLERANCE:
            break
        rank = fresh
    best = np.argsort(-rank, kind="stable")[:limit]
    known = store.known_names(names[best].tolist())
    return [(known[int(names[at])], float(rank[at])) for at in best.tolist() if int(names[at]) in known]


def communities(store: FactTable, edges: FactEdges, smallest: int, limit: int) -> list[list[str]]:
    """Find groups of entities with many facts among them, the largest first; in each, those with the most facts
    first."""
    require("graph", "communities")
    import networkx

    names, (sources, goals) = _entities(edges)
    graph: networkx.Graph[int] = networkx.Graph()
    graph.add_edges_from(zip(sources.tolist(), goals.tolist(), strict=True))
    if sources.size > _LARGE:
        found = list(networkx.community.fast_label_propagation_communities(graph, seed=0))
    else:
        found = networkx.community.louvain_communities(graph, seed=0)
    chosen = sorted((group for group in found if len(group) >= smallest), key=lambda group: (-len(group), min(group)))
    ordered = [sorted(group, key=lambda one: (-graph.degree[one], one)) for group in chosen[:limit]]
    known = store.known_names(names[[one for group in ordered for one in group]].tolist())
    return [[known[key] for one in group if (key := int(names[one])) in known] for group in ordered]


def to_networkx(facts: Iterable[Fact]) -> networkx.MultiDiGraph[Any]:
    """Build a networkx graph whose edges are facts."""
    require("graph", "to_networkx")
    import networkx

    graph: networkx.MultiDiGraph[Any] = networkx.MultiDiGraph()
    for fact in facts:
        graph.add_edge(fact.subject, fact.object, key=fact.id, **fact.to_dict())
    return graph


def _entities(edges: FactEdges) -> tuple[np.ndarray[Any, Any], tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """Return the ids of all entities, and the facts between them as two columns of positions in those ids."""
    edges = without_reserved(edges)
    between = edges.flags & (VALUE | NEGATED) == 0
    sources, goals = edges.subject[between], edges.object[between]
    order = np.lexsort((goals, sources))  # so that communities do not depend on the order in which a store reads
    sources, goals = sources[order], goals[order]
    names, places = np.unique(np.concatenate([sources, goals]), return_inverse=True)
    return names, (places[: sources.size], places[sources.size :])


def without_reserved(edges: FactEdges) -> FactEdges:
    """Drop statements about facts (aliases, declarations, ends)."""
    own = ~np.isin(edges.relation, [name_id(one) for one in RESERVED])
    return FactEdges(*(column[own] for column in edges))
