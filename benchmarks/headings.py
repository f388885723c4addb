"""Makes a recall set from the manuals of Git repositories: each section is a memory, and its heading, which is not part
of it, is the question.

    python benchmarks/headings.py docs.json.gz CLONE…

A store for each repository; headings of fewer than three words ask too little."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

_HEADING = re.compile(
    r"^#{1,6} +(?P<md>.+?)(?: *\{.*\})?$|^(?P<rst>[^\s.:=~^\"'-].*)\n(?:=|-|~|\^|\"|'){3,}$", re.MULTILINE
)
_FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_LEAST_WORDS, _LEAST, _MOST = 3, 80, 4000  # words of a heading; characters of a section
_CHANGES = re.compile(r"chang|history|release|announce|news|whatsnew", re.IGNORECASE)


def main(target: str, *clones: str) -> None:
    stores = [store for clone in clones if (store := _store(clone))["questions"]]
    told = {"name": "docs", "source": "public manuals", "unit": "memory", "stores": stores}
    Path(target).write_bytes(gzip.compress(json.dumps(told).encode(), 9, mtime=0))
    for clone, store in zip(clones, stores, strict=True):
        print(f"{clone}: {len(store['memories'])} memories, {len(store['questions'])} questions")


def _store(clone: str) -> dict[str, Any]:
    """Sections of one repository's manual, and the headings that ask for them."""
    memories: list[dict[str, str]] = []
    questions: list[dict[str, Any]] = []
    for path in _git(clone, "ls-tree", "-r", "--name-only", "HEAD").splitlines():
        if not re.match(r"docs?/.*\.(?:md|rst)$", path) or _CHANGES.search(path):
            continue
        text = _FENCED.sub("", _git(clone, "show", f"HEAD:{path}"))
        found = list(_HEADING.finditer(text))
        for at, one in enumerate(found):
            end = found[at + 1].start() if at + 1 < len(found) else len(text)
            section, heading = text[one.end() : end].strip(), (one["md"] or one["rst"]).strip()
            if not _LEAST <= len(section) <= _MOST:
                continue
            if len(heading.split()) >= _LEAST_WORDS:
                questions.append({"question": heading, "kind": "heading", "relevant": [len(memories)]})
            memories.append({"text": section})
    return {"memories": memories, "questions": questions}


def _git(clone: str, *words: str) -> str:
    return subprocess.run(["git", "-C", clone, *words], capture_output=True, check=True).stdout.decode(
        "utf-8", "replace"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
