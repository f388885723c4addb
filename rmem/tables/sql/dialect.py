"""PostgreSQL's dialect as sqlglot reads and writes it for us. Two things differ from sqlglot's own:

- functions stay what was written (`exp.Anonymous`), so that what is checked is what is run;
- operators beyond arithmetic and comparison are one node, `Operator`, with PostgreSQL's own precedence.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.generators.postgres import PostgresGenerator
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.tokenizer_core import TokenType

from ...errors import SqlError
from ..deadline import check

SIMILARITY, COSINE_DISTANCE, EUCLIDEAN_DISTANCE = "<#>", "<=>", "<->"
_OPERATOR = TokenType.LLRR_ARROW  # a kind of token that PostgreSQL does not have
_OPERATORS = (
    *(SIMILARITY, COSINE_DISTANCE, EUCLIDEAN_DISTANCE),
    *("->", "->>", "#>", "#>>", "@>", "<@", "?|", "?&", "#-", "~*", "!~", "!~*", "&&", "^@"),
)


_REREAD, _REREAD_AT_LEAST = 10, 1000  # tokens that may be read again: for each one of the statement, and in all
_CHECKED = 256  # tokens between two looks at the clock
_NO_TYPES = {TokenType.ARRAY: TokenType.L_BRACKET, TokenType.INTERVAL: TokenType.L_PAREN}


class Operator(exp.Expression, exp.Binary):
    """`this <op> expression` for the operators of JSON, regular expressions, arrays and search; `op` is its text."""

    arg_types: ClassVar = {"this": True, "expression": True, "op": True}

    @property
    def op(self) -> str:
        return str(self.args["op"])


class Parser(PostgresParser):
    FUNCTIONS: ClassVar = {}
    FUNCTION_PARSERS: ClassVar = {
        "CAST": PostgresParser.FUNCTION_PARSERS["CAST"],
        "EXTRACT": PostgresParser.FUNCTION_PARSERS["EXTRACT"],
        "OVERLAY": lambda self: self._parse_spelled("overlay", "PLACING", "FROM", "FOR"),
        "POSITION": lambda self: self._parse_place(),
        "SUBSTRING": lambda self: self._parse_spelled("substring", "FROM", "FOR"),
        "TRIM": lambda self: self._parse_trimmed(),
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar = {
        "ANY": lambda self: self.expression(exp.Any(this=self._parse_bitwise())),
        "SOME": lambda self: self.expression(exp.Any(this=self._parse_bitwise())),
        "ALL": lambda self: self.expression(exp.All(this=self._parse_bitwise())),
        "CASE": PostgresParser.NO_PAREN_FUNCTION_PARSERS["CASE"],
    }
    FACTOR: ClassVar = {
        TokenType.MOD: exp.Mod,
        TokenType.SLASH: exp.Div,
        TokenType.STAR: exp.Mul,
    }
    RANGE_PARSERS: ClassVar = {
        kind: parser
        for kind, parser in PostgresParser.RANGE_PARSERS.items()
        if kind
        in (
            TokenType.BETWEEN,
            TokenType.ILIKE,
            TokenType.IN,
            TokenType.IS,
            TokenType.LIKE,
            TokenType.OVERLAPS,
            TokenType.SIMILAR_TO,
        )
    }
    JSON_OPERATORS: ClassVar = {}

    def reset(self) -> None:
        super().reset()
        self._reread = 0

    def _advance(self, times: int = 1) -> None:
        """Read on, or go back by less than none. A construct that is tried in two ways is read twice; nested, twice as
        often at each level. So what is read again is counted."""
        if times < 0:
            self._reread -= times
            if self._reread > _REREAD * self._tokens_size + _REREAD_AT_LEAST:
                raise SqlError(
                    "the statement cannot be read: it can be understood in too many ways; nest it less deeply, or put "
                    "values into parameters"
                )
        elif not self._index % _CHECKED:
            check()
        super()._advance(times)

    def _parse_types(self, check_func: bool = False, *args: Any, **options: Any) -> exp.Expr | None:
        """`ARRAY[…]` and `INTERVAL (…)` are values here and not types; sqlglot would read all of them to find out."""
        if check_func and _NO_TYPES.get(self._curr.token_type) == self._next.token_type:
            return None
        return super()._parse_types(check_func, *args, **options)

    def _parse_bitwise(self) -> exp.Expr | None:
        this = self._parse_term()
        while self._curr:
            kind, text = self._curr.token_type, self._curr.text
            if kind in self.BITWISE:
                self._advance()
                this = self.expression(self.BITWISE[kind](this=this, expression=self._parse_term()))
            elif kind == TokenType.DPIPE:
                self._advance()
                this = self.expression(exp.DPipe(this=this, expression=self._parse_term(), safe=False))
            elif self._match_pair(TokenType.LT, TokenType.LT):
                this = self.expression(exp.BitwiseLeftShift(this=this, expression=self._parse_term()))
            elif self._match_pair(TokenType.GT, TokenType.GT):
                this = self.expression(exp.BitwiseRightShift(this=this, expression=self._parse_term()))
            elif kind in (_OPERATOR, TokenType.RLIKE, TokenType.PLACEHOLDER):
                self._advance()
                this = self.expression(Operator(this=this, expression=self._parse_term(), op=text))
            else:
                break
        return this

    def _parse_ordered(self, parse_method: Any = None) -> Any:
        """NULLS FIRST and NULLS LAST are marked where they were written; sqlglot fills them in everywhere."""
        ordered = super()._parse_ordered(parse_method)
        if ordered is not None:
            written = [token.text.upper() for token in self._tokens[max(0, self._index - 2) : self._index]]
            ordered.meta["nulls"] = written in (["NULLS", "FIRST"], ["NULLS", "LAST"])
        return ordered

    def _parse_as_command(self, start: Any) -> Any:
        """Refuse what sqlglot cannot parse; it would keep the text and log it."""
        self.raise_error(f"{start.text.upper()} … is not understood", start)

    def _parse_interval(self, require_interval: bool = True, parse_function_unit: bool = True) -> Any:
        """`INTERVAL '1 day'` is the cast of a text, as in PostgreSQL."""
        index = self._index
        if not self._match(TokenType.INTERVAL):
            return None
        if not self._match(TokenType.STRING):
            self._retreat(index)
            return None
        text = self._prev.text
        if self._curr and self._curr.text.upper() in _UNITS:
            text = f"{text} {self._curr.text}"
            self._advance()
        return self.expression(
            exp.Cast(this=exp.Literal.string(text), to=exp.DataType(this=exp.DataType.Type.INTERVAL))
        )

    def _parse_spelled(self, name: str, *words: str) -> exp.Expr:
        """`f(a FROM b FOR c)` is `f(a, b, c)`."""
        args = [self._parse_bitwise()]
        while self._match(TokenType.COMMA) or any(self._match_text_seq(word) for word in words):
            args.append(self._parse_bitwise())
        return self.expression(exp.Anonymous(this=name, expressions=args))

    def _parse_place(self) -> exp.Expr:
        """`position(part IN text)` is strpos(text, part) by another name."""
        part = self._parse_bitwise()
        self._match(TokenType.IN)
        found = self.expression(exp.Anonymous(this="strpos", expressions=[self._parse_bitwise(), part]))
        found.meta["name"] = "position"
        return found

    def _parse_trimmed(self) -> exp.Expr:
        """`trim(LEADING 'x' FROM text)` is ltrim(text, 'x')."""
        name = "btrim"
        for word, function in (("BOTH", "btrim"), ("LEADING", "ltrim"), ("TRAILING", "rtrim")):
            if self._match_text_seq(word):
                name = function
        if self._match(TokenType.FROM):
            return self.expression(exp.Anonymous(this=name, expressions=[self._parse_bitwise()]))
        args = [self._parse_bitwise()]
        if self._match(TokenType.FROM):
            args.insert(0, self._parse_bitwise())
        elif self._match(TokenType.COMMA):
            args.append(self._parse_bitwise())
        return self.expression(exp.Anonymous(this=name, expressions=args))


_UNITS = {
    f"{unit}{plural}" for unit in ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND") for plural in ("", "S")
}


class Generator(PostgresGenerator):
    TRANSFORMS: ClassVar = {
        **PostgresGenerator.TRANSFORMS,
        Operator: lambda self, node: f"{self.sql(node, 'this')} {node.op} {self.sql(node, 'expression')}",
    }
    MULTI_ARG_DISTINCT = True


class Dialect(Postgres):
    """PostgreSQL as we read and write it."""

    INDEX_OFFSET = 0
    NUMBERS_CAN_BE_UNDERSCORE_SEPARATED = True

    class Tokenizer(Postgres.Tokenizer):
        HEREDOC_STRINGS: ClassVar = []  # sqlglot would read `$1,$2` as the beginning of a text in dollar signs
        KEYWORDS: ClassVar = {
            **{
                word: kind
                for word, kind in Postgres.Tokenizer.KEYWORDS.items()
                if (word[0].isalpha() and word not in ("EXPLAIN", "UNNEST"))
                or word in ("::", "||", ">=", "<=", "<>", "!=", "=>", "~", "|/", "||/")
            },
            **dict.fromkeys(_OPERATORS, _OPERATOR),
        }
        SINGLE_TOKENS: ClassVar = {
            **{text: kind for text, kind in Postgres.Tokenizer.SINGLE_TOKENS.items() if text not in "!@\\`"},
            "$": TokenType.PARAMETER,
        }

    Parser = Parser
    Generator = Generator
