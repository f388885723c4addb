"""Walk through texts and nested data and replace what is found. A subclass says what is searched for and what replaces
it: a policy for memories, marks alone for what a hook writes to disk."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Any

from ..errors import PrivacyError
from .findings import ROUNDS, SECRETS, Finding
from .scanner import scan

_LEAST = 4  # characters of a value that is looked for elsewhere
_SMALL = 100_000  # numbers below are nobody's
_NAMES_A_PERSON = re.compile(
    r"card|kart|\bcc|\bpan\b|credit|phone|telefon|\btel\b|mobile|handy|fax|whatsapp|ssn|social|national|tax.?id|steuer|"
    r"pesel|cpf|bsn|nhs|aadh?aar|passw|pwd|\bpin\b|personn|tckn|cnp|电话|手机|電話|전화|телеф",
    re.IGNORECASE,
)
"""A number in data is a number, whatever it looks like, unless its key says that it is somebody's."""


def refuse_secrets(field: str, name: str, kinds: Collection[str] = SECRETS) -> None:
    """A PrivacyError for a name that holds a secret of these kinds: a name cannot be changed without losing what it
    leads to."""
    looked_for = tuple(kind for kind in SECRETS if kind in kinds)
    if looked_for and not _is_harmless(name, looked_for):
        found = scan(name, looked_for)[0]
        raise PrivacyError(
            f"{field} must not hold a value of the kind {found.kind!r} ({found.rule}): names are kept as they are",
            field=field,
            kind=found.kind,
        )


@lru_cache(maxsize=4096)
def _is_harmless(name: str, kinds: tuple[str, ...]) -> bool:
    return not scan(name, kinds)


class Walk:
    """One walk; `replaced` is what was found and what took its place."""

    def __init__(self, find: Callable[[str], list[Finding]], replacement: Callable[[Finding, str, str], str]) -> None:
        self._find, self._put = find, replacement
        self.replaced: dict[str, str] = {}

    def text(self, text: str, field: str, key: str = "") -> str:
        """A text as it may be kept. The key before it helps to see what it is."""
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
        put = self._put(finding, value, field)
        self.replaced[value] = put
        return put

    def mapping(
        self, data: dict[str, Any], field: str, told: dict[str, tuple[Any, Any]] | None = None
    ) -> dict[str, Any]:
        """All keys and values; `told` are values that are known already, with what became of them."""
        result: dict[str, Any] = {}
        for key, value in data.items():
            name = self.text(key, f"a key of {field}")
            if told and key in told and told[key][0] == value:
                put = told[key][1]
            else:
                put = self._value(value, f"{field}[{name!r}]", key)
            result[_free(result, name)] = put
        return result

    def _value(self, value: Any, field: str, key: str) -> Any:
        if isinstance(value, str):
            return self.text(value, field, key)
        if isinstance(value, dict):
            return self.mapping(value, field)
        if isinstance(value, list):
            return [self._value(one, f"{field}[{at}]", key) for at, one in enumerate(value)]
        if isinstance(value, int) and not isinstance(value, bool) and value >= _SMALL and _NAMES_A_PERSON.search(key):
            written = str(value)
            put = self.text(written, field, key)
            return value if put == written else put
        return value


def _free(taken: dict[str, Any], name: str) -> str:
    """Two addresses may become one [email]; neither value is lost."""
    number, free = 2, name
    while free in taken:
        free, number = f"{name} {number}", number + 1
    return free


class Everywhere:
    """Replaces values that a walk has found, wherever they stand as a whole: what one field gave away ("password": "…")
    may stand in another without that hint."""

    def __init__(self, replaced: dict[str, str]) -> None:
        self._replaced = {value: put for value, put in replaced.items() if len(value) >= _LEAST}
        longest_first = sorted(self._replaced, key=len, reverse=True)
        values = "|".join(re.escape(value) for value in longest_first)
        self._pattern = re.compile(rf"(?<!\w)(?:{values})(?!\w)") if values else None

    def text(self, text: str) -> str:
        if self._pattern is None or not text.strip():
            return text
        result = self._pattern.sub(lambda found: self._replaced[found.group()], text)
        return result if result.strip() else "[removed]"

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            result: dict[str, Any] = {}
            for key, one in value.items():
                result[_free(result, self.text(key))] = self.value(one)
            return result
        if isinstance(value, list):
            return [self.value(one) for one in value]
        return value
