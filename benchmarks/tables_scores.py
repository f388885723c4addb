"""How should words and vectors be brought together in `(embedding, text) <#> deeplake_hybrid_record(…)`?

    python benchmarks/tables_scores.py [static|minilm] [locomo.json]

Ranks debugging traces for questions that quote them and for questions that only mean the same, and the turns of LoCoMo
where its file is given, with each way of calibrating both sides at equal weights. Prints the share of the right rows
among the first (traces: 1 and 3; LoCoMo: 10)."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from rmem.embed import embedder_for
from rmem.evaluate.locomo import read
from rmem.recall.fusion import scale_of, share_of_vector, share_of_words, standardise
from rmem.tables.search.texts import TextColumn
from rmem.tables.search.vectors import VectorColumn

Values = npt.NDArray[np.float64]

TRACES = """
Fix OOM crash in data pipeline when processing 50GB parquet files
ETL worker killed by the kernel while joining two customer tables
Deadlock between billing worker and nightly report on table invoices
psycopg2.OperationalError: server closed the connection unexpectedly during migration 0042
Login button is cut off on narrow phones
TypeError: cannot read properties of undefined (reading 'id') in checkout.js line 88
Celery tasks run twice after the broker restarts
Redis eviction policy dropped session keys under load
CORS preflight fails for PUT requests from the admin panel
Docker image grew to 4 GB because the build cache was copied in
Kubernetes pod stuck in CrashLoopBackOff after config map rename
TLS certificate expired on api gateway, clients saw x509 errors
Unicode names break the CSV export: Größe and naïve come out garbled
Race condition in websocket reconnect loses the first message
Flaky test test_upload_retries depends on wall clock time
Pagination skips rows when sorted by a column that is not unique
Timezone bug: reports of 1 April show data of 31 March in Sydney
N+1 queries on the orders page make it take nine seconds
Memory leak in image resize service, heap grows until restart
GitHub Actions cache key ignores lockfile so stale dependencies were installed
Kafka consumer lag rises because one partition gets all keys
ImportError: libGL.so.1 missing in the slim container of the OCR job
Password reset mails end in spam since the SPF record changed
Search returns nothing for queries with a hyphen
Infinite redirect between http and https behind the new load balancer
Floating point sums of invoices are off by one cent
Rate limiter counts requests per process instead of per tenant
Feature flag service timeout makes every page wait three seconds
Alembic autogenerate wants to drop index ix_events_tenant every time
Disk full on build agents because of dangling layers
GraphQL resolver leaks emails of other tenants through nested query
Segfault in libvips when a PNG has a broken ICC profile
Webhook signature check fails when the body contains emoji
Cron job did not run on the last Sunday of March
Model inference returns NaN after switching to mixed precision
Terraform apply wants to recreate the database after provider upgrade
""".strip().splitlines()

QUESTIONS = """
ETL job killed by OOM when loading large CSV exports|1,2
process runs out of RAM reading a huge columnar file|1
kernel terminates our batch job for using too much memory|2,1
two transactions wait for each other forever|3
OperationalError server closed the connection|4
database migration lost its connection half way|4
sign in control does not fit on small screens|5
cannot read properties of undefined checkout.js|6
javascript crash while paying|6
background jobs are executed more than once|7
users get logged out when the cache is busy|8
browser blocks our cross origin update calls|9
container is far too large to ship|10
CrashLoopBackOff config map|11
deployment keeps restarting after we renamed its settings|11
x509 certificate has expired|12
customers cannot connect because of an outdated certificate|12
umlauts and accents are wrong in the spreadsheet we download|13
first chat message vanishes when the connection comes back|14
test_upload_retries fails now and then|15
a test fails only when the machine is slow|15
some records never show up when I page through the list|16
report is shifted by a day for Australian users|17
orders page is slow because of too many queries|18
list view fires one select per row|18
service needs a restart every night since its heap never shrinks|19
CI used old packages although requirements changed|20
one Kafka partition is hot|21
libGL.so.1|22
text recognition container lacks a shared library|22
our mails are classified as junk|23
no results when the term contains a dash|24
ERR_TOO_MANY_REDIRECTS after moving behind the balancer|25
totals differ by 0.01|26
rounding error in money|26
quota is not shared between workers|27
ix_events_tenant|29
autogenerate migration keeps removing an index|29
build machines have no space left on device|30
one customer can see addresses of another customer|31
crash on a corrupt picture|32
HMAC verification wrong for messages with smileys|33
scheduled task was skipped when the clocks changed|34
loss becomes NaN with float16|35
upgrade plans to destroy and create our postgres|36
""".strip().splitlines()

BENDS = (0.1, 0.2, 0.5, 1.0, None)


def loaded(texts: Sequence[str], vectors: npt.NDArray[np.float32]) -> tuple[TextColumn, VectorColumn]:
    rows = np.arange(1, len(texts) + 1)
    none = np.empty(0, np.int64)
    words, points = TextColumn(), VectorColumn()
    words.change(none, rows, texts)
    points.change(none, rows, list(vectors))
    return words, points


def ways(scores: npt.NDArray[np.float32], possible: float, cosines: Values) -> Iterator[tuple[str, Values]]:
    """Every way to one score for each row."""
    yield "words alone", scores.astype(np.float64)
    yield "vectors alone", cosines
    yield "plain sum", scores + cosines
    sides = [standardise(side, scale_of(side, 500)) for side in (scores, cosines.astype(np.float32))]
    yield "standardised, as in recall (not 0..1)", (sides[0] + sides[1]).astype(np.float64)
    places = [np.argsort(np.argsort(-side, kind="stable")) for side in (scores, cosines)]
    yield "reciprocal ranks, k = 60", 1 / (60.0 + places[0]) + 1 / (60.0 + places[1])
    part = scores / possible if possible else scores.astype(np.float64)
    for bend in BENDS:  # a curve that rises sooner, for rows that say only some of the words
        words = part if bend is None else part * (1 + bend) / (part + bend)
        name = "part of the possible" if bend is None else f"part bent at {bend}"
        yield f"{name}, max(0, cosine)", words + np.maximum(0, cosines)
        yield f"{name}, (1 + cosine) / 2", words + (1 + cosines) / 2
    yield "AS SHIPPED", share_of_words(scores, possible) + share_of_vector(cosines)


def main(embedder: str = "static", locomo: str | None = None) -> None:
    embed: Callable[[Sequence[str]], npt.NDArray[np.float32]] = embedder_for(embedder).embed
    found: dict[str, list[list[float]]] = defaultdict(lambda: [[], [], []])
    words, points = loaded(TRACES, embed(TRACES))
    asked = [
        (text, {int(number) - 1 for number in rows.split(",")}) for text, rows in (q.split("|") for q in QUESTIONS)
    ]
    for (text, right), vector in zip(asked, embed([text for text, _ in asked]), strict=True):
        for way, scores in ways(*words.texts().scored(text), points.vectors(vector.size).exact(vector)):
            order = np.argsort(-scores, kind="stable").tolist()
            for at, depth in ((0, 1), (1, 3)):
                found[way][at].append(len(right & set(order[:depth])) / min(depth, len(right)))
    for conversation in read(locomo) if locomo else ():
        turns = list(conversation.turns)
        texts = [str(turn["text"]) for turn in conversation.turns.values()]
        words, points = loaded(texts, embed(texts))
        questions = [one for one in conversation.questions if one.category != 5 and one.evidence & set(turns)]
        for question, vector in zip(questions, embed([one.text for one in questions]), strict=True):
            evidence = {turns.index(turn) for turn in question.evidence if turn in conversation.turns}
            for way, scores in ways(*words.texts().scored(question.text), points.vectors(vector.size).exact(vector)):
                best = np.argsort(-scores, kind="stable")[:10].tolist()
                found[way][2].append(len(evidence & set(best)) / len(evidence))
    print(f"{embedder:40}  first  of 3  LoCoMo@10")
    for way, shares in found.items():
        print(f"{way:40}", *(f"{100 * np.mean(share):6.1f}" if share else "     -" for share in shares))


if __name__ == "__main__":
    main(*sys.argv[1:])
