"""Keys that betray themselves by their form: a table of providers, each with the letters that a text must hold before
its pattern is tried at all. Some patterns are those of detect-secrets, loaded when their letters turn up."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import NamedTuple

from .findings import Finding
from .libraries import missing

_SHUT = r"(?![A-Za-z0-9_])"
_INSIDE = frozenset("_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


class Provider(NamedTuple):
    name: str
    letters: tuple[str, ...]
    pattern: str


_OWN = tuple(
    Provider(name, tuple(letters.split()), pattern)
    for name, letters, pattern in (
        ("aws_access_key", "AKIA ASIA ABIA ACCA", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}"),
        ("github", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{36,251}"),
        ("github", "github_pat_", r"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"),
        (
            "slack",
            "xox xapp-",
            r"(?:xox[abeprs](?:\.xox[bp])?|xapp)-[A-Za-z0-9-]{10,250}",
        ),
        ("slack_webhook", "hooks.slack.com", r"https://hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9+/]{30,80}"),
        (
            "stripe",
            "k_live_ k_test_ whsec_",
            r"(?:[rsp]k_(?:live|test)_[A-Za-z0-9]{16,247}|whsec_[A-Za-z0-9+/=]{32,})",
        ),
        ("google_api_key", "AIza", r"AIza[A-Za-z0-9_-]{35}"),
        ("google_client_secret", "GOCSPX-", r"GOCSPX-[A-Za-z0-9_-]{28}"),
        ("google_oauth", "ya29.", r"ya29\.[A-Za-z0-9_-]{20,}"),
        ("anthropic", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{20,}"),
        ("openai", "sk-", r"sk-(?:proj|svcacct|admin|None|or-v1)-[A-Za-z0-9_-]{20,}|sk-[A-Za-z0-9]{32,64}"),
        ("npm", "npm_", r"npm_[A-Za-z0-9]{36}"),
        ("pypi", "pypi-Ag", r"pypi-Ag[A-Za-z0-9_-]{50,}"),
        ("huggingface", "hf_", r"hf_[A-Za-z0-9]{30,40}"),
        ("digitalocean", "dop_v1_ doo_v1_ dor_v1_", r"do[opr]_v1_[a-f0-9]{64}"),
        ("shopify", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
        ("vault", "hvs. hvb.", r"hv[sb]\.[A-Za-z0-9_-]{24,}"),
        ("databricks", "dapi", r"dapi[a-f0-9]{32}(?:-\d)?"),
        ("linear", "lin_api_", r"lin_api_[A-Za-z0-9]{40}"),
        ("sentry", "sntrys_ sntryu_", r"sntry[su]_[A-Za-z0-9+/=_-]{40,}"),
        ("mailgun", "key-", r"key-[a-f0-9]{32}"),
        ("atlassian", "ATATT3", r"ATATT3[A-Za-z0-9_=-]{100,}"),
        ("groq", "gsk_", r"gsk_[A-Za-z0-9]{40,}"),
        ("replicate", "r8_", r"r8_[A-Za-z0-9]{37}"),
        ("doppler", "dp.pt. dp.st. dp.ct. dp.sa.", r"dp\.(?:pt|st|ct|sa)\.[A-Za-z0-9._-]{30,}"),
        ("age", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{58}"),
        ("telegram", ":AA", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}"),
        ("twilio", "SK", r"SK[a-f0-9]{32}"),
        ("jwt", "eyJ", r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,}"),
    )
)
_LETTERS = tuple((letters, at) for at, provider in enumerate(_OWN) for letters in provider.letters)
_BORROWED = tuple(  # what a text must hold, and the module and class in detect_secrets.plugins
    (name, re.compile(letters), module, kind)
    for name, letters, module, kind in (
        ("gitlab", r"gl[a-z]{2,6}-", "gitlab_token", "GitLabTokenDetector"),
        ("gitlab", "GR1348941", "gitlab_token", "GitLabTokenDetector"),
        ("sendgrid", r"SG\.", "sendgrid", "SendGridDetector"),
        ("mailchimp", "-us[0-9]", "mailchimp", "MailchimpDetector"),
        ("square", "sq0csp-", "square_oauth", "SquareOAuthDetector"),
        ("azure_storage", "AccountKey=", "azure_storage_key", "AzureStorageKeyDetector"),
        ("discord", "[dD](?:iscord|ISCORD)", "discord", "DiscordBotTokenDetector"),
        ("artifactory", "AKC", "artifactory", "ArtifactoryDetector"),
    )
)


def provider_keys(text: str) -> Iterator[Finding]:
    for at in dict.fromkeys([at for letters, at in _LETTERS if letters in text]):
        name = _OWN[at].name
        for found in _own(at).finditer(text):
            if found.start() and text[found.start() - 1] in _INSIDE:
                continue  # a lookbehind in the pattern would take three times as long
            if name != "jwt" or _is_jwt(found.group()):
                yield Finding(found.start(), found.end(), "secret", name, found.group())
    for name, letters, module, kind in _BORROWED:
        if letters.search(text):
            for pattern in _borrowed(module, kind):
                for found in pattern.finditer(text):
                    if not found.start() or text[found.start() - 1] not in _INSIDE:
                        yield _bare(text, found, name)


@cache
def _own(at: int) -> re.Pattern[str]:
    return re.compile(f"(?:{_OWN[at].pattern}){_SHUT}")


@cache
def _borrowed(module: str, kind: str) -> tuple[re.Pattern[str], ...]:
    try:
        plugin = getattr(import_module(f"detect_secrets.plugins.{module}"), kind)
    except ImportError:
        raise missing("detect-secrets") from None
    return tuple(re.compile(f"(?:{pattern.pattern}){_SHUT}") for pattern in plugin.denylist)


def _bare(text: str, found: re.Match[str], name: str) -> Finding:
    """The key without the name, quotes and blanks that a pattern may take along."""
    start, end = found.span()
    start += len("AccountKey=") if name == "azure_storage" else 0
    while text[start] in " \t\n=:\"'":
        start += 1
    while text[end - 1] in " \t\n\"'":
        end -= 1
    return Finding(start, end, "secret", name, text[start:end])


def _is_jwt(token: str) -> bool:
    head = token.split(".", 1)[0]
    try:
        return "alg" in json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except (ValueError, TypeError, binascii.Error):
        return False


# Private keys

_PEM = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?:(?!-----BEGIN )[\s\S]){0,20000}?-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
    r"|(?:(?:\\[nr]|\s)+[A-Za-z0-9+/=:,\- ]*)*)"  # or cut off
)
_HEAD = 27  # characters of the shortest first line
_BODY = re.compile(r"[A-Za-z0-9+/=]{24}")
_PUTTY = re.compile(r"PuTTY-User-Key-File-[0-9]: [\s\S]{0,20000}?Private-MAC: [0-9a-f]+")


def private_keys(text: str) -> Iterator[Finding]:
    for pattern in (_PEM, _PUTTY):
        for found in pattern.finditer(text):
            end = found.start() + len(found.group().rstrip())
            if _BODY.search(text, found.start() + _HEAD, end):
                yield Finding(found.start(), end, "private_key", "pem", text[found.start() : end])
