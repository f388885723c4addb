"""Detect e-mail addresses, IP and MAC addresses, and the credentials inside URLs."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from .findings import Finding
from .plausibility import is_hole

# E-mail

_LETTERS = r"A-Za-z0-9\u00c0-\u024f"
_LOCAL = re.compile(rf"(?<![{_LETTERS}._%+-])[{_LETTERS}_+](?:[{_LETTERS}._+'-]{{0,62}}[{_LETTERS}_+-])?$")
_DOMAIN = re.compile(
    rf"((?:[{_LETTERS}](?:[{_LETTERS}-]{{0,61}}[{_LETTERS}])?\.){{1,8}}([A-Za-z\u00c0-\u024f]{{2,18}}))(?![{_LETTERS}_-])"
)
_AT = re.compile("@|%40")
# Endings of more than two letters are taken from a list, because `a@b.reshape` and `logo@2x.png` are no addresses.
_ENDINGS = frozenset(
    """com org net edu gov mil int info biz name pro aero coop museum mobi travel jobs post tel xxx asia cat
    app dev page new cloud online site website store shop tech team work works email mail digital agency media studio
    design blog wiki news live life world today company group network systems solutions services support software
    consulting ventures capital finance bank insurance legal law health care clinic dental doctor hospital school
    academy university college education institute foundation science energy engineering expert global international
    center city berlin hamburg koeln london paris wien tokyo nyc amsterdam zone space host hosting press social video
    photo photos gallery art music film games game fun club community church house homes estate rent restaurant cafe
    bar pub wine beer pizza coffee kitchen bike cars auto taxi tours holiday events party vip one top xyz win bid
    trade market markets money cash credit loan fund gmbh ltd inc llc limited partners holdings enterprises
    industries technology computer codes run build tools chat example test invalid local internal""".split()
)
_IN_URL = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#]*$", re.IGNORECASE)


def emails(text: str) -> Iterator[Finding]:
    for at in _AT.finditer(text):
        right = _DOMAIN.match(text, at.end())
        left = _LOCAL.search(text, max(0, at.start() - 65), at.start()) if right else None
        if right and left and _is_email(text, left.start(), right):
            canonical = f"{left.group()}@{right.group()}".lower()
            yield Finding(left.start(), right.end(), "email", "email", canonical)


def _is_email(text: str, start: int, domain: re.Match[str]) -> bool:
    ending = domain.group(2).lower()
    if len(ending) > 2 and ending.isascii() and ending not in _ENDINGS:
        return False
    if _IN_URL.search(text, max(0, start - 300), start):
        return False  # the user of a URL
    after = text[domain.end() : domain.end() + 2]
    # git@host.com:team/repo, a@b.method(), a URL's user and password
    return not ((after[:1] == ":" and after[1:].isalpha()) or after[:1] in ("(", "@"))


# Credentials in URLs

_URL = re.compile(r"(?<=://)([^\s/:@?#\"'<>`]{0,128}):([^\s\"'<>`]{1,256})@(?=[\w\[$-])")


_HOST = re.compile(r"\.(?:[0-9]{1,3}|com|net|org|io|dev|local|tld|example)$")
_IN_DOCUMENTS = re.compile(
    r"(?:(?:your|my)[_-]?)?(?:user(?:_?name)?|login|name|usr)?:(?:(?:your|my)[_-]?)?(?:password|passwd|passwort|pass|pwd)"
    r"|(?-i:[A-Z_]+:[A-Z_]+)|\w+_key_id:\w+_key",
    re.IGNORECASE,
)
"""The words user and password themselves."""
_NO_PASSWORD = ("github://", "gitlab://")  # fsspec's github://organization:repository@commit


def url_credentials(text: str) -> Iterator[Finding]:
    for match in _URL.finditer(text):
        password = match.group(2)
        before = password.split("/", 1)[0]
        if "/" in password and (before.isdigit() or "@" in before):
            if "@" not in before:
                continue  # a port and a path
            password = before[: before.rindex("@")]
        if password.rstrip("#?\\:@").isdigit() and _HOST.search(match.group(1)):
            continue  # a host and its port before the user's end: what is meant to confuse
        if (
            is_hole(password)
            or _IN_DOCUMENTS.fullmatch(f"{match.group(1)}:{password}")
            or "[" in match.group(1)
            or text.endswith(_NO_PASSWORD, 0, match.start(1))
        ):
            continue
        end = match.start(2) + len(password)
        yield Finding(match.start(1), end, "url_credentials", "url", text[match.start(1) : end])


# IP

_V4 = re.compile(r"[0-9](?<![0-9A-Za-z_.].)[0-9]{0,2}(?:\.[0-9]{1,3}){3}(?![0-9A-Za-z_]|\.[0-9A-Za-z]|-[A-Za-z0-9])")
_V6 = re.compile(
    r"(?<![0-9A-Za-z_:.])(?:[0-9A-Fa-f]{1,4}:|:(?=:))(?:[0-9A-Fa-f]{0,4}:){1,6}"
    r"(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9A-Fa-f]{0,4})(?![0-9A-Za-z_:])"
)
_COLONS = re.compile(r":(?::|(?:[0-9A-Fa-f]{1,4}:){3})")  # in every IPv6 address and in no time of day
_TOKEN = re.compile(r"[0-9A-Fa-f:]*$")
_VERSION_BEFORE = re.compile(
    r"(?:\b(?:version|ver|release|build|section|chapter|v|oid|sdk|firmware|driver|abschnitt|kapitel)\.?:?\s*"
    r"|[A-Za-z]/|[=<>~^!]=\s*|[<>~^]\s*|[A-Za-z]-|\.so\.|@)$",
    re.IGNORECASE,
)
_CHANGED_BEFORE = re.compile(r"\b(?:updat|upgrad|downgrad|bump|patch)\w*\b[^\n]{0,28}$", re.IGNORECASE)
_OBJECT_ID = ("1.3.", "2.5.", "2.16.")
_PRODUCT_BEFORE = re.compile(r"\b[A-Z][\w.]* $")
_ADDRESS_BEFORE = re.compile(
    r"\b(?:ip|ips|ipv4|host|hostname|addr|address|adresse|server|client|peer|inet|listen|connect|connected|connection|"
    r"ping|ssh|dns|nameserver|gateway|remote|source|src|dst|dest|via|proxy|upstream|forwarded|bind|port|login)\b"
    r"[^\n]{0,24}$|//$|\w@$",
    re.IGNORECASE,
)
_ADDRESS_AFTER = re.compile(r":[0-9]{2,5}\b|/[0-9]{1,2}\b")
_UNASSIGNED = tuple(
    ipaddress.ip_network(network)
    for network in ("127.0.0.0/8", "255.0.0.0/8", "0.0.0.0/8", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")
)
"""Loopback, netmasks, and the networks that documents use (RFC 5737 and 3849)."""
_DOCUMENTS = ipaddress.ip_network("2001:db8::/32"), ipaddress.ip_network("3fff::/20")


def ips(text: str) -> Iterator[Finding]:
    for match in _V4.finditer(text):
        if _is_v4(text, match):
            address = str(ipaddress.IPv4Address(match.group()))
            yield Finding(match.start(), match.end(), "ip", "ipv4", address)
    end = 0
    for colons in _COLONS.finditer(text):
        if colons.start() < end:
            continue
        token = _TOKEN.search(text, max(end, colons.start() - 35), colons.start())
        whole = _V6.match(text, token.start() if token else colons.start())
        if whole:
            end = whole.end()
            if _is_v6(whole.group()):
                yield Finding(whole.start(), end, "ip", "ipv6", str(ipaddress.IPv6Address(whole.group())))


def _is_v6(written: str) -> bool:
    try:
        address = ipaddress.IPv6Address(written)
    except ValueError:  # a time
        return False
    if any(address in network for network in _DOCUMENTS):
        return False
    groups = [group for group in written.split(":") if group]
    routed = (
        bool(groups) and len(groups[0]) == 4 and (written[0] in "23" or address.is_link_local or address.is_private)
    )
    has_digit = any(character.isdigit() for character in written)  # cafe::babe is a name in a program
    return has_digit and not address.is_loopback and (len(groups) >= 3 or routed)


def _is_v4(text: str, match: re.Match[str]) -> bool:
    try:
        address = ipaddress.IPv4Address(match.group())
    except ValueError:  # 300.1.2.3, 01.02.03.04
        return False
    if any(address in network for network in _UNASSIGNED):
        return False
    before = text[max(0, match.start() - 40) : match.start()]
    long = sum(len(octet) == 3 for octet in match.group().split("."))
    if _ADDRESS_AFTER.match(text, match.end()):
        return True
    versioned = _VERSION_BEFORE.search(before[-16:]) or _CHANGED_BEFORE.search(before)
    if not versioned and not match.group().startswith(_OBJECT_ID):
        if address.is_private or long >= 2:
            return True
        if (long or len(match.group()) >= 11) and not _PRODUCT_BEFORE.search(before):
            return True
    return _ADDRESS_BEFORE.search(before) is not None


# MAC

_PAIRS = re.compile(r"([:-])[0-9A-Fa-f]{2}(?:\1[0-9A-Fa-f]{2}){4}(?![0-9A-Za-z_]|[:.-][0-9A-Fa-f])")
_FOURS = re.compile(r"\.[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}(?![0-9A-Za-z_]|[:.-][0-9A-Fa-f])")
_FIRST = re.compile(r"(?<![0-9A-Za-z_:.-])[0-9A-Fa-f]{2,4}$")


def macs(text: str) -> Iterator[Finding]:
    for rest in (*_PAIRS.finditer(text), *_FOURS.finditer(text)):
        first = _FIRST.search(text, max(0, rest.start() - 5), rest.start())
        if first is None or len(first.group()) != (4 if rest.group()[0] == "." else 2):
            continue
        written = first.group() + rest.group()
        pure = re.sub(r"[:.-]", "", written).lower()
        if pure in ("f" * 12, "0" * 12):
            continue  # broadcast, unset
        if pure.isdigit() and ":" not in written and not _is_called_mac(text, first.start()):
            continue  # a time, a number
        yield Finding(first.start(), rest.end(), "mac", "mac", pure)


def _is_called_mac(text: str, start: int) -> bool:
    return re.search(r"\bmac\b|ether|hardware|station", text[max(0, start - 30) : start], re.IGNORECASE) is not None
