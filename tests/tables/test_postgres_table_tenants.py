"""Tenants in one PostgreSQL database: none sees another's tables, rows or names, whatever a statement tries."""

from __future__ import annotations

import uuid

import psycopg
import pytest

from rmem.errors import RemanenceError, TableError
from rmem.tables.engines.postgres import PostgresEngine
from rmem.tables.engines.postgres_catalog import schema_name
from rmem.tables.workspace import Workspace

SECRET = "the launch code is 0000"


@pytest.fixture(scope="module")
def tenants(tables_url):
    """Two tenants of one database; the first has a secret. One pair for all tests: none of them may change anything."""
    names = [f"{who}/{uuid.uuid4().hex}" for who in ("acme", "mallory")]
    with Workspace(tables_url, tenant=names[0]) as acme, Workspace(tables_url, tenant=names[1]) as mallory:
        acme.query("CREATE TABLE vault (id BIGSERIAL PRIMARY KEY, secret TEXT)")
        acme.query("INSERT INTO vault (secret) VALUES ($1)", [SECRET])
        acme.query("CREATE INDEX vault_words ON vault USING deeplake_index (secret) WITH (index_type = 'bm25')")
        mallory.query("CREATE TABLE own (id BIGSERIAL PRIMARY KEY, note TEXT, doc JSONB)")
        mallory.query("INSERT INTO own (note, doc) VALUES ('mine', '{}')")
        yield names[0], acme, mallory


TRICKS = [
    "SELECT * FROM vault",
    'SELECT * FROM "{schema}".vault',
    'SELECT * FROM "{schema}"."vault" AS own',
    "SELECT * FROM {schema}.vault",
    "SELECT * FROM postgres.{schema}.vault",
    'SELECT * FROM "acme"."vault"',
    'SELECT * FROM "{tenant}"."vault"',
    "SELECT * FROM public.vault",
    "SELECT * FROM remanence.table_catalog",
    "SELECT * FROM remanence.table_tenants",
    "SELECT * FROM remanence.table_deletions",
    "SELECT * FROM own UNION SELECT id, secret, NULL FROM {schema}.vault",
    "SELECT (SELECT secret FROM {schema}.vault) FROM own",
    "WITH vault AS (SELECT * FROM vault) SELECT * FROM vault",
    "WITH x AS (SELECT secret FROM {schema}.vault) SELECT * FROM x",
    "INSERT INTO own (note) SELECT secret FROM {schema}.vault RETURNING note",
    "UPDATE own SET note = v.secret FROM {schema}.vault v RETURNING note",
    "UPDATE {schema}.vault SET secret = 'gone'",
    "DELETE FROM own USING {schema}.vault v WHERE v.secret LIKE 'the%'",
    "DELETE FROM {schema}.vault",
    "DROP TABLE vault",
    "DROP TABLE {schema}.vault",
    "DROP TABLE own, {schema}.vault",
    "DROP SCHEMA {schema} CASCADE",
    "TRUNCATE {schema}.vault",
    "ALTER TABLE {schema}.vault DROP COLUMN secret",
    "ALTER TABLE own SET SCHEMA {schema}",
    "ALTER TABLE own ADD COLUMN stolen TEXT DEFAULT (SELECT secret FROM {schema}.vault)",
    "CREATE TABLE thief AS SELECT * FROM {schema}.vault",
    "CREATE TABLE thief (LIKE {schema}.vault)",
    "CREATE TABLE thief (a INT) INHERITS ({schema}.vault)",
    "CREATE TABLE thief (a BIGINT REFERENCES {schema}.vault (id))",
    "CREATE TABLE thief (a TEXT CHECK (a IN (SELECT secret FROM {schema}.vault)))",
    "CREATE TABLE {schema}.planted (a INT)",
    "CREATE VIEW v AS SELECT * FROM {schema}.vault",
    "CREATE INDEX i ON {schema}.vault (secret)",
    "DROP INDEX vault_words",
    "DROP INDEX {schema}.vault_words",
    "SELECT * FROM pg_class",
    "SELECT * FROM pg_catalog.pg_tables",
    "SELECT * FROM pg_stat_activity",
    "SELECT * FROM pg_stats",
    "SELECT * FROM pg_roles",
    "SELECT * FROM pg_namespace",
    "SELECT * FROM information_schema.schemata",
    "SELECT * FROM pg_indexes",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM information_schema.columns",
    "SELECT query_to_xml('SELECT * FROM {schema}.vault', true, true, '')",
    "SELECT table_to_xml('{schema}.vault', true, true, '')",
    "SELECT dblink('dbname=postgres', 'SELECT 1')",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT pg_ls_dir('.')",
    "SELECT lo_import('/etc/passwd')",
    "SELECT set_config('role', 'postgres', false)",
    "SELECT set_config('search_path', '{schema}', false)",
    "SELECT current_setting('search_path')",
    "SELECT current_user",
    "SELECT session_user, current_schema(), current_database()",
    "SELECT version()",
    "SELECT pg_get_viewdef(1)",
    "SELECT '{schema}.vault'::regclass",
    "SELECT to_regclass('{schema}.vault')",
    "SELECT pg_relation_size('{schema}.vault')",
    "SELECT currval('{schema}.vault_id_seq')",
    "SELECT nextval('{schema}.vault_id_seq')",
    "SELECT has_table_privilege('{schema}.vault', 'SELECT')",
    "SELECT * FROM own WHERE note = {schema}.vault.secret",
    "SELECT {schema}.vault.secret FROM own",
    "SELECT own.* FROM own, {schema}.vault",
    "SELECT * FROM own; SELECT * FROM {schema}.vault",
    "SET ROLE postgres",
    "SET search_path = {schema}",
    "RESET ROLE",
    "SHOW search_path",
    "COPY {schema}.vault TO STDOUT",
    "COPY own FROM '/etc/passwd'",
    "COPY (SELECT * FROM {schema}.vault) TO PROGRAM 'cat'",
    "DO $$ BEGIN PERFORM 1; END $$",
    "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE EXTENSION dblink",
    "GRANT ALL ON {schema}.vault TO PUBLIC",
    "LOCK TABLE {schema}.vault",
    "COMMENT ON TABLE {schema}.vault IS 'x'",
    "EXPLAIN SELECT * FROM {schema}.vault",
    "EXPLAIN ANALYZE DELETE FROM {schema}.vault",
    "VACUUM {schema}.vault",
    "SELECT rmem_score(0, own._row) FROM own",
    "SELECT _row, rmem_xact FROM own",
    "SELECT own FROM own",
    "SELECT to_jsonb(own) FROM own",
    "SELECT row_to_json(own) FROM own",
    "SELECT tableoid, xmin, ctid FROM own",
    "SELECT tableoid::regclass FROM own",
    "SELECT * FROM own ORDER BY (SELECT secret FROM {schema}.vault)",
    "SELECT note <#> 'launch' FROM {schema}.vault AS own",
    "INSERT INTO own (note) VALUES ((SELECT secret FROM {schema}.vault)) RETURNING note",
    "SELECT jsonb_populate_record(NULL::{schema}.vault, '{{}}')",
    "SELECT * FROM ROWS FROM (pg_ls_dir('.')) AS f",
    "MERGE INTO own USING {schema}.vault v ON true WHEN MATCHED THEN UPDATE SET note = v.secret",
]  # fmt: skip


@pytest.mark.parametrize("trick", TRICKS)
def test_no_statement_reaches_another_tenant(tenants, trick):
    tenant, acme, mallory = tenants
    schema = schema_name(tenant)
    sql = trick.replace("{schema}", schema).replace("{tenant}", tenant).replace("{{", "{").replace("}}", "}")
    try:
        result = mallory.query(sql)
        told = repr((result.columns, result.rows))
    except RemanenceError as error:
        told = str(error).replace(sql, "")
        assert "rmem_" not in told.replace(schema, "").replace("rmem_score", "").replace("rmem_xact", "")
    else:
        assert "vault" not in told
        assert schema not in told
    assert SECRET not in told
    assert acme.query("SELECT secret FROM vault").rows == [(SECRET,)]
    assert [table.name for table in acme.tables()] == ["vault"]
    assert acme.query("SELECT indexname FROM pg_indexes WHERE indexname = 'vault_words'").row_count == 1
    assert mallory.query("SELECT note FROM own").rows in ([("mine",)], [])


def test_a_table_of_another_and_one_that_is_not_there_are_answered_alike(tenants):
    _, _, mallory = tenants
    told = []
    for name in ("vault", "other"):
        with pytest.raises(TableError) as refused:
            mallory.query(f"SELECT * FROM {name}")
        told.append(str(refused.value).replace(name, "…"))
    assert told[0] == told[1]


def test_the_role_of_a_tenant_may_do_nothing_outside_its_schema(tables_url, tenants):
    """Even SQL that the check of the tree would never let through."""
    tenant, _, _ = tenants
    schema = schema_name(tenant)
    with PostgresEngine(tables_url, tenant=f"x{uuid.uuid4().hex}")._link.connect() as connection:
        row = connection.execute(
            "SELECT role FROM remanence.table_tenants WHERE tenant LIKE 'mallory/%' ORDER BY tenant LIMIT 1"
        ).fetchone()
        connection.execute(f'SET ROLE "{row[0]}"')
        for sql in (
            f"SELECT * FROM {schema}.vault",
            f"INSERT INTO {schema}.vault (secret) VALUES ('x')",
            "SELECT * FROM remanence.table_catalog",
            "SELECT * FROM remanence.table_deletions",
            "CREATE TABLE public.t (a int)",
            f"CREATE TABLE {schema}.t (a int)",
            "SELECT pg_read_file('/etc/passwd')",
            "CREATE ROLE other",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(sql)


def test_names_of_schemas_are_safe_and_never_shared():
    names = ["a/b", "a_b", "A/B", "a b", "", '"; DROP SCHEMA public; --', "x" * 500, "ünï", "a/b "]
    schemas = [schema_name(name) for name in names]
    assert len(set(schemas)) == len(names)
    for schema in schemas:
        assert schema.isascii()
        assert schema.replace("_", "").isalnum()
        assert len(schema) <= 63
