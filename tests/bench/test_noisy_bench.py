"""`rmem bench server --noisy` measures a quiet organisation beside a noisy one."""

from __future__ import annotations

import pytest
from rmem_bench.noisy import NoisyLoad, run


@pytest.mark.slow
def test_a_quiet_organisation_is_measured_beside_a_noisy_one(tmp_path):
    load = NoisyLoad(seconds=3.0, memories=200, recalls=4, statements=2, imports=1, answers=1)
    report = run(load, folder=tmp_path, advance=lambda *_: None)
    assert report["errors"]["total"] == 0
    assert report["calls"]["health"]["calls"] > 0
    assert report["calls"]["recall"]["p99_ms"] > 0
    assert report["noise"]["answers"]["recall 200"] > 0
