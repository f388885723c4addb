"""OpenTelemetry spans and metrics for operations of a Brain and of the team memory.

    from rmem.integrations.opentelemetry import RmemInstrumentor
    RmemInstrumentor().instrument()

`opentelemetry-instrument COMMAND` does so itself. Without instrumentation nothing is wrapped, so that it costs nothing.
Attributes follow the semantic conventions for databases and for retrieval; texts are recorded only if
OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT is "true".
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from ..brain import Brain
from ..extras import require

require("otel", "rmem.integrations.opentelemetry")

from opentelemetry import metrics, trace  # noqa: E402
from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # noqa: E402
from opentelemetry.instrumentation.utils import unwrap  # noqa: E402
from opentelemetry.trace import Span, SpanKind, Status, StatusCode  # noqa: E402
from wrapt import wrap_function_wrapper  # noqa: E402

_BRAINS = (("rmem.brain", "Brain"), ("rmem.remote", "RemoteBrain"))
_TARGETS = (  # module, class, function
    *((module, cls, name) for module, cls in _BRAINS for name in ("remember", "remember_many", "recall")),
    ("rmem.team.briefing", "Briefing", "context"),
    ("rmem.team.sync", "", "sync"),
)
_SYSTEMS = {"postgres": "postgresql", "rediss": "redis", "http": "rmem", "https": "rmem"}
_CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10)  # as the conventions advise

Attributes = dict[str, Any]


class RmemInstrumentor(BaseInstrumentor):
    """Trace and measure `remember`, `remember_many`, `recall`, injection into coding agents, and sync.

    `instrument` takes a `tracer_provider` and a `meter_provider`; without them, those of the process.
    """

    def instrumentation_dependencies(self) -> Collection[str]:
        return ()

    def _instrument(self, **options: Any) -> None:
        observer = _Observer(options.get("tracer_provider"), options.get("meter_provider"))
        wrappers: Mapping[str, Callable[..., Any]] = {
            "remember": observer.remember,
            "remember_many": observer.remember,
            "recall": observer.recall,
            "context": observer.inject,
            "sync": observer.sync,
        }
        for module, cls, name in _TARGETS:
            wrap_function_wrapper(module, f"{cls}.{name}" if cls else name, wrappers[name])

    def _uninstrument(self, **options: Any) -> None:
        for module, cls, name in _TARGETS:
            owner = import_module(module)
            unwrap(getattr(owner, cls) if cls else owner, name)


class _Observer:
    def __init__(self, tracers: trace.TracerProvider | None, meters: metrics.MeterProvider | None) -> None:
        self._tracer = trace.get_tracer("rmem", tracer_provider=tracers)
        meter = metrics.get_meter("rmem", meter_provider=meters)
        self._duration = meter.create_histogram(
            "db.client.operation.duration",
            "s",
            "Duration of database client operations",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self._rows = meter.create_histogram("db.client.response.returned_rows", "{row}", "Memories of a recall")
        self._injected = meter.create_histogram("rmem.injection.size", "{character}", "What an agent is told unasked")
        self._synced = meter.create_counter("rmem.sync.memories", "{memory}", "Memories that a sync sent or received")

    def remember(self, method: Callable[..., Any], brain: Brain, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with self._operation(method.__name__, _brain_attributes(brain, kwargs), _span_kind(brain)) as (span, _):
            result = method(*args, **kwargs)
            if isinstance(result, list) and len(result) != 1:
                span.set_attribute("db.operation.batch.size", len(result))
            return result

    def recall(self, method: Callable[..., Any], brain: Brain, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        query_attributes = {"gen_ai.operation.name": "retrieval", "rmem.recall.mode": kwargs.get("mode", "hybrid")}
        if os.environ.get(_CAPTURE, "").lower() == "true":
            query_attributes["gen_ai.retrieval.query.text"] = str(args[0] if args else kwargs.get("question"))
        attributes = {**_brain_attributes(brain, kwargs), **query_attributes}
        with self._operation("recall", attributes, _span_kind(brain)) as (span, common):
            hits = method(*args, **kwargs)
            span.set_attribute("db.response.returned_rows", len(hits))
            self._rows.record(len(hits), common)
            return hits

    def inject(self, method: Callable[..., Any], briefing: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        event = args[0] if args else kwargs["event"]
        attributes = {"gen_ai.agent.name": event.agent, "rmem.event": event.kind.value}
        with self._operation("inject", attributes, SpanKind.INTERNAL) as (span, _):
            text = method(*args, **kwargs)
            span.set_attribute("rmem.injection.size", len(text))
            self._injected.record(len(text), attributes)
            return text

    def sync(self, method: Callable[..., Any], owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with self._operation("sync", {}, SpanKind.CLIENT) as (span, _):
            done = method(*args, **kwargs)
            for name in ("sent", "received", "changed"):
                span.set_attribute(f"rmem.sync.{name}", getattr(done, name))
            span.set_attribute("rmem.sync.refused", len(done.refused))
            self._synced.add(done.sent, {"direction": "sent"})
            self._synced.add(done.received, {"direction": "received"})
            return done

    @contextmanager
    def _operation(self, name: str, attributes: Attributes, kind: SpanKind) -> Iterator[tuple[Span, Attributes]]:
        """Run an operation in a span and record its duration; yield the span and the attributes of its metrics."""
        system = attributes.get("db.system.name", "rmem")
        common: Attributes = {"db.system.name": system, "db.operation.name": name}
        start = time.perf_counter()
        spanned = {**attributes, **common}
        with self._tracer.start_as_current_span(
            f"{name} {system}", kind=kind, attributes=spanned, set_status_on_exception=False
        ) as span:
            try:
                yield span, common
            except Exception as error:
                common = {**common, "error.type": type(error).__qualname__}
                span.set_attribute("error.type", type(error).__qualname__)
                span.set_status(Status(StatusCode.ERROR, str(error)))
                raise
            finally:
                self._duration.record(time.perf_counter() - start, common)


def _brain_attributes(brain: Brain, kwargs: Mapping[str, Any]) -> Attributes:
    scheme = brain.address.partition("://")[0].partition("+")[0] if "://" in brain.address else "sqlite"
    system = _SYSTEMS.get(scheme, scheme)
    agent = kwargs.get("agent")
    return {"db.system.name": system, **({"gen_ai.agent.name": agent} if isinstance(agent, str) else {})}


def _span_kind(brain: Brain) -> SpanKind:
    return SpanKind.INTERNAL if brain.address == ":memory:" else SpanKind.CLIENT
