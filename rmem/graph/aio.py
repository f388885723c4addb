"""AsyncGraph: `AsyncBrain.graph`, the methods of Graph awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import islice

from ..aio import _AsyncWrapper, _Awaited
from ..annotations import Where
from .graph import Graph
from .model import Fact
from .reader import BATCH


class AsyncGraph(_AsyncWrapper[Graph]):
    """`await brain.graph.facts("staging")`; the arguments are Graph's."""

    def where(self, where: Where) -> AsyncGraph:
        """Return this graph restricted to facts whose memories match a filter."""
        return AsyncGraph(self.sync.where(where))

    async def all_facts(self, *, history: bool = False, likely: bool = False) -> AsyncIterator[Fact]:
        """Yield every fact, in the order in which they were learned."""
        found = self.sync.all_facts(history=history, likely=likely)
        while page := await asyncio.to_thread(lambda: list(islice(found, BATCH))):
            for fact in page:
                yield fact

    add = _Awaited(Graph.add)
    add_many = _Awaited(Graph.add_many)
    map_table = _Awaited(Graph.map_table)
    read_with = _Awaited(Graph.read_with)
    end = _Awaited(Graph.end)
    alias = _Awaited(Graph.alias)
    declare = _Awaited(Graph.declare)
    undo = _Awaited(Graph.undo)
    get = _Awaited(Graph.get)
    of_memory = _Awaited(Graph.of_memory)
    facts = _Awaited(Graph.facts)
    neighbours = _Awaited(Graph.neighbours)
    as_of = _Awaited(Graph.as_of)
    timeline = _Awaited(Graph.timeline)
    between = _Awaited(Graph.between)
    contradictions = _Awaited(Graph.contradictions)
    closure = _Awaited(Graph.closure)
    paths = _Awaited(Graph.paths)
    query = _Awaited(Graph.query)
    important = _Awaited(Graph.important)
    communities = _Awaited(Graph.communities)
    to_networkx = _Awaited(Graph.to_networkx)
    explain = _Awaited(Graph.explain)
    entities = _Awaited(Graph.entities)
    relations = _Awaited(Graph.relations)
