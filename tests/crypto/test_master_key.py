"""Master keys: where they come from, which are refused, and that nothing ever shows one."""

from __future__ import annotations

import base64
import logging
import os
import sys
from pathlib import Path

import pytest

from rmem import Brain, Encryption
from rmem.crypto import vault
from rmem.crypto.encryption import decode_key, new_master_key
from rmem.errors import ConfigError, InputError, KeyMissingError, KeyWrongError

RAW = bytes(range(100, 132))


@pytest.mark.parametrize(
    "given",
    [
        RAW,
        RAW.hex(),
        RAW.hex().upper(),
        base64.b64encode(RAW).decode(),
        base64.urlsafe_b64encode(RAW).decode().rstrip("="),
        f"  {RAW.hex()}\n",
        RAW.hex().encode(),
    ],
)
def test_a_key_may_be_bytes_base64_or_hex(given):
    assert decode_key(given, "master") == RAW


@pytest.mark.parametrize(
    "given",
    [
        "correct horse battery staple",
        "hunter2",
        "",
        "a" * 64,
        b"\0" * 32,
        b"exactly thirty-two bytes of text",
        "exactly thirty-two bytes of text",
        RAW[:16].hex(),
        RAW[:31].hex(),
        base64.b64encode(RAW[:24]).decode(),
        base64.b64encode(RAW + RAW[:16]).decode(),
        "é" * 43,
        RAW[:31],
        RAW + b"\x01",
    ],
    ids=range(14),
)
def test_passphrases_and_short_keys_are_refused_without_being_repeated(given):
    with pytest.raises(ConfigError, match="rmem keys new") as caught:
        Encryption(master=given)
    shown = given if isinstance(given, str) else given.hex()
    assert not shown or shown not in str(caught.value)


def test_new_keys_are_good_keys_and_never_the_same():
    assert len({decode_key(new_master_key(), "master") for _ in range(10)}) == 10


@pytest.mark.parametrize("given", [None, 5, True, ["key"]])
def test_a_master_of_another_kind_is_refused(given):
    with pytest.raises(InputError, match="master must be"):
        Encryption(master=given)


@pytest.mark.parametrize("fields", ["text", (), ("words",), 5, ("text", "vectors")])
def test_fields_that_do_not_exist_are_refused(key, fields):
    with pytest.raises(InputError, match="fields"):
        Encryption(master=key, fields=fields)


def test_flags_and_encryption_are_checked(key, path):
    with pytest.raises(InputError, match="vectors must be"):
        Encryption(master=key, vectors="yes")
    for address in (path, ":memory:"):
        with pytest.raises(InputError, match="encryption must be") as caught:
            Brain(address, encryption=key)
        assert key not in str(caught.value)


def test_a_key_is_in_no_repr(key):
    assert key not in repr(Encryption(master=key))
    assert key not in str(Encryption(master=key, vectors=True))


def test_the_environment_gives_a_key_or_the_name_of_a_file(key, path, tmp_path, monkeypatch):
    monkeypatch.setenv("RMEM_MASTER_KEY", key)
    with Brain(path) as brain:
        brain.remember("the lighthouse is dark", id="m")
        assert brain.stats()["encrypted"] == 1
    (tmp_path / "key").write_text(key + "\n")
    monkeypatch.setenv("RMEM_MASTER_KEY_FILE", str(tmp_path / "key"))
    with pytest.raises(ConfigError, match="both set"):
        Brain(path)
    monkeypatch.delenv("RMEM_MASTER_KEY")
    with Brain(path) as brain:
        assert brain.recall("lighthouse")[0].text == "the lighthouse is dark"
    with Brain(path, encryption=False) as brain, pytest.raises(KeyMissingError):
        brain.get("m")
    monkeypatch.setenv("RMEM_MASTER_KEY_FILE", "")
    monkeypatch.setenv("RMEM_MASTER_KEY", "my passphrase")
    with pytest.raises(ConfigError, match=r"RMEM_MASTER_KEY is not a key.*rmem keys new") as caught:
        Brain(path)
    assert "passphrase;" in str(caught.value)
    assert "my passphrase" not in str(caught.value)


def test_a_function_and_a_file_are_asked_when_they_are_needed(key, path, tmp_path):
    asked = []

    def master():
        asked.append(1)
        return key

    with Brain(path, encryption=Encryption(master=master)) as brain:
        assert not asked
        brain.remember("the lighthouse is dark", id="m")
        assert asked
    with Brain(path, encryption=Encryption(master=tmp_path / "missing.key")) as brain:
        for act in (lambda: brain.recall("lighthouse"), lambda: brain.get("m")):
            with pytest.raises(KeyMissingError, match=r"missing\.key cannot be read"):
                act()
        with pytest.raises((ConfigError, KeyMissingError), match=r"missing\.key"):
            brain.remember("not written")

    def broken():
        raise RuntimeError(f"the vault said {key}")

    with Brain(path, encryption=Encryption(master=broken)) as brain:
        with pytest.raises(KeyMissingError, match="raised RuntimeError") as caught:
            brain.get("m")
        assert key not in str(caught.value)


def test_nothing_logs_a_key(key, path, caplog):
    caplog.set_level(logging.DEBUG)
    with Brain(path, encryption=Encryption(master=key)) as brain:
        brain.remember("the lighthouse is dark")
        brain.recall("lighthouse")
    with Brain(path, encryption=Encryption(master=new_master_key())) as brain, pytest.raises(KeyWrongError):
        brain.recall("lighthouse")
    assert key not in caplog.text
    assert decode_key(key, "master").hex() not in caplog.text


def test_without_the_library_there_is_one_clear_error(key, path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with Brain(path, encryption=Encryption(master=key)) as brain:
        with pytest.raises(ConfigError, match=r'pip install "rmem\[privacy\]"'):
            brain.remember("not written")
        assert brain.recall("written") == []


def test_a_wrapped_key_only_opens_as_what_it_is():
    master = os.urandom(32)
    keys = vault.new_keys(master, 1, 0.0)
    assert all(vault.unwrap(master, key) for key in keys)
    assert vault.unwrap(master, keys[0]._replace(kind=keys[1].kind)) is None
    assert vault.unwrap(master, keys[0]._replace(version=2)) is None
    assert vault.unwrap(master, keys[0]._replace(wrapped=keys[0].wrapped[:-1])) is None
    assert vault.unwrap(master, keys[0]._replace(wrapped=b"")) is None
    assert vault.unwrap(os.urandom(32), keys[0]) is None


def test_a_path_is_a_file_and_a_text_is_a_key(tmp_path, key):
    (tmp_path / "k").write_bytes(decode_key(key, "master"))
    assert Encryption(master=Path(tmp_path / "k")).master_key() == decode_key(key, "master")
    with pytest.raises(ConfigError):
        Encryption(master=str(tmp_path / "k"))
