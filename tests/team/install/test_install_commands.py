"""`rmem install`, `uninstall` and `status` as they are typed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time

import pytest
from folder_contents import everything

from rmem.cli import exit_codes
from rmem.team.health import NO_HOOKS
from rmem.team.install import AGENTS


@pytest.fixture
def claude(home):
    (home / ".claude").mkdir()
    path = home / ".claude/settings.json"
    path.write_text('{\n  "model": "opus" // mine\n}\n')
    return path


def test_a_bare_install_changes_nothing_and_says_what_each_would_do(rmem, claude, home):
    before = everything(home)
    answer = rmem("install")
    assert answer.code == 0
    assert f"Claude Code (claude-code): found in {claude.parent}" in answer.lines
    assert f"  would change {claude}: add 8 hooks" in answer.lines
    assert "Codex (codex): not found" in answer.lines
    assert "Nothing was changed" in answer.err
    assert everything(home) == before
    assert not rmem.home.exists()
    told = rmem("install", "--json").json
    assert told["changed"] is False
    assert [one["agent"] for one in told["agents"] if one["found"]] == ["claude-code"]


def test_installing_shows_the_change_and_a_second_run_does_nothing(rmem, claude, home):
    answer = rmem("install", "claude-code", "--yes")
    assert answer.code == 0
    assert '    +            "command": "rmem hook claude-code Stop",' in answer.lines
    assert answer.lines[-1] == "Claude Code: installed"
    assert str(rmem.home / "team/backups") in answer.err
    after = everything(home)
    answer = rmem("install", "claude-code", "--yes")
    assert answer.lines == ["Claude Code: already installed"]
    assert everything(home) == after
    assert rmem("uninstall", "claude-code", "--yes").lines[-1] == "Claude Code: uninstalled"
    assert everything(home) == {".claude": None, ".claude/settings.json": b'{\n  "model": "opus" // mine\n}\n'}
    assert rmem("uninstall", "all").lines[0] == "Claude Code: nothing of ours is there"


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("stdnum", "nothing is captured yet: the privacy policy needs stdnum"),
        ("phonenumbers", "nothing is captured yet: the privacy policy needs phonenumbers"),
        ("mcp", "agents cannot search yet: the MCP server needs mcp"),
    ],
)
def test_installing_says_which_library_is_missing_and_what_that_means(module, said, rmem, claude, monkeypatch):
    assert "yet:" not in rmem("install", "claude-code", "--yes").err
    monkeypatch.setitem(sys.modules, module, None)
    answer = rmem("install", "claude-code", "--yes")
    assert answer.code == 0
    assert [line for line in answer.err.splitlines() if said in line and 'pip install "rmem[team]"' in line]
    assert answer.err.count("yet:") == 1


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_a_dry_run_changes_nothing(command, rmem, claude, home):
    if command == "uninstall":
        rmem("install", "claude-code")
    before = everything(home)
    answer = rmem(command, "claude-code", "--dry-run")
    assert answer.lines[-1] == "Claude Code: planned"
    assert everything(home) == before


def test_all_means_those_that_are_there(rmem, claude, home):
    (home / ".gemini").mkdir()
    told = rmem("install", "all", "--json").json
    assert [(one["agent"], one["outcome"]) for one in told["agents"]] == [
        ("claude-code", "installed"),
        ("gemini", "installed"),
    ]
    assert not (home / ".cursor").exists()


def test_all_where_nothing_is_there_says_so(rmem, home):
    answer = rmem("install", "all")
    assert answer.code == 0
    assert "no coding agent was found" in answer.err
    assert everything(home) == {}


def test_an_agent_that_is_not_there_yet_can_be_prepared(rmem, home):
    assert rmem("install", "cursor", "--yes").lines[-1] == "Cursor: installed"
    assert json.loads((home / ".cursor/hooks.json").read_text())["version"] == 1


def test_a_broken_file_is_told_and_the_others_are_installed(rmem, claude, home):
    claude.write_text('{"model": }')
    (home / ".cursor").mkdir()
    answer = rmem("install", "all", "--yes")
    assert answer.code == exit_codes.USAGE
    assert answer.lines[-2:] == ["Claude Code: refused", "Cursor: installed"]
    assert f"Error: Claude Code: {claude}: line 1, column 11: a value was expected; nothing was changed" in answer.err
    assert claude.read_text() == '{"model": }'
    assert not (home / ".claude.json").exists()
    assert rmem("install", "claude-code", "--json").error["type"] == "ConfigError"


def test_on_a_terminal_it_asks_and_no_means_no(rmem, claude, home):
    before = everything(home)
    answer = rmem.terminal("install", "claude-code", typed="n\n")
    assert answer.code == exit_codes.STOPPED
    assert "Install for Claude Code? [y/N]" in answer.out
    assert everything(home) == before
    assert rmem.terminal("install", "claude-code", typed="y\n").code == 0
    assert everything(home) != before


def test_uninstall_wants_a_name(rmem):
    answer = rmem("uninstall")
    assert answer.code == exit_codes.USAGE
    assert "Name an agent" in answer.err


def test_an_unknown_agent_is_refused(rmem):
    assert rmem("install", "emacs").code == exit_codes.USAGE


def test_status_of_a_new_machine(rmem, home):
    answer = rmem("status")
    assert answer.code == 0
    assert "Claude Code (claude-code): not found" in answer.lines
    assert "last capture  never" in answer.lines
    assert any(line.startswith("server        none") for line in answer.lines)
    assert not rmem.home.exists()


def test_status_tells_what_is_wired_and_what_is_not(rmem, claude, home):
    rmem("install", "claude-code")
    value = json.loads(claude.read_text().replace("// mine", ""))
    del value["hooks"]["Stop"]
    value["hooks"]["SessionEnd"][0]["hooks"][0]["command"] = "/gone/rmem hook claude-code SessionEnd"
    value["disableAllHooks"] = True
    claude.write_text(json.dumps(value))
    (home / ".cursor").mkdir()
    (home / ".cursor/mcp.json").write_text("{")
    answer = rmem("status")
    text = answer.out
    assert "Claude Code (claude-code): incomplete" in text
    assert "outdated SessionEnd; missing Stop" in text
    assert f"all hooks are switched off by disableAllHooks = true in {claude}" in text
    assert "Cursor (cursor): broken" in text
    told = {one["agent"]: one for one in rmem("status", "--json").json["agents"]}
    assert told["claude-code"]["hooks"]["missing"] == ["Stop"]
    assert told["claude-code"]["mcp"]["wired"] == ["remanence"]
    assert "mcp.json: line 1, column 2" in told["cursor"]["problems"][0]


def test_an_agent_without_hooks_is_shown_as_installed_and_as_capturing_nothing(rmem, home):
    answer = rmem("install", "zed", "--yes")
    assert answer.lines[-1] == "Zed: installed"
    assert "nothing is captured by itself" in answer.err
    shown = rmem("status").lines
    at = shown.index("Zed (zed): installed")
    assert shown[at + 1 : at + 4] == [f"  hooks  {NO_HOOKS}", "  MCP    wired", "  skill  wired"]
    told = next(one for one in rmem("status", "--json").json["agents"] if one["agent"] == "zed")
    assert (told["state"], told["hooks"], told["self_test"]) == ("installed", None, None)
    finding = next(one for one in rmem("doctor", "--json").json["findings"] if one["name"] == "zed")
    assert finding["ok"]
    assert NO_HOOKS in finding["detail"]


def test_every_agent_is_named_in_the_help_and_in_the_overview(rmem, home):
    assert set(AGENTS) <= set(re.findall(r"[\w-]+", rmem("install", "--help").out))
    shown = rmem("install").out
    assert all(f" ({name}): not found" in shown for name in AGENTS)


def test_status_tells_where_memory_goes_and_what_waits(rmem, home):
    team = rmem.home / "team"
    (team / "spool").mkdir(parents=True)
    for number in range(3):
        (team / "spool" / f"{number}.json").write_text("{}")
    (team / "spool" / ".3.json").write_text("")
    (team / "login.json").write_text(
        json.dumps({"url": "https://memory.example.com", "org": "acme", "workspace": "web"})
    )
    (team / "last-capture.json").write_text(json.dumps({"time": time.time(), "agent": "codex"}))
    subprocess.run(["git", "init", "-q", home], check=True)
    subprocess.run(["git", "-C", home, "remote", "add", "origin", "git@github.com:Acme/web.git"], check=True)
    (home / ".rmem.toml").write_text('workspace = "etl"\nrecall = false\ncolour = "red"\n')
    told = rmem("status", "--json").json
    assert told["memory"] == {
        "store": str(rmem.home / "memories.db"),
        "server": "https://memory.example.com",
        "workspace": "web",
        "organisation": "acme",
    }
    assert told["waiting"] == 3
    assert told["last_capture"]["agent"] == "codex"
    assert told["repository"]["id"] == "github.com/acme/web"
    assert told["repository"]["ignored"] == ["colour"]
    text = rmem("status").out
    assert "server        https://memory.example.com, workspace acme/web" in text
    assert "workspace etl, no recall, ignored: colour" in text
    assert "waiting       3 events" in text
    (home / ".rmem.toml").write_text('api_key = "x"\n')
    assert "refused: " in rmem("status").out
    assert "'api_key' looks like a secret" in rmem("status", "--json").json["repository"]["problem"]


SHARING = pytest.mark.parametrize("pair", [("codex", "gemini"), ("codex", "zed"), ("zed", "gemini")], ids="-".join)


@SHARING
def test_a_skill_that_two_agents_share_stays_until_the_last_goes(pair, rmem, home):
    skill = home / ".agents/skills/remanence/SKILL.md"
    told = rmem("install", *pair, "--json").json
    paths = [file["path"] for agent in told["agents"] for file in agent["files"]]
    assert paths.count(str(skill)) == 1
    assert [agent["outcome"] for agent in told["agents"]] == ["installed", "installed"]
    rmem("uninstall", pair[0])
    assert skill.exists()
    states = {agent["agent"]: agent["state"] for agent in rmem("status", "--json").json["agents"]}
    assert (states[pair[0]], states[pair[1]]) == ("not installed", "installed")
    assert rmem("uninstall", pair[1]).code == 0
    assert everything(home) == {}


@SHARING
def test_two_agents_that_share_a_skill_go_together(pair, rmem, home):
    rmem("install", *pair)
    answer = rmem("uninstall", "all")
    assert answer.code == 0
    assert everything(home) == {}
