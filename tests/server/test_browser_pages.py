"""Web pages in a real browser against a server without tokens, and the server's own page of documentation."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from browser import close_page, open_page, read_page
from running_server import eventually

ATTACK = """<!doctype html><title>A page from elsewhere</title>
<iframe name="hidden"></iframe>
<form id="form" method="post" enctype="text/plain" target="hidden" action="SERVER/workspaces/default/memories">
<input name='{"text": "by a form", "metadata": {"x": "' value='"}}'></form>
<script>
const server = "SERVER", memories = server + "/workspaces/default/memories";
const seen = {};
async function attempt(name, act) {
  try { seen[name] = String(await act()).slice(0, 200); } catch (error) { seen[name] = "blocked"; }
}
const text = (address, options) => fetch(address, options).then(answer => answer.text());
const write = (name, options) => text(memories, {method: "POST", body: JSON.stringify({text: name}), ...options});
const rpc = JSON.stringify({jsonrpc: "2.0", id: 1, method: "tools/call",
  params: {name: "remember", arguments: {text: "by MCP"}}});
const opened = link => new Promise((done, failed) => { link.onopen = () => done("open"); link.onerror = failed; });
(async () => {
  await attempt("read", () => text(server + "/me"));
  await attempt("read without CORS", () => text(server + "/me", {mode: "no-cors"}));
  await attempt("write plain text", () => write("plain", {headers: {"Content-Type": "text/plain"}}));
  await attempt("write without CORS", () => write("no-cors", {mode: "no-cors"}));
  await attempt("write JSON", () => write("JSON", {headers: {"Content-Type": "application/json"}}));
  await attempt("write with keepalive", () => write("keepalive", {mode: "no-cors", keepalive: true}));
  await attempt("send a beacon", () => navigator.sendBeacon(memories, JSON.stringify({text: "beacon"})));
  await attempt("delete", () => text(server + "/workspaces/default", {method: "DELETE"}));
  await attempt("sql", () => text(server + "/workspaces/default/tables/query",
    {method: "POST", mode: "no-cors", body: JSON.stringify({query: "CREATE TABLE owned (x TEXT)"})}));
  await attempt("mcp", () => text(server + "/workspaces/default/mcp", {method: "POST", mode: "no-cors", body: rpc}));
  await attempt("websocket", () => opened(new WebSocket(server.replace("http", "ws") + "/workspaces/default/mcp")));
  await attempt("event source", () => opened(new EventSource(server + "/workspaces/default/mcp")));
  document.getElementById("form").submit();
  setTimeout(() => fetch("/seen", {method: "POST", body: JSON.stringify(seen)}), 1000);
})();
</script>
"""


class Page:
    """A site of its own, on a port of its own, that serves one page and is told what the page has seen."""

    def __init__(self, text: str) -> None:
        page, told = text.encode(), []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(page)

            def do_POST(self) -> None:
                told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.told: list[dict[str, str]] = told
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def page_of() -> Iterator:
    pages: list[Page] = []

    def make(text: str) -> Page:
        pages.append(Page(text))
        return pages[-1]

    yield make
    for page in pages:
        page.close()


@pytest.mark.parametrize("site", ["127.0.0.1", "localhost", "evil.example"])
def test_a_page_from_elsewhere_reads_and_writes_nothing(server_with, page_of, tmp_path: Path, site: str):
    server = server_with(auth=False)
    page = page_of(ATTACK.replace("SERVER", server.url))
    resolve = "--host-resolver-rules=MAP evil.example 127.0.0.1"
    browser = open_page(f"http://{site}:{page.port}/", tmp_path / "profile", resolve)
    try:
        (seen,) = eventually(lambda: page.told, seconds=60)
    finally:
        close_page(browser)
    own = server.client()
    assert own.get("/workspaces/default/memories").json()["memories"] == []
    assert own.get("/workspaces/default/tables").json()["tables"] == []
    assert seen["read"] == "blocked"
    assert {name for name, text in seen.items() if text not in ("blocked", "", "true")} == set()


def test_a_name_that_was_rebound_to_this_machine_shows_nothing(server_with, tmp_path: Path):
    server = server_with(auth=False)
    port = server.url.rsplit(":", 1)[1]
    resolve = "--host-resolver-rules=MAP evil.example 127.0.0.1"
    shown = read_page(f"http://evil.example:{port}/me", tmp_path / "profile", resolve)
    assert "this machine only" in shown
    assert "admin" in read_page(f"{server.url}/me", tmp_path / "profile")  # typed by its user


def test_the_documentation_renders_without_the_outside(server, tmp_path: Path):
    nothing_else = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
    shown = read_page(f"{server.url}/docs", tmp_path / "profile", nothing_else)
    assert "/workspaces/{workspace}/tables/query" in shown
    assert "One SQL statement" in shown
    assert "ingest" in shown


def test_the_documentation_names_no_other_host(server):
    page = httpx.get(f"{server.url}/docs")
    assert "http://" not in page.text
    assert "https://" not in page.text
    assert "<script" not in page.text
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
