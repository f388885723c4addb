"""Installing into home folders as people have them: with none, some, commented, unusual and broken files."""

from __future__ import annotations

import json
import os
import stat
import tomllib
from pathlib import Path

import pytest
from folder_contents import everything

from rmem.errors import ConfigError
from rmem.team import events, health
from rmem.team.dialects import dialect
from rmem.team.install import AGENTS, Command, tool
from rmem.team.install.files import Ledger
from rmem.team.install.jsonc import Document
from rmem.team.install.parts import McpServerPart, server_of
from rmem.team.install.plan import InstallPlan, install, plan_install, plan_uninstall, uninstall
from rmem.team.install.status import agent_report
from rmem.team.install.tool import Tool, skill

CLAUDE = """\
// my settings
{
    "model": "opus", /* the big one */
    "hooks": {
        // formats what was written
        "PostToolUse": [
            { "matcher": "Edit|Write", "hooks": [{ "type": "command", "command": "prettier --write" }] }, // keep
        ],
    },
    "env": {"FOO": "http://x//y"},
}
"""
CURSOR = '{\n\t"version": 1,\n\t"hooks": {\n\t\t"stop": [\n\t\t\t{"command": "./mine.sh"}\n\t\t]\n\t}\n}'
GEMINI = '{\r\n  "theme": "x", // why\r\n  "hooks": {"AfterTool": []},\r\n  "mcpServers": {}\r\n}\r\n'
OPENCODE = '{\n  "$schema": "https://opencode.ai/config.json",\n  // none yet\n  "mcp": {},\n}\n'
LAYOUTS: dict[str, dict[str, str]] = {
    "claude-code": {
        ".claude/settings.json": CLAUDE,
        ".claude.json": '{"numStartups":3,"mcpServers":{"github":{"command":"gh","env":{"TOKEN":"t"}}},"projects":{}}',
        ".claude/skills/other/SKILL.md": "mine",
    },
    "codex": {
        ".codex/config.toml": '# mine\nmodel = "o3"   # spaced\n\n[mcp_servers.docs]\ncommand = "docs"\n\n[tui]\n# c\n',
        ".codex/hooks.json": '{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"say done"}]}]}}\n',
    },
    "cursor": {
        ".cursor/hooks.json": CURSOR,
        ".cursor/mcp.json": "{\n}\n",
    },
    "gemini": {
        ".gemini/settings.json": GEMINI,
    },
    "opencode": {
        ".config/opencode/opencode.jsonc": OPENCODE,
        ".config/opencode/plugins/own.js": "export const Own = async () => ({})\n",
    },
    "copilot": {
        ".copilot/mcp-config.json": '{ "mcpServers": { "a": { "command": "b" } } }',
        ".copilot/hooks/own.json": '{"version": 1, "hooks": {}}',
        ".copilot/settings.json": "// none\n{}\n",
    },
    # In the form of the examples of each tool's own documentation, with a comment where the tool takes comments.
    "amp": {
        ".config/amp/settings.jsonc": """\
{
  "amp.notifications.enabled": true, // mine
  "amp.mcpServers": {
    "playwright": {
      "command": "npx",
      "args": ["-y", "@playwright/mcp@latest", "--headless", "--isolated"]
    },
    "linear": {
      "url": "https://mcp.linear.app/sse"
    }
  },
}
""",
    },
    "cline": {
        ".cline/data/settings/cline_mcp_settings.json": """\
{
  "mcpServers": {
    "local-server": {
      "command": "node",
      "args": ["/path/to/server.js"],
      "env": {
        "API_KEY": "your_api_key"
      },
      "disabled": false,
      "autoApprove": []
    }
  }
}
""",
    },
    "kilo": {
        ".config/kilo/kilo.jsonc": """\
{
  "mcp": {
    "my-local-server": {
      "type": "local",
      "command": ["node", "/path/to/server.js"],
      "environment": {
        "API_KEY": "your_api_key"
      },
      "enabled": true,
      "timeout": 10000
    }
  }, // mine
}
""",
    },
    "kiro": {
        ".kiro/settings/mcp.json": """\
{
  "mcpServers": {
    "local-server-name": {
      "command": "command-to-run-server",
      "args": ["arg1", "arg2"],
      "env": {
        "ENV_VAR1": "hard-coded-variable",
        "ENV_VAR2": "${EXPANDED_VARIABLE}"
      },
      "disabled": false,
      "autoApprove": ["tool_name1", "tool_name2"],
      "disabledTools": ["tool_name3"]
    }
  }
}
""",
        ".kiro/steering/product.md": "mine",
    },
    "qwen": {
        ".qwen/settings.json": """\
{
  "mcpServers": {
    "pythonTools": {
      "command": "python",
      "args": ["-m", "my_mcp_server", "--port", "8080"],
      "cwd": "./mcp-servers/python",
      "env": {
        "DATABASE_URL": "$DB_CONNECTION_STRING"
      },
      "timeout": 15000
    }
  }, // mine
}
""",
        ".qwen/skills/other/SKILL.md": "mine",
    },
    "windsurf": {
        ".codeium/windsurf/mcp_config.json": """\
{
  "mcpServers": {
    "github": {
      "command": "npx",
      "args": [
        "-y",
        "@modelcontextprotocol/server-github"
      ],
      "env": {
        "GITHUB_PERSONAL_ACCESS_TOKEN": "<YOUR_PERSONAL_ACCESS_TOKEN>"
      }
    }
  }
}
""",
    },
    "zed": {
        ".config/zed/settings.json": """\
// Zed settings
{
  "context_servers": {
    "local-mcp-server": {
      "command": "some-command",
      "args": ["arg-1", "arg-2"],
      "env": {}
    },
    "remote-mcp-server": {
      "url": "https://example.com/mcp",
      "headers": { "Authorization": "Bearer <token>" }
    }
  },
  "theme": "One Dark", // mine
}
""",
    },
}


def laid_out(home: Path, agent: str, change: str = "") -> dict[str, bytes | None]:
    for name, text in LAYOUTS[agent].items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = text.encode()
        if change == "mark":
            data = b"\xef\xbb\xbf" + data if name.endswith((".json", ".toml", ".jsonc")) else data
        path.write_bytes(data)
    return everything(home)


def installed(agent: str, command: Command | None = None) -> InstallPlan:
    plan = plan_install(tool(agent, command))
    assert not plan.refused
    install(plan, Ledger())
    return plan


def uninstalled(agent: str) -> InstallPlan:
    ledger = Ledger()
    plan = plan_uninstall(tool(agent), ledger)
    assert not plan.refused
    uninstall(plan, ledger)
    return plan


@pytest.mark.parametrize("agent", events.AGENTS)
def test_every_event_that_is_wired_is_understood(agent, home):
    wired = agent_report(tool(agent))["hooks"]["missing"]
    assert wired
    for event in wired:
        assert dialect(agent).read(event, {"session_id": "s", "cwd": "."}) is not None, event


@pytest.mark.parametrize("agent", AGENTS)
def test_in_an_empty_home_it_is_made_and_leaves_nothing_behind(agent, home):
    plan = installed(agent)
    assert all(change.kind == "create" for change in plan.changes)
    told = agent_report(tool(agent))
    assert told["state"] == "installed"
    assert (told["hooks"] is not None) == (agent in events.AGENTS)
    for role in ("hooks", "mcp", "skill")[told["hooks"] is None :]:
        assert told[role]["wired"]
        assert not told[role]["missing"]
    uninstalled(agent)
    assert everything(home) == {}


@pytest.mark.parametrize("change", ["", "mark"])
@pytest.mark.parametrize("agent", AGENTS)
def test_beside_what_is_there_it_is_added_once_and_taken_out_to_the_byte(agent, change, home):
    before = laid_out(home, agent, change)
    installed(agent)
    after = everything(home)
    for name, data in before.items():  # every line of the user is still there
        for line in (data or b"").decode("utf-8-sig").splitlines() if name != ".claude.json" else ():
            assert line.rstrip(" ,}]") in (after[name] or b"").decode(), (name, line)
    assert not plan_install(tool(agent)).changes
    assert everything(home) == after
    uninstalled(agent)
    assert everything(home) == before


@pytest.mark.parametrize("agent", AGENTS)
def test_what_the_user_changed_since_stays(agent, home):
    laid_out(home, agent)
    before = {path: parsed(path) for path in settings_files(home)}
    installed(agent)
    for path in settings_files(home):
        touched(path)
    uninstalled(agent)
    for path, value in before.items():
        assert parsed(path) == {**value, "changed": True}
        assert "rmem" not in path.read_text()


@pytest.mark.parametrize("agent", AGENTS)
def test_without_a_ledger_our_entries_are_known_by_their_form(agent, home, tmp_path):
    laid_out(home, agent)
    installed(agent)
    Ledger().path.unlink()
    uninstalled(agent)
    for path in home.rglob("*"):
        assert path.is_dir() or "rmem" not in path.read_text(), path


@pytest.mark.parametrize("agent", AGENTS)
def test_a_command_that_moved_is_renewed_in_its_place(agent, home):
    before = laid_out(home, agent)
    installed(agent, Command(("/old place/bin/rmem",)))
    report = agent_report(tool(agent))
    assert report["state"] == "incomplete"
    assert report["hooks"] is None or report["hooks"]["outdated"]
    assert report["mcp"]["outdated"]
    installed(agent)
    assert agent_report(tool(agent))["state"] == "installed"
    assert not any("old place" in path.read_text() for path in home.rglob("*") if path.is_file())
    uninstalled(agent)
    assert everything(home) == before


def test_a_tool_without_hooks_is_complete_with_its_server_and_skill(home):
    folder = home / ".other"
    other = Tool(
        "other", "Other", folder, (), (McpServerPart(folder / "mcp.json", server_of(Command())), skill(folder))
    )
    told = agent_report(other)
    assert (told["state"], told["hooks"], told["self_test"]) == ("not installed", None, None)
    install(plan_install(other), Ledger())
    told = agent_report(other)
    assert (told["state"], told["hooks"], told["self_test"]) == ("installed", None, None)
    assert health.agent_finding(told).ok
    assert health.NO_HOOKS in health.agent_finding(told).detail
    shared = plan_uninstall(other, Ledger(), [other])
    assert shared.changes == []  # what a tool that stays needs is kept, by its server alone
    (folder / "skills/remanence/SKILL.md").unlink()
    told = agent_report(other)
    assert told["state"] == "incomplete"
    assert not health.agent_finding(told).ok


def settings_files(home: Path) -> list[Path]:
    """The files of a layout that we edit."""
    names = (
        "settings.json",
        ".claude.json",
        "config.toml",
        "hooks.json",
        "mcp.json",
        "opencode.jsonc",
        "mcp-config.json",
        "settings.jsonc",
        "cline_mcp_settings.json",
        "kilo.jsonc",
        "mcp_config.json",
    )
    return [path for path in sorted(home.rglob("*")) if path.name in names and ".copilot/settings" not in str(path)]


def parsed(path: Path) -> dict[str, object]:
    text = path.read_text()
    value: dict[str, object] = tomllib.loads(text) if path.suffix == ".toml" else Document(text).value
    return value


def touched(path: Path) -> None:
    if path.suffix == ".toml":
        path.write_text(f"changed = true\n{path.read_text()}")
        return
    document = Document(path.read_text())
    document.set(("changed",), True)
    path.write_text(document.text)


def test_our_handler_in_a_group_of_the_user_is_found_and_its_time_limit_respected(home):
    installed("claude-code")
    path = home / ".claude/settings.json"
    value = json.loads(path.read_text())
    mine = {"type": "command", "command": "say done"}
    value["hooks"]["Stop"][0]["hooks"].insert(0, mine)
    value["hooks"]["Stop"][0]["hooks"][1]["timeout"] = 60
    path.write_text(json.dumps(value))
    assert not plan_install(tool("claude-code")).changes
    uninstalled("claude-code")
    assert json.loads(path.read_text()) == {"hooks": {"Stop": [{"hooks": [mine]}]}}


def test_hooks_that_are_there_twice_or_under_a_wrong_event_are_put_right(home):
    path = home / ".claude/settings.json"
    path.parent.mkdir()
    ours = {"hooks": [{"type": "command", "command": "rmem hook claude-code Stop"}]}
    path.write_text(json.dumps({"hooks": {"Stop": [ours, ours], "Notification": [ours]}}))
    installed("claude-code")
    hooks = json.loads(path.read_text())["hooks"]
    assert len(hooks["Stop"]) == 1
    assert hooks["Notification"] == []


def test_an_mcp_server_of_the_user_with_our_name_is_left_alone(home):
    path = home / ".cursor/mcp.json"
    path.parent.mkdir()
    path.write_text('{"mcpServers": {"remanence": {"url": "https://memory.example.com/mcp"}}}')
    before = path.read_bytes()
    installed("cursor")
    uninstalled("cursor")
    assert path.read_bytes() == before


BROKEN = {
    "claude-code": (".claude/settings.json", '{"hooks": ', "line 1"),
    "codex": (".codex/config.toml", "model = \n", "Invalid value"),
    "cursor": (".cursor/hooks.json", '{"hooks": []}', "hooks must be an object"),
    "gemini": (".gemini/settings.json", '["x"]', "must be an object"),
    "opencode": (".config/opencode/opencode.json", '{"mcp": 3}', "mcp must be an object"),
    "copilot": (".copilot/mcp-config.json", "\x00\x01", "line 1"),
    "amp": (".config/amp/settings.json", '{"amp.mcpServers": []}', "amp.mcpServers must be an object"),
    "cline": (".cline/data/settings/cline_mcp_settings.json", '{"mcpServers": {', "line 1"),
    "kilo": (".config/kilo/kilo.json", '{"mcp": "x"}', "mcp must be an object"),
    "kiro": (".kiro/settings/mcp.json", "[]", "must be an object"),
    "qwen": (".qwen/settings.json", "{]", "line 1"),
    "windsurf": (".codeium/windsurf/mcp_config.json", '{"mcpServers": 1}', "mcpServers must be an object"),
    "zed": (".config/zed/settings.json", '{"context_servers": null}', "context_servers must be an object"),
}


@pytest.mark.parametrize("agent", AGENTS)
def test_a_broken_file_stops_its_tool_and_nothing_is_touched(agent, home):
    name, text, told = BROKEN[agent]
    path = home / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    before = everything(home)
    plan = plan_install(tool(agent))
    assert told in plan.refused
    assert str(path) in plan.refused
    assert not plan.changes
    assert plan_uninstall(tool(agent), Ledger()).changes == []
    assert everything(home) == before


@pytest.mark.parametrize(
    ("name", "told"), [("latin.json", "not UTF-8"), ("folder.json", "not a file"), ("loop.json", "cannot be read")]
)
def test_what_is_no_text_file_is_refused(name, told, home):
    path = home / ".cursor/mcp.json"
    path.parent.mkdir()
    if name == "latin.json":
        path.write_bytes('{"a": "é"}'.encode("latin-1"))
    elif name == "folder.json":
        path.mkdir()
    else:
        path.symlink_to(path)
    assert told in plan_install(tool("cursor")).refused


def test_a_read_only_file_is_refused(home):
    path = home / ".gemini/settings.json"
    path.parent.mkdir()
    path.write_text("{}")
    path.chmod(0o444)
    assert "is read-only" in plan_install(tool("gemini")).refused
    assert path.read_text() == "{}"


def test_a_skill_of_the_user_with_our_name_is_not_overwritten(home):
    path = home / ".claude/skills/remanence/SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    assert "not from us" in plan_install(tool("claude-code")).refused


def test_links_are_followed_and_modes_stay(home, tmp_path):
    real = tmp_path / "dotfiles" / "settings.json"
    real.parent.mkdir()
    real.write_text('{"theme": "x"}\n')
    real.chmod(0o640)
    link = home / ".gemini/settings.json"
    link.parent.mkdir()
    link.symlink_to(real)
    installed("gemini")
    assert link.is_symlink()
    assert "rmem hook gemini SessionStart" in real.read_text()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    uninstalled("gemini")
    assert link.is_symlink()
    assert real.read_text() == '{"theme": "x"}\n'


def test_a_link_to_nowhere_is_refused(home, tmp_path):
    link = home / ".gemini/settings.json"
    link.parent.mkdir()
    link.symlink_to(tmp_path / "gone" / "settings.json")
    assert "no such folder" in plan_install(tool("gemini")).refused


def test_copies_are_kept_for_the_user_alone(home, tmp_path):
    laid_out(home, "claude-code")
    installed("claude-code")
    copies = sorted((tmp_path / "rmem/team/backups/claude-code").iterdir())
    assert [copy.name for copy in copies] == [".claude.json.1", "settings.json.1"]
    assert copies[1].read_text() == CLAUDE
    assert all(stat.S_IMODE(copy.stat().st_mode) == 0o600 for copy in copies)


def test_a_file_that_changes_between_plan_and_write_is_not_overwritten(home):
    laid_out(home, "cursor")
    plan = plan_install(tool("cursor"))
    (home / ".cursor/mcp.json").write_text('{"mcpServers": {"new": {}}}')
    before = everything(home)
    with pytest.raises(ConfigError, match="changed by another program"):
        install(plan, Ledger())
    assert everything(home) == before
    assert not list(home.rglob(".*.??????*.tmp"))


@pytest.mark.parametrize(
    ("agent", "variable", "expected"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", ["settings.json", ".claude.json", "skills/remanence/SKILL.md"]),
        ("codex", "CODEX_HOME", ["hooks.json", "config.toml"]),
        ("gemini", "GEMINI_CLI_HOME", [".gemini/settings.json", ".agents/skills/remanence/SKILL.md"]),
        ("copilot", "COPILOT_HOME", ["hooks/remanence.json", "mcp-config.json", "skills/remanence/SKILL.md"]),
        ("opencode", "XDG_CONFIG_HOME", ["opencode/plugins/remanence.js", "opencode/opencode.json"]),
        ("opencode", "OPENCODE_CONFIG_DIR", ["plugins/remanence.js", "opencode.json"]),
        ("cline", "CLINE_DIR", ["data/settings/cline_mcp_settings.json", "skills/remanence/SKILL.md"]),
        ("kilo", "XDG_CONFIG_HOME", ["kilo/kilo.jsonc"]),
        ("qwen", "QWEN_HOME", ["settings.json", "skills/remanence/SKILL.md"]),
        ("zed", "XDG_CONFIG_HOME", ["zed/settings.json"]),
    ],
)
def test_folders_move_as_the_tools_move_them(agent, variable, expected, home, tmp_path, monkeypatch):
    monkeypatch.setenv(variable, str(tmp_path / "moved"))
    installed(agent)
    there = everything(tmp_path / "moved")
    assert set(expected) <= set(there)


@pytest.mark.parametrize(("agent", "variable"), [("amp", "AMP_SETTINGS_FILE"), ("cline", "CLINE_MCP_SETTINGS_PATH")])
def test_a_file_of_servers_moves_as_its_tool_moves_it(agent, variable, home, tmp_path, monkeypatch):
    monkeypatch.setenv(variable, str(tmp_path / "moved.json"))
    installed(agent)
    assert "rmem" in (tmp_path / "moved.json").read_text()
    uninstalled(agent)
    assert not (tmp_path / "moved.json").exists()
    assert everything(home) == {}


@pytest.mark.parametrize(
    ("agent", "there", "used"),
    [
        ("amp", ["settings.jsonc"], "settings.jsonc"),
        ("amp", ["settings.jsonc", "settings.json"], "settings.json"),  # Amp itself reads only this one then
        ("kilo", ["kilo.json"], "kilo.json"),
    ],
)
def test_of_two_names_of_a_file_the_one_that_is_there_is_used(agent, there, used, home):
    folder = home / ".config" / agent
    folder.mkdir(parents=True)
    for name in there:
        (folder / name).write_text("{}\n")
    installed(agent)
    assert [path.name for path in sorted(folder.glob("*.json*")) if "rmem" in path.read_text()] == [used]


def test_the_program_is_named_by_its_path_where_no_shell_finds_it(home, tmp_path, monkeypatch):
    assert Command.here().hook("codex", "Stop") == "rmem hook codex Stop"
    own = tmp_path / "my tools" / "bin" / "rmem"
    own.parent.mkdir(parents=True)
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    monkeypatch.setenv("PATH", f"{own.parent}{os.pathsep}/usr/bin")
    monkeypatch.setenv("VIRTUAL_ENV", str(own.parents[1]))  # found only while the environment is activated
    monkeypatch.setattr("sys.argv", [str(own)])
    assert Command.here().hook("codex", "Stop") == f"'{own}' hook codex Stop"
    installed("codex")
    assert not plan_install(tool("codex")).changes
    uninstalled("codex")
    assert everything(home) == {}
