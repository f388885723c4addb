"""Who comes in: tokens that are right, forged, expired, revoked, narrowed, and of another organisation."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path

import jwt
import pytest
from running_server import eventually

from rmem.server.control import Control
from rmem.server.tokens import signing_secret


def test_the_first_start_makes_an_organisation_a_workspace_and_one_admin(server, admin):
    me = admin.get("/me").json()
    assert me["member"] == "admin"
    assert me["role"] == "ADMIN"
    assert me["organization"]["name"] == "default"
    assert me["organizations"] == [me["organization"]["id"]]
    assert admin.get("/organizations").json() == {"organizations": [me["organization"]]}
    assert [one["name"] for one in admin.get("/workspaces").json()["workspaces"]] == ["default"]


def test_what_needs_no_token_needs_none_and_all_else_does(server):
    nobody = server.client()
    assert nobody.get("/health").json() == {"status": "ok"}
    assert nobody.get("/ready").json() == {"status": "ready"}
    assert nobody.get("/openapi.json").json()["info"]["title"] == "Remanence"
    assert "html" in nobody.get("/docs").text
    for path in ("/me", "/workspaces", "/workspaces/default/tables", "/nowhere", "/metrics", "/tokens", "//health"):
        answer = nobody.get(path)
        assert answer.status_code == 401, path
        assert set(answer.json()) == {"error"}
        assert answer.headers["www-authenticate"] == "Bearer"


def test_secrets_lie_in_files_that_only_their_owner_reads_and_tokens_are_kept_as_hashes(server):
    data: Path = server.settings.data
    for name in ("secret.key", "metrics.token", "control.db"):
        assert (data / name).stat().st_mode & 0o777 == 0o600, name
    claims = jwt.decode(server.first_token, options={"verify_signature": False})
    assert sorted(claims) == ["OrgID", "exp", "iat", "jti", "sub"]
    written = b"".join(path.read_bytes() for path in data.glob("control.db*"))
    assert server.first_token.encode() not in written
    assert claims["jti"].encode() not in written
    assert (data / "secret.key").read_bytes() not in written


def test_a_second_start_makes_no_second_admin(server_with, tmp_path):
    first = server_with(data=tmp_path / "same")
    assert first.first_token
    again = server_with(data=tmp_path / "same")
    assert again.first_token == ""
    assert again.client(first.first_token).get("/me").status_code == 200


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@pytest.fixture
def claims(server):
    return jwt.decode(server.first_token, options={"verify_signature": False})


def _forgeries(claims: dict, secret: str, token: str) -> dict[str, str]:
    head, body, signature = token.split(".")
    hmac_of_public = {"alg": "RS256", "typ": "JWT"}
    return {
        "no algorithm": f"{_part({'alg': 'none', 'typ': 'JWT'})}.{body}.",
        "no algorithm, in capitals": f"{_part({'alg': 'NONE'})}.{body}.{signature}",
        "no signature": f"{head}.{body}.",
        "another algorithm": jwt.encode(claims, secret, algorithm="HS512"),
        "a public key's algorithm": f"{_part(hmac_of_public)}.{body}.{signature}",
        "another secret": jwt.encode(claims, "x" * 48, algorithm="HS256"),
        "an empty secret's signature": f"{head}.{body}.{_part('')}",
        "another organisation in the body": f"{head}.{_part({**claims, 'OrgID': 'other'})}.{signature}",
        "another organisation, signed": jwt.encode({**claims, "OrgID": "other"}, secret, algorithm="HS256"),
        "another member, signed": jwt.encode({**claims, "sub": "root"}, secret, algorithm="HS256"),
        "an unknown jti, signed": jwt.encode({**claims, "jti": "0" * 32}, secret, algorithm="HS256"),
        "a jti that is a number": jwt.encode({**claims, "jti": 7}, secret, algorithm="HS256"),
        "no jti": jwt.encode({k: v for k, v in claims.items() if k != "jti"}, secret, algorithm="HS256"),
        "no exp": jwt.encode({k: v for k, v in claims.items() if k != "exp"}, secret, algorithm="HS256"),
        "expired": jwt.encode({**claims, "exp": int(time.time()) - 60}, secret, algorithm="HS256"),
        "from the future": jwt.encode({**claims, "iat": int(time.time()) + 3600}, secret, algorithm="HS256"),
        "a list": f"{head}.{_part([1, 2])}.{signature}",
        "two parts": f"{head}.{body}",
        "no JWT": "dl_abcdefgh",
        "very long": token + "a" * 5000,
        "nested deeply": f"{head}.{base64.urlsafe_b64encode(b'[' * 2000).decode()}.{signature}",
        "not ASCII": "ä.ö.ü",
    }


def test_forged_tokens_open_nothing(server, claims):
    secret = signing_secret(server.settings.data)
    for name, forged in _forgeries(claims, secret, server.first_token).items():
        header = b"Bearer " + forged.encode()
        answer = server.client().get("/me", headers=[(b"authorization", header)])
        assert answer.status_code == 401, name
        assert answer.json()["error"] in ("the token is not valid", "the token has expired"), name
    assert server.client(server.first_token).get("/me").status_code == 200


@pytest.mark.parametrize("value", ["", "Bearer", "Basic abc", "bearer", "Token x", "Bearer a b"])
def test_other_ways_to_send_a_token_open_nothing(lasting, value):
    assert lasting.get("/me", headers={"Authorization": value}).status_code == 401
    token = lasting.headers["Authorization"].split()[1]
    assert lasting.get(f"/me?token={token}", headers={"Authorization": value}).status_code == 401


def test_an_expired_token_is_told_so(server):
    token = server.token_for("default", None, "ADMIN", days=1.5 / 86_400)
    client = server.client(token)
    eventually(lambda: client.get("/me").status_code != 200)
    answer = client.get("/me")
    assert (answer.status_code, answer.json()) == (401, {"error": "the token has expired"})


def test_a_revoked_token_opens_nothing_at_once(server, admin):
    made = admin.post("/tokens", json={"member": "admin", "label": "for a test"}).json()
    holder = server.client(made["token"])
    assert holder.get("/me").json()["token"]["id"] == made["id"]
    assert admin.delete(f"/tokens/{made['id']}").json() == {"revoked": made["id"]}
    assert holder.get("/me").json() == {"error": "the token was revoked"}
    assert holder.get("/me").status_code == 401


def test_what_another_process_revokes_is_noticed(server, admin):
    made = admin.post("/tokens", json={"member": "admin"}).json()
    holder = server.client(made["token"])
    assert holder.get("/me").status_code == 200
    elsewhere = Control(server.settings)
    assert elsewhere.revoke_token(admin.get("/me").json()["organization"]["id"], made["id"])
    elsewhere.close()
    eventually(lambda: holder.get("/me").status_code != 200)
    assert holder.get("/me").status_code == 401


def test_the_organisation_of_the_header_must_be_that_of_the_token(server, admin):
    org = admin.get("/me").json()["organization"]["id"]
    other = server.service.control.create_organization("acme")
    for fine in (org, "default"):
        assert admin.get("/workspaces", headers={"X-Activeloop-Org-Id": fine}).status_code == 200
    for wrong in (other.id, "acme", "nobody", org.upper(), f"{org} "):
        answer = admin.get("/workspaces", headers={"X-Activeloop-Org-Id": wrong.strip() + "x"})
        assert answer.status_code == 403
        assert answer.json() == {"error": "X-Activeloop-Org-Id is not the organisation of the token"}
    answers = [admin.get("/workspaces", headers={"X-Activeloop-Org-Id": name}) for name in (other.id, "nobody")]
    assert answers[0].content == answers[1].content


def test_a_server_without_tokens_answers_to_this_machine_only(server_with):
    server = server_with(auth=False)
    assert server.first_token == ""
    nobody = server.client()
    assert nobody.get("/me").json()["role"] == "ADMIN"
    assert nobody.get("/me", headers={"Host": "evil.example"}).status_code == 403
    assert nobody.get("/me", headers={"Host": "127.0.0.1.evil.example:80"}).status_code == 403
    assert nobody.get("/me", headers={"Host": "localhost:1"}).status_code == 200
    assert nobody.get("/metrics").status_code == 401


def test_a_server_without_tokens_takes_no_requests_of_web_pages(server_with):
    server = server_with(auth=False)
    nobody = server.client()
    for headers, named in (
        ({"Origin": "http://evil.example"}, "Origin"),
        ({"Origin": "null"}, "Origin"),
        ({"Origin": ""}, "Origin"),
        ({"Origin": server.url.replace("127.0.0.1", "localhost")}, "Origin"),
        ({"Sec-Fetch-Site": "cross-site"}, "Sec-Fetch-Site"),
        ({"Sec-Fetch-Site": "same-site"}, "Sec-Fetch-Site"),
    ):
        refused = nobody.get("/me", headers=headers)
        assert refused.status_code == 403, headers
        assert named in refused.json()["error"]
    for kind in ("text/plain", "Text/Plain; x", "application/x-www-form-urlencoded", "multipart/form-data; x"):
        refused = nobody.post("/workspaces", content=b'{"name": "x"}', headers={"Content-Type": kind})
        assert refused.status_code == 403, kind
        assert "application/json" in refused.json()["error"]
    assert nobody.post("/workspaces", content=b'{"name": "x"}').status_code == 403
    assert nobody.post("/workspaces", content=iter([b'{"name": "x"}'])).status_code == 403
    own = {"Origin": server.url, "Sec-Fetch-Site": "same-origin"}
    assert nobody.post("/workspaces", json={"name": "x"}, headers=own).status_code == 201
    assert nobody.delete("/workspaces/x").status_code == 200


def test_metrics_are_the_operators_and_name_no_tenant(server, admin):
    server.client_for("acme", "secret-project", "ADMIN").get("/workspaces/secret-project")
    admin.get("/me", headers={"X-Request-Id": "one"})
    assert admin.get("/metrics").status_code == 401
    operator = server.client((server.settings.data / "metrics.token").read_text())
    counted = 'rmem_requests_total{method="GET",route="/me",status="200"} 1.0'
    eventually(lambda: counted in operator.get("/metrics").text)
    page = operator.get("/metrics").text
    assert 'route="/workspaces/{workspace}"' in page
    assert "rmem_open_workspaces" in page
    assert "acme" not in page
    assert "secret-project" not in page
    assert operator.get("/me").status_code == 401
