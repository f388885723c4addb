# ruff: noqa: E501 — the parts of an expression stand together
"""Whatever is said, the answer is a result or an error of ours; and expressions mean the same on both engines."""

from __future__ import annotations

import contextlib
import re
import uuid

import expressions_at_random
import pytest
import statements
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from test_differential import difference, outcome

from rmem.errors import InputError, TableError
from rmem.tables.workspace import Workspace

CORPUS = [text if isinstance(text, str) else text[0] for group in statements.GROUPS.values() for text in group]
PIECES = [re.findall(r"'[^']*'|\"[^\"]*\"|\w+|[^\w\s]+|\s+", text) for text in CORPUS]
DISPUTED = re.compile(r"AND|OR|CASE|coalesce|IN|BETWEEN|LIKE")
WORDS = sorted({piece for pieces in PIECES for piece in pieces})


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    """A workspace with tables of the corpus in it."""
    with Workspace(tmp_path_factory.mktemp("any") / "tables.db") as workspace:
        for sql in (*statements.STAFF, *statements.TIMES, *statements.DOCS):
            workspace.query(sql)
        yield workspace


def said(workspace, sql, params=None):
    with contextlib.suppress(TableError, InputError):
        workspace.query(sql, params, timeout=2, max_rows=1000)
    with contextlib.suppress(TableError, InputError):
        workspace.write_targets(sql)


@given(sql=st.text(max_size=200))
def test_any_text_is_answered_or_refused(busy, sql):
    said(busy, sql)


@given(words=st.lists(st.sampled_from(WORDS), max_size=30), glue=st.sampled_from(["", " "]))
def test_any_words_are_answered_or_refused(busy, words, glue):
    said(busy, glue.join(words))


@st.composite
def damaged(draw):
    """A statement with pieces replaced, left out, or put in from elsewhere."""
    pieces = list(draw(st.sampled_from(PIECES)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(pieces)))
        pieces[at : at + draw(st.integers(0, 2))] = draw(st.lists(st.sampled_from(WORDS), max_size=3))
    return "".join(pieces)


@given(sql=damaged())
@settings(max_examples=5 * settings.default.max_examples)
def test_damaged_statements_are_answered_or_refused(busy, sql):
    said(busy, sql)


@given(
    value=st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.decimals(), st.uuids(),
        st.datetimes(), st.dates(), st.times(), st.timedeltas(), st.lists(st.one_of(st.floats(), st.text(), st.none())),
        st.dictionaries(st.text(), st.one_of(st.integers(), st.floats(), st.text()), max_size=3), st.sets(st.integers()),
    ),
    kind=st.sampled_from(["int", "text", "numeric", "float8", "bool", "jsonb", "date", "timestamptz", "float4[]", "text[]", "uuid", "bytea", "interval"]),
)  # fmt: skip
@settings(max_examples=4 * settings.default.max_examples)
def test_any_parameter_is_taken_or_refused(busy, value, kind):
    said(busy, f"SELECT $1::{kind}, $1::{kind} IS NULL", [value])
    said(busy, "SELECT * FROM emp WHERE name = $1 OR id = $1", [value])


@pytest.fixture(scope="module")
def both(tmp_path_factory, tables_url):
    path = tmp_path_factory.mktemp("random") / "tables.db"
    with Workspace(path) as sqlite, Workspace(tables_url, tenant=uuid.uuid4().hex) as postgres:
        for sql in expressions_at_random.SETUP:
            sqlite.query(sql)
            postgres.query(sql)
        yield sqlite, postgres


@given(expression=st.one_of(*expressions_at_random.expressions().values()))
@settings(max_examples=3 * settings.default.max_examples, suppress_health_check=[HealthCheck.too_slow])
def test_random_expressions_mean_the_same_on_both_engines(both, expression):
    sql = f"SELECT {expression} AS x FROM r"
    results = [outcome(workspace, sql) for workspace in both]
    # What is not needed may be computed or not, so only one of them may fail at it. Of an operator with a constant
    # NULL, PostgreSQL computes nothing: NULL || (1 / 0) is NULL.
    answers = [result for result in results if not isinstance(result, TableError)]
    needless = DISPUTED.search(sql) or all(row == (None,) for result in answers for row in result.rows)
    assume(len(answers) != 1 or not needless)
    found = difference(sql, *results)
    assert found is None, found
