"""`PrivacyPolicy`: which kinds to find, and what to do with each. Every interface uses this class."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import checks
from ..errors import ConfigError, InputError, PrivacyError
from ..models import Memory
from .findings import KINDS, ROUNDS, Finding
from .libraries import require
from .phones import REGIONS
from .scanner import scan

ACTIONS = ("mask", "hash", "drop", "encrypt", "block")
KEY = "RMEM_PRIVACY_KEY"
MIN_KEY = 16
_FIELDS = ("actions", "key_file", "allow", "regions")


@dataclass(frozen=True, kw_only=True)
class PrivacyPolicy:
    """Which kinds to find and what to do with each.

        PrivacyPolicy(actions={"email": "hash", "secret": "block", "card": "mask"}, key="…")
        Brain(privacy=PrivacyPolicy.default())

    "mask" writes [email], "hash" writes [email:9f2c…] (the same for equal values under one key), "drop" leaves
    nothing, "encrypt" writes [email:enc:…], "block" refuses the memory. A kind without an action is not looked for.
    """

    actions: Mapping[str, str]
    key: str | bytes | None = field(default=None, repr=False, compare=False)
    """For "hash": at least 16 bytes. Otherwise $RMEM_PRIVACY_KEY or `key_file`. It is never stored or shown."""
    key_file: str | Path | None = None
    """A file that holds the key."""
    encrypt: Callable[[str], str] | None = field(default=None, repr=False, compare=False)
    """For "encrypt": a function that returns a text without blanks and brackets."""
    allow: tuple[str, ...] = ()
    """Values that may stay: ("support@example.com", "10.0.0.1")."""
    regions: tuple[str, ...] = REGIONS
    """Countries whose phone numbers are recognized without +49 and the like."""
    _key: bytes = field(default=b"", init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.actions, Mapping) or not self.actions:
            raise checks.refuse("actions", "a mapping of kinds to actions", self.actions)
        checks.known_fields("privacy actions", self.actions, KINDS)
        actions = {kind: checks.one_of(f"actions[{kind!r}]", action, ACTIONS) for kind, action in self.actions.items()}
        require(actions)
        object.__setattr__(self, "actions", actions)
        object.__setattr__(self, "allow", _texts("allow", self.allow))
        object.__setattr__(self, "regions", _texts("regions", self.regions))
        if "encrypt" in actions.values() and not callable(self.encrypt):
            raise ConfigError("the action 'encrypt' needs PrivacyPolicy(encrypt=…), a function of a text")
        if "hash" in actions.values():
            object.__setattr__(self, "_key", self._load_key())

    @classmethod
    def default(cls) -> PrivacyPolicy:
        """Return a policy that masks every kind."""
        return cls(actions=dict.fromkeys(KINDS, "mask"))

    @classmethod
    def from_dict(
        cls,
        data: Mapping[str, Any],
        *,
        key: str | bytes | None = None,
        encrypt: Callable[[str], str] | None = None,
    ) -> PrivacyPolicy:
        """Reverse `to_dict`. The key and the function are separate arguments."""
        if not isinstance(data, Mapping):
            raise checks.refuse("a privacy policy", "a mapping", data)
        if "key" in data:
            raise InputError("key must not be written down in a policy; use key_file or $" + KEY, field="key")
        checks.known_fields("a privacy policy", data, _FIELDS)
        return cls(**{"actions": None, **data}, key=key, encrypt=encrypt)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain data, without the key."""
        return {
            "actions": dict(self.actions),
            "key_file": None if self.key_file is None else str(self.key_file),
            "allow": list(self.allow),
            "regions": list(self.regions),
        }

    def _load_key(self) -> bytes:
        given = self.key if self.key is not None else os.environ.get(KEY) or None
        if given is None and self.key_file is not None:
            try:
                given = Path(self.key_file).expanduser().read_bytes().strip()
            except OSError as error:
                raise ConfigError(f"key_file cannot be read: {error.strerror or error}") from None
        if given is None:
            raise ConfigError(f"the action 'hash' needs a key: PrivacyPolicy(key=…), key_file=… or ${KEY}")
        if not isinstance(given, str | bytes):
            raise ConfigError(f"key must be a text or bytes, got a value of type {type(given).__name__}")
        key = given.encode("utf-8") if isinstance(given, str) else given
        if len(key) < MIN_KEY:
            raise ConfigError(f"key must have at least {MIN_KEY} bytes, got {len(key)}")
        return key

    # Use

    def find(self, text: str) -> list[Finding]:
        """Return what this policy would act on, in order."""
        sealed = "encrypt" in self.actions.values()
        findings = scan(text, self.actions, regions=self.regions, sealed=sealed)
        if not self.allow:
            return findings
        return [
            finding
            for finding in findings
            if text[finding.start : finding.end] not in self.allow and finding.canonical not in self.allow
        ]

    def clean(self, text: str, field: str = "text") -> str:
        """Return the text with its findings replaced; PrivacyError if it is refused.

        Clean a question in the same way to find what was hashed: `brain.recall(policy.clean(question))`.
        """
        for _ in range(ROUNDS):
            parts, at = [], 0
            for finding in self.find(text):
                parts += [text[at : finding.start], self.replacement(finding, text[finding.start : finding.end], field)]
                at = finding.end
            if not parts:
                break
            text = "".join([*parts, text[at:]])
        return text

    def question(self, text: str) -> str | None:
        """Return a cleaned question; None if it is refused."""
        try:
            return self.clean(text, "question")
        except PrivacyError:
            return None

    def replacement(self, finding: Finding, value: str, field: str) -> str:
        action, kind = self.actions[finding.kind], finding.kind
        if action == "block":
            raise PrivacyError(
                f"{field} holds a value of the kind {kind!r} ({finding.rule}), which the privacy policy refuses",
                field=field,
                kind=kind,
            )
        if action == "hash":
            digest = hmac.new(self._key, f"{kind}:{finding.canonical}".encode(), hashlib.sha256).hexdigest()
            return f"[{kind}:{digest[:16]}]"
        if action == "encrypt":
            assert self.encrypt is not None
            return f"[{kind}:enc:{self.encrypt(value)}]"
        return "" if action == "drop" else f"[{kind}]"

    def apply(self, memory: Memory) -> Memory:
        """Return the cleaned memory: itself if nothing was found, else a changed copy without vectors."""
        from .cleaner import clean_memory

        return clean_memory(self, memory)


def _texts(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise checks.refuse(name, "a list of texts", value)
    return tuple(checks.text(f"{name}[{at}]", text) for at, text in enumerate(value))
