"""Translate Go's and Rust's regular expressions to Python's syntax, and generate texts that a pattern matches."""

from __future__ import annotations

import re
import string
from random import Random
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

_FLAG = re.compile(r"\(\?([a-z]*)(-[a-z]+)?\)")
_PRINTABLE = string.ascii_letters + string.digits + "-_"


def python_pattern(pattern: str) -> str:
    """Translate a pattern for `re`: turn flags in the middle into groups, spell out classes that Python lacks."""
    pattern = pattern.replace("[[:alnum:]]", "[A-Za-z0-9]").replace("[:alnum:]", "A-Za-z0-9")
    pattern = re.sub(r"(?<!\\)\\z", r"\\Z", pattern)
    head = _FLAG.match(pattern.lstrip())
    if head and "x" in head.group(1):
        pattern = pattern.strip()
    at, opened, result = 0, [0], []
    in_class = False
    while at < len(pattern):
        character = pattern[at]
        flag = None if in_class else _FLAG.match(pattern, at)
        if flag and at:  # up to the end of the group around it
            result.append(f"(?{flag.group(1)}{flag.group(2) or ''}:")
            opened[-1] += 1
            at = flag.end()
            continue
        size = 2 if character == "\\" else 1
        if in_class:
            in_class = character != "]"
        elif character == "[":
            in_class, size = True, 2 + (pattern[at + 1 : at + 2] == "^")  # the first may be a bracket
        elif character == "(":
            opened.append(0)
        elif character == ")":
            result.append(")" * opened.pop())
        result.append(pattern[at : at + size])
        at += size
    return "".join(result) + ")" * opened[0]


def generate_match(pattern: str, random: Random) -> str:
    """Generate a text that the pattern matches; lookarounds are ignored."""
    return "".join(_generate(parser.parse(pattern), random))


def _generate(tree: Any, random: Random) -> list[str]:
    return [_generate_node(code, value, random) for code, value in tree]


def _generate_node(code: Any, value: Any, random: Random) -> str:
    if code is codes.LITERAL:
        return chr(value)
    if code is codes.NOT_LITERAL:
        return random.choice([character for character in _PRINTABLE if ord(character) != value])
    if code is codes.ANY:
        return random.choice(_PRINTABLE)
    if code is codes.IN:
        return random.choice(_members(value))
    if code is codes.SUBPATTERN:
        return "".join(_generate(value[-1], random))
    if code is codes.BRANCH:
        return "".join(_generate(random.choice(value[1]), random))
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        least, most, inner = value
        count = least if code is codes.MIN_REPEAT else random.randint(least, min(int(most), max(least, 12)))
        return "".join("".join(_generate(inner, random)) for _ in range(count))
    return ""


def _members(value: Any) -> str:
    """Return the characters of a class, letters and digits if it has some."""
    allowed = {
        character for character in map(chr, range(32, 127)) if any(_holds(character, *member) for member in value)
    }
    if value[0][0] is codes.NEGATE:
        allowed = {character for character in _PRINTABLE if not any(_holds(character, *member) for member in value[1:])}
    return "".join(sorted(allowed & set(_PRINTABLE))) or "".join(sorted(allowed)) or " "


def _holds(character: str, code: Any, value: Any) -> bool:
    if code is codes.LITERAL:
        return bool(ord(character) == value)
    if code is codes.RANGE:
        return bool(value[0] <= ord(character) <= value[1])
    if code is codes.CATEGORY:
        known = {
            codes.CATEGORY_DIGIT: character.isdigit(), codes.CATEGORY_WORD: character.isalnum() or character == "_",
            codes.CATEGORY_SPACE: character == " ", codes.CATEGORY_NOT_SPACE: character != " ",
        }  # fmt: skip
        return bool(known.get(value, False))
    return False


# The rules of gitleaks whose tokens are recognizable by their form, in the format that `providers` reads

_ENDS = (
    r"""(?:[\x60'"\s;]|\\[nr]|$|\b)""",
    r"""(?:[\x60'"\s;]|\\[nr]|$)""",
    r"(?:[^\w-]|\z)",
    r"(?:[^a-zA-Z0-9+/]|\z)",
    r"\b",
)
_LEFT_OUT = re.compile(
    # not secrets, or forms that `assignments`, `addresses` and the other functions of `providers` find better
    r"-(?:client-)?id$|public|generic|pkcs12|^kubernetes|curl|nuget|sidekiq|freemius|private-key|^jwt|session-cookie|"
    # forms that any hash or name has, or that our own rules match better
    r"twilio|clickhouse|facebook-access|sourcegraph|short-lived|vault|slack-legacy-workspace"
)
_BEFORE, _AFTER = r"""(?:^|[\\'"\x60\s>=:(,)])""", r"""(?:$|[\\'"\x60\s<),])"""
_BY_NAME = r"[\w.-]{0,50}?"


def token_rules(gitleaks: str) -> list[str]:
    """Return the lines of data/gitleaks.tsv: id, keywords, least entropy and the pattern of the token alone."""
    import tomllib

    kept = []
    for rule in tomllib.loads(gitleaks)["rules"]:
        regex = rule.get("regex", "")
        if not regex or _BY_NAME in regex or _LEFT_OUT.search(rule["id"]):
            continue
        whole = regex.startswith("(?i)")
        regex = regex.removeprefix("(?i)").removeprefix(_BEFORE).removesuffix(_AFTER).removeprefix(r"\b")
        for end in _ENDS:
            regex = regex.removesuffix(end)
        pattern = f"(?i:{python_pattern(regex)})" if whole else python_pattern(regex)
        kept.append("\t".join((rule["id"], " ".join(rule["keywords"]), str(rule.get("entropy", 0)), pattern)))
    return kept


# python -m rmem_bench.privacy.go_patterns < gitleaks.toml > rmem/privacy/data/gitleaks.tsv
if __name__ == "__main__":
    import sys

    print("# From config/gitleaks.toml of gitleaks. Copyright (c) 2019 Zachary Rice, MIT License; see NOTICE.")
    print("\n".join(token_rules(sys.stdin.read())))
