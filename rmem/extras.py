"""Import optional libraries; if one is missing, say in one sentence which extra installs it."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from .errors import ConfigError

MODULES: dict[str, tuple[str, ...]] = {  # a test compares them with pyproject.toml
    "dates": ("dateparser",),
    "deeplake": ("deeplake",),
    "faiss": ("faiss",),
    "anthropic": ("anthropic",),
    "langchain": ("langchain_core",),
    "langgraph": ("langgraph",),
    "mcp": ("mcp",),
    "google-adk": ("google.adk",),
    "pydantic-ai": ("pydantic_ai",),
    "llama-index": ("llama_index.core",),
    "autogen": ("autogen_core",),
    "crewai": ("crewai",),
    "smolagents": ("smolagents",),
    "strands": ("strands",),
    "agent-framework": ("agent_framework",),
    "claude-agent-sdk": ("claude_agent_sdk",),
    "milvus": ("pymilvus",),
    "openai-agents": ("agents",),
    "otel": ("opentelemetry.instrumentation", "wrapt"),
    "parquet": ("pyarrow",),
    "pdf": ("pypdf",),
    "graph": ("networkx",),
    "pgvector": ("psycopg", "psycopg_pool", "pgvector"),
    "postgres": ("psycopg", "psycopg_pool", "pgvector", "sqlglot"),
    "privacy": ("cryptography", "phonenumbers", "stdnum"),
    "qdrant": ("qdrant_client",),
    "redis": ("redis",),
    "sentence-transformers": ("sentence_transformers",),
    "server": ("fastapi", "jwt", "mcp", "prometheus_client", "sqlalchemy", "sqlglot", "uvicorn"),
    "tables": ("sqlglot", "regex"),
    "team": ("mcp", "tomlkit"),
    "yaml": ("yaml",),
}


def require(extra: str, needed_by: str, *modules: str) -> None:
    """Raise ConfigError with the install command if a library of an extra is missing: require("pdf", "page.pdf").

    `modules` are those of the extra that are needed; default: all. Nothing is imported, which would take time."""
    for module in modules or MODULES[extra]:
        if sys.modules.get(module) is None and not _is_installed(module):
            raise ConfigError(sentence(extra, needed_by, module))


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of a dotted name: its parent is missing
        return False


def sentence(extra: str, needed_by: str, module: str) -> str:
    # Double quotes, because cmd.exe knows no others.
    return f'{needed_by} needs {module}, which is not installed; install it with: pip install "rmem[{extra}]"'


def explain(error: ModuleNotFoundError) -> str | None:
    """Return the sentence for a failed import, with the smallest extra that installs the module; None if none does."""
    module = (error.name or "").partition(".")[0]
    extras = [extra for extra, modules in MODULES.items() if module in modules]
    return sentence(min(extras, key=lambda extra: len(MODULES[extra])), "this command", module) if extras else None
