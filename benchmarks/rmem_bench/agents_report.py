"""The targets and the tables of `rmem bench agents`."""

from __future__ import annotations

from collections.abc import Iterator

from .report import Target

PLACES = {"embedded": "", "redis": ", Redis"}
QUESTIONS = (
    ("similar states", "similar"),
    ("range of steps, 100 results", "time_range"),
    ("attributes, 100 results", "attributes"),
    ("recent", "recent"),
)
_LIMITS = {10_000: 5.0, 100_000: 12.0}  # milliseconds; with Redis twice as many
_BOTH = tuple(_LIMITS)


def _targets() -> Iterator[Target]:
    yield Target("store, by CPU p50", "embedded.store.per_cpu_s", 2000, "/s", _BOTH, most=False)
    for place, said in PLACES.items():
        for title, name in QUESTIONS:
            for size, limit in _LIMITS.items():
                most = limit if place == "embedded" else 2 * limit
                yield Target(f"{title}{said}, CPU p50", f"{place}.{name}.cpu_ms.p50", most, "ms", (size,))
    yield Target("Redis for one small state", "redis.redis_bytes.state", 3000, "bytes", _BOTH)
    yield Target("similar states, first as by brute force", "embedded.similar_agrees", 0.95, "", _BOTH, most=False)


def _timed() -> Iterator[tuple[str, str]]:
    for place, said in PLACES.items():
        yield f"store a state, durable{said}", f"{place}.store"
        if place == "embedded":
            yield "  bare SQLite insert of the same row", "embedded.baselines.bare_sqlite_insert"
        for title, name in QUESTIONS:
            yield f"{title}{said}", f"{place}.{name}"
            if name == "similar" and place == "embedded":
                yield "  numpy brute force over the same numbers", "embedded.baselines.numpy_brute_force"
        yield f"search by content{said}", f"{place}.content"


def _singles() -> Iterator[tuple[str, str, str]]:
    for place, said in PLACES.items():
        yield f"stores by CPU p50{said}", f"{place}.store.per_cpu_s", "{:,.0f} /s"
        yield f"stores by CPU, rebalancing included{said}", f"{place}.store.per_cpu_s_tended", "{:,.0f} /s"
        yield f"stores by wall, rebalancing included{said}", f"{place}.store.per_wall_s_tended", "{:,.0f} /s"
    yield "store : bare insert, CPU", "embedded.ratios.store_to_bare_sqlite_insert.cpu", "{:.2f} ×"
    yield "similar states : brute force, CPU", "embedded.ratios.similar_to_numpy_brute_force.cpu", "{:.2f} ×"
    yield "similar states, first as by brute force", "embedded.similar_agrees", "{:.2f}"
    yield "search by embedding, first as by brute force", "embedded.vectors_agree", "{:.2f}"
    yield "contents, before : after packing", "embedded.compression_ratio", "{:.2f} ×"
    yield "Redis for one small state", "redis.redis_bytes.state", "{:,.0f} bytes"
    yield "Redis for one memory of the run", "redis.redis_bytes.memory", "{:,.0f} bytes"


TARGETS = tuple(_targets())
TIMED = tuple(_timed())
SINGLE = tuple(_singles())
