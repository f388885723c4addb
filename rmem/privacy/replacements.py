"""Walk through texts and nested data and replace findings. The caller passes the functions that find and replace: a
policy for memories, masks for events that a hook writes to disk."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Any

from ..errors import PrivacyError
from .findings import ROUNDS, SECRETS, Finding
from .scanner import scan

_LEAST = 4  # characters of a value that is searched in other fields
_SMALL = 100_000  # smaller numbers identify nobody
_NAMES_A_PERSON = re.compile(
    r"card|kart|\bcc|\bpan\b|credit|phone|telefon|\btel\b|mobile|handy|fax|whatsapp|ssn|social|national|tax.?id|steuer|"
    r"pesel|cpf|bsn|nhs|aadh?aar|passw|pwd|\bpin\b|personn|tckn|cnp|电话|手机|電話|전화|телеф",
    re.IGNORECASE,
)
"""Keys whose numbers may identify a person; numbers under other keys are left alone."""


def refuse_secrets(field: str, name: str, kinds: Collection[str] = SECRETS) -> None:
    """Raise PrivacyError if a name contains a secret of these kinds; a name cannot be masked, since it identifies
    memories."""
    secret_kinds = tuple(kind for kind in SECRETS if kind in kinds)
    if secret_kinds and not _is_harmless(name, secret_kinds):
        found = scan(name, secret_kinds)[0]
        raise PrivacyError(
            f"{field} must not hold a value of the kind {found.kind!r} ({found.rule}): names are kept as they are",
            field=field,
            kind=found.kind,
        )


@lru_cache(maxsize=4096)
def _is_harmless(name: str, kinds: tuple[str, ...]) -> bool:
    return not scan(name, kinds)


class Walk:
    """One walk; `replaced` maps the values found to their replacements."""

    def __init__(self, find: Callable[[str], list[Finding]], replacement: Callable[[Finding, str, str], str]) -> None:
        self._find, self._put = find, replacement
        self.replaced: dict[str, str] = {}

    def text(self, text: str, field: str, key: str = "") -> str:
        """Return a text with its findings replaced. The key before it helps to recognize them."""
        for _ in range(ROUNDS):
            changed = self._once(text, field, key)
            if changed == text:
                break
            text = changed
        return text

    def _once(self, text: str, field: str, key: str) -> str:
        head = f'"{key}": "' if key else ""
        findings = self._find(f'{head}{text}"' if head else text)
        parts, at = [], 0
        for finding in findings:
            start, end = max(finding.start - len(head), 0), min(finding.end - len(head), len(text))
            if end <= start:
                continue  # the key has its own turn
            parts += [text[at:start], self._replacement(finding, text[start:end], field)]
            at = end
        if not parts:
            return text
        result = "".join([*parts, text[at:]])
        return result if result.strip() else f"[{findings[0].kind}]"  # a text must not vanish

    def _replacement(self, finding: Finding, value: str, field: str) -> str:
        replacement = self._put(finding, value, field)
        self.replaced[value] = replacement
        return replacement

    def mapping(
        self, data: dict[str, Any], field: str, known: dict[str, tuple[Any, Any]] | None = None
    ) -> dict[str, Any]:
        """Clean all keys and values. `known` has values that were cleaned already, with their results."""
        result: dict[str, Any] = {}
        for key, value in data.items():
            name = self.text(key, f"a key of {field}")
            if known and key in known and known[key][0] == value:
                put = known[key][1]
            else:
                put = self._value(value, f"{field}[{name!r}]", key)
            result[_unused_key(result, name)] = put
        return result

    def _value(self, value: Any, field: str, key: str) -> Any:
        if isinstance(value, str):
            return self.text(value, field, key)
        if isinstance(value, dict):
            return self.mapping(value, field)
        if isinstance(value, list):
            return [self._value(item, f"{field}[{at}]", key) for at, item in enumerate(value)]
        if isinstance(value, int) and not isinstance(value, bool) and value >= _SMALL and _NAMES_A_PERSON.search(key):
            written = str(value)
            put = self.text(written, field, key)
            return value if put == written else put
        return value


def _unused_key(taken: dict[str, Any], name: str) -> str:
    """Return a key that is not taken: two addresses may become the same [email]."""
    number, free = 2, name
    while free in taken:
        free, number = f"{name} {number}", number + 1
    return free


class Replacer:
    """Replaces the values that a walk found wherever they occur as whole words: a value found by its key in one field
    ("password": "…") may be in another without that hint."""

    def __init__(self, replaced: dict[str, str]) -> None:
        self._replaced = {value: put for value, put in replaced.items() if len(value) >= _LEAST}
        longest_first = sorted(self._replaced, key=len, reverse=True)
        values = "|".join(re.escape(value) for value in longest_first)
        self._pattern = re.compile(rf"(?<!\w)(?:{values})(?!\w)") if values else None

    def text(self, text: str) -> str:
        if self._pattern is None or not text.strip():
            return text
        result = self._pattern.sub(lambda match: self._replaced[match.group()], text)
        return result if result.strip() else "[removed]"

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            result: dict[str, Any] = {}
            for key, item in value.items():
                result[_unused_key(result, self.text(key))] = self.value(item)
            return result
        if isinstance(value, list):
            return [self.value(item) for item in value]
        return value
