"""`rmem eval recall --reliability`: whether relevance means what it says."""

from __future__ import annotations

import json

import pytest

from rmem.evaluate.reliability import FirstHit, auc, bins, error, evaluate, plot


def test_what_is_said_is_compared_with_what_is_by_tenths():
    said = [FirstHit(0.95, True), FirstHit(0.95, False), FirstHit(0.05, False), FirstHit(0.05, False)]
    low, high = bins(said)
    assert (low["hits"], low["right"]) == (2, 0)
    assert (high["said"], high["right"]) == (pytest.approx(0.95), 0.5)
    assert error(said) == pytest.approx((2 * 0.05 + 2 * 0.45) / 4)


def test_the_area_under_the_curve_counts_pairs_and_needs_both_kinds():
    assert auc([FirstHit(0.9, True), FirstHit(0.1, False)]) == 1
    assert auc([FirstHit(0.5, True), FirstHit(0.5, False)]) == 0.5
    assert auc([FirstHit(0.5, True)]) is None


def test_questions_of_other_stores_and_those_without_an_answer_have_no_right_hit(tmp_path):
    texts = {"harbour": "a kingfisher dived into the harbour", "office": "keys are in the drawer of the office"}
    stores = [
        {
            "memories": [{"text": text}, {"text": "lunch is at noon"}],
            "questions": [{"question": word, "relevant": [0]}, {"question": "zeppelin", "relevant": []}],
        }
        for word, text in texts.items()
    ]
    path = tmp_path / "small.json"
    path.write_text(json.dumps({"name": "small", "unit": "memory", "stores": stores}))
    (one,) = evaluate([path])
    assert one["hits"] == 8
    assert sum(part["hits"] * part["right"] for part in one["bins"]) == pytest.approx(2)
    assert one["auc"] > 0.9
    assert plot([one]).count("<polyline") == 1
