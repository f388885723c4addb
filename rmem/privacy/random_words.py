"""Detect random words that no name and no surroundings explain: `textmagic 'hnNIvpj0lNNC…'`, "use k9_Xb2…, it works".
Names such as `id`, hashes, URLs and lines of Base64 explain them."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from .findings import Finding
from .plausibility import is_placeholder, is_random

_WORD = re.compile(
    r"(?<![^\s\"'`(\[{<>=:,|])(?=(?:[A-Za-z_-]{0,199}[0-9]){2})[A-Za-z0-9][A-Za-z0-9_-]{15,199}(?![^\s\"'`)\]}<>,;.!?|&])"
)
_NAME = re.compile(r"""(?P<name>[A-Za-z][\w.-]{1,40})(?:[ ]{1,2}["'`]|[ ]?\|[ ]?)$""")
_ASSIGNED = re.compile(r"""[\w"'\])>][ ]{0,3}[:=]>?[\s\[]{0,20}["'`]?$""")
_EXPLAINED = re.compile(
    r"(?:\w*ids?|\w*hash|sha\d*|md5|digest|\w*sum|etag|integrity|fingerprint|thumbprint|sig|signature|"
    r"cert|certificate|crt|pub|public|pubkey|publickey|commit|rev|revision|ref|tag|version|build|nonce|cursor|slug|"
    r"class|classname|path|file|filename|image|img|src|href|url|uri|link|data|base64|content|body|challenge|state|"
    r"trace|span|request|code|name|index|version|import|from|require|location|address|addr|host|user|username|"
    r"bytes|buffer|table|seed|salt|iv|x|y|n|e|k|kty|alg|type|key|sub|handle|base|search|examples?|values?|device|verification|jkt|s256|expected|label|string|txt|context|eq|equals?)$",
    re.IGNORECASE,
)
_IN_URL = re.compile(r"://\S*$")
_PUBLIC = re.compile("public|publishable|csrf|xsrf", re.IGNORECASE)
_LAST_PART = re.compile(r"[A-Z]?[a-z]+[0-9]*$|[A-Z]+[0-9]*$")
_PLAIN_WORD = re.compile(r"(?<!\S)[A-Za-z]?[a-z]{1,15}(?=[\s,.;:!?]|$)")
_QUOTES = ('"', "'", "`")
_LEAST_WORDS = 3  # beside the random one
_LEAST_BARE = 20
_PREFIXED = re.compile(r"(?!sha|md5|crc|hash|rev|commit|id|img|build)[a-z]{2,8}_[0-9a-f]{32,64}")
_IDENTIFIER = re.compile(
    r"-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$|^[A-Za-z0-9_-]{22}$"
)  # UUIDs, in Base64 too
_PROSE_BEFORE = re.compile(r"(?:^|[A-Za-z,.;:!?][ ]+)[(\"'`]?$")


def random_words(text: str) -> Iterator[Finding]:
    """Yield random words that a name introduces or that stand in a sentence."""
    for match in _WORD.finditer(text):
        word = match.group()
        longest = max(re.split("[_-]", word), key=len)
        if (
            not (is_random(word) or (len(longest) >= _LEAST_BARE and is_random(longest)) or _PREFIXED.fullmatch(word))
            or is_placeholder(word)
            or word.startswith(("MII", "AAAA", "LS0t"))
            or _is_encoded(word)
            or _IDENTIFIER.search(word)
        ):
            continue
        start, end = match.span()
        if text[start - 1 : start] not in _QUOTES and (word.islower() or word.isupper()):
            continue  # ids in tables and logs
        before = text[max(text.rfind("\n", 0, start) + 1, start - 80) : start]
        named = _NAME.search(before)
        if _IN_URL.search(before) or _ASSIGNED.search(before):
            continue  # `assignments` looks at what has a name; without the word of a secret it is mostly an id
        if named:
            last = _LAST_PART.search(named["name"])
            if last is None or _EXPLAINED.match(last.group()) or _PUBLIC.search(named["name"]):
                continue
        elif len(word) < _LEAST_BARE or not _in_sentence(text, before, start, end):
            continue
        yield Finding(start, end, "secret", "random", word)


def _is_encoded(word: str) -> bool:
    """Return whether it is the Base64 of a text."""
    try:
        return base64.b64decode(word + "=" * (-len(word) % 4), altchars=b"-_").decode("ascii").isprintable()
    except (binascii.Error, ValueError):
        return False


def _in_sentence(text: str, before: str, start: int, end: int) -> bool:
    if not _PROSE_BEFORE.search(before):
        return False
    stop = text.find("\n", end)
    after = text[end : stop if 0 <= stop < end + 80 else end + 80]
    words = _PLAIN_WORD.findall(before) + _PLAIN_WORD.findall(after)
    previous = _PLAIN_WORD.findall(before)[-1:]
    return len(words) >= _LEAST_WORDS and not any(_EXPLAINED.match(word) for word in previous)
