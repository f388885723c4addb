"""Shared by the dialects: which kind of tool a name means, and where a payload has files, commands and results."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from hashlib import blake2b
from typing import Any

from ..events import Event, EventKind

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
_LATEST = 300.0  # seconds that a hook may start after its event
_TESTS = re.compile(
    r"\b(?:pytest|jest|vitest|go test|cargo test|npm (?:run )?test|rspec|mvn test|gradle test|tox|unittest)\b"
)


def action_of(tool: str, command: str) -> str:
    """Return our name for what a tool did."""
    name = tool.casefold()
    if name.startswith("mcp_"):
        return "mcp"
    found = _BY_TOOL.get(name, "other")
    return "test" if found == "shell" and _TESTS.search(command) else found


def command_in(given: Mapping[str, Any]) -> str:
    """Return the command line in a tool's arguments."""
    command = given.get("command", given.get("cmd", given.get("script", "")))
    if isinstance(command, list):
        words = [str(word) for word in command]
        if len(words) == 3 and words[1] in ("-c", "-lc"):
            return words[2]  # bash -lc "…"
        return " ".join(words)
    return str(command) if command else ""


def patch_in(given: Mapping[str, Any]) -> str:
    """Return the patch in a tool's arguments. Codex has it under `command`."""
    patches = [given[key] for key in ("patch", "input", "diff") if isinstance(given.get(key), str)]
    command = given.get("command")
    return "\n".join([*patches, *([command] if isinstance(command, str) and "*** Begin Patch" in command else [])])


def files_in(given: Mapping[str, Any]) -> list[str]:
    """Return the files in a tool's arguments."""
    found = [str(given[key]) for key in _FILE_KEYS if isinstance(given.get(key), str) and given[key]]
    found += [added or changed for added, changed in _IN_PATCH.findall(patch_in(given))]
    several = given.get("paths") or given.get("files")
    if isinstance(several, list):
        found += [path for path in several if isinstance(path, str)]
    return list(dict.fromkeys(found))


def parse_object(value: Any) -> Any:
    """Parse a JSON object given as text; return anything else unchanged."""
    if not isinstance(value, str) or not value.lstrip().startswith("{"):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def text_of(value: Any) -> str:
    """Return a tool's result as text: its streams, its content, or its JSON."""
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
    """Return whether a tool failed, if its result says so; else None."""
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
    """Return a command's output and whether it failed; if it printed nothing, the exit code is the output."""
    return output if output.strip() or code == 0 else f"Exit code {code}", code != 0


def new_event(
    agent: str, kind: EventKind, payload: Mapping[str, Any], session: object, cwd: object, **more: Any
) -> Event:
    """Build an event. The same occurrence always gets the same id, from the tool's call number if there is one."""
    known = payload.get("tool_use_id") or payload.get("tool_call_id") or payload.get("call_id") or payload.get("callID")
    now = time.time()
    told = {name: value for name, value in payload.items() if name != "time"}
    unique = str(known) if known else f"{json.dumps(told, sort_keys=True, default=str)}{int(now)}"
    number = event_id(agent, session, kind, unique)
    return Event(number, agent, kind, str(session or "unknown"), str(cwd or ""), _time_of(payload, now), **more)


def _time_of(payload: Mapping[str, Any], now: float) -> float:
    """Return when an event happened, if the agent says so and it was a moment ago: on a busy machine hooks start late,
    and those that an agent does not wait for overtake each other."""
    given = payload.get("time", payload.get("timestamp"))
    try:
        when = datetime.fromisoformat(given).timestamp() if isinstance(given, str) else float(given or 0) / 1000
    except (ValueError, TypeError, OverflowError, OSError):
        return now
    return when if now - _LATEST < when <= now else now


def event_id(agent: str, session: object, kind: EventKind, unique: str) -> str:
    """Return the id of an event, the same wherever it is read; `unique` is the number of a tool call, if it has one."""
    identity = f"{agent}\0{session}\0{kind}\0{unique}"
    return blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def session_event(
    agent: str, kind: EventKind | None, payload: Mapping[str, Any], session: object, cwd: object
) -> Event | None:
    """Build an event that is not a tool call; None for a kind we do not use."""
    if kind is None:
        return None
    if kind is EventKind.PROMPT:
        return new_event(agent, kind, payload, session, cwd, prompt=str(payload.get("prompt") or ""))
    if kind is EventKind.STOP:
        message = payload.get("last_assistant_message") or payload.get("prompt_response")
        return new_event(agent, kind, payload, session, cwd, message=str(message or ""))
    if kind is EventKind.SESSION_START:
        source = payload.get("source") or "startup"
    else:
        source = payload.get("reason" if kind is EventKind.SESSION_END else "trigger")
    return new_event(agent, kind, payload, session, cwd, source=str(source or ""))


def tool_event(
    agent: str, payload: Mapping[str, Any], session: object, cwd: object, tool: str, given: Any, out: Any,
    *, failed: bool | None = None,
) -> Event:  # fmt: skip
    """Build the event of a tool call."""
    arguments = dict(given) if isinstance(given, Mapping) else {"input": given} if given else {}
    command = command_in(arguments)
    return new_event(
        agent,
        EventKind.TOOL,
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
    """Format an answer as Claude Code expects it; other agents use the same format."""
    return json.dumps({"hookSpecificOutput": {"hookEventName": name, "additionalContext": context}})
