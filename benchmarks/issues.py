"""Make a recall set of real issues: which commit solved it? Memories are commits as `rmem import git` keeps them,
questions are the issues of SWE-bench with their whole text, or with `--titles` their first line.

    python benchmarks/issues.py [--titles] issues.json.gz TASKS CLONE…

TASKS is a clone of the repository SWE-bench/swe-bench-tasks (or swe-bench-multilingual-tasks); each CLONE lies in a
folder named as its repository. Right is a commit that adds at least half of the lines of the known solution and its
tests."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rmem.team.identity import repository
from rmem.team.importers.git import History, commit_ids, commits

_SHORTEST_LINE, _FEWEST_LINES = 8, 3  # characters of a line that tells commits apart; lines of a solution
_SHARE = 0.5


def main(*arguments: str) -> None:
    titles = "--titles" in arguments
    target, tasks, *clones = (argument for argument in arguments if argument != "--titles")
    stores = [_store(Path(tasks), Path(clone).resolve(), titles=titles) for clone in clones]
    name = "issue titles" if titles else "issues"
    recall_set = {"name": name, "source": "SWE-bench, MIT", "unit": "memory", "stores": stores}
    Path(target).write_bytes(gzip.compress(json.dumps(recall_set).encode(), 9, mtime=0))
    for clone, store in zip(clones, stores, strict=True):
        print(f"{clone}: {len(store['memories'])} memories, {len(store['questions'])} questions")


def _store(tasks: Path, clone: Path, *, titles: bool) -> dict[str, Any]:
    """Return the notes of one history, oldest first, and the issues whose solution is among them."""
    where = repository(clone)
    assert where is not None, f"{clone} is not a git repository"
    history = History(where)
    read = commits(clone, commit_ids(clone))
    notes = [(commit, note) for commit in read if (note := history.learn(commit)) is not None][::-1]
    memories = [
        {"text": note.text, "when": datetime.fromtimestamp(commit.when, UTC).isoformat()} for commit, note in notes
    ]
    issues = list(_issues(tasks, clone.name))
    added = _lines_of_commits(clone, set().union(*(solution for _, solution in issues)))
    questions = []
    for issue, solution in issues:
        right = [
            at for at, (commit, _) in enumerate(notes) if len(added[commit.id] & solution) >= _SHARE * len(solution)
        ]
        if right:
            text = issue.strip().partition("\n")[0] if titles else issue
            questions.append({"question": text, "kind": clone.name, "relevant": right})
    return {"memories": memories, "questions": questions}


def _lines_of_commits(clone: Path, wanted: set[str]) -> dict[str, set[str]]:
    """Return which of the wanted lines each commit adds."""
    command = ["git", "-C", str(clone), "log", "--no-merges", "-p", "--unified=0", "--no-renames", "--format=%x1e%H"]
    lines: defaultdict[str, set[str]] = defaultdict(set)
    commit, done = "", 0
    while True:  # git stops at contents that a clone lacks: go on with the commit after it
        before = done
        with subprocess.Popen(
            [*command, f"--skip={done}"], stdout=subprocess.PIPE, encoding="utf-8", errors="replace"
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith("\x1e"):
                    commit, done = line[1:].strip(), done + 1
                elif line.startswith("+") and (added := line[1:].strip()) in wanted:
                    lines[commit].add(added)
        if process.returncode == 0 or done == before:
            return lines


def _issues(tasks: Path, name: str) -> Iterator[tuple[str, set[str]]]:
    """Yield the text of each issue of a repository, and the lines that its solution adds."""
    for folder in sorted(tasks.glob(f"tasks/*__{name}-*")):
        patches = (folder / "gold.patch").read_text("utf-8") + (folder / "test.patch").read_text("utf-8")
        solution = _added_lines(patches.splitlines())
        if len(solution) >= _FEWEST_LINES:
            yield (folder / "problem_statement.md").read_text("utf-8"), solution


def _added_lines(lines: list[str]) -> set[str]:
    return {
        line[1:].strip()
        for line in lines
        if line.startswith("+") and not line.startswith("+++ ") and len(line.strip()) > _SHORTEST_LINE
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
