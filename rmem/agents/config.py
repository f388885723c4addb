"""The configuration of an agent's memory: one MemoryConfig with one configuration for each tier.

Every field is checked when a configuration is made; an unknown field is refused with the nearest known one. A tier
without a Redis address is stored in the embedded file, with everything else."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from .. import checks
from ..annotations import Durability
from ..errors import ConfigError, InputError, MemoryAPIException, MemoryConfigException, MemoryConfigInputError
from ..extras import require
from ..privacy.choice import PrivacySpec, policy_of
from .checked_dataclass import Check, Checked, optional

if TYPE_CHECKING:
    from ..embed import EmbedderSpec

DAY = 86_400.0
_NAMESPACE = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_SECRETS = ("password",)


def _yaml(text: str) -> Any:
    try:
        require("yaml", "YAML")
    except ConfigError as error:
        raise MemoryConfigException(str(error)) from None
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(error) from error


_READERS: dict[str, Callable[[str], Any]] = {".toml": tomllib.loads, ".yaml": _yaml, ".yml": _yaml}


def _count(name: str, value: object) -> int:
    return checks.whole(name, value, low=1)


def _positive(expected: str, check: Check) -> Check:
    """Make a check for numbers above 0, whose errors name the whole expectation."""

    def checked(name: str, value: object) -> Any:
        try:
            number = check(name, value)
        except InputError:
            number = 0
        if not number:
            raise checks.refuse(name, expected, value)
        return number

    return checked


_seconds = _positive("a number of seconds > 0", lambda name, value: checks.number(name, value, low=0))
_decay = _positive("a number above 0, at most 1", checks.share)
_port = _positive("a whole number from 1 to 65535", lambda name, value: checks.whole(name, value, high=65_535))


def _password(name: str, value: object) -> str:
    if not isinstance(value, str) or not value:  # the value is never shown
        raise InputError(
            f"{name} must be a text that is not empty, got a value of type {type(value).__name__}", field=name
        )
    return value


def _namespace(name: str, value: object) -> str:
    # With a colon or a brace, keys of two namespaces could collide, or break the hash tags of a cluster.
    if not isinstance(value, str) or not _NAMESPACE.fullmatch(value):
        raise checks.refuse(name, "1 to 64 letters, digits, '.', '_' or '-'", value)
    return value


def _path(name: str, value: object) -> str | Path:
    return value if isinstance(value, Path) else checks.text(name, value, maximum=4096)


def _durability(name: str, value: object) -> str:
    return checks.one_of(name, value, ("full", "normal"))


def _embedder(name: str, value: object) -> object:
    if isinstance(value, str):
        return checks.text(name, value)
    if callable(value) or callable(getattr(value, "embed", None)):
        return value
    raise checks.refuse(name, "the name of an embedder, an Embedder, a function or None", value)


def _privacy(name: str, value: object) -> object:
    try:
        return policy_of(value) or "off"  # type: ignore[arg-type]  # it is checked there
    except ConfigError as error:
        refused = MemoryConfigException.caused_by(error)
        refused.field = refused.field or name
        raise refused from error


class _Config(Checked):
    _error: ClassVar[type[MemoryAPIException]] = MemoryConfigException

    def __post_init__(self) -> None:
        for f in fields(self):  # type: ignore[arg-type]
            object.__setattr__(self, f.name, self._checked(f.name, getattr(self, f.name)))

    def to_dict(self, *, secrets: bool = False) -> dict[str, Any]:
        """Return the fields as plain data, for `from_dict`; passwords only with `secrets=True`."""
        result = {}
        for f in fields(self):  # type: ignore[arg-type]
            value = getattr(self, f.name)
            if f.name in _SECRETS and not secrets:
                continue
            if isinstance(value, _Config):
                value = value.to_dict(secrets=secrets)
            elif f.name == "privacy" and value not in (None, "off"):
                value = value.to_dict()
            result[f.name] = str(value) if isinstance(value, Path) else value
        return result

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        if not isinstance(data, Mapping):
            raise MemoryConfigException.caused_by(checks.refuse(cls.__name__, "a mapping", data))
        cls._known(cls.__name__, data)
        return cls(**data)


_TIER: dict[str, Check] = {"memory_limit": _count, "ttl": optional(_seconds), "max_steps": optional(_count)}


@dataclass(frozen=True, kw_only=True)
class STMConfig(_Config):
    """Short-term memory, in the embedded file. What exceeds a limit moves to IM; None means no limit."""

    _checks: ClassVar[Mapping[str, Check]] = _TIER

    memory_limit: int = 1000
    """Most memories per agent. The newest tenth stays; of the others, those of the lowest priority move."""
    ttl: float | None = DAY
    """Age in seconds after which a memory moves."""
    max_steps: int | None = None
    """Steps behind the agent's newest after which a memory moves."""


@dataclass(frozen=True, kw_only=True)
class IMConfig(_Config):
    """Intermediate memory, in the embedded file. What exceeds a limit moves to LTM; None means no limit."""

    _checks: ClassVar[Mapping[str, Check]] = _TIER

    memory_limit: int = 10_000
    """Most memories per agent. The newest tenth stays; of the others, those of the lowest priority move."""
    ttl: float | None = 7 * DAY
    """Age in seconds after which a memory moves."""
    max_steps: int | None = None
    """Steps behind the agent's newest after which a memory moves."""


@dataclass(frozen=True, kw_only=True)
class LTMConfig(_Config):
    """Long-term memory and the archive of everything: the SQLite file."""

    _checks: ClassVar[Mapping[str, Check]] = {"path": optional(_path), "durability": _durability}

    path: str | Path | None = None
    """A path, "sqlite:///…" or ":memory:"; None is the default file, which RMEM_HOME moves."""
    durability: Durability = "full"
    """"full" survives a power cut; "normal" is faster and survives a crash of the process."""


@dataclass(frozen=True, kw_only=True)
class SQLiteLTMConfig(LTMConfig):
    """LTMConfig with `db_path` as another name of its `path`."""

    _checks: ClassVar[Mapping[str, Check]] = {**LTMConfig._checks, "db_path": optional(_path)}

    db_path: str | Path | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _refuse_conflict(self, "path", "db_path")
        object.__setattr__(self, "path", self.db_path or self.path)
        object.__setattr__(self, "db_path", self.path)


def _refuse_conflict(config: _Config, first: str, second: str) -> None:
    """Refuse different values for two names of one setting."""
    value, alias = getattr(config, first), getattr(config, second)
    if value is not None and alias is not None and value != alias:
        raise MemoryConfigInputError(
            f"{first} and {second} are one setting and must not differ, got {value!r} and {alias!r}",
            field=second,
            recoverable=True,
        )


@dataclass(frozen=True, kw_only=True)
class AutoencoderConfig(_Config):
    """The embedder of states and texts; lower tiers keep the same vectors in fewer bits.

    AutoencoderConfig(text_model_name="all-MiniLM-L6-v2")  # the embedder "minilm"
    AutoencoderConfig(model_path="model.onnx")  # the embedder "onnx:model.onnx"
    """

    _checks: ClassVar[Mapping[str, Check]] = {"text_model_name": optional(checks.text), "model_path": optional(_path)}

    text_model_name: str | None = None
    """The name of an embedder, as for `Brain`, or all-MiniLM-L6-v2."""
    model_path: str | Path | None = None
    """A model in the ONNX format."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.text_model_name is not None and self.model_path is not None:
            raise MemoryConfigInputError(
                "text_model_name and model_path cannot both be given: they name two models",
                field="model_path",
                recoverable=True,
            )

    @property
    def embedder(self) -> str | None:
        """Return the name of the embedder, as for `Brain`; None for the store's own."""
        if self.model_path is not None:
            return f"onnx:{self.model_path}"
        return _MODELS.get(self.text_model_name or "", self.text_model_name)


_MODELS = dict.fromkeys(("all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"), "minilm")


@dataclass(frozen=True, kw_only=True)
class RedisConfig(_Config):
    """The connection to Redis; the configurations of Redis tiers inherit these fields."""

    _checks: ClassVar[Mapping[str, Check]] = {
        "host": checks.name,
        "port": _port,
        "db": checks.whole,
        "username": optional(checks.name),
        "password": optional(_password),
        "tls": checks.flag,
        "tls_ca_file": optional(_path),
        "namespace": _namespace,
        "connect_timeout": _seconds,
        "socket_timeout": _seconds,
        "cluster": checks.flag,
    }

    host: str = "localhost"
    port: int = 6379
    db: int = 0
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: bool = False
    tls_ca_file: str | Path | None = None
    """Certificates to trust; None trusts those of the system."""
    namespace: str = "remanence"
    """The beginning of every key; two namespaces never see each other."""
    connect_timeout: float = 1.0
    """Seconds to wait for a connection; then the archive answers instead."""
    socket_timeout: float = 2.0
    """Seconds to wait for a reply; then the archive answers instead."""
    cluster: bool = False
    """Whether host and port are a node of a Redis Cluster."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cluster and self.db:
            raise MemoryConfigInputError(f"db must be 0 with cluster=True, got {self.db}", field="db", recoverable=True)
        if self.tls_ca_file is not None and not self.tls:
            raise MemoryConfigInputError("tls_ca_file needs tls=True", field="tls_ca_file", recoverable=True)


@dataclass(frozen=True, kw_only=True)
class RedisSTMConfig(RedisConfig, STMConfig):
    """Short-term memory in Redis; the archive keeps a copy of all of it."""

    _checks: ClassVar[Mapping[str, Check]] = {**RedisConfig._checks, **_TIER}


@dataclass(frozen=True, kw_only=True)
class RedisIMConfig(RedisConfig, IMConfig):
    """Intermediate memory in Redis; the archive keeps a copy of all of it."""

    _checks: ClassVar[Mapping[str, Check]] = {**RedisConfig._checks, **_TIER}


def _tier(embedded: type[_Config], redis: type[_Config]) -> Check:
    """Make a check for the configuration of a tier; a mapping with a key of Redis becomes the Redis configuration."""

    def check(name: str, value: object) -> _Config:
        if isinstance(value, embedded):
            return value
        if value is None:
            return embedded()
        if not isinstance(value, Mapping):
            kinds = dict.fromkeys((embedded.__name__, redis.__name__))
            raise checks.refuse(name, " or ".join([*kinds, "a mapping"]), value)
        redis._known(name, value)
        kind = embedded if set(value) <= {f.name for f in fields(embedded)} else redis  # type: ignore[arg-type]
        try:
            return kind(**value)
        except MemoryConfigInputError as error:
            raise MemoryConfigInputError(f"{name}.{error}", field=f"{name}.{error.field}", recoverable=True) from None

    return check


@dataclass(frozen=True, kw_only=True)
class MemoryConfig(_Config):
    """Everything about one AgentMemoryAPI.

    MemoryConfig(cleanup_interval=100, stm_config={"memory_limit": 10_000})
    MemoryConfig(stm_config=RedisSTMConfig(host="localhost", ttl=3600))
    """

    _checks: ClassVar[Mapping[str, Check]] = {
        "cleanup_interval": _count,
        "memory_priority_decay": _decay,
        "stm_config": _tier(STMConfig, RedisSTMConfig),
        "im_config": _tier(IMConfig, RedisIMConfig),
        "ltm_config": _tier(LTMConfig, SQLiteLTMConfig),
        "autoencoder_config": optional(_tier(AutoencoderConfig, AutoencoderConfig)),
        "cache_ttl": lambda name, value: checks.number(name, value, low=0),
        "cache_size": _count,
        "promotion_threshold": _count,
        "enable_memory_hooks": checks.flag,
        "embedder": optional(_embedder),
        "privacy": optional(_privacy),
    }

    cleanup_interval: int = 100
    """Rebalance the tiers after this many insertions."""
    memory_priority_decay: float = 0.95
    """Factor on a priority for every 100 steps of age, used when a full tier chooses what to move; 1 means no decay."""
    # Accepts a mapping and holds a configuration; `| Any` allows both for type checkers.
    stm_config: STMConfig | Any = field(default_factory=STMConfig)
    im_config: IMConfig | Any = field(default_factory=IMConfig)
    ltm_config: LTMConfig | Any = field(default_factory=LTMConfig)
    cache_ttl: float = 60.0
    """Seconds that answers are cached; 0 turns the cache off. A write of an agent drops its answers."""
    cache_size: int = 1000
    """Most cached answers; the least recently used is dropped first."""
    promotion_threshold: int = 3
    """After this many calls of `focus`, a memory moves up a tier."""
    enable_memory_hooks: bool = True
    """Whether hooked agents remember what they do."""
    embedder: EmbedderSpec = None
    """As for `Brain`; None is the store's own."""
    autoencoder_config: AutoencoderConfig | Any = None
    """Another way to name the embedder."""
    privacy: PrivacySpec = None
    """As for `Brain`; None uses RMEM_PRIVACY."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.autoencoder_config is not None:
            named = self.autoencoder_config.embedder
            if self.embedder is not None and named is not None and self.embedder != named:
                raise MemoryConfigInputError(
                    f"embedder and autoencoder_config must name the same model, got {self.embedder!r} and {named!r}",
                    field="autoencoder_config",
                    recoverable=True,
                )
            object.__setattr__(self, "embedder", self.embedder or named)

    @classmethod
    def of(cls, config: MemoryConfig | Mapping[str, Any] | None) -> MemoryConfig:
        if isinstance(config, MemoryConfig):
            return config
        if config is None:
            return cls()
        if not isinstance(config, Mapping):
            expected = "a MemoryConfig or a mapping, such as {'ltm_config': {'path': 'world.db'}}"
            raise MemoryConfigException.caused_by(checks.refuse("config", expected, config))
        return cls.from_dict(config)

    def updated(self, changes: Mapping[str, Any]) -> MemoryConfig:
        """Return this configuration with some fields changed.

        config.updated({"cleanup_interval": 200, "stm_config.memory_limit": 5000})
        config.updated({"stm_config": {"memory_limit": 5000}})  # the same for a tier
        """
        if not isinstance(changes, Mapping):
            raise MemoryConfigException.caused_by(checks.refuse("config", "a mapping of fields to values", changes))
        data = {f.name: getattr(self, f.name) for f in fields(self)}
        for path, value in changes.items():
            name, dot, inside = str(path).partition(".")
            self._known(type(self).__name__, {name: value})
            held = data[name]
            if dot and not isinstance(held, _Config):
                raise MemoryConfigInputError(f"{name} has no fields of its own, got {path!r}", field=name)
            if dot:
                value = {inside: value}
            if isinstance(held, _Config) and isinstance(value, Mapping):
                value = {**held.to_dict(secrets=True), **value}
            data[name] = self._checked(name, value)
        return type(self)(**data)

    @classmethod
    def from_file(cls, path: str | Path) -> MemoryConfig:
        """Read a file with the keys of `to_dict`: TOML or YAML if its name ends so, else JSON."""
        try:
            text = Path(path).read_text(encoding="utf-8-sig")  # some editors of Windows begin a file with a mark
            return cls.from_dict(_READERS.get(Path(path).suffix.lower(), json.loads)(text))
        except (OSError, ValueError, RecursionError) as error:
            if isinstance(error, MemoryConfigException):
                raise
            reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
            raise MemoryConfigException(f"cannot read the configuration {path}: {reason}", recoverable=True) from error
