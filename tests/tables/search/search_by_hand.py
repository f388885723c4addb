"""Scores as anyone would compute them with a dictionary of rows, to compare those of the indexes with."""

from __future__ import annotations

import math
from collections import Counter

from rmem.index.analyser import analyse, question_words

B = 0.75


def cosine(vector, query):
    lengths = math.hypot(*vector) * math.hypot(*query)
    return sum(a * b for a, b in zip(vector, query, strict=True)) / lengths if lengths else 0.0


def bm25(texts, question):
    """Of a dictionary of texts; also what no text can exceed."""
    terms = {row: analyse(text) for row, text in texts.items() if text is not None}
    held = {row: Counter(dict(zip(t.hashes.tolist(), t.counts.tolist(), strict=True))) for row, t in terms.items()}
    lengths = {row: sum(counts.values()) for row, counts in held.items()}
    average = sum(lengths.values()) / len(held) if held else 0
    k1 = 0.5 + (average / 700) ** 2
    scores, possible = dict.fromkeys(held, 0.0), 0.0
    for word in question_words(question):
        best = dict.fromkeys(held, 0.0)
        highest = 0.0
        for term in word.hashes:
            holding = [row for row in held if held[row][term]]
            weight = math.log(1 + (len(held) - len(holding) + 0.5) / (len(holding) + 0.5))
            highest = max(highest, weight if holding else 0.0)
            for row in holding:
                count = held[row][term]
                norm = k1 * (1 - B + B * lengths[row] / max(average, 1e-9))
                best[row] = max(best[row], weight * count * (k1 + 1) / (count + norm))
        unheard = math.log(1 + (len(held) + 0.5) / 0.5) if word.hashes else 0.0
        possible += (highest or unheard) * (k1 + 1)
        scores = {row: score + best[row] for row, score in scores.items()}
    return scores, possible


def hybrid(vectors, texts, query, question, weight_vector, weight_words):
    words, possible = bm25(texts, question)
    found = {}
    for row in texts.keys() | vectors.keys():
        vector, said = vectors.get(row), words.get(row)
        if vector is None and said is None:
            continue
        part = (said or 0.0) / possible if possible else 0.0
        close = 0.0 if vector is None else (1 + cosine(vector, query)) / 2
        found[row] = (weight_vector * close + weight_words * part) / (weight_vector + weight_words)
    return found


def in_order(scores):
    """Rows best first; equal ones in the order of their numbers."""
    return sorted(scores, key=lambda row: (-scores[row], row))
