"""Summaries by a chat model, from a real HTTP server: what is sent, what comes back, failures, and the key."""

from __future__ import annotations

import json
import logging
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rmem import EnhancedAgentMemory
from rmem.conversation import ChatSummariser
from rmem.errors import ConfigError, InputError, SummariserError
from rmem.recall.budget import estimate_tokens

KEY = "key-of-the-chat-server-0123456789"
TEXTS = ["user: The build failed with error E42.", "assistant: We will pin numpy to 2.1."]


class ChatServer:
    """Answers with `script` in turn, then with a summary that tells how many requests there were."""

    def __init__(self):
        self.script = []
        self.requests = []
        self.paths = []
        self.keys = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def close(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(self):
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                server.requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                server.paths.append(self.path)
                server.keys.append(self.headers.get("Authorization"))
                said = f"Summary number {len(server.requests)}."
                answer = {"choices": [{"message": {"role": "assistant", "content": said}}]}
                status, body = server.script.pop(0) if server.script else (200, answer)
                raw = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(raw)))
                if status == 429:
                    self.send_header("Retry-After", "0")
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_args):
                pass

        return Handler


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("RMEM_CHAT_API_KEY", KEY)
    server = ChatServer()
    yield server
    server.close()


def test_a_model_is_asked_for_a_summary(server):
    assert ChatSummariser("some/model", server.url)(TEXTS, 50) == "Summary number 1."
    (request,) = server.requests
    assert request["model"] == "some/model"
    assert [message["role"] for message in request["messages"]] == ["system", "user"]
    assert request["messages"][1]["content"] == "\n".join(TEXTS)
    assert server.paths == ["/v1/chat/completions"]
    assert server.keys == [f"Bearer {KEY}"]


def test_an_answer_that_is_too_long_is_cut(server):
    server.script = [(200, {"choices": [{"message": {"content": "many words " * 500}}]})]
    assert estimate_tokens(ChatSummariser("m", server.url)(TEXTS, 40)) <= 40


def test_an_answer_in_parts_is_put_together(server):
    parts = [{"type": "text", "text": "One. "}, {"type": "text", "text": "Two."}, {"type": "image"}]
    server.script = [(200, {"choices": [{"message": {"content": parts}}]})]
    assert ChatSummariser("m", server.url)(TEXTS, 40) == "One. Two."


def test_failures_that_may_pass_are_tried_again(server, caplog):
    server.script = [(500, {"error": "busy"}), (429, {"error": "slow down"})]
    with caplog.at_level(logging.WARNING):
        assert ChatSummariser("m", server.url, retries=2)(TEXTS, 40) == "Summary number 3."
    assert "trying again" in caplog.text


@pytest.mark.parametrize(
    "answer",
    [
        (401, {"error": f"bad key {KEY}"}),
        (200, {"choices": []}),
        (200, {"choices": [{"message": {"content": None}}]}),
        (200, ["no"]),
        (200, b"<html>"),
        (302, b""),
    ],
)
def test_other_failures_are_told_without_the_key_or_stepped_in_for(server, caplog, answer):
    server.script = [answer, answer]
    with pytest.raises(SummariserError) as failed:
        ChatSummariser("m", server.url, fallback=None)(TEXTS, 40)
    with caplog.at_level(logging.DEBUG):
        summary = ChatSummariser("m", server.url)(TEXTS, 40)
    assert "E42" in summary
    assert KEY not in str(failed.value) + caplog.text
    assert KEY not in repr(vars(ChatSummariser("m", server.url)))


def test_a_server_that_is_away_costs_no_message(server, monkeypatch):
    monkeypatch.setattr("rmem.embed.endpoint._FIRST_PAUSE", 0.01)
    away = ChatSummariser("m", "http://127.0.0.1:9/v1", retries=1, timeout=0.5)
    with EnhancedAgentMemory(token_limit=200, summariser=away) as memory:
        for number in range(30):
            memory.add_message("user", f"Crate {number} holds some copper and a little silver.")
        assert memory.working.tokens <= 200
        assert len(memory.get_messages()) == 30


def test_working_memory_is_summarised_by_the_model(server, monkeypatch):
    monkeypatch.setenv("RMEM_CHAT_MODEL", "some/model")
    monkeypatch.setenv("RMEM_CHAT_URL", server.url)
    with EnhancedAgentMemory(token_limit=200, summariser="chat") as memory:
        for number in range(40):
            memory.add_message("user", f"Crate {number} holds some copper and a little silver.")
        assert len(server.requests) > 1
        assert memory.working.summary == f"Summary number {len(server.requests)}."
        assert server.requests[1]["messages"][1]["content"].startswith("Summary number 1.\nuser: Crate")
        assert memory.summary().startswith("Summary number")
        assert "Summary number" in memory.context_for("copper", 200)
        assert memory.sources(memory.working.summary_key, deep=True)[0] == "msg_0"


def test_nothing_is_asked_about_nothing(server):
    assert ChatSummariser("m", server.url)([], 40) == ""
    assert ChatSummariser("m", server.url)(["  "], 40) == ""
    assert server.requests == []


def test_long_conversations_are_sent_within_bounds(server):
    ChatSummariser("m", server.url)(["user: " + "word " * 50_000, *TEXTS] * 3, 40)
    sent = server.requests[0]["messages"][1]["content"]
    assert estimate_tokens(sent) <= 24_100
    assert sent.endswith(TEXTS[1])


def test_bad_settings_are_refused(server):
    for name, wrong in (("model", ""), ("timeout", 0), ("retries", -1)):
        with pytest.raises(InputError, match=name):
            ChatSummariser(**{"model": "m", "base_url": server.url, name: wrong})
    for address in ("ftp://x", "http://user:secret@host/v1", "nonsense"):
        with pytest.raises(ConfigError) as refused:
            ChatSummariser("m", address)
        assert "secret" not in str(refused.value)
