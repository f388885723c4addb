"""Looking at memories, changing them and forgetting them."""

from __future__ import annotations

import pytest
from rmem_runner import Rmem


@pytest.fixture
def five(rmem: Rmem) -> Rmem:
    """Five memories, m-1 the oldest and least important."""
    for number in range(1, 6):
        rmem(
            "remember", f"memory number {number}", "--id", f"m-{number}", "--when", f"2026-05-0{number}",
            "--importance", f"0.{number}", "--agent", "odd" if number % 2 else "even",
        )  # fmt: skip
    return rmem


def ids(rmem: Rmem, *options: str) -> list[str]:
    return [memory["memory_id"] for memory in rmem("list", *options, "--json").json["memories"]]


def test_list_orders_filters_and_pages(five: Rmem) -> None:
    assert ids(five) == ["m-5", "m-4", "m-3", "m-2", "m-1"]
    assert ids(five, "--order", "oldest") == ["m-1", "m-2", "m-3", "m-4", "m-5"]
    assert ids(five, "--order", "importance", "--limit", "2") == ["m-5", "m-4"]
    assert ids(five, "--limit", "2", "--offset", "2") == ["m-3", "m-2"]
    assert ids(five, "--agent", "even") == ["m-4", "m-2"]
    assert five("list", "--limit", "1", "--agent", "odd", "--json").json["total"] == 3


def test_list_says_when_there_is_more(five: Rmem) -> None:
    assert "of 5; --offset 2" in five("list", "--limit", "2").err
    assert five("list").err == ""
    assert "No memories" in five("list", "--agent", "nobody").err


def test_list_is_one_line_a_memory_without_tabs_or_boxes(five: Rmem) -> None:
    five("remember", "several\nlines\tand a tab")
    out = five("list").out
    assert len(out.splitlines()) == 1 + 6
    assert "several lines and a tab" in out
    assert out.isascii()
    assert "\t" not in out


def test_show_tells_every_field(rmem: Rmem) -> None:
    rmem("remember", "two\nlines", "--id", "m", "--session", "s-1", "--tag", "a=b", "--meta", "ticket=4711")
    out = rmem("show", "m").out
    for part in ("s-1", "a=b", "4711", "two", "lines", "256 numbers"):
        assert part in out
    assert "embeddings" not in rmem("show", "m", "--json").json
    assert len(rmem("show", "m", "--json", "--vectors").json["embeddings"]["full_vector"]) == 256


def test_a_memory_cannot_steer_the_terminal(rmem: Rmem) -> None:
    rmem("remember", "red \x1b[31malert\x07 \x9b2J [bold]plain[/bold]", "--id", "m")
    for command in (("show", "m"), ("list",), ("recall", "alert")):
        out = rmem(*command).out
        assert "\\x1b[31malert\\x07 \\x9b2J [bold]plain[/bold]" in out
        assert not {"\x1b", "\x07", "\x9b"} & set(out)
    assert "\x1b[31malert" not in rmem.terminal("show", "m").out
    assert rmem("show", "m", "--json").json["text"].startswith("red \x1b[31m")


def test_stats_count_what_is_there(five: Rmem) -> None:
    held = five("stats", "--json").json
    assert held["memories"] == 5
    assert held["by_agent"] == {"odd": 3, "even": 2}
    assert held["embedder"].startswith("static")
    assert "3  odd" in five("stats").out


@pytest.mark.parametrize(
    "command", [("show", "nope"), ("update", "nope", "--type", "x"), ("forget", "nope"), ("forget", "nope", "--yes")]
)
def test_an_unknown_id_is_exit_code_3(rmem: Rmem, command: tuple[str, ...]) -> None:
    assert rmem(*command).code == 3  # before there is a store
    rmem("remember", "something")
    answer = rmem(*command)
    assert answer.code == 3
    assert answer.err == "Error: no memory with id 'nope'\n"
    assert rmem(*command, "--json").error == {
        "type": "NotFoundError",
        "message": "no memory with id 'nope'",
        "field": None,
    }


def test_update_changes_what_is_named_and_nothing_else(rmem: Rmem) -> None:
    rmem("remember", "old text", "--id", "m", "--session", "s", "--tag", "a=b", "--meta", "x=1", "--actor", "Ada")
    changed = rmem("update", "m", "--text", "about penguins", "--importance", "1", "--json").json
    assert changed["text"] == "about penguins"
    assert changed["metadata"]["importance_score"] == 1
    assert (changed["session"], changed["tags"], changed["actor"]) == ("s", {"a": "b"}, "Ada")
    assert changed["contents"]["x"] == 1
    assert rmem("recall", "penguins", "--mode", "lexical", "--json").json["hits"]
    assert not rmem("recall", "old", "--mode", "lexical", "--json").json["hits"]
    rmem("update", "m", "--clear", "session", "--clear", "tags", "--clear", "actor", "--clear", "metadata")
    cleared = rmem("show", "m", "--json").json
    assert (cleared["session"], cleared["tags"], cleared["actor"]) == (None, {}, None)
    assert (cleared["text"], cleared["contents"].get("x")) == ("about penguins", None)


def test_update_needs_something_to_change(rmem: Rmem) -> None:
    rmem("remember", "text", "--id", "m")
    assert rmem("update", "m").code == 2
    assert rmem("update", "m", "--session", "s", "--clear", "session").code == 2


def test_update_reads_a_new_text_from_standard_input(rmem: Rmem) -> None:
    rmem("remember", "text", "--id", "m")
    assert rmem("update", "m", "--text", "-", input="from a pipe\n").out == "m\n"
    assert rmem("show", "m", "--json").json["text"] == "from a pipe"


def test_forget_removes_and_tells_what_was_missing(five: Rmem) -> None:
    answer = five("forget", "m-1", "nope", "m-2", "m-1", "--yes", "--json")
    assert answer.code == 3
    assert answer.json == {"forgotten": ["m-1", "m-2"], "missing": ["nope"]}
    assert ids(five) == ["m-5", "m-4", "m-3"]
    assert five("forget", "m-3", "--yes").out == "m-3\n"


def test_forget_asks_on_a_terminal(five: Rmem) -> None:
    refused = five.terminal("forget", "m-1", "m-2", typed="n\n")
    assert refused.code == 130
    assert "memory number 1" in refused.out
    assert "Forget these 2?" in refused.out
    assert len(ids(five)) == 5
    assert five.terminal("forget", "m-1", typed="y\n").code == 0
    assert five.terminal("forget", "m-2", "--yes").code == 0
    assert ids(five) == ["m-5", "m-4", "m-3"]
