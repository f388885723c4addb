"""Decide whether a value after `password=` or `token:` is a secret, or a placeholder, a word or a piece of code."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from itertools import pairwise

_HOLE = re.compile(
    r"\$\{(?:[^{}\[\]]|\[[^{}\[\]]*\])*(?:\}|$)|\$\([^()]*\)|\{\{[^{}]*\}\}|\{%[^%]*%\}|%\(\w+\)[sdr]|%[sdrv]|<[A-Za-z][^<>]*>|#\{[^{}]*(?:\}|$)|@[A-Z_]+@"
    r"|\{[A-Za-z_][\w.:!\[\]-]*\}|\{[0-9]*\}|%7B\w*%7D|<%[^%]*(?:%>|$)"
)
"""What a template fills in."""
_RUN_BY_SHELL = re.compile(r"\$\([a-z][a-z_-]{2,}(?:\s|$)")
_ESCAPE = re.compile(r"\\u[0-9A-Fa-f]{4}")
_TEMPLATE = re.compile(
    r"\{%|aws4_request|^(?:\\[0-9])?\${1,2}(?:env:)?(?:[A-Z_]+[0-9]*|[A-Z][A-Z0-9]*_[A-Z0-9_]+|[a-z_]+[0-9]*|[A-Za-z][a-z]+(?:[A-Z][a-z]+)*[A-Z]{0,4})$"
    r"|^%[A-Za-z_]+%$|^\{[\w.!:]*\}$|^[*•x.X_#?-]+$|^(.)\1*$|^\[+[A-Za-z_]+(?::[^\]]*)?\]*$|^'?\$\{?[A-Z_]{3,}(?![A-Za-z0-9])"
    r"|^<[a-z]|&lt;|(?i:redacted|sensitive)|\.\.\.$|…|[*xX•]{5}|\[\.\.\.\]|^#{3}[A-Za-z]|^@@"
    r"|^([#*%@!$])\2*[A-Za-z][A-Za-z_ ]*\2+$"
)
_SAMPLE = re.compile(
    r"^(?:your|my|the|a|an|some|new|old|enter|insert|put|change|replace|example|sample|dummy|fake|test|todo|none|null|"
    r"nil|undefined|true|false|redacted|masked|hidden|removed|omitted|placeholder|xxx+)(?:[-_ .]|$)",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"[a-z0-9]+(?:[-_][a-z0-9]+)*[-_](?:access[-_]?key(?:[-_]id)?|api[-_]?key|secret[-_]?key|auth[-_]?token)",
    re.IGNORECASE,
)  # aws_secret_access_key where the key itself should stand
_WORDS = frozenset(
    """password passwd passwort kennwort pass pwd passphrase secret token apikey api_key key string str text bytes int
    integer number bool boolean object array any required optional invalid incorrect wrong missing expired empty unset
    default changeme-please falsch oublié inherit identifier bearer basic oauth oauth2 user username login admin-only
    value variable env environment prompt hash hashed salt encrypted plain plaintext type name field input write read
    refresh access same reset forgot valid disabled enabled unknown argon2 argon2i argon2id bcrypt md5 pbkdf2 scrypt
    sha1 sha256 sha512 ed25519 function undefined symbol deleted client-id client_id x-oauth-basic""".split()
)
_NAMES_ITSELF = re.compile(r"pass(?:word|wd|phrase)?|pwd|(?:private|public)_?key|value\d", re.I)
_TEST_PASSWORD = re.compile(
    r"(?:this|is|my|the|some|test|super|secret|very|strong|good|bad|wrong|root|dev)+pass(?:word|wd)?[0-9]*"
)
"""Passwords of people who try something. `newpassword` and the like are names of fields."""
_NUMBERED = re.compile(r"pass(?:word|wd)?[0-9]{2,}")
_CHAIN = re.compile(r"[&*!]?[A-Za-z_$][\w$]*(?:(?:[?!]{0,2}\.|->|::)[A-Za-z_$][\w$]*)+[!?;]?")
_NAME = r"(?:(?=[a-z0-9_]*[a-z]{3})[a-z][a-z0-9_]+|[a-z_]{3,}|[A-Z_]{3,}|_?[a-z]+(?:[A-Z][a-z]+)+|(?:[A-Z][a-z]+)+)"
_CALL = re.compile(
    rf"[&*!]?(?:\$?\w+(?:\??\.|->|::))*\$?{_NAME}(?:\(|\[[\w\"'$.:+-]*\]|\[\[|\[[A-Za-z_]+(?:[+*-][0-9]+)?$|\{{|<[A-Z]|\[$)"
)
_BRACKETED = re.compile(r"[(\[{<][\w\s.,:|/*?-]*[)\]}>][?*+,;]*")
_BRACKET = re.compile(r"[()\[\]{}<>]")
_ANCHORED = re.compile(r"\^.+\$")  # a whole regular expression
_REST_OF_CODE = re.compile(r"\)[,?.:;]|[\"']?\.\w+\(")  # between two texts
_SLUG = re.compile(
    r"[a-z]+(?:[-_./][a-z]+)*(?:[-_.]?[0-9]{1,8}(?:\.[0-9]+)*)?|[a-z]+[0-9]{0,3}(?:[A-Z][a-z]+[0-9]{0,4})+|"
    r"_?[a-z]+[0-9]{0,2}(?:_[a-z]+[0-9]{0,2})+|[a-z]+[0-9]?-(?:key|secret|token|password)|[a-z]{1,12}-[0-9]{1,8}(?:-[a-z]+){2,}|"
    r"[0-9]{4}_[a-z]+(?:_[a-z0-9]+)*"
)
_VERSION = re.compile(
    r"(?:npm:)?[\^~<>=v ]*[0-9]+(?:\.[0-9x*]+)+(?:[-+.][0-9A-Za-z.-]+)?(?:/go\.mod|\(\S*)?"
)  # what a package needs
_LINK = re.compile(r"\[[^\[\]]+\]\(")  # of Markdown
_ADDRESS = re.compile(r"[a-z0-9]+(?:[._+-][a-z0-9]+)*@[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,6}")  # of e-mail
_EXPRESSION = re.compile(r"&[A-Za-z_][\w.]*$|[A-Za-z_]\w*(?:\[\w*\])?(?:\.[A-Za-z_]\w*)+[(<]")
_FILE = re.compile(
    r"@?[\w./-]+\.(?:pem|key|crt|cer|der|csr|pub|p12|pfx|jks|json|txt|ya?ml|toml|env|conf|cfg|ini|go|py|js|ts|md|sh|rb|rs|"
    r"java|kt|cs|php|html?|xml|sql|log|png|jpe?g|gif|svg|ico)(?:\?\w*)?"
)
_LABEL = re.compile(
    r"(?:(?![ -~])[\W\w]|[ .,'’()!?-])+|[A-Z](?![A-Z0-9])(?:[^\W\d_]|-|[\u0300-\u036f])+"
    r"|[A-Z]{2,6}(?:-[^\W\d_]+)+"
)
"""Words for people: of another script, or one that begins with a capital or as SMTP-Passwort does."""
_IDENTIFIER = re.compile(
    r"[A-Za-z_][A-Za-z0-9_]*[A-Za-z0-9_](?:Secret|Key|Token|Password|Credential|SECRET|KEY|TOKEN|PASSWORD)\w{0,12}"
)
_PATH = re.compile(r"[\w-]{1,40}(?:[/.][\w-]{1,40}){2,}")  # package.module.Name, plugins/auth/migrations
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(?:Z|[+-][0-9:]+)?")
_PUBLIC_KEY = re.compile(
    r"MI[A-Za-z]{0,4}MA0GCSqGSIb3DQEBAQUAA4|MIIB?I[A-Za-z]ANBgkqhkiG9w0BAQEFAAOC|MFkwEwYHKoZIzj0CAQ"
)
"""How the Base64 of a public key of RSA or an elliptic curve begins."""
_SSH_KEYS = ("ssh-", "ecdsa-sha2-", "AAAAB3NzaC1", "AAAAC3NzaC1", "AAAAE2VjZHNh")
_PUBLIC_NAME = re.compile(r"[UAONCX][A-Z2-7]{55}|age1[0-9a-z]{58}")  # public keys of NATS and age
_NUMBER = re.compile(r"0x[0-9A-Fa-f]{1,16}[uUlL]{0,3}|(?:\\x[0-9A-Fa-f]{2})+")  # written for a machine, or bytes
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(?:[_-][A-Z0-9]+)+")  # DB_PASSWORD
_REFERENCE = re.compile(
    r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+:[A-Za-z_]\w*|[a-z][a-z0-9._-]+:[0-9]+(?:\.[0-9]+)+"
)  # package.module:Name, package:1.2.3
_SELECTOR = re.compile(
    r"[#.][a-z]+(?:[-_.#][a-z0-9]+)*|(?=\S*_)[a-z]+(?:[/_][a-z]+)*#[a-z]+(?:_[a-z]+)*|(?=\S*pass|\S*session)[a-z]+(?:[/_-][a-z]+)*[#@][a-z_]+"
)  # of a page, of a route
_JOINED = re.compile(r"[A-Za-z_ .:/|-]*")  # words around the holes of a template
_SYMBOL = r"[&*!@$]*(?:[A-Za-z_]+|[A-Za-z_]*[A-Za-z]{3}[0-9]{1,2}|(?<=[\[(-])[0-9]{1,3})"
_CODE = re.compile(
    rf"(?=@|:|\S*(?:[()\[\]{{}}<>]|::|->))[(\[{{<:*&!\"'-]*{_SYMBOL}(?:[.:!?&*<>()\[\]{{}}|,;'\"=+-]+{_SYMBOL})*[.:!?&*<>()\[\]{{}}|,;'\"=+-]*"
)
"""Words without digits between brackets and other signs of programs: `Option<&str>`, `json!(!hidden)`, `@password`."""
_VARIABLE_NAME = re.compile(
    r"[a-z]+(?:_[a-z]+)+[0-9]?|_[a-z]+(?:[A-Z][a-z]+[0-9]?)+|(?:[A-Z]+[a-z]{2,}){2,}[A-Z]*"
    r"|[a-z]+(?:_[a-z0-9]+)*_(?:password|secret|token|key)"
)
_INSTANCE = re.compile(r"@{1,2}[a-z]\w*(?:\[:?\w+\]|_\w+)")  # @options[:key], @current_key
_OPERATION = re.compile(r"[A-Za-z_][\w.]*(?:(?:&&?|\|\|?|\+|<<|\?|:)!?\w[\w.]*)+")  # flags&passwordFlag, a&&a.b?c:!1
_COMPOSED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")  # kana, Chinese characters, Hangul
_LEAST_FOREIGN = 2  # letters of another script in a label
_PUNCTUATION = frozenset(" ()[]-/.,:'’!?")
_MANY_SIGNS = 5  # different ones, in a value without digits
_LEAST_LETTERS = 4  # that must be left of a value without the holes of a template


def is_placeholder(value: str) -> bool:
    """Return whether a value is `${PASS}`, `<your-password>`, `********`, `None`, the word "password" or the like."""
    if value.lower().strip("\"'") in _WORDS or _NAMED.fullmatch(value):
        return True
    if (sample := _SAMPLE.search(value)) and not is_random(value[sample.end() :]):
        return True  # test_token, but not test_ before a token
    return is_hole(value)


def is_hole(value: str) -> bool:
    """Return whether something else will stand in its place: `${PASS}`, `<password>`, `********`, `$(pass show db)`."""
    if _TEMPLATE.search(value) or value.startswith("$(") or _RUN_BY_SHELL.search(value):
        return True
    if value.startswith("pass:$"):
        return True  # openssl's -passin pass:$PASSWORD
    rest = _ESCAPE.sub("", _HOLE.sub("", value))
    return rest != value and (
        sum(character.isalnum() for character in rest) < _LEAST_LETTERS
        or _JOINED.fullmatch(rest) is not None
        or _FILE.fullmatch(rest) is not None
    )


def entropy(value: str) -> float:
    """Return the entropy of a value, in bits per character."""
    size = len(value)
    return -sum(count / size * math.log2(count / size) for count in Counter(value).values())


def is_password(value: str, *, quoted: bool) -> bool:
    """Return whether a person might have chosen it: a letter with a digit or a sign, or a long quoted word."""
    if not quoted and is_name(value.rstrip(")]},;")) and value[-1] in ")]}":
        return False  # the end of a call or a table
    if len(value) < (4 if quoted else 6) or is_placeholder(value) or not _is_literal(value, quoted):
        return False
    if _SELECTOR.fullmatch(value) or (
        _NAMES_ITSELF.search(value)
        and (_SLUG.fullmatch(value) or _VARIABLE.fullmatch(value))
        and not (quoted and is_test_password(value))
        and not _NUMBERED.fullmatch(value)
    ):
        return False
    if _VERSION.fullmatch(value) or _REFERENCE.fullmatch(value) or _LABEL.fullmatch(value) or _NUMBER.fullmatch(value):
        return False
    if _is_foreign_label(value):
        return False
    if value[0].isupper() and not value.isascii() and _LABEL.fullmatch(unicodedata.normalize("NFD", value)):
        return False
    letter = any(character.isalpha() for character in value)
    digit = any(character.isdigit() for character in value)
    sign = any(not character.isalnum() and character not in "_-./:" for character in value.strip("*_`!?,;()[]{}\"'"))
    if letter and (digit or sign):
        return True
    return quoted and (len(value) >= 8 or (len(value) >= 6 and (digit or value.islower())))


def is_token(value: str, *, quoted: bool = False) -> bool:
    """Return whether a machine generated it: long, letters and digits mixed, unlike words."""
    if len(value) < 12:
        return quoted and len(value) >= 8 and value.isalnum() and _alternates(value) and not is_placeholder(value)
    if is_placeholder(value) or _SLUG.fullmatch(value) or _SELECTOR.fullmatch(value) or not value.isascii():
        return False
    if _TIME.fullmatch(value) or _VERSION.fullmatch(value) or _REFERENCE.fullmatch(value):
        return False
    digits = sum(character.isdigit() for character in value)
    if digits == len(value) or entropy(value) < 3.0 or not _is_literal(value, quoted and digits >= 2):
        return False
    if not quoted and _BRACKET.search(value) and not is_mixed(value):
        return False
    if digits >= 2 or (digits and len(value) >= 24):
        return True
    return is_mixed(value) or is_random(value)


def _is_foreign_label(value: str) -> bool:
    """Return whether it is words in a script other than Latin. Nobody types a password in a script that needs an input
    method, so its letters are enough; in others, digits and signs make a password."""
    if len(_COMPOSED.findall(value)) >= _LEAST_FOREIGN:
        return True
    letters = [character for character in value if character.isalpha()]
    foreign = sum(not unicodedata.name(character, "LATIN").startswith("LATIN") for character in letters)
    others = {character for character in value if not character.isalpha() and not unicodedata.combining(character)}
    return foreign >= _LEAST_FOREIGN and others <= _PUNCTUATION


def is_public_key(value: str) -> bool:
    """Return whether it begins as the Base64 of a public key, or is one of SSH, NATS or age."""
    return (
        value.startswith(_SSH_KEYS) or _PUBLIC_KEY.match(value) is not None or _PUBLIC_NAME.fullmatch(value) is not None
    )


def is_test_password(value: str) -> bool:
    """Return whether it is a password of somebody who tries something: `thisismypassword`."""
    return _TEST_PASSWORD.fullmatch(value) is not None


def is_name(value: str) -> bool:
    """Return whether it is words joined as in the names of programs."""
    return _SLUG.fullmatch(value) is not None


def is_mixed(value: str) -> bool:
    """Return whether capitals or signs alternate as in no word: without digits, this separates tokens from names."""
    turns = sum(left.islower() and right.isupper() for left, right in pairwise(value))
    if len(value) >= 16 and turns >= len(value) / 6 and value.replace("-", "").replace("_", "").isalpha():
        return True
    return (
        len({character for character in value if not character.isalnum() and character not in "_-./: "}) >= _MANY_SIGNS
        and " " not in value
    )


_RUN = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_LONG_RUN = re.compile(r"[A-Z]?[a-z]{3,}")
_NO_HEX = re.compile("[g-zG-Z]")
_HEX = re.compile("(?:0[xX]|[A-Za-z]{2,8}-?)?(?:[0-9a-f]+|[0-9A-F]+)")


def is_random(value: str) -> bool:
    """Return whether letters, capitals and digits alternate as only machines write them. Words and camelCase have long
    runs of one sort; hexadecimal numbers do not count, since most are hashes."""
    sorts = sum(any(map(sort, value)) for sort in (str.islower, str.isupper, str.isdigit))
    signs = sum(not character.isalnum() for character in value)
    if is_wordy(value) or _HEX.fullmatch(value):
        return False  # localJunctionM2MM2M2, 0xD06AAF4C…, Ref-1ac501c9…
    if sorts == 3:
        return len(value) >= 16 and signs <= len(value) / 8 and _alternates(value)
    return sorts == 2 and len(value) >= 24 and not signs and bool(_NO_HEX.search(value)) and _alternates(value, 0.3)


def _is_code(value: str) -> bool:
    return _CODE.fullmatch(value) is not None and (is_wordy(value) or not any(map(str.isdigit, value)))


def is_wordy(value: str) -> bool:
    """Return whether half of it is runs of small letters, as in words and camelCase."""
    return sum(len(word) for word in _LONG_RUN.findall(value)) * 2 >= len(value)


def _alternates(value: str, least: float = 0.36) -> bool:
    return any(map(str.isdigit, value)) and len(_RUN.findall(value)) >= len(value) * least


def _is_literal(value: str, quoted: bool) -> bool:
    """Return whether a value is neither code nor a path."""
    if value.startswith(("/", "./", "~/", "../", "#/", "@/", "</", "urn:", "arn:", "->(")) or "://" in value:
        return False
    if _LINK.match(value) or _ADDRESS.fullmatch(value):
        return False
    if (
        _FILE.fullmatch(value)
        or value.startswith("--")
        or (value.endswith(("/", "-", "_")) and _SLUG.fullmatch(value[:-1]))
    ):
        return False
    if is_public_key(value):
        return False
    if _PATH.fullmatch(value.rstrip("/")) and is_wordy(value):
        return False
    if _ANCHORED.fullmatch(value) and _BRACKET.search(value):
        return False
    if _REST_OF_CODE.match(value):
        return False
    if quoted:
        return True
    if value.startswith("[]") or _EXPRESSION.match(value) or _IDENTIFIER.fullmatch(value):
        return False
    if (
        _VARIABLE_NAME.fullmatch(value)
        or _INSTANCE.fullmatch(value)
        or (_OPERATION.fullmatch(value) and is_wordy(value))
    ):
        return False
    if _CHAIN.fullmatch(value):
        if _NAMES_ITSELF.search(value):
            return False
        return sum(character.isdigit() for character in value) >= 4 and entropy(value) >= 3.5
    return not (_CALL.match(value) or _BRACKETED.fullmatch(value) or _is_code(value))
