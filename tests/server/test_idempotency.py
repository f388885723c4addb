"""Writes with an Idempotency-Key whose answers are lost: sent again, they are done once and answered as if nothing had
happened. On SQLite and PostgreSQL; the database, the network and the server go away at every moment there is."""

from __future__ import annotations

import random
import signal
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

import httpx
import psycopg
import pytest
from crowds import together
from postgres_proxy import PLACES, PostgresProxy
from running_server import Running, eventually
from server_process import ALONE, Process, free_port

from rmem import receipts
from rmem.errors import StoreUnreachableError
from rmem.server.control import ANSWERS
from rmem.server.idempotency import Answers
from rmem.server.settings import ServerSettings
from rmem.stores.sql.postgres_link import PostgresLink as MemoryLink
from rmem.tables.engines import postgres_link as tables_link

W = "/workspaces/default"
QUERY = f"{W}/tables/query"


@pytest.fixture(params=["sqlite", "postgres"])
def server(request, server_with):
    """In one process, where its stores can be disturbed."""
    if request.param == "sqlite":
        return server_with(workers=0)
    return server_with(workers=0, store=request.getfixturevalue("postgres_url"))


@pytest.fixture
def admin(server):
    return server.client(server.first_token)


def keyed(client: httpx.Client, method: str, path: str, key: str, body: Any) -> httpx.Response:
    return client.request(method, path, json=body, headers={"Idempotency-Key": key})


# What is asked for, and what there is of it afterwards


def memories(client: httpx.Client) -> list[str]:
    return sorted(one["text"] for one in client.get(f"{W}/memories", params={"limit": 1000}).json()["memories"])


def rows(client: httpx.Client) -> list[Any]:
    return sorted(client.post(QUERY, json={"query": "SELECT x FROM t"}).json()["rows"])


def tables(client: httpx.Client) -> list[str]:
    return [one["table_name"] for one in client.get(f"{W}/tables").json()["tables"]]


def facts(client: httpx.Client) -> list[tuple[str, str]]:
    return [(one["subject"], one["object"]) for one in client.get(f"{W}/graph/facts").json()["facts"]]


def changes(client: httpx.Client) -> int:
    return [one["action"] for one in client.get(f"{W}/audit").json()["entries"]].count("change")


WRITES: dict[str, tuple[str, str, Any, Callable[[httpx.Client], Any], Any]] = {
    "one memory": ("POST", f"{W}/memories", {"text": "new"}, memories, ["known", "new"]),
    "memories": ("POST", f"{W}/memories", [{"text": "a"}, {"text": "b"}], memories, ["a", "b", "known"]),
    "a change": ("PATCH", f"{W}/memories/m", {"importance": 0.9}, changes, 1),
    "a pin": ("POST", f"{W}/memories/m/pin", None, memories, ["known"]),
    "forgetting one": ("DELETE", f"{W}/memories/m", None, memories, []),
    "forgetting some": ("POST", f"{W}/forget", {"where": {"agent": "default"}}, memories, []),
    "a state": (
        "POST", f"{W}/agents/bee/states", {"state_data": {"x": 1}, "step_number": 3},
        lambda client: client.get(f"{W}/agents").json()["agents"], {"bee": 1, "default": 1},
    ),
    "several states": (
        "POST", f"{W}/agents/bee/several",
        {"memory_type": "state", "items": [{"x": 1}, {"x": 2}], "first_step": 3},
        lambda client: client.get(f"{W}/agents").json()["agents"], {"bee": 2, "default": 1},
    ),
    "an agent's priority": (
        "PATCH", f"{W}/agents/default/memories/m", {"importance": 0.25},
        lambda client: client.get(f"{W}/memories/m").json()["metadata"]["importance_score"], 0.25,
    ),
    "forgetting an agent's": ("DELETE", f"{W}/agents/default/memories/m", None, memories, []),
    "a fact": (
        "POST", f"{W}/graph/facts", {"subject": "staging", "relation": "runs on", "object": "port 5433"}, facts,
        [("etl", "redis"), ("staging", "port 5433")],
    ),
    "the end of a fact": ("POST", f"{W}/graph/facts/m%230/end", {}, facts, []),
    "an alias": (
        "POST", f"{W}/graph/aliases", {"name": "etl", "other": "loader"}, memories,
        ["etl is another name of loader.", "known"],
    ),
    "a declaration": (
        "POST", f"{W}/graph/relations", {"relation": "uses", "single": True}, memories,
        ["known", "“uses” has one value at a time."],
    ),
    "taking a fact back": ("DELETE", f"{W}/graph/facts/m%230", None, facts, []),
    "a row": ("POST", QUERY, {"query": "INSERT INTO t (x) VALUES (2) RETURNING x, now()"}, rows, [[1], [2]]),
    "a change of rows": ("POST", QUERY, {"query": "UPDATE t SET x = x + 1"}, rows, [[2]]),
    "a table": (
        "POST", f"{W}/tables", {"table_name": "u", "table_schema": {"id": "BIGSERIAL PRIMARY KEY"}}, tables, ["t", "u"],
    ),
    "a table by SQL": ("POST", QUERY, {"query": "CREATE TABLE u (x INT)"}, tables, ["t", "u"]),
    "a table with rows": ("POST", QUERY, {"query": "CREATE TABLE u AS SELECT x FROM t"}, tables, ["t", "u"]),
    "dropping a table": ("DELETE", f"{W}/tables/t", None, tables, []),
    "ingesting": ("POST", f"{W}/tables/t/ingest", {"columns": {"x": [5, 6]}}, rows, [[1], [5], [6]]),
    "ingesting into a new table": (
        "POST", f"{W}/tables/u/ingest", {"columns": {"y": ["a"]}, "index": ["y"]},
        lambda client: client.post(QUERY, json={"query": "SELECT count(*) FROM u"}).json()["rows"], [[1]],
    ),
    "a workspace": (
        "POST", "/workspaces", {"name": "lab"},
        lambda client: [one["name"] for one in client.get("/workspaces").json()["workspaces"]], ["default", "lab"],
    ),
    "a token": (
        "POST", "/tokens", {"member": "admin", "label": "new"},
        lambda client: [one["label"] for one in client.get("/tokens").json()["tokens"]].count("new"), 1,
    ),
    "a member removed": (
        "DELETE", "/members/ann", None,
        lambda client: [one["member"] for one in client.get("/members").json()["members"]], ["admin"],
    ),
}  # fmt: skip


def prepare(client: httpx.Client) -> None:
    fact = {"subject": "etl", "relation": "uses", "object": "redis"}
    known = {"text": "known", "id": "m", "type": "fact", "metadata": {"fact": fact}}
    client.post(f"{W}/memories", json=known).raise_for_status()
    client.post(QUERY, json={"query": "CREATE TABLE t (x INT)"}).raise_for_status()
    client.post(QUERY, json={"query": "INSERT INTO t VALUES (1)"}).raise_for_status()
    client.post("/members", json={"member": "ann", "role": "READ"}).raise_for_status()


QUICK_ON_POSTGRES = {  # a write of each kind of data; the others go through the same code
    "one memory", "a change", "forgetting some", "several states", "a fact", "a row", "a table", "ingesting",
    "a workspace",
}  # fmt: skip


@pytest.mark.parametrize(
    ("server", "what"),
    [
        *(("sqlite", what) for what in WRITES),
        *(
            pytest.param("postgres", what, marks=() if what in QUICK_ON_POSTGRES else pytest.mark.slow)
            for what in WRITES
        ),
    ],
    indirect=["server"],
)
def test_what_was_done_is_told_again_though_its_answer_was_not_kept(server, admin, monkeypatch, what):
    prepare(admin)
    method, path, body, look, expected = WRITES[what]
    keep = Answers.keep
    lost: list[bytes | None] = []

    def away(self: Answers, claim: Any, status: int, headers: Any, content: bytes | None) -> None:
        lost.append(content)
        raise StoreUnreachableError("the control data cannot be reached")

    monkeypatch.setattr(Answers, "keep", away)
    assert keyed(admin, method, path, "k", body).status_code == 503
    assert look(admin) == expected
    monkeypatch.setattr(Answers, "keep", keep)
    again = keyed(admin, method, path, "k", body)
    assert again.status_code in (200, 201), again.text
    assert again.content == lost[0]
    assert again.headers["idempotent-replayed"] == "true"
    assert look(admin) == expected
    kept = keyed(admin, method, path, "k", body)
    assert (kept.status_code, kept.content) == (again.status_code, again.content)
    assert look(admin) == expected


def test_restoring_is_told_again_too(server, admin, monkeypatch):
    prepare(admin)
    admin.post(f"{W}/maintenance", json={"prune": {"max_count": 0, "min_age_days": 0}}).raise_for_status()
    assert memories(admin) == []
    keep = Answers.keep
    monkeypatch.setattr(Answers, "keep", lambda *_: (_ for _ in ()).throw(StoreUnreachableError("gone")))
    assert keyed(admin, "POST", f"{W}/restore", "k", {"ids": ["m", "no"]}).status_code == 503
    monkeypatch.setattr(Answers, "keep", keep)
    again = keyed(admin, "POST", f"{W}/restore", "k", {"ids": ["m", "no"]})
    assert again.json() == {"restored": ["m"], "missing": ["no"]}


def test_a_change_with_if_match_is_not_refused_the_second_time(server, admin, monkeypatch):
    prepare(admin)
    tag = admin.get(f"{W}/memories/m").headers["etag"]
    headers = {"Idempotency-Key": "k", "If-Match": tag}
    keep = Answers.keep
    monkeypatch.setattr(Answers, "keep", lambda *_: (_ for _ in ()).throw(StoreUnreachableError("gone")))
    assert admin.patch(f"{W}/memories/m", json={"text": "changed"}, headers=headers).status_code == 503
    monkeypatch.setattr(Answers, "keep", keep)
    again = admin.patch(f"{W}/memories/m", json={"text": "changed"}, headers=headers)
    assert (again.status_code, again.json()["text"]) == (200, "changed")
    assert admin.patch(f"{W}/memories/m", json={"text": "x"}, headers={"If-Match": tag}).status_code == 412


def test_a_stream_of_written_rows_is_told_again(server, admin, monkeypatch):
    prepare(admin)
    body = {"query": "INSERT INTO t (x) VALUES (7), (8) RETURNING x, 1.50::numeric AS price"}
    headers = {"Idempotency-Key": "k", "Accept": "application/x-ndjson"}
    keep = Answers.keep
    monkeypatch.setattr(Answers, "keep", lambda *_: (_ for _ in ()).throw(StoreUnreachableError("gone")))
    assert admin.post(QUERY, json=body, headers=headers).status_code == 503
    monkeypatch.setattr(Answers, "keep", keep)
    lines = admin.post(QUERY, json=body, headers=headers).text.splitlines()
    assert lines[1:] == ['[7,"1.50"]', '[8,"1.50"]', '{"row_count":2}']
    assert rows(admin) == [[1], [7], [8]]


def test_a_request_that_was_refused_frees_its_key(server, admin):
    prepare(admin)
    bad = keyed(admin, "POST", QUERY, "k", {"query": "INSERT INTO t VALUES (1 / 0)"})
    assert bad.status_code == 400
    assert keyed(admin, "POST", QUERY, "k", {"query": "INSERT INTO t VALUES (2)"}).status_code == 200
    assert rows(admin) == [[1], [2]]


def test_receipts_are_forgotten_after_a_day(server, admin, monkeypatch):
    def held() -> int:
        with server.service.control.reading() as link:
            found = int(link.exec_driver_sql("SELECT count(*) FROM control_about").scalar() or 0)
        space = server.service.spaces.use(server.service.control.organizations()[0].id, _workspace(server), "default")
        found += space.brain.store.read(lambda link: link.execute("SELECT count(*) FROM notes").fetchone())[0]
        server.service.spaces.leave(space)
        if server.settings.store is not None:
            with psycopg.connect(server.settings.store) as link:
                found += link.execute("SELECT count(*) FROM remanence.table_receipts").fetchone()[0]
        return found

    prepare(admin)
    keyed(admin, "POST", QUERY, "first", {"query": "INSERT INTO t VALUES (2)"}).raise_for_status()
    before = held()
    for number in range(20):
        keyed(admin, "POST", f"{W}/memories", f"m{number}", {"text": "x"}).raise_for_status()
        keyed(admin, "POST", QUERY, f"t{number}", {"query": "INSERT INTO t VALUES (2)"}).raise_for_status()
    keyed(admin, "POST", "/workspaces", "w", {"name": "lab"}).raise_for_status()
    assert held() == before + 81  # a memory, a statement and the entry of each in the audit log have one each
    monkeypatch.setattr(receipts, "KEPT_SECONDS", -10.0)  # as if the day were over
    server.service.answers._cleaned = 0.0
    monkeypatch.setattr("rmem.stores.sql.receipts._CLEAN_EVERY", 1)
    monkeypatch.setattr("rmem.tables.engines.postgres_catalog._CLEANED", 1.0)
    keyed(admin, "POST", f"{W}/memories", "later", {"text": "x"}).raise_for_status()
    keyed(admin, "POST", QUERY, "later-too", {"query": "INSERT INTO t VALUES (2)"}).raise_for_status()
    assert held() <= before + 1


def _workspace(server) -> str:
    control = server.service.control
    return control.workspace(control.organizations()[0].id, "default").id


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_two_servers_that_get_the_same_request_at_once_do_it_once(server_with, tmp_path, request, engine):
    store = request.getfixturevalue("postgres_url") if engine == "postgres" else None
    servers = [server_with(data=tmp_path / "same", store=store) for _ in range(2)]
    token = servers[0].first_token
    prepare(servers[0].client(token))
    start = threading.Barrier(4)

    def send(number: int) -> None:
        client = servers[number % 2].client(token)
        for turn in range(10):
            start.wait(60)
            path, body = (f"{W}/memories", {"text": f"note {turn}"})
            if turn % 2:
                path, body = QUERY, {"query": "INSERT INTO t VALUES ($1)", "params": [turn]}
            answer = keyed(client, "POST", path, f"{path}-{turn}", body)
            while answer.status_code == 409 and "another" not in answer.text:
                answer = keyed(client, "POST", path, f"{path}-{turn}", body)
            assert answer.status_code in (200, 201), answer.text

    together(4, send)
    client = servers[0].client(token)
    assert memories(client) == ["known", *(f"note {turn}" for turn in range(0, 10, 2))]
    assert Counter(x for (x,) in rows(client)) == Counter([1, *range(1, 10, 2)])


# The network between server and database


@pytest.fixture
def impatient(monkeypatch):
    """Stores that give up after half a second."""
    monkeypatch.setattr(MemoryLink, "timeout", lambda self: 0.5)
    monkeypatch.setattr(tables_link, "PATIENCE", 0.5)


@pytest.mark.parametrize("away", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["once", "for a while"])
@pytest.mark.parametrize("place", PLACES)
def test_a_commit_that_is_cut_off_anywhere_happens_once(server_with, postgres_url, impatient, place, away):
    """Each COMMIT of a request in turn: that of the key, that of what it writes, and that of its answer."""
    with PostgresProxy(postgres_url) as proxy:
        server = server_with(store=proxy.url)
        client = server.client(server.first_token)
        prepare(client)
        expected = Counter({"known": 1})
        sent = 0
        for after in range(1, 5):
            for path, body in (
                (f"{W}/memories", {"text": f"note {after}"}),
                (f"{W}/agents/bee/states", {"state_data": {"n": after}, "step_number": after}),
                (QUERY, {"query": f"INSERT INTO t VALUES ({100 + after})"}),
            ):
                proxy.cut(place, after, away=away)
                answer = _until_answered(client, proxy, path, f"{path}-{after}", body)
                assert answer.status_code in (200, 201), answer.text
                proxy.heal()
                sent += 1
            expected[f"note {after}"] += 1
        assert proxy.cuts >= sent * 3 // 4, "a request has at least three commits"
        found = Counter(memories(client))
        assert {text: found[text] for text in expected} == dict(expected)
        assert client.get(f"{W}/agents").json()["agents"]["bee"] == 4
        assert rows(client) == [[1], *([100 + number] for number in range(1, 5))]


def _until_answered(client: httpx.Client, proxy: PostgresProxy, path: str, key: str, body: Any) -> httpx.Response:
    for _ in range(20):
        answer = keyed(client, "POST", path, key, body)
        assert answer.status_code in (200, 201, 409, 503), answer.text
        if answer.status_code < 300:
            return answer
        assert "not known" not in answer.text
        proxy.heal()
        time.sleep(0.05)
    raise AssertionError(answer.text)


# A server that is killed

KILLED = """
import os, signal, sys, threading
from rmem.server.control import ANSWERS
from rmem.server.idempotency import Answers
from rmem.server.settings import ServerSettings
both = threading.Barrier(2, lambda: os.kill(os.getpid(), signal.SIGKILL))
Answers.keep = lambda *_: both.wait(60)
from rmem.cli import main
sys.argv = ["rmem", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize("engine", [pytest.param("sqlite", marks=pytest.mark.slow), "postgres"])
def test_a_server_that_is_killed_before_it_answers_did_its_work_once(tmp_path, request, engine, server_with):
    store = request.getfixturevalue("postgres_url") if engine == "postgres" else None
    options = ["--store", store] if store else []
    wishes = [(f"{W}/memories", {"text": "new"}), (f"{W}/tables/u/ingest", {"columns": {"y": ["a"]}})]
    dying = Process(tmp_path / "data", *options, python=("-c", KILLED)).ready()
    headers = {"Authorization": f"Bearer {dying.first_token()}"}

    def ask(number: int) -> None:
        path, body = wishes[number]
        with httpx.Client(base_url=dying.url, headers=headers, timeout=60) as client, pytest.raises(httpx.HTTPError):
            keyed(client, "POST", path, path, body)

    with httpx.Client(base_url=dying.url, headers=headers, timeout=60) as client:
        prepare(client)
    together(2, ask)
    dying.end(signal.SIGKILL)
    client = server_with(data=tmp_path / "data", store=store).client(**headers)
    for path, body in wishes:
        again = keyed(client, "POST", path, path, body)
        assert again.status_code in (200, 201), again.text
        assert again.headers["idempotent-replayed"] == "true"
    assert memories(client) == ["known", "new"]
    assert client.post(QUERY, json={"query": "SELECT count(*) FROM u"}).json()["rows"] == [[1]]


@pytest.mark.parametrize("engine", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def test_servers_that_are_killed_at_any_moment_do_everything_once(tmp_path, request, engine):
    store = request.getfixturevalue("postgres_url") if engine == "postgres" else None
    options = ["--store", store] if store else []
    port = free_port()
    server = Process(tmp_path / "data", *options, port=port).ready()
    headers = {"Authorization": f"Bearer {server.first_token()}"}
    with httpx.Client(base_url=server.url, headers=headers, timeout=30) as client:
        prepare(client)
    done: list[str] = []
    over = threading.Event()
    problems: list[str] = []

    def write(name: int) -> None:
        turn = 0
        with httpx.Client(base_url=server.url, headers=headers, timeout=30) as client:
            while not over.is_set():
                turn += 1
                text, key = f"note {name}-{turn}", uuid.uuid4().hex
                body = {"query": "INSERT INTO t VALUES ($1)", "params": [1000 * name + turn]}
                path, body = (QUERY, body) if name % 2 else (f"{W}/memories", {"text": text})
                until = time.monotonic() + 180
                while time.monotonic() < until:
                    try:
                        answer = keyed(client, "POST", path, key, body)
                    except httpx.HTTPError:
                        time.sleep(0.1)  # the next server needs the CPU to start
                        continue
                    if answer.status_code < 300:
                        done.append(text)
                        break
                    if answer.status_code != 503 and "still running" not in answer.text:
                        problems.append(answer.text)
                        return
                    time.sleep(0.02)

    writers = [threading.Thread(target=write, args=(name,)) for name in range(1, 7)]
    for one in writers:
        one.start()
    chance = random.Random(engine)

    def kill_in_the_middle() -> None:
        enough = len(done) + 18
        eventually(lambda: problems or len(done) >= enough, 120)
        time.sleep(chance.uniform(0.0, 0.1))
        server.end(signal.SIGKILL)

    kill_in_the_middle()
    server = Process(tmp_path / "data", *options, *ALONE, port=port).ready()
    kill_in_the_middle()
    last = Running(ServerSettings(data=tmp_path / "data", store=store), port=port).start()
    over.set()
    for one in writers:
        one.join()
    assert problems == []
    client = last.client(**headers)
    found = Counter(text for text in memories(client) if text.startswith("note"))
    counted = client.post(QUERY, json={"query": "SELECT x, count(*) FROM t WHERE x > 1 GROUP BY x"}).json()["rows"]
    last.stop()
    found += Counter({f"note {x // 1000}-{x % 1000}": n for x, n in counted})
    assert found == Counter(done)


def test_nothing_of_a_forgotten_person_is_left_in_kept_answers_and_receipts(server, admin):
    told = [{"text": "Zelda has the keys", "actor": "Zelda"}, {"text": "the keys are in the safe"}]
    ids = keyed(admin, "POST", f"{W}/memories", "one", told).json()["ids"]
    assert admin.post(f"{W}/forget", json={"subject": "zelda"}).json()["ids"] == ids[:1]
    again = keyed(admin, "POST", f"{W}/memories", "one", told)
    assert (again.status_code, "was done; its answer is not kept" in again.text) == (409, True)
    assert memories(admin) == ["the keys are in the safe"]
    with server.service.control.reading() as link:
        rows = [str(row) for table in ANSWERS.metadata.sorted_tables for row in link.execute(table.select())]
    files = [path.read_bytes() for path in server.settings.data.rglob("*") if path.is_file()]
    assert [part for part in (*map(str.encode, rows), *files) if b"zelda" in part.lower()] == []
