"""Whether somebody else speaks beside a memory is noted when memories come and go; it must be what a look at the
neighbours would tell."""

from __future__ import annotations

import random

import numpy as np
import pytest

from rmem import Brain, Filter


@pytest.mark.parametrize("seed", range(4))
def test_what_is_noted_of_dialogues_is_what_the_neighbours_tell(tmp_path, seed):
    chance = random.Random(seed)
    with Brain(tmp_path / "m.db", embedder="none") as brain:
        ids = []
        for step in range(120):
            action = chance.random()
            if ids and action < 0.2:
                brain.forget(ids.pop(chance.randrange(len(ids))))
            elif ids and action < 0.35:
                brain.update(chance.choice(ids), text=f"said again {step}")
            else:
                session, actor = chance.choice(["a", "b", None]), chance.choice(["Ann", "Bob", None])
                ids.append(brain.remember(f"turn {step}", session=session, actor=actor).id)
            if step % 10:
                continue
            rows = brain.store.filtered_rows(Filter())
            at = np.arange(rows.size)
            assert rows.in_dialogue(at).tolist() == rows._in_dialogue(at).tolist()
