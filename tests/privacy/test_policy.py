"""PrivacyPolicy itself: what it accepts, what each action leaves, and where its key comes from."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from rmem import errors
from rmem.errors import ConfigError, InputError, PrivacyError, UnknownFieldError
from rmem.models import Embeddings, Memory, Metadata
from rmem.privacy import ACTIONS, KINDS, PrivacyPolicy, policy_of

KEY = "sixteen bytes or more"


def hashing(key: str = KEY, **more: object) -> PrivacyPolicy:
    return PrivacyPolicy(actions=dict.fromkeys(KINDS, "hash"), key=key, **more)


def memory(**fields: object) -> Memory:
    text = fields.pop("text", "nothing to see")
    given = {"memory_id": "", "agent_id": "a", "step_number": 0, "timestamp": 0.0, "contents": {"text": text}}
    return Memory(**{**given, "text": text, "metadata": Metadata(), **fields})


# What it accepts


def test_the_default_masks_every_kind():
    assert dict(PrivacyPolicy.default().actions) == dict.fromkeys(KINDS, "mask")


def test_there_and_back_as_plain_data():
    policy = PrivacyPolicy(actions={"email": "mask", "ip": "drop"}, allow=("10.0.0.1",), regions=("DE",))
    assert PrivacyPolicy.from_dict(json.loads(json.dumps(policy.to_dict()))) == policy


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"actions": {"e-mail": "mask"}}, "did you mean 'email'"),
        ({"actions": {"email": "mask"}, "regoins": ["DE"]}, "did you mean 'regions'"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_known_one(data, told):
    with pytest.raises(UnknownFieldError, match=told):
        PrivacyPolicy.from_dict(data)


@pytest.mark.parametrize(
    "data",
    [
        {}, {"actions": {}}, {"actions": "mask"}, {"actions": {"email": "burn"}}, {"actions": {"email": None}},
        {"actions": {"email": "mask"}, "allow": "x"}, {"actions": {"email": "mask"}, "regions": [5]}, [], None,
    ],
)  # fmt: skip
def test_a_bad_policy_is_refused(data):
    with pytest.raises(InputError):
        PrivacyPolicy.from_dict(data)


def test_a_key_in_plain_data_is_refused_without_showing_it():
    with pytest.raises(InputError, match="key_file") as caught:
        PrivacyPolicy.from_dict({"actions": {"email": "hash"}, "key": KEY})
    assert KEY not in str(caught.value)


def test_encrypting_needs_a_function():
    with pytest.raises(ConfigError, match="encrypt"):
        PrivacyPolicy(actions={"email": "encrypt"})


# The key


def test_hashing_needs_a_key(monkeypatch):
    monkeypatch.delenv("RMEM_PRIVACY_KEY", raising=False)
    with pytest.raises(ConfigError, match="RMEM_PRIVACY_KEY"):
        PrivacyPolicy(actions={"email": "hash"})


@pytest.mark.parametrize("key", ["short", b"", 5])
def test_a_bad_key_is_refused_without_showing_it(key):
    with pytest.raises(ConfigError) as caught:
        PrivacyPolicy(actions={"email": "hash"}, key=key)
    assert "short" not in str(caught.value)


def test_the_key_comes_from_argument_environment_or_file(monkeypatch, tmp_path):
    file = tmp_path / "key"
    file.write_text(KEY + "\n")
    by_argument = hashing().clean("a@example.org")
    by_file = PrivacyPolicy(actions={"email": "hash"}, key_file=file).clean("a@example.org")
    monkeypatch.setenv("RMEM_PRIVACY_KEY", KEY)
    by_environment = PrivacyPolicy(actions={"email": "hash"}).clean("a@example.org")
    assert by_argument == by_file == by_environment
    monkeypatch.delenv("RMEM_PRIVACY_KEY")
    with pytest.raises(ConfigError, match="key_file"):
        PrivacyPolicy(actions={"email": "hash"}, key_file=tmp_path / "missing")


def test_the_key_is_not_shown():
    policy = hashing()
    assert KEY not in repr(policy) + json.dumps(policy.to_dict())


# What each action leaves


def test_equal_values_hash_alike_however_they_are_written():
    clean = hashing().clean
    assert clean("Anna@Example.org") == clean("anna@example.org")
    assert clean("+49 30 901820") == clean("0049 30 901820") == clean("+4930901820")
    assert clean("4111 1111 1111 1111") == clean("4111111111111111")
    assert clean("3C:22:FB:9A:10:EE") == clean("3c-22-fb-9a-10-ee")
    assert clean("DE89 3704 0044 0532 0130 00") == clean("DE89370400440532013000")


def test_other_values_other_kinds_and_other_keys_hash_differently():
    assert hashing().clean("a@example.org") != hashing().clean("b@example.org")
    assert hashing().clean("a@example.org") != hashing("another key of some length").clean("a@example.org")


def test_each_action_leaves_what_it_promises():
    text = "to anna@example.org now"
    left = {
        action: PrivacyPolicy(actions={"email": action}, key=KEY, encrypt=lambda value: value[::-1].encode().hex())
        for action in ACTIONS
    }
    assert left["mask"].clean(text) == "to [email] now"
    assert left["drop"].clean(text) == "to  now"
    assert left["hash"].clean(text).startswith("to [email:")
    token = left["encrypt"].clean(text).removeprefix("to [email:enc:").removesuffix("] now")
    assert bytes.fromhex(token).decode()[::-1] == "anna@example.org"
    with pytest.raises(PrivacyError) as caught:
        left["block"].clean(text, "note")
    assert (caught.value.field, caught.value.kind) == ("note", "email")
    assert "anna" not in str(caught.value)
    assert isinstance(caught.value, errors.InputError)


def test_what_is_allowed_stays_in_every_way_of_writing():
    policy = PrivacyPolicy(actions={"email": "mask", "ip": "mask"}, allow=("support@example.com", "10.0.0.1"))
    assert policy.clean("Support@Example.com at 10.0.0.1, not 10.0.0.2") == "Support@Example.com at 10.0.0.1, not [ip]"


def test_kinds_without_an_action_stay():
    assert PrivacyPolicy(actions={"ip": "mask"}).clean("a@example.org 203.0.112.9") == "a@example.org [ip]"


# A whole memory


def test_a_clean_memory_is_the_same_object():
    one = memory(text="all quiet", tags={"repo": "etl"}, actor="Ada", session="s-1")
    assert PrivacyPolicy.default().apply(one) is one


def test_keys_values_tags_actor_and_place_are_cleaned():
    one = memory(
        text="see below",
        contents={"text": "see below", "a@example.org": [{"deep": ("x", 203)}, {"ip": ["203.0.112.9"]}], "n": 1.5},
        tags={"by": "b@example.org"},
        actor="c@example.org",
        place="203.0.112.77",
    )
    one.contents["a@example.org"][0]["deep"] = ["x", 203]
    kept = PrivacyPolicy.default().apply(one)
    assert kept.contents == {"text": "see below", "[email]": [{"deep": ["x", 203]}, {"ip": ["[ip]"]}], "n": 1.5}
    assert (kept.tags, kept.actor, kept.place) == ({"by": "[email]"}, "[email]", "[ip]")
    assert one.actor == "c@example.org"  # the caller's own is untouched


def test_keys_that_become_the_same_are_told_apart():
    kept = PrivacyPolicy.default().apply(
        memory(contents={"text": "t", "a@example.org": 1, "b@example.org": 2}, text="t")
    )
    assert kept.contents == {"text": "t", "[email]": 1, "[email] 2": 2}


def test_a_key_tells_what_its_value_is_and_then_it_is_one_everywhere():
    one = memory(contents={"password": "sunflowers", "says": "log in with sunflowers"}, text="password sunflowers")
    kept = PrivacyPolicy.default().apply(one)
    assert kept.contents == {"password": "[secret]", "says": "log in with [secret]"}
    assert kept.text == "password [secret]"


def test_a_number_can_be_a_card():
    kept = PrivacyPolicy.default().apply(
        memory(contents={"text": "t", "pan": 4111111111111111, "n": 12345678}, text="t")
    )
    assert kept.contents == {"text": "t", "pan": "[card]", "n": 12345678}


def test_a_text_never_vanishes():
    policy = PrivacyPolicy(actions={"email": "drop"})
    kept = policy.apply(memory(text="anna@example.org", actor="anna@example.org"))
    assert (kept.text, kept.actor) == ("[email]", "[email]")


def test_vectors_of_a_changed_memory_are_dropped_and_others_stay():
    import numpy as np

    vector = np.ones(8, np.float32)
    policy = PrivacyPolicy.default()
    changed = policy.apply(memory(text="a@example.org", embeddings=Embeddings(vector, vector, vector)))
    assert changed.embeddings == Embeddings()
    tagged = policy.apply(memory(tags={"by": "a@example.org"}, embeddings=Embeddings(vector)))
    assert tagged.embeddings == Embeddings(vector)


@pytest.mark.parametrize("field", ["agent_id", "session", "memory_id"])
def test_a_name_that_holds_a_secret_is_refused_and_an_address_is_not(field):
    token = "gh" + "p_" + "a1B2" * 9
    policy = PrivacyPolicy.default()
    with pytest.raises(PrivacyError) as caught:
        policy.apply(memory(**{field: f"bot-{token}"}))
    assert token not in str(caught.value)
    assert getattr(policy.apply(memory(**{field: "anna@example.org"})), field) == "anna@example.org"


def test_a_blocked_value_is_named_by_its_place():
    policy = PrivacyPolicy(actions={"secret": "block", "email": "mask"})
    with pytest.raises(PrivacyError) as caught:
        policy.apply(memory(contents={"text": "t", "a@example.org": [{"token": "gl" + "pat-" + "x1" * 10}]}, text="t"))
    assert caught.value.field == "contents['[email]'][0]['token']"


# Which policy


def test_none_is_what_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.delenv("RMEM_PRIVACY", raising=False)
    assert policy_of(None) is None
    monkeypatch.setenv("RMEM_PRIVACY", "default")
    assert policy_of(None) == PrivacyPolicy.default()
    assert policy_of("off") is None
    file = tmp_path / "policy.json"
    file.write_text('{"actions": {"ip": "drop"}}')
    monkeypatch.setenv("RMEM_PRIVACY", str(file))
    assert policy_of(None) == PrivacyPolicy(actions={"ip": "drop"})
    monkeypatch.setenv("RMEM_PRIVACY", "defualt")
    with pytest.raises(ConfigError, match="RMEM_PRIVACY"):
        policy_of(None)


@pytest.mark.parametrize("given", ["", 5, True, ["default"]])
def test_a_bad_choice_is_refused(given):
    with pytest.raises(InputError, match="privacy"):
        policy_of(given)


@pytest.mark.parametrize(
    ("module", "kind", "library"),
    [("phonenumbers", "phone", "phonenumbers"), ("stdnum", "iban", "python-stdnum")],
)
def test_a_missing_library_is_named_with_the_way_to_install_it(module, kind, library):
    code = f"""
import importlib.util, sys
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == {module!r} else found(name, *rest)
from rmem.privacy import PrivacyPolicy
from rmem.errors import ConfigError
try:
    PrivacyPolicy(actions={{{kind!r}: "mask"}})
except ConfigError as error:
    print(error)
PrivacyPolicy(actions={{"email": "mask"}})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert library in done.stdout
    assert "pip install 'rmem[privacy]'" in done.stdout


def test_without_a_policy_no_detector_is_loaded():
    code = "import rmem, sys; rmem.Brain(':memory:').close(); print('rmem.privacy.scanner' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
