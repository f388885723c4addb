"""The wheel with the core's own dependencies and nothing else: what works, and what is said where an extra is
missing."""

from __future__ import annotations

import json
import tomllib

import environments
import pytest
from packaging.requirements import Requirement

from rmem import extras


@pytest.fixture(scope="session")
def installed(tmp_path_factory, own_wheel):
    return environments.environment(tmp_path_factory.mktemp("core"), own_wheel, core_only=True)


@pytest.fixture
def core(installed, tmp_path):
    return installed._replace(folder=tmp_path)


@pytest.fixture(scope="session")
def filled(installed):
    """The same with a store and some files."""
    installed.rmem("remember", "one memory, so that there is a store")
    (installed.folder / "all.parquet").write_bytes(b"PAR1")
    return installed


def test_the_core_remembers_recalls_and_upgrades_without_any_extra(core):
    kept = core.rmem("remember", "The nightly ETL was killed: out of memory", "--id", "m-1")
    assert (kept.returncode, kept.stdout) == (0, "m-1\n"), kept.stderr
    found = json.loads(core.rmem("recall", "what happened to the ETL job yesterday", "--json").stdout)
    assert [hit["memory"]["memory_id"] for hit in found["hits"]] == ["m-1"]
    for command in (["list"], ["stats"], ["doctor"], ["export", "all.jsonl"], ["--help"], ["install", "--help"]):
        done = core.rmem(*command)
        assert done.returncode == 0, (command, done.stderr)


NEEDS = {  # a command, and the extra that it asks for
    "serve": "server",
    "serve backup copy": "server",
    "token list": "server",
    "org list": "server",
    "workspace list": "server",
    "member list": "server",
    "--store postgresql://me@127.0.0.1/none list": "postgres",
    "--store postgresql://me@127.0.0.1/none recall anything": "postgres",
    "migrate memories.db postgresql://me@127.0.0.1/none": "postgres",
    "mcp": "mcp",
    "sql SELECT": "tables",
    "export all.parquet": "parquet",
    "import all.parquet": "parquet",
    "sql VALUES(1)": "tables",
    "graph communities": "graph",
    "ui": "server",
}


@pytest.mark.parametrize("command", NEEDS)
def test_a_missing_extra_is_one_sentence_with_the_command_that_installs_it(filled, command):
    done = filled.rmem(*command.split())
    (line,) = done.stderr.splitlines()
    assert line.endswith(f'which is not installed; install it with: pip install "rmem[{NEEDS[command]}]"'), line
    assert done.returncode == 2
    assert "report" not in line


CALLS = {  # a line of Python, and the extra that it asks for
    "rmem.Brain('postgresql://me@127.0.0.1/none')": "postgres",
    "rmem.Brain(privacy='default')": "privacy",
    "rmem.Brain(encryption=rmem.Encryption(master=bytes(range(32)).hex())).remember('x')": "privacy",
    "__import__('rmem.kv').kv.PostgresStore('postgresql://me@127.0.0.1/none')": "postgres",
    "rmem.RedisStore()": "redis",
    "rmem.Client(path='tables.db')": "tables",
    "rmem.open('rmem://lab/rows')": "tables",
    "__import__('rmem.server.app')": "server",
}


@pytest.mark.parametrize("call", CALLS)
def test_a_call_without_its_extra_raises_the_same_sentence(core, call):
    header = "import rmem\nfrom rmem.errors import ConfigError\n"
    done = core.run("-c", f"{header}try:\n    {call}\nexcept ConfigError as error:\n    print(error)")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f'install it with: pip install "rmem[{CALLS[call]}]"\n')


def test_installing_into_a_toml_file_needs_the_extra_team_and_changes_nothing_without(core):
    (core.folder / ".codex").mkdir()
    done = core.rmem("install", "codex", "--yes", HOME=str(core.folder))
    assert 'editing TOML files needs tomlkit, which is not installed; install it with: pip install "rmem[team]"' in (
        done.stdout + done.stderr
    )
    assert done.returncode != 0
    assert list((core.folder / ".codex").iterdir()) == []


def test_times_that_need_the_extra_dates_say_so_and_others_are_understood(core):
    core.rmem("remember", "a first memory")
    for words in ("yesterday", "two weeks ago", "last May", "2026-05-01", "3 May 2024", "last friday"):
        assert core.rmem("list", "--since", words).returncode == 0, words
    done = core.rmem("list", "--since", "5pm")
    assert done.returncode == 2
    assert 'pip install "rmem[dates]"' in done.stderr


def test_the_modules_of_an_extra_are_what_it_brings():
    named = {
        "PyJWT": "jwt",
        "PyYAML": "yaml",
        "agent-framework-core": "agent_framework",
        "faiss-cpu": "faiss",
        "google-adk": "google.adk",
        "llama-index-core": "llama_index.core",
        "openai-agents": "agents",
        "opentelemetry-instrumentation": "opentelemetry.instrumentation",
        "pydantic-ai-slim": "pydantic_ai",
        "python-stdnum": "stdnum",
        "strands-agents": "strands",
    }
    project = tomllib.loads((environments.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for extra, modules in extras.MODULES.items():
        brought: set[str] = set()
        for line in project["optional-dependencies"][extra]:
            requirement = Requirement(line)
            others = [extras.MODULES[one] for one in requirement.extras] if requirement.name == "rmem" else []
            brought |= {one for modules in others for one in modules}
            brought.add(named.get(requirement.name, requirement.name.lower().replace("-", "_")))
        brought |= {"psycopg_pool"}  # of psycopg[pool]
        assert set(modules) <= brought, extra
