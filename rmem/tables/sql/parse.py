"""Parse one statement of PostgreSQL's dialect. Refuse what cannot be parsed, or is too long or too deep; `bind` decides
what is allowed. Say of what kind a statement is and what it writes to, for access checks."""

from __future__ import annotations

import difflib
from collections.abc import Hashable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from ...errors import SqlError, SqlUnsupportedError
from .dialect import COSINE_DISTANCE, Dialect, Operator
from .parameters import Parameters, number_parameters
from .scope import fold_name, replace_node, unsupported

MAX_LENGTH = 16_000_000
MAX_NESTING = 32
MAX_TOKENS = 2_000_000

_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET)
_PREFIXES = (TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.RLIKE)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A parsed statement. Its tree is shared: copy it before changing it. `bound` is for whoever binds it: the outcome
    by the types of its parameters."""

    tree: exp.Expression
    explain: bool
    parameters: Parameters
    bound: dict[Hashable, Any] = field(default_factory=dict)


def parse(sql: str) -> Prepared:
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
        words = [token.text.upper() for token in tokens[:2]]
        if _EXPLAIN_OPTIONS.intersection(words if words[:1] == ["("] else words[:1]):
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
    ends = [token.start for token in _tokens(sql) if token.token_type == TokenType.SEMICOLON]
    parts = [sql[start:end] for start, end in zip([0, *(end + 1 for end in ends)], [*ends, len(sql)], strict=True)]
    found = [part.strip() for part in parts if Dialect().tokenize(part)]
    if not found:
        raise SqlError("there is no statement")
    return found


def _tree(tokens: list[Token], sql: str) -> exp.Expression:
    word = tokens[0].text.upper() if tokens else ""
    if word in _REFUSED_WORDS or (tokens and tokens[0].token_type in _REFUSED):
        hint = "; use `with client.transaction():`" if word in _TRANSACTIONS else ""
        raise SqlUnsupportedError(f"{word} statements are not supported{hint}")
    if tokens and tokens[0].token_type == TokenType.VAR:  # a name; the parser would complain of what follows it
        near = difflib.get_close_matches(word, _FIRST_WORDS, n=1)
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
    for node in [node for node in trees[0].find_all(Operator) if node.op == COSINE_DISTANCE]:
        similarity = exp.Anonymous(this="cosine_similarity")
        replace_node(node, exp.Paren(this=exp.Sub(this=exp.Literal.number(1), expression=similarity)))
        similarity.set("expressions", [node.this, node.expression])
    return _values_as_select(trees[0])


def _values_as_select(tree: exp.Expression) -> exp.Expression:
    """Turn a VALUES statement into a SELECT."""
    if not isinstance(tree, exp.Values):
        return tree
    rest = {key: tree.args.pop(key, None) for key in ("order", "limit", "offset", "with_")}
    tree.set("alias", exp.TableAlias(this=exp.Identifier(this="values", quoted=True)))
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=tree), **rest)


_EXPLAIN_OPTIONS = set("ANALYZE ANALYSE VERBOSE COSTS SETTINGS BUFFERS WAL TIMING SUMMARY FORMAT".split())
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
        near = first.get("highlight")
        return str(first.get("description")) + (f" near {near!r} (line {first.get('line')})" if near else "")
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
