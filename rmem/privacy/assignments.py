"""Detect secrets by their surroundings: `password=…`, `"api_key": "…"`, `Authorization: Bearer …`."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from .findings import Finding
from .plausibility import (
    is_hole,
    is_mixed,
    is_name,
    is_password,
    is_placeholder,
    is_random,
    is_test_password,
    is_token,
    is_wordy,
)

# What the names of secrets contain, in lower case, and the pattern of the rest of the name. _CHOSEN are names of values
# that people choose, _MADE of values that machines generate.
_CHOSEN = {
    "pass": r"pass(?:phrase|word|wort|wd|e)?", "kennwort": "", "pw": r"pwd?(?![a-z])", "psw": "",
    "contrase": r"contrase[ñn]a", "clave": "", "senha": "", "parola": "", "wachtwoord": "", "lösenord": "", "hasło": "",
    "şifre": "", "пароль": "", "密码": "", "密碼": "", "口令": "", "パスワード": "", "비밀번호": "",
    "identified by": "", "psk": r"psk(?![a-z])",
}  # fmt: skip
_MADE = {
    "secret": r"secret(?:[_-]?(?:access[_-]?)?key(?:[_-]?base)?)?", "token": "", "key": "", "_salt": "",
    "cred": r"cred(?:ential)?s?(?![a-z])", "_auth": r"_auth(?![a-z])", "_pat": r"_pat(?![a-z])", "login": "",
}  # fmt: skip
_STEMS = tuple(
    (stem, stems is _CHOSEN, re.compile(form or re.escape(stem)))
    for stems in (_CHOSEN, _MADE)
    for stem, form in stems.items()
)
_KEY_OF = re.compile(
    r"(?:secret|query|write|read|admin|server|client|service|storage|shared|hubspot|api|access|auth|account|signing|"
    r"encryption|master|license|app|private|logged_in|nonce|consumer)[_ -]?$"
)
_SHORT = frozenset(("pass", "pw", "pwd", "psw", "psk", "clave", "parola"))  # words that end other words too
_NOT_A_SECRET = re.compile(
    r"(?:next|page|encrypted|wrapped|continuation|pagination|skip|delta|authenticity|x-amz|cursor|public|publickey|pub|primary|foreign|csrf(?:middleware)?|xsrf|cancellation|"
    r"(?<![A-Za-z])(?:sync|max|min|num|total|pad|eos|bos|unk|stop|start|end|first|last|new|per))[_ -]?$",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"""(?:[_-](?:prod|dev|stag|test|live|old|new|backup|main|primary|default|admin|root|local|secure)[a-z]{0,9})?
    (?:[_ -]?[0-9]{1,3}(?![0-9A-Za-z]))?(?![A-Za-z0-9_-])          # the key ends here
    (?:\\?["'`]?\]?(?:\[[0-9]*\])?(?:[ \t]{0,20}|\n)(?::?\s{0,3}(?:str|String|string)\s{0,3}(?==))?  # password: str = …
       (?:=>|:{1,3}=|\?=|\.=|\+=|(?P<compared>!==?|={2,3})|=|:|：)[ \t]{0,20}(?:\n[ \t]{1,20}(?=["'`]))?(?:@(?=["']))?
      |[ ]-[ ](?=["'])|[ ]?(?P<cell>\|)[ ]?(?=[^\s|()]{12})                   # token - '…', token | …
      |(?P<pair>\\?["']\s{0,3},\s{0,3}'?)(?=\\?["'])                        # define('KEY', '…')
      |(?P<spaced>[ \t]+)(?=["'])                                         # WITH PASSWORD '…'
      |["']\s+value\s{0,3}=\s{0,3}(?=["'])                        # <add key="Password" value="…"
      |["']\s{0,3}\{[^{}]{0,80}?\bdefault\s{0,9}=\s{0,3}(?=["'])     # variable "token" { default = "…"
      |>\s{0,20}(?=[^<>\s]+\s{0,20}</)                            # <password>…</password>
      |>\{(?:[\w-]{1,40}[ ]){0,2}(?=[^<>\s{}]+\}</)              # <secret>{…}</secret>
      |[ ](?:for|für|pour|para|per|of|von)[ ][\w@.'-]{1,30}(?:[ ][\w@.'-]{1,20})?:\s{1,3}   # password for bob: …
      |["']?\n\s{0,20}(?:-\s)?["']?value["']?\s{0,3}[:=]\s{0,3}   # name: KEY / value: …
    )(?!\n)
    (?:(?:[bfru]{1,2})?(?P<mark>\\?["'`])[ ]?(?P<quoted>(?:(?!(?P=mark))[^\n]){1,2048}?)[ ]?(?P=mark)
      |(?P<bare>[^\s"'`\\]{4,512}))""",
    re.VERBOSE,
)
_SPACED = re.compile(r"""\s+(?:[057]\s+)?["'`]?(?P<bare>[^\s"'`\\]{4,512})""")
_IN_SENTENCE = re.compile(
    r"""(?:[ ](?:is|was|now|to|ist|lautet|war|es|est|é|è|jest|:)){0,2}[ ]
    (?P<open>["'`„“«])?(?P<bare>[^\s"'`“”»\\]{6,128})""",
    re.VERBOSE,
)
_MADE_AFTER = re.compile(r"[ ](?P<bare>[A-Za-z0-9_-]{16,512})(?=[\s,;)]|\.(?:\s|$)|$)")
_RANDOM = re.compile(
    r"(?!AAAA|MII|sha\d|LS0tLS1CRUdJTiBDRVJU)(?=(?:[^0-9]*[0-9]){3})(?=(?:[^A-Za-z]*[A-Za-z]){8})(?=[^g-zG-Z]*[g-zG-Z])"
    r"[A-Za-z0-9_+/.~-]{20,512}={0,2}"
)
"""What only a machine generates, except hashes, UUIDs and public keys: a secret after any name that ends in "key"."""
_JOINED_WORDS = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)+")  # openssl_x509_checkpurpose
_LOOKED_UP = re.compile(
    r"(?:cache|sort|partition|row|object|group|index|map|hash|lookup|routing|idempotency|unique|query|storage|"
    r"translation|message|document|public|primary|foreign|host|ssh|config|item|react|track|meta|block|node|dedup|s3|blob|file|"
    r"event|state|session|search|column|distribution|job|path|image|answer|range|[gp]pg|pgp|kms|sheet|data|results?|record|alert|theme|media|player|site|captcha|pub|"
    r"websocket)[_ .-]?$|[\"']$"
)
"""What keys that are not secret are called."""
_IN_PROSE = re.compile(r"[^\W\d_][^\W\d]*(?:[·'’-][^\W\d]+)?(?:[ ][^\W\d_][\w'’-]*){2}")
_URN = re.compile(r":[a-z_]*:[0-9A-Za-z]")
_NEXT_LABEL = re.compile(r"[a-z]+[0-9]?[a-z]*:[ ]")
_ACTION = re.compile(r"(?<![a-z])(?:update|reset|change|forgot|show|hide|require|check|set|has|is|use)_$")
_NAMED_KEY = re.compile(r"\w[._-]?$")
_MACHINE_MADE = re.compile(
    r"(?:[a-z]{2,8}[-_])?[0-9a-f]{32,}(?:-[0-9a-f]{8,})*|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?=\S*[0-9]\S*[0-9])(?=\S*[g-zG-Z])[A-Za-z0-9_-]{40,}"
)
_WORD = re.compile(r"[a-z][a-z-]{4,29}[a-z](?=[\"'`])")
_PLACE = re.compile("pass|secret|token|key", re.IGNORECASE)
_ENDS = re.compile(
    r"[&;](?=[\w.-]+=)|[;,](?=[\w.-]+[=:]|$)|</|<(?=[A-Za-z]+>)|\|{1,2}$|\|(?=[A-Za-z]\w*[:=])|&(?=amp;)"
)
"""Where a value without quotes ends although no blank follows: a=b&c=d, a=b;c=d, (a=b, …), <a>b</a>."""
_QUERY = re.compile(r"[?&][\w.-]*$")
_COMPARED = re.compile(r"""(["'])([^"'\n]{4,128})\1\s{0,3}[!=]==?\s{0,3}[\w.]{0,40}$""")  # "…" == password
_FLAG = re.compile(r"(?:^|\s)--?[a-z-]*$", re.IGNORECASE)  # --password value
_SETTING = re.compile(r"\brequire$|\b(?:login|username)\s+\S+\s+$")
"""requirepass value, .netrc, a router's username x password 0 value"""
_CALL = re.compile(r"\(\s*[\"'][\w.-]*$")  # define('AUTH_KEY', '…')
_SETS = re.compile(r"(?i:define|set\w*|put\w*|env\w*|add\w*|fill\w*|type|append|header|property)$")
_LEAST_IN_CALL = 6
_LEAST_NAME = 6
_CHOSEN_WORDS = ("password", "secret", "passwd", "passphrase")  # they may be a password too
_LEAST_DIGITS = 4
_GROUPED = re.compile(r"(?:(?=[A-Z]*[0-9])[A-Z0-9]{4,12}-?){3,8}")  # ABC1234-GHI5678-JKL9012
_IN_URL = re.compile(r"://[^\s/]*$")
_IS = re.compile(r" (?:(?:is|was|ist|lautet|es|est|é|è|jest)(?: now|:)?|(?:changed |reset |set )?to) ")
_HEADER = re.compile(r"\b(Bearer|Basic|token|Token|(?<=uthorization: )[A-Z]{3,12})[ \t]+([A-Za-z0-9._~+/=-]{12,4096})")
_CREDENTIAL = re.compile(
    r"""\b[A-Z]\w*(?:Credentials?|Auth)\(\s{0,9}["'][^"'\n]{1,64}["']\s{0,3},\s{0,9}(["'])(?P<value>[^"'\n]{4,128})\1"""
)
"""NetworkCredential("user", "…"), HTTPBasicAuth("user", "…")"""
_CONNECTION = re.compile(
    r"""(?:^|["'\s])
    (?=[^\n"']{0,400}?\b(?:Server|Host|Data[ ]?Source|Provider|Driver|Database|Initial[ ]Catalog|U(?:ser[ ]?)?Id)=)
    (?:[^\n"';=]{2,40}=[^\n"';]{0,200};){1,13}?[ ]?(?:Password|Pwd)=(?P<value>[^\s;"'$%<{(*\#][^\s;"']{3,127})""",
    re.IGNORECASE | re.VERBOSE,
)
"""Server=…;User Id=…;Password=…; of ODBC and ADO.NET, where everything is a password but what a template fills in."""
_SET = re.compile(
    r"""(?:^[ \t]*(?:\#[ \t]*)?(?:(?:export|ENV|SET)[ ]+|-[ ]+["']?)?|[ ](?:-e|--env)[ =]["']?)
    (?:[A-Z][A-Z0-9_]*PASS(?:W(?:OR)?D|PHRASE)?(?:_(?!SCHEME|HASH|FILE|TYPE)[A-Z0-9]+)?|(?<=-[ ])[a-z_]+_password)=
    (?P<value>[A-Za-z][\w.-]{5,63})["']?(?:[ \t]*(?:\#[^\n]*)?$|(?=[ ]))""",
    re.MULTILINE | re.VERBOSE,
)
"""DB_PASSWORD=… as a line of a file of environment variables, an item of a list or an option `-e`, where words without
quotes are texts and not names."""
_SETTINGS = re.compile(
    r"""^[ \t]*(?:user(?:[_-]?name)?|login|uid)[ \t]*=[ \t]*[\w@-]+[ \t]*\n(?:[ \t]*(?://|\#|;)[^\n]*\n){0,3}
    [ \t]*(?:password|passwd|pass|pwd)[ \t]*=[ \t]*(?P<value>[A-Za-z][\w-]{5,63})[ \t]*$""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
"""user = … / password = … in a file of settings."""
_PAIRED = re.compile(
    r"""\b(?P<key>user(?:_?name)?|login)["']?(?:\s{0,3}(?::|=>?)\s{0,3}|\s{1,3})(["'])(?P<user>[^"'\n]{2,64})\2[,;)]?\s{1,40}
    ["']?(?:pass(?:word|wd)?)["']?(?:\s{0,3}(?::|=>?)\s{0,3}|\s{1,3})(["'])(?P<value>[a-z][^"'\n]{3,63})\4""",
    re.IGNORECASE | re.VERBOSE,
)
"""username: "…", password: "…": beside a user, every quoted word is a password unless both are names of fields."""
_NEXT_LINE = re.compile(
    r"(?:[Pp]ass(?:word|phrase|code)|[Tt]oken|[Ss]ecret|API key)\b[^\n:]{0,60}:[ \t]*\n\s{0,20}"
    r"(?P<value>\S{8,256})[ \t]*(?:\n|$)"
)
"""Please use the following password: / … alone in its line."""
_NAMED_VALUE = re.compile(
    r"""(?<![A-Za-z0-9])(?!foreign|primary|public|unique)[A-Za-z][A-Za-z0-9]{2,30}[ _.-]?
    (?:(?:secret|private|access|auth|api)(?:[ _.-]?(?:key|token|code))?|token|(?-i:KEY))
    (?:-|[.]|[ ]|\n)(?P<value>[A-Za-z0-9]{16,128}={0,2}|[0-9A-Za-z]{4,12}(?:-[0-9A-Za-z]{4,12}){2,7})(?![\w/.:=+-])""",
    re.IGNORECASE | re.VERBOSE,
)
"""stripo-SECRET-…, nimble ACCESS …: a product, a word for a secret and what only a machine generates."""
_USER = re.compile(
    r"""(?:^|\s)(?:-u|--user)[ =]["']?(?!\w+://)([^\s"'`:$]{1,64}:[^\s"'$]{4,128})(?=["'\s]|$)""", re.MULTILINE
)
_NO_USER = re.compile(r"[0-9]+:[0-9]+|[+%].*|[A-Z_]+:[A-Z_]+")  # ids of a user and a group, a date, a template
_OWNER = re.compile(r"(\w+):\1(?::.*)?")  # docker exec -u user:group
_DOCKER = re.compile(r'"auth"\s*:\s*"([A-Za-z0-9+/=]{8,512})"')
_COMMAND = re.compile(
    r"""(?:\bsshpass\s+-p\s*|\bredis-cli\b[^\n]{0,80}?\s-a\s+|\b(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n]{0,120}?\s-p
      |\b(?:docker|podman|az|oc|helm)\s[^\n]{0,40}?\blogin\b[^\n]{0,120}?\s-p\s+
      |\b(?:psexec|rdesktop|mongo(?:sh|dump|restore)?|sqlcmd|bcp|osql)\b[^\n]{0,120}?\s-[pP]\s*
      |\bldap[a-z]+\b[^\n]{0,160}?\s-w\s*|\bsmbclient\b[^\n]{0,120}?\s-U\s*[^\s%]{1,64}%|\blftp\b[^\n]{0,80}?\s-u\s+[^\s,]{1,64},
      |\bhtpasswd\s+-[a-zB]*b[a-zB]*\s+\S{1,128}\s+\S{1,64}\s+|\brabbitmqctl\s+(?:add_user|change_password)\s+\S{1,64}\s+
      |\bnet\s+user\s+\S{1,64}\s+(?=\S+\s+/add)|\bnet\s+use\s[^\n]{0,100}?\s(?=\S+\s+/user:)|\b[wx]?freerdp\b[^\n]{0,80}?\s/p:
      |\bsqlplus\s+[^\s/]{1,64}/(?=[^\s@]+@)|\becho\s+(?=\S+\s*\|\s*sudo\s+-S)
      |\bPASSWORD\(\s*(?=')
      |\s--?u(?:ser(?:-?name)?)?[ =][^\s$<]{1,64}\s[^\n]{0,80}?--?p(?:assword|asswd)[ =](?=[a-zA-Z0-9]+(?:\s|$))
    )["']?(?P<value>(?!\\\\)[^\s"'$]{4,128})""",
    re.VERBOSE,
)
"""Commands that take a password as an argument that is not named so."""
_COMMANDS = (
    "sshpass", "redis-cli", "mysql", "mariadb", "login", "psexec", "rdesktop", "mongo", "sqlcmd", "bcp", "osql", "ldap",
    "smbclient", "lftp", "htpasswd", "rabbitmqctl", "net us", "freerdp", "sqlplus", "sudo -s",
    "password(", "-password", "-passwd",
)  # fmt: skip
_SECURE_STRING = re.compile(r"""ConvertTo-SecureString\s+(?:-String\s+)?(["'])(?P<value>[^"'\n]{4,128})\1""")
_JSON_WEB_KEY = re.compile(
    r"""(?<![\w-])["']?(?:d|k|p|q|dp|dq|qi)["']?\s{0,3}:\s{0,9}["'](?P<value>[A-Za-z0-9_-]{20,2048})["']"""
)
"""The parts of a JSON web key that are not public."""
_SIGNATURE = re.compile(r"[?&]sig=(?P<value>[A-Za-z0-9%+/=_-]{40,200})")
_COOKIE = re.compile(r"(?:Set-)?Cookie:[^\n]*", re.IGNORECASE)
_SESSION = re.compile(r"\b[\w.-]*(?:sess|sid|auth|token|jwt)[\w.-]*=([^;\s]{12,4096})", re.IGNORECASE)


def assigned_secrets(text: str) -> Iterator[Finding]:
    """Yield the values of keys such as `password` that look like secrets."""
    lowered = text.lower()
    if len(lowered) != len(text):  # İ grows when it is lowered
        lowered = "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in text)
    for stem, chosen, form in _STEMS:
        at = lowered.find(stem)
        while at >= 0:
            key = form.match(lowered, at)
            at += len(stem)
            if key:
                value = _find_value(text, key, chosen)
                if value and (stem != "key" or _is_secret_key(lowered, key.start(), text[value.start : value.end])):
                    yield value
                    at = max(at, value.end)  # a value may stand before its name
            at = lowered.find(stem, at)
    if "earer " in text or "asic " in text or "uthorization" in text:
        yield from _headers(text)
    if '"auth"' in text:
        for match in _DOCKER.finditer(text):
            if _is_basic(match.group(1)):
                yield Finding(match.start(1), match.end(1), "secret", "basic", match.group(1))
    for words, pattern, counts in _FORMS:
        if any(word in lowered for word in words):
            for match in pattern.finditer(text):
                if counts(match["value"]):
                    yield Finding(*match.span("value"), "secret", "assignment", match["value"])
    if "pass" in lowered and ("user" in lowered or "login" in lowered):
        for match in _PAIRED.finditer(text):
            if not _is_field(match):
                yield Finding(*match.span("value"), "secret", "assignment", match["value"])
    if "-u" in text:
        for match in _USER.finditer(text):
            password = match.group(1).partition(":")[2]
            if (
                not _NO_USER.fullmatch(match.group(1))
                and not is_placeholder(password)
                and not (
                    _OWNER.fullmatch(match.group(1)) and "curl" not in text[max(0, match.start() - 200) : match.start()]
                )
            ):
                yield Finding(match.start(1), match.end(1), "secret", "user_option", match.group(1))
    if "ookie" in lowered:
        for line in _COOKIE.finditer(text):
            for match in _SESSION.finditer(text, line.start(), line.end()):
                if is_token(match.group(1)):
                    yield Finding(match.start(1), match.end(1), "secret", "cookie", match.group(1))


def _is_secret_key(lowered: str, at: int, value: str) -> bool:
    """Return whether the "key" at this place names a secret, by the words before it or by its value."""
    if _KEY_OF.search(lowered, max(0, at - 12), at):
        return True
    if lowered[at - 1 : at] in ("?", "&") and "=" not in value:
        return len(value) >= 16  # of a URL
    if _LOOKED_UP.search(lowered, max(0, at - 14), at):
        return False
    if _is_random(value):
        return True
    named = _NAMED_KEY.search(lowered, max(0, at - 2), at)  # a hash after "key" alone is most likely looked up
    return named is not None and _MACHINE_MADE.fullmatch(value) is not None


def _is_plain_word(value: str) -> bool:
    """Return whether an unquoted word is a value, and not a name, a label or a placeholder."""
    if value[0].isupper() and value.isalpha() and not value.isupper():
        return False
    return not is_placeholder(value) and (is_test_password(value) or not (is_name(value) and _PLACE.search(value)))


def _is_field(pair: re.Match[str]) -> bool:
    """Return whether a user and a password are the names or types of fields."""
    user, value = pair["user"].lower(), pair["value"]
    if user == pair["key"].lower() or user in ("string", "text", "user name", "username") or value[0].isupper():
        return True
    return value.lower() != "password" and not is_password(value.replace(" ", "-"), quoted=True)


def _is_generated(value: str) -> bool:
    """Return whether only a machine writes it: a UUID, a long hexadecimal number, or letters and digits at random."""
    digits = sum(character.isdigit() for character in value)
    if is_placeholder(value) or digits < _LEAST_DIGITS or digits == len(value):
        return False
    return (
        _MACHINE_MADE.fullmatch(value) is not None
        or is_random(value.rstrip("="))
        or (_GROUPED.fullmatch(value) is not None and not any(map(str.islower, value)))
    )


_FORMS = (
    (
        ("credential(", "credentials(", "auth("),
        _CREDENTIAL,
        lambda value: is_password(value, quoted=True) and not (is_name(value) and any(map(str.isupper, value))),
    ),
    (("password=", "pwd="), _CONNECTION, lambda value: True),
    (_COMMANDS, _COMMAND, lambda value: is_password(value, quoted=False) or _is_plain_word(value)),
    (("securestring",), _SECURE_STRING, lambda value: not is_hole(value)),
    (("kty",), _JSON_WEB_KEY, lambda value: True),
    (("sig=",), _SIGNATURE, is_token),
    (("secret", "private", "access", "auth", "api", "token", "key"), _NAMED_VALUE, _is_generated),
    (("pass",), _SET, _is_plain_word),
    (("pass", "pwd"), _SETTINGS, _is_plain_word),
    (("password", "passphrase", "passcode", "token", "secret", "api key"), _NEXT_LINE, is_token),
)
"""Words of which one must be in the text, a pattern, and a test of its value."""


def _find_value(text: str, key: re.Match[str], chosen: bool) -> Finding | None:
    start, end = key.span()
    if key.group() in _SHORT and start and text[start - 1].isalpha() and not _begins(text, start):
        return None  # compass, but dbPass and requirepass
    if (
        text[end : end + 2] in (":+", ":?")
        or text[start - 2 : end].lower() == "${pwd"
        or (key.group() == "psk" and text[start - 1 : start] in ("!", "+", "-", ":"))
    ):
        return None  # ${PASSWORD:+given} of a shell, a list of ciphers
    if not chosen and _NOT_A_SECRET.search(text, max(0, start - 14), start):
        return None
    if text[start - 1 : start] in ("[", "=") and text[end : end + 1] == "]":
        return None  # zones[token] = …, [type=password]:hover
    if text[start - 4 : start] == "--- ":
        return None  # --- PASS: TestName
    if (text[start - 1 : start] == ":" and text[end : end + 1] == ":") or _URN.match(text, end):
        return None  # urn:secret:name, Password::min(2), id-token:private:…
    if text[end : end + 1] == ":" and _IN_URL.search(text, max(0, start - 80), start):
        return None  # the user of a URL
    match = _TAIL.match(text, end)
    in_sentence = False
    if match is None:
        before = text[max(0, start - 80) : start]
        if _FLAG.search(before) or _SETTING.search(before):
            match = _SPACED.match(text, end)
        elif _IS.match(text, end) and not (key.group() == "pass" and text.startswith(" to ", end)):
            match, in_sentence = _IN_SENTENCE.match(text, end), True
        elif (made := _MADE_AFTER.match(text, end)) and _is_made(made["bare"]):
            match = made
        elif not text[end : end + 1].isalnum() and (compared := _COMPARED.search(text, max(0, start - 180), start)):
            first, last = compared.span(2)
            return _secret_finding(text, first, last, chosen, True, key.group())
    elif match["pair"] and text[start - 1 : start] == "-" and key.group() in _SHORT:
        return None  # ("uid-pw", "…")
    elif match["pair"] and not _is_argument(text, start, match["quoted"] or "", chosen):
        return None
    elif (
        match["spaced"]
        and key.group() not in ("password", "passwd", "identified by")
        and not _is_made(match["quoted"] or "")
    ):
        return None  # cannot pass 'x'
    if match is None or (chosen and match.groupdict().get("cell")):
        return None
    if chosen and _ACTION.search(text, max(0, start - 9), start):
        return None  # update_password == "always", "reset_password": "forms.Reset"
    quoted = match.groupdict().get("quoted") is not None
    first, last = match.span("quoted" if quoted else "bare")
    if not quoted:
        if _NEXT_LABEL.match(text, first):
            return None  # password: debug2: …
        if chosen and not in_sentence and _IN_PROSE.match(text, first):
            return None  # confirm_password: Enter it again
        last = _value_end(text, first, last, _QUERY.search(text, max(0, start - 40), start) is not None)
    if quoted and _names_itself(text, end, text[first:last]):
        return None  # ldapPassword = "LDAPPassword"
    if (
        quoted
        and match.groupdict().get("compared")
        and (chosen or key.group() == "secret")
        and _WORD.match(text, first)
    ):
        return (
            Finding(first, last, "secret", "assignment", text[first:last]) if _is_plain_word(text[first:last]) else None
        )
    if in_sentence and not chosen and not _is_made(text[first:last]):
        return None  # the token is expired
    if in_sentence and chosen and match["open"] and _WORD.match(text, first) and _is_plain_word(text[first:last]):
        return Finding(first, last, "secret", "assignment", text[first:last])  # the password is "centipede"
    return _secret_finding(text, first, last, chosen, quoted, key.group(), in_sentence)


def _names_itself(text: str, end: int, value: str) -> bool:
    """Return whether a value is the name before it, or the last words of it."""
    value = value.rpartition(":")[2]  # iam:ChangePassword
    if len(value) < _LEAST_NAME or not value.isidentifier() or is_test_password(value):
        return False
    name = text[max(0, end - 60) : end].lower().replace("_", "")
    return name.endswith(value.lower().replace("_", "")) and value.lower() not in _CHOSEN_WORDS


def _is_argument(text: str, start: int, value: str, chosen: bool) -> bool:
    """Return whether a name at this place and a value are arguments of a call: define('AUTH_KEY', '…')."""
    call = _CALL.search(text, max(0, start - 40), start)
    if call is None:
        return False  # a list of words
    if not chosen or _SETS.search(text, max(0, call.start() - 24), call.start()):
        return True
    # cipher('password', 'aes128'), Keyword("PASSWORD", "non-reserved")
    return len(value) >= _LEAST_IN_CALL and not is_name(value) and not value.isalpha()


def _is_random(value: str) -> bool:
    plain = value.replace("-", "").replace("_", "")
    if _RANDOM.fullmatch(value) and not (_JOINED_WORDS.fullmatch(value) and is_wordy(value)):
        return True
    return is_random(value) or (plain.isalnum() and is_mixed(value))


def _is_made(value: str) -> bool:
    return _is_random(value) or _MACHINE_MADE.fullmatch(value) is not None


def _secret_finding(
    text: str, first: int, last: int, chosen: bool, quoted: bool, key: str, in_sentence: bool = False
) -> Finding | None:
    value = text[first:last]
    # "!" may end the sentence or the password; the finding covers it in any case.
    trimmed = value.rstrip("!?") if in_sentence else value
    return Finding(first, last, "secret", "assignment", value) if _is_secret(trimmed, chosen, quoted, key) else None


def _begins(text: str, start: int) -> bool:
    """Return whether a word begins here although a letter precedes it."""
    camel = text[start].isupper() and text[start - 1].islower()
    return camel or text[max(0, start - 7) : start].lower().endswith(("require", "store", "key", "ssh"))


def _is_secret(value: str, chosen: bool, quoted: bool, key: str) -> bool:
    if "-----BEGIN " in value:
        return False  # a key with a name of its own
    if chosen:
        return is_password(value, quoted=quoted) and (" " not in value or key == "passphrase")
    if " " in value:
        return len(value) >= 40 and not _is_prose(value) and is_token(value, quoted=quoted)
    if key in ("login", "_pat"):
        return _MACHINE_MADE.fullmatch(value) is not None and is_token(value, quoted=quoted)
    if is_token(value, quoted=quoted):
        return True
    if "secret" not in key or len(value) < 8 or not value.isascii() or not is_password(value, quoted=False):
        return False
    return quoted or (any(character.isdigit() for character in value) and not is_name(value))


def _is_prose(value: str) -> bool:
    """Return whether most of its words have letters alone."""
    words = value.split()
    return sum(map(str.isalpha, words)) * 2 > len(words)


def _value_end(text: str, first: int, last: int, in_query: bool) -> int:
    """Return the end of an unquoted value, without punctuation or a closing bracket after it."""
    stop = _ENDS.search(text, first + 1, last)
    last = stop.start() if stop else last
    if in_query:
        last = min(at for at in (text.find("&", first, last), last) if at >= 0)
    while last > first and (text[last - 1] in ".,:;" or _closes(text, first, last)):
        last -= 1
    return last


def _closes(text: str, first: int, last: int) -> bool:
    """Return whether the last character closes a bracket that was opened before the value, in its line."""
    opening = _BRACKETS.get(text[last - 1])
    if opening is None or text.count(opening, first, last) >= text.count(text[last - 1], first, last):
        return False
    line = max(text.rfind("\n", 0, first), first - 200, 0)
    return opening in text[line:first]


_BRACKETS = {")": "(", "]": "[", "}": "{", ">": "<"}


def _headers(text: str) -> Iterator[Finding]:
    for match in _HEADER.finditer(text):
        scheme, value = match.groups()
        if scheme == "Basic" and not _is_basic(value):
            continue
        if scheme != "Basic" and not is_token(value.rstrip(".")):
            continue
        end = match.start(2) + len(value.rstrip("."))
        yield Finding(match.start(2), end, "secret", scheme.lower(), text[match.start(2) : end])


def _is_basic(value: str) -> bool:
    try:
        return ":" in base64.b64decode(value, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return False
