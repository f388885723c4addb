"""Clients of the official SDK, used one conversation at a time."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import Implementation

LEGACY, MODERN = "legacy", "auto"
ETL = "github.com/acme/etl"


def clone(folder: Path, name: str, repository: str = "etl") -> Path:
    """A working copy of a repository whose user is called so."""
    path = folder / f"{name}-{repository}"
    path.mkdir()
    for words in (
        "init -q -b main",
        f"remote add origin git@github.com:acme/{repository}.git",
        f"config user.email {name}@acme.io",
    ):
        subprocess.run(["git", *words.split()], cwd=path, check=True)
    return path


@dataclass
class Talk:
    """How to reach a server. Each `with_` is a conversation from its beginning to its end."""

    client: Callable[[], AbstractAsyncContextManager[Client]]

    @classmethod
    def stdio(cls, folder: Path, *more: str, name: str = "claude-code", mode: str = LEGACY) -> Talk:
        @asynccontextmanager
        async def client() -> AsyncIterator[Client]:
            arguments = ["-m", "rmem", *more, "mcp", "--project", str(folder)]
            server = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))
            info = Implementation(name=name, version="1")
            async with Client(stdio_client(server), mode=mode, client_info=info) as made:
                yield made

        return cls(client)

    @classmethod
    def http(
        cls,
        server: Any,
        workspace: str,
        token: str,
        repository: str | None = ETL,
        *,
        mode: str = LEGACY,
        **headers: str,
    ) -> Talk:
        sent = {"Authorization": f"Bearer {token}", **headers}
        if repository is not None:
            sent["X-Rmem-Repository"] = repository

        @asynccontextmanager
        async def client() -> AsyncIterator[Client]:
            address = f"{server.url}/workspaces/{workspace}/mcp"
            async with (
                httpx2.AsyncClient(headers=sent, timeout=60) as http,
                Client(streamable_http_client(address, http_client=http), mode=mode) as made,
            ):
                yield made

        return cls(client)

    def having(self, conversation: Callable[[Client], Awaitable[Any]]) -> Any:
        async def had() -> Any:
            async with self.client() as client:
                return await conversation(client)

        return asyncio.run(had())

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """What a tool answers."""
        return self.having(lambda client: answer(client, tool, **arguments))

    def refusal(self, tool: str, **arguments: Any) -> str:
        """What a tool says that it will not do."""
        return self.having(lambda client: refusal(client, tool, **arguments))


async def answer(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.structured_content
    assert "Traceback" not in result.content[0].text
    return result.content[0].text
