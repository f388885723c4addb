"""What every framework's memory promises on a Brain, through the framework's own interface."""

from __future__ import annotations

from importlib.metadata import version

import pytest
from framework_adapters import ADAPTERS, adapter, is_installed
from matrix import BEGIN, END, PAGE, table, written

from rmem import Brain

INSTALLED = {name: is_installed(module) for name, (module, _) in ADAPTERS.items()}


def frameworks(what: str):
    """Run a test for each framework, marked with what it shows."""
    return pytest.mark.parametrize(
        "name",
        [
            pytest.param(
                name,
                marks=[
                    pytest.mark.framework(name, what),
                    pytest.mark.skipif(not here, reason=f"{name} is not installed: make test-frameworks"),
                ],
            )
            for name, here in INSTALLED.items()
        ],
    )


@frameworks("kept")
def test_what_is_kept_is_there_for_the_next_process(name, tmp_path):
    with Brain(tmp_path / "a.db") as brain:
        adapter(name, brain).keep("ann", "my dog is called Bruno")
    with Brain(tmp_path / "a.db") as brain:
        assert any("Bruno" in text for text in adapter(name, brain).find("ann", "what is the dog called?"))


@frameworks("recalled")
def test_what_is_kept_is_a_memory_that_recall_finds(name):
    with Brain(":memory:") as brain:
        one = adapter(name, brain)
        for text in ("the train leaves at nine", "my dog is called Bruno", "tea is better than coffee"):
            one.keep("ann", text)
        assert "Bruno" in brain.recall("dog", k=1)[0].text
        assert "Bruno" in one.find("ann", "what is the dog called?")[0]


@frameworks("scopes apart")
def test_nothing_of_one_scope_is_found_in_another(name):
    with Brain(":memory:") as brain:
        one = adapter(name, brain)
        one.keep("ann", "my dog is called Bruno")
        one.keep("bob", "my dog is called Rex")
        assert [text for text in one.find("bob", "dog") if "Bruno" in text] == []
        assert any("Rex" in text for text in one.find("bob", "dog"))


@frameworks("on a server")
def test_it_works_on_a_server(name, request):
    pytest.importorskip("fastapi")
    if int(version("mcp").partition(".")[0]) < 2:
        pytest.skip("a server needs mcp 2, which this framework does not go with")
    server = request.getfixturevalue("server")
    with Brain(server.url, token=server.first_token) as brain:
        one = adapter(name, brain)
        one.keep("ann", "my dog is called Bruno")
        assert any("Bruno" in text for text in one.find("ann", "what is the dog called?"))


def row(what: str, outcome: str, counted: int | None = None) -> dict[str, object]:
    return {"framework": "pets", "version": "1.2", "what": what, "outcome": outcome, "counted": counted}


def test_a_cell_of_the_matrix_is_what_its_tests_say():
    rows = [row("its own tests", "passed", 7), row("its own tests", "passed", 3), row("kept", "passed")]
    rows += [
        row("kept", "failed"),
        row("on a server", "skipped"),
        row("recalled", "skipped"),
        row("recalled", "passed"),
    ]
    assert table(rows).splitlines()[-1] == "| `pets` | 1.2 | ✓ 10 | ✗ | ✓ |  | – |  |"


def test_the_page_keeps_its_words_around_the_matrix():
    page = f"before\n{BEGIN}old\n{END}after\n"
    assert written(page, []).startswith(f"before\n{BEGIN}| framework |")
    assert written(page, []).endswith(f"{END}after\n")


@pytest.mark.parametrize("name", ADAPTERS)
def test_every_framework_is_in_the_matrix_of_the_manual_and_has_a_page(name):
    assert f"| `{name}` |" in PAGE.read_text(encoding="utf-8")
    assert (PAGE.parent / f"{name}.md").is_file()
