"""The pages of the dashboard about agents in a real browser: what coding agents are told and learn, and tiers."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator

import pytest
from dashboard import SCRIPT, W, Window, picture
from running_server import Running, eventually

from rmem import Brain
from rmem.feedback import Feedback
from rmem.server.settings import ServerSettings
from rmem.team.briefing import Briefing
from rmem.team.events import Event, EventKind
from rmem.team.identity import repository
from rmem.team.memory import TeamMemory
from rmem.team.notes import Note
from rmem.team.review import pending_note
from rmem.team.sessions import NO_SESSIONS

REPOSITORY = "github.com/acme/etl"
NOTES = [
    ("preference", "Run the linter before every commit."),
    ("preference", "Never write to the production database by hand."),
    ("decision", "We deploy the public site with Jenkins"),
    ("decision", "We deploy the public site with Ansible"),
    ("codebase", "The carrier import lives in etl/load.py and retries three times"),
    ("decision", "The carrier import lives in etl/load.py and retries three times"),
    ("task", "Move the importer to Parquet: half of the tests are green."),
]


@pytest.fixture(scope="module")
def team(tmp_path_factory) -> Iterator[Running]:
    """A server whose workspace has what a team's agents learned, and one in which every text is a script."""
    folder = tmp_path_factory.mktemp("team")
    server = Running(ServerSettings(data=folder / "data")).start()
    admin = server.client(server.first_token)
    admin.get(f"{W}/stats").raise_for_status()
    (file,) = (path for path in (folder / "data").rglob("*.db") if path.parent.parent == folder / "data")
    clone = folder / "clone"
    clone.mkdir()
    for words in ("init -q", f"remote add origin git@{REPOSITORY.replace('/', ':', 1)}.git"):
        subprocess.run(["git", *words.split()], cwd=clone, check=True)
    here, now = repository(clone), time.time()
    with Brain(file) as brain:
        team = TeamMemory(brain, author="admin")
        for at, (kind, text) in enumerate(NOTES):
            note = Note(text, kind, author="admin", agent="codex", session=f"s-{at // 3}", when=now - 90_000 + 60 * at)
            team.remember(note.at(here))
        error = {"error": "KeyError: 'carrier_code'", "fix": "use row.get in etl/load.py", "command": "pytest -q"}
        fix = Note(
            f"{error['error']}\nFix: {error['fix']}", "error_fix", author="admin", agent="codex", session="s-2", **error
        )
        team.remember(fix.at(here))
        team.remember(pending_note(Note("Prefer small commits", "preference", author="admin", session="s-2").at(here)))
        start = Event("e1", "codex", EventKind.SESSION_START, "s-3", str(clone), now, source="startup")
        assert Briefing(brain, NO_SESSIONS).text_for(start, team, here)
    admin.post("/workspaces", json={"name": "hostile"}).raise_for_status()
    hostile = [
        {
            "id": f"hostile-{kind}", "text": f"{SCRIPT} {kind}", "type": kind, "actor": "admin", "agent": SCRIPT,
            "session": SCRIPT, "place": place, "tags": {"state": state, "scope": scope},
            "metadata": {"error": SCRIPT, "fix": SCRIPT, "command": SCRIPT, "files": [SCRIPT]},
        }
        for kind, place, state, scope in (
            ("decision", f"repo:{SCRIPT}", "current", "repository"),
            ("error_fix", f"repo:{SCRIPT}", "current", "repository"),
            ("preference", "personal:admin", "waiting", "personal"),
        )
    ]  # fmt: skip
    admin.post("/workspaces/hostile/memories", json=hostile).raise_for_status()
    yield server
    server.stop()


def test_the_page_shows_what_a_session_and_a_prompt_would_be_told_and_what_it_costs(window, team):
    page = window.show("coding")
    page.get_by_role("heading", name="Rules of the team:").wait_for()
    assert "Run the linter before every commit." in page.locator(".told").first.inner_text()
    assert "Ansible" in page.locator(".told").nth(2).inner_text()
    page.get_by_text("Nothing would be shown.").wait_for(state="detached")
    page.get_by_label("Prompt").fill("the carrier import fails, where does it live and how often does it retry?")
    page.get_by_role("button", name="What would be shown?").click()
    page.get_by_role("heading", name="Considered").wait_for()
    assert page.locator(".pill.good", has_text="shown").count() >= 1
    ledger = page.get_by_role("region", name="Token ledger")
    assert "s-3" in ledger.inner_text()
    picture(page, "coding")
    told = team.client(team.first_token).get(f"{W}/audit").json()["entries"]
    assert {entry["detail"].get("session") for entry in told if entry["action"] == "inject"} == {"s-3"}, (
        "noted by looking"
    )


def test_the_review_inbox_is_worked_through_with_the_keyboard(window, team):
    client = team.client(team.first_token)
    page = window.show("coding?view=inbox")
    first = page.locator(".item").first
    first.wait_for()
    picture(page, "inbox")
    kinds = page.locator(".item h3").all_inner_texts()
    assert [kind.partition(" ")[0] for kind in kinds] == ["Contradiction", "A", "Duplicate"]
    page.keyboard.press("n")  # the newer of the contradiction holds
    eventually(lambda: page.locator(".item").count() == 2)
    old = client.get(f"{W}/memories", params={"tag": "state=superseded"}).json()["memories"]
    assert [one["text"] for one in old] == ["We deploy the public site with Jenkins"]
    page.keyboard.press("j")
    page.keyboard.press("x")  # leave both of the duplicate
    eventually(lambda: page.locator(".item").count() == 1)
    page.keyboard.press("k")
    page.keyboard.press("a")
    page.get_by_text("no rule waits").wait_for()
    rules = client.get(f"{W}/memories", params={"type": "preference", "place": f"repo:{REPOSITORY}"}).json()
    assert "Prefer small commits" in [one["text"] for one in rules["memories"]]
    page = window.show("coding?view=inbox")
    page.get_by_text("no rule waits").wait_for()


def test_sessions_are_replayed_and_errors_stand_beside_their_fixes(window):
    page = window.show("coding?view=sessions")
    page.get_by_role("link", name="s-0").click()
    page.get_by_role("heading", name="Session s-0").wait_for()
    assert page.locator(".replay li").count() == 3
    page.get_by_label("Up to").fill("1")
    assert page.locator(".replay li").all_inner_texts()[0].endswith("Run the linter before every commit.")
    assert page.locator(".replay li").count() == 1
    page = window.show("coding?view=sessions&session=s-3")
    page.locator(".replay .pill", has_text="told").first.wait_for()
    page = window.show("coding?view=fixes")
    page.get_by_text("use row.get in etl/load.py").first.wait_for()
    assert page.locator("pre").all_inner_texts() == ["KeyError: 'carrier_code'", "use row.get in etl/load.py"]


HOSTILE = "workspace=hostile&repository=" + SCRIPT.replace("&", "%26").replace("#", "%23")


@pytest.mark.parametrize("view", ["told", "inbox", "sessions", "fixes"])
def test_a_script_in_what_agents_learned_is_shown_as_text(window, team, view):
    page = window.show(f"coding?view={view}&{HOSTILE}")
    page.get_by_text("<script>window.attacked=1</script>").first.wait_for(state="attached")
    if view == "sessions":
        page.locator("main table a").first.click()
        page.locator(".replay li").first.wait_for()
    assert page.locator("main script, main img").count() == 0


def test_a_reader_sees_the_inbox_and_may_decide_nothing(chrome, team):
    token = team.token_for("default", "default", "READ", member="guest")
    opened = Window(chrome, team, token)
    page = opened.show("coding?view=inbox")
    page.get_by_text("to look at").or_(page.get_by_text("no rule waits")).first.wait_for()
    assert page.locator(".item button").count() == 0
    page.keyboard.press("n")
    assert "Prefer small commits" not in page.locator("main").inner_text(), "a personal memory of somebody else"
    reader = team.client(token)
    decided = {"action": "dismiss", "memory_id": "x", "why": "y"}
    assert reader.post(f"{W}/coding/review", json=decided).status_code == 403
    assert reader.get(f"{W}/coding/ledger").json()["sessions"] == [], "told in somebody else's name"
    opened.close()


def test_versions_are_shown_with_their_differences_and_restored(window, team):
    client = team.client(team.first_token)
    shared = {"type": "decision", "place": f"repo:{REPOSITORY}", "tags": {"state": "current", "scope": "repository"}}
    shared["metadata"] = {
        "repository": REPOSITORY,
        "scope": "repository",
        "sources": [{"author": "ann", "agent": "codex"}],
    }
    texts = {"v1": "Alice manages the billing team in Bern", "v2": "Alice manages the billing team in Oslo"}
    client.post(
        f"{W}/memories", json=[{"id": id, "text": text, **shared} for id, text in texts.items()]
    ).raise_for_status()
    decided = {"action": "supersede", "memory_id": "v1", "other": "v2"}
    client.post(f"{W}/coding/review", json=decided).raise_for_status()
    page = window.show("memory?id=v2")
    versions = page.get_by_role("region", name="Versions")
    versions.locator("ins").first.wait_for()
    assert (versions.locator("del").inner_text(), versions.locator("ins").inner_text()) == ("Bern", "Oslo")
    assert "ann" in page.get_by_role("region", name="Sources").inner_text()
    page.get_by_role("region", name="Duplicates and contradictions").get_by_text(
        "one says Bern, the other Oslo"
    ).wait_for()
    picture(page, "versions")
    page.get_by_role("button", name="Forget…").click()
    assert "that no other memory says" in page.get_by_role("dialog").inner_text()
    page.get_by_role("button", name="Cancel").click()
    versions.get_by_role("button", name="Restore").click()
    page.get_by_text("It holds again").wait_for()
    assert client.get(f"{W}/memories/v2").json()["tags"]["state"] == "superseded"
    back = client.get(f"{W}/memories", params={"tag": "state=current", "type": "decision"}).json()["memories"]
    assert [one["contents"].get("superseded_by") for one in back if "Bern" in one["text"]] == [None]


def test_an_edit_is_a_version_that_can_be_restored_or_erased(window, team):
    client = team.client(team.first_token)
    client.post(f"{W}/memories", json={"id": "edited", "text": "Backups go to Bern"}).raise_for_status()
    client.patch(f"{W}/memories/edited", json={"text": "Backups go to Oslo"}).raise_for_status()
    page = window.show("memory?id=edited")
    versions = page.get_by_role("region", name="Versions")
    versions.locator("ins").first.wait_for()
    assert (versions.locator("del").inner_text(), versions.locator("ins").inner_text()) == ("Bern", "Oslo")
    versions.get_by_role("button", name="Restore").click()
    page.locator("article").get_by_text("Backups go to Bern").wait_for()
    assert client.get(f"{W}/memories/edited").json()["text"] == "Backups go to Bern"
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Text", exact=True).fill("Backups go to Rome")
    page.get_by_label("Keep what it said before").uncheck()
    page.get_by_role("button", name="Save").click()
    page.locator("article").get_by_text("Backups go to Rome").wait_for()
    assert client.get(f"{W}/connections/edited").json()["earlier"] == []
    assert "Oslo" not in client.get(f"{W}/memories/edited").text


def test_who_was_told_of_a_memory_is_shown_to_administrators(window, team):
    client = team.client(team.first_token)
    rules = client.get(f"{W}/memories", params={"type": "preference", "agent": "codex"}).json()["memories"]
    page = window.show(f"memory?id={rules[0]['memory_id']}")
    assert "s-3" in page.get_by_role("region", name="Shown").inner_text()


# Agents and tiers


@pytest.fixture(scope="module")
def lived(team) -> Running:
    """An agent with a life of states, old memories, and feedback of two weeks, the second of which went badly."""
    admin = team.client(team.first_token)
    day = 86_400.0
    states = [{"position": [n, n], "health": n % 7} for n in range(60)]
    told = {"memory_type": "state", "items": states, "first_step": 0}
    admin.post(f"{W}/agents/rover/several", json=told).raise_for_status()
    old = [{"text": f"Old log line {n}", "agent": "rover", "when": time.time() - (40 + n) * day} for n in range(5)]
    admin.post(f"{W}/memories", json=old).raise_for_status()
    (place,) = (one for one in admin.get("/workspaces").json()["workspaces"] if one["name"] == "default")
    (file,) = team.settings.data.rglob(f"{place['id']}.db")
    with Brain(file) as brain:
        for ago, useful in ((14 * day, True), (0.0, False)):
            judged = (f"{useful}", "q", "rover", "memory", 1, 1.0, useful, time.time() - ago)
            brain.store.add_feedback([Feedback(f"{useful} {n}", *judged) for n in range(12)])
    return team


def test_an_agents_tiers_what_moves_what_fades_and_how_recall_does(window, lived):
    client = lived.client(lived.first_token)
    page = window.show("agents?agent=rover")
    figures = page.get_by_role("region", name="One agent")
    figures.get_by_text("short-term").first.wait_for()
    assert "65" in figures.inner_text()
    assert "5 would move from short-term" in figures.inner_text(), "those that are older than a day"
    page.get_by_role("button", name="Move them").click()
    page.get_by_text("5 moved to intermediate, 5 on to long-term memory.").wait_for()
    eventually(lambda: client.get(f"{W}/agents/rover/statistics").json()["tier_distribution"]["ltm"] == 5)
    page.get_by_role("region", name="Retrieval in use").first.get_by_role("alert").first.wait_for()
    fades = page.get_by_role("region", name="What falls next", exact=True)
    assert "Old log line 4" in fades.inner_text().splitlines()[2]
    picture(page, "agents")
    page.get_by_label("Retention below").fill("0.3")
    page.get_by_role("button", name="Dry run").click()
    page.get_by_text("5 memories would be pruned; nothing was removed.").wait_for()
    assert client.get(f"{W}/stats").json()["by_agent"]["rover"] == 65
    page.get_by_role("button", name="Apply…").click()
    page.get_by_role("dialog").get_by_role("button", name="Prune").click()
    page.get_by_text("5 memories pruned.").wait_for()
    assert client.get(f"{W}/stats").json()["by_agent"]["rover"] == 60


def test_a_reader_sees_tiers_and_may_not_move_or_prune(chrome, window, lived):
    opened = Window(chrome, lived, lived.token_for("default", "default", "READ", member="guest"))
    page = opened.show("agents?agent=rover")
    page.get_by_role("img", name="Forgetting curve").wait_for()
    page.get_by_role("region", name="One agent").get_by_text("short-term").first.wait_for()
    assert page.get_by_role("button", name="Dry run").count() == 0
    assert page.get_by_role("button", name="Move them").count() == 0
    opened.close()
    page = window.show("agents?workspace=hostile")
    page.get_by_role("region", name="What falls next", exact=True).wait_for()
    assert SCRIPT in page.locator("main h2").all_inner_texts()
    assert page.locator("main script, main img").count() == 0


PAGES = ("agents?agent=rover&workspace=default", *(f"coding?view={view}" for view in ("told", "inbox", "fixes")))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_and_a_phone_is_wide_enough(chrome, lived, scheme):
    opened = Window(chrome, lived, lived.first_token, color_scheme=scheme)
    found = [problem for name in (*PAGES, "coding?view=sessions&session=s-0") for problem in opened.serious(name)]
    opened.page.set_viewport_size({"width": 360, "height": 740})
    for name in (*PAGES, f"coding?view=inbox&{HOSTILE}") if scheme == "dark" else ():
        page = opened.show(name)
        page.locator("h1").first.wait_for()
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, name
    opened.close()
    assert found == []


def test_a_page_that_could_not_be_loaded_can_be_tried_again(window):
    page = window.show("search")
    page.route("**/workspaces/**", lambda route: route.abort())
    page.get_by_role("link", name="Health").click()
    page.get_by_text("The server does not answer. Is it still running?").wait_for()
    page.unroute("**/workspaces/**")
    page.get_by_role("button", name="Try again").click()
    page.get_by_role("heading", name="Health").wait_for()


def test_a_memory_is_shown_in_the_direction_of_its_script_and_its_tier_by_name(window, team):
    text = "שלום עולם, Redis."
    sent = {"id": "hebrew", "text": text}
    team.client(team.first_token).post(f"{W}/memories", json=sent).raise_for_status()
    page = window.show("memory?id=hebrew")
    shown = page.locator(".text.whole")
    shown.wait_for()
    assert shown.evaluate("part => getComputedStyle(part).unicodeBidi") == "plaintext"
    assert "short-term" in page.locator(".fields").inner_text()


def test_the_agents_page_of_an_empty_store_teaches_how_memories_come(window, team):
    team.client(team.first_token).post("/workspaces", json={"name": "empty"}).raise_for_status()
    page = window.show("agents?workspace=empty")
    page.get_by_role("heading", name="Nothing is remembered here yet").wait_for()
    assert page.locator("main meter, main svg, main .bar").count() == 0
    page.get_by_label("Something worth remembering").fill("Staging runs on port 5434")
    page.get_by_role("button", name="Remember").click()
    page.get_by_text("Remembered.").wait_for()
    page = window.show("agents?workspace=empty")
    page.get_by_role("region", name="What falls next", exact=True).wait_for()


def test_a_dry_run_of_a_policy_shows_how_far_it_is(window, team):
    client = team.client(team.first_token)
    client.post("/workspaces", json={"name": "large"}).raise_for_status()
    for start in range(0, 5000, 1000):
        several = [{"text": f"Line {start + at} of a log", "when": 1.6e9 + start + at} for at in range(1000)]
        client.post("/workspaces/large/memories", json=several).raise_for_status()
    page = window.show("agents?workspace=large")
    page.get_by_role("button", name="Dry run").wait_for()
    page.evaluate(
        """() => {
            window.seen = [];
            const note = () => document.querySelectorAll("progress").forEach(one => seen.push([one.value, one.max]));
            new MutationObserver(note).observe(document.querySelector("main"), {childList: true, subtree: true});
        }"""
    )
    page.get_by_role("button", name="Dry run").click()
    page.get_by_text("5,000 memories would be pruned; nothing was removed.").wait_for()
    seen = [tuple(one) for one in page.evaluate("window.seen")]
    assert seen[0][1] == 10_000, "read and weighed"
    assert sorted(set(seen)) == list(dict.fromkeys(seen))
    assert client.get("/workspaces/large/stats").json()["memories"] == 5000


def test_members_and_tokens_are_shown_to_administrators_page_by_page(chrome, team):
    admin = team.client(team.first_token)
    for name, role in (("zoe", "READ"), (SCRIPT[:60], "WRITE")):
        admin.post("/members", json={"member": name, "role": role}).raise_for_status()
    admin.post(f"{W}/members", json={"member": "lea", "role": "ADMIN"}).raise_for_status()
    for number in range(201):
        made = {"member": "zoe", "role": "READ", "label": f"laptop {number}"}
        admin.post("/tokens", json=made).raise_for_status()
    last = admin.get("/tokens", params={"limit": 1000}).json()["tokens"][-1]["id"]
    admin.delete(f"/tokens/{last}").raise_for_status()
    opened = Window(chrome, team, team.first_token)
    page = opened.show("health")
    part = page.get_by_role("region", name="Members and tokens")
    rows = part.get_by_role("region", name="Members", exact=True).get_by_role("row")
    rows.first.wait_for()
    shown = rows.all_inner_texts()
    assert any(row.split() == ["zoe", "READ"] for row in shown)
    assert any(SCRIPT[:60] in row and "WRITE" in row for row in shown)
    local = part.get_by_role("region", name="Members of this workspace")
    assert any(row.split() == ["lea", "ADMIN"] for row in local.get_by_role("row").all_inner_texts())
    tokens = part.get_by_role("region", name="Tokens").get_by_role("row")
    assert tokens.count() == 201, "a page and its head"
    part.get_by_role("button", name="More").focus()
    page.keyboard.press("Enter")
    eventually(lambda: tokens.count() > 201)
    assert tokens.count() == 1 + len(admin.get("/tokens", params={"limit": 1000}).json()["tokens"])
    assert not any(token in page.content() for token in (team.first_token, "rmem_"))
    opened.close()
    lea = Window(chrome, team, team.token_for("default", "default", "ADMIN", member="lea"))
    part = lea.show("health").get_by_role("region", name="Members and tokens")
    part.get_by_role("region", name="Members of this workspace").wait_for()
    assert part.get_by_role("region", name="Tokens").count() == 0, "those of the organisation"
    lea.close()
    zoe = Window(chrome, team, team.token_for("default", "default", "READ", member="zoe"))
    page = zoe.show("health")
    page.get_by_text("Who did what is shown to administrators.").wait_for()
    assert page.get_by_role("heading", name="Members and tokens").count() == 0
    zoe.close()


def test_an_examination_shows_its_findings(window):
    page = window.show("health")
    page.get_by_role("button", name="Examine").click()
    page.get_by_role("region", name="Findings").wait_for()
    assert "all readable" in page.get_by_role("region", name="Findings").inner_text()
