"""From a statement with search operators to one that an engine can run: `rmem_score(k, alias._row)` where operators
stood, the scores that answer it, and whether the best rows of one score are enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlglot import exp

from ..catalog import ROW, Table
from ..engines.base import Rows
from ..sql.functions import aggregates
from .indexes import SearchIndexes
from .operators import BM25, COSINE, HYBRID, MAXSIM, Ask, Reader, Search, check_dimension, is_search, number, whole
from .ordering import order_best_first, target
from .scores import CosineScores, HybridScores, MaxSimScores, NoScores, SearchScores, TextScores
from .sources import sources, with_of
from .texts import TextColumn
from .vectors import VectorColumn, VectorsColumn

SCORE = "rmem_score"
_INDEX_METHODS = ("search", "deeplake_index")


@dataclass(frozen=True, slots=True)
class Ranking:
    """The statement wants the best rows of one score of one table."""

    score: int
    alias: str
    limit: int
    skipped: int
    ties: bool
    """Whether rows of equal score are told apart by more than their number."""


@dataclass(frozen=True, slots=True)
class Planned:
    tree: exp.Expression
    scores: list[SearchScores]
    searches: list[Search]
    """What was searched, one for each score."""
    ranking: Ranking | None
    narrowed: dict[str, Rows]
    """Rows outside which a table has none that WHERE lets through."""

    def lines(self) -> list[str]:
        """What EXPLAIN says of the searches."""
        return [_line(search) for search in self.searches]


def has_search(tree: exp.Expression) -> bool:
    return any(is_search(node) for node in tree.walk())


def planned(
    tree: exp.Expression,
    catalogue: Mapping[str, Table],
    indexes: SearchIndexes,
    parameters: Sequence[Any],
    ask: Ask,
) -> Planned:
    """The tree is checked and every column in it has the name of its source; it is not changed. `ask` runs the queries
    in it that say what to search for."""
    tree = tree.copy()
    order_best_first(tree, parameters)
    reader = Reader(catalogue, parameters, ask)
    found = [(node, reader.read(node)) for node in tree.walk(prune=is_search) if is_search(node)]
    numbers: dict[tuple[object, ...], int] = {}
    searches: list[Search] = []
    for _, search in found:
        if (search.alias, search.key) not in numbers:
            numbers[search.alias, search.key] = len(searches)
            searches.append(search)
    indexes.keep_only(catalogue)
    scores = _scores(searches, indexes)
    for node, search in found:
        score = score_node(numbers[search.alias, search.key], search.alias)
        if node is tree:
            tree = score
        node.replace(score)
    selects = [tree, *(select for select in tree.find_all(exp.Select) if select is not tree)]
    for select in selects:
        _tell_equals_apart(select)
    narrowed = _narrowed(tree, scores, parameters)
    for select in selects[1:]:
        narrowed |= _best_of(select, scores, parameters)
    return Planned(tree, scores, searches, _ranking(tree, parameters), narrowed)


def _scores(searches: Sequence[Search], indexes: SearchIndexes) -> list[SearchScores]:
    wanted: dict[str, tuple[Table, set[str]]] = {}
    for search in searches:
        wanted.setdefault(search.table.name, (search.table, set()))[1].update(search.columns)
    held = {name: indexes.follow(table, columns) for name, (table, columns) in wanted.items()}
    known: dict[tuple[object, ...], SearchScores] = {}
    for search in searches:
        if search.key not in known:
            known[search.key] = _score(search, [held[search.table.name][name] for name in search.columns])
    return [known[search.key] for search in searches]


def _score(search: Search, columns: Sequence[TextColumn | VectorColumn | VectorsColumn]) -> SearchScores:
    if search.null:
        return NoScores()
    match (search.form, *columns):
        case (str(form), TextColumn() as texts) if form == BM25:
            return TextScores(texts.texts(), search.words or "")
        case (str(form), VectorColumn() as vectors) if form == COSINE:
            return CosineScores(vectors.vectors(_dimension(search, vectors)), _queries(search)[0])
        case (str(form), VectorsColumn() as many) if form == MAXSIM:
            return MaxSimScores(many.stacked(_dimension(search, many)), _queries(search))
        case (str(form), VectorColumn() as vectors, TextColumn() as texts) if form == HYBRID:
            found = vectors.vectors(_dimension(search, vectors))
            return HybridScores(found, _queries(search)[0], texts.texts(), search.words or "", *search.weights)
    raise AssertionError(search.form)


def _queries(search: Search) -> Any:
    assert search.vectors is not None
    return search.vectors


def _dimension(search: Search, column: VectorColumn | VectorsColumn) -> int:
    """The dimension of the query, which must be one that the column has."""
    asked = int(_queries(search).shape[1])
    held = column.dimensions()
    if held and asked not in held:
        check_dimension(f"{search.table.name}.{search.columns[0]}", held[0], asked)
    return asked


def score_node(score: int, alias: str) -> exp.Anonymous:
    node = exp.Anonymous(this=SCORE, expressions=[exp.Literal.number(score), row_of(alias)])
    node.meta["type"] = "float8"
    return node


def row_of(alias: str) -> exp.Column:
    row = exp.column(exp.to_identifier(ROW, quoted=True), table=exp.to_identifier(alias, quoted=True))
    row.meta["type"] = "int8"
    return row


def _line(search: Search) -> str:
    """`Search: bm25 index notes_text on notes(text)`."""
    parts = []
    forms = (COSINE, BM25) if search.form == HYBRID else (search.form,)
    for form, column in zip(forms, search.columns, strict=True):
        declared = [
            index.name for index in search.table.indexes if index.method in _INDEX_METHODS and column in index.columns
        ]
        how = f"index {declared[0]} on" if declared else "on the fly on"
        parts.append(f"{form} {how} {search.table.name}({column})")
    return "Search: " + " and ".join(parts)


# What kind of answer is wanted


def _score_of(node: exp.Expr) -> tuple[int, str] | None:
    """The number and the alias of a score."""
    while isinstance(node, exp.Paren | exp.Alias):
        node = node.this
    if isinstance(node, exp.Anonymous) and node.name == SCORE:
        row = node.expressions[1]
        return int(node.expressions[0].name), str(row.table)
    return None


def _leading_score(tree: exp.Expr) -> tuple[int, str] | None:
    """The score that a SELECT orders its rows by."""
    order = tree.args.get("order")
    if not isinstance(tree, exp.Select) or not isinstance(order, exp.Order) or _gathers(tree):
        return None
    found = _score_of(target(order.expressions[0]))
    return found if found and found[1] in {source.alias_or_name for source in sources(tree)} else None


def _gathers(select: exp.Select) -> bool:
    """Whether a row of the answer is made of more than one row."""
    if select.args.get("group") or select.args.get("having") or select.args.get("distinct"):
        return True
    for part in (*select.expressions, select.args["order"]):
        for node in part.walk(prune=lambda one: isinstance(one, exp.Query)):
            if isinstance(node, exp.Window | exp.AggFunc):
                return True
            if isinstance(node, exp.Anonymous) and node.name.lower() in aggregates:
                return True
    return False


def _tell_equals_apart(tree: exp.Expr) -> None:
    """Rows of equal score stand in the order of their numbers, so that the same question has the same answer."""
    found = _leading_score(tree)
    if found is None:
        return
    aliases = [source.alias_or_name for source in sources(tree) if _is_real(source)]
    for alias in sorted(aliases, key=lambda alias: alias != found[1]):
        tree.args["order"].append("expressions", exp.Ordered(this=row_of(alias), desc=False, nulls_first=False))


def _is_real(source: exp.Expr) -> bool:
    return isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier) and with_of(source) is None


def _ranking(tree: exp.Expr, parameters: Sequence[Any]) -> Ranking | None:
    found = _leading_score(tree)
    limit = tree.args.get("limit")
    if found is None or not isinstance(limit, exp.Limit) or not _can_be_narrowed(tree, found[1]):
        return None
    order = tree.args["order"].expressions
    if not order[0].args.get("desc") or order[0].args.get("nulls_first"):
        return None
    offset = tree.args.get("offset")
    count = whole(limit.expression, parameters)
    skipped = 0 if offset is None else whole(offset.expression, parameters)
    if count is None or skipped is None:
        return None
    own = [one for one in order if not (isinstance(one.this, exp.Column) and one.this.name == ROW)]
    return Ranking(found[0], found[1], count, skipped, ties=len(own) > 1)


def _best_of(select: exp.Expr, scores: Sequence[SearchScores], parameters: Sequence[Any]) -> dict[str, Rows]:
    """The rows that a SELECT inside another statement answers, where it wants the best of one table and no more."""
    ranking = _ranking(select, parameters)
    if ranking is None or select.args.get("where") or select.args.get("joins"):
        return {}
    rows, _ = scores[ranking.score].best(ranking.limit + ranking.skipped, ties=ranking.ties)
    return {ranking.alias: rows} if rows.size >= ranking.limit + ranking.skipped else {}


def _can_be_narrowed(tree: exp.Expr, alias: str) -> bool:
    """Whether leaving out rows of a source leaves out rows of the answer and does nothing else."""
    named = [table for table in tree.find_all(exp.Table) if table.alias_or_name == alias]
    if len(named) != 1:
        return False
    for join in tree.args.get("joins") or ():
        side = str(join.args.get("side") or "").upper()
        if side in ("RIGHT", "FULL"):
            return False
        if side == "LEFT" and any(table is named[0] for table in join.find_all(exp.Table)):
            return False
    outer = named[0].parent
    while outer is not None and outer is not tree:
        if isinstance(outer, exp.Query | exp.Subquery | exp.CTE | exp.Table):
            return False
        outer = outer.parent
    return True


def _narrowed(tree: exp.Expression, scores: Sequence[SearchScores], parameters: Sequence[Any]) -> dict[str, Rows]:
    """Where WHERE asks for a score above a number: the rows that have it."""
    where = tree.args.get("where")
    narrowed: dict[str, Rows] = {}
    if not isinstance(where, exp.Where):
        return narrowed
    for test in _conjuncts(where.this):
        if not isinstance(test, exp.GT | exp.GTE | exp.LT | exp.LTE):
            continue
        left, right = test.this, test.expression
        if isinstance(test, exp.LT | exp.LTE):
            left, right = right, left
        found, bar = _score_of(left), number(right, parameters)
        if found is None or bar is None or not _can_be_narrowed(tree, found[1]):
            continue
        rows, values = scores[found[0]].all()
        rows = rows[values >= bar if isinstance(test, exp.GTE | exp.LTE) else values > bar]
        before = narrowed.get(found[1])
        narrowed[found[1]] = np.sort(rows) if before is None else np.intersect1d(before, rows)
    return narrowed


def _conjuncts(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Paren):
        return _conjuncts(node.this)
    if isinstance(node, exp.And):
        return _conjuncts(node.this) + _conjuncts(node.expression)
    return [node]
