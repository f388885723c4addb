"""All memories out over HTTP and in again: whole, resumable, and a bad line changes nothing."""

from __future__ import annotations

import json

W = "/workspaces/default"


def fill(client, count: int = 250) -> None:
    items = [
        {"text": f"memory {n} of many", "agent": f"a{n % 3}", "session": f"s{n % 5}", "tags": {"n": n}, "id": f"m{n}"}
        for n in range(count)
    ]
    client.post(f"{W}/memories", json=items).raise_for_status()


def lines(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_what_was_exported_is_imported_elsewhere_as_it_was(server, admin):
    fill(admin)
    sent = admin.get(f"{W}/export")
    assert sent.headers["content-type"] == "application/x-ndjson"
    header, *memories = lines(sent.text)
    assert header == {"remanence": {"format": 1, "embedder": "static:minilm-256"}}
    assert {one["memory_id"] for one in memories} == {f"m{n}" for n in range(250)}
    other = server.client_for("other", "default", "ADMIN")
    told = other.post(f"{W}/import", content=sent.content).json()
    assert (told["imported"], told["replaced"], told["vectors_kept"]) == (250, 0, 250)
    assert lines(other.get(f"{W}/export").text) == [header, *memories]
    assert other.post(f"{W}/import", content=sent.content).json()["replaced"] == 250


def test_an_export_goes_on_where_it_broke_off(admin):
    fill(admin)
    whole = admin.get(f"{W}/export", params={"vectors": False}).text.splitlines(keepends=True)
    have = whole[:120]
    rest = admin.get(f"{W}/export", params={"vectors": False, "after": json.loads(have[-1])["memory_id"]}).text
    assert [json.loads(line) for line in ("".join(have) + rest).splitlines()] == [json.loads(line) for line in whole]
    assert admin.get(f"{W}/export", params={"after": "nobody"}).status_code == 404


def test_an_export_keeps_to_its_filter(admin):
    fill(admin, 30)
    told = lines(admin.get(f"{W}/export", params={"where": '{"agent": "a1"}', "vectors": False}).text)
    assert told[0] == {"remanence": {"format": 1, "embedder": None}}
    assert {one["agent_id"] for one in told[1:]} == {"a1"}
    assert len(told) == 11
    assert told[1]["embeddings"]["full_vector"] is None
    assert admin.get(f"{W}/export", params={"where": "{"}).status_code == 400
    assert admin.get(f"{W}/export", params={"where": '{"agnt": 1}'}).status_code == 400


def test_a_bad_line_changes_nothing(admin):
    good = {"memory_id": "x", "agent_id": "a", "step_number": 1, "timestamp": 1.0, "contents": {"text": "x"}}
    for bad in ('{"memory_id": 1}', "{", '{"remanence": {"format": 99}}', '["x"]', "\udcff"):
        body = f"{json.dumps(good)}\n{bad}\n".encode("utf-8", "surrogateescape")
        answer = admin.post(f"{W}/import", content=body)
        assert answer.status_code == 400, bad
        assert answer.json()["error"].startswith("nothing was imported from what was sent: line 2:"), answer.text
    assert admin.get(f"{W}/stats").json()["memories"] == 0
    assert admin.post(f"{W}/import", content=json.dumps(good)).json()["imported"] == 1


def test_an_import_in_pieces_is_taken_too(admin):
    good = {"agent_id": "a", "step_number": 1, "timestamp": 1.0, "contents": {"text": "x"}}

    def pieces():
        for n in range(20):
            yield json.dumps({"memory_id": f"m{n}", **good}).encode() + b"\n"

    assert admin.post(f"{W}/import", content=pieces()).json()["imported"] == 20


def test_who_may_export_and_import(client_for):
    reader, writer = client_for("default", "default", "READ"), client_for("default", "default", "WRITE")
    assert reader.get(f"{W}/export").status_code == writer.get(f"{W}/export").status_code == 403
    assert reader.post(f"{W}/import", content=b"").status_code == 403
    assert writer.post(f"{W}/import", content=b"").json()["imported"] == 0
