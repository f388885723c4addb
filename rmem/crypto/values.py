"""Encrypt single values to texts, for a privacy policy that encrypts what it finds inside a text."""

from __future__ import annotations

import base64
import binascii
import os
from hashlib import blake2b

from ..errors import InputError, KeyWrongError
from .encryption import KEY_BYTES, Encryption, Master
from .vault import new_cipher

_NONCE = 12
_BOUND = b"remanence value"


class ValueCipher:
    """`PrivacyPolicy(encrypt=ValueCipher(Path("master.key")).encrypt)`; `decrypt` reads such a text again.

    It uses a key of its own, derived from the given one. `rmem keys rotate` does not reach values inside texts: keep
    the key for as long as you want to read them.
    """

    def __init__(self, master: Master) -> None:
        key = Encryption(master=master).master_key()
        self._cipher = new_cipher(blake2b(_BOUND, key=key, digest_size=KEY_BYTES).digest())

    def encrypt(self, value: str) -> str:
        """Return the ciphertext as letters, digits, - and _; different each time."""
        nonce = os.urandom(_NONCE)
        ciphertext = nonce + self._cipher.encrypt(nonce, value.encode("utf-8", "surrogatepass"), _BOUND)
        return base64.urlsafe_b64encode(ciphertext).decode().rstrip("=")

    def decrypt(self, written: str) -> str:
        from cryptography.exceptions import InvalidTag

        try:
            raw = base64.b64decode(written + "=" * (-len(written) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            raise InputError("written must be a text that encrypt() returned", field="written") from None
        try:
            return self._cipher.decrypt(raw[:_NONCE], raw[_NONCE:], _BOUND).decode("utf-8", "surrogatepass")
        except (InvalidTag, ValueError):
            raise KeyWrongError("the key does not open this value, or the value was changed") from None
