"""Relations: which wordings mean the same one, which may have many values at a time and which have one.

`canonical` keeps to what is safe: auxiliaries, tense and articles are gone already, and a short table joins the noun
and the verb of one thing ("the author of X is Y", "X was written by Y"). Whatever else people write stays as it is."""

from __future__ import annotations

import re
from functools import lru_cache

from ..patterns import lazy_pattern
from .model import name_id

_SAME = {
    "written by": "author",
    "authored by": "author",
    "writer": "author",
    "founded by": "founder",
    "created by": "creator",
    "developed by": "developer",
    "owned by": "owner",
    "maintained by": "maintainer",
    "performed by": "performer",
    "ceo": "chief executive officer",
    "chief executive": "chief executive officer",
    "wife": "married to",
    "husband": "married to",
    "spouse": "married to",
    "nationality": "citizen of",
    "birthplace": "born in",
    "place of birth": "born in",
    "place of death": "died in",
    "headquartered in": "headquarters located in",
    "headquarters": "headquarters located in",
    "employer": "works at",
    "employed by": "works at",
    "employed at": "works at",
    "works for": "works at",
    "resides in": "lives in",
    "lives at": "lives in",
    "based in": "located in",
    "situated in": "located in",
    "superseded by": "replaced by",
    "job": "occupation",
    "profession": "occupation",
    "full name": "name",
}

_MANY = frozenset(
    """uses depends_on requires supports contains includes likes loves enjoys hates prefers visited met bought knows
    owns has speaks plays imports calls implements extends conflicts_with replaces is_a is friend child son
    daughter brother sister sibling parent colleague member hobby pet part_of belongs_to related_to links_to tag
    changes changes_with fixes wrote read watched attended tried made created developed founded interacted_with did
    in_repository associated_with similar_to connected_to works_with involved_in interested_in famous_for
    known_for used liked loved visits works_on occurs_in acted_on""".split()
)
_VERBS = """
use depend_on require support contain include like love enjoy hate prefer visit meet/met buy/bought own
have/has/had speak/spoke play import call implement extend conflict_with replace belong_to run_on run_in run_at
listen_on work_at work_for work_as work_with work_in work_on live_in live_at reside_in move_to die_in write/wrote
found create develop maintain manage lead/led report_to join marry study_at study_in graduate_from read/read watch
attend adopt return default_to point_to inherit_from produce consume connect_to read_from write_to/wrote_to deploy_to
deprecate supersede become/became specialize_in specialise_in consist_of come_from/came_from originate_from
originate_in live_with teach/taught teach_at coach drive/drove win/won direct host store_in compete_in serve_as
link_to refer_to map_to listen_to subscribe_to publish_to grow_up_in/grew_up_in start_at migrate_to migrate_from
switch_to switch_from upgrade_to downgrade_to rename_to expose provide trigger block fix/fixed cause introduce remove
drop add
"""

_INVERSE = {
    "wrote": "author",
    "founded": "founder",
    "created": "creator",
    "developed": "developer",
    "maintains": "maintainer",
    "owns": "owner",
    "directed": "director",
}
"""Relations stored from the object's side: "Keats wrote Endymion" is stored as the author of Endymion."""

_SINGLE = frozenset(
    """born_in died_in married_to lives_in works_at moved_to located_in headquarters_located_in capital founder author
    performer creator developer citizen_of name age birthday chief_executive_officer default version port owner
    maintainer runs_on listens_on reports_to replaced_by founded_in defaults_to points_to""".split()
)


def _third_person(verb: str) -> str:
    if verb == "have":
        return "has"
    if re.search(r"(?:s|x|z|ch|sh|o)$", verb):
        return verb + "es"
    return verb[:-1] + "ies" if re.search(r"[^aeiou]y$", verb) else verb + "s"


def _past_tense(verb: str) -> str:
    if verb.endswith("e"):
        return verb + "d"
    if verb in ("drop", "stop", "plan", "refer", "map"):
        return verb + verb[-1] + "ed"
    return verb[:-1] + "ied" if re.search(r"[^aeiou]y$", verb) else verb + "ed"


def _verb_forms() -> dict[str, str]:
    """Map each form of the listed verbs to its relation; the past tense is a relation of its own."""
    found: dict[str, str] = {}
    for entry in _VERBS.split():
        base, *irregular = entry.split("/")
        verb, _, rest = base.partition("_")
        tail = " " + rest.replace("_", " ") if rest else ""
        past = irregular[-1].replace("_", " ").removesuffix(tail) if irregular else _past_tense(verb)
        for form in (verb, _third_person(verb)):
            if form != "found":  # usually the past tense of "find"
                found.setdefault(form + tail, _third_person(verb) + tail)
        found.setdefault(past + tail, past + tail)
    return found


FORMS = _verb_forms()
FIRST_WORDS = frozenset(form.split(" ")[0] for form in FORMS)
BASES = frozenset(entry.split("/")[0].split("_")[0] for entry in _VERBS.split())
_IN_PLACE = lazy_pattern(r"^(.+) the (?:city|town|country|state|continent|village|region|county) of$")


_SOFTWARE_RELATIONS = frozenset(
    """depends_on requires supports uses runs_on runs_in replaces contains includes returns defaults_to listens_on
    belongs_to extends implements imports inherits_from points_to connects_to conflicts_with produces consumes owns
    maintains provides exposes consists_of""".split()
)


def is_about_software(relation: str) -> bool:
    """Whether software commonly is the subject, whose names are often lower-case: "depends on", "listens on"."""
    return relation.replace(" ", "_") in _SOFTWARE_RELATIONS


@lru_cache(maxsize=1 << 12)
def canonical(relation: str) -> str:
    """Return the one name for all wordings of a relation."""
    plain = relation.strip().lower()
    return _SAME.get(plain, plain)


@lru_cache(maxsize=1 << 12)
def relation_id(relation: str) -> int:
    """Return the id of a relation in stores; the same for all of its wordings."""
    return name_id(canonical(relation))


def inverse(relation: str) -> str | None:
    """Return the relation from object to subject under which stores keep this one; None if it is kept as it is."""
    return _INVERSE.get(relation)


@lru_cache(maxsize=1 << 12)
def has_many(relation: str) -> bool:
    """Whether a subject often has several values at one time: "uses", "knows"."""
    return relation.replace(" ", "_") in _MANY


@lru_cache(maxsize=1 << 12)
def has_one(relation: str) -> bool:
    """Whether a subject can have only one value at a time: "born in", "capital"."""
    place = _IN_PLACE.match(relation)
    return (relation if place is None else place[1]).replace(" ", "_") in _SINGLE
