"""The tables of a tenant as storage: their description, statistics, checks, and erasure of what was removed."""

from __future__ import annotations

import logging
from typing import Any

from ...errors import StoreBusyError
from ...index.text_features import SEALED
from ...models import TIERS
from ..base import StoreStats
from .postgres_index import dimension_of
from .postgres_link import PostgresConnection, PostgresLink, TenantFrame
from .postgres_schema import SCHEMA

log = logging.getLogger(__name__)

_SCRUBBED = (
    "memories",
    "postings",
    "words",
    "trash",
    "access",
    "judgements",
    "changes",
    "dictionaries",
    "notes",
    "facts",
)
_REWRITTEN = 256 * 1024 * 1024  # bytes of tables that are rewritten: takes seconds


def describe(connection: PostgresConnection) -> str:
    version, vectors = _row(
        connection,
        "SELECT current_setting('server_version'), (SELECT extversion FROM pg_extension WHERE extname = 'vector')",
    )
    return f"PostgreSQL {version} with pgvector {vectors}"


def check_counters(connection: PostgresConnection) -> tuple[str, bool, str]:
    """Check the tables that triggers maintain; return (name, whether they are sound, details). Check the server's pages
    by pg_amcheck."""
    wrong = _row(
        connection,
        "SELECT h.rows - (SELECT count(*) FROM memories), "
        "h.length - (SELECT coalesce(sum(length), 0) FROM memories), "
        "(SELECT count(*) FROM postings) - (SELECT count(DISTINCT (m.seq, u.term)) "
        "FROM memories m, unnest(m.lexemes) u(term)) FROM heads h",
    )
    names = ("rows", "words", "postings")
    bad = [f"{int(number):+,} {name}" for name, number in zip(names, wrong, strict=True) if number]
    return "counters", not bad, ", ".join(bad) + " counted wrongly" if bad else "as the rows are"


def read_stats(connection: PostgresConnection) -> StoreStats:
    def count_by(column: str) -> dict[str, int]:
        sql = f"SELECT {column}, count(*) FROM memories GROUP BY 1 ORDER BY 2 DESC, 1"
        return dict(connection.execute(sql).fetchall())

    (memories, sessions, oldest, newest, vectors, encrypted, size) = _row(
        connection,
        "SELECT count(*), count(DISTINCT run), min(time), max(time), count(vector), "
        f"count(*) FILTER (WHERE flags & {SEALED} <> 0), coalesce(sum(pg_column_size(m.*)), 0)::bigint "
        "FROM memories m",
    )
    tiers = count_by("tier")
    return StoreStats(
        memories=memories,
        by_agent=count_by("agent"),
        by_type=count_by("type"),
        by_tier={tier: tiers[tier] for tier in TIERS if tier in tiers},
        sessions=sessions,
        oldest=oldest,
        newest=newest,
        vectors=vectors,
        dimension=dimension_of(connection) if vectors else None,
        words=_row(connection, "SELECT count(*) FROM words")[0],
        encrypted=encrypted,
        bytes=size,
    )


def scrub(link: PostgresLink, frame: TenantFrame) -> None:
    """Rewrite the tables without the removed rows, or only vacuum them if they are large and others would wait."""
    sizes = ", ".join(f"pg_total_relation_size('{name}')" for name in _SCRUBBED)
    found = link.read(frame, lambda connection: connection.execute(f"SELECT {sizes}").fetchone())
    tables = ", ".join(_SCRUBBED)
    try:
        if found is None or sum(found) > _REWRITTEN:
            raise StoreBusyError("the tables are too large to be written anew while others use them")
        link.maintain(frame, f"VACUUM (FULL, ANALYZE) {tables}")
    except StoreBusyError as error:
        link.maintain(frame, f"VACUUM {tables}")
        log.warning(
            "what was removed may be read from the files of PostgreSQL until it uses their places again (%s); "
            "VACUUM FULL of the tables in the schema %s clears them, while nobody can use them",
            error,
            SCHEMA,
        )


def _row(connection: PostgresConnection, sql: str) -> tuple[Any, ...]:
    found = connection.execute(sql).fetchone()
    assert found is not None
    return found
