"""Who removed what, as an admin reads it over HTTP."""

from __future__ import annotations

import sqlite3

W = "/workspaces/default"


def test_the_log_tells_who_forgot_what(admin, client_for):
    writer = client_for("default", "default", "WRITE")
    ids = admin.post(f"{W}/memories", json=[{"text": "a"}, {"text": "b", "agent": "old"}, {"text": "c"}]).json()["ids"]
    writer.delete(f"{W}/memories/{ids[0]}").raise_for_status()
    admin.post(f"{W}/forget", json={"where": {"agent": "old"}}).raise_for_status()
    entries = admin.get(f"{W}/audit").json()["entries"]
    assert [(one["who"], one["action"], one["memory"], one["detail"].get("reason")) for one in entries] == [
        ("admin", "forget", ids[1], "filter"),
        ("write-of-default", "forget", ids[0], "forget"),
        *[("admin", "remember", key, None) for key in reversed(ids)],
    ]
    about = admin.get(f"{W}/audit", params={"memory": ids[0]}).json()["entries"]
    assert [one["action"] for one in about] == ["forget", "remember"]
    assert admin.get(f"{W}/audit", params={"since": "2100-01-01"}).json()["entries"] == []
    assert admin.get(f"{W}/audit/verify").json() == {"sound": True, "broken": []}


def test_pages_of_the_log(admin):
    ids = admin.post(f"{W}/memories", json=[{"text": str(n)} for n in range(7)]).json()["ids"]
    for key in ids:
        admin.delete(f"{W}/memories/{key}").raise_for_status()
    seen, cursor = [], None
    while True:
        page = admin.get(f"{W}/audit", params={"limit": 3} | ({"cursor": cursor} if cursor else {})).json()
        seen += [one["memory"] for one in page["entries"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == [*ids[::-1], *ids[::-1]]  # that they were forgotten, and that they were remembered


def test_recalling_writes_nothing_to_the_log(admin):
    admin.post(f"{W}/memories", json={"text": "a"}).raise_for_status()
    before = admin.get(f"{W}/audit").json()
    admin.post(f"{W}/recall", json={"query": "a"}).raise_for_status()
    assert admin.get(f"{W}/audit").json() == before


def test_a_changed_entry_shows(server, admin):
    (key,) = admin.post(f"{W}/memories", json={"text": "a"}).json()["ids"]
    admin.delete(f"{W}/memories/{key}").raise_for_status()
    (path,) = server.settings.data.glob("*/*.db")
    with sqlite3.connect(path) as file:
        file.execute("DROP TRIGGER IF EXISTS audit_stays")
        for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            file.execute(f'DROP TRIGGER "{name}"')
        file.execute("UPDATE audit SET who = 'nobody'")
    assert admin.get(f"{W}/audit/verify").json() == {"sound": False, "broken": [1, 2]}


def test_bad_questions_are_refused(admin):
    for params in ({"limit": 0}, {"cursor": "x"}, {"cursor": "WyJ4Il0"}, {"since": "whenever that was"}):
        assert admin.get(f"{W}/audit", params=params).status_code == 400, params


def test_only_an_admin_reads_the_log(client_for):
    for role in ("READ", "WRITE"):
        client = client_for("default", "default", role)
        assert client.get(f"{W}/audit").status_code == client.get(f"{W}/audit/verify").status_code == 403
