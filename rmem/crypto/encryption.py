"""`Encryption`: which fields are encrypted, and the master key that protects them. The key comes from the environment,
a file, a function or the caller; it is never stored, logged or shown."""

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
    returns it. A file or function is read again when the key no longer works, so that a running process
    follows a rotation. `vectors=True` keeps vectors, which tell roughly what a text is about, in the clear.
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
            decode_key(self.master, "master")
        elif not isinstance(self.master, Path) and not callable(self.master):
            raise InputError("master must be a key, a Path or a function that returns a key", field="master")

    @classmethod
    def of(cls, given: Encryption | Literal[False] | None) -> Encryption | None:
        """Return `given`; for None the encryption of the environment, for False none."""
        if given is None:
            return cls.from_environment()
        if given is False:
            return None
        if not isinstance(given, Encryption):
            raise checks.refuse("encryption", "an Encryption, False or None", type(given).__name__)
        return given

    @classmethod
    def from_environment(cls) -> Encryption | None:
        """Use the key in RMEM_MASTER_KEY or RMEM_MASTER_KEY_FILE; None if neither is set."""
        master = master_from(MASTER_KEY, MASTER_KEY_FILE)
        return None if master is None else cls(master=master)

    def master_key(self) -> bytes:
        """Return the 32 bytes; read a file or call a function each time."""
        if isinstance(self.master, Path):
            return decode_key(_read_key_file(self.master), f"the key file {self.master}")
        if callable(self.master):
            try:
                given = self.master()
            except Exception as error:  # its message could contain the key
                raise ConfigError(f"the function given as master raised {type(error).__name__}") from None
            return decode_key(given, "what the function of master returned")
        return decode_key(self.master, "master")

    @property
    def hides_vectors(self) -> bool:
        """Whether to encrypt vectors too, which would reveal what an encrypted text is about."""
        return not self.vectors and ("text" in self.fields or "contents" in self.fields)


def master_from(variable: str, file_variable: str | None = None) -> str | Path | None:
    """Return the master key named by two environment variables, checked; None if neither is set."""
    key = os.environ.get(variable, "").strip()
    path = os.environ.get(file_variable, "").strip() if file_variable else ""
    if key and path:
        raise ConfigError(f"{variable} and {file_variable} are both set; set one of them")
    if key:
        decode_key(key, variable)
        return key
    return Path(path).expanduser() if path else None


def new_master_key() -> str:
    """Generate a master key as base64."""
    return base64.b64encode(os.urandom(KEY_BYTES)).decode()


def decode_key(given: object, name: str) -> bytes:
    """Decode a key to its 32 bytes; the ConfigError for a bad one does not reveal it."""
    raw = given.encode("utf-8", "replace") if isinstance(given, str) else given
    if not isinstance(raw, bytes):
        raise ConfigError(f"{name} must be a text or bytes; {_ADVICE}")
    if len(raw) != KEY_BYTES or isinstance(given, str):
        raw = _decode(raw.decode("latin-1").strip())
        if raw is None:
            raise ConfigError(f"{name} is not a key; {_ADVICE}")
    if len(set(raw)) < 12 or all(32 <= byte < 127 for byte in raw):  # random bytes never look like that
        raise ConfigError(f"{name} is not random; {_ADVICE}")
    return raw


def _decode(text: str) -> bytes | None:
    if _HEX.fullmatch(text):
        return bytes.fromhex(text)
    if not _BASE64.fullmatch(text):
        return None
    try:
        raw = base64.b64decode(text.rstrip("=").replace("-", "+").replace("_", "/") + "=")
    except binascii.Error:
        return None
    return raw if len(raw) == KEY_BYTES else None


def _read_key_file(path: Path) -> bytes:
    try:
        with path.expanduser().open("rb") as file:
            return file.read(4096)
    except OSError as error:
        raise ConfigError(f"the key file {path} cannot be read: {error.strerror or error}") from error
