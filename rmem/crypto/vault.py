"""The data keys of one store, and what they do: seal and open fields (AES-256-GCM), blind terms (keyed BLAKE2b).

There is one key for each kind of field and one for terms. A rotation gives all kinds a new version; until it is done
both versions are known. The store hands the wrapped keys over; the master key unwraps them."""

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
_PART = Struct("<BI")  # the number of a field, and how many bytes its nonce and ciphertext have
_REMEMBERED = 1 << 16


class WrappedKey(NamedTuple):
    """A data key as the store keeps it, and the fingerprint of the master key that opens it."""

    kind: str
    version: int
    wrapped: bytes
    master: str
    created: float


class BlindTerms(dict[int, int]):
    """The blind terms of one key, as far as they were asked for: words come again and again."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def __missing__(self, term: int) -> int:
        if len(self) >= _REMEMBERED:
            self.clear()
        hidden = blake2b(term.to_bytes(8, "little"), key=self._key, digest_size=8).digest()
        blind = self[term] = int.from_bytes(hidden, "little")
        return blind

    def __repr__(self) -> str:
        return f"BlindTerms({len(self)})"


class DataKeys(NamedTuple):
    """The opened keys of one version."""

    ciphers: Mapping[str, AESGCM]
    terms: BlindTerms


def cipher_of(key: bytes) -> AESGCM:
    require("privacy", "encryption")
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)


def fingerprint(master: bytes) -> str:
    """Tells master keys apart without telling anything of them."""
    return blake2b(b"remanence master key", key=master, digest_size=6).hexdigest()


def wrap(master: bytes, kind: str, version: int, key: bytes) -> bytes:
    nonce = os.urandom(_NONCE)
    return nonce + cipher_of(master).encrypt(nonce, key, _bound("key", kind, str(version)))


def unwrap(master: bytes, key: WrappedKey) -> bytes | None:
    """The data key; None if another master key wrapped it, or somebody changed it."""
    opened = _opened(cipher_of(master), key.wrapped, _bound("key", key.kind, str(key.version)))
    return opened if opened is not None and len(opened) == KEY_BYTES else None


def new_keys(master: bytes, version: int, now: float) -> list[WrappedKey]:
    """Fresh data keys of one version."""
    told = fingerprint(master)
    return [WrappedKey(kind, version, wrap(master, kind, version, os.urandom(KEY_BYTES)), told, now) for kind in KINDS]


def sealed_fields(sealed: bytes) -> tuple[str, ...]:
    """Which fields a sealed value holds; no key is needed to know."""
    return tuple(FIELDS[number] for number, _, _ in _parts(sealed))


class Vault:
    """Opens with what `encryption` gives. `fetch` reads the store's wrapped keys, for a version not met before."""

    def __init__(self, encryption: Encryption | None, fetch: Callable[[], Sequence[WrappedKey]]) -> None:
        self.encryption = encryption
        self._fetch = fetch
        self._wrapped: tuple[WrappedKey, ...] = ()
        self._versions: frozenset[int] = frozenset()
        self._keys: dict[int, DataKeys] = {}
        self._disguises: Callable[[int], tuple[int, ...]] | None = None
        self._problem: ConfigError | None = None  # why there is no master key to try
        self._lock = new_lock()

    def follow(self, wrapped: Sequence[WrappedKey]) -> None:
        """Take the keys that the store has now; those that do not open are left closed."""
        with self._lock:
            given = tuple(wrapped)
            if given == self._wrapped and len(self._keys) == len(self._versions):
                return
            known = {(key.kind, key.version): key for key in self._wrapped}
            versions = sorted({key.version for key in given})
            opened = {}
            for version in versions:
                own = [key for key in given if key.version == version]
                same = all(known.get((key.kind, version), key).created == key.created for key in own)
                held = self._keys.get(version) if same else None  # wrapped anew, a key is still the same key
                found = held or self._open(own)
                if found is not None:
                    opened[version] = found
            if opened.keys() != self._keys.keys() or any(opened[one] is not self._keys[one] for one in opened):
                self._disguises = _disguises([keys.terms for keys in opened.values()])
            self._wrapped, self._versions, self._keys = given, frozenset(versions), opened

    def _open(self, wrapped: Sequence[WrappedKey]) -> DataKeys | None:
        if self.encryption is None:
            return None
        self._problem = None
        try:
            master = self.encryption.master_key()
            raw = {key.kind: unwrap(master, key) for key in wrapped}
        except ConfigError as error:  # other memories can be read all the same
            self._problem = error
            return None
        if any(raw.get(kind) is None for kind in KINDS):
            return None
        found = {kind: key for kind, key in raw.items() if key is not None}
        return DataKeys({kind: cipher_of(found[kind]) for kind in FIELDS}, BlindTerms(found["terms"]))

    @property
    def versions(self) -> tuple[int, ...]:
        """The versions that are open, oldest first."""
        return tuple(self._keys)

    @property
    def opens(self) -> bool:
        """Whether encrypted memories of this store can be read, as far as its keys tell."""
        return self.encryption is not None and (bool(self._keys) or not self._wrapped)

    @property
    def latest(self) -> int | None:
        """The version of the store's newest keys, open or not."""
        return max((key.version for key in self._wrapped), default=None)

    def keys(self, version: int) -> DataKeys:
        """The keys of a version; KeyMissingError or KeyWrongError where they cannot be had."""
        found = self._keys.get(version)
        if found is None and self.encryption is not None:
            self.follow(self._fetch())
            found = self._keys.get(version)
        if found is not None:
            return found
        raise self._refusal(version)

    def _refusal(self, version: int) -> KeyMissingError | KeyWrongError:
        """Why the keys of a version cannot be had."""
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
        """Whether all keys of the store are open, or no key was given to open them with."""
        return self.encryption is None or len(self._keys) == len(self._versions)

    def check(self) -> None:
        """Raise where a key was given and does not open all keys of the store. It is read anew before: a file may hold
        another one by now."""
        if not self.is_whole or (self.encryption is not None and not self._wrapped):  # not read yet, or not made
            self.follow(self._fetch())
        if not self.is_whole:
            raise self._refusal(max(self._versions.difference(self._keys)))

    def seal(self, memory_id: str, values: Mapping[str, bytes], version: int) -> bytes:
        """Fields as one value that only opens for this memory."""
        ciphers, sealed = self.keys(version).ciphers, bytearray()
        for number, name in enumerate(FIELDS):
            if name in values:
                nonce = os.urandom(_NONCE)
                hidden = ciphers[name].encrypt(nonce, values[name], _bound("field", name, str(version), memory_id))
                sealed += _PART.pack(number, _NONCE + len(hidden)) + nonce + hidden
        return bytes(sealed)

    def open(self, memory_id: str, sealed: bytes, version: int) -> dict[str, bytes]:
        """The reverse of `seal`."""
        ciphers, values = self.keys(version).ciphers, {}
        for number, start, end in _parts(sealed):
            name = FIELDS[number]
            value = _opened(ciphers[name], sealed[start:end], _bound("field", name, str(version), memory_id))
            if value is None:
                raise StoreCorruptError(
                    f"the encrypted {name} of memory {memory_id!r} was changed, or belongs to another memory; "
                    "restore it from a backup"
                )
            values[name] = value
        return values

    def seal_whole(self, memory_id: str, value: bytes, version: int) -> bytes:
        """All of a memory as one value, for where it has no columns."""
        nonce = os.urandom(_NONCE)
        hidden = self.keys(version).ciphers["contents"].encrypt(nonce, value, _bound("whole", str(version), memory_id))
        return nonce + hidden

    def open_whole(self, memory_id: str, sealed: bytes, version: int) -> bytes:
        value = _opened(self.keys(version).ciphers["contents"], sealed, _bound("whole", str(version), memory_id))
        if value is None:
            raise StoreCorruptError(f"the encrypted memory {memory_id!r} was changed; restore it from a backup")
        return value

    def blind(self, hashes: Hashes, version: int) -> Hashes:
        """Term or attribute hashes as they stand in the rows of encrypted memories."""
        known = self.keys(version).terms
        return np.fromiter(map(known.__getitem__, hashes.tolist()), np.uint64, hashes.size)

    def disguises(self) -> Callable[[int], tuple[int, ...]] | None:
        """A function that tells under which blind terms a term may also stand now; None while there are none."""
        return self._disguises


def _disguises(keys: Sequence[BlindTerms]) -> Callable[[int], tuple[int, ...]] | None:
    return (lambda term: tuple([known[term] for known in keys])) if keys else None


def _bound(*names: str) -> bytes:
    """Associated data: names that nobody can shift into one another."""
    encoded = [name.encode("utf-8", "surrogatepass") for name in ("remanence", *names)]
    return b"".join(len(name).to_bytes(4, "little") + name for name in encoded)


def _opened(cipher: AESGCM, value: bytes, bound: bytes) -> bytes | None:
    from cryptography.exceptions import InvalidTag

    try:
        return cipher.decrypt(value[:_NONCE], value[_NONCE:], bound)
    except (InvalidTag, ValueError):  # ValueError: too short to be anything
        return None


def _parts(sealed: bytes) -> list[tuple[int, int, int]]:
    """(number of the field, start, end) of the parts of a sealed value."""
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
