"""`rmem fact` and `rmem graph`, as a shell calls them."""

import json

import pytest


@pytest.fixture
def run(rmem):
    def call(*arguments, code=0):
        done = rmem(*arguments)
        assert done.code == code, done.err
        return done.out if code == 0 else done.err

    return call


def test_facts_are_stated_asked_ended_and_taken_back(run):
    told = run("fact", "add", "staging", "runs on", "port 5433", "--since", "2026-05-01")
    assert told.startswith("Known now: staging – runs on – port 5433 (since 2026-05-01, stated)")
    run("fact", "add", "staging", "runs on", "port 5434", "--since", "2026-07-01")
    assert [one["object"] for one in json.loads(run("graph", "about", "staging", "--json"))] == ["port 5434"]
    assert "port 5433" in run("graph", "about", "staging", "--at", "2026-06-01")
    assert "port 5433" in run("graph", "about", "staging", "--history")
    newest = run("graph", "about", "staging", "--quiet").strip()
    assert "Ended: staging" in run("fact", "end", newest)
    assert "Nothing is known for sure about 'staging'; --likely shows more" in run("graph", "about", "staging")
    assert "Taken back" in run("fact", "undo", newest)


def test_questions_about_the_graph(run):
    run("remember", "Ann Lee owns Billing. Billing depends on Redis.")
    assert "Ann Lee ← owner ← Billing → depends on → Redis" in run("graph", "path", "Ann Lee", "Redis")
    assert "Ann Lee" in run("graph", "query", "?who owns ?what, ?what depends on redis")
    assert "did you mean 'owner'" in run("graph", "query", "?who ownerz ?what", code=2)
    assert "Billing" in run("graph", "entities")
    assert "depends on" in run("graph", "relations")
    assert "began" in run("graph", "timeline", "Billing")
    assert "No contradictions." in run("graph", "contradictions")
    assert "Billing" in run("graph", "important")
    fact = run("graph", "about", "Billing", "--relation", "depends on", "--quiet").strip()
    assert "“Billing depends on Redis.”" in run("graph", "explain", fact)


def test_files_and_pictures(run, tmp_path):
    run("fact", "add", "billing", "depends on", "redis")
    for name in ("a.jsonl", "a.graphml", "a.nt", "a.jsonld", "a.dot", "a.mmd", "a.svg"):
        run("graph", "export", str(tmp_path / name))
        assert "billing" in (tmp_path / name).read_text()
    assert "n0" in run("graph", "draw", "billing", "--format", "mermaid")
    run("graph", "import", str(tmp_path / "a.jsonl"))
    assert len(json.loads(run("graph", "about", "billing", "--json"))) == 2
    wrong = run("graph", "export", str(tmp_path / "a.xyz"), code=2)
    assert "has no known suffix" in wrong


def test_a_picture_of_too_much_leaves_the_file_as_it_was(run, tmp_path):
    run("fact", "add", "billing", "depends on", "redis")
    run("graph", "export", str(tmp_path / "a.svg"))
    drawn = (tmp_path / "a.svg").read_text()
    notes = [f"Service{number} depends on Redis." for number in range(210)]
    (tmp_path / "notes.jsonl").write_text("".join(json.dumps({"text": note}) + "\n" for note in notes))
    run("import", str(tmp_path / "notes.jsonl"))
    assert "at most 200 entities" in run("graph", "export", str(tmp_path / "a.svg"), code=2)
    assert (tmp_path / "a.svg").read_text() == drawn


def test_a_table_becomes_facts(run):
    run("sql", "CREATE TABLE deploys (service TEXT, host TEXT)")
    run("sql", "INSERT INTO deploys VALUES ('billing', 'host 7')")
    columns = ("--subject", "service", "--relation", "runs on", "--object", "host")
    assert json.loads(run("graph", "map", "deploys", *columns, "--json")) == {"added": 1, "unchanged": 0, "removed": 0}
    assert "host 7" in run("graph", "about", "billing")


def test_no_model_reads_facts_unless_one_is_named(run, monkeypatch):
    monkeypatch.delenv("RMEM_CHAT_MODEL", raising=False)
    run("remember", "Billing leans on Redis.")
    assert "write chat:MODEL@URL" in run("fact", "read", code=2)


def test_links_and_relations_of_an_imported_note_are_facts(run, tmp_path):
    """An import makes a memory of each section, without the mark of its heading."""
    (tmp_path / "Billing.md").write_text("# Billing\n\ndepends on:: [[Redis]]\n\n## Help\n\nSee [[Runbook|this]].\n")
    (tmp_path / "Search.md").write_text("depends on:: [[Billing]]\n")
    for name in ("Billing.md", "Search.md"):
        run("import", str(tmp_path / name))
    found = [one["name"] for one in json.loads(run("graph", "closure", "Search", "depends on", "--json"))]
    assert found == ["Billing", "Redis"]
    assert "Redis  1" in run("graph", "closure", "Billing", "depends on")
    assert "Search" in run("graph", "closure", "Redis", "depends on", "--reverse")
    assert "Runbook" in run("graph", "about", "Billing", "--relation", "links to")


def test_the_history_of_an_entity_is_shown_from_both_sides(run):
    run("fact", "add", "billing", "runs on", "host 7", "--since", "2026-05-01")
    run("fact", "add", "billing", "runs on", "host 8", "--since", "2026-07-01")
    assert "billing" in run("graph", "about", "host 7", "--history")
    assert "give it or --at" in run("graph", "about", "host 7", "--history", "--at", "2026-06-01", code=2)
