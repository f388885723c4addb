"""The plugin in Claude Code's format: what lies in the repository is what the code makes, and `claude` takes it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from claude_code_plugin import marketplace, plugin, write

from rmem.team.install import Command, tool

ROOT = Path(__file__).parents[3]


def test_the_plugin_of_the_repository_is_up_to_date():
    folder = ROOT / "plugins" / "claude-code"
    held = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert held == set(plugin())
    for name, text in plugin().items():
        assert (folder / name).read_text(encoding="utf-8") == text, f"{name}: write it anew, see docs/install.md"
    assert (ROOT / ".claude-plugin" / "marketplace.json").read_text(encoding="utf-8") == marketplace()


def test_its_hooks_and_server_are_those_of_rmem_install(home):
    hooks, server, _ = tool("claude-code", Command()).parts
    made = plugin(Command())
    assert json.loads(made["hooks/hooks.json"])["hooks"] == json.loads(hooks.add(None)[0])["hooks"]
    installed = json.loads(server.add(None)[0])["mcpServers"]["remanence"]
    assert json.loads(made[".mcp.json"])["mcpServers"]["remanence"].items() <= installed.items()


def test_its_skill_does_not_claim_to_be_removed_by_rmem_uninstall():
    (skill,) = (text for name, text in plugin().items() if name.endswith("SKILL.md"))
    assert "rmem uninstall" not in skill
    assert skill.startswith("---\nname: remanence\n")


@pytest.mark.skipif(shutil.which("claude") is None, reason="claude is not on the PATH: npm i @anthropic-ai/claude-code")
def test_claude_code_validates_plugin_and_marketplace(tmp_path):
    claude = shutil.which("claude")
    write(tmp_path / "plugins" / "claude-code")
    (tmp_path / ".claude-plugin").mkdir()
    (tmp_path / ".claude-plugin" / "marketplace.json").write_text(marketplace(), encoding="utf-8")
    for folder in (tmp_path, tmp_path / "plugins" / "claude-code"):
        done = subprocess.run(
            [claude, "plugin", "validate", str(folder)],
            capture_output=True,
            text=True,
            timeout=120,
            env={"HOME": str(tmp_path), "PATH": f"{Path(claude).parent}:/usr/bin:/bin"},
        )
        assert done.returncode == 0, done.stdout + done.stderr
