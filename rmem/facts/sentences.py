"""Facts in one sentence, by its shape: what stands before the verb, the verb, what follows it.

Each rule is written as the sentence it reads. A fact is SURE only if subject and object are names or short nouns and
nothing is left over; a sentence that asks, supposes, plans or wishes states nothing."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..patterns import lazy_pattern
from . import names, relations
from .dates import validity
from .model import LIKELY, SURE, FoundFact
from .objects import split_objects

_PREPOSITIONS = "by|in|at|to|with|for|of|on|from|as|under|into|near|after|against|through|via|over|inside|within|onto"
_COPULA = lazy_pattern(
    r" (?:(is|was|are|were|am)(n['’]t)?|(has|have|had) been|(became|becomes|remains))"
    r"((?: (?:not|no longer|never|still|now|currently|also|already|originally|actually|always|officially|"
    r"probably|apparently))*)(?= )"
)
_EVENT = lazy_pattern(
    r".+ by$|(?:added|introduced|released|removed|renamed|deprecated|replaced|moved|created|written|founded|"
    r"fixed|merged|reverted|obsoleted|dropped|disabled|enabled|marked)\b"
)
_PAST_STATE = lazy_pattern(r"(?:supported|used|allowed|required|needed|ignored|expected|limited|handled|treated)\b")
_NO_OBJECT = lazy_pattern(  # "unsigned by default", "needed in case a file exists"
    r"(?:by (?:default|hand|design|accident|mistake|itself)"
    r"|in (?:case|order|fact|general|particular|practice|addition))\b"
)
_CLAUSE_BEFORE = lazy_pattern(r", [a-z]|^(?:In|On|At|For|With|Under|Within|During|Without) ")
_CALLED = lazy_pattern(r"^(?:called|named|set to|equal to) ")
_VERB_TAIL = lazy_pattern(rf"((?:up )?(?:{_PREPOSITIONS}) )?(?:the ([a-z]+(?: [a-z]+)?) of )?(?=\S)")
_OPEN_VERB = lazy_pattern(rf" ([a-z]{{2,}}(?:s|ed)(?: (?:{_PREPOSITIONS}))?)(?= )")
_COPULAS = frozenset(
    "is was are were am isn't wasn't aren't weren't isn’t wasn’t aren’t weren’t became remains".split()
)
_ADVERBS_BEFORE_VERB = frozenset("now also still currently always usually mainly longer never already".split())
_COPULA_WORDS = _COPULAS | {"been"}
_ANCHORS = _COPULA_WORDS | relations.FIRST_WORDS | {"I'm", "I’m"}
_NO_NAME = frozenset(
    """i it you he she they we this that which who so but because really just get got go my your our their his its me
    him them us what there then than i'm it's you're that's is was are were am been be have had has""".split()
)
_MAX_HEAD = 16  # words before the verb
_HYPOTHETICAL_WORDS = frozenset(
    """might may could would should shall will won't can can't cannot if unless whether wish hope hopes hoping plan
    plans planning want wants wanted going gonna used supposed imagine suppose pretend let's lets wouldn't
    couldn't shouldn't won’t can’t let’s wouldn’t couldn’t shouldn’t if, would, when why how""".split()
)
_HEDGES = frozenset(
    """maybe probably perhaps possibly apparently seem seems seemed likely think guess believe suppose heard allegedly
    presumably presumably, possibly, supposedly supposedly, previously formerly
    almost nearly sometimes often usually mostly kind sort maybe, perhaps, apparently, probably,
    sure""".split()
)
_ENTITY = lazy_pattern(r"(?:the|an?|its|their|his|her) |[A-Z0-9`\"“]")
_BULLETS = frozenset("*-•>+")
_IMPERATIVES = frozenset(
    """Add Added Adding Fix Fixed Fixing Fixes Move Moved Remove Removed Removing Update Updated Updating Bump Bumps
    Use Make Rename Run Set Test Tests Drop Check Change Changed Release Merge Revert Apply Replace Improve
    Refactor Support Allow Document Docs Handle Avoid Prefer Ensure Enable Disable Clean Cleanup Implement
    Introduce Switch Upgrade Keep Create Convert Correct Deprecate Expose Extend Include Increase Raise Reduce
    Require Return Rewrite Simplify Skip Split Sync Try Type Unify Verify Write Build Only Some Three Two New
    More Initial Minor No Not Do Don't Detect Prevent Mark Clarify Adjust Accept Ignore Validate Show Warn
    WIP Put Default Implemented Correctly Properly Avoiding Indicate Bug Fixup Squash Dedupe Tidy Reword
    Assert Expect Confirm Cover""".split()
)
_COMMANDS = frozenset(word.lower() for word in _IMPERATIVES)
_COMMIT_TAGS = frozenset("API BENCH BLD CI CLN DEP DEV DOC ENH FEA MAINT MNT PERF REF REL STY TST TYP".split())
"""Kinds of commits in many Python projects: "DOC Add links to the example"."""
_NOT_VERBS = frozenset("was is has as this his its us yes thus always perhaps besides towards sometimes".split())
_FIRST_PERSON = frozenset(("I", "I'm", "I’m", "My", "I've"))
_SKIPPED_OPENINGS = frozenset(
    """You You're You've It It's It’s That That's That’s This There There's We We're We've They They're He She He's
    She's What What's How When Where Who Why Which Do Does Did Is Are Was Were Can Could Would Should Will Have
    Has Thanks Thank Wow Glad Let Let's Let’s Sounds Looks Seems Congrats Hope Please Your Its Their These Those
    If Here Here's Previously Previously, Formerly Formerly, As Later Later, Since While Because
    Co-authored-by: Signed-off-by: Bumps Bump Merge Our""".split()
)
_EARLIER = frozenset(("Previously", "Formerly", "Originally"))
_CONJUNCTIONS = frozenset("When While If Once Whenever Although Though Because Since Unless Until".split())
_REFERENCE = lazy_pattern(r",? (?:refs?|closes|fixes|see) #\d+$| [\[(]#\d+[\])]$")
_OPENING_PHRASES = (
    "and|but|so|also|well|yes|yeah|no,|note that|note|fyi|btw|actually|currently|now|today|hey|oh|in fact|"
    "remember that|for now|as of now|by the way|recently|finally|this week|last week|anyway|unfortunately|"
    "however|therefore|hence|moreover|hopefully|sadly|luckily|partially|entirely|basically|thankfully|obviously|personally|honestly"
)
_OPINIONS = "I think|I guess|I believe|I heard|maybe|perhaps|apparently"
_OPENING = lazy_pattern(
    rf"(?:(?:{_OPENING_PHRASES})[,:]? |(?:{_OPINIONS})(?: that)?,? |[a-z]+ly, |\d+[.)] )+",
    re.IGNORECASE,
)
_OPENING_WORDS = frozenset(
    phrase.split(" ")[0].strip(",").lower() for phrase in f"{_OPENING_PHRASES}|{_OPINIONS}".split("|")
)
_OF = lazy_pattern(r" (of|in|for|at|on) (?:the )?(?=(\S))")
_PROPERTY = lazy_pattern(r"(?:the|a|an) ", re.IGNORECASE)
_PRESENT = r"(?:current |actual |new |present )?"
_NAME_OF = lazy_pattern(rf"(?:(?:name|title|value) of (?:the )?)?{_PRESENT}")
_CLAUSE = lazy_pattern(
    r"(?:the )?([a-z][a-z ]{1,40}?) (where|that|which|who|whom|in which|at which|on which) (.+)", re.I
)
_MY = lazy_pattern(rf"(my|our) {_PRESENT}(.+)", re.IGNORECASE)
_POSSESSIVE = lazy_pattern(rf"(.+?)(?:'s|’s|s'|s’) {_PRESENT}([a-z][\w -]{{1,50}})")
_RELATIVE_PRONOUN = lazy_pattern(r" (?:where|that|which|who|whom) ")
_ARTICLE = lazy_pattern(r"(?:a|an|one of the) ")
_THE = lazy_pattern(r"the ((?:[a-z][\w-]*|[A-Z]{2,5})(?: [a-z][\w-]*){0,3}) (of|for|in|at|behind) (.+)")
_PARTICIPLE = lazy_pattern(
    rf"((?:[a-z]+ly )?[a-z]{{3,}}) ({_PREPOSITIONS})(?: the ([a-z]+(?: [a-z]+)?) of)? (?=\S)(.+)"
)
_PLACE = lazy_pattern(r"(in|at|on|from|near|behind|inside|under|part of)(?: the ([a-z]+) of)? (.+)")
_KIND_OF = lazy_pattern(r"((?:[a-z][\w-]*)(?: [a-z][\w-]*){0,2}) (of|for|in|at|from) (?:the )?(.+)")
_AFTER_CLASS = lazy_pattern(r" (?:for|with|in|on|at|from|to|by|of|written|based|used|using|made) ")
_LOOSE = frozenset(
    """able about going supposed due ready glad happy sorry excited proud sure afraid tired aware grateful thankful
    used back out up down here there available hard easy good great bad nice free full kind sort lot couple bit
    bunch ton interested curious worried keen open close next similar different better worse more less same
    welcome amazing awesome important only just not all looking trying working getting thinking having doing
    making taking planning talking waiting heading hoping coming seeing feeling being stuck meant about left
    right so too very really set one two some none part fun pleased thrilled passionate impressed surprised
    reminded inspired lucky blessed""".split()
)
_BARE_NOUN = lazy_pattern(r"(?:the|an?) [a-z]+$")  # "Stephen King wrote the book": which one?
_ALSO_NOUNS = frozenset("links imports calls fixes blocks reads watches hosts stores coaches adds drops".split())
_GENERIC_SUBJECTS = frozenset(
    """user users commit code test tests function method class file files client server table tables patch change docs
    python application app people kids given everyone data value values option options""".split()
)
_IS_CLEAR = lazy_pattern(rf"the |[a-z]+ (?:by|{_PREPOSITIONS}) (?=[A-Z])")
_IS_OF_KIND = lazy_pattern(rf"[a-z]+ (?:{_PREPOSITIONS}) the [a-z]+ of ")
_PERFECT_TENSE = lazy_pattern(
    r"(?:[a-z]+(?:ed|en|wn)|been|done|made|gone|had|see|got|read|come|become|found|lost|won|met|to)\b"
)
_TRAILING_PARTICIPLE = lazy_pattern(r" [a-z]+ed$")
_UNNAMED = frozenset(("PR", "MR", "API", "CI", "new API"))
_FAULT = lazy_pattern(r"(?:the |an? )?(?:wrong|incorrect|bad|bogus)\b")
_DID = frozenset(("did", "didn't", "didn’t"))
_DO_NOT = frozenset("doesn't don't didn't doesn’t don’t didn’t".split())
_NEGATED = lazy_pattern(r"not|no longer|never|n['’]t")


class _Statement(NamedTuple):
    subject: str
    relation: str
    object: str
    trust: int  # 2: the fact may become SURE; 1: LIKELY at most
    single: bool = False


def words_of_statement(text: str, actor: str | None) -> list[str] | None:
    """Return the words of a sentence, or None if a glance shows that it states nothing; most do not."""
    opening = text.split(None, 3)
    if opening and (opening[0] in _BULLETS or opening[0] in _COMMIT_TAGS):
        del opening[0]
    if len(opening) < 3:
        return None
    first = opening[0]
    may_be_title = opening[1][0].isupper() and first not in _EARLIER  # "Will Schuester", "We Will Rock You"
    if not may_be_title and (first in _SKIPPED_OPENINGS or (actor is None and first in _FIRST_PERSON)):
        return None
    words = text.split()
    if words[-1][-1] == "?":
        return None
    if words[0] in _BULLETS or words[0] in _COMMIT_TAGS:
        del words[0]
    if _ANCHORS.isdisjoint(words) and (first in _IMPERATIVES or not (may_be_title or names.is_code(first))):
        return None
    if not _HYPOTHETICAL_WORDS.isdisjoint(words) or (first in _CONJUNCTIONS and "," in text):
        return None
    if first in _IMPERATIVES and _COPULAS.isdisjoint(words[: 2 + _MAX_HEAD]):
        return None
    return words


def facts_in_sentence(words: list[str], start: int, end: int, actor: str | None) -> list[FoundFact]:
    """Return the facts that one sentence states; `start` and `end` are its character range in the memory."""
    body = " ".join(words)
    if body.endswith((".", "!")):
        body = body[:-1]
    if "#" in body:
        body = _REFERENCE.sub("", body)
    first = words[0]
    if first[0].isdigit() or first.endswith("ly,") or first.rstrip(",:").lower() in _OPENING_WORDS:
        opening = _OPENING.match(body)
        if opening is not None:
            body = body[opening.end() :]
    if actor is not None and body.startswith(("I'm ", "I’m ")):
        body = "I am " + body[4:]
    valid_from, valid_until, body = validity(body)
    found, negated = _read_sentence(body, actor)
    if not found:
        return []
    facts: list[FoundFact] = []
    is_hedged = not _HEDGES.isdisjoint(words) or _is_command(words)
    for statement in found:
        subject, relation = names.clean(statement.subject), relations.canonical(statement.relation)
        for value, is_sure in split_objects(statement.object, relation):
            if not subject or not value or len(relation) > 60 or subject.lower() == value.lower():
                continue
            is_value = names.is_value(value)
            inverse = None if is_value else relations.inverse(relation)
            about, of, what = (value, inverse, subject) if inverse else (subject, relation, value)
            is_value = names.is_value(what) if inverse else is_value
            is_sure = is_sure and statement.trust == 2 and not is_hedged and not _BARE_NOUN.match(about)
            confidence = SURE if is_sure else LIKELY
            single = (statement.single or relations.has_one(of)) and not relations.has_many(of)
            facts.append(
                FoundFact(about, of, what, is_value, confidence, start, end, valid_from, valid_until, negated, single)
            )
    return facts


def _is_command(words: list[str]) -> bool:
    """Whether it probably is an order: "ensure X is checked for Y", but not "Fix You was sung by"."""
    return words[0].lower() in _COMMANDS and not (words[0].istitle() and words[1].istitle())


def _read_sentence(body: str, actor: str | None) -> tuple[list[_Statement], bool]:
    """Return what a sentence states, and whether it is negated."""
    words = body.split(" ")
    anchors = [at for at, word in enumerate(words) if word in _ANCHORS]
    if not anchors:
        return _read_unlisted_verb(body, len(body))
    is_property = words[0] in ("The", "the")
    if anchors[0] > 1 and words[anchors[0] - 1] == "I" and (words[anchors[0]] == "was" or words[anchors[0]][-1] != "s"):
        return [], False  # "last year I had": words before "I" are not the subject
    if anchors[0] > _MAX_HEAD or not (is_property or _NO_NAME.isdisjoint(words[1 : anchors[0]])):
        return [], False
    copulas = [at for at in anchors if words[at] in _COPULA_WORDS]
    if len(copulas) > 1 and not is_property:
        copulas = copulas[:1]
    for at in reversed(copulas):  # "The author of Life is a Dream is Calderón"
        at -= words[at] == "been"
        copula = _COPULA.match(body, len(" ".join(words[:at]))) if at > 0 else None
        if copula is None:
            continue
        found = _read_copula(body[: copula.start()], body[copula.end() + 1 :], actor)
        if found is not None:
            if copula[1] in ("was", "were") and (
                _PAST_STATE.match(found.relation) or (not _EVENT.match(found.relation) and names.is_code(found.subject))
            ):
                found = found._replace(trust=1)  # "`pnread` was a `ssize_t *`": before this change
            return [found], copula[2] is not None or (copula[5] != "" and _NEGATED.search(copula[5]) is not None)
    for at in anchors:
        if at in copulas:
            break
        if at and words[at] in relations.FIRST_WORDS:
            found, negated = _read_verb(words, at, actor)
            if found is not None:
                return [found], negated
    return _read_unlisted_verb(body, len(" ".join(words[: copulas[0]])) if copulas else len(body))


def _read_unlisted_verb(body: str, end: int) -> tuple[list[_Statement], bool]:
    """NAME verbs OBJECT with any verb that the table does not list; LIKELY at most."""
    verb = _OPEN_VERB.search(body, 0, end)
    if verb is None or verb[1].split(" ")[0] in _NOT_VERBS:
        return [], False
    subject, right = body[: verb.start()], body[verb.end() + 1 :]
    last = subject.rpartition(" ")[2]
    if last.isalpha() and last.islower():
        return [], False  # no name ends so; a cheap test of what `is_proper` says below
    is_named = names.is_code(subject) or (" " in subject and subject.split(" ", 1)[0] not in _IMPERATIVES)
    if is_named and _ENTITY.match(right) and names.subject_trust(subject) == 2 and names.is_proper(subject):
        return [_Statement(subject, verb[1], right, 1)], False
    return [], False


def _read_copula(left: str, right: str, actor: str | None) -> _Statement | None:
    """LEFT is RIGHT."""
    subject = None if left == "I" else _read_property(left, actor)
    if subject is not None:
        about, relation, trust = subject
        participle = _PARTICIPLE.fullmatch(right)
        if participle and participle[1] in ("located", "based", "situated", "set", "kept", "stored", "found"):
            noun = f" the {participle[3]} of" if participle[3] else ""
            return _Statement(about, f"{relation} {participle[1]} {participle[2]}{noun}", participle[4], trust, True)
        if right[:1] in "cnse":
            right = _CALLED.sub("", right)
        if participle and participle[1] in _LOOSE:
            return None
        if participle and names.subject_trust(left) == 2:  # "The Wheel of Time was written by"
            return _read_predicate(left, right, 2)
        first = right.split(" ", 1)[0]
        if first in _LOOSE or first in ("a", "an") or _ADJECTIVE.match(right):
            return None
        vague = right.isalpha() and right.islower() and not _has_relative_pronoun(relation)
        if vague or (about.islower() and about != actor and not names.is_code(about)):
            trust = trust if names.is_value(right) else 1  # "the university of iowa locker room is pink"
        return _Statement(about, relation, right, trust, not _is_plural(relation))
    if left == "I" and actor is not None:
        left, trust = actor, 2
    else:
        trust = names.subject_trust(left)
    if not trust:
        return None
    found = _read_predicate(left, right, trust)
    if found is None or left == actor:
        return found
    if ", " in left and (left[0].islower() or names.is_code(left) or _CLAUSE_BEFORE.search(left)):
        return found._replace(trust=1)  # "dedupe sys/types.h, HAVE_SYS_TYPES_H is": something stands before the subject
    named = left[1:] != left[1:].lower() or (left[0].isupper() and " " not in left)
    if (named and " " in left and found.trust == 2) or names.is_code(left):
        return found
    if _IS_OF_KIND.match(right):
        return found._replace(trust=2)  # "first baseman is associated with the sport of baseball"
    clear = _ARTICLE.match(right) if named else None
    if (named and " " in left) or clear or _IS_CLEAR.match(right):
        return found
    return found._replace(trust=1)  # "results are sorted in descending order": which ones?


def _read_predicate(subject: str, right: str, trust: int) -> _Statement | None:
    """SUBJECT is RIGHT, where the subject is a name."""
    article = _ARTICLE.match(right)
    if article is not None:
        return _read_class(subject, right[article.end() :], trust)
    the = _THE.fullmatch(right) if right.startswith("the ") else None
    if the is not None:
        if the[1].rsplit(" ", 1)[-1] in _VAGUE:
            return None
        return _Statement(the[3], the[1], subject, trust, True) if names.subject_trust(the[3]) == 2 else None
    participle = _PARTICIPLE.fullmatch(right)
    if participle is not None and participle[1] not in _LOOSE:
        noun = f" the {participle[3]} of" if participle[3] else ""
        to_verb = (
            participle[2] == "to"
            and not noun
            and participle[1] not in ("married", "related", "moved", "connected", "assigned")
        )
        if to_verb and not names.CAPITAL.match(participle[4]):
            return None
        if _NO_OBJECT.match(f"{participle[2]} {participle[4]}"):
            return None
        regular = participle[1].endswith(("ed", "en")) or participle[1] in _IRREGULAR_PARTICIPLES
        return _Statement(subject, f"{participle[1]} {participle[2]}{noun}", participle[4], trust if regular else 1)
    place = _PLACE.fullmatch(right)
    if place is not None and names.CAPITAL.match(place[3]):
        noun = f" the {place[2]} of" if place[2] else ""
        relation = "part of" if place[1] == "part of" else f"located {place[1]}{noun}"
        return _Statement(subject, relation, place[3], 1)
    if names.is_value(names.clean(right)):
        return _Statement(subject, "is", right, trust)
    if right.startswith("the "):
        return None if right.rsplit(" ", 1)[-1] in _VAGUE else _Statement(subject, "is", right, 1)
    if names.CAPITAL.match(right):
        return _Statement(subject, "is", right, 1)
    return None


_ADJECTIVE = lazy_pattern(
    r"(?:[a-z]+ly |so |very |really |too |quite |pretty )|[a-z]+(?:ing|ful|ous|ive|able|ible|less|est)$"
)
_VAGUE = frozenset(
    """best worst only same first last most man way thing things place time idea one reminder blast must lot bit dream
    choice start challenge part journey moment day experience change changer mess pain shame pity joke game
    problem issue question matter mistake success win deal source reason help relief treat honor feeling story
    case point step sign example mix""".split()
)
_IRREGULAR_PARTICIPLES = frozenset(
    "born famous known made built made written set run led held sold bought found kept sent".split()
)


def _read_class(subject: str, right: str, trust: int) -> _Statement | None:
    """SUBJECT is a citizen of France; SUBJECT is a web framework."""
    kind = _KIND_OF.fullmatch(right)
    if kind is not None and kind[1].split(" ")[-1] not in _LOOSE and names.CAPITAL.match(kind[3]):
        return _Statement(subject, f"{kind[1]} {kind[2]}", kind[3], trust)
    whole = right
    right = _AFTER_CLASS.split(right, maxsplit=1)[0]
    rest = whole[len(right) :]
    if rest.startswith(" of "):
        trust = 1
    if rest:
        right = _TRAILING_PARTICIPLE.sub("", right)  # "a standard described by"
    first = right.split(" ", 1)[0]
    if first in _LOOSE or first in ("bit", "must", "big", "huge", "super", "such", "real", "total", "true", "lovely"):
        return None
    if right.rsplit(" ", 1)[-1] in _VAGUE:
        return None
    return _Statement(subject, "is a", right, trust)


def _read_property(left: str, actor: str | None) -> tuple[str, str, int] | None:
    """Read `The R of S`, `S's R`, `my R` or `The N that S V` before the verb: subject, relation, trust."""
    first_person = _MY.fullmatch(left) if left[0] in "mMoO" else None
    if first_person is not None:
        if first_person[1].lower() == "our" or actor is None:
            return None
        possessive = _POSSESSIVE.fullmatch(first_person[2])
        if possessive is not None or not names.is_noun_phrase(first_person[2]):
            return None
        return actor, first_person[2], 2
    article = _PROPERTY.match(left) if left[0] in "tTaA" else None
    if article is not None:
        bare = left[article.end() :]
        bare = bare[_NAME_OF.match(bare).end() :]  # type: ignore[union-attr]
        clause = _CLAUSE.fullmatch(bare) if _has_relative_pronoun(bare) else None
        if clause is not None:
            found = _read_relative_clause(*clause.groups())
            if found is not None:
                return found
        return _read_property_of(bare)
    possessive = _POSSESSIVE.fullmatch(left) if "'" in left or "’" in left else None
    if possessive is not None and names.is_noun_phrase(possessive[2]):
        trust = names.subject_trust(possessive[1])
        return (possessive[1], possessive[2], trust) if trust else None
    return None


def _read_relative_clause(noun: str, joint: str, rest: str) -> tuple[str, str, int] | None:
    """The company that produced S; the university where S was educated."""
    words = rest.split(" ")
    if words[0].islower() and words[0].endswith("ed") and len(words) > 1:
        about = " ".join(words[1:])
        return (about, f"{noun} {joint} {words[0]}", 2) if names.subject_trust(about) == 2 else None
    verb = re.fullmatch(r"(.+?) ((?:was |is |were |has )?[a-z]+(?:s|ed|t|n))", rest)
    if verb is None or names.subject_trust(verb[1]) != 2:
        return None
    return verb[1], f"{noun} {joint} {re.sub('^(?:was|is|were|has) ', '', verb[2])}", 2


def _read_property_of(bare: str) -> tuple[str, str, int] | None:
    """Read `R of S`, split at the first preposition before a name: "head of state in Poland"."""
    joints = list(_OF.finditer(bare))
    if not joints:
        return None
    joint = next((one for one in joints if names.CAPITAL.match(one[2])), joints[0])
    relation, about = bare[: joint.start()], bare[joint.end() :]
    if joint is joints[0] and joint[1] != "of" and not names.CAPITAL.match(joint[2]):
        return None
    words = relation.split(" ")
    if _has_relative_pronoun(relation):
        return None
    if len(words) > 4 or not words[0] or words[0] in _LOOSE or words[0] in ("rest", "end", "way", "fact", "number"):
        return None
    if relation == "head" and about.endswith(" government"):
        return about.removesuffix(" government"), "head of government", 2
    trust = names.subject_trust(about)
    if joint[1] == "on" or (not trust and names.CAPITAL.match(about)):
        trust = 1  # "the method on Python 3 is": a place, no owner
    return (about, relation, trust) if trust else None


def _has_relative_pronoun(text: str) -> bool:
    return (" wh" in text or " that " in text) and _RELATIVE_PRONOUN.search(text) is not None


def _is_plural(relation: str) -> bool:
    last = relation.split(" ")[-1]
    return last.endswith("s") and not last.endswith(("ss", "us", "is", "headquarters", "status"))


def _read_verb(words: list[str], at: int, actor: str | None) -> tuple[_Statement | None, bool]:
    """SUBJECT uses OBJECT; SUBJECT does not use OBJECT."""
    form, end, negated, has_auxiliary = words[at], at, False, False
    while end and words[end - 1] in _ADVERBS_BEFORE_VERB:
        end -= 1
        negated = negated or words[end] in ("longer", "never")
        end -= words[end] == "longer" and words[end - 1] == "no"
    if words[end - 1] in _DO_NOT or (words[end - 1] == "not" and words[end - 2] in ("does", "do", "did")):
        end -= 2 if words[end - 1] == "not" else 1
        negated = has_auxiliary = True
    left, right = " ".join(words[:end]), " ".join(words[at + 1 :])
    tail = _VERB_TAIL.match(right)
    if tail is None or end <= 0:
        return None, False
    verb_and_preposition = f"{form} {tail[1].strip()}" if tail[1] else form
    relation = relations.FORMS.get(verb_and_preposition)
    if relation is None:
        if tail[1] or form not in relations.FORMS:
            return None, False
        relation = relations.FORMS[form]
    right = right[tail.end() :]
    if left == "I" and actor is not None:
        subject, trust = actor, 2
    else:
        subject, trust = left, names.subject_trust(left)
        if not trust or words[0] in _IMPERATIVES or left.endswith(" I"):
            return None, False
        if left.removeprefix("The ") in _UNNAMED or _FAULT.match(right) or words[end] in _DID:
            trust = 1  # of which project; a fault that is mended; before this change
        plain = left[1:].islower() and not names.is_code(left)
        if (
            plain
            and not tail[2]
            and (
                " " in left
                or left.lower() in _GENERIC_SUBJECTS
                or form in _ALSO_NOUNS
                or (left.islower() and not relations.is_about_software(relation))
            )
        ):
            trust = 1  # "user provides a path", "Surface links to X": perhaps no statement
        if not form.endswith("s") and not has_auxiliary:
            if form in relations.BASES:
                return None, False  # "Sounds like X", "Document use of X"
            if form.endswith("ed") and not (" " in left or names.is_code(left)):
                trust = 1  # "Drop deprecated API"
    if tail[2]:
        relation = f"{relation} the {tail[2]} of"
    if form in ("has", "have", "had") and not _ENTITY.match(right):
        if _PERFECT_TENSE.match(right):
            return None, False  # "I have played Nintendo"
        trust = 1
    return _Statement(subject, relation, right, trust), negated
