"""`rmem bench hooks` measures calls that were answered."""

from __future__ import annotations

from rmem.bench.hooks import measure


def test_the_bench_of_hooks_counts_what_was_answered():
    told = measure(50, 2)
    assert told["first_session_answered"]
    assert told["recall"]["answered"] == 1.0
    assert 0 < told["python"]["p50_ms"] < told["capture"]["p50_ms"]
