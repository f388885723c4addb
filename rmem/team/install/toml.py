"""Edit our MCP server in a TOML file. The result is parsed again to verify it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import ConfigError
from ...extras import require
from .commands import SERVER, serves
from .parts import Made, PartState, server_state, words_of


@dataclass(frozen=True, slots=True)
class TomlServer:
    """Our entry among the MCP servers of a TOML file: a table [mcp_servers.remanence]."""

    path: Path
    value: Mapping[str, Any]
    under: str = "mcp_servers"
    role: str = "mcp"

    def add(self, text: str | None) -> tuple[str, Made]:
        tomlkit = _tomlkit()
        before = text or ""
        known = _read(before)
        servers = known.get(self.under, {})
        if not isinstance(servers, dict):
            raise ConfigError(f"{self.under} must be a table")
        there = servers.get(SERVER)
        if there is not None and not serves(words_of(there)):
            return before, []
        if there is not None and all(there.get(key) == value for key, value in self.value.items()):
            return before, []
        expected = {**known, self.under: {**servers, SERVER: {**(there or {}), **self.value}}}
        if there is None:
            after = _append_table(before, self.under, self.value)
            if _means(after, expected):
                return after, []
        document = tomlkit.parse(before)
        listed: Any = document[self.under]
        if there is None:
            listed[SERVER] = tomlkit.inline_table()
        for key, value in self.value.items():
            listed[SERVER][key] = value
        return _verify(before, tomlkit.dumps(document), expected), []

    def remove(self, text: str, made: Made | None) -> str | None:
        tomlkit = _tomlkit()
        known = _read(text)
        servers = known.get(self.under)
        if not isinstance(servers, dict) or not serves(words_of(servers.get(SERVER))):
            return text
        rest = {key: value for key, value in servers.items() if key != SERVER}
        expected = {**known, self.under: rest} if rest else {k: v for k, v in known.items() if k != self.under}
        without = _remove_table(text, self.under, self.value)
        if without is not None and _means(without, expected):
            return without
        document = tomlkit.parse(text)
        del document[self.under][SERVER]
        if not rest:
            del document[self.under]
        return _verify(text, tomlkit.dumps(document), expected)

    def state(self, text: str | None) -> PartState:
        servers = _read(text or "").get(self.under)
        return server_state(servers.get(SERVER) if isinstance(servers, dict) else None, self.value)


def _tomlkit() -> Any:
    require("team", "editing TOML files", "tomlkit")
    import tomlkit

    return tomlkit


def _read(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(str(error)) from None


def _means(text: str, expected: Mapping[str, Any]) -> bool:
    try:
        return tomllib.loads(text) == expected
    except tomllib.TOMLDecodeError:
        return False


def _block(under: str, value: Mapping[str, Any], newline: str) -> str:
    table = _tomlkit().dumps(dict(value)).strip().splitlines()
    return newline.join([f"[{under}.{SERVER}]", *table]) + newline


def _append_table(text: str, under: str, value: Mapping[str, Any]) -> str:
    """Append a table at the end, after an empty line, where it cannot affect other tables."""
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text else newline if text.endswith(("\n", "\r\n")) else newline * 2
    return f"{text}{gap}{_block(under, value, newline)}"


def _remove_table(text: str, under: str, value: Mapping[str, Any]) -> str | None:
    """Remove the table that `_append_table` wrote; None if it is written differently."""
    newline = "\r\n" if "\r\n" in text else "\n"
    found = re.search(f"(?:\\r?\\n)?{re.escape(_block(under, value, newline))}", text)
    if found is None:
        return None
    return text[: found.start()] + text[found.end() :]


def _verify(before: str, after: str, expected: Mapping[str, Any]) -> str:
    if "\r\n" in before and not re.search(r"(?<!\r)\n", before):
        after = re.sub(r"(?<!\r)\n", "\r\n", after)
    if not _means(after, expected):
        raise ConfigError("it is written in a way that cannot be changed safely")
    return after
