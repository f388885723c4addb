"""Metrics for Prometheus. Labels are routes, methods and statuses, never organisations, workspaces or members."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    def __init__(self, open_workspaces: Callable[[], int], replicas_left_out: Callable[[], int]) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "rmem_requests", "Requests answered.", ["method", "route", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "rmem_request_seconds",
            "Time to answer, by route.",
            ["method", "route"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self.running = Gauge("rmem_requests_running", "Requests being answered.", registry=self._registry)
        self.refused = Counter(
            "rmem_requests_refused",
            "Requests refused at the door, by reason.",
            ["reason"],
            registry=self._registry,
        )
        Gauge("rmem_open_workspaces", "Workspaces held open.", registry=self._registry).set_function(
            lambda: float(open_workspaces())
        )
        Gauge(
            "rmem_replicas_left_out", "Replicas that are away or too late to answer recalls.", registry=self._registry
        ).set_function(lambda: float(replicas_left_out()))

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def latencies(self) -> list[dict[str, str | float]]:
        """Return the seconds within which half, 95 % and 99 % of the requests of each route were answered, slowest
        first: upper bounds of buckets."""
        buckets: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for metric in self._seconds.collect():
            for sample in metric.samples:
                if sample.name.endswith("_bucket"):
                    key = sample.labels["method"], sample.labels["route"]
                    buckets.setdefault(key, []).append((float(sample.labels["le"]), sample.value))
        found: list[dict[str, str | float]] = []
        for (method, route), counts in buckets.items():
            total = counts[-1][1]
            bounds = {
                name: min(next(bound for bound, count in counts if count >= share * total), _SECONDS[-1])
                for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
            }
            found.append({"method": method, "route": route, **bounds})
        return sorted(found, key=lambda route_latency: (-float(route_latency["p95"]), str(route_latency["route"])))

    def page(self) -> bytes:
        return generate_latest(self._registry)
