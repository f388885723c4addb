"""Tables as datasets: who may open one, what the storage gives away, and what becomes of a commit that does not fit."""

from __future__ import annotations

import importlib.util
import time

import httpx
import pytest
from running_server import Running

from rmem.server import datasets
from rmem.server.settings import Limits

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("deeplake") is None, reason="the package deeplake is not installed (Python before 3.13)"
)
CREDS = "/api/org/default/ds/notes/creds"


@pytest.fixture
def opened(server: Running, admin: httpx.Client) -> dict:
    table = {"columns": {"body": ["first", None], "vec": [[0.5, 1], [1, 0.5]], "when": ["x", "y"]}}
    admin.post("/workspaces/default/tables/notes/ingest", json=table).raise_for_status()
    return admin.get(CREDS, params={"no_cache": "True"}).json()


def storage(server: Running, creds: dict) -> httpx.Client:
    headers = {"X-Amz-Security-Token": creds["creds"]["aws_session_token"]}
    return httpx.Client(base_url=server.url + creds["path"].removeprefix("s3:/"), headers=headers, timeout=30)


def keys(server: Running, creds: dict) -> list[str]:
    id = creds["path"].rsplit("/", 1)[1]
    page = storage(server, creds).get(f"{server.url}/dataset-storage", params={"list-type": "2", "prefix": f"{id}/"})
    return [part.partition("</Key>")[0].removeprefix(f"{id}/") for part in page.text.split("<Key>")[1:]]


def test_the_storage_gives_objects_whole_and_in_part(server, opened):
    found = keys(server, opened)
    assert "_deeplake_log/_meta/next_base" in found
    with storage(server, opened) as link:
        whole = link.get("/_deeplake_log/_meta/next_base")
        part = link.get("/_deeplake_log/_meta/next_base", headers={"Range": "bytes=2-4"})
        assert (part.status_code, part.content) == (206, whole.content[2:5])
        assert link.head("/_deeplake_log/_meta/next_base").headers["etag"] == whole.headers["etag"]
        assert link.get("/nothing").status_code == 404
        kept = link.put("/a/b", content=b"1", headers={"If-None-Match": "*"})
        assert kept.status_code == 200
        assert link.put("/a/b", content=b"2", headers={"If-None-Match": "*"}).status_code == 412
        assert link.put("/a/b", content=b"2", headers={"If-Match": '"other"'}).status_code == 412
        assert link.put("/a/b", content=b"2", headers={"If-Match": kept.headers["etag"]}).status_code == 200
        assert link.get("/a/b").content == b"2"
        assert link.delete("/a/b").status_code == 204


@pytest.mark.parametrize(
    "key", ["..%2f..%2f..%2fcontrol.db", "%2e%2e/%2e%2e/control.db", "a/..%2f../secret.key", "a%00b"]
)
def test_the_storage_leaves_its_folder_for_nobody(server, opened, key):
    with storage(server, opened) as link:
        for answer in (link.get(f"/{key}"), link.put(f"/{key}", content=b"x")):
            assert answer.status_code in (400, 404), answer.text
    assert (server.settings.data / "control.db").stat().st_size > 100


def test_a_dataset_is_its_organisations_and_needs_a_token_that_is_valid(server, admin, opened):
    with storage(server, opened) as link:
        path = "/_deeplake_log/_meta/next_base"
        assert link.get(path, headers={"X-Amz-Security-Token": ""}).status_code == 401
        assert link.get(path, headers={"X-Amz-Security-Token": "made up"}).status_code == 401
        other = server.token_for("acme", "default", "ADMIN")
        assert link.get(path, headers={"X-Amz-Security-Token": other}).status_code == 404
        elsewhere = server.token_for("default", "lab", "ADMIN", member="of-lab")
        assert link.get(path, headers={"X-Amz-Security-Token": elsewhere}).status_code == 404
        reader = server.token_for("default", "default", "READ")
        assert link.get(path, headers={"X-Amz-Security-Token": reader}).status_code == 200
        assert link.put("/a", content=b"x", headers={"X-Amz-Security-Token": reader}).status_code == 403
        made = admin.post("/tokens", json={"member": "admin"}).json()
        assert link.get(path, headers={"X-Amz-Security-Token": made["token"]}).status_code == 200
        admin.delete(f"/tokens/{made['id']}")
        assert link.get(path, headers={"X-Amz-Security-Token": made["token"]}).status_code == 401


def test_a_table_opened_for_reading_is_not_written(server, admin, opened):
    creds = admin.get(CREDS, params={"mode": "r"}).json()
    assert creds["mode"] == "r"
    with storage(server, creds) as link:
        assert link.put("/a", content=b"x").status_code == 403
    reader = server.client_for("default", "default", "READ")
    assert reader.get(CREDS).json()["mode"] == "r"
    assert reader.get("/api/org/default/ds/nothing/creds").status_code == 404
    assert server.client_for("acme", None, "ADMIN").get(CREDS).status_code == 404


def test_a_commit_of_rubbish_changes_nothing(server, admin, opened):
    last = max(key for key in keys(server, opened) if "m00000000" in key)
    log, _, name = last.rpartition("/")
    with storage(server, opened) as link:
        answer = link.put(f"/{log}/{int(name[:10]) + 1:010}m00000000.jsonl", content=b"rubbish")
        assert answer.status_code in (200, 400), answer.text
    count = admin.post("/workspaces/default/tables/query", json={"query": "SELECT count(*) FROM notes"})
    assert count.json()["rows"] == [[2]]


def test_copies_are_bounded_and_leave_nothing_behind(server, admin, opened, monkeypatch):
    monkeypatch.setattr(datasets, "_MAX_COPIES", 2)
    for _ in range(3):
        admin.get(CREDS).raise_for_status()
    assert len(list(server.settings.data.glob("*/datasets/*/_deeplake_log"))) == 2
    assert storage(server, opened).get("/_deeplake_log/_meta/next_base").status_code == 404
    server.service.datasets.close()
    assert not list(server.settings.data.glob("*/datasets/*/_deeplake_log"))


def test_copies_count_as_disk(server_with):
    server = server_with(Limits(disk_bytes=3_000_000))
    admin = server.client(server.first_token)
    rows = {"columns": {"body": ["x"]}}
    admin.post("/workspaces/default/tables/notes/ingest", json=rows).raise_for_status()
    creds = admin.get(CREDS).json()
    with storage(server, creds) as link:
        assert link.put("/big", content=bytes(3_000_000)).status_code == 200
        time.sleep(2.1)  # until it is measured again
        refused = link.put("/bigger", content=b"x")
        assert refused.status_code == 507
        assert "disk_bytes" in refused.text


def test_a_table_with_null_among_whole_numbers_says_so(server, admin):
    rows = {"columns": {"n": [1, None]}, "schema": {"n": "BIGINT"}}
    admin.post("/workspaces/default/tables/notes/ingest", json=rows).raise_for_status()
    refused = admin.get(CREDS)
    assert refused.status_code == 400
    assert "'n' holds NULL" in refused.json()["error"]
