"""Chains of facts from the names in a question, and what they and newer values do to a ranking."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rmem.embed import word_vectors
from rmem.facts.extract import facts_in
from rmem.facts.model import StoredFact, flags_of, name_id
from rmem.models import Memory
from rmem.recall.explain import Explanation
from rmem.recall.fact_paths import FactSearch, Similarity
from rmem.recall.facts import FactRanking, rank_by_facts
from rmem.recall.hybrid import Ranked


class Facts:
    """The facts of some sentences, by the number of each."""

    word_vectors = staticmethod(word_vectors)

    def __init__(self, *sentences: str) -> None:
        self.sentences = dict(enumerate(sentences))
        self.facts: list[StoredFact] = []
        for seq, text in self.sentences.items():
            memory = Memory("m", "a", seq, 1.7e9 + seq, {"text": text}, text=text)
            for number, fact in enumerate(facts_in(memory)):
                ids = [name_id(name) for name in fact[:3]]
                said = (fact.confidence, fact.start, fact.end, memory.timestamp, None, memory.timestamp)
                self.facts.append(StoredFact(seq, number, *ids, flags_of(fact), *said, *fact[:3], "m", "a", None))

    def facts_about(self, subjects: Sequence[int] = (), *, newest: bool = False, limit: int) -> list[StoredFact]:
        return [fact for fact in self.facts if fact.subject in subjects][-limit:]

    def facts_at(self, seqs: Sequence[int]) -> list[StoredFact]:
        return [fact for fact in self.facts if fact.seq in seqs]

    def asking(self, question: str) -> FactSearch:
        return FactSearch(question, self, Similarity(word_vectors), list)

    def best(self, question: str) -> str:
        paths = self.asking(question).paths()
        return str(paths[0]) if paths else ""

    def rank(self, question: str, order: Sequence[int], count: int = 10, **more: object) -> list[Ranked]:
        def texts(seqs: Sequence[int]) -> dict[int, str]:
            return {seq: self.sentences[seq] for seq in seqs if seq in self.sentences}

        ranked = [
            Ranked(seq, 3.0 - at, 0.5, Explanation("hybrid", {"words": 3.0 - at})) for at, seq in enumerate(order)
        ]
        how = FactRanking(self, Similarity(word_vectors), list, texts, 0.6, False)._replace(**more)
        return rank_by_facts(ranked, question, count, how)


KEATS = (
    "The author of Endymion is John Keats.",
    "John Keats died in the city of Rome.",
    "Rome is located in the continent of Europe.",
    "John Keats is a citizen of United Kingdom.",
    "The capital of United Kingdom is London.",
    "The author of Emma is Jane Austen.",
)


@pytest.mark.parametrize(
    ("question", "chain"),
    [
        (
            "What is the place of death of the author of Endymion?",
            "Endymion → author → John Keats → died in the city of → Rome",
        ),
        (
            "What is the capital of the country whose citizenship the author of Endymion holds?",
            "Endymion → author → John Keats → citizen of → United Kingdom → capital → London",
        ),
        (
            'On which continent did the writer of "Endymion" pass away?',
            "Endymion → author → John Keats → died in the city of → Rome → located in the continent of → Europe",
        ),
        ("Who is the author of Emma?", "Emma → author → Jane Austen"),
    ],
)
def test_a_chain_of_facts_explains_a_question(question: str, chain: str) -> None:
    assert Facts(*KEATS).best(question) == chain


@pytest.mark.parametrize("question", ["What is the weather like?", "Endymion", "What colour does Endymion smell of?"])
def test_a_question_that_facts_do_not_fit_has_no_chain(question: str) -> None:
    facts = Facts(*KEATS)
    asking = facts.asking(question)
    assert [path for path in asking.paths() if asking.share(path) >= 0.45] == []
    assert [row.seq for row in facts.rank(question, [3, 1, 2])] == [3, 1, 2]


def test_only_the_newest_value_is_followed() -> None:
    facts = Facts(*KEATS, "The author of Endymion is Charles Dickens.", "Charles Dickens died in the city of Kent.")
    assert facts.best("Where did the author of Endymion die?").endswith("Charles Dickens → died in the city of → Kent")


def test_the_longest_name_is_linked_and_lower_case_words_only_without_others() -> None:
    facts = Facts("The author of The Wheel of Time is Robert Jordan.", "time is located in the continent of Europe.")
    question = "Who is the author of The Wheel of Time?"
    assert [question[one.start : one.end] for one in facts.asking(question).mentions] == ["The Wheel of Time"]


def test_the_newer_value_comes_before_the_one_it_replaced() -> None:
    facts = Facts("The capital of France is Lyon.", "Paris is nice.", "The capital of France is Paris.")
    rows = facts.rank("What is the capital of France?", [0, 1, 2])
    assert rows[0].seq == 2
    assert [row.seq for row in rows].index(2) < [row.seq for row in rows].index(0)
    old = next(row for row in rows if row.seq == 0)
    assert old.explanation is not None
    assert "replaced by Paris" in old.explanation.notes


def test_an_older_value_never_comes_first_by_being_older() -> None:
    facts = Facts("The capital of France is Lyon.", "The capital of France is Paris.")
    assert [row.seq for row in facts.rank("What is the capital of France?", [1, 0])] == [1, 0]


def test_many_values_do_not_replace_each_other() -> None:
    facts = Facts(
        "httpx depends on certifi as of today.", "These days httpx depends on idna.", "httpx depends on idna, I hear."
    )
    assert [row.seq for row in facts.rank("Which city is nice?", [0, 2])] == [0, 2]
    likes = Facts("Ann Lee likes tea with milk.", "Well, Ann Lee likes coffee.")
    assert [row.seq for row in likes.rank("Which fruit?", [0, 1])] == [0, 1]


def test_evidence_of_a_chain_enters_the_hits_with_its_reason() -> None:
    facts = Facts(*KEATS)
    rows = facts.rank("What is the place of death of the author of Endymion?", [0, 5, 3])
    assert [row.seq for row in rows][:2] == [1, 0]
    reason = rows[0].explanation
    assert reason is not None
    assert reason.notes == ["Endymion → author → John Keats → died in the city of → Rome"]
    assert rows[0].score == pytest.approx(reason.score)
    assert [row.score for row in rows] == sorted((row.score for row in rows), reverse=True)


def test_chains_take_a_bounded_share_of_the_hits() -> None:
    facts = Facts(*KEATS)
    question = "What is the capital of the country whose citizenship the author of Endymion holds?"
    assert [row.seq for row in facts.rank(question, [5, 2, 1], 3)][1:] == [5, 2]


def test_no_row_enters_where_words_must_be_held() -> None:
    facts = Facts(*KEATS)
    rows = facts.rank("What is the place of death of the author of Endymion?", [0, 5], only_ranked=True)
    assert {row.seq for row in rows} == {0, 5}


def test_facts_outside_the_filter_are_not_followed() -> None:
    facts = Facts(*KEATS)
    asking = FactSearch(
        "What is the place of death of the author of Endymion?", facts, Similarity(word_vectors),
        lambda found: [fact for fact in found if fact.seq != 0],
    )  # fmt: skip
    assert asking.paths() == []
