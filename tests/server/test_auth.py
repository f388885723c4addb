"""Who comes in: tokens that are right, forged, expired and revoked."""

from __future__ import annotations


def test_the_first_start_makes_an_organisation_a_workspace_and_one_admin(server, admin):
    me = admin.get("/me").json()
    assert me["member"] == "admin"
    assert me["organization"]["name"] == "default"
    assert [one["name"] for one in admin.get("/workspaces").json()["workspaces"]] == ["default"]
    assert server.client().get("/health").json() == {"status": "ok"}
    assert server.client().get("/ready").json() == {"status": "ready"}
    assert server.client().get("/workspaces").status_code == 401
