"""Shared by the dialects: which kind of tool a name means, and where a payload has files, commands and results."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

from ..events import Event, Kind

_ACTIONS = {
    "shell": "bash shell run_shell_command run_terminal_cmd exec_command local_shell terminal powershell execute "
    "execute_command",
    "edit": "edit multiedit write notebookedit apply_patch write_file replace edit_file search_replace create "
    "str_replace str_replace_editor patch insert create_file delete_file",
    "read": "read read_file view notebookread read_many_files open open_file cat",
    "search": "grep glob ls list list_directory list_dir search_file_content codebase_search file_search find rg tree",
    "web": "webfetch websearch web_fetch web_search google_web_search fetch browser",
}
_BY_TOOL = {tool: action for action, tools in _ACTIONS.items() for tool in tools.split()}
_FILE_KEYS = ("file_path", "path", "filePath", "absolute_path", "notebook_path", "filename", "file", "target_file")
_IN_PATCH = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\+\+\+ (?:b/)?(\S+)", re.MULTILINE)
_TESTS = re.compile(
    r"\b(?:pytest|jest|vitest|go test|cargo test|npm (?:run )?test|rspec|mvn test|gradle test|tox|unittest)\b"
)


def action_of(tool: str, command: str) -> str:
    """Our name for what a tool did."""
    name = tool.casefold()
    if name.startswith("mcp_"):
        return "mcp"
    found = _BY_TOOL.get(name, "other")
    return "test" if found == "shell" and _TESTS.search(command) else found


def command_in(given: Mapping[str, Any]) -> str:
    """The command line that a tool was given, as one text."""
    command = given.get("command", given.get("cmd", given.get("script", "")))
    if isinstance(command, list):
        words = [str(word) for word in command]
        if len(words) == 3 and words[1] in ("-c", "-lc"):
            return words[2]  # bash -lc "…"
        return " ".join(words)
    return str(command) if command else ""


def patch_in(given: Mapping[str, Any]) -> str:
    """The patch that a tool was given. Codex has it under `command`."""
    patches = [given[key] for key in ("patch", "input", "diff") if isinstance(given.get(key), str)]
    command = given.get("command")
    return "\n".join([*patches, *([command] if isinstance(command, str) and "*** Begin Patch" in command else [])])


def files_in(given: Mapping[str, Any]) -> list[str]:
    """The files that a tool was given."""
    found = [str(given[key]) for key in _FILE_KEYS if isinstance(given.get(key), str) and given[key]]
    found += [added or changed for added, changed in _IN_PATCH.findall(patch_in(given))]
    several = given.get("paths") or given.get("files")
    if isinstance(several, list):
        found += [path for path in several if isinstance(path, str)]
    return list(dict.fromkeys(found))


def parse_object(value: Any) -> Any:
    """A JSON object that came as text, as an object; anything else as it is."""
    if not isinstance(value, str) or not value.lstrip().startswith("{"):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def text_of(value: Any) -> str:
    """What came out of a tool, as text: its streams, its content, or itself as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        parts = [value[key] for key in ("stdout", "stderr", "output", "error", "aggregated_output") if value.get(key)]
        if not parts and "content" in value:
            return text_of(value["content"])
        if not parts and "llmContent" in value:
            return text_of(value["llmContent"])
        return "\n".join(map(text_of, parts)) if parts else json.dumps(value, ensure_ascii=False)
    if isinstance(value, Iterable):
        return "\n".join(
            text_of(part.get("text") if isinstance(part, Mapping) and "text" in part else part) for part in value
        )
    return str(value)


def outcome_of(value: Any) -> bool | None:
    """Whether a tool failed, as far as what came out of it says."""
    if not isinstance(value, Mapping):
        return None
    for key in ("exit_code", "exitCode", "exit_status", "returncode", "code"):
        if isinstance(value.get(key), int) and not isinstance(value[key], bool):
            return bool(value[key] != 0)
    for key in ("is_error", "isError", "interrupted"):
        if value.get(key) is True:
            return True
    if "success" in value and isinstance(value["success"], bool):
        return not value["success"]
    return True if value.get("error") else None


def parse_exit(output: str, code: int) -> tuple[str, bool]:
    """What a command printed, and whether it failed; one that printed nothing is told by its exit code."""
    return output if output.strip() or code == 0 else f"Exit code {code}", code != 0


def new_event(agent: str, kind: Kind, payload: Mapping[str, Any], session: object, cwd: object, **more: Any) -> Event:
    """An event. The same moment, told twice, has the same id; where the tool numbers its calls, by that number."""
    known = payload.get("tool_use_id") or payload.get("tool_call_id") or payload.get("call_id") or payload.get("callID")
    now = time.time()
    unique = str(known) if known else f"{json.dumps(payload, sort_keys=True, default=str)}{int(now)}"
    identity = f"{agent}\0{session}\0{kind}\0{unique}"
    number = blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    return Event(number, agent, kind, str(session or "unknown"), str(cwd or ""), now, **more)


def session_event(
    agent: str, kind: Kind | None, payload: Mapping[str, Any], session: object, cwd: object
) -> Event | None:
    """A moment that is no tool's; None if it is of no kind that we listen to."""
    if kind is None:
        return None
    if kind is Kind.PROMPT:
        return new_event(agent, kind, payload, session, cwd, prompt=str(payload.get("prompt") or ""))
    if kind is Kind.STOP:
        message = payload.get("last_assistant_message") or payload.get("prompt_response")
        return new_event(agent, kind, payload, session, cwd, message=str(message or ""))
    if kind is Kind.SESSION_START:
        source = payload.get("source") or "startup"
    else:
        source = payload.get("reason" if kind is Kind.SESSION_END else "trigger")
    return new_event(agent, kind, payload, session, cwd, source=str(source or ""))


def tool_event(
    agent: str, payload: Mapping[str, Any], session: object, cwd: object, tool: str, given: Any, out: Any,
    *, failed: bool | None = None,
) -> Event:  # fmt: skip
    """The use of a tool."""
    arguments = dict(given) if isinstance(given, Mapping) else {"input": given} if given else {}
    command = command_in(arguments)
    return new_event(
        agent,
        Kind.TOOL,
        payload,
        session,
        cwd,
        tool=tool,
        action=action_of(tool, command),
        command=command,
        files=files_in(arguments),
        input=arguments,
        output=text_of(out),
        failed=outcome_of(out) if failed is None else failed,
    )


def hook_specific(name: str, context: str) -> str:
    """An answer in the form that Claude Code has and others took over."""
    return json.dumps({"hookSpecificOutput": {"hookEventName": name, "additionalContext": context}})
