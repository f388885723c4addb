"""Summarise without a language model: choose the most informative sentences of the texts, in their order.

A sentence counts for being central (near to what the others say), for holding what must not be lost (errors,
decisions, numbers, names) and for saying what the chosen ones do not say yet."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..index.text_features import ASKS, REACTS, text_features_of
from .budget import estimate_tokens, shorten

Matrix = npt.NDArray[np.float32]
Embed = Callable[[Sequence[str]], Matrix]

CENTRAL = 0.5
"""Weight of the mean similarity of a sentence to all others, scaled to 0 to 1."""
ERROR, DECISION, NUMBER, NAME = 1.0, 0.8, 0.6, 0.4
"""Added for a sentence that mentions an error or a decision, or contains a number or a name."""
ASKING, REACTING, SHORT = 0.3, 0.5, 0.4
"""Subtracted for a sentence that only asks or reacts, or has fewer than four words."""
REPEATING = 1.2
"""Subtracted, times the cosine, for similarity to a sentence already chosen."""

_MAX_SENTENCES = 4000  # the newest are considered
_MAX_LENGTH = 600  # characters of a sentence; longer ones are cut at the end of a clause
_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+(?=[\"'“‘(\[]?[^\sa-z])|(?<=[。！？])\s*")
_CLAUSE = re.compile(r"(?<=[,;:])\s+")
_LABEL = re.compile(r"[^\W\d_][\w .-]{0,39}:(?=\s)")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|Mr|Mrs|Ms|Dr|Prof|St|No|approx)\.$")
_ERROR = re.compile(
    r"error|exception|traceback|fail|crash|bug\b|broken|fatal|panic|timed? ?out|refused|denied|corrupt|"
    r"missing|cannot|can't|could not|couldn't|unable|invalid|rejected|killed|\boom\b|exit code|segfault|warning",
    re.IGNORECASE,
)
_DECISION = re.compile(
    r"\b(?:decid\w*|decision|agreed?|agreement|chose|chosen|choose|will|shall|must|should(?! i\b)|never|always|due|"
    r"plan(?:s|ned)?|deadline|prefers?|switch(?:ed)? to|instead|because|so that|fixed|resolved|solved|solution|"
    r"root cause|turned out|todo|next step|requires?|important|remember)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d")
_NAME = re.compile(  # a name inside a sentence, a path or identifier, CAPITALS, "a title", `code`
    r"(?<=[\w,;:)] )[A-Z][\w'’-]+|\b\w+[._/]\w[\w./-]*|\b[a-z]+[A-Z]\w*|\b[A-Z]{2,}\w*"
    r"|[\"“][^\"”]{2,60}[\"”]|`[^`]+`"
)


class Sentence(NamedTuple):
    """A sentence and its speaker ("user:", or empty)."""

    label: str
    text: str

    @property
    def cost(self) -> int:
        return estimate_tokens(self.label) + estimate_tokens(self.text)


def summarise(texts: Sequence[str], token_budget: int, embed: Embed) -> str:
    """Return the most informative sentences of texts such as "user: I moved to Paris.", within `token_budget` tokens.

    Sentences are quoted unchanged. Consecutive sentences of one speaker share a line.
    """
    sentences = _distinct([sentence for text in texts for sentence in split(text)][-_MAX_SENTENCES:])
    if not sentences or token_budget < 1:
        return ""
    if sum(sentence.cost for sentence in sentences) <= token_budget:
        return _format_sentences(sentences)
    chosen = _choose(sentences, token_budget, embed)
    if chosen:
        return _format_sentences([sentences[at] for at in sorted(chosen)])
    # None fits: shorten the best.
    best = max(range(len(sentences)), key=lambda at: (weight(sentences[at].text), -at))
    return shorten(_format_sentences([sentences[best]]), token_budget)


def _distinct(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Drop repeated sentences; keep the last occurrence."""
    last = {(sentence.label, " ".join(sentence.text.lower().split())): at for at, sentence in enumerate(sentences)}
    return [sentences[at] for at in sorted(last.values())]


def split(text: str) -> list[Sentence]:
    """Split a text into sentences, line by line; the speaker at its beginning applies to all."""
    label = _LABEL.match(text)
    speaker, rest = (label[0], text[label.end() :]) if label else ("", text)
    found: list[Sentence] = []
    for line in rest.splitlines():
        pieces = _END.split(line.strip())
        whole = ""
        for piece in pieces:
            whole = f"{whole} {piece}".strip() if whole else piece.strip()
            if _ABBREVIATION.search(whole):
                continue
            found += [Sentence(speaker, part) for part in _short(whole) if re.search(r"\w", part)]
            whole = ""
        found += [Sentence(speaker, part) for part in _short(whole) if re.search(r"\w", part)]
    return found


def _short(sentence: str) -> list[str]:
    if len(sentence) <= _MAX_LENGTH:
        return [sentence] if sentence else []
    parts = [""]
    for clause in _CLAUSE.split(sentence):
        if parts[-1] and len(parts[-1]) + len(clause) > _MAX_LENGTH:
            parts.append("")
        parts[-1] = f"{parts[-1]} {clause}".strip()
    return [part[at : at + _MAX_LENGTH] for part in parts for at in range(0, len(part), _MAX_LENGTH)]


def weight(sentence: str) -> float:
    """Weigh a sentence by its content; less if it only asks or reacts."""
    features = text_features_of(sentence)
    gained = ERROR * bool(_ERROR.search(sentence)) + DECISION * bool(_DECISION.search(sentence))
    gained += NUMBER * bool(_NUMBER.search(sentence)) + NAME * min(2, len(_NAME.findall(sentence))) / 2
    lost = ASKING * bool(features.flags & ASKS) + REACTING * bool(features.flags & REACTS)
    return gained - lost - SHORT * (len(sentence.split()) < 4)


def _choose(sentences: Sequence[Sentence], budget: int, embed: Embed) -> list[int]:
    """Choose positions greedily within the budget: the best, then the best that adds to it, …"""
    costs = np.array([sentence.cost for sentence in sentences])
    vectors = embed([sentence.text for sentence in sentences])
    near = vectors @ vectors.sum(axis=0)
    near = (near - near.min()) / (np.ptp(near) or 1.0)
    worth = CENTRAL * near + np.array([weight(sentence.text) for sentence in sentences])
    like = np.zeros(len(sentences))
    chosen: list[int] = []
    open_ = costs <= budget
    while open_.any():
        value = np.where(open_, worth - REPEATING * np.maximum(like, 0), -np.inf)
        best = int(value.argmax())
        if chosen and value[best] <= 0:
            break  # the rest only repeats
        chosen.append(best)
        budget -= int(costs[best])
        like = np.maximum(like, vectors @ vectors[best])
        open_[best] = False
        open_ &= costs <= budget
    return chosen


def _format_sentences(sentences: Sequence[Sentence]) -> str:
    lines: list[list[str]] = []
    last: str | None = None
    for sentence in sentences:
        if lines and sentence.label and sentence.label == last:
            lines[-1].append(sentence.text)
        else:
            lines.append([sentence.label, sentence.text] if sentence.label else [sentence.text])
        last = sentence.label
    return "\n".join(" ".join(line) for line in lines)
