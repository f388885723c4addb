"""The plan of a run, drawn from the seed alone: the operations of each thread and the faults of each round.

A plan names operations and draws numbers; which memory a number selects depends on what the thread has by then."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

EVER, SHARED = "ever", "shared"  # agents: memories that are never forgotten, and memories that all threads change
EVER_PRESENT = 12
CONTENDED = 6
OWN_AT_MOST = 40  # memories of one thread, beyond which it forgets before it remembers more
BULK = 260  # memories at once; from 256 on the SQLite store uses its bulk path

STORES = ("sqlite", "postgres", "redis")
FAULTS = (
    "kill",
    "stop",
    "interrupt",
    "fork",
    "disk",
    "power",
    "server",
    "doctor",
    "backup",
    "reindex",
    "export",
    "open",
)

_FILLER = (
    "lighthouse harbour storm lantern keeper signal rope anchor tide gull pier compass chart sail mast deck cargo "
    "captain voyage island reef current whale salt wind fog bell hull rudder galley"
).split()
_WRITES = {
    "remember": 14, "remember_many": 3, "bulk": 0.1, "update": 14, "tag": 5, "pin": 3, "move": 5, "forget": 9,
    "put": 5, "drop": 3,
}  # fmt: skip
_READS = {"get": 8, "lexical": 10, "hybrid": 4, "vector": 4, "list": 6, "export": 0.7, "count": 5}
_WEIGHTS = {
    "mixed": {**_WRITES, **_READS},
    "power": {**_WRITES, **_READS},
    "same words": {**_READS, "tag": 25, "pin": 8, "move": 12, "put": 5},  # new rows, but no new words
}
_AGENT_WEIGHTS = {
    **_READS, "remember": 20, "remember_many": 4, "forget": 9, "raise": 6, "maintain": 3, "drop": 0, "export": 0,
}  # fmt: skip
_FAULT_WEIGHTS = {
    "kill": 40, "stop": 8, "interrupt": 12, "fork": 6, "disk": 6, "server": 2, "doctor": 3, "backup": 2.5,
    "reindex": 2.5, "export": 2.5, "open": 3,
}  # fmt: skip
_APPLIES = {  # to which stores; the others to all
    "disk": ("sqlite", "redis"),
    "power": ("sqlite",),
    "server": ("postgres", "redis"),
    "doctor": ("sqlite", "redis"),
    "backup": ("sqlite", "redis"),
    "reindex": ("sqlite", "postgres"),
    "export": ("sqlite", "postgres"),
}


class Step(NamedTuple):
    """One operation of a thread; the numbers in [0, 1) make its random choices."""

    op: str
    which: float
    how: float
    much: float


class Fault(NamedTuple):
    """One fault: seconds after the previous one, what, in which process, and a number for its details."""

    wait: float
    kind: str
    which: float
    how: float


def word(*numbers: int, first: str = "q") -> str:
    """Return a word unique to these numbers that no analyser splits: digits as consonants."""
    return first + "z".join("".join("bcdfghjklm"[int(digit)] for digit in str(number)) for number in numbers)


def text_of(name: str, revision: str) -> str:
    """Return the text of a memory: its own word, the word of this revision, and some common words."""
    start = zlib.crc32(revision.encode())
    return " ".join([name, revision, *(_FILLER[(start >> shift) % len(_FILLER)] for shift in (0, 5, 10, 15))])


def agent_of(slot: int, thread: int) -> str:
    return f"w{slot}t{thread}"


def ever_words() -> list[str]:
    return [word(0, number, first="x") for number in range(EVER_PRESENT)]


def contended_words() -> dict[str, str]:
    """Return {word: id} of the memories that all threads replace and forget."""
    return {word(1, number, first="x"): f"shared-{number}" for number in range(CONTENDED)}


def faults_for(store: str, wanted: Sequence[str]) -> list[str]:
    """Return those of the wanted faults that apply to a store."""
    return [fault for fault in wanted if store in _APPLIES.get(fault, STORES)]


def theme_of(store: str, round_: int, faults: Sequence[str]) -> str:
    themes = ["mixed", *(["same words"] if store != "redis" else []), *(["power"] if "power" in faults else [])]
    return themes[round_ % len(themes)]


def steps(seed: int, store: str, theme: str, *who: int) -> Iterator[Step]:
    """Yield the operations of one thread (round, slot, incarnation, thread), without end."""
    rng = random.Random(f"{seed}/{who}")
    weights = _AGENT_WEIGHTS if store == "redis" else _WEIGHTS[theme]
    names, shares = list(weights), list(weights.values())
    while True:
        (op,) = rng.choices(names, shares)
        yield Step(op, rng.random(), rng.random(), rng.random())


def faults(seed: int, round_: int, theme: str, among: Sequence[str], pace: float) -> Iterator[Fault]:
    """Yield the faults of one round, without end; `pace` is their number per second."""
    rng = random.Random(f"{seed}/{round_}/faults")
    weights = {name: share for name, share in _FAULT_WEIGHTS.items() if name in among}
    if theme == "power":  # failing calls would hide the effects of power cuts
        weights.pop("disk", None)
    while weights:
        (kind,) = rng.choices(list(weights), list(weights.values()))
        yield Fault(rng.expovariate(pace), kind, rng.random(), rng.random())
