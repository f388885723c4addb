"""What a server does not put up with: too much, too large, malformed; and how it says so."""

from __future__ import annotations

import json
import logging
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from running_server import eventually

from rmem.server.control import Role
from rmem.server.idempotency import Claim, fingerprint
from rmem.server.settings import Limits


def test_too_many_requests_are_told_when_to_come_back_and_others_are_not_held_up(server_with):
    server = server_with(Limits(requests_per_second=0.001, burst=5))
    busy, calm = server.client(server.first_token), server.client_for("acme", None, "ADMIN")
    statuses = [busy.get("/me").status_code for _ in range(8)]
    assert statuses == [200] * 5 + [429] * 3
    refused = busy.get("/me")
    assert refused.json() == {"error": "too many requests; try again later"}
    assert 1 < int(refused.headers["retry-after"]) <= 1000
    assert calm.get("/me").status_code == 200
    assert server.client().get("/health").status_code == 200


def test_too_many_requests_at_once_are_refused(server_with):
    server = server_with(Limits(concurrent=2))
    arrived, go_on = threading.Semaphore(0), threading.Event()

    @server.app.get("/slow")
    def slow() -> dict[str, str]:
        arrived.release()
        go_on.wait(30)
        return {"done": "yes"}

    client = server.client(server.first_token)
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(client.get, "/slow") for _ in range(2)]
        for _ in running:
            assert arrived.acquire(timeout=30)
        assert client.get("/me").status_code == 429
        go_on.set()
        assert [one.result().status_code for one in running] == [200, 200]
    assert client.get("/me").status_code == 200


def test_a_body_that_is_too_long_is_refused_with_and_without_a_length(server_with):
    server = server_with(Limits(body_bytes=1000))
    client = server.client(server.first_token)
    whole = {"name": "x" * 2000}
    for answer in (
        client.post("/workspaces", json=whole),
        client.post(
            "/workspaces",
            content=iter([json.dumps(whole).encode()[:700], json.dumps(whole).encode()[700:]]),
            headers={"Content-Type": "application/json"},
        ),
        client.post("/workspaces", json=whole, headers={"Idempotency-Key": "k"}),
        client.post("/workspaces", content=iter([b"x" * 2000]), headers={"Idempotency-Key": "k"}),
    ):
        assert answer.status_code == 413
        assert answer.json() == {"error": "a body may have at most 1,000 bytes"}
    assert client.post("/workspaces", json={"name": "fine"}).status_code == 201


MALFORMED = {
    "no JSON": b"{",
    "empty": b"",
    "a list": b"[]",
    "a number": b"7",
    "null": b"null",
    "deep": b"[" * 100_000,
    "deep objects": b'{"name":' * 50_000,
    "not UTF-8": b'{"name": "\xff\xfe"}',
    "a huge number": b'{"name": 1' + b"0" * 10_000 + b"}",
    "a lone surrogate": b'{"name": "\\ud800"}',
    "NUL": b'{"name": "a\\u0000b"}',
    "not a number": b'{"name": NaN}',
    "twice": b'{"name": "a"}{"name": "b"}',
    "raw NULs": b"\x00" * 100,
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_bodies_are_400(lasting, name):
    for path in ("/workspaces", "/workspaces/default/memories", "/tokens"):
        answer = lasting.post(path, content=MALFORMED[name], headers={"Content-Type": "application/json"})
        assert answer.status_code == 400, answer.text
        assert set(answer.json()) == {"error"}


def test_a_body_of_another_kind_is_400(lasting):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        answer = lasting.post("/workspaces", content=b'{"name": "x"}', headers={"Content-Type": kind})
        assert answer.status_code == 400


@pytest.mark.parametrize("path", ["/nowhere", "/workspaces/default/nowhere", "/workspaces//tables", "/../etc/passwd"])
def test_unknown_routes_are_404(lasting, path):
    answer = lasting.get(path)
    assert answer.status_code == 404
    assert set(answer.json()) == {"error"}


def test_a_method_that_a_route_does_not_take_is_405(lasting):
    answer = lasting.put("/workspaces", json={})
    assert (answer.status_code, answer.json()) == (405, {"error": "this route does not take that method"})


@pytest.mark.parametrize("name", ["%00", "a%00b", "%ff", "..", "%2e%2e", "a%2fb", "x" * 200, "%F0%9F%98%80", "'--"])
def test_strange_names_of_workspaces_are_not_found(lasting, name):
    for answer in (lasting.get(f"/workspaces/{name}/stats"), lasting.get(f"/workspaces/{name}")):
        assert answer.status_code in (400, 404), (name, answer.status_code)
        assert set(answer.json()) == {"error"}


def test_a_request_id_is_kept_if_it_is_one(lasting):
    assert lasting.get("/me", headers={"X-Request-Id": "abc-1.2_3"}).headers["x-request-id"] == "abc-1.2_3"
    for wrong in ("a b", "x" * 65, "<script>", ""):
        given = lasting.get("/me", headers={"X-Request-Id": wrong}).headers["x-request-id"]
        assert len(given) == 32
        assert given != wrong
    assert lasting.get("/nowhere").headers["x-request-id"]


def test_an_unforeseen_error_is_500_with_the_request_id_and_tells_nothing_else(server, admin, caplog):
    @server.app.get("/broken")
    def broken() -> None:
        raise RuntimeError("the password is swordfish")

    answer = admin.get("/broken")
    assert answer.status_code == 500
    assert answer.json() == {"error": "internal error", "request_id": answer.headers["x-request-id"]}
    assert any("failed" in record.message for record in caplog.records)


def test_each_request_is_one_line_of_the_log_without_bodies_and_tokens(server, caplog):
    caplog.set_level(logging.INFO, "rmem.server")
    client = server.client_for("acme", "lab", "ADMIN")
    client.post("/workspaces/lab/members", json={"member": "swordfish", "role": "READ"}, headers={"X-Request-Id": "r1"})
    requests = lambda: [record.request for record in caplog.records if hasattr(record, "request")]  # noqa: E731
    (line,) = eventually(lambda: [one for one in requests() if one["id"] == "r1"])
    assert line["route"] == "/workspaces/{workspace}/members"
    assert (line["method"], line["status"]) == ("POST", 200)
    assert line["ms"] > 0
    assert line["org"] == server.service.control.organization("acme").id
    assert "swordfish" not in caplog.text
    assert client.headers["authorization"].split()[1] not in caplog.text


def test_broken_connections_and_rubbish_do_not_hurt_the_server(server, admin):
    address = ("127.0.0.1", int(server.url.rsplit(":", 1)[1]))
    for rubbish in (b"\x16\x03\x01\x02\x00\x01\x00", b"GET\r\n\r\n", b"POST /workspaces HTTP/1.1\r\nHost: x\r\n"):
        with socket.create_connection(address) as link:
            link.sendall(rubbish)
    with socket.create_connection(address) as link:
        head = f"POST /workspaces HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.first_token}\r\n"
        link.sendall(head.encode() + b"Content-Type: application/json\r\nContent-Length: 500\r\n\r\n{")
    assert admin.get("/me").status_code == 200


def test_many_requests_at_once_all_get_their_own_answer(server, admin):
    def ask(number: int) -> bool:
        answer = admin.post("/workspaces", json={"name": f"w{number % 20}"}, headers={"X-Request-Id": f"n{number}"})
        return answer.status_code in (201, 409) and answer.headers["x-request-id"] == f"n{number}"

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(ask, range(200)))
    assert len(admin.get("/workspaces").json()["workspaces"]) == 21


# The same request twice


def test_a_write_sent_twice_with_a_key_is_done_once(server, admin):
    body, key = {"member": "admin", "label": "once"}, {"Idempotency-Key": "k1"}
    first = admin.post("/tokens", json=body, headers=key)
    again = admin.post("/tokens", json=body, headers=key)
    assert first.status_code == again.status_code == 201
    assert first.content == again.content
    assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.headers
    assert [one["label"] for one in admin.get("/tokens").json()["tokens"]].count("once") == 1


def test_a_key_used_for_something_else_is_409(server, admin):
    key = {"Idempotency-Key": "k2"}
    assert admin.post("/workspaces", json={"name": "one"}, headers=key).status_code == 201
    for path, body in (
        ("/workspaces", {"name": "two"}),
        ("/tokens", {"name": "one"}),
        ("/workspaces?x=1", {"name": "one"}),
    ):
        answer = admin.post(path, json=body, headers=key)
        assert answer.status_code == 409
        assert answer.json() == {"error": "this Idempotency-Key was used for another request"}


def test_a_key_is_free_again_when_nothing_was_done(server, admin):
    key = {"Idempotency-Key": "k3"}
    assert admin.post("/workspaces", json={"name": "a b"}, headers=key).status_code == 400
    assert admin.post("/workspaces", json={"name": "ab"}, headers=key).status_code == 201


def test_keys_belong_to_who_used_them(server, admin):
    key = {"Idempotency-Key": "same"}
    for org in ("acme", "globex"):
        client = server.client_for(org, None, "ADMIN")
        assert client.post("/workspaces", json={"name": "lab"}, headers=key).status_code == 201
    other = server.client(server.token_for("acme", None, "ADMIN", member="second"))
    assert other.post("/workspaces", json={"name": "lab"}, headers=key).status_code == 409


def test_a_kept_answer_is_not_told_to_somebody_whose_role_was_taken_away(server, admin):
    key, body = {"Idempotency-Key": "k4"}, {"member": "x", "role": "READ"}
    admin.post("/workspaces/default/members", json={"member": "bob", "role": "ADMIN"})
    bob = server.client(admin.post("/tokens", json={"member": "bob"}).json()["token"])
    assert bob.post("/workspaces/default/members", json=body, headers=key).status_code == 200
    admin.post("/workspaces/default/members", json={"member": "bob", "role": "READ"})
    assert bob.post("/workspaces/default/members", json=body, headers=key).status_code == 403
    admin.post("/workspaces", json={"name": "other"})
    admin.post("/workspaces/other/members", json={"member": "bob", "role": "READ"})  # or the token would end, too
    admin.delete("/workspaces/default/members/bob")
    assert bob.post("/workspaces/default/members", json=body, headers=key).status_code == 404


def test_of_many_at_once_with_one_key_one_is_done(server, admin):
    body, key = {"text": "written once"}, {"Idempotency-Key": "k5"}

    def send(_: int) -> int:
        return admin.post("/workspaces/default/memories", json=body, headers=key).status_code

    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(send, range(24)))
    assert set(statuses) <= {201, 409}
    assert 201 in statuses
    assert len(admin.get("/workspaces/default/memories").json()["memories"]) == 1


def test_a_key_whose_request_was_cut_off_is_done_when_it_is_sent_again(server_with, tmp_path):
    first = server_with(data=tmp_path / "same")
    body, key = b'{"name":"maybe"}', {"Idempotency-Key": "k6", "Content-Type": "application/json"}
    org = first.service.control.organization("default").id
    request = fingerprint("POST", "/workspaces", b"", "application/json", body)
    first.service.answers.claim(Claim(f"{org}//admin", "k6", request, Role.ADMIN))  # and then the power went
    running = first.client(first.first_token).post("/workspaces", content=body, headers=key)
    assert (running.status_code, running.headers["retry-after"]) == (409, "1")
    second = server_with(data=tmp_path / "same")
    other = second.client(first.first_token).post("/workspaces", json={"name": "another"}, headers=key)
    assert other.json() == {"error": "this Idempotency-Key was used for another request"}
    answer = second.client(first.first_token).post("/workspaces", content=body, headers=key)
    assert (answer.status_code, answer.json()["name"]) == (201, "maybe")
    assert "idempotent-replayed" not in answer.headers


@pytest.mark.parametrize("key", ["a b", "x" * 256, "ä"])
def test_a_key_that_is_none_is_400(lasting, key):
    answer = lasting.post("/workspaces", json={"name": "x"}, headers=[(b"Idempotency-Key", key.encode())])
    assert answer.status_code == 400
