"""Regular expressions that are compiled when they are first used: a short process uses few of them, and compiling all
takes as long as a tenth of its imports."""

from __future__ import annotations

import re
from typing import Any, cast


class _LazyPattern:
    def __init__(self, pattern: str, flags: re.RegexFlag) -> None:
        self._source = pattern, flags

    def __getattr__(self, name: str) -> Any:
        """Compile, and keep the method that was asked for, so that later calls find it at once."""
        found = getattr(re.compile(*self._source), name)
        setattr(self, name, found)
        return found


def lazy_pattern(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """Return what behaves as `re.compile(pattern, flags)`."""
    return cast("re.Pattern[str]", _LazyPattern(pattern, flags))
