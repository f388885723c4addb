"""How large answers, Arrow bodies, kept answers and workspaces may become."""

from __future__ import annotations

import io
import json
import random

import numpy as np
import psycopg
import pyarrow as pa
import pytest
import sqlalchemy as sa

from rmem.server.control import ANSWERS
from rmem.server.disk_use import database_bytes
from rmem.server.settings import Limits

TABLES = "/workspaces/default/tables"
ARROW = {"Content-Type": "application/vnd.apache.arrow.stream"}


def stream_of(*arrays: pa.Array) -> bytes:
    schema = pa.schema([(f"c{number}", array.type) for number, array in enumerate(arrays)])
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch(list(arrays), schema=schema))
    return sink.getvalue()


# Answers


def test_an_answer_of_few_long_rows_is_refused_and_can_be_streamed(server_with):
    server = server_with(Limits(answer_bytes=1_000_000))
    client = server.client(server.first_token)
    rows = {"columns": {"n": list(range(50)), "body": ["x" * 50_000] * 50}}
    client.post(f"{TABLES}/t/ingest", json=rows).raise_for_status()
    refused = client.post(f"{TABLES}/query", json={"query": "SELECT * FROM t"})
    assert refused.status_code == 413
    assert "more than 1,000,000 bytes" in refused.json()["error"]
    assert client.post(f"{TABLES}/query", json={"query": "SELECT * FROM t LIMIT 5"}).status_code == 200
    lines = client.post(
        f"{TABLES}/query", json={"query": "SELECT * FROM t"}, headers={"Accept": "application/x-ndjson"}
    ).text.splitlines()
    assert json.loads(lines[-1]) == {"row_count": 50}


def test_an_answer_of_long_memories_is_refused(server_with):
    server = server_with(Limits(answer_bytes=200_000))
    client = server.client(server.first_token)
    for number in range(3):
        text = {"text": f"{number} " + "word " * 10_000}
        client.post("/workspaces/default/memories", json=text).raise_for_status()
    refused = client.get("/workspaces/default/memories")
    assert refused.status_code == 413
    assert "may have 200,000" in refused.json()["error"]
    assert client.get("/workspaces/default/memories", params={"limit": 1}).status_code == 200


# Bodies


def test_a_body_that_the_server_itself_reads_is_short(server):
    client = server.client(server.first_token)
    long = "x" * 300_000
    for method, path, body in (
        ("POST", "/workspaces", {"name": long}),
        ("POST", "/tokens", {"member": long}),
        ("POST", "/workspaces/default/recall", {"query": long}),
        ("POST", "/workspaces/default/forget", {"subject": long}),
        ("POST", "/workspaces/default/feedback", {"recall_id": long}),
        ("POST", "/workspaces/default/mcp", {"jsonrpc": "2.0", "id": 1, "method": long}),
    ):
        refused = client.request(method, path, json=body)
        assert (refused.status_code, path) == (413, path)
        assert "at most 262,144 bytes on this route" in refused.json()["error"]
    pieces = client.post("/workspaces", content=iter([b'{"name": "', long.encode(), b'"}']))
    assert pieces.status_code == 413


def test_long_bodies_of_other_routes_are_read_by_a_worker(server):
    client = server.client(server.first_token)
    states = [{"note": "word " * 100, "step": number} for number in range(1000)]
    body = {"memory_type": "state", "items": states, "first_step": 0}
    answer = client.post("/workspaces/default/agents/a/several", json=body)
    assert answer.status_code == 201, answer.text
    assert len(server.app.state.workers.pids) == 1
    found = client.post("/workspaces/default/agents/a/retrievals/recent", json={"count": 1}).json()
    assert found["memories"][0]["step_number"] == 999
    lines = client.get("/workspaces/default/export").content
    assert len(lines) > 300_000
    assert client.post("/workspaces/default/import", content=lines).json()["imported"] == 1000


# Arrow bodies


MANY = 10_000_000
BOMBS = {
    "lists of the fixed size 0": lambda: pa.Array.from_buffers(
        pa.list_(pa.int8(), 0), MANY, [None], children=[pa.array([], pa.int8())]
    ),
    "values, this one holds 3,200,000": lambda: pa.array(np.ones(3_200_000, bool)),
    "values, this one holds 3,200,001": lambda: pa.array([np.ones(3_200_000, bool)]),
    "must not be of type null": lambda: pa.nulls(MANY),
}


@pytest.mark.parametrize("told", BOMBS)
def test_an_arrow_body_that_becomes_much_more_than_it_is_is_refused(server_with, told):
    server = server_with(Limits(body_bytes=8_000_000))
    client = server.client(server.first_token)
    body = stream_of(BOMBS[told]())
    refused = client.post(f"{TABLES}/t/ingest", content=body, headers=ARROW)
    assert refused.status_code in (400, 413)
    assert told in refused.json()["error"]
    assert client.get(TABLES).json()["tables"] == []


def test_an_arrow_body_of_ordinary_vectors_is_taken(server_with):
    server = server_with(Limits(body_bytes=8_000_000))
    client = server.client(server.first_token)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([0.5] * 1_000_000, pa.float32()), 1000)
    done = client.post(f"{TABLES}/t/ingest", content=stream_of(vectors), headers=ARROW)
    assert done.json()["row_count"] == 1000


# Kept answers


def kept_bytes(server) -> tuple[int, int]:
    with server.service.control.reading() as link:
        return tuple(link.execute(sa.select(sa.func.count(), sa.func.sum(sa.func.length(ANSWERS.c.body)))).one())


def test_a_reader_fills_no_store_with_kept_answers(server, admin):
    admin.post("/workspaces/default/memories", json={"text": "word " * 10_000}).raise_for_status()
    reader = server.client_for("default", "default", "READ")
    before = kept_bytes(server)
    for number in range(20):
        asked = {"query": "word"}
        answer = reader.post("/workspaces/default/recall", json=asked, headers={"Idempotency-Key": f"k{number}"})
        assert answer.status_code == 200
    assert kept_bytes(server) == before


def test_the_oldest_kept_answers_go_when_an_organisation_has_too_many(server_with):
    server = server_with(Limits(idempotency_bytes=200_000))
    client = server.client(server.first_token)
    client.post("/workspaces/default/memories", json={"text": "word " * 2000}).raise_for_status()
    asked = {"query": "word"}
    for number in range(40):
        client.post("/workspaces/default/recall", json=asked, headers={"Idempotency-Key": f"k{number}"})
    count, length = kept_bytes(server)
    assert 0 < count < 40
    assert length < 200_000
    last = client.post("/workspaces/default/recall", json=asked, headers={"Idempotency-Key": "k39"})
    assert last.headers["idempotent-replayed"] == "true"


# Disk


def test_an_organisation_that_has_used_up_its_disk_can_only_read_and_remove(server_with):
    server = server_with(Limits(disk_bytes=2_000_000), workers=0)  # they measure anew every two seconds
    client = server.client(server.first_token)
    rows = {"columns": {"body": ["x" * 1000] * 3000}}
    client.post(f"{TABLES}/t/ingest", json=rows).raise_for_status()
    client.post("/workspaces/default/memories", json={"text": "fits", "id": "m"})
    server.service.disk._known.clear()
    for path, body in (
        (f"{TABLES}/t/ingest", rows),
        ("/workspaces/default/memories", {"text": "more"}),
        ("/workspaces/default/memories", [{"text": "more"}]),
        (f"{TABLES}/query", {"query": "INSERT INTO t (body) VALUES ('x')"}),
        (f"{TABLES}", {"table_name": "u", "table_schema": {"x": "TEXT"}}),
        ("/workspaces/default/agents/a/states", {"state_data": {"x": 1}, "step_number": 1}),
    ):
        refused = client.post(path, json=body)
        assert refused.status_code == 507, (path, refused.text)
        assert "may use 2,000,000 (disk_bytes)" in refused.json()["error"]
    assert client.post(f"{TABLES}/query", json={"query": "SELECT count(*) FROM t"}).status_code == 200
    assert server.client_for("acme", "lab", "WRITE").post(
        "/workspaces/lab/memories", json={"text": "others are not held up"}
    ).is_success  # fmt: skip
    assert client.delete(f"{TABLES}/t").status_code == 200
    server.service.spaces.close()  # which writes what the write-ahead log holds into the file
    server.service.disk._known.clear()
    assert client.post("/workspaces/default/memories", json={"text": "there is room again"}).status_code == 201


def test_in_a_database_an_organisation_can_use_up_its_space_too(server_with, postgres_url):
    server = server_with(Limits(disk_bytes=2_000_000), store=postgres_url, workers=0)
    client = server.client(server.first_token)
    rows = {"columns": {"body": ["x" * 1000] * 3000}}
    client.post(f"{TABLES}/t/ingest", json=rows).raise_for_status()
    client.post("/workspaces/default/memories", json={"text": "fits", "id": "m"})
    server.service.disk._known.clear()
    for path, body in (
        (f"{TABLES}/t/ingest", rows),
        ("/workspaces/default/memories", {"text": "more"}),
        (f"{TABLES}/query", {"query": "INSERT INTO t (body) VALUES ('x')"}),
    ):
        refused = client.post(path, json=body)
        assert refused.status_code == 507, (path, refused.text)
    others = server.client_for("acme", "lab", "WRITE")
    assert others.post("/workspaces/lab/memories", json={"text": "others are not held up"}).is_success
    assert client.delete(f"{TABLES}/t").status_code == 200
    server.service.disk._known.clear()
    assert client.post("/workspaces/default/memories", json={"text": "there is room again"}).status_code == 201


def test_memories_in_a_database_are_measured_by_a_sample(server_with, postgres_url):
    server = server_with(store=postgres_url)
    client = server.client(server.first_token)
    org = client.get("/me").json()["organization"]["id"]
    before = database_bytes(postgres_url, org)
    words = [" ".join(f"word{random.randrange(9000)}" for _ in range(40)) for _ in range(3000)]
    for first in range(0, len(words), 1000):
        texts = [{"text": text} for text in words[first : first + 1000]]
        client.post("/workspaces/default/memories", json=texts).raise_for_status()
    with psycopg.connect(postgres_url) as link:
        tables = "'memories', 'postings', 'facts', 'words', 'audit'"
        asked = f"SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relname IN ({tables})"
        whole = int(link.execute(asked).fetchone()[0])
    measured = database_bytes(postgres_url, org) - before
    assert 0.6 * whole < measured < 1.4 * whole, (measured, whole)


def test_a_message_does_not_repeat_a_long_value(lasting):
    refused = lasting.post(f"{TABLES}/query", json={"query": "SELECT timezone(repeat('ab,', 5000000), now())"})
    assert (refused.status_code, len(refused.text) < 10_000) == (400, True)
