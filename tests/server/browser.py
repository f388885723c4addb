"""A real browser without a window, for what web pages can and cannot do."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


def find_browser() -> str:
    """The browser of this machine. Without one the test is skipped, or fails where RMEM_BROWSER=required."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is not None:
        return found
    told = f"no browser is installed here (one of {', '.join(NAMES)})"
    if os.environ.get("RMEM_BROWSER") == "required":
        pytest.fail(told)
    pytest.skip(told)


def open_page(address: str, profile: Path, *options: str) -> subprocess.Popen[bytes]:
    """Start the browser on a page; end it with `close_page`."""
    command = [find_browser(), *OPTIONS, f"--user-data-dir={profile}", *options, address]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def close_page(browser: subprocess.Popen[bytes]) -> None:
    os.killpg(browser.pid, 9)  # the group that was started above: the browser and its helpers
    browser.wait()


def read_page(address: str, profile: Path, *options: str) -> str:
    """The document of a page after its scripts have run."""
    command = [find_browser(), *OPTIONS, f"--user-data-dir={profile}", "--dump-dom", *options, address]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
