"""How people ask for a relation: the words of a question that mean a word of a relation, though no stem and no vector
says so. Each line is a word of relations, the words that mean it, and behind the bar those that may."""

from __future__ import annotations

from functools import lru_cache

import Stemmer

_MEANT = """
married: spouse wife husband partner marriage wed significant | other
citizen: citizenship nationality national country nation | belong come hail origin hold native
author: write wrote written writer book novel | create work creator
written: write writer | original
creator: create made make invent inventor author | work character
created: origin originate originated emerge begin began birthplace develop developed invent invented come came
    hail start practice practiced first made rise rose | birth found founded place established derived
founder: found founded establish established establishment foundation founding form formed start started |
    create created
founded: establish established establishment foundation founding existence form formed start | place location
    begin origin
developer: develop developed | create made creator
born: birthplace birth | place origin native hail
died: death die pass passed away breath breathe perish | last place
capital: seat
head: chief leader lead president minister highest ranking | official political
state: country nation | monarch president king queen highest official
government: minister political executive representative | leader country
chief: ceo head
executive: ceo
officer: ceo | official
director: direct directed manager manage managed managing | head lead
chairperson: chair chairman chairwoman chairs | leader head position president
company: manufacturer maker manufacture manufactured firm corporation | organization organisation produce
produced: manufacturer manufacture manufactured maker made make producer | built
university: college school institution educational alma alumni | academy
educated: education study studied attend attended attendance graduate graduated educational | receive received
    alma
employed: employer employ employs work works worked organization company | institution job hire hired part
works: employer employed employ employs work worked organization company job | institution hire hired part
worked: work works job workplace employment | location
field: occupation profession job career professional kind role title | work line business
position: specialty speciality specialize specializes specialise specialised specialized role play plays |
    team
plays: play played position | perform performed
sport: sports game discipline league | compete competed team
headquarters: headquarter hq seat base based | location located office
located: location situated lies place where | base
city: town place location municipality | where
country: nation state land origin | place
performer: perform performed performs artist singer sing sang played actor actress plays portray portrayed
    band | song album
famous: notable known significant renown | work creation
religion: faith religious belief believe believes church denomination | follow affiliated follows
affiliated: faith associated belong follow follows
language: tongue speak spoken languages | write sign communicate
speaks: speak spoken speaking language | write sign
official: formal recognized
music: genre musical style song
type: genre kind style
child: children son daughter kid offspring
broadcaster: broadcast broadcasted aired network channel air tv
original: first originally
coach: coached coaches trainer train manager
occupation: profession job career work | role
lives: live living home reside resides residence | house
owner: own owns owned belong
maintainer: maintain maintains maintained
depends: depend dependency dependencies requires require need needs | use
uses: use using used depend | rely
runs: run running hosted host | deployed
"""
MEANS, MAY_MEAN = 0.9, 0.5

_english = Stemmer.Stemmer("english")


@lru_cache(maxsize=1 << 13)
def stem(word: str) -> str:
    """The stem of an English word in small letters."""
    found: str = _english.stemWord(word)
    return found


def _read_table() -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for line in _MEANT.replace("\n    ", " ").strip().splitlines():
        head, _, rest = line.partition(":")
        means, _, may = rest.partition("|")
        words = {stem(word): MAY_MEAN for word in may.split()} | {stem(word): MEANS for word in means.split()}
        found.setdefault(stem(head), {}).update(words)
    return found


_TABLE = _read_table()


def meaning(word: str, asked: str) -> float:
    """How far a word of a question means a word of a relation, by the table; both are stems."""
    return _TABLE.get(word, {}).get(asked, 0.0)
