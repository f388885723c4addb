"""Claude's memory tool: the SDK's own tests of its file system tool, and what is ours alone."""

from __future__ import annotations

import pytest

pytest.importorskip("anthropic", reason="anthropic is not installed: make test-frameworks")

from anthropic.lib.tools import ToolError
from upstream import outcomes, sources

from rmem import Brain
from rmem.integrations.anthropic import BrainMemoryTool

_FILE = "tests/lib/tools/memory_tools/test_filesystem.py"
ON_DISK = [  # they write to the disk behind the tool, or look at modes of its folders
    "test_mkdir_parents_not_world_writable_under_permissive_umask",
    "test_view_preserves_crlf_line_endings",
    "test_str_replace_preserves_crlf_line_endings",
    "test_insert_preserves_crlf_line_endings",
    "test_validate_path_returns_resolved_path_not_symlink_target",
    "test_symlink_validation_reject_symlink_pointing_outside_memories",
    "test_symlink_validation_reject_creating_files_through_symlink_pointing_outside",
    "test_symlink_validation_reject_parent_directory_that_is_symlink_pointing_outside",
    "test_read_rejects_symlink_created_after_validation",
    "test_read_rejects_file_replaced_with_symlink_before_open",
    "test_view_rejects_directory_symlink_created_after_validation",
    "test_view_lists_symlinks_only_when_they_stay_inside_memories",
    "test_view_error_for_files_with_too_many_lines",  # 5 MB: a memory takes 4, so that it is refused when it is created
]


@pytest.mark.framework("anthropic", "its own tests")
def test_the_tests_of_the_file_system_tool_pass(tmp_path, record_property):
    names = ("TestBetaLocalFilesystemMemoryTool", "TestBetaAsyncLocalFilesystemMemoryTool")
    deselect = [f"{_FILE}::{name}::{test}" for name in names for test in ON_DISK]
    root = sources("anthropic", tmp_path)
    counted = outcomes(root, [_FILE], "replace_anthropic", deselect=deselect, alone=True)
    record_property("counted", counted["passed"])
    assert counted.keys() <= {"passed", "deselected", "warning", "warnings"}
    assert counted["passed"] > 50


@pytest.fixture
def brain():
    with Brain(":memory:") as brain:
        yield brain


def call(brain: Brain, command: str, path: str = "", **rest: object) -> str:
    return str(BrainMemoryTool(brain).call({"command": command, **({"path": path} if path else {}), **rest}))


def test_what_claude_writes_is_found_by_recall_and_by_the_next_tool(brain):
    call(brain, "create", "/memories/people/ann.md", file_text="Ann's dog is called Bruno\n")
    assert brain.recall("dog", k=1)[0].text == "Ann's dog is called Bruno\n"
    call(brain, "str_replace", "/memories/people/ann.md", old_str="Bruno", new_str="Rex")
    assert "Rex" in brain.recall("dog", k=1)[0].text
    assert "24B\t/memories/people/ann.md" in call(brain, "view", "/memories")


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "memories/a",
        "/memories/../etc/passwd",
        "/memories/a/../../b",
        "/memories_of_others/a",
        "/memoriesx",
    ],
)
@pytest.mark.parametrize("command", ["view", "create", "delete", "insert", "str_replace"])
def test_no_path_leads_outside(brain, path, command):
    with pytest.raises(ToolError, match=r"must start with /memories|would escape"):
        call(brain, command, path, file_text="x", insert_line=0, insert_text="x", old_str="a", new_str="b")
    assert brain.count() == 0


@pytest.mark.parametrize(("old", "new"), [("/memories/a", "/memories/../a"), ("/memories/../a", "/memories/b")])
def test_no_rename_leads_outside(brain, old, new):
    call(brain, "create", "/memories/a", file_text="kept")
    with pytest.raises(ToolError, match="would escape"):
        call(brain, "rename", old_path=old, new_path=new)
    assert [memory.text for memory in brain.memories()] == ["kept"]


def test_a_folder_moves_and_goes_with_all_that_is_in_it(brain):
    for name in ("a", "b", "deep/c"):
        call(brain, "create", f"/memories/old/{name}", file_text=name)
    call(brain, "create", "/memories/older", file_text="another")
    call(brain, "rename", old_path="/memories/old", new_path="/memories/new")
    assert "1\tdeep/c" in call(brain, "view", "/memories/new/deep/c")
    with pytest.raises(ToolError, match="does not exist"):
        call(brain, "view", "/memories/old")
    with pytest.raises(ToolError, match="into itself"):
        call(brain, "rename", old_path="/memories/new", new_path="/memories/new/inside")
    call(brain, "delete", "/memories/new")
    assert [memory.text for memory in brain.memories()] == ["another"]


def test_an_empty_file_stays_empty_and_line_ends_stay(brain):
    call(brain, "create", "/memories/empty", file_text="")
    assert call(brain, "view", "/memories/empty").endswith("     1\t")
    call(brain, "insert", "/memories/empty", insert_line=0, insert_text="first")
    assert brain.recall("first", k=1)[0].text == "first\n"
    call(brain, "create", "/memories/crlf", file_text="one\r\ntwo\r\n")
    call(brain, "insert", "/memories/crlf", insert_line=1, insert_text="between")
    assert call(brain, "view", "/memories/crlf").endswith("     1\tone\r\n     2\tbetween\n     3\ttwo\r\n     4\t")


def test_a_file_is_not_a_folder(brain):
    call(brain, "create", "/memories/a", file_text="x")
    with pytest.raises(ToolError, match="is a file"):
        call(brain, "create", "/memories/a/b", file_text="x")


def test_what_a_memory_cannot_hold_is_told_to_claude(brain):
    with pytest.raises(ToolError, match="NUL"):
        call(brain, "create", "/memories/a", file_text="a\x00b")


def test_a_privacy_policy_keeps_a_token_out():
    with Brain(":memory:", privacy="default") as brain:
        call(brain, "create", "/memories/a", file_text="the key is ghp_" + "a1B2" * 9)
        assert "ghp_a1B2" not in call(brain, "view", "/memories/a")
