"""`rmem bench scale` measures workspaces on several servers."""

from __future__ import annotations

import pytest
from rmem_bench.scale import ScaleLoad, run, told


@pytest.mark.slow
@pytest.mark.parametrize("large", [False, True])
def test_workspaces_on_two_servers_are_measured_against_one(large):
    load = ScaleLoad(memories=200, workspaces=4, seconds=1.0, threads=2, large=large, servers=(1, 2))
    report = run(load, advance=lambda *_: None)
    assert [one["servers"] for one in report["measured"]] == [1, 2]
    assert report["measured"][0]["ratios"] == {"calls_per_s": 1.0, "recall_p95": 1.0, "remember_p95": 1.0}
    for one in report["measured"]:
        assert one["bytes_per_memory"] > _least(256)
        assert one["recall"]["calls"] > 0
        assert one["remember"]["calls"] > 0
    assert "servers" in told(report)


def _least(dimension: int) -> int:
    """What a vector alone takes: four bytes for each number, and two more for the index."""
    return 6 * dimension
