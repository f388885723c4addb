"""`rmem keys`: a key for a store, what it opens, and another key in its place."""

from __future__ import annotations

import pytest

from rmem.crypto.encryption import MASTER_KEY, MASTER_KEY_FILE, decode_key, new_master_key


@pytest.fixture(autouse=True)
def _no_key_of_the_environment(monkeypatch):
    monkeypatch.delenv(MASTER_KEY, raising=False)
    monkeypatch.delenv(MASTER_KEY_FILE, raising=False)


@pytest.fixture
def key(monkeypatch):
    made = new_master_key()
    monkeypatch.setenv(MASTER_KEY, made)
    return made


def test_new_prints_a_key_and_nothing_else(rmem):
    made = rmem("keys", "new")
    assert made.code == 0
    assert len(made.lines) == 1
    assert decode_key(made.out, "master") != decode_key(rmem("keys", "new", "--json").json["master_key"], "master")


def test_a_store_with_the_key_of_the_environment_encrypts(rmem, key):
    assert rmem("remember", "the safe is behind the painting", "--id", "m").code == 0
    assert rmem("show", "m").code == 0
    assert "painting" in rmem("recall", "where is the safe").out
    assert rmem("stats", "--json").json["encrypted"] == 1
    assert "encrypted  1" in rmem("stats").out
    assert not any(b"painting" in file.read_bytes() for file in rmem.home.iterdir())
    listed = rmem("keys", "list", "--json").json["keys"]
    assert sorted(one["kind"] for one in listed) == ["contents", "tags", "terms", "text"]
    assert all(one["opens"] and one["memories"] == 1 and one["version"] == 1 for one in listed)
    assert key not in rmem("keys", "list").out
    assert rmem("doctor").code == 0


def test_without_the_key_show_fails_clearly_and_recall_finds_the_rest(rmem, key, monkeypatch, tmp_path):
    monkeypatch.delenv(MASTER_KEY)
    rmem("remember", "the safe is grey", "--id", "n")
    monkeypatch.setenv(MASTER_KEY, key)
    rmem("remember", "the safe is behind the painting", "--id", "m")
    monkeypatch.delenv(MASTER_KEY)
    assert rmem("remember", "the safe is green").code == 4
    shown = rmem("show", "m", "--json")
    assert (shown.code, shown.error["type"]) == (4, "KeyMissingError")
    assert "RMEM_MASTER_KEY" in shown.error["message"]
    assert [hit["memory"]["memory_id"] for hit in rmem("recall", "safe", "--json").json["hits"]] == ["n"]
    assert {one["opens"] for one in rmem("keys", "list", "--json").json["keys"]} == {None}
    exported = rmem("export", str(tmp_path / "out.jsonl"))
    assert "1 memories were left out: encrypted" in exported.err
    monkeypatch.setenv(MASTER_KEY, new_master_key())
    assert rmem("show", "m", "--json").error["type"] == "KeyWrongError"
    assert rmem("remember", "anything").code == 4
    assert rmem("doctor").code == 6
    monkeypatch.setenv(MASTER_KEY, "correct horse battery staple")
    refused = rmem("recall", "safe")
    assert refused.code == 2
    assert "rmem keys new" in refused.err
    assert "horse" not in refused.err


def test_rotate_changes_master_and_data_keys(rmem, key, monkeypatch, tmp_path):
    for number in range(5):
        rmem("remember", f"the safe is behind painting {number}", "--id", f"m{number}")
    monkeypatch.setenv("FRESH", fresh := new_master_key())
    done = rmem("keys", "rotate", "--master-env", "FRESH", "--json")
    assert done.json == {"rewrapped": 4}
    assert rmem("show", "m1").code == 4
    monkeypatch.setenv(MASTER_KEY, done_key := new_master_key())
    assert rmem("keys", "rotate", "--data").code == 4, "a key that opens nothing"
    (tmp_path / "new.key").write_text(done_key)
    monkeypatch.setenv(MASTER_KEY, fresh)
    both = rmem("keys", "rotate", "--master-file", str(tmp_path / "new.key"), "--data")
    assert both.code == 0
    assert "4 data keys" in both.out
    assert "Encrypted 5 memories with data keys of version 2" in both.out
    monkeypatch.delenv(MASTER_KEY)
    monkeypatch.setenv(MASTER_KEY_FILE, str(tmp_path / "new.key"))
    assert rmem("show", "m1").code == 0
    assert rmem("keys", "rotate", "--data", "--json").json["version"] == 3
    assert rmem("recall", "painting", "--json").json["hits"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "say what to rotate"),
        (("--master-env", "NO_SUCH_VARIABLE"), "NO_SUCH_VARIABLE is not set"),
        (("--master-env", "A", "--master-file", "b"), "not by both"),
        (("--master-file", "no-such-file"), "no-such-file cannot be read"),
    ],
)
def test_rotate_says_what_it_needs(rmem, key, arguments, told):
    rmem("remember", "the safe is behind the painting")
    answer = rmem("keys", "rotate", *arguments)
    assert answer.code == 2
    assert told in answer.err


def test_help_teaches(rmem):
    for arguments in (("keys",), ("keys", "--help"), ("keys", "new", "--help"), ("keys", "rotate", "--help")):
        answer = rmem(*arguments)
        assert answer.code == 0
        assert "Examples:" in answer.out


def test_what_cannot_be_read_can_be_forgotten_by_its_id(rmem, key, monkeypatch):
    for name in ("lost", "other"):
        rmem("remember", "the safe is behind the painting", "--id", name)
    monkeypatch.delenv(MASTER_KEY)
    asked = rmem.terminal("forget", "lost", typed="y\n")
    assert asked.code == 0
    assert "encrypted" in asked.out
    monkeypatch.setenv(MASTER_KEY, new_master_key())
    assert rmem("forget", "other", "--yes").lines == ["other"]
    assert rmem("stats", "--json").json["memories"] == 0
    assert rmem("forget", "other", "--yes").code == 3
