"""What is encrypted, and the master key that protects it. The key comes from the environment, a file, a function or the
caller; it is never stored, logged or shown."""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from .. import checks
from ..errors import ConfigError, InputError

MASTER_KEY, MASTER_KEY_FILE = "RMEM_MASTER_KEY", "RMEM_MASTER_KEY_FILE"
FIELDS = ("text", "contents", "tags")
KEY_BYTES = 32

Master = str | bytes | Path | Callable[[], "str | bytes"]

_HEX = re.compile(r"[0-9a-fA-F]{64}")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{43}=?")
_ADVICE = "a master key is 32 random bytes in base64 or hex, not a passphrase; `rmem keys new` makes one"


@dataclass(frozen=True, slots=True, eq=False)
class Encryption:
    """Which fields of a memory are encrypted, and with which master key.

        Brain("memories.db", encryption=Encryption(master=Path("master.key")))
        Encryption(master=lambda: vault.read("rmem"), fields=("text", "contents"), vectors=True)

    `master` is the key itself (32 bytes, or base64 or hex of them), a Path to a file that holds it, or a function that
    returns it. A file and a function are asked again when the key no longer fits, so that a running process follows a
    rotation. `vectors=True` keeps vectors, which tell roughly what a text is about, in the clear.
    """

    master: Master = field(repr=False)
    fields: tuple[str, ...] = FIELDS
    vectors: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.fields, str) or not isinstance(self.fields, Iterable):
            raise checks.refuse("fields", f"a list of {', '.join(FIELDS)}", self.fields)
        given = tuple(self.fields)
        for name in given:
            checks.one_of("fields", name, FIELDS)
        if not given:
            raise InputError(f"fields must name at least one of {', '.join(FIELDS)}", field="fields")
        object.__setattr__(self, "fields", tuple(name for name in FIELDS if name in given))
        checks.flag("vectors", self.vectors)
        if isinstance(self.master, str | bytes):
            key_of(self.master, "master")
        elif not isinstance(self.master, Path) and not callable(self.master):
            raise InputError("master must be a key, a Path or a function that returns a key", field="master")

    @classmethod
    def of(cls, given: Encryption | Literal[False] | None) -> Encryption | None:
        """What was given; for None what the environment says; nothing for False."""
        if given is None:
            return cls.from_environment()
        if given is False:
            return None
        if not isinstance(given, Encryption):
            raise checks.refuse("encryption", "an Encryption, False or None", type(given).__name__)
        return given

    @classmethod
    def from_environment(cls) -> Encryption | None:
        """With the key of RMEM_MASTER_KEY or RMEM_MASTER_KEY_FILE; None if neither is set."""
        master = master_from(MASTER_KEY, MASTER_KEY_FILE)
        return None if master is None else cls(master=master)

    def master_key(self) -> bytes:
        """The 32 bytes, read anew from a file or a function."""
        if isinstance(self.master, Path):
            return key_of(_content(self.master), f"the key file {self.master}")
        if callable(self.master):
            try:
                given = self.master()
            except Exception as error:  # whose words may tell more than they should
                raise ConfigError(f"the function of master raised {type(error).__name__}") from None
            return key_of(given, "what the function of master returned")
        return key_of(self.master, "master")

    @property
    def hides_vectors(self) -> bool:
        """Whether vectors would tell what is encrypted."""
        return not self.vectors and ("text" in self.fields or "contents" in self.fields)


def master_from(variable: str, file_variable: str | None = None) -> str | Path | None:
    """A master key that the environment names, checked; None if it names none."""
    key = os.environ.get(variable, "").strip()
    path = os.environ.get(file_variable, "").strip() if file_variable else ""
    if key and path:
        raise ConfigError(f"{variable} and {file_variable} are both set; set one of them")
    if key:
        key_of(key, variable)
        return key
    return Path(path).expanduser() if path else None


def new_master_key() -> str:
    """A fresh master key as base64."""
    return base64.b64encode(os.urandom(KEY_BYTES)).decode()


def key_of(given: object, name: str) -> bytes:
    """The 32 bytes of a key; a ConfigError that tells nothing of it otherwise."""
    raw = given.encode("utf-8", "replace") if isinstance(given, str) else given
    if not isinstance(raw, bytes):
        raise ConfigError(f"{name} must be a text or bytes; {_ADVICE}")
    if len(raw) != KEY_BYTES or isinstance(given, str):
        raw = _decoded(raw.decode("latin-1").strip())
        if raw is None:
            raise ConfigError(f"{name} is not a key; {_ADVICE}")
    if len(set(raw)) < 12 or all(32 <= byte < 127 for byte in raw):  # random bytes never are
        raise ConfigError(f"{name} is not random; {_ADVICE}")
    return raw


def _decoded(text: str) -> bytes | None:
    if _HEX.fullmatch(text):
        return bytes.fromhex(text)
    if not _BASE64.fullmatch(text):
        return None
    try:
        raw = base64.b64decode(text.rstrip("=").replace("-", "+").replace("_", "/") + "=")
    except binascii.Error:
        return None
    return raw if len(raw) == KEY_BYTES else None


def _content(path: Path) -> bytes:
    try:
        with path.expanduser().open("rb") as file:
            return file.read(4096)
    except OSError as error:
        raise ConfigError(f"the key file {path} cannot be read: {error.strerror or error}") from error
