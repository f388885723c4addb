"""Configuring an agent's memory: what is accepted, what is refused and how, and what is never shown."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import sys

import numpy as np
import pytest

from rmem.agents.config import (
    IMConfig,
    LTMConfig,
    MemoryConfig,
    RedisConfig,
    RedisIMConfig,
    RedisSTMConfig,
    STMConfig,
)
from rmem.errors import ConfigError, InputError, MemoryAPIException, MemoryConfigException

NAN, INF = float("nan"), float("inf")
NOT_WHOLE = [True, np.True_, 1.0, "1", NAN, None, [1], -1]
NOT_NUMBERS = [True, np.True_, "1", NAN, INF, -INF, [1.0], -1, 10**400]

BAD_VALUES = [
    (MemoryConfig, "cleanup_interval", [*NOT_WHOLE, 0]),
    (MemoryConfig, "memory_priority_decay", [*NOT_NUMBERS, None, 0, 1.1]),
    (MemoryConfig, "cache_ttl", [*NOT_NUMBERS, None]),
    (MemoryConfig, "cache_size", [*NOT_WHOLE, 0]),
    (MemoryConfig, "promotion_threshold", [*NOT_WHOLE, 0]),
    (MemoryConfig, "enable_memory_hooks", [0, 1, "yes", None]),
    (MemoryConfig, "embedder", [5, "", ["static"]]),
    (MemoryConfig, "stm_config", [5, "redis", [], IMConfig(), RedisIMConfig(), LTMConfig()]),
    (MemoryConfig, "im_config", [5, STMConfig(), RedisSTMConfig()]),
    (MemoryConfig, "ltm_config", [5, "file.db", STMConfig()]),
    *(
        (kind, name, bad)
        for kind in (STMConfig, IMConfig, RedisSTMConfig, RedisIMConfig)
        for name, bad in (
            ("memory_limit", [*NOT_WHOLE, 0]),
            ("ttl", [*NOT_NUMBERS, 0]),
            ("max_steps", [value for value in (*NOT_WHOLE, 0) if value is not None]),
        )
    ),
    (LTMConfig, "path", [5, "", "nul\x00"]),
    (LTMConfig, "durability", ["none", None, 1]),
    (RedisSTMConfig, "host", ["", None, 5, "a\nb"]),
    (RedisSTMConfig, "port", [*NOT_WHOLE, 0, 65_536]),
    (RedisSTMConfig, "db", NOT_WHOLE),
    (RedisSTMConfig, "username", ["", 5]),
    (RedisSTMConfig, "tls", ["yes", 1, None]),
    (RedisSTMConfig, "tls_ca_file", [5, ""]),
    (RedisSTMConfig, "namespace", ["", None, "a:b", "{a}", "a b", "x" * 65]),
    (RedisSTMConfig, "connect_timeout", [*NOT_NUMBERS, None, 0]),
    (RedisSTMConfig, "socket_timeout", [*NOT_NUMBERS, None, 0]),
    (RedisSTMConfig, "cluster", ["yes", 1, None]),
]


@pytest.mark.parametrize(
    ("kind", "name", "value"), [(kind, name, value) for kind, name, values in BAD_VALUES for value in values]
)
def test_a_bad_value_is_refused_by_name(kind, name, value):
    with pytest.raises(MemoryConfigException, match=f"^{name} must ") as caught:
        kind(**{name: value})
    assert caught.value.field == name
    assert caught.value.recoverable
    assert isinstance(caught.value, InputError)
    assert isinstance(caught.value, ConfigError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        (STMConfig, "ttl", "a number of seconds > 0"),
        (RedisSTMConfig, "socket_timeout", "a number of seconds > 0"),
        (RedisSTMConfig, "port", "a whole number from 1 to 65535"),
        (MemoryConfig, "memory_priority_decay", "a number above 0, at most 1"),
    ],
)
def test_what_is_expected_does_not_depend_on_what_was_given(kind, name, expected):
    for value in ("x", -1, 0, True):
        with pytest.raises(MemoryConfigException, match=f"^{name} must be {expected}, got"):
            kind(**{name: value})


def test_a_policy_that_cannot_be_read_names_the_field():
    with pytest.raises(MemoryConfigException, match="privacy") as caught:
        MemoryConfig(privacy="nowhere.json")
    assert caught.value.field == "privacy"


def test_every_field_is_checked():
    for kind in (MemoryConfig, STMConfig, IMConfig, LTMConfig, RedisSTMConfig, RedisIMConfig):
        names = {f.name for f in dataclasses.fields(kind)}
        assert names == set(kind._checks), kind


@pytest.mark.parametrize(
    ("make", "suggestion"),
    [
        (lambda: MemoryConfig(cleanup_intervall=5), "cleanup_interval"),
        (lambda: MemoryConfig.from_dict({"cache_tll": 5}), "cache_ttl"),
        (lambda: MemoryConfig.of({"stm_confg": {}}), "stm_config"),
        (lambda: MemoryConfig(stm_config={"memory_limti": 5}), "memory_limit"),
        (lambda: MemoryConfig(stm_config={"hosst": "here"}), "host"),
        (lambda: MemoryConfig(ltm_config={"pth": "file.db"}), "path"),
        (lambda: STMConfig(tll=5), "ttl"),
        (lambda: RedisSTMConfig(prot=6380), "port"),
        (lambda: RedisIMConfig.from_dict({"paswort": "x"}), "password"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_known_one(make, suggestion):
    with pytest.raises(MemoryConfigException, match=f"did you mean '{suggestion}'"):
        make()


def test_a_key_like_no_other_is_answered_with_all_known_ones():
    with pytest.raises(MemoryConfigException, match="known: memory_limit, ttl, max_steps"):
        STMConfig(zzz=1)


def test_defaults_are_the_documented_ones():
    config = MemoryConfig()
    assert (config.cleanup_interval, config.memory_priority_decay) == (100, 0.95)
    assert (config.stm_config.memory_limit, config.stm_config.max_steps) == (1000, None)
    assert (config.im_config.memory_limit, config.im_config.max_steps) == (10_000, None)
    assert config.im_config.ttl == 7 * 24 * 3600
    assert config.ltm_config == LTMConfig(path=None, durability="full")
    redis = RedisSTMConfig()
    assert (redis.host, redis.port, redis.db, redis.memory_limit) == ("localhost", 6379, 0, 1000)


def test_a_mapping_makes_an_embedded_tier_and_one_with_an_address_a_redis_tier():
    assert MemoryConfig(stm_config={"memory_limit": 10_000}).stm_config == STMConfig(memory_limit=10_000)
    made = MemoryConfig(stm_config={"memory_limit": 5, "host": "cache"}, im_config={"port": 6380})
    assert made.stm_config == RedisSTMConfig(memory_limit=5, host="cache")
    assert made.im_config == RedisIMConfig(port=6380)
    assert isinstance(made.stm_config, RedisConfig)
    assert not isinstance(STMConfig(), RedisConfig)


def test_none_and_an_empty_mapping_stand_for_the_default_tier():
    assert MemoryConfig(stm_config=None, im_config={}, ltm_config=None) == MemoryConfig()


def test_a_bad_value_inside_a_tier_is_named_with_its_tier():
    with pytest.raises(MemoryConfigException, match=r"^im_config\.memory_limit must be a whole number") as caught:
        MemoryConfig(im_config={"memory_limit": True})
    assert caught.value.field == "im_config.memory_limit"


def test_a_tier_can_be_without_bounds_of_age():
    assert STMConfig(ttl=None, max_steps=None).ttl is None


def test_a_cluster_has_one_database_and_a_ca_file_needs_tls():
    with pytest.raises(MemoryConfigException, match="db must be 0"):
        RedisSTMConfig(cluster=True, db=1)
    with pytest.raises(MemoryConfigException, match="tls_ca_file needs tls"):
        RedisSTMConfig(tls_ca_file="ca.pem")
    assert RedisSTMConfig(tls=True, tls_ca_file="ca.pem").tls


def test_a_password_is_never_shown():
    config = MemoryConfig(stm_config={"password": "hunter2"}, im_config=RedisIMConfig(password="hunter2"))
    assert config.stm_config.password == "hunter2"
    assert "hunter2" not in f"{config!r} {config.stm_config!r} {config} {config.to_dict()}"
    for bad in (["hunter2"], b"hunter2", {"a": "hunter2"}):
        with pytest.raises(MemoryConfigException, match="password") as caught:
            RedisSTMConfig(password=bad)
        assert "hunter2" not in str(caught.value)


def test_a_configuration_cannot_be_changed_but_can_be_replaced():
    config = MemoryConfig()
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.cleanup_interval = 5
    assert dataclasses.replace(config, cleanup_interval=5).cleanup_interval == 5
    given = {"memory_limit": 5}
    made = MemoryConfig(stm_config=given)
    given["memory_limit"] = 7
    assert made.stm_config.memory_limit == 5


def test_there_and_back_as_plain_data(tmp_path):
    config = MemoryConfig(
        cleanup_interval=7,
        stm_config=RedisSTMConfig(host="cache", password="hunter2", tls=True, tls_ca_file="ca.pem"),
        im_config={"ttl": None},
        ltm_config={"path": tmp_path / "m.db"},
        embedder="static",
    )
    written = json.loads(json.dumps(config.to_dict(secrets=True)))
    again = MemoryConfig.from_dict(written)
    assert again.to_dict(secrets=True) == config.to_dict(secrets=True)
    assert isinstance(again.stm_config, RedisSTMConfig)
    assert again.stm_config.password == "hunter2"
    path = tmp_path / "memory.json"
    path.write_text(json.dumps(config.to_dict()), encoding="utf-8")
    assert MemoryConfig.from_file(path).stm_config.password is None
    assert pickle.loads(pickle.dumps(config)) == config == copy.deepcopy(config)


def test_a_configuration_file_that_cannot_be_read_says_so(tmp_path):
    path = tmp_path / "memory.json"
    with pytest.raises(MemoryConfigException, match=r"memory\.json"):
        MemoryConfig.from_file(path)
    path.write_text("{", encoding="utf-8")
    with pytest.raises(MemoryConfigException, match=r"memory\.json"):
        MemoryConfig.from_file(path)
    path.write_text('{"cache_tll": 1}', encoding="utf-8")
    with pytest.raises(MemoryConfigException, match="did you mean 'cache_ttl'"):
        MemoryConfig.from_file(path)
    for bad in (5, [], "world.db"):
        with pytest.raises(MemoryAPIException, match=r"config must be a MemoryConfig or a mapping, such as .*'path'"):
            MemoryConfig.of(bad)


FILES = {
    "memory.json": '{"cleanup_interval": 7, "stm_config": {"memory_limit": 5}, "ltm_config": {"path": "w.db"}}',
    "memory.toml": 'cleanup_interval = 7\n[stm_config]\nmemory_limit = 5\nttl = 60\n[ltm_config]\npath = "w.db"\n',
    "memory.yaml": "cleanup_interval: 7\nstm_config:\n  memory_limit: 5\n  ttl: null\nltm_config: {path: w.db}\n",
    "memory.YML": "cleanup_interval: 7\nstm_config: {memory_limit: 5}\nltm_config: {path: w.db}\n",
}


@pytest.mark.parametrize("name", FILES)
def test_a_configuration_is_read_from_json_toml_and_yaml(tmp_path, name):
    (tmp_path / name).write_text(FILES[name])
    config = MemoryConfig.from_file(tmp_path / name)
    assert (config.cleanup_interval, config.stm_config.memory_limit, config.ltm_config.path) == (7, 5, "w.db")


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.toml", "cleanup_interval = ", "cannot read the configuration .*a.toml"),
        ("a.yaml", "stm_config: [", "cannot read the configuration .*a.yaml"),
        ("a.yaml", "", "MemoryConfig must be a mapping"),
        ("a.yaml", "1: 2", "MemoryConfig has no field"),
        ("a.yaml", "!!python/object/apply:os.getcwd []", "cannot read the configuration .*a.yaml"),
        ("a.toml", "cleanup_intervall = 7", "cleanup_interval"),
        ("a.yaml", "stm_config: {memory_limit: 0}", "stm_config.memory_limit must be"),
    ],
)
def test_a_file_that_is_no_configuration_is_refused(tmp_path, name, text, told):
    (tmp_path / name).write_text(text)
    with pytest.raises(MemoryConfigException, match=told):
        MemoryConfig.from_file(tmp_path / name)


def test_yaml_without_its_library_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    (tmp_path / "a.yaml").write_text("cleanup_interval: 7")
    with pytest.raises(MemoryConfigException, match=r'pip install "rmem\[yaml\]"'):
        MemoryConfig.from_file(tmp_path / "a.yaml")


def test_a_file_that_begins_with_the_mark_of_windows_is_read(tmp_path):
    (tmp_path / "a.toml").write_text("\ufeff[stm_config]\nttl = 60\n", encoding="utf-8")
    assert MemoryConfig.from_file(tmp_path / "a.toml").stm_config.ttl == 60


@pytest.mark.parametrize("name", ["deep.yaml", "deep.json"])
def test_a_file_that_is_nested_too_deeply_is_refused(tmp_path, name):
    (tmp_path / name).write_text("[" * 100_000)
    with pytest.raises(MemoryConfigException, match=f"{name}: it is nested too deeply"):
        MemoryConfig.from_file(tmp_path / name)
