"""Tables over HTTP: statements, limits, streams, ingestion, ETags."""

from __future__ import annotations

import gc
import json
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from running_server import eventually

from rmem.server.settings import Limits

QUERY = "/workspaces/default/tables/query"
TABLES = "/workspaces/default/tables"
NDJSON, ARROW = "application/x-ndjson", "application/vnd.apache.arrow.stream"


@pytest.fixture
def notes(admin):
    """A table with an id, a text and a number."""
    schema = {"id": "BIGSERIAL PRIMARY KEY", "body": "TEXT", "n": "BIGINT"}
    admin.post(TABLES, json={"table_name": "notes", "table_schema": schema}).raise_for_status()
    return admin


def run(client, sql: str, params: object = None, **more: object):
    return client.post(QUERY, json={"query": sql, **({} if params is None else {"params": params}), **more})


def test_a_table_is_made_listed_shown_and_dropped(admin):
    body = {"table_name": "docs", "table_schema": {"id": "BIGSERIAL PRIMARY KEY", "e": "EMBEDDING(3)", "t": "TEXT"}}
    made = admin.post(TABLES, json=body)
    assert made.status_code == 201
    assert [(one["name"], one["type"]) for one in made.json()["columns"]] == [
        ("id", "bigint"), ("e", "embedding(3)"), ("t", "text"),
    ]  # fmt: skip
    again = admin.post(TABLES, json=body)
    assert (again.status_code, again.json()) == (409, {"error": "table 'docs' already exists"})
    assert [one["table_name"] for one in admin.get(TABLES).json()["tables"]] == ["docs"]
    assert admin.get(f"{TABLES}/docs").json() == made.json()
    assert admin.delete(f"{TABLES}/docs").json() == {"dropped": "docs"}
    for answer in (admin.delete(f"{TABLES}/docs"), admin.get(f"{TABLES}/docs")):
        assert answer.status_code == 404
        assert "docs" in answer.json()["error"]


def test_statements_answer_columns_types_rows_and_a_count(notes):
    written = run(notes, "INSERT INTO notes (body, n) VALUES ($1, $2), ($3, $4)", ["a", 1, "b", None]).json()
    assert (written["row_count"], written["rows"]) == (2, [])
    found = run(notes, "SELECT id, body, n FROM notes ORDER BY id").json()
    assert found == {
        "columns": ["id", "body", "n"],
        "types": ["bigint", "text", "bigint"],
        "rows": [[1, "a", 1], [2, "b", None]],
        "row_count": 2,
    }
    assert run(notes, "SELECT body FROM notes WHERE n = :n", {"n": 1}).json()["rows"] == [["a"]]
    assert run(notes, "UPDATE notes SET n = 5").json()["row_count"] == 2
    returned = run(notes, "DELETE FROM notes WHERE id = 1 RETURNING body").json()
    assert (returned["columns"], returned["rows"]) == (["body"], [["a"]])


def test_values_that_json_does_not_know_travel_as_text(admin):
    run(admin, "CREATE TABLE v (t TIMESTAMPTZ, u UUID, m NUMERIC(10, 2), b BYTEA, f DOUBLE PRECISION)")
    moment, name = "2026-05-01T12:00:00+00:00", "6f1c0b7e-59a3-4f0e-9d53-3d6f5a1b2c3d"
    values = [moment, name, "12.50", "\\x00ff", 1.5]
    types = ["timestamptz", "uuid", "numeric", "bytea", "double precision"]
    assert run(admin, "INSERT INTO v VALUES ($1, $2, $3, $4, $5)", values, param_types=types).status_code == 200
    found = run(admin, "SELECT * FROM v").json()
    assert found["rows"] == [values]
    assert found["types"] == ["timestamptz", "uuid", "numeric", "bytea", "double precision"]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"query": ""}, "query"),
        ({}, "query"),
        ({"query": 7}, "query"),
        ({"query": "SELECT"}, ""),
        ({"query": "SELECT 1 +"}, ""),
        ({"query": "SELECT 1", "params": "x"}, "params"),
        ({"query": "SELECT 1", "params": 7}, "params"),
        ({"query": "SELECT 1", "timeout_ms": 0}, "timeout_ms"),
        ({"query": "SELECT 1", "timeout_ms": "x"}, "timeout_ms"),
        ({"query": "SELECT 1", "extra": 1}, "extra"),
        ({"query": "SELECT $1", "params": []}, ""),
        ({"query": "SELECT $1::bigint", "params": [10**40]}, ""),
        ({"query": "SELECT 1", "params": [1], "param_types": ["a", "b"]}, "param_types"),
        ({"query": "SELECT * FROM nonesuch"}, "nonesuch"),
        ({"query": "SELECT nonesuch FROM notes"}, "nonesuch"),
        ({"query": "SELECT 'a\u0000b'"}, ""),
        ({"query": "SELECT " + "(" * 3000 + "1" + ")" * 3000}, ""),
        ({"query": "SELECT " + "1+" * 2000 + "1"}, ""),
    ],
)
def test_bad_statements_are_refused_in_words(lasting, body, told):
    answer = lasting.post(QUERY, json=body)
    assert answer.status_code in (400, 404), answer.text
    assert set(answer.json()) == {"error"}
    assert told in answer.json()["error"]


def test_a_broken_constraint_is_409_and_changes_nothing(notes):
    run(notes, "INSERT INTO notes (id, body) VALUES (7, 'first')")
    answer = run(notes, "INSERT INTO notes (id, body) VALUES (8, 'second'), (7, 'again')")
    assert answer.status_code == 409
    assert run(notes, "SELECT id FROM notes").json()["rows"] == [[7]]


def test_a_statement_that_takes_too_long_is_408(admin):
    admin.post(f"{TABLES}/n/ingest", json={"columns": {"x": list(range(1000))}}).raise_for_status()
    answer = run(admin, "SELECT count(*) FROM n a, n b, n c WHERE a.x + b.x > c.x", timeout_ms=100)
    assert answer.status_code == 408, answer.text
    assert set(answer.json()) == {"error"}


def test_an_answer_that_is_too_long_says_what_to_do(server_with):
    server = server_with(Limits(rows=10))
    client = server.client(server.first_token)
    lines = {"columns": {"n": list(range(25))}}
    client.post(f"{TABLES}/numbers/ingest", json=lines).raise_for_status()
    answer = run(client, "SELECT n FROM numbers")
    assert answer.status_code == 413
    assert "LIMIT" in answer.json()["error"] or "stream" in answer.json()["error"]
    assert run(client, "SELECT n FROM numbers LIMIT 10").json()["row_count"] == 10
    streamed = client.post(QUERY, json={"query": "SELECT n FROM numbers"}, headers={"Accept": NDJSON})
    assert len(streamed.text.splitlines()) == 27


def test_a_statement_that_is_too_long_is_413(server_with):
    server = server_with(Limits(statement_length=50))
    client = server.client(server.first_token)
    answer = run(client, "SELECT " + "1+" * 50 + "1")
    assert answer.status_code == 413
    assert "params" in answer.json()["error"]
    assert run(client, "SELECT $1::text", ["x" * 1000]).status_code == 200


# Streams


@pytest.fixture
def many(admin):
    return filled(admin)


def filled(admin):
    columns = {
        "n": list(range(2500)),
        "t": [f"row {n}" for n in range(2500)],
        "e": [[float(n), 1.0] for n in range(2500)],
    }
    made = admin.post(f"{TABLES}/many/ingest", json={"columns": columns})
    assert made.json() == {"table_name": "many", "row_count": 2500, "created": True}, made.text
    return admin


def test_a_long_answer_is_streamed_as_lines(many):
    sql = {"query": "SELECT n, t FROM many ORDER BY n"}
    with many.stream("POST", QUERY, json=sql, headers={"Accept": NDJSON}) as answer:
        assert answer.headers["content-type"].startswith(NDJSON)
        lines = [json.loads(line) for line in answer.iter_lines()]
    assert lines[0] == {"columns": ["n", "t"], "types": ["bigint", "text"]}
    assert lines[1:-1] == [[n, f"row {n}"] for n in range(2500)]
    assert lines[-1] == {"row_count": 2500}


def test_a_long_answer_is_streamed_as_arrow(many):
    sql = {"query": "SELECT n, e FROM many WHERE n >= $1 ORDER BY n", "params": [500]}
    answer = many.post(QUERY, json=sql, headers={"Accept": ARROW})
    assert answer.headers["content-type"] == ARROW
    table = pa.ipc.open_stream(answer.content).read_all()
    assert table.column("n").to_pylist() == list(range(500, 2500))
    assert table.column("e").to_pylist()[0] == [500.0, 1.0]


def test_an_empty_answer_can_be_streamed_too(many):
    sql = {"query": "SELECT n FROM many WHERE n < 0"}
    lines = many.post(QUERY, json=sql, headers={"Accept": NDJSON}).text.splitlines()
    assert [json.loads(line) for line in lines] == [{"columns": ["n"], "types": ["bigint"]}, {"row_count": 0}]
    table = pa.ipc.open_stream(many.post(QUERY, json=sql, headers={"Accept": ARROW}).content).read_all()
    assert (table.num_rows, table.column_names) == (0, ["n"])


def test_an_error_before_the_first_row_of_a_stream_has_its_status(many):
    for kind in (NDJSON, ARROW):
        answer = many.post(QUERY, json={"query": "SELECT x FROM many"}, headers={"Accept": kind})
        assert answer.status_code in (400, 404)
        assert set(answer.json()) == {"error"}


def test_a_stream_that_nobody_reads_on_does_not_hold_the_table(many, server):
    for _ in range(5):
        with many.stream("POST", QUERY, json={"query": "SELECT * FROM many"}, headers={"Accept": NDJSON}) as answer:
            next(answer.iter_lines())
    assert run(many, "DELETE FROM many WHERE n = 0").json()["row_count"] == 1
    assert many.delete(f"{TABLES}/many").status_code == 200


def test_a_stream_whose_client_went_away_gives_its_connection_back_without_the_garbage_collector(server_with):
    server = server_with(workers=0)
    many = filled(server.client(server.first_token))
    from rmem.tables.engines.sqlite_file import TableFile

    gc.disable()
    try:
        sql = {"query": "SELECT a.t || b.t FROM many a JOIN many b ON true"}  # far more than a socket takes
        for kind in (NDJSON, ARROW):
            with many.stream("POST", QUERY, json=sql, headers={"Accept": kind}) as answer:
                next(answer.iter_bytes())
        files = [one for one in gc.get_objects() if isinstance(one, TableFile)]
        assert files
        eventually(lambda: not any(one._used for one in files))
    finally:
        gc.enable()


# Ingestion


def test_rows_come_as_columns_lines_or_arrow_and_can_be_asked_at_once(admin):
    first = admin.post(f"{TABLES}/mix/ingest", json={"columns": {"n": [1, 2], "t": ["a", "b"]}, "index": ["t"]})
    assert first.json() == {"table_name": "mix", "row_count": 2, "created": True}
    lines = b'{"n": 3, "t": "c"}\n\n{"t": "d", "n": 4}\n{"n": 5}\n'
    second = admin.post(f"{TABLES}/mix/ingest", content=lines, headers={"Content-Type": NDJSON})
    assert second.json() == {"table_name": "mix", "row_count": 3, "created": False}, second.text
    table = pa.table({"n": [6, 7], "t": ["f", None]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    body = sink.getvalue().to_pybytes()
    third = admin.post(f"{TABLES}/mix/ingest", content=body, headers={"Content-Type": ARROW})
    assert third.json()["row_count"] == 2, third.text
    assert run(admin, "SELECT n, t FROM mix ORDER BY n").json()["rows"] == [
        [1, "a"], [2, "b"], [3, "c"], [4, "d"], [5, None], [6, "f"], [7, None],
    ]  # fmt: skip
    indexed = admin.get(f"{TABLES}/mix").json()["indexes"]
    assert ["t"] in [one["columns"] for one in indexed]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"columns": {"n": [1, 2], "t": ["a"]}}, "t"),
        ({"columns": {"n": [1, "x"]}}, "n"),
        ({"columns": {"n": [1], "other": [2]}}, "other"),
        ({"columns": {}}, "data"),
        ({"columns": {"n": 7}}, "n"),
        ({"columns": [1]}, "data"),
        ({}, "columns"),
        ({"columns": {"n": [1]}, "schema": {"n": "FILE"}}, "FILE"),
        ({"columns": {"n": [1]}, "extra": 1}, "extra"),
        ({"columns": {"n": [1]}, "index": ["nonesuch"]}, "nonesuch"),
        ([], "object"),
    ],
)
def test_rows_that_do_not_fit_are_refused_whole(lasting, body, told):
    answer = lasting.post(f"{TABLES}/notes/ingest", json=body)
    assert answer.status_code == 400, answer.text
    assert told in answer.json()["error"]
    assert run(lasting, "SELECT count(*) FROM notes").json()["rows"] == [[0]]


def test_a_table_that_could_not_be_filled_is_not_left_behind(admin):
    answer = admin.post(f"{TABLES}/fresh/ingest", json={"columns": {"e": [[1.0, 2.0], [1.0]]}})
    assert answer.status_code == 400
    assert admin.get(TABLES).json()["tables"] == []


def _stream(table: pa.Table, **options: object) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


HOSTILE = {
    "compressed": _stream(pa.table({"n": [0] * 100_000}), compression="zstd"),
    "a dictionary": _stream(pa.table({"t": pa.array(["x" * 1000] * 1000).dictionary_encode()})),
    "run ends": _stream(
        pa.table({"n": pa.RunEndEncodedArray.from_arrays(pa.array([2**30], pa.int32()), pa.array([1]))})
    ),
    "nulls": _stream(pa.table({"n": pa.nulls(1_000_000)})),
    "two names": _stream(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["n", "n"])),
    "cut off": _stream(pa.table({"n": list(range(1000))}))[:-900],
    "rubbish": b"\xff\xff\xff\xff" + b"\x10" * 400,
    "empty": b"",
    "a long promise": b"\xff\xff\xff\xff\xff\xff\xff\x7f",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_arrow_streams_are_refused(lasting, name):
    answer = lasting.post(f"{TABLES}/x/ingest", content=HOSTILE[name], headers={"Content-Type": ARROW})
    assert answer.status_code == 400, answer.text
    assert [one["table_name"] for one in lasting.get(TABLES).json()["tables"]] == ["notes"]


def test_bytes_changed_in_an_arrow_stream_never_break_the_server(admin):
    good = _stream(pa.table({"n": [1, 2, 3], "t": ["a", "bb", None], "v": [[1.0], [2.0, 3.0], []]}))
    for at in range(0, len(good), 7):
        broken = good[:at] + bytes([good[at] ^ 0xFF]) + good[at + 1 :]
        answer = admin.post(f"{TABLES}/t{at}/ingest", content=broken, headers={"Content-Type": ARROW})
        assert answer.status_code in (200, 400), (at, answer.text)


# Lists, tags, and the same twice


def test_tables_come_in_pages_and_with_a_tag(admin):
    for name in "cab":
        admin.post(TABLES, json={"table_name": name, "table_schema": {"x": "TEXT"}}).raise_for_status()
    first = admin.get(TABLES, params={"limit": 2}).json()
    assert [one["table_name"] for one in first["tables"]] == ["a", "b"]
    rest = admin.get(TABLES, params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert ([one["table_name"] for one in rest["tables"]], rest["next_cursor"]) == (["c"], None)
    tag = admin.get(TABLES).headers["etag"]
    unchanged = admin.get(TABLES, headers={"If-None-Match": tag})
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    run(admin, "DROP TABLE a")
    assert admin.get(TABLES, headers={"If-None-Match": tag}).status_code == 200


def test_an_insert_sent_twice_with_a_key_is_one_row(notes):
    body, key = {"query": "INSERT INTO notes (body) VALUES ('x')"}, {"Idempotency-Key": "i1"}
    answers = [notes.post(QUERY, json=body, headers=key) for _ in range(3)]
    assert {one.status_code for one in answers} == {200}
    assert run(notes, "SELECT count(*) FROM notes").json()["rows"] == [[1]]


def test_many_writers_and_readers_at_once(notes):
    def work(number: int) -> int:
        if number % 4:
            return run(notes, "SELECT count(*), max(n) FROM notes").status_code
        return run(notes, "INSERT INTO notes (body, n) VALUES ('x', $1)", [number]).status_code

    with ThreadPoolExecutor(16) as pool:
        assert set(pool.map(work, range(120))) == {200}
    assert run(notes, "SELECT count(*) FROM notes").json()["rows"] == [[30]]


def test_memories_and_tables_of_a_workspace_live_together(server, notes):
    notes.post("/workspaces/default/memories", json={"text": "beside the tables"}).raise_for_status()
    run(notes, "INSERT INTO notes (body) VALUES ('beside the memories')")
    hits = notes.post("/workspaces/default/recall", json={"query": "beside"}).json()["hits"]
    assert [hit["memory"]["text"] for hit in hits] == ["beside the tables"]
    files = [path for path in server.settings.data.rglob("*.db") if path.parent != server.settings.data]
    assert len(files) == 1
