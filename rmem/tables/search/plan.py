"""Plan statements with search operators: replace them by `rmem_score(k, alias._row)`, and decide which scores are
needed and whether the best rows of one score are enough.

`SearchPlan` does not depend on parameter values; `SearchRun` is one run of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlglot import exp

from ..catalog import ROW, Table
from ..deadline import check_each
from ..engines.base import RowNumbers
from ..sql.dialect import Dialect
from ..sql.group_by import is_aggregate
from ..sql.scope import replace_node
from ..sql.sources import SourceNodes, column_expression, first_select, real_table, source_nodes, sources
from .indexes import ColumnIndex, SearchIndexes
from .operators import (
    BM25,
    COSINE,
    HYBRID,
    RunQuery,
    SearchOperator,
    SearchQuery,
    check_dimension,
    is_search,
    number,
    read_operator,
    whole,
)
from .scores import CosineScores, HybridScores, MaxSimScores, NoScores, SearchScores, TextScores
from .texts import TextColumn
from .vectors import VectorsColumn

SCORE = "rmem_score"
_INDEX_METHODS = ("search", "deeplake_index")


@dataclass(frozen=True, slots=True)
class Ranking:
    """A request for the best rows by one score of one table."""

    score: int
    alias: str
    limit: exp.Expr
    offset: exp.Expr | None
    ties: bool
    """Whether rows of equal score are ordered by more than their number."""

    def counts(self, parameters: Sequence[Any]) -> tuple[int, int] | None:
        """Return LIMIT and OFFSET; None if they are not plain numbers."""
        count = whole(self.limit, parameters)
        skipped = 0 if self.offset is None else whole(self.offset, parameters)
        return None if count is None or skipped is None else (count, skipped)


@dataclass(frozen=True, slots=True)
class Threshold:
    """A WHERE condition that a score is above a number."""

    score: int
    alias: str
    bar: exp.Expr
    inclusive: bool


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """What a statement searches. Built once, used by many runs at a time."""

    tree: exp.Expression
    operators: list[SearchOperator]
    """One for each score."""
    ranking: Ranking | None
    inner: list[Ranking]
    """Of SELECTs inside of the statement that want the best of one table and no more."""
    bars: list[Threshold]

    def lines(self, parameters: Sequence[Any]) -> list[str]:
        """Return the lines of EXPLAIN about searches."""
        lines = [_line(operator) for operator in self.operators]
        counts = None if self.ranking is None else self.ranking.counts(parameters)
        if self.ranking is not None and counts is not None:
            lines.append(f"Best rows first: the best of {self.ranking.alias} until {counts[0]} are found")
        return lines


@dataclass(frozen=True, slots=True)
class SearchRun:
    """The scores of one run, and the rows that can pass WHERE."""

    scores: list[SearchScores]
    narrowed: dict[str, RowNumbers]


def plan_search(tree: exp.Expression) -> SearchPlan | None:
    """Plan a bound statement, on a copy of its tree; None if it searches nothing."""
    if not any(is_search(node) for node in tree.walk()):
        return None
    tree = tree.copy()
    known = source_nodes(tree)
    _order_best_first(tree, known)
    nodes = [node for node in tree.walk(prune=is_search) if is_search(node)]
    numbers: dict[tuple[str, str], int] = {}
    operators: list[SearchOperator] = []
    for node in check_each(nodes):
        operator = read_operator(node, known)
        key = operator.alias, node.sql(dialect=Dialect)
        if key not in numbers:
            numbers[key] = len(operators)
            operators.append(operator)
        score = score_node(numbers[key], operator.alias)
        if node is tree:
            tree = score
        replace_node(node, score)
    selects = [tree, *(select for select in tree.find_all(exp.Select) if select is not tree)]
    for select in selects:
        _break_ties(select)
    inner = [
        _find_ranking(select) for select in selects[1:] if not (select.args.get("where") or select.args.get("joins"))
    ]
    kept = [ranking for ranking in inner if ranking is not None]
    return SearchPlan(tree, operators, _find_ranking(tree), kept, _thresholds(tree))


def start_search(
    plan: SearchPlan | None,
    catalogue: Mapping[str, Table],
    indexes: SearchIndexes,
    parameters: Sequence[Any],
    run_query: RunQuery,
) -> SearchRun:
    """Bring the indexes up to date and score. `run_query` runs the queries that say what to search for."""
    if plan is None:
        return SearchRun([], {})
    indexes.keep_only(catalogue)
    queries = [operator.evaluate(parameters, run_query) for operator in plan.operators]
    scores = _scores(plan.operators, queries, indexes)
    narrowed = _above_thresholds(plan.bars, scores, parameters) if plan.bars else {}
    for ranking in plan.inner:
        counts = ranking.counts(parameters)
        if counts is not None:
            rows, _ = scores[ranking.score].best(sum(counts), ties=ranking.ties)
            if rows.size >= sum(counts):
                narrowed[ranking.alias] = rows
    return SearchRun(scores, narrowed)


def _scores(
    operators: Sequence[SearchOperator], queries: Sequence[SearchQuery | None], indexes: SearchIndexes
) -> list[SearchScores]:
    wanted: dict[str, tuple[Table, set[str]]] = {}
    for operator in operators:
        names = wanted.setdefault(operator.table.name, (operator.table, set()))[1]
        names.update(column.name for column in operator.columns)
    held = {name: indexes.follow(table, columns) for name, (table, columns) in wanted.items()}
    return [
        _score(operator, query, [held[operator.table.name][column.name] for column in operator.columns])
        for operator, query in zip(operators, queries, strict=True)
    ]


def _score(operator: SearchOperator, query: SearchQuery | None, columns: Sequence[ColumnIndex]) -> SearchScores:
    if query is None:
        return NoScores()
    first = columns[0]
    if isinstance(first, TextColumn):
        return TextScores(first.texts(), query.words)
    dimension, held = int(query.vectors.shape[1]), first.dimensions()
    if held and dimension not in held:
        check_dimension(f"{operator.table.name}.{operator.columns[0].name}", held[0], dimension)
    if isinstance(first, VectorsColumn):
        return MaxSimScores(first.stack(dimension), query.vectors)
    vectors = first.vectors(dimension)
    if operator.form == COSINE:
        return CosineScores(vectors, query.vectors[0])
    texts = columns[1]
    assert isinstance(texts, TextColumn)
    return HybridScores(vectors, query.vectors[0], texts.texts(), query.words, *query.weights)


def score_node(score: int, alias: str) -> exp.Anonymous:
    node = exp.Anonymous(this=SCORE, expressions=[exp.Literal.number(score), row_of(alias)])
    node.meta["type"] = "float8"
    return node


def row_of(alias: str) -> exp.Column:
    row = exp.column(exp.to_identifier(ROW, quoted=True), table=exp.to_identifier(alias, quoted=True))
    row.meta["type"] = "int8"
    return row


def _line(operator: SearchOperator) -> str:
    """Format `Search: bm25 index notes_text on notes(text)`."""
    parts = []
    forms = (COSINE, BM25) if operator.form == HYBRID else (operator.form,)
    for form, column in zip(forms, operator.columns, strict=True):
        searched = [index for index in operator.table.indexes if index.method in _INDEX_METHODS]
        declared = [index.name for index in searched if column.name in index.columns]
        how = f"index {declared[0]} on" if declared else "on the fly on"
        parts.append(f"{form} {how} {operator.table.name}({column.name})")
    return "Search: " + " and ".join(parts)


# What kind of answer is wanted


def _score_of(node: exp.Expr) -> tuple[int, str] | None:
    """Return the number and the alias of a score."""
    node = node.unalias().unnest()
    if isinstance(node, exp.Anonymous) and node.name == SCORE:
        row = node.expressions[1]
        return int(node.expressions[0].name), str(row.table)
    return None


def _leading_score(tree: exp.Expr) -> tuple[int, str] | None:
    """Return the score that a SELECT orders by."""
    order = tree.args.get("order")
    if not isinstance(tree, exp.Select) or not isinstance(order, exp.Order) or _gathers(tree):
        return None
    found = _score_of(_target(order.expressions[0]))
    return found if found and found[1] in {source.alias_or_name for source in sources(tree)} else None


def _gathers(select: exp.Select) -> bool:
    """Return whether a result row combines several rows."""
    if select.args.get("group") or select.args.get("having") or select.args.get("distinct"):
        return True
    for part in (*select.expressions, select.args["order"]):
        for node in part.walk(prune=lambda child: isinstance(child, exp.Query)):
            if isinstance(node, exp.Window) or is_aggregate(node):
                return True
    return False


def _break_ties(tree: exp.Expr) -> None:
    """Order rows of equal score by row number, so that results are repeatable."""
    found = _leading_score(tree)
    if found is None:
        return
    aliases = [source.alias_or_name for source in sources(tree) if real_table(source) is not None]
    for alias in sorted(aliases, key=lambda alias: alias != found[1]):
        tree.args["order"].append("expressions", exp.Ordered(this=row_of(alias), desc=False, nulls_first=False))


def _find_ranking(tree: exp.Expr) -> Ranking | None:
    found = _leading_score(tree)
    limit = tree.args.get("limit")
    if found is None or not isinstance(limit, exp.Limit) or not _can_be_narrowed(tree, found[1]):
        return None
    order = tree.args["order"].expressions
    if not order[0].args.get("desc") or order[0].args.get("nulls_first"):
        return None
    offset = tree.args.get("offset")
    own = [key for key in order if not (isinstance(key.this, exp.Column) and key.this.name == ROW)]
    skipped = None if offset is None else offset.expression
    return Ranking(found[0], found[1], limit.expression, skipped, ties=len(own) > 1)


def _can_be_narrowed(tree: exp.Expr, alias: str) -> bool:
    """Return whether leaving out rows of a source only leaves out rows of the result."""
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


def _thresholds(tree: exp.Expression) -> list[Threshold]:
    where = tree.args.get("where")
    bars: list[Threshold] = []
    for test in _conjuncts(where.this) if isinstance(where, exp.Where) else ():
        if not isinstance(test, exp.GT | exp.GTE | exp.LT | exp.LTE):
            continue
        left, right = test.this, test.expression
        if isinstance(test, exp.LT | exp.LTE):
            left, right = right, left
        found = _score_of(left)
        if found is not None and _can_be_narrowed(tree, found[1]):
            bars.append(Threshold(*found, right, isinstance(test, exp.GTE | exp.LTE)))
    return bars


def _above_thresholds(
    thresholds: Sequence[Threshold], scores: Sequence[SearchScores], parameters: Sequence[Any]
) -> dict[str, RowNumbers]:
    narrowed: dict[str, RowNumbers] = {}
    for threshold in thresholds:
        bar = number(threshold.bar, parameters)
        if bar is None:
            continue
        rows, values = scores[threshold.score].all()
        rows = rows[values >= bar if threshold.inclusive else values > bar]
        before = narrowed.get(threshold.alias)
        narrowed[threshold.alias] = np.sort(rows) if before is None else np.intersect1d(before, rows)
    return narrowed


def _conjuncts(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Paren):
        return _conjuncts(node.this)
    if isinstance(node, exp.And):
        return _conjuncts(node.this) + _conjuncts(node.expression)
    return [node]


# Best first

_DEEP = 32


def _order_best_first(tree: exp.Expr, known: SourceNodes) -> None:
    """Order by a similarity without ASC or DESC means the highest first, and NULL scores come last. The nearest by
    `1 - similarity`, as `<=>` is read, are the most similar, whose best are found without comparing all."""
    for select in tree.find_all(exp.Select):
        for key in select.args["order"].expressions if select.args.get("order") and not _gathers(select) else ():
            nearest = _target(key).unnest()
            first = key.args.get("desc") or (key.meta.get("nulls") and key.args.get("nulls_first"))
            if (
                not first
                and isinstance(nearest, exp.Sub)
                and nearest.this.name == "1"
                and is_search(nearest.expression)
            ):
                key.set("this", nearest.expression.copy())
                key.args.update(desc=True, nulls_first=False)
    for ordered in tree.find_all(exp.Ordered):
        what = _origin(_target(ordered), known)
        if is_search(what) and ordered.args.get("desc") is None:
            ordered.set("desc", True)
        if ordered.args.get("desc") and not ordered.meta.get("nulls") and any(map(is_search, what.walk())):
            ordered.set("nulls_first", False)


def _target(ordered: exp.Ordered) -> exp.Expr:
    """Return what is ordered by: the expression, or the SELECT item that a name or number refers to."""
    what = ordered.this
    place = what.meta.get("output")
    query = ordered.parent.parent if ordered.parent is not None else None
    select = first_select(query) if place is not None and query is not None else None
    found: exp.Expr = what if select is None else select.expressions[place].unalias()
    return found


def _origin(node: exp.Expr, known: SourceNodes) -> exp.Expr:
    """Return the expression behind brackets, casts and the columns of subqueries."""
    for _ in range(_DEEP):
        inner = node.this if isinstance(node, exp.Paren | exp.Cast) else None
        if isinstance(node, exp.Column) and node.table:
            inner = column_expression(node, known)
        if not isinstance(inner, exp.Expr):
            break
        node = inner
    return node
