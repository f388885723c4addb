"""The data keys of one store: they encrypt and decrypt fields (AES-256-GCM) and hash terms (keyed BLAKE2b).

There is one key for each kind of field and one for terms. A rotation gives all kinds a new version; until it is done
both versions are available. The store provides the wrapped keys; the master key unwraps them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import ConfigError, KeyMissingError, KeyWrongError, StoreCorruptError
from ..extras import require
from ..forks import new_lock
from .encryption import FIELDS, KEY_BYTES, MASTER_KEY, MASTER_KEY_FILE, Encryption

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

Hashes = npt.NDArray[np.uint64]

KINDS = (*FIELDS, "terms")
_NONCE = 12
_PART = Struct("<BI")  # number of the field, and length of its nonce and ciphertext in bytes
_MAX_CACHED = 1 << 16


class WrappedKey(NamedTuple):
    """A data key as stored, and the fingerprint of the master key that wraps it."""

    kind: str
    version: int
    wrapped: bytes
    master: str
    created: float


class BlindTerms(dict[int, int]):
    """Cache of the keyed hashes of terms under one key, since words recur."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def __missing__(self, term: int) -> int:
        if len(self) >= _MAX_CACHED:
            self.clear()
        digest = blake2b(term.to_bytes(8, "little"), key=self._key, digest_size=8).digest()
        blind = self[term] = int.from_bytes(digest, "little")
        return blind

    def __repr__(self) -> str:
        return f"BlindTerms({len(self)})"


class DataKeys(NamedTuple):
    """The unwrapped keys of one version."""

    ciphers: Mapping[str, AESGCM]
    terms: BlindTerms


def new_cipher(key: bytes) -> AESGCM:
    require("privacy", "encryption")
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)


def fingerprint(master: bytes) -> str:
    """Return a hash that identifies a master key without revealing it."""
    return blake2b(b"remanence master key", key=master, digest_size=6).hexdigest()


def wrap(master: bytes, kind: str, version: int, key: bytes) -> bytes:
    nonce = os.urandom(_NONCE)
    return nonce + new_cipher(master).encrypt(nonce, key, _associated_data("key", kind, str(version)))


def unwrap(master: bytes, key: WrappedKey) -> bytes | None:
    """Decrypt a data key; None if another master key wrapped it or it was changed."""
    key_bytes = _decrypt(new_cipher(master), key.wrapped, _associated_data("key", key.kind, str(key.version)))
    return key_bytes if key_bytes is not None and len(key_bytes) == KEY_BYTES else None


def new_keys(master: bytes, version: int, now: float) -> list[WrappedKey]:
    """Generate the data keys of one version, wrapped."""
    master_id = fingerprint(master)
    return [
        WrappedKey(kind, version, wrap(master, kind, version, os.urandom(KEY_BYTES)), master_id, now) for kind in KINDS
    ]


def sealed_fields(sealed: bytes) -> tuple[str, ...]:
    """Return the names of the fields in a sealed value; needs no key."""
    return tuple(FIELDS[number] for number, _, _ in _split_parts(sealed))


class Vault:
    """Encrypts and decrypts with the data keys of a store. `encryption` gives the master key; `fetch` reads the wrapped
    keys again when a version is unknown."""

    def __init__(self, encryption: Encryption | None, fetch: Callable[[], Sequence[WrappedKey]]) -> None:
        self.encryption = encryption
        self._fetch = fetch
        self._wrapped: tuple[WrappedKey, ...] = ()
        self._versions: frozenset[int] = frozenset()
        self._keys: dict[int, DataKeys] = {}
        self._blind_term_lookup: Callable[[int], tuple[int, ...]] | None = None
        self._problem: ConfigError | None = None  # why the master key could not be read
        self._lock = new_lock()

    def follow(self, wrapped: Sequence[WrappedKey]) -> None:
        """Unwrap the current keys of the store; those that the master key does not unwrap stay unavailable."""
        with self._lock:
            current = tuple(wrapped)
            if current == self._wrapped and len(self._keys) == len(self._versions):
                return
            known = {(key.kind, key.version): key for key in self._wrapped}
            versions = sorted({key.version for key in current})
            unwrapped = {}
            for version in versions:
                of_version = [key for key in current if key.version == version]
                same = all(known.get((key.kind, version), key).created == key.created for key in of_version)
                # A data key that a rotation wrapped again is still the same key.
                same_keys = self._keys.get(version) if same else None
                found = same_keys or self._open(of_version)
                if found is not None:
                    unwrapped[version] = found
            if unwrapped.keys() != self._keys.keys() or any(
                unwrapped[version] is not self._keys[version] for version in unwrapped
            ):
                self._blind_term_lookup = _build_blind_term_lookup([keys.terms for keys in unwrapped.values()])
            self._wrapped, self._versions, self._keys = current, frozenset(versions), unwrapped

    def _open(self, wrapped: Sequence[WrappedKey]) -> DataKeys | None:
        if self.encryption is None:
            return None
        self._problem = None
        try:
            master = self.encryption.master_key()
            raw = {key.kind: unwrap(master, key) for key in wrapped}
        except ConfigError as error:  # memories that are not encrypted can still be read
            self._problem = error
            return None
        if any(raw.get(kind) is None for kind in KINDS):
            return None
        found = {kind: key for kind, key in raw.items() if key is not None}
        return DataKeys({kind: new_cipher(found[kind]) for kind in FIELDS}, BlindTerms(found["terms"]))

    @property
    def versions(self) -> tuple[int, ...]:
        """Return the unwrapped versions, oldest first."""
        return tuple(self._keys)

    @property
    def opens(self) -> bool:
        """Whether encrypted memories of this store can be read: a master key unwraps some of its keys, or it has
        none."""
        return self.encryption is not None and (bool(self._keys) or not self._wrapped)

    @property
    def latest(self) -> int | None:
        """Return the newest version of the store's keys, unwrapped or not."""
        return max((key.version for key in self._wrapped), default=None)

    def keys(self, version: int) -> DataKeys:
        """Return the keys of a version; KeyMissingError or KeyWrongError if they cannot be unwrapped."""
        found = self._keys.get(version)
        if found is None and self.encryption is not None:
            self.follow(self._fetch())
            found = self._keys.get(version)
        if found is not None:
            return found
        raise self._key_error(version)

    def _key_error(self, version: int) -> KeyMissingError | KeyWrongError:
        """Build the error for keys that cannot be unwrapped."""
        if self.encryption is None:
            return KeyMissingError(
                f"this memory is encrypted; set {MASTER_KEY} or {MASTER_KEY_FILE}, or pass Brain(encryption=…)"
            )
        if self._problem is not None:
            return KeyMissingError(f"this memory is encrypted, but {self._problem}")
        return KeyWrongError(
            f"the master key does not open the data keys (version {version}) of this store; give the key that they "
            f"were made or last rotated with, through {MASTER_KEY}, {MASTER_KEY_FILE} or Brain(encryption=…)"
        )

    @property
    def is_whole(self) -> bool:
        """Whether all keys of the store are unwrapped, or no master key was given."""
        return self.encryption is None or len(self._keys) == len(self._versions)

    def check(self) -> None:
        """Raise if the given master key does not unwrap all keys of the store. The key is read again first: its file
        may have changed."""
        if not self.is_whole or (self.encryption is not None and not self._wrapped):  # not read yet, or not created yet
            self.follow(self._fetch())
        if not self.is_whole:
            raise self._key_error(max(self._versions.difference(self._keys)))

    def seal(self, memory_id: str, values: Mapping[str, bytes], version: int) -> bytes:
        """Encrypt fields into one value, bound to this memory."""
        ciphers, sealed = self.keys(version).ciphers, bytearray()
        for number, name in enumerate(FIELDS):
            if name in values:
                nonce = os.urandom(_NONCE)
                ciphertext = ciphers[name].encrypt(
                    nonce, values[name], _associated_data("field", name, str(version), memory_id)
                )
                sealed += _PART.pack(number, _NONCE + len(ciphertext)) + nonce + ciphertext
        return bytes(sealed)

    def open(self, memory_id: str, sealed: bytes, version: int) -> dict[str, bytes]:
        """Reverse `seal`; StoreCorruptError if the value was changed."""
        ciphers, values = self.keys(version).ciphers, {}
        for number, start, end in _split_parts(sealed):
            name = FIELDS[number]
            value = _decrypt(ciphers[name], sealed[start:end], _associated_data("field", name, str(version), memory_id))
            if value is None:
                raise StoreCorruptError(
                    f"the encrypted {name} of memory {memory_id!r} was changed, or belongs to another memory; "
                    "restore it from a backup"
                )
            values[name] = value
        return values

    def seal_whole(self, memory_id: str, value: bytes, version: int) -> bytes:
        """Encrypt a whole memory into one value, for stores without columns."""
        nonce = os.urandom(_NONCE)
        ciphertext = (
            self.keys(version)
            .ciphers["contents"]
            .encrypt(nonce, value, _associated_data("whole", str(version), memory_id))
        )
        return nonce + ciphertext

    def open_whole(self, memory_id: str, sealed: bytes, version: int) -> bytes:
        value = _decrypt(
            self.keys(version).ciphers["contents"], sealed, _associated_data("whole", str(version), memory_id)
        )
        if value is None:
            raise StoreCorruptError(f"the encrypted memory {memory_id!r} was changed; restore it from a backup")
        return value

    def blind(self, hashes: Hashes, version: int) -> Hashes:
        """Return the keyed hashes under which encrypted memories store term or attribute hashes."""
        known = self.keys(version).terms
        return np.fromiter(map(known.__getitem__, hashes.tolist()), np.uint64, hashes.size)

    def blind_term_lookup(self) -> Callable[[int], tuple[int, ...]] | None:
        """Return a function from a term to its blind terms under all unwrapped keys; None without keys."""
        return self._blind_term_lookup


def _build_blind_term_lookup(keys: Sequence[BlindTerms]) -> Callable[[int], tuple[int, ...]] | None:
    return (lambda term: tuple([known[term] for known in keys])) if keys else None


def _associated_data(*names: str) -> bytes:
    """Build the associated data: names with their lengths, so that no two lists give the same bytes."""
    encoded = [name.encode("utf-8", "surrogatepass") for name in ("remanence", *names)]
    return b"".join(len(name).to_bytes(4, "little") + name for name in encoded)


def _decrypt(cipher: AESGCM, value: bytes, associated: bytes) -> bytes | None:
    from cryptography.exceptions import InvalidTag

    try:
        return cipher.decrypt(value[:_NONCE], value[_NONCE:], associated)
    except (InvalidTag, ValueError):  # ValueError: too short for a nonce and a tag
        return None


def _split_parts(sealed: bytes) -> list[tuple[int, int, int]]:
    """Split a sealed value: (number of the field, start, end) of each part."""
    parts, at = [], 0
    while at < len(sealed):
        if at + _PART.size > len(sealed):
            raise StoreCorruptError("an encrypted memory is cut off; restore it from a backup")
        number, size = _PART.unpack_from(sealed, at)
        start, at = at + _PART.size, at + _PART.size + size
        if number >= len(FIELDS) or at > len(sealed):
            raise StoreCorruptError("an encrypted memory is damaged; restore it from a backup")
        parts.append((number, start, at))
    return parts
