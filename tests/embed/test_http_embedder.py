"""The embeddings protocol against a real server: order, retries, refusals, and a key that never shows."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import numpy as np
import pytest
from embedding_server import Answer, EmbeddingServer, embeddings

from rmem.embed.http import HttpEmbedder
from rmem.errors import ConfigError, EmbedderError

KEY = "sk-or-v1-verysecretkey0123456789"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddingServer]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = EmbeddingServer()
    yield server
    server.close()


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMEM_EMBED_API_KEY", KEY)
    for name in ("OPENROUTER_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def embedder(server: EmbeddingServer, **options: Any) -> HttpEmbedder:
    return HttpEmbedder("some/model", server.url, **options)


def lengths(rows: Any) -> list[int]:
    """The server's vectors are (length of the text, 1), so the ratio tells which text a row belongs to."""
    return [round(float(row[0] / row[1])) for row in rows]


def test_texts_become_unit_vectors_in_order(server: EmbeddingServer) -> None:
    rows = embedder(server).embed(["a", "abc", "ab"])
    assert lengths(rows) == [1, 3, 2]
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    assert server.requests == [{"model": "some/model", "input": ["a", "abc", "ab"]}]
    assert server.paths == ["/v1/embeddings"]
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


def test_answers_out_of_order_are_put_in_order(server: EmbeddingServer) -> None:
    server.script = [lambda request: Answer({"data": embeddings(request)[::-1]})]
    assert lengths(embedder(server).embed(["a", "abc", "ab"])) == [1, 3, 2]


def test_the_dimension_is_learned_from_the_first_answer(server: EmbeddingServer) -> None:
    remote = embedder(server)
    remote.embed(["a"])
    assert remote.dimension == 2
    assert len(server.requests) == 1
    assert embedder(server).dimension == 2
    assert embedder(server, dimension=5).dimension == 5


def test_many_texts_go_in_batches(server: EmbeddingServer) -> None:
    texts = ["x" * (number + 1) for number in range(150)]
    assert lengths(embedder(server).embed(texts)) == list(range(1, 151))
    assert [len(request["input"]) for request in server.requests] == [64, 64, 22]


def test_batches_are_limited_by_characters_too(server: EmbeddingServer) -> None:
    embedder(server).embed(["x" * 5_999] * 60)
    assert [len(request["input"]) for request in server.requests] == [33, 27]


def test_a_long_text_is_sent_whole_in_windows(server: EmbeddingServer) -> None:
    text = " ".join(["word"] * 5_000)
    row = embedder(server, max_characters=1_000).embed(["short", text])[1]
    assert "".join(server.requests[0]["input"][1:]) == text
    assert all(len(piece) <= 1_000 for piece in server.requests[0]["input"])
    assert np.linalg.norm(row) == pytest.approx(1.0, abs=1e-5)


def test_texts_without_content_are_zeros_and_not_sent(server: EmbeddingServer) -> None:
    rows = embedder(server).embed(["", "abc", " \n"])
    assert rows[0].tolist() == rows[2].tolist() == [0, 0]
    assert server.requests[0]["input"] == ["abc"]
    assert embedder(server, dimension=2).embed(["", " "]).tolist() == [[0, 0], [0, 0]]
    assert embedder(server, dimension=2).embed([]).shape == (0, 2)
    assert len(server.requests) == 1


def test_lone_surrogates_are_sent_as_a_replacement(server: EmbeddingServer) -> None:
    embedder(server).embed(["a\ud800b\x00"])
    assert server.requests[0]["input"] == ["a?b\x00"]


def test_429_waits_as_long_as_the_server_asks(server: EmbeddingServer) -> None:
    server.script = [Answer({"error": "slow down"}, 429, {"Retry-After": "1"})]
    start = time.monotonic()
    assert lengths(embedder(server).embed(["abc"])) == [3]
    assert 1.0 <= time.monotonic() - start < 3.0
    assert len(server.requests) == 2


def test_retry_after_may_be_a_date(server: EmbeddingServer) -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)
    server.script = [Answer({}, 503, {"Retry-After": soon})]
    start = time.monotonic()
    embedder(server).embed(["abc"])
    assert 0.5 < time.monotonic() - start < 4.0


def test_a_wait_that_is_too_long_is_an_error_at_once(server: EmbeddingServer) -> None:
    server.script = [Answer({}, 429, {"Retry-After": "3600"})]
    with pytest.raises(EmbedderError, match="asks to wait 3600 s"):
        embedder(server).embed(["abc"])
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [408, 500, 502, 503, 504])
def test_a_passing_failure_is_tried_again(server: EmbeddingServer, status: int) -> None:
    server.script = [Answer(b"oops", status, {"Retry-After": "0"})]
    assert lengths(embedder(server).embed(["abc"])) == [3]


def test_without_retry_after_the_pauses_grow(server: EmbeddingServer) -> None:
    server.script = [Answer(b"", 500), Answer(b"", 500)]
    start = time.monotonic()
    embedder(server).embed(["abc"])
    assert 0.75 <= time.monotonic() - start < 4.0  # at least half of 0.5 s and half of 1 s


def test_a_lasting_failure_gives_up_and_says_so(server: EmbeddingServer) -> None:
    server.script = [Answer(b"overloaded", 500, {"Retry-After": "0"})] * 3
    with pytest.raises(EmbedderError, match=r"500.*overloaded.*Gave up after 3 attempts"):
        embedder(server, retries=2).embed(["abc"])
    assert len(server.requests) == 3


def test_a_slow_server_times_out_and_is_tried_again(server: EmbeddingServer) -> None:
    server.script = [Answer(delay=2.0)]
    assert lengths(embedder(server, timeout=0.3).embed(["abc"])) == [3]
    assert len(server.requests) == 2


def test_a_server_that_stays_slow_is_an_error(server: EmbeddingServer) -> None:
    server.script = [Answer(delay=1.0)]
    with pytest.raises(EmbedderError, match=r"could not be reached.*timed out"):
        embedder(server, timeout=0.2, retries=0).embed(["abc"])


def test_nobody_listening_is_an_error() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(EmbedderError, match=f"127.0.0.1:{port}/v1/embeddings could not be reached"):
        HttpEmbedder("m", f"http://127.0.0.1:{port}/v1", retries=0).embed(["abc"])


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b"<html>gateway</html>", "did not answer with JSON.*gateway"),
        (b"", "did not answer with JSON"),
        ([], '"data"'),
        ({}, '"data"'),
        ({"error": {"message": "No such model"}}, "No such model"),
        ({"data": ["x", "y"]}, '"data"'),
        ({"data": [{"index": 0, "embedding": [1.0]}]}, "must return 2 embeddings, got 1"),
        ({"data": [{"index": 0, "embedding": [1.0]}] * 2}, '"index", 0 to 1'),
        ({"data": [{"embedding": [1.0]}] * 2}, '"index", 0 to 1'),
        ({"data": [{"index": [], "embedding": [1.0]}] * 2}, '"index", 0 to 1'),
        ({"data": [{"index": 1, "embedding": [1.0]}, {"index": 2, "embedding": [1.0]}]}, '"index", 0 to 1'),
        ({"data": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0, 2.0]}]}, "equal length"),
        ({"data": [{"index": 0, "embedding": [1.0]}, {"index": 1}]}, "equal length"),
        ({"data": [{"index": 0, "embedding": "AAAA"}, {"index": 1, "embedding": "AAAA"}]}, "list of numbers"),
        ({"data": [{"index": 0, "embedding": []}, {"index": 1, "embedding": []}]}, "at least one"),
        (b'{"data": [{"index": 0, "embedding": [NaN]}, {"index": 1, "embedding": [1]}]}', "NaN"),
    ],
)
def test_a_wrong_answer_is_an_error_that_names_the_server(server: EmbeddingServer, body: Any, complaint: str) -> None:
    server.script = [Answer(body)]
    with pytest.raises(EmbedderError, match=f"/v1/embeddings .*{complaint}"):
        embedder(server).embed(["a", "b"])
    assert len(server.requests) == 1


def test_a_changed_dimension_is_an_error(server: EmbeddingServer) -> None:
    remote = embedder(server, dimension=3)
    with pytest.raises(EmbedderError, match="vectors of 3 numbers, got 2"):
        remote.embed(["a"])


def test_a_refusal_is_not_tried_again_and_points_to_the_key(server: EmbeddingServer) -> None:
    server.script = [Answer({"error": "no"}, 401)]
    with pytest.raises(EmbedderError, match=r"401.*Check the key in RMEM_EMBED_API_KEY"):
        embedder(server).embed(["a"])
    assert len(server.requests) == 1


def test_redirects_are_not_followed(server: EmbeddingServer) -> None:
    server.script = [Answer(b"", 307, {"Location": f"{server.url}/elsewhere"})]
    with pytest.raises(EmbedderError, match="307"):
        embedder(server).embed(["a"])
    assert len(server.requests) == 1


@pytest.mark.parametrize("padding", [0, 260, 270, 285])
def test_the_key_is_in_no_error_log_or_repr(
    server: EmbeddingServer, caplog: pytest.LogCaptureFixture, padding: int
) -> None:
    echo = "x" * padding + f" wrong key {KEY}"
    server.script = [
        Answer({"error": echo}, 500, {"Retry-After": "0"}),
        Answer({"error": echo}, 401),
        Answer({"error": echo}),
        Answer(echo.encode()),
    ]
    remote = embedder(server)
    said = [repr(remote), str(vars(remote))]
    with caplog.at_level(logging.DEBUG):
        for _ in range(3):
            with pytest.raises(EmbedderError) as caught:
                remote.embed(["a"])
            said += [str(caught.value), repr(caught.value.__cause__), repr(caught.value.__context__)]
    assert "trying again" in caplog.text
    assert KEY[:8] not in "".join([*said, caplog.text])


def test_a_key_with_a_line_break_is_used_without_it(server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMEM_EMBED_API_KEY", KEY + "\n")
    embedder(server).embed(["a"])
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("bad", ["secret\nX-Other: 1", "secrét", "sec\tret"])
def test_an_impossible_key_is_refused_without_showing_it(
    server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch, bad: str
) -> None:
    monkeypatch.setenv("RMEM_EMBED_API_KEY", bad)
    with pytest.raises(ConfigError, match="RMEM_EMBED_API_KEY holds characters") as caught:
        embedder(server).embed(["a"])
    assert "sec" not in str(caught.value)
    assert server.requests == []


def test_without_a_key_none_is_sent(server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RMEM_EMBED_API_KEY")
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    embedder(server).embed(["a"])
    assert "Authorization" not in server.headers[0]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://openrouter.ai/api/v1", "router-key"),
        ("https://api.openai.com/v1", "openai-key"),
        ("http://openrouter.ai/api/v1", ""),
        ("https://openrouter.ai.example.com/v1", ""),
        ("https://example.com/v1", ""),
    ],
)
def test_a_providers_key_goes_to_that_provider_alone(monkeypatch: pytest.MonkeyPatch, url: str, expected: str) -> None:
    monkeypatch.delenv("RMEM_EMBED_API_KEY")
    monkeypatch.setenv("OPENROUTER_API_KEY", "router-key")
    monkeypatch.setenv("OPENAI_API_KEY", "openai-key")
    assert HttpEmbedder("m", url)._endpoint._key() == expected


@pytest.mark.parametrize(
    "url",
    ["", "example.com", "ftp://example.com", "https://", "https://h:port/v1", "https://h/v1?x=1", "https://[x/v1"],
)
def test_a_malformed_address_is_a_configuration_error(url: str) -> None:
    with pytest.raises(ConfigError, match="address of the HTTP embedder"):
        HttpEmbedder("m", url)


def test_options_out_of_range_are_refused() -> None:
    with pytest.raises(ConfigError, match="must be above 0"):
        HttpEmbedder("m", "https://example.com", batch=0)
    with pytest.raises(ConfigError, match="model name"):
        HttpEmbedder("", "https://example.com")
