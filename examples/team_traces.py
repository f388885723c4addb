"""What a team of agents might have learned in two months: (days ago, agent, trace). Data for demo.py."""

from __future__ import annotations

from typing import Any

_ROWS = """
61|swe-03|web-app|Login test fails about one run in twenty|The test clicked before the form was hydrated. Wait for the data-ready attribute instead of a fixed sleep.|TimeoutError: locator.click exceeded 30000ms|playwright, trace viewer
60|ops-01|infra|Nightly backup of the orders database ran for nine hours|Statistics were stale after the import, so the dump planned sequential scans. Run ANALYZE before the dump; 42 minutes now.||pg_stat_progress_copy, pg_dump
58|swe-01|api|Requests answer 500 after the third deploy of a day|Old workers kept connections open until the pool was exhausted. Drain them on SIGTERM.|TimeoutError: QueuePool limit of size 20 overflow 10 reached|gunicorn, pg_stat_activity
57|swe-02|data-pipeline|Dates in the invoice feed are one day early|Timestamps were cut to dates in UTC. Convert to the customer's zone first.|AssertionError: 2026-03-30 != 2026-03-31|zoneinfo, pytest
55|data-01|data-pipeline|ETL job is three hours late every Monday|The weekend partition is written as 40,000 small files. Compact to 256 MB files before step 2.||spark ui, parquet-tools
54|swe-03|web-app|Browser tab grows to 2 GB while a dashboard stays open|Chart instances were never destroyed on unmount, so each refresh leaked a canvas.|Aw, Snap! Out of memory|chrome heap snapshot
52|ops-01|infra|Pods of the search service are evicted under load|Heap was sized to the node, not to the container. Set -XX:MaxRAMPercentage=70 and a matching limit.|OOMKilled, exit code 137|kubectl, jcmd
50|swe-01|api|Uploads over 10 MB are refused|The proxy has its own body limit. client_max_body_size raised to 64m for the upload route only.|413 Request Entity Too Large|nginx, curl
49|data-01|reports|CSV exports open with broken umlauts in spreadsheets|Excel reads UTF-8 only with a byte order mark. Export as utf-8-sig.|Müller shown as MÃ¼ller|hexdump
48|swe-02|api|Webhook of the payment provider is handled twice|Retries come with the same event id. Keep the ids for a week and ignore those already seen.|IntegrityError: duplicate key value violates unique constraint|psql
46|swe-03|web-app|Build takes 14 minutes on CI|Source maps were made twice, by the bundler and by the uploader. One of them is enough; 5 minutes now.||vite, esbuild
45|ops-01|infra|Certificate of the staging host expired|The renewal timer was masked by an image update. Unmask it and alert 20 days before expiry.|SSL: CERTIFICATE_VERIFY_FAILED certificate has expired|certbot, systemctl
43|swe-01|data-pipeline|Rows vanish between step 1 and step 2|An inner join on customer_id dropped guests, whose id is null. Left join and a count check after each step.|AssertionError: expected 1204331 rows, got 1199874|duckdb
42|swe-02|api|Search endpoint slow for queries that begin with a wildcard|Leading wildcards cannot use the btree index. Added a trigram index.|canceling statement due to statement timeout|explain analyze, pg_trgm
40|data-01|ml-models|Training loss is NaN after an epoch|Mixed precision overflowed in the softmax. Loss scaling and a clip of the gradient norm at 1.0.|RuntimeError: Function 'ExpBackward0' returned nan values|torch.autograd.detect_anomaly
39|data-01|ml-models|GPU runs out of memory in evaluation but not in training|Evaluation kept the graph: torch.no_grad() was missing. Batch size can stay at 64.|torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB|nvidia-smi, torch.profiler
37|swe-03|web-app|Checkout button does nothing in Safari|Optional chaining on the left of an assignment was not transpiled. Target es2019.|SyntaxError: Invalid left-hand side in assignment|browserslist
36|ops-01|infra|Disk of the log host full every second night|Debug logs of one service were 80 % of the volume. Sampled at 1 %, kept seven days.|OSError: [Errno 28] No space left on device|du, logrotate
35|swe-01|api|Two users saw each other's names for a minute|The cache key left out the tenant. Every key now begins with the tenant id, and a test checks it.||redis-cli monitor
33|swe-02|data-pipeline|Loading the supplier feed fails on quotes inside fields|The supplier doubles quotes but also escapes them. Read with escapechar and report the bad lines.|ParserError: Error tokenizing data. C error: Expected 14 fields in line 8812, saw 15|csv, pandas
31|data-01|reports|Monthly report counts refunds as sales|The sign was lost in an abs() for a chart. Charts get their own column.||git bisect
30|swe-03|web-app|Translations missing after release|The extraction ran before the merge, so new keys were absent. Extract in CI and fail on a difference.|Missing message: checkout.title|i18n-extract
28|ops-01|infra|Terraform wants to replace the production database|The provider renamed an attribute. Import the state under the new name; never apply with a replace in the plan.|forces replacement|terraform state mv
27|swe-01|api|Rate limiter lets bursts through|Each worker counted alone. The counter moved to Redis with a sliding window.||redis, locust
26|swe-02|mobile|App crashes when the keyboard opens on old phones|The list measured itself during layout. Measure after the frame.|StackOverflowError at RecyclerView.onMeasure|logcat
24|data-01|data-pipeline|Duplicate events after a restart of the consumer|Offsets were committed before the write. Commit after, and make the write idempotent by event id.||kafka-consumer-groups
23|swe-03|web-app|Images shift the page while it loads|Width and height were missing. The component demands them now.|CLS 0.31|lighthouse
21|ops-01|infra|Cron jobs run twice on the night the clocks change|Schedules were in local time. All in UTC.||systemd-analyze calendar
20|swe-01|api|JSON responses slow for large orders|Serialising decimals one by one took most of the time. orjson with a default for Decimal; 9 times as fast.||py-spy, orjson
18|swe-02|data-pipeline|Step 3 fails when a column appears in the source|The schema was taken from the first file. Read the union of schemas and log new columns.|ArrowInvalid: Schema at index 17 was different|pyarrow
17|data-01|ml-models|Recommendations are the same for everybody|The user id column was read as float and lost digits beyond 2^53. Read ids as text.||pandas.read_csv dtype
15|swe-03|web-app|Session ends while the user is typing|The refresh token was rotated by two tabs at once. A lock in the storage of the browser.|401 invalid_grant|BroadcastChannel
14|ops-01|infra|Deploy hangs on waiting for rollout|The readiness probe asked a route that needs a login. Probe /healthz.|error: deployment exceeded its progress deadline|kubectl rollout
12|swe-01|api|Memory of the API workers grows by 20 MB an hour|An lru_cache on a method kept every request alive. Cache on the module with a bound.||tracemalloc, objgraph
11|swe-02|reports|PDF export cuts the last line of long tables|The page break ignored the height of the footer. Reserve it.||weasyprint
9|data-01|data-pipeline|Decided to keep raw exports for 90 days|Replays needed raw files twice this quarter; 90 days cost 40 a month. Older ones are deleted by a lifecycle rule.||s3 lifecycle
7|ops-01|infra|Job killed at 02:00 every night|A cleanup script killed everything older than six hours, migrations included. It asks for the label now.|Killed, signal 15|auditd
5|swe-03|web-app|Flaky test of the date picker|It failed after 18:00 because today became tomorrow in UTC. Freeze the clock in the test.|AssertionError: expected 14 to be 15|vitest fake timers
3|swe-02|api|Large exports time out in the browser|The file was built before the first byte was sent. Stream it in chunks of 5,000 rows.|504 Gateway Timeout|StreamingResponse
1|data-01|reports|Quarterly figures differ between two dashboards|One used the order date, the other the payment date. Both say so in the title now.||dbt docs
"""  # noqa: E501


def _trace(row: str) -> tuple[int, str, dict[str, Any]]:
    days, agent, repo, task, outcome, error_trace, tools = row.split("|")
    return (
        int(days),
        agent,
        {
            "task": task,
            "outcome": outcome,
            "error_trace": error_trace,
            "tools_used": [tool.strip() for tool in tools.split(",")],
            "repo": repo,
        },
    )


TRACES = [_trace(row) for row in _ROWS.strip().splitlines()]
