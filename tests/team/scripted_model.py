"""A model that plays a script, for real coding agents in tests: it runs one command after another in the agent's
shell, then says why. It speaks the interfaces of Anthropic, OpenAI (responses and chat) and Gemini, and keeps every
request."""

from __future__ import annotations

import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

SHELL = re.compile(r"bash|shell|shell_command|exec_command|run_shell_command", re.IGNORECASE)
RESULT = re.compile(r'"tool_result"|call_output"|"role": "tool"|"functionResponse"')


class ScriptedModel:
    """`with ScriptedModel(["make test", …], "It failed because …") as model: …`; `model.url` is its address."""

    def __init__(self, commands: list[str], last: str) -> None:
        self.commands, self.last = commands, last
        self.requests: list[dict[str, Any]] = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_HEAD(self) -> None:
                self._send(b"", "text/plain")

            def do_GET(self) -> None:
                self._send(b'{"object": "list", "data": [{"id": "gpt-5", "object": "model"}]}', "application/json")

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or b"{}")
                self._send(*model.reply(self.path.partition("?")[0], body))

            def _send(self, data: bytes, kind: str) -> None:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> ScriptedModel:
        Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def reply(self, path: str, body: dict[str, Any]) -> tuple[bytes, str]:
        said = body.get("messages") or body.get("input") or body.get("contents") or []
        self.requests.append({"step": len(RESULT.findall(json.dumps(said))), "said": json.dumps(said)})
        for end, speak in (
            ("/messages", self._anthropic),
            ("/responses", self._responses),
            ("/chat/completions", self._chat),
        ):
            if path.endswith(end):
                return _stream(speak(*self._step(body.get("tools") or [])))
        if path.endswith("enerateContent"):
            tools = [one for group in body.get("tools") or [] for one in group.get("functionDeclarations", [])]
            return _stream([self._gemini(*self._step(tools))])
        return b'{"input_tokens": 1, "totalTokens": 1}', "application/json"

    def _step(self, tools: list[dict[str, Any]]) -> tuple[int, str | None, dict[str, Any]]:
        """Return the step, and the tool to call with its arguments; None to end."""
        step = self.requests[-1]["step"]
        for tool in (one.get("function", one) for one in tools):
            if SHELL.fullmatch(tool.get("name", "")) and step < len(self.commands):
                schema = next(
                    (tool[key] for key in ("parameters", "input_schema", "parametersJsonSchema") if key in tool), {}
                )
                known = schema.get("properties", {})
                given = {name: "run it" for name in schema.get("required", ()) if known[name].get("type") == "string"}
                name = "cmd" if "cmd" in known else "command"
                line = self.commands[step]
                return (
                    step,
                    tool["name"],
                    {**given, name: ["bash", "-lc", line] if known[name].get("type") == "array" else line},
                )
        return step, None, {}

    def _anthropic(self, step: int, tool: str | None, given: dict[str, Any]) -> list[dict[str, Any]]:
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {"id": f"msg_{step}", "type": "message", "role": "assistant", "model": "m", "content": [],
                   "stop_reason": None, "stop_sequence": None, "usage": usage}  # fmt: skip
        block = (
            {"type": "tool_use", "id": f"toolu_{step}", "name": tool, "input": {}}
            if tool
            else {"type": "text", "text": ""}
        )
        part = (
            {"type": "input_json_delta", "partial_json": json.dumps(given)}
            if tool
            else {"type": "text_delta", "text": self.last}
        )
        end = {"stop_reason": "tool_use" if tool else "end_turn", "stop_sequence": None}
        return [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": part},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": end, "usage": usage},
            {"type": "message_stop"},
        ]

    def _responses(self, step: int, tool: str | None, given: dict[str, Any]) -> list[dict[str, Any]]:
        said = {"type": "message", "id": f"m_{step}", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": self.last, "annotations": []}]}  # fmt: skip
        call = {"type": "function_call", "id": f"fc_{step}", "call_id": f"call_{step}", "name": tool,
                "arguments": json.dumps(given), "status": "completed"}  # fmt: skip
        item = call if tool else said
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        answer = {"id": f"resp_{step}", "object": "response", "status": "completed", "output": [item], "usage": usage}
        return [
            {"type": "response.created", "response": {**answer, "status": "in_progress", "output": []}},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": answer},
        ]

    def _chat(self, step: int, tool: str | None, given: dict[str, Any]) -> list[dict[str, Any]]:
        call = {"index": 0, "id": f"call_{step}", "type": "function",
                "function": {"name": tool, "arguments": json.dumps(given)}}  # fmt: skip
        said = (
            {"role": "assistant", "content": None, "tool_calls": [call]}
            if tool
            else {"role": "assistant", "content": self.last}
        )
        about = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        end = "tool_calls" if tool else "stop"
        return [
            {**about, "choices": [{"index": 0, "delta": said, "finish_reason": None}]},
            {**about, "choices": [{"index": 0, "delta": {}, "finish_reason": end}]},
        ]

    def _gemini(self, step: int, tool: str | None, given: dict[str, Any]) -> dict[str, Any]:
        part = {"functionCall": {"name": tool, "args": given}} if tool else {"text": self.last}
        return {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}]}


def _stream(events: list[dict[str, Any]]) -> tuple[bytes, str]:
    named = (f"event: {event['type']}\n" if "type" in event else "" for event in events)
    text = "".join(f"{name}data: {json.dumps(event)}\n\n" for name, event in zip(named, events, strict=True))
    return f"{text}data: [DONE]\n\n".encode() if '"chat.completion' in text else text.encode(), "text/event-stream"
