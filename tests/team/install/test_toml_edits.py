"""Our MCP server in TOML files of all kinds."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from rmem.errors import ConfigError
from rmem.team.install.toml import TomlServer

SERVER = TomlServer(Path("config.toml"), {"command": "rmem", "args": ["mcp"]})
OURS = {"command": "rmem", "args": ["mcp"]}

TEXTS = [
    "",
    'model = "o3"',
    'model = "o3" # mine\n\n# before\n[mcp_servers.other]\ncommand = "x" # why\n# after\n',
    'mcp_servers = { other = { command = "x" } } # inline\nmodel = "o3"\n',
    'mcp_servers.other.command = "x"\n',
    '[mcp_servers]\n[mcp_servers.other]\ncommand = "x"\n\n[tui]\ntheme = """\n[mcp_servers.remanence]\n"""\n',
    'a = 1\r\n\r\n[mcp_servers.other]\r\ncommand = "x"\r\n',
    "[[things]]\nx = 1\n\n[[things]]\nx = 2\n\n\n",
]


@pytest.mark.parametrize("text", TEXTS)
def test_it_is_added_and_removed_and_all_else_stays(text):
    before = tomllib.loads(text)
    after, _ = SERVER.add(text)
    assert tomllib.loads(after)["mcp_servers"]["remanence"] == OURS
    assert SERVER.add(after)[0] == after
    assert SERVER.state(after).wired == ["remanence"]
    for line in text.splitlines():
        assert "#" not in line or line.partition("#")[2] in after
    removed = SERVER.remove(after, None)
    assert removed is not None
    assert tomllib.loads(removed) == before
    if text.endswith("\n") and "inline" not in text:
        assert removed == text


def test_lines_end_as_they_do_in_the_file():
    after, _ = SERVER.add('a = 1\r\n\r\n[mcp_servers.other]\r\ncommand = "x"\r\n')
    assert "\n" not in after.replace("\r\n", "")


def test_an_entry_from_another_place_is_renewed_and_its_own_settings_stay():
    text = '[mcp_servers.remanence] # ours\ncommand = "/old/bin/rmem"\nargs = ["mcp"]\nstartup_timeout_sec = 30\n'
    assert SERVER.state(text).outdated == ["remanence"]
    after, _ = SERVER.add(text)
    assert tomllib.loads(after)["mcp_servers"]["remanence"] == {**OURS, "startup_timeout_sec": 30}
    assert "# ours" in after
    assert tomllib.loads(SERVER.remove(after, None) or "") == {}


def test_an_entry_of_the_user_with_our_name_is_left_alone():
    text = '[mcp_servers.remanence]\nurl = "https://memory.example.com/mcp"\n'
    assert SERVER.add(text)[0] == text
    assert SERVER.remove(text, None) == text
    assert "left alone" in SERVER.state(text).note


@pytest.mark.parametrize(("text", "told"), [("a = ", "Invalid value"), ("mcp_servers = 3", "must be a table")])
def test_what_cannot_be_used_is_refused(text, told):
    with pytest.raises(ConfigError, match=told):
        SERVER.add(text)
