"""The client does the same in the local file and on a server."""

from __future__ import annotations

import threading
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import numpy as np
import pytest

import rmem
from rmem import Client, types
from rmem.errors import (
    ConfigError,
    ConstraintError,
    InputError,
    NoSuchTableError,
    RemanenceError,
    RemoteError,
    SqlError,
    StatementTimeoutError,
    StoreClosedError,
    TableExistsError,
)

TRACES = {
    "task": ["Fix OOM crash in the ETL job", "Speed up the build", "Mend a flaky login test"],
    "minutes": [45, 30, 20],
    "embedding": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
}


@pytest.fixture
def client(connect):
    return connect()


@pytest.fixture
def traces(client):
    client.ingest("traces", TRACES)
    return client


def test_what_was_ingested_is_found_at_once_also_by_another_client(connect, traces):
    expected = [{"task": "Fix OOM crash in the ETL job", "minutes": 45}]
    for client in (traces, connect()):
        assert client.query("SELECT task, minutes FROM traces WHERE minutes > $1", [40]) == expected


def test_a_table_made_by_ingest_numbers_its_rows(traces):
    rows = traces.query("SELECT * FROM traces ORDER BY id")
    assert rows[0] == {"id": 1, "task": TRACES["task"][0], "minutes": 45, "embedding": [1.0, 0.0, 0.0]}
    assert rows["id"] == [1, 2, 3]
    assert rows.columns == ("id", "task", "minutes", "embedding")


def test_ingest_appends_to_what_is_there(traces):
    again = traces.ingest("traces", {"task": ["One more"], "minutes": [1]})
    assert again == {"table_name": "traces", "row_count": 1, "created": False}
    assert traces.query("SELECT id, task, embedding FROM traces WHERE minutes = 1") == [
        {"id": 4, "task": "One more", "embedding": None}
    ]


def test_values_of_every_type_come_back_as_they_were(client):
    values = {
        "text": '{"not": "json"}',
        "whole": 2**60,
        "number": 0.1,
        "exact": Decimal("12345678901234567890.1250"),
        "truth": True,
        "document": {"a": [1, None, "x"], "b": {"c": True}},
        "moment": datetime(2026, 5, 1, 12, 30, 0, 123456, tzinfo=UTC),
        "day": date(2026, 5, 1),
        "name": UUID(int=77),
        "raw": b"\x00\xff",
        "vector": [0.5, -0.25],
        "vectors": [[0.5, 1.0], [1.0, 0.5]],
        "words": ["a", "b"],
        "numbers": [1, 2**60],
    }
    client.ingest("every", {name: [value, None] for name, value in values.items()})
    rows = client.query("SELECT * FROM every ORDER BY id")
    assert rows[0] == {"id": 1, **values}
    assert rows[1] == {"id": 2, **dict.fromkeys(values)}
    told = {name: column["type"] for name, column in client.describe_table("every").items()}
    assert told == {
        "id": "bigint",
        "text": "text",
        "whole": "bigint",
        "number": "double precision",
        "exact": "numeric",
        "truth": "boolean",
        "document": "jsonb",
        "moment": "timestamptz",
        "day": "date",
        "name": "uuid",
        "raw": "bytea",
        "vector": "embedding(2)",
        "vectors": "float4[][]",
        "words": "text[]",
        "numbers": "bigint[]",
    }


def test_parameters_keep_their_types(client):
    client.create_table("t", {"id": "BIGINT", "at": "TIMESTAMPTZ", "price": "NUMERIC", "raw": "BYTEA", "key": "UUID"})
    given = [1, datetime(2026, 1, 1, tzinfo=UTC), Decimal("9.99"), b"\x01", UUID(int=5)]
    assert client.query("INSERT INTO t VALUES ($1, $2, $3, $4, $5) RETURNING id", given) == [{"id": 1}]
    for column, value in zip(("at", "price", "raw", "key"), given[1:], strict=True):
        found = client.query(f"SELECT {column} FROM t WHERE {column} = :value", {"value": value})
        assert found == [{column: value}], column


def test_parameters_need_no_blanks_between_them(client):
    assert client.query("SELECT $1::int AS a,$2::text AS b,$3::float4[] AS c", [1, "x", [0.5]]) == [
        {"a": 1, "b": "x", "c": [0.5]}
    ]


def test_numpy_arrays_and_scalars_are_taken(client):
    client.ingest("n", {"e": np.eye(3, dtype=np.float32), "i": np.arange(3), "f": [np.float32(0.5)] * 3})
    assert client.query("SELECT e, i, f FROM n ORDER BY i LIMIT 1") == [{"e": [1.0, 0.0, 0.0], "i": 0, "f": 0.5}]


def test_a_statement_that_answers_no_rows_tells_how_many_it_wrote(traces):
    done = traces.query("UPDATE traces SET minutes = minutes + 1")
    assert done == []
    assert done.row_count == 3


def test_search_ranks_the_rows(traces):
    traces.create_index("traces", "task", "bm25")
    found = traces.query(
        """
        SELECT task, (embedding, task)::deeplake_hybrid_record <#>
               deeplake_hybrid_record($1::float4[], $2, 0.5, 0.5) AS score
        FROM traces ORDER BY score DESC LIMIT 1
        """,
        ("{0.9,0.1,0}", "job killed by OOM"),
    )
    assert found[0]["task"] == "Fix OOM crash in the ETL job"
    assert 0 < found[0]["score"] <= 1


# Building SELECTs


def test_a_select_is_built_step_by_step(traces):
    quick = traces.table("traces").select("task", "minutes").where("minutes < $1", 40)
    assert quick.order_by("minutes")() == [
        {"task": "Mend a flaky login test", "minutes": 20},
        {"task": "Speed up the build", "minutes": 30},
    ]
    assert quick.order_by("minutes DESC").limit(1)()["minutes"] == [30]
    assert quick.where("task LIKE $1 OR task = $2", "Mend%", "x")()["minutes"] == [20]
    assert quick.order_by("minutes").limit(1).offset(1)()["minutes"] == [30]
    assert traces.table("traces").select("count(*) AS n").where(embedding=None)() == [{"n": 0}]
    assert len(traces.table("traces")()) == 3


def test_names_that_need_quotes_are_quoted(client):
    client.ingest('odd "table"', {"Mixed Case": ["x"], "select": [1]})
    assert client.list_tables() == ['odd "table"']
    found = client.table('odd "table"').where(**{"Mixed Case": "x"}).order_by("select")()
    assert found == [{"id": 1, "Mixed Case": "x", "select": 1}]


@pytest.mark.parametrize("condition", ["a) OR (b", "a; DROP TABLE t", "a -- b", "(a", "a /* b", "'a"])
def test_a_condition_cannot_leave_its_place(traces, condition):
    with pytest.raises(SqlError, match="where must be one expression"):
        traces.table("traces").where(condition)


def test_a_condition_must_name_its_values(traces):
    with pytest.raises(SqlError, match=r"it names \$1 and got 2 values"):
        traces.table("traces").where("minutes = $1", 1, 2)
    with pytest.raises(InputError, match="where needs a condition"):
        traces.table("traces").where(None, 1)


# Tables and indexes


def test_tables_are_made_described_and_dropped(client):
    client.create_table(
        "t", {"id": "BIGSERIAL PRIMARY KEY", "text": types.Text(), "e": types.Embedding(3), "n": "int64"}
    )
    assert client.list_tables() == ["t"]
    told = client.describe_table("t")
    assert told["id"]["primary_key"]
    assert {name: column["type"] for name, column in told.items()} == {
        "id": "bigint",
        "text": "text",
        "e": "embedding(3)",
        "n": "bigint",
    }
    with pytest.raises(TableExistsError):
        client.create_table("t", {"a": "TEXT"})
    client.create_table("t", {"a": "TEXT"}, if_not_exists=True)
    assert client.drop_table("t")
    assert not client.drop_table("t", if_exists=True)
    with pytest.raises(NoSuchTableError):
        client.drop_table("t")
    with pytest.raises(NoSuchTableError):
        client.describe_table("t")
    assert client.list_tables() == []


def test_indexes_are_made_and_dropped(traces):
    name = traces.create_index("traces", "task", "bm25")
    assert traces.create_index("traces", "task", "bm25") == name
    assert traces.describe_table("traces")["task"]["index"] == "bm25"
    assert traces.describe_table("traces")["minutes"]["index"] is None
    listed = traces.query("SELECT indexname FROM pg_indexes WHERE tablename = 'traces'")["indexname"]
    assert name in listed
    assert traces.create_index("traces", ["task", "minutes"], "btree") == "traces_task_minutes_btree_idx"
    assert traces.drop_index(name)
    assert not traces.drop_index(name, if_exists=True)
    with pytest.raises(NoSuchTableError):
        traces.drop_index(name)


def test_indexes_that_cannot_be(traces):
    with pytest.raises(NoSuchTableError):
        traces.create_index("nowhere", "task")
    with pytest.raises(RemanenceError):
        traces.create_index("traces", "nothing")
    with pytest.raises(SqlError, match="it's"):
        traces.create_index("traces", "task", "it's")
    long = "a" * 60
    traces.ingest(long, {"b": ["x"]})
    assert len(traces.create_index(long, "b")) <= 63


# Errors


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("SELECT * FROM nowhere", NoSuchTableError),
        ("SELECT nothing FROM traces", SqlError),
        ("SELECT", SqlError),
        ("SELECT 1; SELECT 2", SqlError),
        ("INSERT INTO traces (id) VALUES (1)", ConstraintError),
    ],
)
def test_errors_are_of_the_same_class(traces, statement, error):
    with pytest.raises(error):
        traces.query(statement)
    assert traces.query("SELECT count(*) AS n FROM traces") == [{"n": 3}]


def test_a_statement_that_takes_too_long_is_stopped(client):
    client.ingest("n", {"v": list(range(3000))})
    with pytest.raises(StatementTimeoutError):
        client.query("SELECT count(*) FROM n a, n b, n c WHERE a.v + b.v = c.v + 1", timeout=0.05)
    assert client.query("SELECT count(*) AS n FROM n") == [{"n": 3000}]


def test_a_closed_client_says_so(connect):
    with connect() as client:
        pass
    with pytest.raises(StoreClosedError):
        client.query("SELECT 1")


# Many rows, many threads


def test_rows_stream_in_batches(client):
    client.ingest("n", {"value": list(range(2500))})
    batches = list(client.stream("SELECT value FROM n ORDER BY value", 1000))
    assert [len(batch) for batch in batches] == [1000, 1000, 500]
    assert [row["value"] for batch in batches for row in batch] == list(range(2500))
    assert list(client.stream("SELECT value FROM n WHERE value < $1", 10, [3])) == [
        [{"value": 0}, {"value": 1}, {"value": 2}]
    ]
    assert list(client.stream("SELECT value FROM n WHERE value < 0")) == []
    with pytest.raises(InputError, match="batch_size"):
        next(client.stream("SELECT value FROM n", 0))


def test_a_stream_can_be_left_and_others_run_meanwhile(client):
    client.ingest("n", {"value": list(range(3000))})
    stream = client.stream("SELECT value FROM n ORDER BY value", 10)
    assert next(stream)[0] == {"value": 0}
    assert client.query("SELECT count(*) AS n FROM n") == [{"n": 3000}]
    assert next(stream)[0] == {"value": 10}
    stream.close()
    assert client.query("SELECT count(*) AS n FROM n") == [{"n": 3000}]


def test_an_answer_longer_than_a_page_comes_whole(client):
    client.ingest("n", {"value": list(range(12_000))})
    assert len(client.query("SELECT value FROM n")) == 12_000
    assert len(client.query("WITH m AS (SELECT value FROM n) SELECT value FROM m")) == 12_000


def test_threads_share_a_client(client):
    client.create_table("t", {"id": "BIGSERIAL PRIMARY KEY", "who": "TEXT"})
    failures = []

    def work(who):
        try:
            for _ in range(5):
                client.ingest("t", {"who": [who]})
                assert client.query("SELECT count(*) AS n FROM t WHERE who = $1", [who])[0]["n"] > 0
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(f"w{number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert client.query("SELECT count(*) AS n, count(DISTINCT id) AS ids FROM t") == [{"n": 30, "ids": 30}]


# Which one is used


def test_without_anything_the_local_file_is_used(tmp_path, monkeypatch):
    monkeypatch.setenv("RMEM_HOME", str(tmp_path))
    with Client() as client:
        client.ingest("t", {"a": [1]})
    with rmem.Brain() as brain:  # the same file holds memories
        brain.remember("Both live in one file")
    with Client() as client:
        assert client.list_tables() == ["t"]
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".db"] == ["memories.db"]


def test_workspaces_are_apart(tmp_path, monkeypatch):
    monkeypatch.setenv("RMEM_HOME", str(tmp_path))
    with Client(workspace_id="one") as one, Client(workspace_id="One") as two, Client() as default:
        one.ingest("t", {"a": [1]})
        assert two.list_tables() == default.list_tables() == []
        two.ingest("t", {"b": ["x"]})
        assert one.query('SELECT a FROM "one"."t"') == [{"a": 1}]
        assert two.query('SELECT b FROM "One".t') == [{"b": "x"}]
        with pytest.raises((NoSuchTableError, SqlError)):
            two.query('SELECT a FROM "one"."t"')
    monkeypatch.setenv("RMEM_WORKSPACE", "one")
    with Client() as client:
        assert client.query("SELECT a FROM t") == [{"a": 1}]


@pytest.mark.parametrize("name", ["../up", "a/b", "con", "ä", "a b", "%2e"])
def test_the_name_of_a_workspace_leads_nowhere_else(tmp_path, monkeypatch, name):
    monkeypatch.setenv("RMEM_HOME", str(tmp_path))
    with Client(workspace_id=name) as client:
        client.ingest("t", {"a": [1]})
    assert [path.parent for path in tmp_path.rglob("*.db")] == [tmp_path / "workspaces"]


@pytest.mark.parametrize("prefix", ["RMEM", "DEEPLAKE"])
def test_the_environment_names_a_server(table_server, monkeypatch, prefix):
    workspace = table_server.new_workspace()
    monkeypatch.setenv(f"{prefix}_API_URL", table_server.url)
    monkeypatch.setenv(f"{prefix}_API_KEY", table_server.token)
    monkeypatch.setenv(f"{prefix}_WORKSPACE", workspace)
    with Client() as client:
        client.ingest("t", {"a": [1]})
    with Client(table_server.token, workspace, table_server.url) as client:
        assert client.query(f'SELECT a FROM "{workspace}"."t"') == [{"a": 1}]


def test_our_names_win_over_the_others(table_server, monkeypatch):
    monkeypatch.setenv("DEEPLAKE_API_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("RMEM_API_URL", table_server.url)
    with Client(token=table_server.token, workspace_id=table_server.new_workspace()) as client:
        assert client.list_tables() == []


def test_a_path_wins_over_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("RMEM_API_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("RMEM_API_KEY", "x")
    with Client(path=tmp_path / "a.db") as client:
        assert client.list_tables() == []


def test_a_token_without_a_server_is_refused(tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match=r"token is a token for a server.*set RMEM_API_URL"):
        Client(token="x")
    monkeypatch.setenv("DEEPLAKE_API_KEY", "x")
    with pytest.raises(ConfigError, match="DEEPLAKE_API_KEY is a token for a server"):
        Client()
    with pytest.raises(ConfigError, match="not both"):
        Client(path=tmp_path / "a.db", api_url="http://localhost:1")


@pytest.mark.parametrize(
    "url", ["localhost:8080", "ftp://host", "http://user:secret@host", "http://host:port", "http://h?x=1"]
)
def test_addresses_are_checked(url):
    with pytest.raises(ConfigError, match="api_url") as refused:
        Client(token="t", api_url=url)
    assert "secret" not in str(refused.value)


def test_a_server_that_refuses_says_why(table_server):
    with Client(token="forged", api_url=table_server.url) as client, pytest.raises(RemoteError) as refused:
        client.list_tables()
    assert refused.value.status == 401
    assert "forged" not in str(refused.value) + repr(client)
    lost = Client(token=table_server.token, api_url=table_server.url, workspace_id="nowhere")
    with lost, pytest.raises(RemoteError, match="workspace") as refused:
        lost.list_tables()
    assert refused.value.status == 404


def test_a_misspelt_statement_and_a_missing_value_are_named(client):
    with pytest.raises(SqlError, match="cannot be read: 'SELEC' is not the beginning of one"):
        client.query("SELEC")
    with pytest.raises(SqlError, match=r"it names \$1 and got 0 values"):
        client.table("t").where("a = $1")
