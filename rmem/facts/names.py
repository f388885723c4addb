"""The shapes of names and values in a sentence: what may be the subject or the object of a fact."""

from __future__ import annotations

import re

from ..patterns import lazy_pattern

_UPPER = "A-ZÀ-ÖØ-ÞĀĂĄĆĈĊČĎĐĒĔĖĘĚĜĞĠĢĤĦĨĪĬĮİĶĹĻĽŁŃŅŇŌŎŐŔŖŘŚŜŞŠŢŤŨŪŬŮŰŲŴŶŸŹŻŽΑ-ΩА-Я"
CAPITAL = lazy_pattern(rf"[{_UPPER}0-9\"“'‘`(.@#/~$]")
"""Matches the first character of a name; a lower-case noun does not match."""

LOOSE_LINKS = lazy_pattern(r" (?:to|in|for|on|at|with|from|by|or|as) ")
"""Words that occur inside titles but usually separate two names."""
_LINKS = (
    "of|the|and|to|in|for|on|at|de|du|la|le|les|von|van|der|den|di|da|dos|al|bin|ibn|y|e|a|an|with|from|by|or|as|et|i|und|"
    "am|zu|-|–|&"
)
_REST = r"[^\s,;:()\[\]\"“”`!?]*"
_TOKEN = rf"(?:[{_UPPER}0-9]{_REST}(?:\(\))?|[a-z]+[{_UPPER}]{_REST}|[a-z]{{1,3}}[’'][{_UPPER}][\w’'-]*)"
_QUOTED = r"\"[^\"\n]{1,80}\"|“[^”\n]{1,80}”|`[^`\n]{1,80}`|\[\[[^\]\n]{1,80}\]\]"
_IDENTIFIER = (
    r"https?://[^\s<>\"')]+"
    r"|[~.]{0,2}/?(?:[\w.@-]+/)+[\w.@-]*\w"  # a path
    r"|[a-zA-Z_]\w*(?:\.[a-zA-Z_]\w*)+(?:\(\))?"  # a dotted name, a file
    r"|[a-zA-Z]\w*_\w+(?:\(\))?|[a-z]+[A-Z]\w*(?:\(\))?|\w+\(\)|--?[a-z][\w-]+|@[\w-]+|#\d+|[a-z]+-?\d[\w.]*"
)
PROPER = lazy_pattern(
    rf"(?:{_QUOTED}|{_TOKEN}|{_IDENTIFIER}(?![\w/]))"
    rf"(?:(?:,? (?:(?:{_LINKS}) ){{0,3}}|/){_TOKEN}| (?:(?:{_LINKS}) ){{0,3}}(?:{_QUOTED})"
    r"|, (?:Jr|Sr|Inc|Ltd|LLC)\b\.?)*"
)
"""The longest proper name, quotation or identifier."""

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec)[a-z]*\.?"
_NUMBER = r"[-+~≈<>]?[$€£¥]?\d[\d,._]*(?:[eE][-+]?\d+)?"
_SWITCH_WORDS = "true|false|none|null|yes|no|on|off|enabled|disabled|deprecated|required|optional"
VALUE = lazy_pattern(
    r"(?:(?:about|around|at least|at most|over|under|port|version|v|python|level) ?)?"
    rf"(?:{_NUMBER}(?: ?[%°µ]?[A-Za-z/%]{{1,12}}(?: [a-z]{{2,10}})?)?"
    r"|v?\d+(?:\.\d+){1,3}[\w.+-]*\+?|\d{4}-\d\d(?:-\d\d)?(?:[T ][\d:.+Z-]+)?"
    rf"|\d{{1,2}} {_MONTH}(?: \d{{4}})?|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?:, ?\d{{4}})?|{_MONTH} \d{{4}}"
    rf"|{_SWITCH_WORDS})\.?",
    re.IGNORECASE,
)
_DIGIT = lazy_pattern(r"\d")
_SWITCHES = tuple(word + dot for word in _SWITCH_WORDS.split("|") for dot in ("", "."))

_NOT_A_NAME = frozenset(
    """like i you he she it we they me him her us them this that these those there here what which who whom whose why
    how where when everything something anything nothing everyone someone anyone nobody one ones all some most
    many much both each either neither none such another other others his hers its their theirs your yours our
    ours mine my myself himself herself itself themselves yourself so as if then than not no yes yeah yep nope
    ok okay oh ah wow hey hi hello thanks thank please well now today tomorrow yesterday tonight later never
    ever always also too just only even still again and or but because since while although though until unless
    after before during whether maybe perhaps another every any more less few several lots""".split()
)
_FUNCTION_WORDS = _NOT_A_NAME | frozenset(
    """is was are were be been being am has have had do does did will would can could shall should may might must go
    goes went get gets got make makes made let lets say says said think thinks thought know knows knew want
    wants wanted feel feels felt seem seems seemed really very quite pretty like likes for to of in on at by
    with from about into over under up down out off through across between within among around without against
    during via per onto upon towards the a an fix fixes fixed add adds added remove removes removed update
    updates updated use used using""".split()
)
_WORD = lazy_pattern(r"[^\s,]+")
_NOUNS = lazy_pattern(r"[a-z][\w'’-]*(?: [a-z0-9][\w'’-]*){0,3}")
_ACRONYM = lazy_pattern(r"(?:[Tt]he )?[a-z][\w-]*(?: [a-z][\w-]*)? [A-Z][A-Z0-9]{1,5}")
_VERB_AFTER_NAME = lazy_pattern(
    r"[a-z]{3,}ing [a-z]|(?:means|says|shows|indicates|implies|gives|tells|reports|sets|takes|needs|fails|works) "
)
_ARTICLE = lazy_pattern(r"(?:the|an?|our|your|some|any) ", re.IGNORECASE)
_INITIALS = lazy_pattern(rf"(?:\b[{_UPPER}]\.)+[{_UPPER}]$")
LONGEST = 100
"""Most characters of a name."""


def clean(name: str) -> str:
    """Strip quotes and punctuation around a name; restore the last dot of initials, which the end of sentence took."""
    name = name.strip(" \t,;:–—*")
    if name[:1] == "_" and _EMPHASIS.fullmatch(name):
        name = name[1:-1]
    if name[-2:-1] == "." and _INITIALS.search(name):
        name += "."
    if (
        name[-1:] in _CLOSING_QUOTES
        and len(name) > 2
        and _CLOSING_QUOTES[name[-1]] == name[0]
        and name[-1] not in name[1:-1]
    ):
        name = name[1:-1].strip()
    if name.startswith("[[") and name.endswith("]]"):
        name = name[2:-2].partition("|")[0].strip()
    return name


_EMPHASIS = lazy_pattern(r"_[^_].*[^_]_")  # but `_private` and `__init__` are names
_CODE = lazy_pattern(r"[`\"/_.@#=]\w|\(\)|[a-z][A-Z]|^-")
_CONTRACTION = lazy_pattern(
    r"\b(?:I|it|he|she|that|there|they|we|you|who|what|let|here|don|doesn|didn|can|won|should|would|could|must)['’]\w+"
    r"(?: [a-z]|$)",
    re.I,
)
_DETERMINERS = frozenset(
    "this these those that my our your his her their its when where while after before since if like one some many "
    "most all".split()
)
_ORDER_WORDS = frozenset("last first next previous initial final latest new old current original".split())
_WEAK_FIRST_WORDS = _NOT_A_NAME | _DETERMINERS | _ORDER_WORDS
_ADVERB_OPENING = lazy_pattern(
    r"[A-Za-z]{2,}(?:al|nt|st|rt|us|iv|at|et|ed|ab|ib|ar|ct|ss|ng|ck|ul|in|pt|it|mp|ay|ri)ly"
)
_ADVERB = lazy_pattern(r"[A-Z][a-z]+ly, | [a-z]+ly$")
_CLOSING_QUOTES = {'"': '"', "”": "“", "`": "`", "’": "‘", "'": "'", ")": "("}


def is_value(name: str) -> bool:
    """Whether it is a literal (a number, date, version or command-line switch), which no fact can be about."""
    may_be_value = _DIGIT.search(name) is not None or name.lower().endswith(_SWITCHES)  # cheaper than VALUE
    return may_be_value and VALUE.fullmatch(name) is not None


def is_proper(name: str) -> bool:
    """Whether the whole text is a proper name, a quotation or an identifier."""
    found = PROPER.match(name)
    return found is not None and found.end() >= len(name) - name.endswith(".")


def is_noun_phrase(name: str) -> bool:
    """Whether it is one to four lower-case words with no function word among them: "association football"."""
    return _NOUNS.fullmatch(name) is not None and not any(word in _FUNCTION_WORDS for word in name.split())


def is_contracted(name: str) -> bool:
    """Whether it contains a contraction of pronoun and verb: "it's popular"."""
    return ("'" in name or "’" in name) and _CONTRACTION.search(name) is not None


def is_code(name: str) -> bool:
    """Whether punctuation or case shows it to be an identifier, a path, a quotation or a version."""
    return _CODE.search(name) is not None


def subject_trust(name: str) -> int:
    """How clearly a text names what a sentence is about: 2 a name, 1 a description ("the parser"), 0 not at all."""
    if not name or len(name) > LONGEST or is_contracted(name):
        return 0
    first = _WORD.match(name)
    if first is None or ("ly" in name and _ADVERB.search(name) and name.count(" ") < 3):
        return 0
    word = first[0].lower()
    if word in _WEAK_FIRST_WORDS:
        if word in _NOT_A_NAME and (name.count(" ") < 1 or not is_proper(name)):
            return 0
        if word in _DETERMINERS and (name.count(" ") < 2 or not name[first.end() :].lstrip(" ,")[0].isupper()):
            return 0  # "This PR" and "One in Dubai" name nothing; "When Harry Met Sally" does
        if word in _ORDER_WORDS:  # "Last usage was removed"
            return 1
    if first[0].endswith("ly") and _ADVERB_OPENING.fullmatch(first[0]) and not name[first.end() + 1 :][:1].isupper():
        return 0  # "Automatically removes", "Internally `PathLookup` is": no name
    if not name[-1].islower() and _ACRONYM.fullmatch(name):  # "the staging DB"
        return 2
    if is_proper(name):
        return 0 if name.lower() in _FUNCTION_WORDS else 2
    named = name[4:] if word == "the" and name[4:5].isupper() and not is_proper(name[4:]) else name
    found = PROPER.match(named)
    if found is not None:  # a name followed by nouns: "Tunisia national football team", "the Search team"
        rest = named[found.end() :].strip()
        start = named.partition(" ")[0].lower()
        is_name = rest and " " in named and is_noun_phrase(rest) and start not in _FUNCTION_WORDS
        return (
            2 if is_name and not _VERB_AFTER_NAME.match(rest) else 0
        )  # "`blob` confirming binary storage" names nothing
    if is_noun_phrase(name):
        return 2
    bare = _ARTICLE.sub("", name, count=1)
    if bare != name and (is_noun_phrase(bare) or is_proper(bare)):
        return 2 if is_proper(bare) else 1
    found = re.fullmatch(r"([a-z][\w-]*(?: [a-z][\w-]*)?) (.+)", name)
    if found and is_noun_phrase(found[1]) and is_proper(found[2]):  # "ancient Rome", "split-finger fastball X"
        return 2
    return 0
