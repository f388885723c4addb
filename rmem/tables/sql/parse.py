"""Parse one statement of PostgreSQL's dialect. Refuse what cannot be parsed, or is too long or too deep; `bind` decides
what is allowed. Say of what kind a statement is and what it writes to, for access checks."""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, TypeVar

from cachetools import LRUCache
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from ...errors import SqlError, SqlUnsupportedError
from ...forks import new_lock
from .dialect import COSINE_DISTANCE, Dialect, Operator
from .parameters import Parameters, number_parameters
from .scope import fold_name, replace_node, unsupported

MAX_LENGTH = 16_000_000
MAX_NESTING = 32
MAX_TOKENS = 2_000_000
_CACHED = 512  # statements
_LONGEST_CACHED = 20_000  # characters of one

_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET)
_PREFIXES = (TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.RLIKE)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A parsed statement. Its tree is shared: copy it before changing it."""

    tree: exp.Expression
    explain: bool
    parameters: Parameters


class Cache(Generic[T]):
    """A cache of statements; the first part of a key is the text. Parsing and binding take longer than running most
    statements. Thread-safe."""

    def __init__(self) -> None:
        self._items: LRUCache[tuple[Hashable, ...], T] = LRUCache(_CACHED)
        self._lock = new_lock()

    def get(self, sql: str, *more: Hashable) -> T | None:
        with self._lock:
            return self._items.get((sql, *more))

    def put(self, item: T, sql: str, *more: Hashable) -> None:
        if len(sql) <= _LONGEST_CACHED:
            with self._lock:
                self._items[sql, *more] = item


def parse(sql: str) -> Prepared:
    """Parse exactly one statement."""
    if not isinstance(sql, str):
        raise SqlError(f"sql must be a text, got {type(sql).__name__}")
    if len(sql) > MAX_LENGTH:
        raise SqlError(f"a statement may have {MAX_LENGTH:,} characters, this one has {len(sql):,}")
    if "\x00" in sql:
        raise SqlError("a statement may not hold the character NUL")
    try:
        sql.encode()
    except UnicodeEncodeError:
        raise SqlError("a statement must be valid Unicode; it holds half of a surrogate pair") from None
    tokens = _tokens(sql)
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise SqlError("the statement is empty")
    if any(token.token_type == TokenType.SEMICOLON for token in tokens):
        raise SqlError("one statement per call, please: there is something after `;`")
    _check_depth(tokens)
    explain = tokens[0].text.upper() == "EXPLAIN"
    if explain:
        tokens = tokens[1:]
        if tokens and (tokens[0].text.upper() in ("ANALYZE", "ANALYSE", "VERBOSE") or _is_option(tokens)):
            raise SqlUnsupportedError("options of EXPLAIN are not supported; write EXPLAIN SELECT …")
    tree = _tree(tokens, sql)
    return Prepared(tree, explain, number_parameters(tree))


def _tokens(sql: str) -> list[Token]:
    try:
        tokens = Dialect().tokenize(sql)
    except SqlglotError as error:
        raise SqlError(f"the statement cannot be read: {_reason(error)}") from None
    for token, following in pairwise(tokens):
        if token.token_type == TokenType.PARAMETER and following.token_type != TokenType.NUMBER:
            raise unsupported("a text in dollar signs", "Write 'it''s'; parameters are $1, $2 …")
    return tokens


def split(sql: str) -> list[str]:
    """Split a script at `;`."""
    ends = [token.start for token in _tokens(sql) if token.token_type == TokenType.SEMICOLON]
    parts = [sql[start:end] for start, end in zip([0, *(end + 1 for end in ends)], [*ends, len(sql)], strict=True)]
    found = [part.strip() for part in parts if Dialect().tokenize(part)]
    if not found:
        raise SqlError("there is no statement")
    return found


def _tree(tokens: list[Token], sql: str) -> exp.Expression:
    if (tokens and tokens[0].token_type in _REFUSED) or (tokens and tokens[0].text.upper() in _REFUSED_WORDS):
        word = tokens[0].text.upper()
        hint = "; use `with client.transaction():`" if word in _TRANSACTIONS else ""
        raise SqlUnsupportedError(f"{word} statements are not supported{hint}")
    if tokens and tokens[0].token_type == TokenType.VAR:  # a name; the parser would complain of what follows it
        near = difflib.get_close_matches(tokens[0].text.upper(), _FIRST_WORDS, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise SqlError(f"the statement cannot be read: {tokens[0].text[:40]!r} is not the beginning of one{hint}")
    try:
        trees = Dialect().parser().parse(tokens, sql)
    except ParseError as error:
        raise SqlError(f"the statement cannot be read: {_reason(error)}") from None
    except RecursionError:
        raise SqlError("the statement is nested too deeply") from None
    except SqlError:
        raise
    except (SqlglotError, ValueError, TypeError, AttributeError, IndexError, KeyError, AssertionError) as error:
        raise SqlError(f"the statement cannot be read: {_reason(error)}") from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Expression):
        raise SqlError("one statement per call, please")
    for node in list(trees[0].find_all(exp.ByteString, exp.RawString)):
        replace_node(node, exp.Literal.string(str(node.this)))  # E'…' is a text like any other
    if trees[0].find(exp.UnicodeString) is not None:
        raise unsupported("U&'…'", "Write E'\\u00e9', or the character itself")
    _rewrite_cosine_distances(trees[0])
    return _values_as_select(trees[0])


def _values_as_select(tree: exp.Expression) -> exp.Expression:
    """Turn a VALUES statement into a SELECT."""
    if not isinstance(tree, exp.Values):
        return tree
    rest = {key: tree.args.pop(key, None) for key in ("order", "limit", "offset", "with_")}
    tree.set("alias", exp.TableAlias(this=exp.Identifier(this="values", quoted=True)))
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=tree), **rest)


def _is_option(tokens: list[Token]) -> bool:
    return tokens[0].token_type == TokenType.L_PAREN and len(tokens) > 1 and tokens[1].text.upper() in _EXPLAIN_OPTIONS


_EXPLAIN_OPTIONS = ("ANALYZE", "VERBOSE", "COSTS", "SETTINGS", "BUFFERS", "WAL", "TIMING", "SUMMARY", "FORMAT")
_REFUSED = (TokenType.COMMAND, TokenType.PRAGMA, TokenType.SET, TokenType.COPY)
_FIRST_WORDS = ("SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "ALTER", "TRUNCATE", "EXPLAIN")
_TRANSACTIONS = ("BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "END", "ABORT")
_REFUSED_WORDS = (
    "ATTACH DETACH PRAGMA COPY SET RESET SHOW DO CALL VACUUM ANALYZE REINDEX CLUSTER GRANT REVOKE LISTEN NOTIFY "
    "UNLISTEN LOAD LOCK PREPARE EXECUTE DEALLOCATE DECLARE FETCH MOVE CLOSE CHECKPOINT DISCARD BEGIN START COMMIT "
    "ROLLBACK SAVEPOINT RELEASE END ABORT COMMENT SECURITY IMPORT REFRESH REASSIGN MERGE REPLACE USE KILL CACHE "
    "UNCACHE DESCRIBE DESC"
).split()


def _check_depth(tokens: list[Token]) -> None:
    if len(tokens) > MAX_TOKENS:
        raise SqlError(f"a statement may have {MAX_TOKENS:,} words and signs, this one has {len(tokens):,}")
    depth = prefixes = cases = 0
    for token in tokens:
        kind = token.token_type
        prefixes = prefixes + 1 if kind in _PREFIXES else 0
        if kind in _OPENING:
            depth += 1
            cases += kind == TokenType.CASE
        elif kind in _CLOSING:
            depth -= 1
        elif kind == TokenType.END and cases:
            depth -= 1
            cases -= 1
        if depth > MAX_NESTING or prefixes > MAX_NESTING:
            raise SqlError(f"the statement is nested too deeply: at most {MAX_NESTING} levels")


def _reason(error: Exception) -> str:
    """Return the first line of a parser's message, without terminal codes."""
    if isinstance(error, ParseError) and error.errors:
        first = error.errors[0]
        near = first.get("highlight") or ""
        return (
            f"{first.get('description')} near {near!r} (line {first.get('line')})"
            if near
            else str(first["description"])
        )
    if isinstance(error, TokenError) and isinstance(error.__cause__, TokenError):
        error = error.__cause__  # which quote is not closed
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__


# -- kinds of statements --------------------------------------------------------------------------------------

DEFINITIONS = ("CREATE", "DROP", "ALTER")
"""How the kinds of statements begin that change tables and not rows."""


def kind_of(tree: exp.Expression) -> str:
    """Return SELECT, INSERT, CREATE TABLE …"""
    if isinstance(tree, exp.Query):
        return "SELECT"
    if isinstance(tree, (exp.Create, exp.Drop, exp.Alter)):
        return f"{type(tree).__name__.upper()} {tree.args.get('kind') or ''}".strip()
    if isinstance(tree, exp.TruncateTable):
        return "TRUNCATE"
    if isinstance(tree, exp.Command):
        return str(tree.this).upper()
    return type(tree).__name__.upper()


def target_tables(tree: exp.Expression) -> list[str]:
    """Return the tables that a statement changes; of DROP INDEX, which names none, the indexes."""
    if isinstance(tree, exp.Query):
        return []
    if isinstance(tree, exp.Create) and isinstance(tree.this, exp.Index):
        return [fold_name(tree.this.args["table"])]
    targets = tree.expressions if isinstance(tree, exp.TruncateTable) else tree.args.get("tables") or [tree.this]
    return [fold_name(target.this if isinstance(target, exp.Schema) else target) for target in targets]


# -- cosine distances -----------------------------------------------------------------------------------------


def _rewrite_cosine_distances(tree: exp.Expression) -> None:
    """Write `1 - cosine_similarity(v, q)` for `v <=> q`, and order by the similarity where the nearest come first.

    The planner of searches knows the best rows of a similarity; it would have to compute every distance."""
    found = [node for node in tree.find_all(Operator) if node.op == COSINE_DISTANCE]
    if not found:
        return
    for select in list(tree.find_all(exp.Select)):
        order = select.args.get("order")
        if order is not None and not any(select.args.get(key) for key in ("distinct", "group", "having")):
            named: dict[str, exp.Expr] = {}
            for item in select.expressions:
                if isinstance(item, exp.Alias):
                    named.setdefault(fold_name(item.args["alias"]), item.this)
            for key in order.expressions:
                _order_by_similarity(key, select, named)
    for node in [node for node in tree.find_all(Operator) if node.op == COSINE_DISTANCE]:
        replaced = exp.Paren(this=exp.Sub(this=exp.Literal.number(1)))
        replace_node(node, replaced)
        replaced.this.set("expression", _similarity(node.this, node.expression))


def _order_by_similarity(key: exp.Ordered, select: exp.Select, named: Mapping[str, exp.Expr]) -> None:
    distance = _ordered_item(key.this, select, named).unnest()
    nulls_first = key.meta.get("nulls") and key.args.get("nulls_first")
    if not (isinstance(distance, Operator) and distance.op == COSINE_DISTANCE) or key.args.get("desc") or nulls_first:
        return
    key.set("this", _similarity(distance.this.copy(), distance.expression.copy()))
    key.set("desc", True)
    key.set("nulls_first", False)
    key.meta["nulls"] = True


def _ordered_item(node: exp.Expr, select: exp.Select, named: Mapping[str, exp.Expr]) -> exp.Expr:
    """Return the SELECT item that a name or number in ORDER BY refers to, or the expression itself."""
    if isinstance(node, exp.Literal) and not node.is_string and node.this.isdecimal():
        items = select.expressions[int(node.this) - 1 : int(node.this)]
        return items[0].unalias() if items and int(node.this) else node
    if isinstance(node, exp.Column) and not node.args.get("table"):
        return named.get(fold_name(node.this), node)
    return node


def _similarity(vector: exp.Expr, query: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this="cosine_similarity", expressions=[vector, query])
