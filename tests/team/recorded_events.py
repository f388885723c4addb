"""Events as each coding agent tells them, for the tests that drive the real hook commands. Every tool tells the same
story in its own words: a session starts, a task, a command that fails, an edit, the command again, the end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Story:
    """What happens in a session."""

    session: str
    cwd: str
    task: str
    command: str
    error: str
    file: str
    old: str
    new: str
    passed: str


Told = Iterator[tuple[str, dict[str, Any]]]
"""(name of the event, its JSON)"""


def claude_code(s: Story) -> Told:
    base = {
        "session_id": s.session,
        "cwd": s.cwd,
        "transcript_path": "/transcripts/1.jsonl",
        "permission_mode": "default",
    }
    yield "SessionStart", {**base, "hook_event_name": "SessionStart", "source": "startup", "model": "claude-opus"}
    yield "UserPromptSubmit", {**base, "hook_event_name": "UserPromptSubmit", "prompt": s.task}
    ran = {"tool_name": "Bash", "tool_input": {"command": s.command, "description": "Run the tests"}}
    yield "PostToolUseFailure", {**base, **ran, "tool_use_id": "toolu_1", "error": s.error, "is_interrupt": False}
    edit = {"file_path": s.file, "old_string": s.old, "new_string": s.new, "replace_all": False}
    done = {"filePath": s.file, "oldString": s.old, "newString": s.new, "userModified": False}
    yield (
        "PostToolUse",
        {**base, "tool_name": "Edit", "tool_use_id": "toolu_2", "tool_input": edit, "tool_response": done},
    )
    out = {"stdout": s.passed, "stderr": "", "interrupted": False, "isImage": False}
    yield "PostToolUse", {**base, **ran, "tool_use_id": "toolu_3", "tool_response": out}
    yield "Stop", {**base, "hook_event_name": "Stop", "stop_hook_active": False}
    yield "SessionEnd", {**base, "hook_event_name": "SessionEnd", "reason": "prompt_input_exit"}


def codex(s: Story) -> Told:
    base = {"session_id": s.session, "turn_id": "1", "cwd": s.cwd, "transcript_path": None, "model": "gpt-5-codex"}
    yield "SessionStart", {**base, "hook_event_name": "SessionStart", "source": "startup"}
    yield "UserPromptSubmit", {**base, "hook_event_name": "UserPromptSubmit", "prompt": s.task}
    ran = {"tool_name": "Bash", "tool_input": {"command": s.command}}
    failed = {"output": s.error, "metadata": {"exit_code": 1, "duration_seconds": 2.1}, "exit_code": 1}
    yield "PostToolUse", {**base, **ran, "tool_use_id": "call_1", "tool_response": failed}
    patch = f"*** Begin Patch\n*** Update File: {s.file}\n@@\n-{s.old}\n+{s.new}\n*** End Patch"
    yield "PostToolUse", {**base, "tool_name": "apply_patch", "tool_use_id": "call_2", "tool_input": {"patch": patch},
                          "tool_response": {"output": "Success", "exit_code": 0}}  # fmt: skip
    yield "PostToolUse", {**base, **ran, "tool_use_id": "call_3", "tool_response": {"output": s.passed, "exit_code": 0}}
    yield "Stop", {**base, "hook_event_name": "Stop", "last_assistant_message": "Done."}
    yield "SessionEnd", {**base, "hook_event_name": "SessionEnd", "reason": "exit"}


def gemini(s: Story) -> Told:
    base = {"session_id": s.session, "cwd": s.cwd, "transcript_path": "/t.json", "timestamp": "2026-05-01T10:00:00Z"}
    yield "SessionStart", {**base, "hook_event_name": "SessionStart", "source": "startup"}
    yield "BeforeAgent", {**base, "hook_event_name": "BeforeAgent", "prompt": s.task}
    ran = {"tool_name": "run_shell_command", "tool_input": {"command": s.command}}
    broken = {"llmContent": f"Command: {s.command}\nOutput: {s.error}\nExit Code: 1", "error": {"message": s.error}}
    yield "AfterTool", {**base, **ran, "tool_call_id": "1", "tool_response": broken}
    edit = {"file_path": s.file, "old_string": s.old, "new_string": s.new}
    yield "AfterTool", {**base, "tool_name": "replace", "tool_call_id": "2", "tool_input": edit,
                        "tool_response": {"llmContent": "Modified the file", "returnDisplay": "…"}}  # fmt: skip
    fine = {"llmContent": f"Command: {s.command}\nOutput: {s.passed}\nExit Code: 0", "returnDisplay": s.passed}
    yield "AfterTool", {**base, **ran, "tool_call_id": "3", "tool_response": fine}
    yield "AfterAgent", {**base, "prompt": s.task, "prompt_response": "Done.", "stop_hook_active": False}
    yield "SessionEnd", {**base, "hook_event_name": "SessionEnd", "reason": "exit"}


def cursor(s: Story) -> Told:
    base = {"conversation_id": s.session, "generation_id": "g", "model": "gpt-5", "workspace_roots": [s.cwd],
            "cursor_version": "2.4", "user_email": None}  # fmt: skip
    yield "sessionStart", {**base, "hook_event_name": "sessionStart", "is_background_agent": False}
    yield "beforeSubmitPrompt", {**base, "generation_id": "1", "prompt": s.task, "attachments": []}
    yield (
        "afterShellExecution",
        {**base, "generation_id": "2", "command": s.command, "output": s.error, "duration": 2000},
    )
    edits = [{"old_string": s.old, "new_string": s.new}]
    yield "afterFileEdit", {**base, "generation_id": "3", "file_path": s.file, "edits": edits}
    yield (
        "afterShellExecution",
        {**base, "generation_id": "4", "command": s.command, "output": s.passed, "duration": 1900},
    )
    yield "stop", {**base, "status": "completed", "loop_count": 0}
    yield "sessionEnd", {**base, "session_id": s.session, "reason": "completed", "duration_ms": 60000}


def opencode(s: Story) -> Told:
    base = {"sessionID": s.session, "directory": s.cwd, "worktree": s.cwd}
    yield "session.created", {**base, "source": "startup"}
    yield "chat.message", {**base, "messageID": "msg_1", "agent": "build", "prompt": s.task}
    ran = {"tool": "bash", "args": {"command": s.command, "description": "tests"}, "title": "tests"}
    yield "tool.execute.after", {**base, **ran, "callID": "c1", "output": s.error, "metadata": {"exit": 1}}
    edit = {"filePath": s.file, "oldString": s.old, "newString": s.new}
    yield "tool.execute.after", {**base, "tool": "edit", "callID": "c2", "args": edit, "output": "", "metadata": {}}
    yield "tool.execute.after", {**base, **ran, "callID": "c3", "output": s.passed, "metadata": {"exit": 0}}
    yield "session.idle", base
    yield "session.deleted", base


def copilot(s: Story) -> Told:
    base = {"sessionId": s.session, "cwd": s.cwd, "timestamp": 1777632000000}
    yield "sessionStart", {**base, "source": "new", "initialPrompt": ""}
    yield "userPromptSubmitted", {**base, "prompt": s.task}
    ran = {"toolName": "bash", "toolArgs": f'{{"command": "{s.command}"}}'}
    broken = {"resultType": "failure", "textResultForLlm": s.error}
    yield "postToolUse", {**base, **ran, "timestamp": 1777632001000, "toolResult": broken}
    edit = {"path": s.file, "old_str": s.old, "new_str": s.new}
    yield "postToolUse", {**base, "timestamp": 1777632002000, "toolName": "edit", "toolArgs": edit,
                          "toolResult": {"resultType": "success", "textResultForLlm": "edited"}}  # fmt: skip
    fine = {"resultType": "success", "textResultForLlm": s.passed}
    yield "postToolUse", {**base, **ran, "timestamp": 1777632003000, "toolResult": fine}
    yield "agentStop", {**base, "stopReason": "end_turn"}
    yield "sessionEnd", {**base, "reason": "complete"}


TOLD = {
    "claude-code": claude_code, "codex": codex, "gemini": gemini, "cursor": cursor, "opencode": opencode,
    "copilot": copilot,
}  # fmt: skip
PROMPT = {
    "claude-code": "UserPromptSubmit", "codex": "UserPromptSubmit", "gemini": "BeforeAgent",
    "cursor": "beforeSubmitPrompt", "opencode": "chat.message", "copilot": "userPromptSubmitted",
}  # fmt: skip
