"""Tokens, workspaces and members over HTTP."""

from __future__ import annotations

import pytest


def test_tokens_are_listed_without_themselves(server, admin):
    made = admin.post("/tokens", json={"member": "admin", "role": "read", "days": 7, "label": "report"}).json()
    listed = admin.get("/tokens").json()["tokens"]
    assert {one["label"] for one in listed} == {"first start", "report"}
    own = next(one for one in listed if one["id"] == made["id"])
    assert own == {key: value for key, value in made.items() if key != "token"}
    assert (own["role"], own["state"], own["member"]) == ("READ", "valid", "admin")
    assert round((own["expires"] - own["created"]) / 86_400) == 7
    assert made["token"] not in admin.get("/tokens").text
    admin.delete(f"/tokens/{made['id']}")
    states = {one["label"]: one["state"] for one in admin.get("/tokens").json()["tokens"]}
    assert states == {"first start": "valid", "report": "revoked"}


def test_lists_come_in_pages(server, admin):
    for number in range(5):
        admin.post("/workspaces", json={"name": f"team-{number}"})
    seen, cursor = [], None
    while True:
        page = admin.get("/workspaces", params={"limit": 2} | ({"cursor": cursor} if cursor else {})).json()
        assert len(page["workspaces"]) <= 2
        seen += [one["name"] for one in page["workspaces"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == ["default", *(f"team-{number}" for number in range(5))]
    for wrong in ("x", "!", "W10", "ä"):
        answer = admin.get("/workspaces", params={"cursor": wrong})
        assert answer.status_code == 400
        assert "cursor" in answer.json()["error"]


def test_a_token_can_be_narrowed_to_a_role_and_a_workspace(server, admin):
    admin.post("/workspaces", json={"name": "team-a"})
    body = {"member": "admin", "role": "WRITE", "workspace": "team-a"}
    narrow = server.client(admin.post("/tokens", json=body).json()["token"])
    assert [(one["name"], one["role"]) for one in narrow.get("/workspaces").json()["workspaces"]] == [
        ("team-a", "WRITE")
    ]
    assert narrow.get("/workspaces/default").status_code == 404
    assert narrow.get("/workspaces/team-a").json()["role"] == "WRITE"
    assert narrow.delete("/workspaces/team-a").status_code == 403
    assert narrow.get("/tokens").status_code == 403
    assert narrow.get("/me").json()["role"] is None


def test_a_role_taken_away_counts_at_once(server, admin):
    admin.post("/workspaces", json={"name": "team-a"})
    admin.post("/workspaces/team-a/members", json={"member": "bob", "role": "read"})
    bob = server.client(admin.post("/tokens", json={"member": "bob"}).json()["token"])
    assert bob.get("/workspaces/team-a").json()["role"] == "READ"
    assert bob.get("/workspaces/default").status_code == 404
    admin.post("/workspaces/team-a/members", json={"member": "bob", "role": "ADMIN"})
    assert bob.get("/workspaces/team-a/members").json()["members"][0]["member"] == "bob"
    assert admin.delete("/workspaces/team-a/members/bob").json() == {"removed": "bob"}
    assert bob.get("/workspaces/team-a").status_code == 401  # that was the last role, and the end of the token
    assert admin.delete("/workspaces/team-a/members/bob").status_code == 404


def test_a_role_in_the_organisation_counts_in_all_workspaces(server, admin):
    admin.post("/members", json={"member": "carol", "role": "WRITE"})
    carol = server.client(admin.post("/tokens", json={"member": "carol"}).json()["token"])
    assert carol.get("/workspaces/default").json()["role"] == "WRITE"
    admin.post("/workspaces/default/members", json={"member": "carol", "role": "ADMIN"})
    assert carol.get("/workspaces/default").json()["role"] == "ADMIN"
    assert carol.get("/members").status_code == 403
    assert [one["member"] for one in admin.get("/members").json()["members"]] == ["admin", "carol"]
    assert admin.delete("/members/carol").status_code == 200


def test_a_workspace_is_made_once_and_deleted_with_its_file(server, admin):
    assert admin.post("/workspaces", json={"name": "team-a"}).status_code == 201
    again = admin.post("/workspaces", json={"name": "team-a"})
    assert (again.status_code, again.json()) == (409, {"error": "the workspace 'team-a' already exists"})
    assert admin.post("/workspaces/team-a/memories", json={"text": "kept for a while"}).status_code == 201
    (file,) = (path for path in server.settings.data.rglob("*.db") if path.parent != server.settings.data)
    assert admin.delete("/workspaces/team-a").json() == {"deleted": "team-a"}
    assert not file.exists()
    assert admin.get("/workspaces/team-a").status_code == 404
    admin.post("/workspaces", json={"name": "team-a"})
    assert admin.get("/workspaces/team-a/memories").json()["memories"] == []


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/workspaces", {"name": "a/b"}, "name"),
        ("/workspaces", {"name": ""}, "name"),
        ("/workspaces", {"name": "../x"}, "name"),
        ("/workspaces", {"name": 7}, "name"),
        ("/workspaces", {}, "name"),
        ("/workspaces", {"name": "ok", "extra": 1}, "extra"),
        ("/workspaces", {"name": "a\u0000b"}, "name"),
        ("/tokens", {"member": "nobody"}, "member"),
        ("/tokens", {"member": "admin", "role": "KING"}, "role"),
        ("/tokens", {"member": "admin", "days": 0}, "days"),
        ("/tokens", {"member": "admin", "days": 1e9}, "days"),
        ("/members", {"member": "", "role": "READ"}, "member"),
        ("/members", {"member": "x", "role": None}, "role"),
    ],
)
def test_bad_bodies_are_refused_and_the_field_is_named(lasting, path, body, field):
    answer = lasting.post(path, json=body)
    assert answer.status_code == 400
    assert field in answer.json()["error"]
