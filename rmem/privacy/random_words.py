"""Detect random words that no name and no surroundings explain: `textmagic 'hnNIvpj0lNNC…'`, "use k9_Xb2…, it works".
Names such as `id`, hashes, URLs and lines of Base64 explain them."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from .findings import Finding
from .plausibility import is_placeholder, is_public_key, is_random, is_wordy

_WORD = re.compile(
    r"(?<![^\s\"'`(\[{<>=:,|])(?=(?:[A-Za-z_.+/-]{0,199}[0-9]){2})[A-Za-z0-9][A-Za-z0-9_.+/-]{14,499}[A-Za-z0-9_+-]={0,3}"
    r"(?![^\s\"'`)\]}<>,;.!?|&])"
)
_NAME = re.compile(r"""(?P<name>[A-Za-z][\w.-]{1,40})(?:[ ]{1,2}["'`]|[ ]?\|[ ]?)$""")
_EXPLAINED = re.compile(
    r"(?:\w*ids?|\w*hash|sha\d*|md5|digest|\w*sum|etag|integrity|fingerprint|thumbprint|sig|signature|"
    r"cert|certificate|crt|pub|public|pubkey|publickey|commit|rev|revision|ref|tag|version|build|nonce|cursor|slug|"
    r"class|classname|path|file|filename|image|img|src|href|url|uri|link|data|base64|content|body|challenge|state|"
    r"trace|span|request|code|name|index|version|import|from|require|location|address|addr|host|user|username|"
    r"bytes|buffer|table|constraint|column|seed|salt|iv|x|y|n|e|k|kty|alg|type|key|sub|handle|base|search|examples?|values?|device|verification|jkt|s256|expected|label|string|txt|context|eq|equals?|case|when)$",
    re.IGNORECASE,
)
_LAST_PART = re.compile(r"[A-Z]?[a-z]+[0-9]*$|[A-Z]+[0-9]*$")
_PLAIN_WORD = re.compile(r"(?<!\S)[A-Za-z]?[a-z]{1,15}(?=[\s,.;:!?]|$)")
_QUOTES = ('"', "'", "`")
_LEAST_WORDS = 3  # beside the random one
_LEAST_BARE = 20
_LEAST_PREFIXED = 16
_LEAST_BASE64 = 40
_LEAST_LONG = 60
_SEPARATOR = re.compile("[_.-]")
_NAME_OF_ID = re.compile(
    r"(?:sha|md|crc|hash|rev|commit|u?u?id|guid|ref|tag|branch|version|release|build|patch|pr|issue|img|image|layer|docker|"
    r"container|instance|pod|node|linux|macos|windows|ubuntu|cache|blob|tree|obj|object|file|dir|tmp|temp|job|run|task|msg|"
    r"message|call|tool|toolu|chatcmpl|cmpl|resp|req|request|trace|span|sess|session|user|usr|cus|evt|event|order|item|doc|"
    r"page|conv|thread|asst|batch|snapshot|worker|host|device|dev|pack|idx|index|chunk|bundle|asset|css|style|font|nonce|"
    r"salt|sig|etag|data|table|column|row|record|entry|block|tx|address)\d{0,3}[_.-]",
    re.IGNORECASE,
)
_PREFIX = re.compile(r"[A-Za-z]{2,12}[0-9]?[_-](?:[a-z0-9]{1,6}[_-])?|[A-Za-z][A-Za-z0-9]{0,6}\.(?:[a-z]{2,6}\.)?")
"""How tokens of providers begin: `abc_`, `abc-us-`, `ab.cd.`."""
_GENERATED = re.compile(r"(?=(?:[A-Za-z]*[0-9]+){3})(?=\S{24})[A-Z0-9]*[A-Za-z][A-Za-z0-9]*")
"""What stands behind a prefix: letters with digits here and there."""
_IDENTIFIER = re.compile(
    r"-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$|^[A-Za-z0-9_-]{22}$"
)  # UUIDs, in Base64 too
_PROSE_BEFORE = re.compile(r"(?:^|[A-Za-z,.;:!?][ ]+)[(\"'`]?$")


def random_words(text: str) -> Iterator[Finding]:
    """Yield random words that a name introduces or that stand in a sentence."""
    for match in _WORD.finditer(text):
        word = match.group()
        prefix = _PREFIX.match(word)
        if (
            not _is_generated(word, prefix.end() if prefix else 0)
            or _NAME_OF_ID.match(word)
            or is_placeholder(word)
            or word.startswith(("MII", "AAAA", "LS0t"))
            or _is_encoded(word)
            or _IDENTIFIER.search(word)
            or is_public_key(word)
        ):
            continue
        start, end = match.span()
        if prefix is None and text[start - 1 : start] not in _QUOTES and (word.islower() or word.isupper()):
            continue  # ids in tables and logs
        before = text[max(text.rfind("\n", 0, start) + 1, start - 80) : start]
        named = _NAME.search(before)
        if named:
            last = _LAST_PART.search(named["name"])
            if last is None or _EXPLAINED.match(last.group()):
                continue
        elif len(word) < _LEAST_BARE or not _in_sentence(text, before, start, end):
            continue
        yield Finding(start, end, "secret", "random", word)


def _is_generated(word: str, prefix: int) -> bool:
    """Return whether only a machine writes it. Behind a prefix, a hexadecimal number counts too, and Base64."""
    longest = max(_SEPARATOR.split(word[prefix:].rstrip("=")), key=len)
    if "/" in longest or "+" in longest:
        return prefix > 0 and len(longest) >= _LEAST_BASE64 and is_random(re.sub("[+/]", "", longest))
    if "." in word and not prefix:
        return False
    if prefix and _GENERATED.fullmatch(longest) and (longest.islower() or not is_wordy(longest)):
        return True
    if len(word) >= _LEAST_LONG and is_random(_SEPARATOR.sub("", word)):
        return True
    return is_random(word) or (len(longest) >= (_LEAST_PREFIXED if prefix else _LEAST_BARE) and is_random(longest))


def _is_encoded(word: str) -> bool:
    """Return whether it is the Base64 of a text."""
    try:
        plain = word.rstrip("=")
        return base64.b64decode(plain + "=" * (-len(plain) % 4), altchars=b"-_").decode("ascii").strip().isprintable()
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
