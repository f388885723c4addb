"""Spans and metrics, read from the in-memory exporters of OpenTelemetry's SDK."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from importlib.util import find_spec

import pytest

pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed: make test-frameworks")
pytest.importorskip("opentelemetry.instrumentation")

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from rmem import Brain
from rmem.aio import AsyncBrain
from rmem.errors import InputError, RemoteError
from rmem.integrations.opentelemetry import RmemInstrumentor
from rmem.team import sync
from rmem.team.briefing import Briefing
from rmem.team.events import Event, EventKind
from rmem.team.login import Login


class Telemetry:
    def __init__(self) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        tracers = TracerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.options = {"tracer_provider": tracers, "meter_provider": MeterProvider([self.reader])}

    @property
    def spans(self):
        return self.exporter.get_finished_spans()

    @property
    def metrics(self):
        data = self.reader.get_metrics_data()
        scopes = [scope for resource in data.resource_metrics for scope in resource.scope_metrics]
        return {metric.name: metric.data.data_points for scope in scopes for metric in scope.metrics}


@pytest.fixture
def telemetry():
    told = Telemetry()
    instrumentor = RmemInstrumentor()
    instrumentor.instrument(**told.options)
    yield told
    instrumentor.uninstrument()


def test_remember_and_recall_are_spans_and_durations(telemetry, tmp_path):
    with Brain(tmp_path / "a.db") as brain:
        brain.remember("Ann's dog is called Bruno", agent="ann")
        brain.remember_many([{"text": "one"}, {"text": "two"}])
        brain.recall("a secret question", k=2, agent="ann")
    kept, many, recalled = telemetry.spans
    assert [span.name for span in telemetry.spans] == ["remember sqlite", "remember_many sqlite", "recall sqlite"]
    assert kept.attributes == {
        "db.system.name": "sqlite",
        "db.operation.name": "remember",
        "gen_ai.agent.name": "ann",
    }
    assert many.attributes["db.operation.batch.size"] == 2
    assert recalled.attributes["db.response.returned_rows"] == 1
    assert recalled.attributes["gen_ai.operation.name"] == "retrieval"
    assert recalled.kind is SpanKind.CLIENT
    assert "secret" not in str([span.attributes for span in telemetry.spans])
    durations = telemetry.metrics["db.client.operation.duration"]
    assert {point.attributes["db.operation.name"]: point.count for point in durations} == {
        "remember": 1,
        "remember_many": 1,
        "recall": 1,
    }
    assert telemetry.metrics["db.client.response.returned_rows"][0].sum == 1


def test_the_question_is_told_only_on_request(telemetry, monkeypatch):
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    with Brain(":memory:") as brain:
        brain.recall("where is the dog?")
    assert telemetry.spans[0].attributes["gen_ai.retrieval.query.text"] == "where is the dog?"
    assert telemetry.spans[0].kind is SpanKind.INTERNAL


def test_an_error_is_in_the_span_and_in_the_metric(telemetry):
    with Brain(":memory:") as brain, pytest.raises(InputError):
        brain.recall("dog", k=0)
    (span,) = telemetry.spans
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["error.type"] == "InputError"
    assert telemetry.metrics["db.client.operation.duration"][0].attributes["error.type"] == "InputError"


def test_async_calls_are_traced_inside_the_span_of_their_caller(telemetry):
    tracer = telemetry.options["tracer_provider"].get_tracer("application")

    async def run() -> None:
        async with AsyncBrain(":memory:") as brain:
            with tracer.start_as_current_span("request"):
                await brain.recall("dog")

    asyncio.run(run())
    recalled, request = telemetry.spans
    assert recalled.parent.span_id == request.context.span_id


def test_an_injection_says_how_much_was_told(telemetry, tmp_path):
    with Brain(tmp_path / "a.db") as brain:
        event = Event(id="1", time=0.0, kind=EventKind.SESSION_START, agent="claude", session="one", cwd=str(tmp_path))
        text = Briefing(brain).context(event)
    (span,) = (span for span in telemetry.spans if span.name == "inject rmem")
    assert span.attributes["rmem.injection.size"] == len(text)
    assert span.attributes["rmem.event"] == EventKind.SESSION_START.value
    assert telemetry.metrics["rmem.injection.size"][0].count == 1


@pytest.mark.skipif(find_spec("fastapi") is None, reason="a server needs a later mcp than these frameworks")
def test_a_sync_is_a_span_with_what_it_moved(telemetry, tmp_path, server):
    with Brain(tmp_path / "a.db") as brain:
        sync.sync(brain, Login(server.url, "default", "default"), server.first_token)
    (span,) = (span for span in telemetry.spans if span.name == "sync rmem")
    assert span.attributes["rmem.sync.sent"] == span.attributes["rmem.sync.received"] == 0
    assert {point.attributes["direction"] for point in telemetry.metrics["rmem.sync.memories"]} == {"sent", "received"}


def test_a_sync_that_fails_is_a_span_with_its_error(telemetry, tmp_path):
    with Brain(tmp_path / "a.db") as brain, pytest.raises(RemoteError):
        sync.sync(brain, Login("http://127.0.0.1:9", "default", "default", "ann"), "token")
    (span,) = (span for span in telemetry.spans if span.name == "sync rmem")
    assert span.status.status_code is StatusCode.ERROR


def test_without_instrument_nothing_is_wrapped_and_nothing_imported():
    code = (
        "import sys; from rmem import Brain; b = Brain(':memory:'); b.remember('dog'); b.recall('dog');"
        "assert not hasattr(Brain.recall, '__wrapped__'); assert not any('opentelemetry' in m for m in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_after_uninstrument_all_is_as_before():
    before = Brain.recall, sync.sync
    instrumentor = RmemInstrumentor()
    instrumentor.instrument(**Telemetry().options)
    assert Brain.recall is not before[0]
    instrumentor.uninstrument()
    assert (Brain.recall, sync.sync) == before
