"""Synonyms between questions and relations, for words that neither stems nor vectors match. Each line: a word of a
relation, the question words that mean it and, after the bar, those that may mean it."""

from __future__ import annotations

from functools import lru_cache

import Stemmer

_SYNONYMS = """
married: spouse wife husband partner marriage wed significant wives marital consort bride groom wedded
    betrothed companion | other
citizen: citizenship nationality national country nation passport nationals homeland citizens patriot subject
    | belong come hail origin hold native
author: write wrote written writer book novel penned pen novelist writes authored poet playwright writing
    composer publish published | create work creator
written: write writer | original
creator: create made make invent inventor author creates creating creation originator conceived conceive
    devised devise designer design designed brainchild | work character
created: origin originate originated emerge begin began birthplace develop developed invent invented come came
    hail start practice practiced first made rise rose originates originating originally roots root invention
    inception conceived cradle home introduced hails source | birth found founded place established derived
founder: found founded establish established establishment foundation founding form formed start started
    founders cofounder establishes establishing initiated initiate launched launch creator creators | create
    created
founded: establish established establishment foundation founding existence form formed start inception
    launched launch originated originate began set birthplace started | place location begin origin
developer: develop developed develops developing creators engineered programmed software maker built | create
    made creator
born: birthplace birth hometown birthday birthed | place origin native hail
died: death die pass passed away breath breathe perish demise deceased dead perished expired breathed final
    succumb departed passing life | last place
capital: seat administrative
head: chief leader lead president minister highest ranking heads leading leads charge helm boss rule rules
    ruler governs sovereign top | official political
state: country nation ruler sovereign throne reign emperor | monarch president king queen highest official
government: minister political executive representative premier governs governing cabinet prime administration
    chancellor | leader country
chief: ceo head top
executive: ceo helm leads
officer: ceo | official
director: direct directed manager manage managed managing directs runs supervises boss manages producer | head
    lead
chairperson: chair chairman chairwoman chairs chairing presides leads heads chaired | leader head position
    president
company: manufacturer maker manufacture manufactured firm corporation brand business enterprise makers
    manufactures manufacturing builder factory | organization organisation produce
produced: manufacturer manufacture manufactured maker made make producer manufactures manufacturing makes
    builds builder assembles assembled production | built
university: college school institution educational alma alumni mater campus academic institute | academy
educated: education study studied attend attended attendance graduate graduated educational studies studying
    attends attending schooling schooled pursued degree learned mater taught | receive received alma
employed: employer employ employs work works worked organization company employee hires employment staff
    workplace | institution job hire hired part
works: employer employed employ employs work worked organization company job employee hires employment staff
    workplace working | institution hire hired part
worked: work works job workplace employment working professional career business | location
field: occupation profession job career professional kind role title vocation livelihood living trade
    expertise employment | work line business
position: specialty speciality specialize specializes specialise specialised specialized role play plays
    positioned positions spot | team
plays: play played position | perform performed
sport: sports game discipline league athletic athlete athletics player plays playing competes | compete
    competed team
headquarters: headquarter hq seat base based headquartered situated offices main home | location located
    office
located: location situated lies place where found belongs belong | base
city: town place location municipality | where
country: nation state land origin homeland | place
performer: perform performed performs artist singer sing sang played actor actress plays portray portrayed
    band performing performers sings sung musician vocalist recorded portrays portraying acted starred role
    singing | song album
famous: notable known significant renown fame renowned celebrated recognized best well noted popular
    masterpiece acclaimed | work creation
religion: faith religious belief believe believes church denomination religions worship worships adherent
    adheres spiritual creed practices practice followed | follow affiliated follows
affiliated: faith associated belong follow follows
language: tongue speak spoken languages linguistic fluent speaks speaking tongues native communicates | write
    sign communicate
speaks: speak spoken speaking language fluent communicates tongue languages | write sign
official: formal recognized national
music: genre musical style song genres songs tunes
type: genre kind style category styles
child: children son daughter kid offspring heir descendant father mother parent parents kids
broadcaster: broadcast broadcasted aired network channel air tv broadcasts broadcasting airs airing televised
    television station premiered
original: first originally
coach: coached coaches trainer train manager coaching trains manages head
occupation: profession job career work | role
lives: live living home reside resides residence | house
owner: own owns owned belong
maintainer: maintain maintains maintained
depends: depend dependency dependencies requires require need needs | use
uses: use using used depend | rely
runs: run running hosted host | deployed
continent: landmass
"""
MEANS, MAY_MEAN = 0.9, 0.5

_english = Stemmer.Stemmer("english")


@lru_cache(maxsize=1 << 13)
def stem(word: str) -> str:
    """Return the stem of a lower-case English word."""
    found: str = _english.stemWord(word)
    return found


def _read_table() -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for line in _SYNONYMS.replace("\n    ", " ").strip().splitlines():
        head, _, rest = line.partition(":")
        means, _, may = rest.partition("|")
        words = {stem(word): MAY_MEAN for word in may.split()} | {stem(word): MEANS for word in means.split()}
        found.setdefault(stem(head), {}).update(words)
    return found


_TABLE = _read_table()


def meaning(word: str, question_word: str) -> float:
    """Return how well a question word matches a word of a relation, 0 to 1; both are stems."""
    return _TABLE.get(word, {}).get(question_word, 0.0)
