"""The dashboard in a real browser: each page on the history of a real repository, and attacks on it.

With RMEM_PICTURES=1 the screenshots of docs/ui.md are made anew (`make pictures`)."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import httpx
import pytest
from dashboard import ROOT, SCRIPT, W, Window, picture
from running_server import Running, eventually

from rmem import Brain
from rmem.crypto.encryption import new_master_key
from rmem.server.own_store import invite_owner, own_settings
from rmem.server.routes.ui import FILES
from rmem.server.settings import ServerSettings
from rmem.team.importers.run import import_git

sync_api = pytest.importorskip("playwright.sync_api")

COMMITS = 60


@pytest.fixture(scope="module")
def team(tmp_path_factory, chrome) -> Iterator[Running]:
    """A server whose workspace knows the last commits of this repository, a conversation, and a hostile memory."""
    folder = tmp_path_factory.mktemp("team")
    server = Running(ServerSettings(data=folder / "data")).start()
    admin = server.client(server.first_token)
    admin.get(f"{W}/stats").raise_for_status()
    (file,) = (path for path in (folder / "data").rglob("*.db") if path.parent.parent == folder / "data")
    source = f"file://{ROOT}"
    subprocess.run(["git", "clone", "-q", "--depth", str(COMMITS), source, folder / "clone"], check=True)
    with Brain(file) as brain:
        import_git(brain, folder / "clone")
        newest = brain.memories(order="newest", limit=1)[0].timestamp
    said = [
        ("ann", "Which port does staging run on?"),
        ("bob", "Staging runs on port 5433."),
        ("bob", "Since the move, staging runs on port 5434."),
        ("ann", "Billing depends on Redis. Ann Lee owns Billing."),
        ("bob", "Redis depends on vault 3."),
    ]
    several = [
        {
            "text": text,
            "actor": actor,
            "session": "standup",
            "type": "turn",
            "agent": "team",
            "when": newest - 1800 + at,
        }
        for at, (actor, text) in enumerate(said)
    ]
    admin.post(f"{W}/memories", json=several).raise_for_status()
    for statement in (
        "CREATE TABLE deploys (id BIGSERIAL PRIMARY KEY, service TEXT, minutes BIGINT)",
        "INSERT INTO deploys (service, minutes) VALUES ('billing', 4), ('staging', 7), ('search', 12)",
    ):
        admin.post(f"{W}/tables/query", json={"query": statement}).raise_for_status()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def attacked(team) -> Running:
    """The same server with a workspace, "attacked", where every text is a script."""
    admin = team.client(team.first_token)
    admin.post("/workspaces", json={"name": "attacked"}).raise_for_status()
    hostile = {name: f"{name} {SCRIPT}" for name in ("text", "type", "agent", "session", "actor", "place")}
    hostile |= {"id": "hostile", "tags": {"note": SCRIPT}, "metadata": {"of": SCRIPT, "lines": list(range(60))}}
    admin.post("/workspaces/attacked/memories", json=hostile).raise_for_status()
    for statement, values in (
        ("CREATE TABLE notes (body TEXT)", []),
        ("INSERT INTO notes (body) VALUES ($1)", [SCRIPT]),
    ):
        told = {"query": statement, "params": values}
        admin.post("/workspaces/attacked/tables/query", json=told).raise_for_status()
    return team


@pytest.fixture(scope="module")
def admin_token(team) -> str:
    return team.first_token


# The pages


def test_a_search_shows_hits_with_their_words_and_every_part_of_their_score(window):
    page = window.show("search")
    page.get_by_role("searchbox").fill("which port does staging run on")
    first = page.get_by_label("Hits").locator("article").first
    first.get_by_text("staging runs on port").first.wait_for()
    assert {text.lower() for text in first.locator("mark").all_inner_texts()} >= {"staging", "port"}
    first.get_by_text("Why: score").click()
    assert first.locator(".parts dt").count() >= 2
    assert first.locator(".track .more").first.bounding_box()["width"] > 10
    assert re.search(r"\d+% likely", first.inner_text())
    assert "q=which" in page.url
    picture(page, "search")
    first.get_by_role("button", name="Hit 1 helped").click()
    page.get_by_text("Noted: it helped.").wait_for()


def test_why_a_memory_did_not_come_is_told_by_the_parts_that_held_it_back(window, team):
    client = team.client(team.first_token)
    checks = [{"text": f"Check {n} of the staging port passed", "type": "check"} for n in range(15)]
    client.post(f"{W}/memories", json=checks).raise_for_status()
    last = client.post(f"{W}/recall", json={"query": "staging port", "k": 40, "touch": False}).json()["hits"][-1][
        "memory"
    ]
    page = window.show("search?q=staging%20port")
    page.get_by_label("Memory", exact=True).fill(last["memory_id"])
    page.get_by_role("button", name="Explain").click()
    page.get_by_text(re.compile(r"ranks \d+ of the first \d+")).wait_for()
    page.get_by_text("Held back by").wait_for()
    page = window.show(f"search?q=staging%20port&type=turn&why={last['memory_id']}")
    page.get_by_text("is outside the filter").wait_for()


def test_other_settings_are_compared_side_by_side(window):
    page = window.show("search?q=which port does staging run on")
    page.get_by_label("Settings", exact=True).fill("dense=0 context=0")
    page.get_by_role("button", name="Compare").click()
    rankings = page.get_by_role("region", name="Rankings side by side")
    rankings.wait_for()
    assert "▲" in rankings.inner_text()
    page.get_by_label("Settings", exact=True).fill("nonsense=1")
    page.get_by_role("button", name="Compare").click()
    assert "nonsense" in page.get_by_role("alert").inner_text()


def test_judged_questions_are_an_evaluation_set_whose_figures_are_seen_over_time(window, team):
    page = window.show("search?q=which port does staging run on")
    page.get_by_label("Hits").locator("article").first.get_by_role("button", name="Hit 1 helped").click()
    page.get_by_text("1 question in the set").wait_for()
    page.get_by_role("button", name="Run with these settings").click()
    runs = page.get_by_role("region", name="Runs")
    runs.wait_for()
    page.get_by_label("Settings", exact=True).fill("dense=0")
    page.get_by_role("button", name="Run with these settings").click()
    page.get_by_role("img", name="Figures of the runs").wait_for()
    assert "dense=0" in runs.inner_text()
    page.get_by_role("img", name="Reliability of the last run").wait_for()
    page.get_by_label("Embedder").select_option("static")
    page.get_by_role("button", name="Compare").click()
    page.get_by_text("By static:minilm-256, among the first").wait_for()
    with page.expect_download() as saved:
        page.get_by_role("link", name="Save the set for rmem eval").click()
    assert json.loads(saved.value.path().read_text())["question"] == "which port does staging run on"
    reader = team.client(team.token_for("default", "default", "READ", member="curious"))
    told = reader.get(f"{W}/evaluation").json()
    assert (told["count"], told["questions"], len(told["runs"])) == (1, [], 2)
    wrong = team.client(team.first_token).post(f"{W}/evaluation", json={"settings": {"nonsense": 1}})
    assert (wrong.status_code, "nonsense" in wrong.json()["error"]) == (400, True)


def test_following_a_link_wins_over_the_page_that_still_loads(window):
    page = window.show("search")
    page.get_by_label("Hits").locator("article").first.wait_for()
    page.evaluate("location.hash = '#/search?q=vault'; document.querySelector('form[role=search]').requestSubmit()")
    eventually(lambda: page.get_by_role("searchbox").input_value() == "vault")
    assert "q=vault" in page.url


def test_a_memory_is_read_edited_pinned_and_forgotten(window, team):
    client = team.client(team.first_token)
    (id,) = client.post(f"{W}/memories", json={"text": "Lunch is at noon", "tags": {"a": "b"}}).json()["ids"]
    page = window.show(f"memory?id={id}")
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Text").fill("Lunch is at one")
    page.get_by_label("Tags").fill("a=b\nc=d")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Lunch is at one").wait_for()
    page.get_by_role("button", name="Pin").click()
    page.get_by_role("button", name="Unpin").wait_for()
    known = client.get(f"{W}/memories/{id}").json()
    page.get_by_role("region", name="History").last.get_by_text("tags, text").wait_for()
    assert (known["text"], known["tags"]["c"]) == ("Lunch is at one", "d")
    assert "pinned" in known["tags"]
    page.get_by_role("button", name="Forget…").click()
    page.get_by_role("button", name="Cancel").click()
    assert client.get(f"{W}/memories/{id}").status_code == 200
    page.get_by_role("button", name="Forget…").click()
    page.get_by_role("dialog").get_by_role("button", name="Forget").click()
    eventually(lambda: client.get(f"{W}/memories/{id}").status_code == 404)


def test_a_memory_is_shown_between_its_neighbours(window, team):
    client = team.client(team.first_token)
    listed = client.get(f"{W}/memories", params={"session": "standup", "order": "oldest"}).json()["memories"]
    page = window.show(f"memory?id={listed[2]['memory_id']}")
    page.get_by_role("heading", name="In the same session").wait_for()
    around = page.get_by_label("Around it").inner_text()
    assert "Which port does staging run on?" in around
    assert "Redis depends on vault 3." in around
    picture(page, "memory")


def test_the_timeline_counts_zooms_and_goes_back(window, team):
    page = window.show("timeline?by=agent")
    bars = page.locator("svg g[role=button]")
    bars.first.wait_for()
    picture(page, "timeline")
    whole = page.locator("section[aria-label=Memories] h2").inner_text()
    box = page.locator(".chart svg").bounding_box()
    page.mouse.move(box["x"] + 5, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 40, steps=4)
    page.mouse.up()
    eventually(lambda: "since=" in page.evaluate("location.hash"))
    page.get_by_role("button", name="Whole time").click()
    eventually(lambda: page.locator("section[aria-label=Memories] h2").inner_text() == whole)
    page.get_by_label("As of").fill("10")
    eventually(lambda: page.locator("section[aria-label=Memories] h2").inner_text() != whole)
    page.get_by_label("Type").select_option("turn")
    eventually(lambda: "type=turn" in page.evaluate("location.hash"))


def test_the_timeline_has_sessions_as_bands_importance_and_a_live_feed(window, team):
    client = team.client(team.first_token)
    page = window.show("timeline?by=importance&live=1")
    page.locator(".legend", has_text="0.5–0.75").wait_for()
    page.locator(".band").first.wait_for()
    feed = page.get_by_label("Live feed")
    client.post(f"{W}/memories", json={"text": f"Just now {SCRIPT}", "id": "just-now"}).raise_for_status()
    client.post(f"{W}/recall", json={"query": "what was asked right now?"}).raise_for_status()
    feed.get_by_text("Just now <img").wait_for()
    feed.get_by_text("what was asked right now?").wait_for()
    assert feed.locator("img").count() == 0
    reader = team.client(team.token_for("default", "default", "READ", member="curious"))
    told = reader.get(f"{W}/activity", params={"since": 0}).json()["entries"]
    assert {entry["action"] for entry in told} == {"remember"}, "questions and the audit trail are for administrators"
    page.get_by_role("button", name="Session standup of team").focus()
    page.keyboard.press("Enter")
    eventually(lambda: "session=standup" in page.evaluate("location.hash"))


def test_the_graph_grows_by_a_click_and_facts_show_their_sentences(window, team):
    client = team.client(team.first_token)
    client.post(f"{W}/graph/relations", json={"relation": "runs on", "single": True}).raise_for_status()
    for line in (
        "Checkout, depends on, Billing", "Checkout, is owned by, Ann Lee", "Billing, depends on, Redis",
        "Billing, is owned by, Bob Ray", "Redis, depends on, vault 3", "Search, depends on, Redis",
        "Staging, runs on, port 5433", "Staging, runs on, port 5434",
    ):  # fmt: skip
        subject, relation, object = line.split(", ")
        told = {"subject": subject, "relation": relation, "object": object, "since": "2026-01-01"}
        client.post(f"{W}/graph/facts", json=told).raise_for_status()
    page = window.show("graph?entity=Checkout")
    page.get_by_role("button", name=re.compile("connected with billing", re.I)).first.click()
    page.get_by_role("button", name=re.compile("connected with redis", re.I)).first.click()
    page.locator(".node text", has_text="vault 3").wait_for()
    picture(page, "graph")
    page.locator(".facts summary", has_text="depends on").first.click()
    page.locator("blockquote", has_text="depends on").first.wait_for()
    page = window.show("graph?entity=Checkout&goal=vault%203")
    page.get_by_role("heading", name="From Checkout to vault 3").wait_for()
    assert "vault 3" in page.locator("ol").inner_text()
    page = window.show("graph?entity=Staging")
    page.locator(".edge.bad").first.wait_for(state="attached")
    page = window.show("graph")
    page.get_by_role("heading", name="Contradictions").wait_for()
    page.locator("ul.cloud a").first.wait_for()


def test_tables_answer_sql_and_are_saved_as_csv(window):
    page = window.show("tables")
    page.get_by_label("SQL").fill("SELECT service, minutes FROM deploys ORDER BY minutes")
    page.get_by_role("button", name="Run").click()
    page.get_by_role("region", name="Answer").get_by_text("billing").first.wait_for()
    page.locator("details", has_text="Chart").get_by_text("staging").wait_for()
    picture(page, "tables")
    with page.expect_download() as saved:
        page.get_by_role("button", name="CSV").click()
    assert saved.value.path().read_text().splitlines()[:3] == ["service,minutes", "billing,4", "staging,7"]
    page.get_by_label("SQL").fill("SELECT nonsense FROM deploys")
    page.get_by_role("button", name="Run").click()
    page.get_by_role("alert").wait_for()
    assert "nonsense" in page.get_by_role("alert").inner_text()
    page.get_by_label("SQL").fill("SELECT id, minutes FROM deploys")
    page.get_by_role("button", name="Run").click()
    page.get_by_role("img", name="Chart").wait_for()
    assert page.get_by_label("Asked before").locator("option").count() == 3


def test_an_answer_is_drawn_row_by_row_and_shown_to_the_last_digit(window):
    page = window.show("tables")
    rows = "SELECT 'x' AS name, 4 AS v UNION ALL SELECT 'x', -1 UNION ALL SELECT '7', NULL UNION ALL SELECT '6', 2"
    page.get_by_label("SQL").fill(rows)
    page.get_by_role("button", name="Run", exact=True).click()
    drawn = page.locator("details", has_text="Chart")
    drawn.wait_for()
    assert drawn.locator("dt").all_inner_texts() == ["x", "x", "6"]
    assert drawn.locator(".number").all_inner_texts() == ["4", "-1", "2"]
    widths = drawn.locator(".track span").evaluate_all("all => all.map(one => one.style.width)")
    assert widths == ["50%", "12.5%", "25%"]
    page.get_by_label("SQL").fill("SELECT 9007199254740993 AS big, 1 AS one")
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("cell", name="9007199254740993").wait_for()


def test_a_table_that_was_made_here_is_listed(window):
    page = window.show("tables")
    for statement, there in (("CREATE TABLE made_here (a bigint)", 1), ("DROP TABLE made_here", 0)):
        page.get_by_label("SQL").fill(statement)
        page.get_by_role("button", name="Run", exact=True).click()
        page.get_by_text("0 rows written").wait_for()
        sync_api.expect(page.locator("summary", has_text="made_here")).to_have_count(there)


def test_a_link_into_a_workspace_without_a_role_shows_no_other_one(window, attacked):
    page = window.show("search?q=staging&workspace=not-for-me")
    page.get_by_role("heading", name="No workspace").wait_for()
    assert "not-for-me" in page.locator("main").inner_text()
    page.get_by_label("Workspace").select_option("default")
    page.get_by_text("in default").wait_for()
    page = window.show("search?workspace=not-for-me")
    page.get_by_role("link", name="Health").click()
    page.get_by_role("heading", name="Health").wait_for()


def test_what_is_encrypted_without_a_key_is_said_to_be_left_out(chrome, server_with, tmp_path, monkeypatch):
    monkeypatch.setenv("RMEM_MASTER_KEY", new_master_key())
    server = server_with(data=tmp_path / "data")
    token = server.first_token
    server.client(token).post(f"{W}/memories", json={"text": "The safe is behind the painting"}).raise_for_status()
    server.stop()
    monkeypatch.delenv("RMEM_MASTER_KEY")
    opened = Window(chrome, server_with(data=tmp_path / "data"), token)
    for address in ("search?q=safe", "timeline"):
        opened.show(address).get_by_text("1 memory is encrypted and left out of every answer").wait_for()
    opened.close()


def test_the_longest_name_and_the_first_years_fit_on_a_page(window, attacked):
    name = "long" * 128
    memory = {"text": "From long ago", "agent": name, "when": "0002-01-05"}
    attacked.client(attacked.first_token).post("/workspaces/attacked/memories", json=memory).raise_for_status()
    page = window.show(f"agents?workspace=attacked&agent={name}")
    page.get_by_role("heading", name=name).wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page = window.show(f"timeline?workspace=attacked&agent={name}")
    page.locator("time", has_text="0002-01-05").wait_for()


def test_health_shows_figures_findings_latency_and_the_audit_trail(window, team):
    page = window.show("health")
    page.get_by_role("button", name="Verify").click()
    page.get_by_text("No entry was changed or taken away.").wait_for()
    assert "remember" in page.get_by_role("region", name="Audit trail").inner_text()
    picture(page, "health")
    page.get_by_role("img", name="Memories by the time").wait_for()
    page.get_by_role("button", name="Examine").click()
    found = page.get_by_role("region", name="Findings")
    found.wait_for()
    assert "not sound" not in found.inner_text()
    assert str(team.settings.data) not in page.locator("main").inner_text(), "the operator's own files"
    assert "/workspaces/{workspace}/stats" in page.get_by_role("region", name="Latency").inner_text()
    assert "first start" in page.get_by_role("region", name="Tokens", exact=True).inner_text()


def test_every_page_works_on_a_phone_and_in_the_dark(chrome, attacked, admin_token):
    opened = Window(chrome, attacked, admin_token, color_scheme="dark")
    opened.page.set_viewport_size({"width": 360, "height": 740})
    for name in (
        "memory?id=hostile&workspace=attacked",
        "timeline",
        "tables",
        "health",
        "search?q=staging port&workspace=default",
    ):
        page = opened.show(name)
        page.locator("h1").first.wait_for(state="attached")
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, name
    picture(opened.page, "phone")
    opened.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_any_page(chrome, attacked, admin_token, scheme):
    opened = Window(chrome, attacked, admin_token, color_scheme=scheme)
    pages = ("search?q=staging port&workspace=default", "timeline?live=1", "graph", "tables", "health")
    found = [problem for name in (*pages, "memory?id=hostile&workspace=attacked") for problem in opened.serious(name)]
    opened.close()
    assert found == []


def test_a_page_is_shown_in_the_words_of_its_catalogue(chrome, team, admin_token):
    opened = Window(chrome, team, admin_token)
    texts = (
        'export const TEXTS = {"Search": "Suche", "{0}, best first.": "{0}, die besten zuerst.", "hits": "Treffer"};'
    )
    opened.page.route("**/texts.js", lambda route: route.fulfill(body=texts, content_type="text/javascript"))
    page = opened.show("search?q=staging port&workspace=default")
    page.get_by_text("Treffer, die besten zuerst.").wait_for()
    page.get_by_role("link", name="Suche").wait_for()
    opened.close()


SHOWN = {
    "search?q=deploy of service 7": "article",
    "timeline": ".chart rect",
    "agents": "figure",
    "coding": "#main h2",
    "health": "figure",
}


@pytest.mark.slow
def test_pages_are_painted_within_a_second_with_100_000_memories(chrome, tmp_path):
    """RMEM_MEMORIES=1000000 pytest tests/server/test_ui.py -m slow -k painted -s: figures, with a million."""
    number = int(os.environ.get("RMEM_MEMORIES", "100000"))
    with Brain(tmp_path / "large.db", durability="normal") as brain:
        brain.remember_many(
            {
                "text": f"Deploy {n} of service {n % 97} took {n % 13} minutes",
                "agent": f"a{n % 50}",
                "session": f"s{n // 100}",
                "when": 1.6e9 + n * 100,
            }
            for n in range(number)
        )
    server = Running(own_settings(str(tmp_path / "large.db"), tmp_path / "server")).start()
    try:
        page = chrome.new_page()
        page.set_default_timeout(300_000)
        page.goto(f"{server.url}/ui/#login={invite_owner(server.service)}")
        page.locator("article").first.wait_for()  # the index is read once
        slow: list[str] = []
        for name, content in SHOWN.items():
            page.goto("about:blank")
            started = time.monotonic()
            page.goto(f"{server.url}/ui/#/{name}")
            page.locator("h1").first.wait_for(state="attached")
            page.locator(content).first.wait_for(state="attached")
            shown = 1000 * (time.monotonic() - started)
            paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
            print(f"{name.partition('?')[0]}: first paint {paint:.0f} ms, content after {shown:.0f} ms")
            slow += [name] if paint >= 1000 else []
        assert slow == []
        page.close()
    finally:
        server.stop()


def test_the_whole_page_is_small_and_fetched_at_once():
    page = FILES["index.html"].content.decode()
    assert [name for name in FILES if name.endswith(".js") and f'"{name}"' not in page] == []
    assert sum(len(gzip.compress(file.content)) for file in FILES.values()) < 100_000


# Attacks


@pytest.mark.parametrize("address", ["search?q=text attacked", "timeline", "memory?id=hostile", "tables", "health"])
def test_a_script_in_any_field_is_shown_as_text(window, attacked, address):
    page = window.show(f"{address}{'&' if '?' in address else '?'}workspace=attacked")
    if address == "tables":
        page.get_by_role("button", name="Run").click()
    page.get_by_text("<script>window.attacked=1</script>").first.wait_for(state="attached")
    assert page.locator("main script, main img").count() == 0


def test_a_reader_may_look_and_is_refused_when_it_edits(chrome, attacked):
    token = attacked.token_for("default", "attacked", "READ", member="guest")
    opened = Window(chrome, attacked, token)
    page = opened.show("memory?id=hostile")
    page.get_by_role("heading", name="Memory").wait_for()
    page.locator(".fields").wait_for()
    assert page.get_by_role("button", name="Edit").count() == 0
    status = page.evaluate(
        """async () => (await fetch("../workspaces/attacked/memories/hostile", {method: "DELETE",
        headers: {"X-Rmem-Key": localStorage.getItem("rmem-key")}})).status"""
    )
    assert status == 403
    opened.close()


def test_half_of_a_session_opens_nothing(chrome, team, admin_token):
    window = Window(chrome, team, admin_token)
    (cookie,) = window.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert window.page.evaluate("document.cookie") == ""
    assert team.first_token not in window.page.evaluate("JSON.stringify([localStorage, sessionStorage])")
    sent = {"Cookie": f"{cookie['name']}={cookie['value']}"}
    key = {"X-Rmem-Key": window.page.evaluate("localStorage.getItem('rmem-key')")}
    me = f"{team.url}/me"
    assert httpx.get(me, headers=sent).status_code == 401
    assert httpx.get(me, headers=key).status_code == 401
    assert httpx.get(me, headers={**sent, **key}).status_code == 200
    assert httpx.get(me, headers={**sent, **key, "Origin": "http://127.0.0.1:1"}).status_code == 403
    assert httpx.get(me, headers={**sent, **key, "Sec-Fetch-Site": "same-site"}).status_code == 403
    window.page.get_by_role("button", name="Log out").click()
    window.page.get_by_label("Token").wait_for()
    assert httpx.get(me, headers={**sent, **key}).status_code == 401
    window.close()


def test_a_session_ends_with_its_token_and_when_idle(team, monkeypatch):
    token = team.token_for("default", "default", "READ", member="leaving")
    answer = httpx.post(f"{team.url}/ui/session", json={"token": token})
    both = {"X-Rmem-Key": answer.json()["key"], "Cookie": answer.headers["set-cookie"].partition(";")[0]}
    assert httpx.get(f"{team.url}/me", headers=both).status_code == 200
    monkeypatch.setattr(team.service.sessions, "idle_seconds", 0.0)
    assert httpx.get(f"{team.url}/me", headers=both).status_code == 401
    monkeypatch.undo()
    answer = httpx.post(f"{team.url}/ui/session", json={"token": token})
    both = {"X-Rmem-Key": answer.json()["key"], "Cookie": answer.headers["set-cookie"].partition(";")[0]}
    home = team.service.control.organization("default")
    place = team.service.control.workspace(home.id, "default")
    team.service.control.remove_member(home.id, "leaving", place.id)
    assert httpx.get(f"{team.url}/me", headers=both).status_code == 401


def test_no_other_page_may_frame_it_or_log_somebody_in(chrome, team):
    page = chrome.new_page()
    page.set_content(f"<iframe src='{team.url}/ui/'></iframe>")
    assert page.frames[1].url.startswith("chrome-error:")
    page.close()
    told = {"token": team.first_token}
    for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert httpx.post(f"{team.url}/ui/session", json=told, headers=headers).status_code == 403
    form = {"Content-Type": "text/plain"}
    assert httpx.post(f"{team.url}/ui/session", content=json.dumps(told), headers=form).status_code == 403
    for path in ("", "app.js", "style.css"):
        headers = httpx.get(f"{team.url}/ui/{path}").headers
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "unsafe-inline" not in headers["content-security-policy"]
        assert (headers["x-frame-options"], headers["x-content-type-options"]) == ("DENY", "nosniff")
        assert headers["referrer-policy"] == "no-referrer"


# `rmem ui`


def test_rmem_ui_opens_ones_own_store_by_a_link_that_works_once(chrome, tmp_path):
    command = [sys.executable, "-m", "rmem", "ui", "--no-browser", "--json", "--store", str(tmp_path / "mine.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            link = json.loads(child.stdout.readline())["url"]
            page = chrome.new_page()
            page.goto(link)
            page.get_by_role("heading", name="Nothing is remembered here yet").wait_for()
            assert "login" not in page.url
            picture(page, "empty")
            page.get_by_label("Something worth remembering").fill("Staging runs on port 5434")
            page.get_by_role("button", name="Remember").click()
            page.get_by_role("button", name="Forget…").wait_for()
            page.reload()
            page.get_by_role("button", name="Forget…").wait_for()
            page.close()
            again = chrome.new_page()
            again.goto(link)
            again.get_by_text("this link was used already or has expired").wait_for()
            again.close()
            root = link.partition("/ui/")[0]
            assert httpx.get(f"{root}/ui/", headers={"Host": "evil.example"}).status_code == 403
            assert httpx.get(f"{root}/me").status_code == 401
        finally:
            child.send_signal(signal.SIGTERM)
        out, error = child.communicate(timeout=60)
    assert child.returncode == 0, error
    assert link.partition("login=")[2] not in out + error
    with Brain(tmp_path / "mine.db") as brain:
        assert [memory.text for memory in brain.memories()] == ["Staging runs on port 5434"]


def test_a_one_time_link_expires(tmp_path, monkeypatch):
    server = Running(own_settings(str(tmp_path / "mine.db"), tmp_path / "server")).start()
    try:
        monkeypatch.setattr("rmem.server.sessions.CODE_SECONDS", 0.0)
        code = invite_owner(server.service)
        assert httpx.post(f"{server.url}/ui/session", json={"code": code}).status_code == 401
    finally:
        server.stop()
