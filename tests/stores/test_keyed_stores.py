"""Stores of values beyond the suite: what they keep about values, files, expiry, vectors, and what they refuse."""

from __future__ import annotations

import math
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pytest

from rmem import Brain, InMemoryStore, RedisStore, SqliteStore, VectorMemoryStore
from rmem.errors import (
    ConfigError,
    InputError,
    PrivacyError,
    StoreClosedError,
    StoreError,
    StoreUnreachableError,
)
from rmem.privacy import PrivacyPolicy


@pytest.fixture(params=["memory", "sqlite", "redis", "vector"])
def store(request, tmp_path):
    if request.param == "memory":
        made = InMemoryStore()
    elif request.param == "sqlite":
        made = SqliteStore(tmp_path / "values.db")
    elif request.param == "redis":
        made = RedisStore(**request.getfixturevalue("redis_server").connection())
    else:
        made = VectorMemoryStore()
    with made:
        yield made


# What all of them do


def test_what_was_said_about_a_value_is_kept_and_replaced_with_it(store):
    store.add("a", "first", meta={"source": "atlas", "pages": [1, 2]})
    store.add("b", "second")
    assert store.meta_of("a") == {"source": "atlas", "pages": [1, 2]}
    assert store.meta_of("b") == {}
    assert store.meta_of("c") is None
    assert store.data == {"a": "first", "b": "second"}
    assert dict(store.meta) == {"a": {"source": "atlas", "pages": [1, 2]}}
    store.add("a", "first again")
    assert store.meta_of("a") == {}


def test_a_replaced_value_keeps_its_place(store):
    store.add_many([("c", "one"), ("a", "two", {"n": 1}), ("b", "three")])
    store.add("c", "four")
    store.add_many({"a": "five", "d": "six"})
    assert list(store) == ["c", "a", "b", "d"]
    assert store.meta_of("a") == {}


@pytest.mark.parametrize("value", ["", " ", "text", 7, 2.5, True, False, [], [1, [2]], {}, {"a": {"b": None}}])
def test_any_json_value_comes_back_as_it_was(store, value):
    store.add("k", value)
    found = store.get("k")
    assert found == value
    assert type(found) is type(value)
    assert "k" in store


def test_what_is_handed_out_is_a_copy(store):
    given = {"list": [1]}
    store.add("k", given, meta={"tags": ["x"]})
    given["list"].append(2)
    store.get("k")["list"].append(3)
    store.meta_of("k")["tags"].append("y")
    assert store.get("k") == {"list": [1]}
    assert store.meta_of("k") == {"tags": ["x"]}


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("", "x"), "key"),
        ((7, "x"), "key"),
        (("k" * 513, "x"), "key"),
        (("k", None), "value"),
        (("k", object()), "value"),
        (("k", math.nan), "value"),
        (("k", "half \ud800"), "value"),
        (("k", "x", "meta"), "meta"),
        (("k", "x", {"a": object()}), "meta"),
    ],
)
def test_what_cannot_be_kept_is_refused_by_name(store, arguments, field):
    with pytest.raises(InputError, match=field):
        store.add(*arguments)
    with pytest.raises(InputError, match=rf"items\[1\].*{field}"):
        store.add_many([("fine", "fine"), arguments])
    assert len(store) == 0


def test_what_is_asked_wrongly_is_refused_by_name(store):
    store.add("k", "x")
    for wrong in (0, -1, "5", True):
        with pytest.raises(InputError, match="top_k"):
            store.search("x", top_k=wrong)
    with pytest.raises(InputError, match="query"):
        store.search(None)
    with pytest.raises(InputError, match="key"):
        store.get(3)
    for wrong in ("text", 5, [("k",)], ["kv"]):
        with pytest.raises(InputError, match="items"):
            store.add_many(wrong)


def test_a_key_that_cannot_be_is_simply_not_there(store):
    for key in ("", "half \ud800", "k" * 5000):
        assert store.get(key) is None
        assert store.meta_of(key) is None
        assert key not in store
        assert store.forget(key) is False
    assert 7 not in store


def test_keys_of_any_kind_stay_apart(store):
    keys = ["a/b", "a:b", "a b", "{a}", "%7B", "Ünï", "order", "counter", "value:x", "'; --"]
    store.add_many([(key, f"value of {key}") for key in keys])
    assert list(store) == keys
    for key in keys:
        assert store.get(key) == f"value of {key}"


def test_an_empty_store_is_still_a_store(store):
    assert bool(store)
    assert store.data == {}
    assert store.search("anything") == []


def test_a_privacy_policy_guards_values_and_meta(tmp_path, redis_server):
    policy = PrivacyPolicy(actions={"email": "mask", "secret": "block"})
    stores = [
        InMemoryStore(privacy=policy),
        VectorMemoryStore(privacy=policy),
        SqliteStore(tmp_path / "values.db", privacy=policy),
        RedisStore(**redis_server.connection(), privacy=policy),
    ]
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    for store in stores:
        with store:
            store.add("a", "write to ann@example.com", meta={"by": "bob@example.com"})
            store.add_many([("b", {"mail": ["eve@example.com", 7]}), ("c", "nothing to hide")])
            assert store.get("a") == "write to [email]"
            assert store.meta_of("a") == {"by": "[email]"}
            assert store.get("b") == {"mail": ["[email]", 7]}
            assert store.get("c") == "nothing to hide"
            with pytest.raises(PrivacyError):
                store.add("d", f"token = {token}")
            with pytest.raises(PrivacyError):
                store.add(token, "a secret for a key")
            assert list(store) == ["a", "b", "c"]
    assert not any(b"@example.com" in file.read_bytes() for file in tmp_path.iterdir())


# The dictionary


def test_the_dictionaries_of_the_guide_are_the_store():
    store = InMemoryStore()
    store.add("a", "The Sky is blue", meta={"importance": 1})
    assert store.data == {"a": "The Sky is blue"}
    assert store.meta["a"] == {"importance": 1}
    assert store.meta["nobody"] == {}
    store.data["b"] = "put there directly"
    assert store.get("b") == "put there directly"
    assert store.search("directly") == [("b", "put there directly", 1.0)]


def test_the_query_as_it_stands_comes_before_its_words():
    store = InMemoryStore()
    store.add_many({"a": "green boats", "b": "the boat is green", "c": "a red Boat is here", "d": "nothing"})
    assert [(key, score == 1.0) for key, _, score in store.search("boat is")] == [
        ("b", True),
        ("c", True),
        ("a", False),
    ]
    assert store.search("which boats are red?")[0][0] == "c"
    assert store.search("oat is g") == [("b", "the boat is green", 1.0)]  # as in the guide: any part of a text


# The file


def test_values_are_there_after_a_restart_and_in_other_processes(tmp_path):
    path = tmp_path / "values.db"
    with SqliteStore(path) as store:
        store.add("capital", "Paris is the capital of France", meta={"source": "atlas"})
        code = (
            "from rmem import SqliteStore\n"
            f"with SqliteStore('sqlite:///{path}') as store:\n"
            "    assert store.get('capital').startswith('Paris')\n"
            "    store.add('river', 'The Seine flows through it')\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True)
        assert store.search("seine")[0][0] == "river"
    with SqliteStore(str(path)) as store:
        assert list(store) == ["capital", "river"]
        assert store.meta_of("capital") == {"source": "atlas"}
    with pytest.raises(StoreClosedError):
        store.get("capital")


def test_a_slash_in_a_namespace_or_a_key_confuses_no_two_values(tmp_path):
    path = tmp_path / "values.db"
    pairs = [("a", "b/c"), ("a/b", "c"), ("a", "/b/c"), ("a/", "b/c"), ("%a", "x"), ("%2Fa", "x")]
    for namespace, key in pairs:
        with SqliteStore(path, namespace=namespace) as store:
            store.add(key, f"{namespace} and {key}")
    for namespace, key in pairs:
        with SqliteStore(path, namespace=namespace) as store:
            assert store.get(key) == f"{namespace} and {key}"
            assert key in list(store)


def test_values_that_an_older_version_kept_under_a_namespace_with_a_slash_are_found(tmp_path):
    path = tmp_path / "values.db"
    with SqliteStore(path, namespace="a/b") as store:
        store.prefix = "a/b/"  # as ids were made then
        store.add("c", "kept long ago")
        store.add("d", {"n": 1}, {"by": "ann"})
    for _ in range(2):
        with SqliteStore(path, namespace="a/b") as store:
            assert store.get("c") == "kept long ago"
            assert store.get("d") == {"n": 1}
            assert list(store) == ["c", "d"]


def test_namespaces_and_other_memories_of_a_file_stay_apart(tmp_path):
    path = tmp_path / "team.db"
    with Brain(path) as brain:
        brain.remember("a memory of the default agent about rivers", agent="default")
    with SqliteStore(path) as one, SqliteStore(path, namespace="two") as two:
        one.add("k", "rivers of one")
        two.add("k", "rivers of two")
        assert (one.get("k"), two.get("k")) == ("rivers of one", "rivers of two")
        assert [value for _, value, _ in one.search("rivers")] == ["rivers of one"]
        assert (len(one), list(two)) == (1, ["k"])
        assert two.forget("k") is True
        assert one.get("k") == "rivers of one"
        assert one.forget("two/k") is False
    with Brain(path) as brain:
        assert len(brain.recall("rivers", k=10)) == 2
        assert brain.get("default/k").text == "rivers of one"


def test_a_value_is_not_found_by_the_date_on_which_it_was_added(tmp_path):
    with SqliteStore(tmp_path / "values.db") as store:
        store.add_many({f"k{number}": f"item {number}" for number in range(30)})
        store.add("spring", time.strftime("planted in %B"))
        assert [key for key, _, _ in store.search(time.strftime("%B"))] == ["spring"]
        assert store.search(time.strftime("%Y")) == []


def test_the_schema_is_migrated_when_a_file_is_opened(tmp_path):
    from rmem.stores import migrations

    with SqliteStore(tmp_path / "new" / "values.db") as store, sqlite3.connect(store.path) as look:
        assert look.execute("SELECT version_num FROM alembic_version").fetchone() == (migrations.HEAD,)


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("postgresql://localhost/db", "PostgreSQL"),
        ("postgresql+psycopg://u:secret@localhost/db", "PostgreSQL"),
        ("mysql://localhost/db", "mysql"),
        ("sqlite://", "file"),
        (":memory:", "InMemoryStore"),
    ],
)
def test_addresses_that_lead_nowhere_are_refused(address, told):
    with pytest.raises(ConfigError, match=told) as refused:
        SqliteStore(address)
    assert "secret" not in str(refused.value)


def test_bad_arguments_of_the_file_are_refused_by_name(tmp_path):
    with pytest.raises(InputError, match="path_or_url"):
        SqliteStore(7)
    with pytest.raises(InputError, match="namespace"):
        SqliteStore(tmp_path / "x.db", namespace="n" * 61)
    with pytest.raises(InputError, match="durability"):
        SqliteStore(tmp_path / "x.db", durability="none")


# Redis


@pytest.fixture
def redis_store(redis_server):
    opened = []

    def make(**options):
        opened.append(RedisStore(**redis_server.connection(**options)))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


def test_values_expire_by_themselves(redis_store, redis_server):
    store = redis_store(default_ttl=30)
    store.add("short", "a short life")
    store.add("long", "a long life", ttl=600)
    store.add("ever", "life without end", ttl=None)
    assert 0 < store.ttl_of("short") <= 30
    assert 500 < store.ttl_of("long") <= 600
    assert store.ttl_of("ever") == math.inf
    assert store.ttl_of("nobody") is None
    assert len(store.search("life")) == 3
    with redis_server.client() as client:  # it is Redis that ends it, whoever looks
        assert client.pttl("values:{default}:value:short") > 0
    store.expire("short", 0.01)
    time.sleep(0.05)
    assert store.get("short") is None
    assert store.meta_of("short") is None
    assert list(store) == ["long", "ever"]
    assert len(store) == 2
    assert {key for key, _, _ in store.search("life")} == {"long", "ever"}
    assert store.forget("short") is False
    store.add("short", "another life")
    assert list(store) == ["long", "ever", "short"]  # a newcomer


def test_adding_again_replaces_the_time_to_live_too(redis_store):
    store = redis_store(default_ttl=60)
    store.add("k", "x", ttl=5)
    store.add("k", "x")
    assert 50 < store.ttl_of("k") <= 60
    assert store.expire("k", None) is True
    assert store.ttl_of("k") == math.inf
    assert store.expire("nobody", 5) is False
    assert store.add_many({"a": "x", "b": "x"}, ttl=7) == 2
    assert 5 < store.ttl_of("b") <= 7


def test_reading_gives_a_value_its_time_again_if_asked_for(redis_store, redis_server):
    kept, plain = redis_store(refresh_on_read=True), redis_store(namespace="plain")
    keys = {"read": "a lantern", "found": "a lamp", "left": "a torch"}
    with redis_server.client() as client:
        for store in (kept, plain):
            store.add_many(keys, ttl=600)
            store.add("ever", "a star", ttl=None)
            for key in keys:  # most of their time has passed
                client.pexpire(f"values:{{{store.namespace}}}:value:{key}", 30_000)
            assert store.get("read") == "a lantern"
            assert store.get("ever") == "a star"
            assert store.search("lamp")[0][0] == "found"
            assert "left" in store
            assert len(store) == 4
            assert store.meta_of("left") == {}  # looking is not reading
    assert {key: kept.ttl_of(key) > 500 for key in keys} == {"read": True, "found": True, "left": False}
    assert {key: plain.ttl_of(key) > 500 for key in keys} == {"read": False, "found": False, "left": False}
    assert kept.ttl_of("ever") == math.inf


def test_namespaces_of_one_redis_stay_apart(redis_store):
    one, two = redis_store(namespace="one"), redis_store(namespace="one:value")
    one.add("k", "in one")
    two.add("k", "in two")
    assert (one.get("k"), two.get("k")) == ("in one", "in two")
    assert one.forget("k")
    assert list(two) == ["k"]


def test_another_process_sees_what_was_added(redis_store):
    redis_store().add("k", "seen by all", meta={"by": 1})
    other = redis_store()
    assert other.search("seen") == [("k", "seen by all", 1.0)]
    assert other.meta_of("k") == {"by": 1}


def test_many_values_are_added_and_read_in_parts(redis_store):
    store = redis_store(default_ttl=60)
    assert store.add_many((f"k{number}", f"number {number}") for number in range(2500)) == 2500
    assert len(store) == 2500
    assert store.search("number 2400", top_k=1)[0][0] == "k2400"


def test_redis_away_closed_or_strange_is_said_so(redis_store, redis_server):
    store = redis_store()
    store.add("k", "x")
    with redis_server.client() as client:
        client.set("values:{default}:value:k", "not ours")
    with pytest.raises(StoreError, match="'k'"):
        store.get("k")
    store.close()
    with pytest.raises(StoreClosedError):
        store.get("k")
    with pytest.raises(StoreUnreachableError):
        RedisStore(port=1, connect_timeout=0.2).add("k", "x")


def test_bad_arguments_of_redis_are_refused_by_name():
    for name, wrong in (("default_ttl", 0), ("default_ttl", "soon"), ("refresh_on_read", 1), ("namespace", "")):
        with pytest.raises(InputError, match=name):
            RedisStore(**{name: wrong})
    with pytest.raises(InputError, match="ttl"):
        RedisStore().add("k", "x", ttl=-1)


# Vectors


def test_meaning_finds_what_words_do_not():
    store = VectorMemoryStore()
    store.add_many({"a": "The automobile would not start", "b": "We had soup for dinner", "c": "Tax forms are due"})
    assert store.search("my car is broken")[0][0] == "a"
    assert store.search("a warm meal in the evening")[0][0] == "b"


def test_scores_are_exact_cosines_in_order():
    store = VectorMemoryStore()
    store.add_many({f"k{number}": f"memory number {number} of {number % 7} wolves" for number in range(300)})
    for number in range(0, 300, 3):
        store.forget(f"k{number}")
    store.add("k1", "a quite different text about harbours")
    matrix, query = np.stack(store.embeds), store.model.embed_query("seven wolves")
    expected = sorted(zip(store.keys, matrix @ query, strict=True), key=lambda pair: -pair[1])[:20]
    found = store.search("seven wolves", top_k=20)
    assert [score for _, _, score in found] == pytest.approx([score for _, score in expected], abs=1e-6)
    assert len(store) == len(store.keys) == len(store.texts) == 200
    assert store.texts[store.keys.index("k1")].startswith("a quite different")


def test_any_function_can_embed():
    def lengths(texts):
        return [[float(len(text)), 1.0] for text in texts]

    store = VectorMemoryStore(embedder=lengths)
    store.add_many({"short": "ab", "long": "abcdefghijklmnop"})
    assert store.search("xyz", top_k=1)[0][0] == "short"


def test_the_model_of_the_guide_is_minilm():
    pytest.importorskip("onnxruntime")
    store = VectorMemoryStore(model_name="all-MiniLM-L6-v2")
    assert store.model is VectorMemoryStore(embedder="minilm").model
    store.add("a", "the cat sat on the mat")
    assert store.search("a feline on a rug")[0][2] > 0.3


def test_models_that_nobody_knows_are_refused():
    with pytest.raises(ConfigError, match="no-such-model"):
        VectorMemoryStore("no-such-model")
    with pytest.raises(ConfigError, match="model_name and embedder"):
        VectorMemoryStore("all-MiniLM-L6-v2", embedder="static")
