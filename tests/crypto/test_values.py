"""Values that are encrypted inside a text."""

from __future__ import annotations

import re

import pytest

from rmem.crypto.encryption import new_master_key
from rmem.crypto.values import ValueCipher
from rmem.errors import ConfigError, InputError, KeyWrongError
from rmem.privacy.policy import PrivacyPolicy


def test_a_value_comes_back_and_never_looks_the_same(key):
    cipher = ValueCipher(key)
    written = {cipher.encrypt("anna@example.org") for _ in range(5)}
    assert len(written) == 5
    assert all(re.fullmatch(r"[\w-]+", one) for one in written)
    assert {ValueCipher(lambda: key).decrypt(one) for one in written} == {"anna@example.org"}
    assert cipher.decrypt(cipher.encrypt("")) == ""


def test_another_key_and_other_texts_are_refused(key):
    cipher = ValueCipher(key)
    with pytest.raises(KeyWrongError):
        ValueCipher(new_master_key()).decrypt(cipher.encrypt("anna@example.org"))
    for odd in ("", "abc", "AAAA", cipher.encrypt("x")[:-3]):
        with pytest.raises((KeyWrongError, InputError)):
            cipher.decrypt(odd)
    with pytest.raises(InputError):
        cipher.decrypt("not / base64 !")
    with pytest.raises(ConfigError):
        ValueCipher("a passphrase")


def test_a_privacy_policy_encrypts_with_it(key):
    cipher = ValueCipher(key)
    policy = PrivacyPolicy(actions={"email": "encrypt"}, encrypt=cipher.encrypt)
    kept = policy.clean("write to anna@example.org today")
    assert "anna" not in kept
    token = re.search(r"enc:([\w-]+)", kept)[1]
    assert cipher.decrypt(token) == "anna@example.org"
