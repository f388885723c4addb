"""The texts of the dashboard: all in one catalogue, so that they can be translated.

With RMEM_TEXTS=1 the catalogue is written anew; translations in it are kept."""

from __future__ import annotations

import json
import os
import re

from dashboard import ROOT

FOLDER = ROOT / "rmem" / "server" / "ui"
CATALOGUE = FOLDER / "texts.js"
HEAD = "// Every text of the pages, and its translation. RMEM_TEXTS=1 pytest tests/server/test_ui_texts.py writes it.\n"
MODULES = [path for path in sorted(FOLDER.glob("*.js")) if path.name not in ("text.js", "texts.js")]


class Scanner:
    """Finds t`…` in a module, also inside what is put into another one."""

    def __init__(self, source: str) -> None:
        self._source = source
        self.found: list[str] = []
        self._code(0, nested=False)

    def _code(self, at: int, *, nested: bool) -> int:
        source = self._source
        while at < len(source):
            if source.startswith("t`", at) and not re.match(r"[\w$]", source[at - 1]):
                at = self._template(at + 2)
            elif nested and source[at] == "}":
                return at + 1
            else:
                at = self._code(at + 1, nested=True) if nested and source[at] == "{" else at + 1
        return at

    def _template(self, at: int) -> int:
        source, key, number = self._source, "", 0
        while source[at] != "`":
            if source.startswith("${", at):
                key, number, at = f"{key}{{{number}}}", number + 1, self._code(at + 2, nested=True)
            else:
                key, at = key + source[at], at + 1
        self.found.append(key)
        return at + 1


def catalogue() -> dict[str, str]:
    told: dict[str, str] = json.loads(CATALOGUE.read_text().partition("TEXTS = ")[2].rstrip(";\n"))
    return told


def test_the_catalogue_has_every_text_of_the_pages_and_no_other():
    used = sorted({text for path in MODULES for text in Scanner(path.read_text()).found})
    if os.environ.get("RMEM_TEXTS"):
        known = catalogue()
        told = json.dumps({text: known.get(text, "") for text in used}, ensure_ascii=False, indent=0)
        CATALOGUE.write_text(f"{HEAD}export const TEXTS = {told};\n")
    assert list(catalogue()) == used


def test_no_sentence_of_a_page_stands_outside_the_catalogue():
    found = []
    for path in MODULES:
        code = re.sub(r"//.*|/\*.*?\*/", "", path.read_text())
        found += [(path.name, text) for text in re.findall(r'(?<!\\)"([A-Z][a-z]+ [a-z][^"]*)"', code)]
    assert [one for one in found if one[1] != "Billing depends on Redis."] == []
