"""How right and how complete the facts are that are read from sentences, and what reading them costs.

    python benchmarks/fact_extraction.py --facts factconsolidation.json.gz --locomo locomo-dev.json
    python benchmarks/fact_extraction.py --evidence recall/locomo.json.gz

The labels are in benchmarks/fact_labels; its README says where the sentences come from. Sentences that may not be
copied are read from the files that are named, and left out without them."""

from __future__ import annotations

import argparse
import gzip
import json
import re
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rmem import Brain
from rmem.evaluate.offline import Setting
from rmem.evaluate.recall_sets import memories_of, recall_hits
from rmem.facts.extract import facts_in, facts_in_text
from rmem.facts.model import SURE, FoundFact, name_id, name_key
from rmem.facts.relations import canonical
from rmem.facts.synonyms import stem
from rmem.models import Memory

LABELS = Path(__file__).parent / "fact_labels" / "labels.jsonl"
_PASSED = frozenset("of in to the a an by for at with on is was".split())


def sentences(text: str) -> list[str]:
    """The sentences of a turn as they were numbered when they were labelled."""
    parts = (part.strip(" *-\t") for part in re.split(r"(?<=[.!?])\s+|\n+", text))
    return [part for part in parts if 4 <= len(part.split()) <= 30]


def labelled(facts: Path | None, locomo: Path | None) -> Iterator[tuple[dict[str, Any], str]]:
    """Each label with its sentence."""
    stated = json.loads(gzip.decompress(facts.read_bytes())) if facts else None
    turns: dict[tuple[str, str], str] = {}
    for one in json.loads(locomo.read_text(encoding="utf-8")) if locomo else ():
        for session in one["conversation"].values():
            for turn in session if isinstance(session, list) else ():
                turns[one["sample_id"], turn["dia_id"]] = turn["text"]
    for line in LABELS.read_text(encoding="utf-8").splitlines():
        label = json.loads(line)
        if label["source"] == "factconsolidation":
            if stated is not None:
                yield label, stated[1]["facts"][label["id"]]
        elif label["source"] == "locomo":
            sample, turn, number = label["id"].split()
            if turns:
                yield label, sentences(turns[sample, turn])[int(number)]
        else:
            yield label, label["text"]


def _words(relation: str) -> set[str]:
    return {stem(word) for word in re.findall(r"\w+", canonical(relation)) if word not in _PASSED} or {relation}


def _same(fact: FoundFact, gold: list[str]) -> bool:
    names = (fact.subject, fact.object), (gold[0], gold[2])
    same = [name_key(one) == name_key(other) for one, other in zip(*names, strict=True)]
    return all(same) and fact.negated == (gold[3:] == ["not"]) and bool(_words(fact.relation) & _words(gold[1]))


def measure(rows: list[tuple[dict[str, Any], str]]) -> dict[str, Any]:
    """Precision at each confidence over all rows, recall over those that were drawn at random."""
    right, found, missed, wanted = [0, 0], [0, 0], 0, 0
    for label, text in rows:
        facts = list(facts_in_text(text, label.get("actor")))
        for fact in facts:
            at = int(fact.confidence < SURE)
            found[at] += 1
            right[at] += any(_same(fact, gold) for gold in label["facts"])
        if label["sample"] == "random":
            wanted += len(label["facts"])
            missed += sum(not any(_same(fact, gold) for fact in facts) for gold in label["facts"])
    return {
        "sentences": len(rows),
        "sure": f"{right[0]}/{found[0]}",
        "precision sure": right[0] / found[0] if found[0] else None,
        "likely": f"{right[1]}/{found[1]}",
        "precision likely": right[1] / found[1] if found[1] else None,
        "recall": (wanted - missed) / wanted if wanted else None,
        "stated": wanted,
    }


def cost(texts: list[str]) -> float:
    """Microseconds of CPU for the median text."""
    taken = []
    for text in texts:
        memory = Memory("m", "a", 0, 1.7e9, {"text": text}, text=text)
        best = min(_timed(memory) for _ in range(5))
        taken.append(best)
    return 1e6 * statistics.median(taken)


def _timed(memory: Memory) -> float:
    start = time.thread_time()
    facts_in(memory)
    return time.thread_time() - start


def evidence(recall_set: Path) -> dict[str, dict[str, int]]:
    """For each kind of question of a set of `rmem eval recall`: how many right memories there are, how many of them
    state a fact, of how many questions all do, and how many are all by a speaker whom the question names. Of the right
    memories that are not among ten hits: how many a fact links with a name of the question, or with one of the hits."""
    counted: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    setting = Setting("default")
    for store in json.loads(gzip.decompress(recall_set.read_bytes()))["stores"]:
        memories = store["memories"]
        with Brain(":memory:") as brain:
            kept = brain.remember_many(memories_of(store))
            places = {memory.memory_id: at for at, memory in enumerate(kept)}
            ranked = [
                [places[hit.id] for hit in recall_hits(brain, question, setting)[:10]]
                for question in store["questions"]
            ]
        found = [facts_in(memory) for memory in kept]
        linked = [{name_id(name) for fact in facts for name in (fact.subject, fact.object)} for facts in found]
        counted["all"]["memories"] += len(memories)
        counted["all"]["memories with a fact"] += sum(map(bool, found))
        for question, hits in zip(store["questions"], ranked, strict=True):
            kind, right = counted[str(question["kind"])], question["relevant"]
            speakers = {memories[at]["actor"] or "" for at in right}
            kind["questions"] += 1
            kind["right memories"] += len(right)
            kind["right memories with a fact"] += sum(bool(found[at]) for at in right)
            kind["questions whose right memories all have facts"] += all(found[at] for at in right)
            named = "" not in speakers and all(one in question["question"] for one in speakers)
            kind["questions whose right memories are by those they name"] += named
            reached = set[int]().union(*(linked[at] for at in hits))
            missed = [linked[at] for at in set(right).difference(hits)]
            kind["right memories missed by ten hits"] += len(missed)
            kind["missed with a fact"] += sum(map(bool, missed))
            kind["missed with a fact about a name of the question"] += sum(
                map(bool, map(_names_in(question).intersection, missed))
            )
            kind["missed with a fact about a name in a hit's fact"] += sum(map(bool, map(reached.intersection, missed)))
    return {kind: dict(counts) for kind, counts in sorted(counted.items())}


def _names_in(question: dict[str, Any]) -> set[int]:
    """The ids of all runs of up to four words of a question."""
    words = re.findall(r"[\w'’.-]+", question["question"])
    return {name_id(" ".join(words[at : at + size])) for size in range(1, 5) for at in range(len(words) - size + 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--facts", type=Path, help="factconsolidation.json.gz of MemoryAgentBench, as `rmem eval facts`"
    )
    parser.add_argument("--locomo", type=Path, help="LoCoMo in its own format")
    parser.add_argument("--half", choices=("tuning", "reported"), default="reported")
    parser.add_argument("--wrong", action="store_true", help="also show what was read wrongly")
    parser.add_argument("--evidence", type=Path, help="a set of `rmem eval recall`: count the facts in it")
    given = parser.parse_args()
    if given.evidence:
        print(json.dumps(evidence(given.evidence), indent=2))
        return
    rows = [(label, text) for label, text in labelled(given.facts, given.locomo) if label["half"] == given.half]
    groups = defaultdict(list)
    for label, text in rows:
        groups[label["source"]].append((label, text))
        groups["all"].append((label, text))
        if label["source"] != "factconsolidation":
            groups["all but factconsolidation"].append((label, text))
    for name, group in sorted(groups.items()):
        print(name, json.dumps(measure(group)), f"{cost([text for _, text in group]):.0f} µs")
    if given.wrong:
        for label, text in rows:
            for fact in facts_in_text(text, label.get("actor")):
                if not any(_same(fact, gold) for gold in label["facts"]):
                    print("sure" if fact.confidence >= SURE else "likely", fact[:3], "<=", text)


if __name__ == "__main__":
    main()
