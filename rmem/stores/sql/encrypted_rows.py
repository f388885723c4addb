"""The row of an encrypted memory: which columns stay empty, which terms are blinded, and how it is decoded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np

from ...crypto.encryption import MASTER_KEY, MASTER_KEY_FILE, Encryption
from ...crypto.vault import Vault
from ...errors import ConfigError, KeyMissingError
from ...index.analyser import HASH, Terms
from ...index.numbers import NO_NUMBERS
from ...index.text_features import SEALED, TextFeatures
from ..indexed import Derived
from ..packing import Codec, StoredContents

_PLAIN, _PACKED = b"\0", b"\1"  # the format of a value inside its encryption

_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Seal(NamedTuple):
    """The version of the keys, and the fields that are encrypted with them."""

    version: int
    fields: tuple[str, ...]


def blind(derived: Derived, seal: Seal, vault: Vault) -> Derived:
    """Return the derived data of an encrypted memory for the index: blind terms in random order, and no words."""
    terms, numbers, manner = derived.terms, derived.numbers, TextFeatures(SEALED, 0)
    if "text" in seal.fields:
        hashes = vault.blind(terms.hashes, seal.version).astype(HASH, copy=False)
        order = np.argsort(hashes)
        terms = Terms(hashes[order].tobytes() + terms.counts[order].tobytes(), ("",) * hashes.size)
    else:
        manner = TextFeatures(derived.manner.flags | SEALED, derived.manner.specific)
    if "contents" in seal.fields:
        numbers = NO_NUMBERS
    attribute_hashes = np.sort(vault.blind(np.frombuffer(derived.attribute_hashes, HASH), seal.version))
    return Derived(terms, attribute_hashes.astype(HASH, copy=False).tobytes(), numbers, manner, derived.facts)


def check_comparable(encryption: Encryption | None, by: Literal["vectors", "numbers"]) -> None:
    """Refuse to compare memories by data that encrypted ones do not have: they would never be found."""
    if encryption is None:
        raise KeyMissingError(
            f"encrypted memories cannot be compared by their {by} without the key of this store; set "
            f"{MASTER_KEY} or {MASTER_KEY_FILE}, or pass Brain(encryption=…)"
        )
    if by == "vectors" and encryption.hides_vectors:
        raise ConfigError(
            "encrypted memories cannot be compared by their vectors, which are not kept; ask in words "
            "(mode='hybrid'), or keep them: Encryption(vectors=True), then `rmem reindex`"
        )
    if by == "numbers" and "contents" in encryption.fields:
        raise ConfigError(
            "encrypted states cannot be compared by their numbers, which are not kept; ask by attributes or in "
            "words, or leave contents readable: Encryption(fields=('text', 'tags'))"
        )


def split(
    text: str, contents: StoredContents, tags: dict[str, str], seal: Seal, level: int, codec: Codec
) -> tuple[str, StoredContents, dict[str, str], dict[str, bytes]]:
    """Split text, contents and tags into readable values and those to be encrypted."""

    def written(text: str, contents: StoredContents) -> bytes:
        return _PACKED + codec.pack(text, contents) if level else _PLAIN + _json([text, contents]).encode()

    hidden: dict[str, bytes] = {}
    if "text" in seal.fields:
        hidden["text"], text = written(text, {}), ""
    if "contents" in seal.fields:
        hidden["contents"], contents = written("", contents), {}
    if "tags" in seal.fields:
        hidden["tags"], tags = _json(tags).encode(), {}
    return text, contents, tags, hidden


def decode_body(value: bytes, codec: Codec) -> tuple[str, StoredContents]:
    """Return the text and contents of a decrypted value."""
    if value[:1] == _PACKED:
        return codec.unpack(value[1:])
    text, contents = json.loads(value[1:].decode())
    return text, contents


def tags_of(opened: Mapping[str, bytes]) -> dict[str, str]:
    tags: dict[str, str] = json.loads(opened["tags"].decode())
    return tags
