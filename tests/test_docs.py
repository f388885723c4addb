"""The documentation is true: its code runs, its links lead somewhere, and nothing that exists is left out.

In each page the `python` blocks run in order in one namespace, and the `$ rmem …` lines of `console` blocks in
between run with the real command, in one working folder with a RMEM_HOME of its own. Output that a block shows
must occur, whatever its digits. A block that cannot run is marked `text`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

import pytest

from rmem import Filter, RecallSettings

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
TAKES_MINUTES = {"docs/benchmarks.md"}
NEEDED = {  # modules that a page needs and that are not in dev
    "agent-framework-core": "agent_framework",
    "anthropic": "anthropic",
    "autogen-core": "autogen_core",
    "claude-agent-sdk": "claude_agent_sdk",
    "crewai": "crewai",
    "google-adk": "google.adk",
    "langchain-core": "langchain_core",
    "langgraph": "langgraph",
    "llama-index-core": "llama_index.core",
    "openai-agents": "agents.memory",
    "opentelemetry": "opentelemetry.instrumentation",
    "pydantic-ai-slim": "pydantic_ai",
    "smolagents": "smolagents",
    "strands-agents": "strands",
    "engines": "faiss qdrant_client pymilvus milvus_lite langchain_core",
}
KINDS = {"python", "console", "sh", "text", "json", "sql"}
_FENCE = re.compile(r"^```(\w*)\s*$")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


class Block(NamedTuple):
    kind: str
    line: int  # of its first line of code
    code: str


def blocks(page: Path) -> Iterator[Block]:
    kind, start, lines = None, 0, []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = _FENCE.match(line)
        if fence and kind is None:
            kind, start, lines = fence[1], number + 1, []
        elif fence:
            yield Block(kind or "", start, "\n".join(lines))
            kind = None
        elif kind is not None:
            lines.append(line)
    assert kind is None, f"{name_of(page)}:{start}: a block is not closed"


def commands(block: Block) -> Iterator[tuple[int, str, list[str]]]:
    """(line, command, output shown) of a console block."""
    lines = block.code.splitlines()
    at = 0
    while at < len(lines):
        line, start = lines[at], at
        at += 1
        if not line.startswith("$ "):
            continue
        command = line[2:]
        while command.endswith("\\") and at < len(lines):
            command = f"{command}\n{lines[at]}"
            at += 1
        shown = []
        while at < len(lines) and not lines[at].startswith("$ "):
            shown.append(lines[at])
            at += 1
        yield block.line + start, command, shown


def loosely(text: str) -> str:
    """What stays the same from run to run: no digits, no amount of white space."""
    return " ".join(re.sub(r"\d+", "#", text).split())


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    bin_folder = folder / ".bin"
    if not bin_folder.exists():
        bin_folder.mkdir()
        shim = bin_folder / "rmem"
        shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m rmem "$@"\n')
        shim.chmod(0o755)
    environment = os.environ | {"PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}", "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )


@pytest.mark.parametrize("page", [p for p in PAGES if name_of(p) not in TAKES_MINUTES], ids=name_of)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    for module in NEEDED.get(page.stem, "").split():
        pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RMEM_HOME", str(tmp_path / "home"))
    namespace: dict[str, object] = {"__name__": "docs"}
    for block in blocks(page):
        if block.kind == "python":
            source = "\n" * (block.line - 1) + block.code  # so that an error names the line of the page
            exec(compile(source, name_of(page), "exec"), namespace)
        elif block.kind in ("console", "sh"):
            for line, command, shown in commands(block):
                assert "rmem" in command, f"{name_of(page)}:{line}: only rmem is run; mark the block as text"
                done = shell(command, tmp_path)
                told = f"{name_of(page)}:{line}: {command}\n{done.stdout}{done.stderr}"
                assert done.returncode == 0, told
                printed = loosely(done.stdout)
                for expected in shown:
                    for part in expected.split("…"):
                        assert loosely(part) in printed, f"not printed: {expected}\n{told}"


def test_the_store_of_the_manual_passes_the_suite(tmp_path):
    page = ROOT / "docs" / "stores.md"
    code = next(block.code for block in blocks(page) if "MemoryStoreContract" in block.code)
    (tmp_path / "test_notebook.py").write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_notebook.py"],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"\b\d+ passed", done.stdout)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_blocks_say_what_they_are(page):
    for block in blocks(page):
        assert block.kind in KINDS, f"{name_of(page)}:{block.line}: mark the block as one of {sorted(KINDS)}"


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md", ROOT / "examples/README.md"], ids=name_of)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{name_of(page)} links to {target}"


def test_every_page_can_be_reached_from_the_map():
    docs = ROOT / "docs"
    text = (docs / "index.md").read_text(encoding="utf-8") + (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    decisions = (docs / "decisions" / "index.md").read_text(encoding="utf-8")
    for page in docs.rglob("*.md"):
        listed = decisions if page.parent.name == "decisions" else text
        name = page.name if listed is decisions else page.relative_to(docs).as_posix()
        assert page.name == "index.md" or name in listed, page


def test_the_site_is_built_without_a_dead_link(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "remember" in (tmp_path / "reference" / "python" / "index.html").read_text(encoding="utf-8")


def test_every_knob_of_recall_is_described_with_its_default():
    text = (ROOT / "docs" / "recall.md").read_text(encoding="utf-8")
    defaults = RecallSettings()
    for field in fields(RecallSettings):
        value = getattr(defaults, field.name)
        shown = f'"{value}"' if isinstance(value, str) else "none" if value is None else f"{value:g}"
        assert re.search(rf"\| `{field.name}` \| `?{re.escape(shown)}`? \|", text), f"{field.name} = {shown}"


def test_every_field_of_a_filter_is_described():
    text = (ROOT / "docs" / "filters.md").read_text(encoding="utf-8")
    assert [f.name for f in fields(Filter) if f"`{f.name}`" not in text] == []


def test_every_command_and_exit_code_is_described():
    from rmem.cli import exit_codes
    from rmem.cli.app import COMMANDS

    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f"`rmem {name}" not in text] == []
    names = ("OK", "UNEXPECTED", "USAGE", "NOT_FOUND", "STORE", "EMBEDDER", "PROBLEMS", "STOPPED", "PIPE_CLOSED")
    codes = [getattr(exit_codes, name) for name in names]
    assert [code for code in codes if f"| {code} |" not in text] == []
