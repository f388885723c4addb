"""What a process and its children use: CPU seconds and resident memory, as the system tells it."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple


class Usage(NamedTuple):
    processes: list[int]
    """The process itself, then its children, theirs, and so on."""
    cpu: float
    resident: int


def tree_usage(leader: int) -> Usage:
    """Of a process and all that it started and that still run; nothing for one that has ended."""
    try:
        return _from_proc(leader)
    except FileNotFoundError:
        return _from_psutil(leader)


def _from_proc(leader: int) -> Usage:
    children: dict[int, list[int]] = defaultdict(list)
    seen: dict[int, tuple[float, int]] = {}
    tick, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        children[int(fields[1])].append(int(folder.name))
        seen[int(folder.name)] = ((int(fields[11]) + int(fields[12])) / tick, int(fields[21]) * page)
    if not seen:
        raise FileNotFoundError("/proc")
    found = [leader] if leader in seen else []
    for process in found:
        found += children[process]
    return Usage(found, sum(seen[one][0] for one in found), sum(seen[one][1] for one in found))


def _from_psutil(leader: int) -> Usage:
    import psutil

    found: list[int] = []
    cpu, resident = 0.0, 0
    try:
        process = psutil.Process(leader)
        for one in (process, *process.children(recursive=True)):
            times = one.cpu_times()
            found.append(one.pid)
            cpu, resident = cpu + times.user + times.system, resident + one.memory_info().rss
    except psutil.NoSuchProcess:
        pass
    return Usage(found, cpu, resident)
