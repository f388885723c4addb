"""What `rmem review` calls a contradiction, on notes as teams write them: those that can all hold, and pairs that
cannot."""

from __future__ import annotations

import pytest

from rmem import Brain
from rmem.team.memory import TeamMemory
from rmem.team.notes import Note
from rmem.team.review import contradictions

PEACEFUL = [
    "Always run ruff format before committing.",
    "Never commit directly to main; open a pull request.",
    "The upload timeout of the gateway is 30 seconds.",
    "The download timeout of the gateway is 120 seconds.",
    "Retries of the gateway stop after 3 attempts.",
    "Use pyarrow.dataset for parquet files over 1 GB.",
    "Use polars for parquet files below 1 GB.",
    "Tests of the importer need a running PostgreSQL.",
    "Tests of the exporter need no database.",
    "The nightly job writes parquet files to the staging bucket.",
    "The hourly job writes CSV files to the archive bucket.",
    "Migrations are written by hand, never generated.",
    "Migrations must be reversible.",
    "Enable strict mode of mypy in new packages.",
    "Disable telemetry of the CLI in CI.",
    "The API returns 404 for unknown carriers.",
    "The API returns 409 when a carrier exists already.",
    "Use httpx instead of requests in the API client.",
    "Use pytest rather than unittest for new tests.",
    "Frontend tests run with vitest, not jest.",
    "Log messages are written in English.",
    "Log files are rotated after 7 days.",
    "Backups are kept for 90 days.",
    "Dates are stored in UTC and shown in the user's timezone.",
    "Prices are stored in cents as integers, not as floats.",
    "Feature flags live in flags.toml.",
    "Do not read settings from the environment inside of libraries.",
    "Public functions need docstrings.",
    "Private functions do not need docstrings.",
    "The scheduler needs Redis before the workers start.",
    "Stop the workers after the scheduler.",
    "The build needs Node 20 for the frontend.",
    "The build needs Python 3.11 for the backend.",
    "KeyError: 'carrier_code'\nSeen when running `pytest tests/test_carrier.py`.\nFix: changed etl/carrier.py",
    "KeyError: 'price_list'\nSeen when running `pytest tests/test_prices.py`.\nFix: changed etl/prices.py",
    "TimeoutError: QueuePool limit of size 5 reached\nSeen when running `pytest tests/test_pool.py`.\nFix: Pool(20)",
    "Of the 8 commits that changed etl/rows.py, most changed these files too: etl/schema.sql (8).",
    "Of the 12 commits that changed etl/pool.py, most changed these files too: etl/settings.py (9).",
    "Tried and reverted: Read parquet files with threads. Why: Threads doubled the memory on the build machines.",
    "Squash commits when merging feature branches.",
    "Rebase feature branches before opening a pull request.",
    "Staging deploys on every push to main.",
    "Production deploys on tags only.",
    "The users table has no foreign keys to orders.",
    # two commits of pallets/jinja, as they are remembered
    "start version 3.0.0\nChanged: CHANGES.rst, setup.py, src/jinja2/__init__.py\n"
    "Changelog: -   Drop support for Python 2.7 and 3.5. -   Bump MarkupSafe dependency to >=1.1.",
    "start version 3.1.6\nChanged: CHANGES.rst, src/jinja2/__init__.py",
]
AGAINST = {
    "number": ("The session cache expires after 15 minutes.", "The session cache expires after 60 minutes."),
    "version": ("The worker image is built on Debian 11.", "The worker image is built on Debian 12."),
    "denial": ("Mock the payment provider in unit tests.", "Do not mock the payment provider in unit tests."),
    "always and never": (
        "Always squash hotfix branches into one commit.",
        "Never squash hotfix branches into one commit.",
    ),
    "instead of": ("Use yarn instead of npm in the web folder.", "Use npm instead of yarn in the web folder."),
    "opposites": ("Indent Makefile includes with tabs.", "Indent Makefile includes with spaces."),
    "no longer": (
        "The billing service sends invoices by mail.",
        "The billing service no longer sends invoices by mail.",
    ),
    "enable": ("Enable query caching on the replica.", "Disable query caching on the replica."),
    "required": ("The header X-Tenant is required on every call.", "The header X-Tenant is optional on every call."),
    "another tool": ("We deploy the docs site with Jenkins.", "We deploy the docs site with GitHub Actions."),
    "another value": (
        "The default branch of the mobile repository is `develop`.",
        "The default branch of the mobile repository is `trunk`.",
    ),
    "another place": ("Secrets of the crawler live in Vault.", "Secrets of the crawler live in AWS Parameter Store."),
    "sync": ("Webhook handlers are sync functions.", "Webhook handlers are async functions."),
    "before and after": ("Run database seeds before the smoke tests.", "Run database seeds after the smoke tests."),
    "avoid": ("Use global fixtures for the search index.", "Avoid global fixtures for the search index."),
    "allowed": ("Force pushes to release branches are allowed.", "Force pushes to release branches are forbidden."),
    "other endpoint": (
        "Health checks of the ingest service listen on port 8080.",
        "Health checks of the ingest service listen on port 9090.",
    ),
    # what changed in the histories of requests, httpx and click
    "supported version": ("Requests officially supports Python 3.7+.", "Requests officially supports Python 3.8+."),
    "formatter": ("We use black for code formatting.", "We use ruff for code formatting."),
    "test runner": ("Async tests use pytest-asyncio and pytest-trio.", "Async tests use anyio."),
    "pins": ("Requirements are pinned with pip-compile-multi.", "Requirements are pinned with pip-compile."),
}


def told(*texts: str) -> set[frozenset[str]]:
    """The pairs that a review of these notes lists."""
    with Brain(":memory:") as brain:
        team = TeamMemory(brain, author="ann@acme.io")
        for at, text in enumerate(texts):
            kind = "error_fix" if "\nFix:" in text else "decision"
            note = Note(text, kind, author="ann@acme.io", repository="github.com/acme/etl", when=1000.0 + at)
            assert team.remember(note).text == text, "two of the notes are one"
        found = contradictions(team, "github.com/acme/etl")
        assert all(one.older.memory.timestamp < one.newer.memory.timestamp for one in found)
        return {frozenset((one.older.text, one.newer.text)) for one in found}


def test_notes_that_can_all_hold_do_not_contradict() -> None:
    assert len(PEACEFUL) >= 40
    assert told(*PEACEFUL) == set()


def test_contradictions_are_found_among_everything_else() -> None:
    pairs = [text for pair in AGAINST.values() for text in pair]
    assert told(*PEACEFUL, *pairs) == {frozenset(pair) for pair in AGAINST.values()}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Start the workers before the scheduler.", "Stop the workers after the scheduler."),  # turned twice
        ("Always squash fixes.", "Never fail to squash fixes, not even small ones."),
        ("The upload timeout is 30 seconds.", "The download timeout is 60 seconds."),
        ("We deploy with Jenkins.", "We deploy with care."),
        ("Add a changelog entry for every fix.", "Add a test for every fix."),
        ("Added changelog entry for 0.23", "Added changelog entry and bumped to 0.21"),
    ],
)
def test_what_only_looks_like_one(one: str, other: str) -> None:
    assert told(one, other) == set()
