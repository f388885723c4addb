"""What follows the verb of a sentence: one object or a list of them, and where it ends."""

from __future__ import annotations

from ..patterns import lazy_pattern
from . import names, relations

_CUT = lazy_pattern(
    r"(?:,|;| [-–—]+|:)? (?:which|who|whom|whose|where|when|while|because|since|but|so|although|though|unless|until|"
    r"as|and (?:[a-z]|I\b)|or [a-z]|that|if|after|before|than|too|now|again|anymore|last|this|next|every|rather|"
    r"instead|throughout|anyway|yet|already|here|there|today|a lot|the most|the best)\b"
    r"|[,;] (?=[a-z]|I\b)| [-–—]+ | \(|; "
)
_GERUND_PHRASE = lazy_pattern(r"[a-z]+ing \S+ \S")  # "making nice things evil"
_OF_NAME = lazy_pattern(r"(?:the|an?) [a-z][\w-]*(?: [a-z][\w-]*)? (?:of|for|in|from) (?=\S)")
_LEADING_ARTICLE = lazy_pattern(r"^(?:the|an?) ")
_LEADING_WORD = lazy_pattern(r"^(?:the|an?|about|around) ")
_LIST_SEPARATOR = lazy_pattern(r",? and |, ")
_VERSION = lazy_pattern(r"\d[\w.]*\+?")
_NAME_AND_VERSION = lazy_pattern(rf"([A-Z][A-Za-z]+) {_VERSION.pattern}")
_QUOTED_START = lazy_pattern(r"^(?:\"[^\"]*\"|“[^”]*”|`[^`]*`)")
_TRAILING_ADVERBS = frozenset("instead yet again too anymore now already here there today anyway either".split())
_DASHES = lazy_pattern(r" [-–—] ")


def split_objects(text: str, relation: str) -> list[tuple[str, bool]]:
    """Return each object, and whether it surely is the whole object and not a part of a longer phrase."""
    text = text.strip()
    if relation.endswith(" from"):
        text = text.partition(" to ")[0]
    if names.is_contracted(text):
        return []
    listed = _split_list(text, relation)
    if listed is not None:
        return listed
    if _is_whole_phrase(text):
        return [(names.clean(text), text.startswith(("The ", "A ")) or not _continues(text))]
    cut = _CUT.search(text)
    if cut is not None and cut.start():
        before_cut = text[: cut.start()]
        listed = _split_list(before_cut, relation)
        if listed is not None:
            return listed
        if _is_whole_phrase(before_cut):
            is_quoted = _QUOTED_START.match(before_cut) is not None
            is_name = names.is_proper(before_cut) and not (is_quoted and _continues(before_cut))
            is_value = names.is_value(before_cut)
            is_term = is_value and _DASHES.match(text, cut.start()) is not None  # "1 - sin(u)"
            return [(names.clean(before_cut), (is_name or is_value) and not is_term)]
        text = before_cut
    described = _OF_NAME.match(text)
    proper = names.PROPER.match(text, described.end() if described else 0)
    if described is not None and proper is not None:
        return [(names.clean(text[: proper.end()]), False)]
    if proper is not None and proper.end() > 1 and not text[proper.end() : proper.end() + 1].isalpha():
        return [(names.clean(proper[0]), False)]
    return []


def _continues(text: str) -> bool:
    """Whether a preposition follows the name or quotation: "`UnionType` on the HEAD of 3.10"."""
    if text[0] in '"“`':
        text = _QUOTED_START.sub("", text, count=1)
    return " " in text and names.LOOSE_LINKS.search(text) is not None


def _split_list(text: str, relation: str) -> list[tuple[str, bool]] | None:
    """Return the objects of a list with "and" or commas, as `split_objects` does; None if it is no list."""
    if not relations.has_many(relation) or not ("," in text or " and " in text):
        return None
    parts = _LIST_SEPARATOR.split(text)
    if len(parts) == 1 or not all(_is_whole_phrase(part) for part in parts):
        return None
    bare = [_LEADING_ARTICLE.sub("", part) for part in parts]
    versioned = _NAME_AND_VERSION.fullmatch(bare[0])
    if versioned is not None:  # "Python 3.12, 3.13 and 3.14"
        bare = [f"{versioned[1]} {part}" if _VERSION.fullmatch(part) else part for part in bare]
    named = all(names.is_proper(part) for part in bare)
    if named or names.is_code(text) or len(parts) > 2:
        return [(names.clean(part), named) for part in bare]
    return [(names.clean(text), False)]  # "the color and texture" may be one thing


def _is_whole_phrase(text: str) -> bool:
    """Whether the whole text is a name, a value or a short noun."""
    if not text or len(text) > names.LONGEST or "..." in text or text.rpartition(" ")[2] in _TRAILING_ADVERBS:
        return False
    bare = _LEADING_WORD.sub("", text) if text[0] in "ta" else text
    if names.is_proper(bare):
        return bare.lower() not in ("i", "it")
    if names.is_value(bare):
        return True
    if names.is_noun_phrase(bare):
        return not bare.endswith("ly") and not _GERUND_PHRASE.match(bare)
    return names.subject_trust(bare) == 2
