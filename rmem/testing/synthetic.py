"""Synthetic memories and questions with the statistics of real ones, for benchmarks, soak tests and tests of scale.

Content words follow Zipf's law, English function words have their natural rates; sessions keep to a topic; some texts
name files, errors, versions and tickets. Everything follows from the seed, and the texts of the first n memories do not
depend on how many are requested."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import resources
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

_BLOCK = 4096  # memories drawn at once, each block from a seed of its own
_SESSION = 20
_OPEN = 8  # sessions that run side by side
_TOPICS = 400
_TOPIC_WORDS = 32
_CLUSTERS = 1000
_IDENTIFIERS = 20_000
_YEAR_START = 1_735_689_600.0  # 1 January 2025, UTC
_YEAR = 365 * 86_400.0
_TOPICAL = 0.16  # of the content words
_FLATTEN = 25.0  # rank offset of content words: about so many function words are more frequent

# Function words with their rates per thousand words of running English.
_FUNCTION_WORDS = """
the 58 of 29 and 27 to 26 a 22 in 19 that 11 is 10 was 10 it 10 for 9 on 8 with 7 as 7 he 6 be 6 at 5 by 5 i 5 this 5
had 5 not 5 are 5 but 4 from 4 or 4 have 4 an 4 they 4 which 3 one 3 you 3 were 3 all 3 her 3 she 3 there 3 would 3
their 3 we 3 him 3 been 3 has 3 when 2.5 who 2.5 will 2.5 no 2.5 more 2 if 2 out 2 so 2 up 2 what 2 its 2 about 2
than 2 into 2 them 2 can 2 only 2 other 2 some 2 could 1.8 these 1.5 two 1.5 may 1.5 then 1.5 do 1.5 any 1.3 my 1.3
now 1.3 such 1.2 our 1.2 over 1.2 even 1.1 most 1.1 after 1.1 also 1 did 1 before 1 must 1 through 1 where 0.9 should
0.9 because 0.9 each 0.8 just 0.8 those 0.8 how 0.8 too 0.8 very 0.8 while 0.7 here 0.7 between 0.7 both 0.7 under
0.7 again 0.6 never 0.6 same 0.6 another 0.6 why 0.5 off 0.5 during 0.5 without 0.5
"""

_PREFIXES = """- - - - - - a ab ad al anti be bi com con contra de di dis dys en epi ex fore hyper il im in inter
intro mis mono multi non ob off omni out over para per peri poly post pre pro re retro semi sub super sur sym syn tele
trans tri ultra un under up vice with""".split()
_ROOTS = """act ali anim ann aqu arbor arch art audi auto bene bell bibl brev calor can cant cap capit card carn ced
ceed cent centr cess chron cid circ civ claim clar clud cogn cord corp cosm crat cred cresc crypt culp cur cycl dat dem
derm dict doc dom don dorm duc duct dur dyn ego equ fac fact fect fer fid fig fin firm flect flor flu form fort fract
frag frat fug fund fus gen geo gest grad graph grat greg gress hab her hesi hibit hom hum hydr ign jac ject jud junct
jur lat leg lev liber lith loc log lum magn mand man mar mater medi mem ment merg meter migr min mir miss mob mon mor
mort mot mut nat nav neg neur nom not nov numer nunci oper ord pac pan part pass pater path ped pel pend phil phon phot
phys plac plet plic pod pol pon popul port pos pot press prim prob psych puls punct quer quir radi rap rect reg rid
rupt sanct sci scop scrib script sect sed sens sequ serv sign simil sist soci sol solv somn soph spec spect sper spher
spir spond sta stell strat strict struct sum surg tact tain tang techn temp ten tend termin terr test therm tort tract
tribut turb typ umbr urb vac val vapor ven vent verb vers vert vict vid vinc vis vit viv voc vol volv vor""".split()
_ENDINGS = """al ance ant ary ate ated ates ating ation ations ator atory e ed ement ency ent er ers es ian ibility ible
ic ical ically ice ify ile ily ine ing ings ion ional ions ious ise ish ism ist ity ium ive ively iveness ivity or orial
ory ous ously s ure us y""".split()

_TYPES = ("observation", "message", "decision", "error_fix", "fact", "plan", "tool_result", "summary")
_TYPE_SHARES = (0.34, 0.26, 0.1, 0.08, 0.08, 0.05, 0.06, 0.03)
_PEOPLE = """Ana Boris Chen Dalia Emeka Farid Greta Hana Ivan Jorge Keiko Leila Marta Nadia Olu Priya Quentin Rosa
Samir Tomas Ulla Vera Wanda Ximena Yusuf Zofia""".split()
_SUFFIXES = "py ts rs go sql yaml json toml md parquet csv sh".split()
_ERRORS = "Memory Key Value Timeout Connection Import Type Lookup Overflow Schema Decode Permission".split()

_OPENINGS = (
    "what did we decide about the", "why did the", "how was the", "who worked on the", "where is the",
    "what happened with the", "have we ever seen", "which", "do you remember the", "what do we know of",
    "how do we fix", "when was the",
)  # fmt: skip


class _Language(NamedTuple):
    """The words and their cumulated frequencies; function words first."""

    words: npt.NDArray[np.object_]
    cumulated: npt.NDArray[np.float64]
    functions: int
    topics: npt.NDArray[np.int64]
    identifiers: list[str]


def vocabulary(size: int = 30_000) -> list[str]:
    """Return distinct content words, the most frequent first: real ones, then compounds and invented ones.

    Real words matter: they have the stems, tokens and related meanings that an engine meets in practice.
    """
    rng = np.random.default_rng(20_250_101)
    real = resources.files(__package__).joinpath("words.txt").read_text("ascii").split()
    words = dict.fromkeys(real)
    while len(words) < size:
        parts = [rng.integers(len(part), size=size).tolist() for part in (_PREFIXES, _ROOTS, _ENDINGS, real, real)]
        for prefix, root, ending, first, second in zip(*parts, strict=True):
            words[f"{real[first]}{real[second]}"] = None
            if ending % 5:
                words[f"{_PREFIXES[prefix].strip('-')}{_ROOTS[root]}{_ENDINGS[ending]}"] = None
    return list(words)[:size]


@cache
def _language() -> _Language:
    pairs = _FUNCTION_WORDS.split()
    rates = np.array(pairs[1::2], np.float64) / 1000
    content = vocabulary()
    ranks = np.arange(len(content))
    shares = 1 / (ranks + _FLATTEN)
    shares *= (1 - rates.sum()) / shares.sum()
    chances = np.concatenate([rates, shares])
    words = np.array(pairs[0::2] + content, object)
    rng = np.random.default_rng(20_250_102)
    functions = len(rates)
    # Topics are made of informative words: neither the most frequent nor the rarest.
    topics = functions + (len(content) ** rng.uniform(0.35, 0.95, (_TOPICS, _TOPIC_WORDS))).astype(np.int64)
    return _Language(words, chances.cumsum() / chances.sum(), functions, topics, _identifiers(content, rng))


def _identifiers(content: list[str], rng: np.random.Generator) -> list[str]:
    """Make paths, error names, functions, versions, tickets and hashes."""
    draws = rng.integers(0, 2000, size=(_IDENTIFIERS, 3)).tolist()
    numbers = rng.integers(1 << 40, size=_IDENTIFIERS).tolist()
    made = []
    for at, ((a, b, c), number) in enumerate(zip(draws, numbers, strict=True)):
        first, second, third = content[a], content[b], content[c]
        kind = at % 7
        if kind == 0:
            made.append(f"{first}/{second}_{third}.{_SUFFIXES[number % len(_SUFFIXES)]}")
        elif kind == 1:
            made.append(f"{first.capitalize()}{_ERRORS[number % len(_ERRORS)]}Error")
        elif kind == 2:
            made.append(f"{first}_{second}")
        elif kind == 3:
            made.append(f"{first} {number % 9}.{number % 31}.{number % 17}")
        elif kind == 4:
            made.append(f"{first[:4].upper()}-{number % 10_000}")
        elif kind == 5:
            made.append(f"{number:010x}{number * 7919 % (1 << 40):010x}")
        else:
            made.append(f"{first}.{second}()")
    return made


def synthetic_memories(
    n: int, seed: int = 0, agents: int = 100, dimension: int | None = None
) -> Iterator[dict[str, Any]]:
    """Yield `n` memories as arguments of `Brain.remember`, in order of time over one year.

        brain.remember_many(synthetic_memories(10_000))

    With a `dimension` each also has a vector of that many numbers, drawn around one of a thousand centres.
    `step` is the number of the memory, by which a hit can be identified.
    """
    return islice(_memories(n, seed, agents, dimension), n)


def _memories(n: int, seed: int, agents: int, dimension: int | None) -> Iterator[dict[str, Any]]:
    spacing = _YEAR / max(n, 1)
    names = [f"agent-{number:03d}" for number in range(agents)]
    for block in range(-(-n // _BLOCK)):
        rng = np.random.default_rng((seed, block))
        texts, sessions = _texts(rng)
        first_agent = int(rng.integers(agents))
        actors = rng.integers(-len(_PEOPLE), len(_PEOPLE), size=_BLOCK).tolist()
        kinds = rng.choice(len(_TYPES), size=_BLOCK, p=_TYPE_SHARES).tolist()
        importance = np.round(rng.beta(2, 3, size=_BLOCK), 2).tolist()
        labels = rng.integers(100, size=(_BLOCK, 2)).tolist()
        late = (rng.random(_BLOCK) * spacing).tolist()
        vectors = None if dimension is None else clustered_vectors(_BLOCK, dimension, seed, block)
        first = block * _BLOCK
        for at, (text, session) in enumerate(zip(texts, sessions.tolist(), strict=True)):
            agent = names[(first_agent + session) % agents]
            repository, tool = labels[at]
            memory: dict[str, Any] = {
                "text": text,
                "agent": agent,
                "type": _TYPES[kinds[at]],
                "session": f"s-{block}-{session}",
                "actor": agent if actors[at] < 0 else _PEOPLE[actors[at]],
                "tags": {"repo": f"repo-{repository % 40}"} if repository < 60 else None,
                "importance": importance[at],
                "when": _YEAR_START + (first + at) * spacing + late[at],
                "step": first + at,
            }
            if tool < 20:
                memory["metadata"] = {"tool": f"tool-{tool}", "exit_code": tool % 3}
            if vectors is not None:
                memory["vector"] = vectors[at]
            yield memory


def _texts(rng: np.random.Generator) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Return the texts of one block, and the session of each."""
    language = _language()
    sessions = _interleave_sessions(rng)
    topics = rng.integers(_TOPICS, size=sessions.max() + 1)[sessions]
    lengths = np.minimum(8 + rng.exponential(12.0, size=_BLOCK).astype(np.int64), 40)
    ends = lengths.cumsum()
    drawn = np.searchsorted(language.cumulated, rng.random(int(ends[-1])))
    topical = (rng.random(drawn.size) < _TOPICAL) & (drawn >= language.functions)
    at = np.flatnonzero(topical)
    owners = np.repeat(topics, lengths)[at]
    drawn[at] = language.topics[owners, rng.integers(_TOPIC_WORDS, size=at.size)]
    words: list[str] = language.words[np.minimum(drawn, language.words.size - 1)].tolist()
    chance = rng.random(_BLOCK).tolist()
    named = (rng.random(_BLOCK) ** 3 * _IDENTIFIERS).astype(np.int64).tolist()
    texts = []
    start = 0
    for number, end in enumerate(ends.tolist()):
        text = " ".join(words[start:end])
        lot = chance[number]
        if lot < 0.25:
            middle = (start + end) // 2
            name = language.identifiers[named[number]]
            text = f"{' '.join(words[start:middle])} {name} {' '.join(words[middle:end])}"
        texts.append(f"{text[0].upper()}{text[1:]}{'?' if lot > 0.93 else '.'}")
        start = end
    return texts, sessions


def _interleave_sessions(rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return the session of each memory of a block: about twenty memories each, eight sessions at a time."""
    lane = rng.integers(_OPEN, size=_BLOCK)
    order = np.argsort(lane, kind="stable")
    breaks = rng.random(_BLOCK) < 1 / _SESSION
    breaks[np.flatnonzero(np.diff(lane[order], prepend=-1))] = True
    sessions = np.empty(_BLOCK, np.int64)
    sessions[order] = breaks.cumsum() - 1
    return sessions


def clustered_vectors(n: int, dimension: int, seed: int = 0, part: int = 0) -> npt.NDArray[np.float32]:
    """Draw `n` unit vectors around a thousand centres of unequal weight. `part` draws more of the same mixture."""
    centres = np.random.default_rng((seed, 7)).random((_CLUSTERS, dimension), np.float32)
    centres -= 0.5
    rng = np.random.default_rng((seed, 8, part))
    # Few large clusters and many small ones; noise as long as the centre gives a cosine near 0.7 to it.
    cluster = (rng.random(n) ** 2 * _CLUSTERS).astype(np.int64)
    vectors = rng.random((n, dimension), np.float32)
    vectors -= 0.5
    vectors += centres[cluster]
    vectors /= np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
    return vectors


def synthetic_questions(n: int, seed: int = 0, size: int = _BLOCK) -> list[str]:
    """Make `n` questions in natural language, each from the words of one of `synthetic_memories(size, seed)`."""
    rng = np.random.default_rng((seed, 9))
    language = _language()
    functions = set(language.words[: language.functions].tolist())
    blocks = max(1, size // _BLOCK)
    chosen = rng.choice(blocks, size=min(blocks, 8), replace=False).tolist()
    texts: list[str] = []
    for block in chosen:
        texts += _texts(np.random.default_rng((seed, block)))[0][: max(1, min(size, _BLOCK))]
    questions = []
    for at in rng.integers(len(texts), size=n).tolist():
        content = [word for word in texts[at].rstrip(".?").split() if word.lower() not in functions]
        kept = rng.permutation(len(content))[: int(rng.integers(2, 6))]
        chosen_words = [content[place] for place in sorted(kept.tolist())]
        opening = _OPENINGS[int(rng.integers(len(_OPENINGS)))]
        joint = (" ", " of the ", " with ", " and ")[int(rng.integers(4))]
        half = (len(chosen_words) + 1) // 2
        tail = " ".join(chosen_words[half:])
        questions.append(f"{opening} {' '.join(chosen_words[:half])}{joint + tail if tail else ''}?")
    return questions
