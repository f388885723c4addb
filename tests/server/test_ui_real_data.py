"""Every page of the dashboard in a real browser, on what others wrote: the history of a public repository, a dialogue
of LoCoMo where ../shared has one, and an agent that reads that history."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dashboard import ROOT, W
from running_server import Running, eventually

from rmem import Brain
from rmem.agents import AgentMemoryAPI
from rmem.models import Memory
from rmem.server.settings import ServerSettings
from rmem.team.importers.run import import_git

BUNDLE = Path(__file__).parent / "data" / "itsdangerous.bundle"
DIALOGUES = ROOT.parent / "shared" / "data" / "recall" / "locomo.json.gz"
REPOSITORY = "github.com/pallets/itsdangerous"
SHA_512 = "change default intermediate hash from SHA-1 to SHA-512"


def read_dialogue() -> list[dict[str, Any]]:
    """The turns of the first conversation, each with its speaker, session and time; none without ../shared."""
    if not DIALOGUES.exists():
        return []
    return json.loads(gzip.decompress(DIALOGUES.read_bytes()))["stores"][0]["memories"]


def live(memory_api: AgentMemoryAPI, commits: list[Memory]) -> None:
    """Let an agent read commits, the oldest first: where it is, what it does, and whom it hears."""
    for step, commit in enumerate(commits):
        files = commit.contents["files"]
        memory_api.store_agent_state("reader", {"commit": commit.contents["commit"], "files": len(files)}, step)
        memory_api.store_agent_action("reader", {"action": "read", "target": commit.text.partition("\n")[0]}, step)
        if step % 4 == 0:
            memory_api.store_agent_interaction("reader", {"partner": commit.actor, "about": files[0]}, step)


@pytest.fixture(scope="module")
def dialogue() -> list[dict[str, Any]]:
    return read_dialogue()


@pytest.fixture(scope="module")
def team(tmp_path_factory, dialogue) -> Iterator[Running]:
    """A server whose workspace holds all three."""
    folder = tmp_path_factory.mktemp("real")
    subprocess.run(["git", "clone", "-q", BUNDLE, folder / "clone"], check=True)
    origin = ["git", "remote", "set-url", "origin", f"https://{REPOSITORY}.git"]
    subprocess.run(origin, cwd=folder / "clone", check=True)
    server = Running(ServerSettings(data=folder / "data")).start()
    try:
        server.client(server.first_token).get(f"{W}/stats").raise_for_status()
        (file,) = (path for path in (folder / "data").rglob("*.db") if path.parent.parent == folder / "data")
        with Brain(file) as brain:
            import_git(brain, folder / "clone")
            commits = brain.memories(order="oldest", limit=40)
            brain.remember_many({**turn, "type": "turn", "agent": "locomo"} for turn in dialogue)
        with AgentMemoryAPI({"stm_config": {"memory_limit": 30}}, brain=Brain(file)) as memory_api:
            live(memory_api, commits)
            memory_api.force_memory_maintenance("reader")
        yield server
    finally:
        server.stop()


@pytest.fixture
def needs_dialogue(dialogue) -> list[dict[str, Any]]:
    if not dialogue:
        pytest.skip("../shared has no LoCoMo")
    return dialogue


def total(page) -> int:
    return int(page.locator("section[aria-label=Memories] h2").inner_text().split()[0].replace(",", ""))


def test_the_timeline_shows_commits_of_seven_years_and_the_slider_hides_later_ones(window):
    page = window.show("timeline?agent=git")
    page.get_by_role("group", name=re.compile(r"96 memories from 2011-06-24 .* to 2018-09-28")).wait_for()
    page.get_by_text("add style checks").first.wait_for()
    assert page.locator("svg g[role=button]").count() > 15, "commits of many months"
    page.get_by_label("As of").fill("0")
    page.get_by_text("as of 2011-06-24").wait_for()
    eventually(lambda: total(page) == 1)
    shown = page.get_by_label("Memories", exact=True).inner_text()
    assert "add style checks" not in shown
    page.get_by_label("As of").fill("50")
    eventually(lambda: 1 < total(page) < 96)
    assert "Fixed a bug that caused the library not to accept unicode strings" in page.locator("main").inner_text()


def test_the_timeline_shows_the_sessions_of_a_dialogue(window, needs_dialogue):
    sessions = {turn["session"] for turn in needs_dialogue}
    page = window.show("timeline?agent=locomo")
    page.locator(".legend", has_text=f"{len(sessions)} sessions").wait_for()
    assert page.locator(".band").count() == len(sessions)
    page.get_by_role("button", name="Session s1 of locomo: 2023-05-08").focus()
    page.keyboard.press("Enter")
    eventually(lambda: total(page) == sum(turn["session"] == "s1" for turn in needs_dialogue))
    shown = page.get_by_label("Memories", exact=True).inner_text()
    assert "I went to a LGBTQ support group yesterday and it was so powerful." in shown


def test_a_question_in_other_words_finds_the_commit_and_says_why(window):
    page = window.show("search")
    page.get_by_role("searchbox").fill("why did we move away from the old hash algorithm")
    hits = page.get_by_label("Hits").locator("article")
    hits.filter(has_text=SHA_512).wait_for()
    page.locator("summary", has_text="Narrow down").click()
    page.get_by_label("Agent").select_option("git")
    eventually(lambda: "agent=git" in page.evaluate("location.hash"))
    eventually(lambda: any(SHA_512 in text for text in hits.all_inner_texts()[:2]))
    found = hits.filter(has_text=SHA_512).first
    found.get_by_text("Why: score").click()
    assert found.locator(".parts dt").count() >= 2
    assert found.locator(".track .more").first.bounding_box()["width"] > 10
    assert "hash" in found.locator("mark").all_inner_texts()


def test_a_question_about_the_dialogue_finds_its_turn(window, needs_dialogue):
    page = window.show("search?q=What did Caroline research?")
    page.get_by_label("Hits").locator("article", has_text="Researching adoption agencies").first.wait_for()


def test_a_commit_is_shown_with_its_fields_its_source_and_its_facts(window, team):
    found = team.client(team.first_token).post(f"{W}/recall", json={"query": SHA_512, "k": 1, "touch": False})
    page = window.show(f"memory?id={found.json()['hits'][0]['memory']['memory_id']}")
    page.get_by_role("region", name="Facts").get_by_role("link", name="davidism@gmail.com").wait_for()
    fields = page.locator(".fields").inner_text()
    assert "2017-03-16" in fields
    assert f"repo:{REPOSITORY}" in fields
    assert "Skipping SHA-256 for SHA-512 since it's more efficient on 64-bit." in page.locator("article").inner_text()
    assert "9f73bc2e89" in page.get_by_role("region", name="Sources").inner_text()


def test_a_turn_stands_between_those_that_were_said_before_and_after_it(window, team, needs_dialogue):
    """All turns of a session have one time there."""
    said = [turn["text"] for turn in needs_dialogue if turn["session"] == "s1"]
    turns = team.client(team.first_token).get(f"{W}/memories", params={"session": "s1", "order": "oldest"}).json()
    assert [turn["text"] for turn in turns["memories"]] == said
    page = window.show(f"memory?id={turns['memories'][9]['memory_id']}")
    page.get_by_role("heading", name="In the same session").wait_for()
    fields = page.locator(".fields").inner_text()
    assert re.search(r"actor\s+Melanie\b", fields)
    assert "2023-05-08 13:56" in fields
    around = page.get_by_label("Around it").locator(".text, .here").all_inner_texts()
    assert [text[:60] for text in around] == [text[:60] for text in said[5:14]]


def test_the_graph_shows_a_file_and_an_author_with_what_the_commits_say(window):
    page = window.show("graph")
    page.locator("ul.cloud").get_by_role("link", name="markus@unterwaditzer.net").click()
    page.locator(".node text", has_text="ce5e2cd0afeb").wait_for()
    page.locator(".facts summary", has_text="ce5e2cd0afeb – author – markus@unterwaditzer.net").click()
    page.locator("blockquote", has_text="Forbid unsafe separators").wait_for()
    page.get_by_role("button", name="connected with ce5e2cd0afeb").click()
    page.locator(".facts summary", has_text="ce5e2cd0afeb – changes – itsdangerous.py").wait_for()
    page = window.show("graph?entity=itsdangerous.py&at=2012-01-01")
    page.locator(".facts li").first.wait_for()
    told = page.locator(".facts summary").all_inner_texts()
    assert len(told) > 3
    assert [fact for fact in told if "(since 2011" not in fact] == []
    page = window.show("graph?entity=itsdangerous.py")
    facts, further = page.locator(".facts li"), page.get_by_role("button", name="More about itsdangerous.py")
    eventually(lambda: facts.count() == 30)
    further.click()
    eventually(lambda: facts.count() > 30)
    page.get_by_role("button", name="connected with").first.click()
    eventually(lambda: facts.count() > 60)
    while further.count():
        further.click()
        page.wait_for_load_state("networkidle")
    named = page.locator(".facts summary").filter(has_text="– changes – itsdangerous.py ").all_inner_texts()
    assert len(named) == len(set(named)) > 40


def test_coding_agents_are_told_of_the_repository(window):
    page = window.show(f"coding?repository={REPOSITORY}")
    page.locator(".told li").first.wait_for()
    told = "\n".join(page.locator(".told").all_inner_texts())
    assert "Tried and reverted: JWT Serializer sets default media type header" in told
    page.get_by_label("Prompt").fill("Tokens whose expiry `exp` is a string are refused as a bad signature. Fix that.")
    page.get_by_role("button", name="What would be shown?").click()
    page.get_by_role("heading", name="Considered").wait_for()
    assert "Convert `exp` header to int if it is valid IntDate" in page.locator("form.card").inner_text()
    page = window.show(f"coding?repository={REPOSITORY}&view=fixes")
    page.locator("pre", has_text="Fixed an issue with wrong timezones being used for EPOCH calculation.").wait_for()


def test_the_agents_page_shows_what_the_agent_holds_in_each_tier(window):
    page = window.show("agents?agent=reader")
    one = page.get_by_role("region", name="One agent")
    one.get_by_text("intermediate").first.wait_for()
    shown = one.inner_text()
    assert re.search(r"short-term\s+30\b", shown)
    assert re.search(r"intermediate\s+60\b", shown)
    assert re.search(r"memories\s+90\b", shown)
    assert {"state", "action", "interaction"} <= set(shown.split())
    page.get_by_role("region", name="What falls next", exact=True).wait_for()


def test_tables_count_the_facts_that_the_graph_has(window, team):
    known = team.client(team.first_token).get(f"{W}/graph").json()["facts"]
    page = window.show("tables")
    page.get_by_label("SQL").fill("SELECT count(*) FROM facts")
    page.get_by_role("button", name="Run").click()
    assert page.get_by_role("region", name="Answer").locator("td").first.inner_text() == str(known)
    page.get_by_label("SQL").fill(
        "SELECT object, count(*) AS commits FROM facts WHERE relation = 'author' GROUP BY object ORDER BY commits DESC"
    )
    page.get_by_role("button", name="Run").click()
    page.get_by_role("region", name="Answer").get_by_text("armin.ronacher@active-4.com").first.wait_for()


def test_health_finds_nothing_wrong(window, team):
    stats = team.client(team.first_token).get(f"{W}/stats").json()
    page = window.show("health")
    page.get_by_role("button", name="Examine").click()
    found = page.get_by_role("region", name="Findings")
    found.wait_for()
    assert "not sound" not in found.inner_text()
    assert "sound" in found.inner_text()
    figures = page.locator(".figures").first.inner_text()
    assert f"{stats['memories']:,}" in figures
    assert "2011-06-24" in figures


def test_the_inbox_compares_what_agents_wrote_and_no_commits_with_each_other(admin, server, tmp_path):
    """An agent notes the subject of each commit, and one thing that turns one of them around."""
    subprocess.run(["git", "clone", "-q", BUNDLE, tmp_path / "clone"], check=True)
    subprocess.run(
        ["git", "remote", "set-url", "origin", f"https://{REPOSITORY}.git"], cwd=tmp_path / "clone", check=True
    )
    admin.get(f"{W}/stats").raise_for_status()
    (file,) = (path for path in server.settings.data.rglob("*.db") if path.parent.parent == server.settings.data)
    with Brain(file) as brain:
        import_git(brain, tmp_path / "clone")
    asked = {"repository": REPOSITORY}
    first = admin.get(f"{W}/coding/review", params=asked).json()
    assert (first["contradictions"], first["duplicates"], first["compared"], first["next_cursor"]) == ([], [], 0, None)

    log = subprocess.run(
        ["git", "log", "--format=%s"], cwd=tmp_path / "clone", check=True, capture_output=True, text=True
    )
    subjects = list(dict.fromkeys(log.stdout.splitlines()))
    shared = {"type": "decision", "agent": "reader", "place": f"repo:{REPOSITORY}"}
    shared |= {"tags": {"state": "current", "scope": "repository"}}
    turned = "do not change default intermediate hash from SHA-1 to SHA-512"
    notes = [{"text": text, "when": 1e9 + at // 3, **shared} for at, text in enumerate([turned, *subjects])]
    ids = admin.post(f"{W}/memories", json=notes).json()["ids"]
    admin.post(f"{W}/maintenance", json={"agent": "reader"}).raise_for_status()
    assert admin.get(f"{W}/memories/{ids[0]}").json()["tier"] != "stm", "it has a smaller vector now"
    pages, cursor = [], None
    while not pages or cursor is not None:
        pages.append(admin.get(f"{W}/coding/review", params={**asked, "cursor": cursor} if cursor else asked).json())
        cursor = pages[-1]["next_cursor"]
    assert max(page["compared"] for page in pages) == 100
    assert sum(page["compared"] for page in pages) == len(notes)
    against = {(pair["older"]["text"].partition("\n")[0], pair["newer"]["text"].partition("\n")[0])
               for page in pages for pair in page["contradictions"]}  # fmt: skip
    assert {older for older, _ in against} | {newer for _, newer in against} == {turned, SHA_512}, against


def test_the_inbox_of_notes_on_a_real_history_is_worked_through_by_keyboard(window, team):
    """Somebody noted the subject of each commit, some of which repeat, and turned one of them around."""
    admin = team.client(team.first_token)
    admin.post("/workspaces", json={"name": "notes"}).raise_for_status()
    clone = next(team.settings.data.parent.glob("clone"))
    log = subprocess.run(["git", "log", "--format=%s"], cwd=clone, check=True, capture_output=True, text=True)
    shared = {"type": "decision", "agent": "reader", "actor": "admin", "place": f"repo:{REPOSITORY}"}
    shared |= {"tags": {"state": "current", "scope": "repository"}}
    turned = "do not change default intermediate hash from SHA-1 to SHA-512"
    subjects = [*log.stdout.splitlines(), turned]
    notes = [{"text": text, "when": 1.6e9 + 60 * at, **shared} for at, text in enumerate(subjects)]
    ids = admin.post("/workspaces/notes/memories", json=notes).json()["ids"]
    page = window.show(f"coding?view=inbox&workspace=notes&repository={REPOSITORY}")
    items = page.locator(".item")
    items.first.wait_for()
    assert page.locator(".item h3").first.inner_text().startswith("Contradiction")
    number = items.count()
    assert number > 2
    page.keyboard.press("n")
    eventually(lambda: items.count() == number - 1)
    old = admin.get("/workspaces/notes/memories", params={"tag": "state=superseded"}).json()["memories"]
    assert len(old) == 1
    assert old[0]["text"].partition("\n")[0] in (SHA_512, turned)
    for key, chosen in (("j", 1), ("j", 2), ("k", 1)):
        page.keyboard.press(key)
        assert items.nth(chosen).get_attribute("aria-current") == "true"
        assert items.nth(chosen).evaluate("part => part === document.activeElement")
    kept = items.nth(0).inner_text()
    page.keyboard.press("x")
    eventually(lambda: items.count() == number - 2)
    assert items.nth(0).inner_text() == kept
    further = page.locator("button", has_text="Compare earlier ones")
    while further.is_visible():
        further.focus()
        page.keyboard.press("Enter")
        eventually(lambda: not further.evaluate("button => button.disabled"))
    left = items.count()
    for at in range(left):
        page.keyboard.press("x")
        eventually(lambda at=at: items.count() == left - at - 1)
    page.get_by_text("no rule waits").wait_for()
    superseded = admin.get("/workspaces/notes/memories", params={"tag": "state=superseded"}).json()["memories"]
    assert [one["memory_id"] for one in superseded] == [old[0]["memory_id"]]
    assert admin.get("/workspaces/notes/stats").json()["memories"] == len(ids)


def test_a_page_says_that_it_loads_until_the_store_is_read(window):
    held = []
    window.page.goto("about:blank")
    window.page.route("**/stats", lambda route: held.append(route))
    window.page.goto(f"{window.url}#/health")
    loading = window.page.locator("main").get_by_text("Loading…")
    eventually(lambda: loading.is_visible() and held)
    for route in held:
        route.continue_()
    window.page.get_by_role("heading", name="Health").wait_for()
    window.page.unroute("**/stats")
    assert not loading.is_visible()
