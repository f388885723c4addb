"""The schema in PostgreSQL and its history, which differs from SQLite's: short named steps, applied under a lock when a
store is opened.

All tables are in the schema `remanence`. Each is that of `migrations.py` with a column `tenant`, which is first in
every key and index and filled in from the setting `remanence.tenant`; row-level security shows only the rows of that
tenant. A login that may see everything, such as a superuser, works as the role `remanence_store`, which may not.

    heads       one row for a tenant: its last row and change, and the totals that BM25 needs
    postings    which rows have a term or an attribute hash; written by triggers, in the same transaction
    facts       as in SQLite
    words       a readable word for a term, with the first row that had it, for soft matching
"""

from __future__ import annotations

from typing import Any, NamedTuple

import psycopg
from psycopg import errors as pg

from ...errors import ConfigError, StoreVersionError
from .postgres_link import Address, TenantFrame, connect, explain
from .postgres_pool import Raw

SCHEMA, ROLE = "remanence", "remanence_store"
_LOCK = 0x524D454D
_WHO = "SELECT rolname, rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"

_TENANT = "hashtextextended(current_setting('remanence.tenant', true), 0)"
_TABLES = {
    "heads": (
        "name text NOT NULL, seq bigint NOT NULL DEFAULT 0, change bigint NOT NULL DEFAULT 0, "
        "generation bigint NOT NULL DEFAULT 0, audit bigint NOT NULL DEFAULT 0, rows bigint NOT NULL DEFAULT 0, "
        "length bigint NOT NULL DEFAULT 0",
        "",
    ),
    "memories": (
        "seq bigint NOT NULL, id text NOT NULL, born bigint NOT NULL, agent text NOT NULL, session text, "
        "type text NOT NULL, actor text, tier text NOT NULL, step bigint NOT NULL, time double precision NOT NULL, "
        "created double precision NOT NULL, importance double precision NOT NULL, level integer NOT NULL, "
        "position text, place text, tags text, text text NOT NULL, contents text, flags integer NOT NULL, "
        "specific integer NOT NULL, words text NOT NULL, terms bytea NOT NULL, marks bytea NOT NULL, vector bytea, "
        "numbers bytea, packed bytea, unpacked integer, sealed bytea, key_version integer, "
        "run bigint, lexemes bigint[] NOT NULL, counts integer[] NOT NULL, length integer NOT NULL, "
        "variety integer NOT NULL, embedding halfvec",
        "seq",
    ),
    "postings": ("term bigint NOT NULL, seq bigint NOT NULL, count integer NOT NULL, length integer NOT NULL", ""),
    "words": ("term bigint NOT NULL, word text NOT NULL, seq bigint NOT NULL", "term"),
    "changes": ("n bigint GENERATED ALWAYS AS IDENTITY, seq bigint NOT NULL, tier text", "n"),
    "access": ("born bigint NOT NULL, last double precision NOT NULL, count bigint NOT NULL", "born"),
    "staged": ("seq bigint NOT NULL, vector bytea", "seq"),
    "dictionaries": ("id bigint GENERATED ALWAYS AS IDENTITY, data bytea NOT NULL", "id"),
    "keys": (
        "kind text NOT NULL, version integer NOT NULL, wrapped bytea NOT NULL, master text NOT NULL, "
        "created double precision NOT NULL",
        "kind, version",
    ),
    "trash": (
        "id text NOT NULL, removed double precision NOT NULL, until double precision NOT NULL, data bytea NOT NULL",
        "id",
    ),
    "audit": (
        "n bigint NOT NULL, time double precision NOT NULL, who text NOT NULL, action text NOT NULL, memory text, "
        "detail text NOT NULL, seal text NOT NULL",
        "n",
    ),
    "notes": ("key text NOT NULL, value text NOT NULL", "key"),
    "judgements": (
        "recall text NOT NULL, memory text NOT NULL, question text, agent text NOT NULL, type text NOT NULL, "
        "rank integer NOT NULL, score double precision NOT NULL, useful boolean NOT NULL, "
        "time double precision NOT NULL",
        "recall, memory",
    ),
}
_INDEXES = (
    "CREATE UNIQUE INDEX memories_id ON memories (tenant, id)",
    "CREATE INDEX memories_agent_step ON memories (tenant, agent, step)",
    "CREATE INDEX memories_run ON memories (tenant, run, born) INCLUDE (seq)",
    "CREATE INDEX memories_time ON memories (tenant, time, seq)",
    "CREATE UNIQUE INDEX postings_term ON postings (tenant, term, seq) INCLUDE (count, length)",
    "CREATE INDEX words_seq ON words (tenant, seq)",
    "CREATE INDEX audit_memory ON audit (tenant, memory)",
    "CREATE INDEX judgements_memory ON judgements (tenant, memory)",
    "CREATE INDEX judgements_time ON judgements (tenant, time)",
)
_TRIGGERS = (
    """CREATE FUNCTION rows_added() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
    BEGIN
        INSERT INTO postings (term, seq, count, length)
            SELECT u.term, n.seq, u.count, n.length FROM added n, unnest(n.lexemes, n.counts) u(term, count)
            ON CONFLICT DO NOTHING;
        INSERT INTO words (term, word, seq)
            SELECT DISTINCT ON (u.term) u.term, u.word, n.seq
            FROM added n, unnest(n.lexemes[1:n.variety], string_to_array(n.words, E'\\n')) u(term, word)
            WHERE length(u.word) > 2 AND u.word !~ '[0-9_./:-]' ORDER BY u.term, n.seq
            ON CONFLICT DO NOTHING;
        UPDATE heads h SET rows = h.rows + a.rows, length = h.length + a.length, seq = greatest(h.seq, a.seq)
            FROM (SELECT count(*) AS rows, coalesce(sum(n.length), 0) AS length, max(n.seq) AS seq FROM added n) a;
        RETURN NULL;
    END $$""",
    """CREATE FUNCTION rows_removed() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
    BEGIN
        DELETE FROM postings p USING (SELECT o.seq, unnest(o.lexemes) AS term FROM removed o) r
            WHERE p.term = r.term AND p.seq = r.seq;
        DELETE FROM words w USING (SELECT DISTINCT unnest(o.lexemes[1:o.variety]) AS term FROM removed o) r
            WHERE w.term = r.term AND NOT EXISTS (SELECT 1 FROM postings p WHERE p.term = w.term);
        UPDATE heads h SET rows = h.rows - a.rows, length = h.length - a.length
            FROM (SELECT count(*) AS rows, coalesce(sum(o.length), 0) AS length FROM removed o) a;
        RETURN NULL;
    END $$""",
    """CREATE FUNCTION changes_added() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
    BEGIN
        UPDATE heads h SET change = greatest(h.change, a.n) FROM (SELECT max(n) AS n FROM added) a;
        RETURN NULL;
    END $$""",
    """CREATE FUNCTION audit_added() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
    BEGIN
        UPDATE heads h SET audit = greatest(h.audit, a.n) FROM (SELECT max(n) AS n FROM added) a;
        RETURN NULL;
    END $$""",
    "CREATE TRIGGER rows_added AFTER INSERT ON memories REFERENCING NEW TABLE AS added "
    "FOR EACH STATEMENT EXECUTE FUNCTION rows_added()",
    "CREATE TRIGGER rows_removed AFTER DELETE ON memories REFERENCING OLD TABLE AS removed "
    "FOR EACH STATEMENT EXECUTE FUNCTION rows_removed()",
    "CREATE TRIGGER changes_added AFTER INSERT ON changes REFERENCING NEW TABLE AS added "
    "FOR EACH STATEMENT EXECUTE FUNCTION changes_added()",
    "CREATE TRIGGER audit_added AFTER INSERT ON audit REFERENCING NEW TABLE AS added "
    "FOR EACH STATEMENT EXECUTE FUNCTION audit_added()",
)


def p001_create_tables(raw: Raw) -> None:
    for name, (columns, key) in _TABLES.items():
        keyed = "" if name == "postings" else f", PRIMARY KEY (tenant{', ' + key if key else ''})"
        _run(raw, f"CREATE TABLE {name} ({columns}, tenant bigint NOT NULL DEFAULT {_TENANT}{keyed})")
        _run(raw, f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY")
        _run(raw, f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY")  # for their owner too
        _run(raw, f"CREATE POLICY own_tenant ON {name} USING (tenant = {_TENANT}) WITH CHECK (tenant = {_TENANT})")
    for statement in (*_INDEXES, *_TRIGGERS):
        _run(raw, statement)


def p002_find_rows_by_number(raw: Raw) -> None:
    """Drop an index that the planner, without statistics, used to find rows by number, and read as a whole."""
    _run(raw, "DROP INDEX memories_time")
    _run(raw, "CREATE INDEX memories_time ON memories (tenant, time)")


_WITHOUT_STATISTICS = {
    "memories": ("id", "session", "actor", "position", "place", "tags", "text", "contents", "words"),
    "words": ("word",),
    "judgements": ("question", "memory"),
    "notes": ("value",),
    "trash": ("id",),
}


def p003_keep_texts_out_of_statistics(raw: Raw) -> None:
    """Keep values out of PostgreSQL's statistics, where they cannot be erased. Setting the type that a column already
    has drops the existing ones."""
    for table, columns in _WITHOUT_STATISTICS.items():
        changes = [f"ALTER {name} TYPE text, ALTER {name} SET STATISTICS 0" for name in columns]
        _run(raw, f"ALTER TABLE {table} {', '.join(changes)}")


_FACTS = (
    "CREATE TABLE facts (seq bigint NOT NULL, number integer NOT NULL, subject bigint NOT NULL, "
    "relation bigint NOT NULL, object bigint NOT NULL, flags integer NOT NULL, confidence double precision NOT NULL, "
    "first integer NOT NULL, last integer NOT NULL, valid_from double precision NOT NULL, "
    "valid_until double precision, "
    f"learned double precision NOT NULL, names bytea NOT NULL, tenant bigint NOT NULL DEFAULT {_TENANT}, "
    "PRIMARY KEY (tenant, seq, number), "
    "FOREIGN KEY (tenant, seq) REFERENCES memories (tenant, seq) ON DELETE CASCADE)",
    "ALTER TABLE facts ALTER names SET STATISTICS 0",
    "ALTER TABLE facts ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE facts FORCE ROW LEVEL SECURITY",
    f"CREATE POLICY own_tenant ON facts USING (tenant = {_TENANT}) WITH CHECK (tenant = {_TENANT})",
    "CREATE INDEX facts_subject ON facts (tenant, subject, relation)",
    "CREATE INDEX facts_object ON facts (tenant, object, relation)",
    "CREATE INDEX facts_relation ON facts (tenant, relation)",
)


def p004_keep_facts(raw: Raw) -> None:
    for statement in _FACTS:
        _run(raw, statement)


_ALSO_WITHOUT_STATISTICS = {
    "memories": {
        "agent": "text", "terms": "bytea", "marks": "bytea", "vector": "bytea", "numbers": "bytea", "packed": "bytea",
        "sealed": "bytea", "embedding": "halfvec",
    },
    "staged": {"vector": "bytea"},
    "dictionaries": {"data": "bytea"},
    "trash": {"data": "bytea"},
    "judgements": {"agent": "text"},
    "audit": {"memory": "text", "detail": "text"},
}  # fmt: skip


def p005_keep_agents_and_packed_texts_out_of_statistics(raw: Raw) -> None:
    """As step 3: packed memories contain texts, and agents may have names of people."""
    for table, columns in _ALSO_WITHOUT_STATISTICS.items():
        changes = [f"ALTER {name} TYPE {kind}, ALTER {name} SET STATISTICS 0" for name, kind in columns.items()]
        _run(raw, f"ALTER TABLE {table} {', '.join(changes)}")


def p006_let_tenants_move(raw: Raw) -> None:
    """Add the column `moved`: NULL, ARRIVING, or the name of the server that has the rows."""
    _run(raw, "ALTER TABLE heads ADD COLUMN moved text")


STEPS = (
    p001_create_tables,
    p002_find_rows_by_number,
    p003_keep_texts_out_of_statistics,
    p004_keep_facts,
    p005_keep_agents_and_packed_texts_out_of_statistics,
    p006_let_tenants_move,
)  # only ever appended to


def _run(raw: Raw, statement: str) -> None:
    raw.execute(statement.encode())


def memory_columns() -> list[str]:
    """Return the columns of `memories` but the tenant."""
    return [column.split()[0] for column in _TABLES["memories"][0].split(", ")]


class _Login(NamedTuple):
    name: str
    sees_all: bool


def prepare(address: Address, tenant: str, *, durable: bool = True) -> TenantFrame:
    """Migrate the schema, and check that a tenant sees only its own rows."""
    with connect(address) as raw:
        try:
            return _prepare(raw, address, tenant)._replace(durable=durable)
        except psycopg.Error as error:
            raise explain(error, address) from error


def _prepare(raw: Raw, address: Address, tenant: str) -> TenantFrame:
    login = _Login(*_one(raw, _WHO))
    if _version(raw) != len(STEPS):
        with raw.transaction():
            raw.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])  # another process may have migrated meanwhile
            _migrate(raw, address, login)
    (owner,) = _one(raw, "SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = %s", SCHEMA)
    home = _extension(raw)
    frame = TenantFrame(tenant, None if owner == login.name and not login.sees_all else owner, f'{SCHEMA}, "{home}"')
    _check(raw, frame, address)
    with raw.transaction():
        frame.apply(raw, writing=True)
        raw.execute("INSERT INTO heads (name) VALUES (%s) ON CONFLICT DO NOTHING", [tenant])
        name, number = _one(raw, "SELECT name, tenant FROM heads")
    if name != tenant:
        raise ConfigError(f"tenant {tenant!r} cannot be told from {name!r}; choose another name")
    return frame._replace(number=number)


def _version(raw: Raw) -> int:
    found = raw.execute("SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = %s", [SCHEMA])
    row = found.fetchone()
    number = 0 if row is None or row[0] is None else int(str(row[0]).rpartition(" ")[2])
    if number > len(STEPS):
        raise StoreVersionError(
            f"this database was written by a newer version of Remanence (schema {number}; this version knows "
            f"{len(STEPS)}); upgrade with `pip install -U rmem`"
        )
    return number


def _migrate(raw: Raw, address: Address, login: _Login) -> None:
    done = _version(raw)
    if done == len(STEPS):
        return
    _make_extension(raw, address)
    if login.sees_all:
        if raw.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [ROLE]).fetchone() is None:
            try:
                with raw.transaction():
                    _run(raw, f"CREATE ROLE {ROLE} NOLOGIN NOSUPERUSER NOBYPASSRLS NOCREATEROLE")
            except (pg.DuplicateObject, pg.UniqueViolation):
                pass  # roles belong to the whole server: another database's store was first
        _run(raw, f"CREATE SCHEMA IF NOT EXISTS {SCHEMA} AUTHORIZATION {ROLE}")
        if done == 0:  # tables, which came first, may have made it
            _run(raw, f"ALTER SCHEMA {SCHEMA} OWNER TO {ROLE}")
        _run(raw, f"SET LOCAL ROLE {ROLE}")
    else:
        _run(raw, f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    _run(raw, f'SET LOCAL search_path = {SCHEMA}, "{_extension(raw)}"')
    for step in STEPS[done:]:
        step(raw)
    _run(raw, f"COMMENT ON SCHEMA {SCHEMA} IS 'Remanence memories, schema {len(STEPS)}'")
    _run(raw, "RESET ROLE")


def _make_extension(raw: Raw, address: Address) -> None:
    try:
        with raw.transaction():
            raw.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except psycopg.Error as error:
        raise ConfigError(
            f"{address.shown} has no pgvector ({str(error).strip().partition(chr(10))[0]}); install it and let an "
            "administrator run: CREATE EXTENSION vector"
        ) from None


def _extension(raw: Raw) -> str:
    (home,) = _one(
        raw,
        "SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'",
    )
    return str(home)


def _check(raw: Raw, frame: TenantFrame, address: Address) -> None:
    """Refuse a role that bypasses row-level security."""
    with raw.transaction():
        frame.apply(raw, writing=False)
        owner, sees_all = _one(raw, _WHO)
    if sees_all:
        raise ConfigError(f"{address.shown}: {owner}, who owns the schema {SCHEMA}, may see every tenant's rows")


def _one(raw: Raw, sql: str, *values: object) -> tuple[Any, ...]:
    row = raw.execute(sql.encode(), values or None).fetchone()
    assert row is not None
    return row
