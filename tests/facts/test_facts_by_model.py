"""Facts that a language model reads, from a real HTTP server: what is sent, what is kept, and what is not believed."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rmem import Brain
from rmem.errors import ConfigError, FactReaderError

TEXT = "We talked it over with Kim. From now on billing leans on Redis for its queues."
FACT = {"subject": "billing", "relation": "depends on", "object": "Redis", "quote": "billing leans on Redis"}


@pytest.fixture
def chat():
    """A server that answers with `answer`, and what it was asked."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            server.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            body = json.dumps({"choices": [{"message": {"content": server.answer}}]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked, server.answer = [], f"Here they are:\n```json\n{json.dumps([FACT])}\n```"
    server.spec = f"chat:small@http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_what_a_model_reads_is_likely_and_quotes_the_memory(tmp_path, chat):
    with Brain(tmp_path / "m.db") as brain:
        memory = brain.remember(TEXT, metadata={"channel": "ops"})
        assert brain.graph.read_with(chat.spec) == 1
        assert chat.asked[0]["messages"][1]["content"] == TEXT
        assert brain.graph.facts("billing", "depends on") == []
        (fact,) = brain.graph.facts("billing", "depends on", likely=True)
        assert (fact.object, fact.memory_id) == ("Redis", memory.id)
        assert brain.graph.explain(fact).sentence == "billing leans on Redis"
        assert brain.get(memory.id).metadata["channel"] == "ops"
        brain.graph.read_with(chat.spec)
        assert len(chat.asked) == 1  # it was read already
        brain.graph.read_with(chat.spec, again=True)
        assert len(chat.asked) == 2


def test_a_stated_fact_wins(tmp_path, chat):
    with Brain(tmp_path / "m.db") as brain:
        brain.graph.declare("runs on", single=True)
        brain.graph.add("staging", "runs on", "port 5433", when="2026-01-01")
        brain.remember("Somebody said staging is at 9999 now.")
        chat.answer = json.dumps(
            [{"subject": "staging", "relation": "runs on", "object": "port 9999", "quote": "staging is at 9999"}]
        )
        brain.graph.read_with(chat.spec)
        assert [fact.object for fact in brain.graph.facts("staging", "runs on")] == ["port 5433"]


def test_they_go_with_the_words_and_with_the_memory(tmp_path, chat):
    with Brain(tmp_path / "m.db") as brain:
        memory = brain.remember(TEXT)
        brain.graph.read_with(chat.spec)
        brain.update(memory, text="From now on billing uses nothing of the kind.")
        assert brain.graph.facts("billing", "depends on", likely=True) == []
        brain.update(memory, text=TEXT)
        assert brain.graph.facts("billing", "depends on", likely=True)
        brain.forget(memory)
        assert brain.graph.facts("billing", "depends on", likely=True) == []


@pytest.mark.parametrize(
    "told",
    [
        {**FACT, "quote": "words that nobody wrote"},
        {**FACT, "subject": ""},
        {**FACT, "object": 5},
        {**FACT, "relation": "rmem:ends"},
        "billing depends on Redis",
    ],
)
def test_what_is_no_fact_of_the_text_is_not_kept(tmp_path, chat, told):
    chat.answer = json.dumps([told])
    with Brain(tmp_path / "m.db") as brain:
        brain.remember(TEXT)
        assert brain.graph.read_with(chat.spec) == 0
        assert brain.graph.facts("billing", "depends on", likely=True) == []


def test_an_answer_that_is_no_list_is_an_error_and_changes_nothing(tmp_path, chat):
    chat.answer = "I would rather not."
    with Brain(tmp_path / "m.db") as brain:
        memory = brain.remember(TEXT)
        with pytest.raises(FactReaderError, match="JSON list of facts"):
            brain.graph.read_with(chat.spec)
        assert brain.get(memory.id).metadata == {}


def test_a_model_must_be_named(tmp_path, monkeypatch):
    monkeypatch.delenv("RMEM_CHAT_MODEL", raising=False)
    with Brain(tmp_path / "m.db") as brain, pytest.raises(ConfigError, match="chat:MODEL@URL"):
        brain.graph.read_with("chat")
