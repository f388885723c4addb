"""Gemini CLI: hooks of ~/.gemini/settings.json. Prompts come as BeforeAgent and tools as AfterTool, whose tool_response
has llmContent, returnDisplay and perhaps error. The llmContent of a command is "Output: …", then "Exit Code: N" if it
is not 0, since 0.60 inside <untrusted_context>. What a hook said when the session started stands before the first
prompt, in <hook_context>, if the prompt was given on the command line. Nothing but JSON may be printed."""

from __future__ import annotations

import re
from typing import Any

from ..events import Event, EventKind
from .payloads import hook_specific, parse_exit, session_event, text_of, tool_event

AGENT = "gemini"
_MOMENTS = {
    "SessionStart": EventKind.SESSION_START,
    "BeforeAgent": EventKind.PROMPT,
    "AfterAgent": EventKind.STOP,
    "SessionEnd": EventKind.SESSION_END,
}
_SHELL = "run_shell_command"
_SAID_BY_HOOKS = re.compile(r"\A\s*<hook_context>.*?</hook_context>\s*", re.DOTALL)
_WRAPPED = re.compile(r"\A\s*<untrusted_context>\n?(.*?)\s*</untrusted_context>\s*\Z", re.DOTALL)
_OUTPUT = re.compile(r"\A(?:Command: .*\n)?(?:Directory: .*\n)?(?:Output|Stdout): ?")
_PARTS = r"(?:Exit Code|Signal|Background PIDs|Process Group PGID): ?.*"
_TRAILER = re.compile(rf"(?:\A|\n){_PARTS}(?:\n{_PARTS})*\s*\Z")
_CODE = re.compile(r"^Exit Code: (\d+)", re.MULTILINE)
_SIGNAL = re.compile(r"^Signal: (?!\(none\))\S", re.MULTILINE)
_NOT_OVER = re.compile(r"\ACommand (?:was (?:automatically )?cancelled|moved to background)")
answer = hook_specific


def read(name: str, payload: dict[str, Any]) -> Event | None:
    session, cwd = payload.get("session_id"), payload.get("cwd")
    if name != "AfterTool":
        payload = {**payload, "prompt": _SAID_BY_HOOKS.sub("", str(payload.get("prompt") or ""))}
        return session_event(AGENT, _MOMENTS.get(name), payload, session, cwd)
    tool, out = str(payload.get("tool_name") or ""), payload.get("tool_response")
    failed = None
    if tool == _SHELL and isinstance(out, dict) and "llmContent" in out:
        text = _WRAPPED.sub(r"\1", text_of(out["llmContent"]))
        if _NOT_OVER.match(text):
            return None
        rest = _OUTPUT.sub("", text, count=1)
        end = _TRAILER.search(rest)
        trailer = end[0] if end else ""
        code = _CODE.search(trailer)
        printed = rest[: end.start()] if end else rest
        printed = "" if printed.strip() == "(empty)" else printed
        out, failed = parse_exit(printed, int(code[1]) if code else 1 if _SIGNAL.search(trailer) else 0)
    return tool_event(AGENT, payload, session, cwd, tool, payload.get("tool_input"), out, failed=failed)
