"""A browser on the dashboard, for the modules that test it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from running_server import Running

sync_api = pytest.importorskip("playwright.sync_api")

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
SCRIPT = '<img src=x onerror="window.attacked=1"><script>window.attacked=1</script>\'"&amp;'
W = "/workspaces/default"


class Window:
    """A page of the dashboard with a profile of its own, logged in; what its console says is kept."""

    def __init__(self, chrome, server: Running, token: str, **options: object) -> None:
        self.context = chrome.new_context(viewport={"width": 1100, "height": 800}, **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(20_000)
        self.said: list[str] = []
        self.page.on("console", self._listen)
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.url = f"{server.url}/ui/"
        self.page.goto(self.url)
        self.page.get_by_label("Token").fill(token)
        self.page.get_by_role("button", name="Log in").click()
        self.page.get_by_role("navigation", name="Pages").wait_for()

    def _listen(self, told: sync_api.ConsoleMessage) -> None:
        if told.type == "error" and not told.text.startswith("Failed to load resource"):  # a status other than 200
            self.said.append(told.text)

    def show(self, address: str) -> sync_api.Page:
        self.page.goto("about:blank")  # so that the page is loaded anew, and the one before changes no address any more
        self.page.goto(f"{self.url}#/{address}")
        self.page.get_by_role("navigation", name="Pages").wait_for()
        return self.page

    def serious(self, address: str) -> list[tuple[str, str, list[str]]]:
        """What axe finds on a page that keeps somebody from using it."""
        axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
        page = self.show(address)
        page.locator("h1").first.wait_for(state="attached")
        page.wait_for_load_state("networkidle")
        told = axe.run(page).response
        assert len(told["passes"]) > 10
        return [
            (address, problem["id"], [node["html"][:200] for node in problem["nodes"]][:3])
            for problem in told["violations"]
            if problem["impact"] in ("serious", "critical")
        ]

    def check(self) -> None:
        print(self.page.url, self.page.inner_text("body"), sep="\n")  # what a test that failed has seen
        assert self.page.evaluate("window.attacked") is None
        said, self.said = self.said, []
        assert said == []

    def close(self) -> None:
        self.check()
        self.context.close()


def picture(page: sync_api.Page, name: str) -> None:
    if os.environ.get("RMEM_PICTURES"):
        page.evaluate("window.scrollTo(0, 0)")
        page.screenshot(path=PICTURES / f"ui-{name}.png", full_page=False)
        assert (PICTURES / f"ui-{name}.png").stat().st_size < 150_000
