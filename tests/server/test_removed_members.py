"""Tokens of members who were removed, and what a token may do now."""

from __future__ import annotations

import pytest

from rmem.server.control_tables import MEMBERS


@pytest.fixture(params=["sqlite", "postgres"])
def server(request, server_with):
    return server_with(store=request.getfixturevalue("postgres_url") if request.param == "postgres" else None)


def made_for(admin, **body) -> dict:
    answer = admin.post("/tokens", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


def listed(admin) -> dict[str, dict]:
    return {one["id"]: one for one in admin.get("/tokens").json()["tokens"]}


def test_the_old_token_of_a_member_who_is_added_again_stays_dead(server, admin):
    admin.post("/members", json={"member": "carol", "role": "WRITE"}).raise_for_status()
    old = made_for(admin, member="carol")
    carol = server.client(old["token"])
    assert carol.get("/workspaces/default").status_code == 200
    admin.delete("/members/carol").raise_for_status()
    assert carol.get("/me").status_code == 401
    admin.post("/members", json={"member": "carol", "role": "WRITE"}).raise_for_status()
    assert carol.get("/me").json() == {"error": "the token was revoked"}
    assert listed(admin)[old["id"]]["state"] == "revoked"
    assert server.client(made_for(admin, member="carol")["token"]).get("/workspaces/default").status_code == 200


def test_a_role_that_is_left_keeps_the_tokens_but_those_of_the_lost_workspace(server, admin):
    for name in ("a", "b"):
        admin.post("/workspaces", json={"name": name}).raise_for_status()
        admin.post(f"/workspaces/{name}/members", json={"member": "bob", "role": "WRITE"}).raise_for_status()
    everywhere, only_a = made_for(admin, member="bob"), made_for(admin, member="bob", workspace="a")
    admin.delete("/workspaces/a/members/bob").raise_for_status()
    bob, narrow = server.client(everywhere["token"]), server.client(only_a["token"])
    assert bob.get("/workspaces/b").status_code == 200
    assert bob.get("/workspaces/a").status_code == 404
    assert narrow.get("/me").status_code == 401
    admin.post("/workspaces/a/members", json={"member": "bob", "role": "WRITE"}).raise_for_status()
    assert narrow.get("/me").status_code == 401
    admin.delete("/workspaces/a").raise_for_status()
    admin.delete("/workspaces/b").raise_for_status()  # and with it the last role
    assert listed(admin)[everywhere["id"]]["state"] == "member removed"
    admin.post("/members", json={"member": "bob", "role": "READ"}).raise_for_status()
    assert bob.get("/me").status_code == 401


def test_the_list_shows_what_a_token_may_do_now(server, admin):
    admin.post("/members", json={"member": "dan", "role": "READ"}).raise_for_status()
    made = made_for(admin, member="dan", role="WRITE")
    assert (made["role"], made["effective_role"], made["state"]) == ("WRITE", "READ", "valid")
    admin.post("/members", json={"member": "dan", "role": "ADMIN"}).raise_for_status()
    assert listed(admin)[made["id"]]["effective_role"] == "WRITE"
    admin.delete("/members/dan").raise_for_status()
    gone = listed(admin)[made["id"]]
    assert (gone["role"], gone["effective_role"], gone["state"]) == ("WRITE", None, "member removed")


def test_tokens_of_members_whom_an_older_version_removed_stay_dead(server, admin):
    admin.post("/members", json={"member": "eve", "role": "READ"}).raise_for_status()
    token = made_for(admin, member="eve")["token"]
    with server.service.control.writing() as link:  # which did not revoke tokens
        link.execute(MEMBERS.delete().where(MEMBERS.c.member == "eve"))
    admin.post("/members", json={"member": "eve", "role": "READ"}).raise_for_status()
    assert server.client(token).get("/me").status_code == 401
