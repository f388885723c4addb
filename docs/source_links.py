"""A hook of mkdocs: links that leave docs/ lead to the repository."""

from __future__ import annotations

import re
from typing import Any

_OUTSIDE = re.compile(r"\]\(((?:\.\./)+)(?!\w+\.md)([\w./-]+)(#[\w-]+)?\)")


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Rewrite `](../examples/README.md)` to its address in the repository."""
    depth = page.file.src_uri.count("/") + 1

    def outside(found: re.Match[str]) -> str:
        if found[1].count("../") < depth:
            return found[0]
        return f"]({config.repo_url}/blob/main/{found[2]}{found[3] or ''})"

    return _OUTSIDE.sub(outside, markdown)
