"""PostgreSQL's dialect with the one operator of ours: `<#>`, the similarity of a column to a query."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import TokenType, exp
from sqlglot.dialects.postgres import Postgres

_SIMILAR = TokenType.LLRR_ARROW  # sqlglot's for `<<->>`, which is not offered


class Similarity(exp.Expression, exp.Binary):
    """`column <#> query`."""


class RemanenceSql(Postgres):
    """What statements are written in. `<#>` binds as PostgreSQL's other operators do: closer than comparisons, less
    close than `+` and `-`."""

    class Tokenizer(Postgres.Tokenizer):
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            **{word: kind for word, kind in Postgres.Tokenizer.KEYWORDS.items() if kind != _SIMILAR},
            "<#>": _SIMILAR,
        }

    class Parser(Postgres.Parser):  # type: ignore[misc, valid-type]
        FACTOR: ClassVar[dict[Any, Any]] = {
            kind: node for kind, node in Postgres.Parser.FACTOR.items() if kind != _SIMILAR
        }
        BITWISE: ClassVar[dict[Any, Any]] = {**Postgres.Parser.BITWISE, _SIMILAR: Similarity}

    class Generator(Postgres.Generator):  # type: ignore[misc, valid-type]
        TRANSFORMS: ClassVar[dict[Any, Any]] = {
            **Postgres.Generator.TRANSFORMS,
            Similarity: lambda writer, node: writer.binary(node, "<#>"),
        }
