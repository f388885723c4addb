"""How fast a policy reads: made-up tool output, logs and talk, with something to find in some of the lines."""

from __future__ import annotations

import time
from random import Random
from typing import Any

from .policy import PrivacyPolicy
from .samples import MAKERS

LEAST = 2.0
"""MB per second that we promise."""

_CLEAN = (
    "{stamp} INFO worker-{n} finished job {hash} in {n}.{n} ms, {n} rows read",
    "{stamp} WARN retry {n} of 5 for /srv/app/releases/{n}/etl/transform.py:{n}",
    '  File "/srv/app/lib/python3.11/site-packages/pyarrow/dataset.py", line {n}, in to_table',
    "    return self._scanner(columns=columns, filter=filter, batch_size={n}).to_table()",
    "tests/test_brain.py::test_a_memory_is_found_again[{n}] PASSED [ {n}%]",
    "I looked at the parquet job again: it dies when a single row group is larger than the memory of the worker, so",
    "we should read it in batches and write each one out before the next. What do you think about that, Melanie?",
    "commit {hash}\n    Keep the tail of newer rows beside the segments; a reader sees both",
    "diff --git a/rmem/brain.py b/rmem/brain.py\n@@ -{n},7 +{n},9 @@ class Brain:",
    "+        for batch in _chunks(drafts, chunk):\n+            kept += self.keep(batch)",
    '{{"step": {n}, "state": {{"x": {n}.5, "y": -{n}.25, "inventory": ["stone", "berry"]}}, "reward": 0.{n}}}',
    "Requirement already satisfied: numpy>=2.0 in ./lib (2.1.{n})",
)
_TELLING = (
    ("{stamp} login user=anna{n}@example.com from 203.0.112.{octet}", None),
    ("export API_TOKEN={value}", "secret:b64_40"),
    ("charged card {value} for order {n}", "card:visa4"),
    ("call me at +49 30 9018{four}", None),
    ("DATABASE_URL=postgres://app:Pw{n}x{n}@db/main", None),
)


def sample_text(size: int, seed: int = 0, telling: float = 0.02) -> list[str]:
    """Texts of a few lines each, `size` bytes in all; `telling` is the share of lines with something to find."""
    random = Random(seed)
    texts, lines, written = [], [], 0
    while written < size:
        line = _line(random, telling)
        lines.append(line)
        written += len(line) + 1
        if random.random() < 0.1:
            texts.append("\n".join(lines))
            lines = []
    return [*texts, "\n".join(lines)] if lines else texts


def _line(random: Random, telling: float) -> str:
    value, pattern = "", random.choice(_CLEAN)
    if random.random() < telling:
        pattern, maker = random.choice(_TELLING)
        value = MAKERS[maker](random) if maker else ""
    return pattern.format(
        stamp=f"2026-{random.randint(1, 12):02d}-{random.randint(1, 28):02d}T11:{random.randint(10, 59)}:44.123Z",
        n=random.randint(1, 9999),
        octet=random.randint(1, 254),
        four=random.randint(1000, 9999),
        hash=f"{random.getrandbits(160):040x}",
        value=value,
    )


def measure(megabytes: float = 4.0, *, policy: PrivacyPolicy | None = None, seed: int = 0) -> dict[str, Any]:
    """MB per second of CPU time and of the clock, for text with and without something to find."""
    used = policy or PrivacyPolicy.default()
    used.clean("warm@example.com +49 30 901820")
    result: dict[str, Any] = {"megabytes": megabytes, "promised": LEAST}
    for name, telling in (("clean", 0.0), ("mixed", 0.02), ("dense", 0.5)):
        texts = sample_text(int(megabytes * 1e6), seed, telling)
        size = sum(len(text.encode()) for text in texts) / 1e6
        clock, cpu = time.perf_counter(), time.process_time()
        found = sum(len(used.find(text)) for text in texts)
        clock, cpu = time.perf_counter() - clock, time.process_time() - cpu
        result[name] = {
            "texts": len(texts),
            "found": found,
            "mb_per_cpu_second": round(size / cpu, 2),
            "mb_per_second": round(size / clock, 2),
        }
    return result
